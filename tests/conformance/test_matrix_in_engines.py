"""A sample of the matrix through verify: inputs that it makes up itself, and onnxruntime in place of our kernels."""

from __future__ import annotations

import onnx
import pytest

import splitgraph

from .matrix_checks import convert, may_be_refused
from .matrix_models import TARGETS, Case, build, feeds_of
from .matrix_selection import ALL, covering

# onnxruntime runs operators from opset 7 on, not yet those of the newest, and a Scan only with a body of known ranks.
RUNNABLE = [case for case in ALL if 7 <= case.opset <= 21 and (case.scope, case.shape) != ("scan", "unknown")]


def pairs_of_versions() -> list[tuple[Case, int]]:
    """One case for each source version, scope and target."""
    chosen, seen = [], set()
    for case in covering(RUNNABLE, 3):
        for target in TARGETS:
            key = (case.version, case.scope, target)
            if key in seen or not 9 <= target <= 21 or target == case.opset or may_be_refused(case, target):
                continue
            seen.add(key)
            chosen.append((case, target))
    return chosen


EVERY = pairs_of_versions()


def assert_equal(case: Case, after: onnx.ModelProto) -> None:
    # Which dimensions have to be 1 for the rank to be what the split needs is what no inference can tell.
    inputs = feeds_of(case)[0] if case.shape == "unknown" else None
    verification = splitgraph.verify(build(case), after, engine="onnxruntime", samples=2, inputs=inputs)
    assert (verification.verdict, verification.engine) == ("equal", "onnxruntime"), f"{case}: {verification}"


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(("case", "target"), EVERY[::19], ids=str)
def test_equal_in_onnxruntime(case: Case, target: int) -> None:
    assert_equal(case, convert(build(case), case.opset, target).model)


@pytest.mark.usefixtures("in_process")
@pytest.mark.slow
@pytest.mark.parametrize(("case", "target"), EVERY[::3], ids=str)
def test_many_equal_in_onnxruntime(case: Case, target: int) -> None:
    assert_equal(case, convert(build(case), case.opset, target).model)


@pytest.mark.parametrize(("case", "target"), EVERY[::19], ids=str)
def test_variadic_splits_are_equal_in_onnxruntime(case: Case, target: int) -> None:
    if case.opset < 11:
        case = Case(11, 11, "attribute", case.even, case.axis, case.scope, case.shape)
    assert_equal(case, splitgraph.convert(build(case), "variadic-split").model)
