"""Tests of old onnx releases, taken up: they give the outputs that the release gives."""

from __future__ import annotations

import onnx
import pytest
from known_opsets import known

from .model_cases import ModelCase
from .model_table import models_of
from .old_selection import ARCHIVE, NEWEST, forms_of
from .opset_judge import Verdict
from .opset_workers import Job, judge_all

TARGETS = known([18, 28])


def judged(asked: list[tuple[ModelCase, list[int]]]) -> dict[str, list[Verdict]]:
    """The verdicts of each case at its targets, by the name of the case."""
    found = judge_all([Job(case, [(target,) for target in targets]) for case, targets in asked])
    return {case.name: verdicts for (case, _), verdicts in zip(asked, found, strict=True)}


def faults(found: dict[str, list[Verdict]]) -> list[str]:
    """What does not come out equal."""
    return [
        f"{name}: {verdict.status} {verdict.detail}"
        for name, verdicts in found.items()
        for verdict in verdicts
        if verdict.status != "equal"
    ]


def test_the_selection_is_small_and_covers_what_changed() -> None:
    assert ARCHIVE.stat().st_size < 300_000
    forms = {form for case in models_of("old release").values() for form in forms_of(case)}
    assert len(forms) >= 300
    covered = {(op, version) for op, version, *_ in forms}
    assert covered >= {
        ("Add", 6),
        ("BatchNormalization", 6),
        ("Clip", 6),
        ("Dropout", 7),
        ("Gemm", 6),
        ("OneHot", 9),
        ("PRelu", 6),
        ("Pad", 2),
        ("Resize", 10),
        ("Scan", 8),
        ("Scatter", 9),
        ("Slice", 1),
        ("Softmax", 1),
        ("TopK", 10),
        ("Upsample", 1),
        ("Upsample", 7),
    }


@pytest.mark.slow
def test_selection() -> None:
    assert faults(judged([(case, TARGETS) for case in models_of("old release").values()])) == []


@pytest.mark.slow
def test_selection_at_every_opset() -> None:
    """Each case at every other opset, the one after it at those between."""
    newest = onnx.defs.onnx_opset_version()
    asked = []
    for opset in range(6, NEWEST + 1):
        cases = [case for case in models_of("old release").values() if case.opset == opset]
        targets = [target for target in range(opset + 1, newest + 1) if target not in TARGETS]
        asked += [(case, targets[place % 2 :: 2]) for place, case in enumerate(cases)]
    assert {target for _, targets in asked for target in targets} == {*range(7, newest + 1)} - {*TARGETS}
    assert faults(judged(asked)) == []
