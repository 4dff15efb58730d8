"""The time of a verification: what follows from the runs of the models, and what is said of parts that did not fit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from splitgraph import convert, verify
from splitgraph.verification import budget
from splitgraph.verification.budget import Budget
from splitgraph.verification.engines.engine_process import Suspect
from splitgraph.verification.regions.judging.arbiter import Arbiter
from splitgraph.verification.regions.judging.evaluations import Answers
from splitgraph.verification.verification import STOPPED

from .small_models import parsed

F = np.float32


@pytest.mark.parametrize(
    ("given", "runs", "checking", "judging"),
    [
        (None, {0: 0.0, 1: 0.0}, 6, 6),
        (None, {0: 0.5, 1: 1.5}, 46, 46),
        (None, {}, 6, 6),
        # The limit of everything.
        (None, {0: 20.0, 1: 20.0}, 300, 300),
        # What the caller gives is used up, but for what judging needs.
        (1000.0, {0: 0.0, 1: 0.0}, 750, 750),
        (4.0, {0: 5.0, 1: 5.0}, 3, 4),
        (1e9, {0: 0.0, 1: 0.0}, 750_000, 750_000),
    ],
)
def test_how_long_regions_are_checked(
    given: float | None, runs: dict[int, float], checking: float, judging: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget.time, "monotonic", lambda: 0.0)
    made = Budget.begun(given)
    ends = made.checking_ends(runs)
    assert (ends, made.judging_ends(ends)) == (checking, judging)


@pytest.mark.parametrize(
    ("given", "longest", "ends"),
    [(None, 300.0, 2), (None, 1.0, 1), (0.5, 300.0, 0.5), (4.0, 300.0, 2), (60.0, 300.0, 15)],
)
def test_how_long_sizes_are_looked_for(
    given: float | None, longest: float, ends: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(budget.time, "monotonic", lambda: 0.0)
    assert Budget.begun(given, longest).searching_ends() == ends


def test_many_models_share_a_shorter_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(budget.time, "monotonic", lambda: 0.0)
    made = Budget.begun(None, 30.0)
    assert (made.deadline, made.checking_ends({0: 9.0})) == (30.0, 30.0)


# A loop that counts down to 0, which numbers beyond 2^24 never reach, beside another part that differs.
def counting(step: str, other: str, **constants: Any) -> onnx.ModelProto:
    body = (
        f"w = {step} is_end = Equal(w, zero) goes = Not(is_end)",
        "f = Floor(n) a = Abs(f) b = Max(a, one)",
    )
    text = (
        f'{body[1]} k = Loop("", t, b) <body = g (int64 i, bool c, float v) => (bool goes, float w) {{ {body[0]} }}> '
        f"y = Add(x, k) {other}"
    )
    one, zero, less = F(1), F(0), F(-1)
    made = {"t": np.array(True), "one": one, "zero": zero, "less": less, **constants}
    return parsed("float[4] x, float n => float[4] y, float[4] z", text, opset=13, **made)


ORDER = ("z0 = Mul(x, two) z = Add(z0, two)", "z0 = Add(x, one) z = Mul(two, z0)")


def test_a_part_that_never_ends_leaves_the_others_their_time() -> None:
    before = counting("Sub(v, one)", ORDER[0], two=F(2))
    found = verify(before, counting("Add(v, less)", ORDER[1], two=F(2)))
    assert found.verdict == "equal"
    assert [(region.is_open, region.cases > 10, region.reason) for region in found.regions] == [
        (True, False, STOPPED),
        (False, True, ""),
    ]
    (note,) = [each for each in found.diagnostics if each.code == "SG513"]
    assert "before 1 of 2 changed parts were compared on all drawn values: main/Loop" in note.message
    assert note.severity == "info"


def suspect(gap: float, kind: str) -> Suspect:
    one = np.ones(4, F)
    return Suspect(kind, 0, "they differ", {"in.0": one}, [[one], [one + F(gap)]])


@pytest.mark.parametrize(
    ("gap", "kind", "cause"),
    [
        # Nothing that rounding can explain, on values that engines agree on.
        (1.0, "captured", "models"),
        (1.0, "normal", "models"),
        (1.0, "rows", "models"),
        # Nobody could say in time.
        (1e-4, "captured", "late"),
        (1e-4, "normal", "late"),
        (1.0, "ends", "late"),
        (1e-4, "gaps", "late"),
    ],
)
def test_a_difference_that_nobody_judged_in_time(gap: float, kind: str, cause: str) -> None:
    side = parsed("float[4] in.0 => float[4] out.0".replace(".", "_"), "out_0 = Relu(in_0)")
    arbiter = Arbiter("onnxruntime", 1e-5, 1e-6, deadline=0.0)
    assert arbiter.judge([side, side], [Path(), Path()], suspect(gap, kind)).cause == cause


def test_a_kernel_that_was_to_blame_is_not_blamed_on_the_models_later(monkeypatch: pytest.MonkeyPatch) -> None:
    """The evaluator has no time for the last two of three suspects."""
    side = parsed("float[4] x => float[4] y", "y = Relu(x)")
    suspects, ran = [suspect(1.0, kind) for kind in ("captured", "normal", "ends")], list[int]()

    def answers(_: Arbiter, __: object, ___: object, inputs: list[object]) -> list[Answers]:
        ran.append(len(inputs))
        same = [np.ones(4, F)]
        return [Answers((same, same), False) if len(ran) == 1 else Answers((None, None), True) for _ in inputs]

    monkeypatch.setattr(Arbiter, "_run", answers)
    arbiter = Arbiter("onnxruntime", 1e-5, 1e-6, deadline=0.0)
    judged = list(arbiter.judge_each([side, side], [Path(), Path()], suspects))
    assert [opinion.cause for opinion in judged] == ["engine", "late", "late"]
    assert ran == [1, 2]


BOXES = np.array([[0, 0, 10, 10], [3, 4, 30, 20], [5, 5, 28, 31]], F)


@pytest.mark.parametrize("is_fixed", [True, False])
def test_boxes_are_compared_on_all_drawn_values(is_fixed: bool) -> None:
    inputs = "float[1, 2, 32, 32] x" if is_fixed else "float[1, 2, 32, 32] x, float[3, 4] b"
    node = "y = RoiAlign <output_height = 7, output_width = 7> (x, b, i)"
    constants = {"b": BOXES} if is_fixed else {}
    before = parsed(f"{inputs} => float[3, 2, 7, 7] y", node, opset=10, i=np.zeros(3, np.int64), **constants)
    found = convert(before, opset=16, verify=True).verification
    assert found is not None and found.verdict == "equal"
    assert [region.is_open for region in found.regions] == [False] and found.regions[0].cases > 12
