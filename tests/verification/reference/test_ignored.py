"""The table of what onnx's evaluator ignores, and a sample of the campaign that measured it."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

from splitgraph.verification.reference import evaluator
from splitgraph.verification.reference.ignored import IGNORED, MEASURED_WITH, find_ignored
from splitgraph.verification.values import UnsupportedError

from ..small_models import parsed

LINE = "float[N] x => float[M] y"
POOLED = "float[1, 1, 2, 2] x => float[1, 1, 1, 1] y, int64[1, 1, 1, 1] i"
SEVEN, K = np.array([3, 1, 2, 3, 0, 5, 4], np.float32), np.array([5], np.int64)
IMAGE = np.array([[[[0, 3], [1, 2]]]], np.float32)

# Of each entry: a model with what is ignored, the same without it, and inputs on which runtimes differ.
ENTRIES = {
    ("MaxPool", "storage_order"): (
        parsed(POOLED, "y, i = MaxPool<kernel_shape = [2, 2], storage_order = 1>(x)"),
        parsed(POOLED, "y, i = MaxPool<kernel_shape = [2, 2]>(x)"),
        IMAGE,
    ),
    ("TopK", "sorted"): (
        parsed("float[N] x => float[5] y, int64[5] i", "y, i = TopK<sorted = 0>(x, k)", k=K),
        parsed("float[N] x => float[5] y, int64[5] i", "y, i = TopK(x, k)", k=K),
        SEVEN,
    ),
    ("Unique", "sorted"): (parsed(LINE, "y = Unique<sorted = 0>(x)"), parsed(LINE, "y = Unique(x)"), SEVEN),
}


def test_every_entry_has_a_model() -> None:
    assert set(ENTRIES) == {(op_type, name) for op_type, names in IGNORED.items() for name in names}


@pytest.mark.parametrize("entry", ENTRIES)
def test_the_installed_evaluator_ignores_it(entry: tuple[str, str]) -> None:
    """Where this fails, measure again: `tests/campaigns/ignored_changes.py`."""
    changed, plain, x = ENTRIES[entry]
    results = [ReferenceEvaluator(model).run(None, {"x": x}) for model in (changed, plain)]
    for one, other in zip(*results, strict=True):
        np.testing.assert_array_equal(one, other, err_msg=f"measured with onnx {MEASURED_WITH}")


@pytest.mark.parametrize("entry", ENTRIES)
def test_it_is_refused(entry: tuple[str, str]) -> None:
    changed, plain, _ = ENTRIES[entry]
    with pytest.raises(UnsupportedError, match=f"ignores the attribute {entry[1]}=. of {entry[0]}"):
        evaluator.load(changed)
    evaluator.load(plain)


KEPT = {
    "the default, written out": parsed(LINE, "y = Unique<sorted = 1>(x)"),
    "another attribute": parsed(LINE, "y = Unique<axis = 0>(x)"),
    "an attribute of this name elsewhere": parsed(LINE, "y = Elu<alpha = 0.5>(x)"),
}


@pytest.mark.parametrize("name", KEPT)
def test_what_is_not_ignored(name: str) -> None:
    (node,) = KEPT[name].graph.node
    assert find_ignored(node, onnx.defs.get_schema(node.op_type, 18)) == ""
    evaluator.load(KEPT[name])
