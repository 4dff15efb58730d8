"""Every model of `models/` taken to every other opset: it gives what the original gives, or it is refused with a reason
for each blocker.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest
from known_opsets import known

import splitgraph

from .model_cases import ModelCase, assert_converted
from .model_table import models_of

CASES = models_of("project")
# How many models of another opset convert to each opset, and of how many.
CONVERTED = {9: (61, 70), 11: (56, 58), 13: (51, 53), 17: (59, 61), 18: (46, 48), 21: (70, 71), 26: (71, 71)}
OPSETS = known(list(CONVERTED))


def at_other_opsets(target: int) -> list[ModelCase]:
    return [case for case in CASES.values() if case.opset != target]


def converted(cases: list[ModelCase], target: int) -> Iterator[tuple[ModelCase, splitgraph.Rewrite]]:
    """Each case that goes to the target; fails where one is refused without a reason, or upward."""
    for case in cases:
        upward = target > (case.opset or 0)
        try:
            yield case, (splitgraph.upgrade if upward else splitgraph.downgrade)(case.model, target)
        except splitgraph.ConversionError as refusal:
            assert refusal.diagnostics
            assert all(found.code and found.message and found.location for found in refusal.diagnostics)
            assert not upward, refusal


PAIRS = [(case.name, target) for target in OPSETS for case in at_other_opsets(target)]


@pytest.mark.parametrize("target", OPSETS)
@pytest.mark.sample(2)
def test_so_many_models_convert(target: int) -> None:
    cases = at_other_opsets(target)
    reached = {case.name for case, _ in converted(cases, target)}
    refused = {case.name for case in cases} - reached
    assert (len(reached), len(cases)) == CONVERTED[target], f"refused: {sorted(refused)}"


@pytest.mark.parametrize(("name", "target"), random.Random(4).sample(PAIRS, 60))
def test_selection(name: str, target: int) -> None:
    for case, rewrite in converted([CASES[name]], target):
        assert_converted(case, rewrite.model)


@pytest.mark.slow
@pytest.mark.parametrize("target", OPSETS)
def test_all(target: int) -> None:
    for case, rewrite in converted(at_other_opsets(target), target):
        assert_converted(case, rewrite.model)
