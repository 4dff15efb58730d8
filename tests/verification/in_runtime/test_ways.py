"""A runtime that is here decides between the model as it is, folded, and in other forms."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import onnx.parser
import pytest
from fake_runtimes import REFUSES, WRONG, fake_python, write_program

import splitgraph

pytestmark = pytest.mark.skipif(os.name == "nt", reason="the Pythons that fail are scripts of POSIX")

BOTH = REFUSES.format(operator="Gelu") + REFUSES.format(operator="Shape")


def model(body: str, opset: int = 20, more: str = "") -> onnx.ModelProto:
    text = f'<ir_version: 8, opset_import: ["": {opset}]> g (float[N, 6] x) => (float[N, 6] y) {more} {{ {body} }}'
    return onnx.parser.parse_model(text)


SIZES = "s = Shape(x) r = Reshape(h, s)"


@pytest.mark.parametrize(
    ("fault", "body", "gone", "stays"),
    [
        # It runs as it is.
        (REFUSES.format(operator="Gelu"), f"h = Relu(x) {SIZES} y = Neg(r)", (), ("Shape",)),
        # Folded, with no other form: the table says that OpenCV 5 reads all of it.
        (REFUSES.format(operator="Shape"), f"h = Relu(x) {SIZES} y = Neg(r)", ("Shape",), ("Relu", "Neg")),
        # Folded, and in another form.
        (BOTH, f"h = Gelu(x) {SIZES} y = Neg(r)", ("Shape", "Gelu"), ("Neg",)),
        # Nothing to fold.
        (REFUSES.format(operator="Gelu"), "h = Gelu(x) y = Neg(h)", ("Gelu",), ("Neg",)),
    ],
    ids=["as it is", "folded", "both", "form"],
)
def test_the_first_way_that_runs(
    tmp_path: Path, fault: str, body: str, gone: tuple[str, ...], stays: tuple[str, ...]
) -> None:
    given = model(body)
    python = fake_python(tmp_path, write_program(tmp_path, fault, "5.0.0"))
    rewrite = splitgraph.convert(given, target="opencv", verify=True, runtime_python=python)
    assert rewrite.ran is not None
    assert rewrite.ran.answer == "equal"
    operators = {node.op_type for node in rewrite.model.graph.node}
    assert operators.isdisjoint(gone)
    assert operators.issuperset(stays)
    if not gone:
        assert rewrite.model == given


def test_the_largest_difference_is_that_of_the_model_that_is_written(tmp_path: Path) -> None:
    """The model as it is gives other values, and the one that is written gives the right ones."""
    python = fake_python(tmp_path, write_program(tmp_path, WRONG.format(operator="Gelu"), "5.0.0"))
    rewrite = splitgraph.convert(model("h = Gelu(x) y = Neg(h)"), target="opencv", verify=True, runtime_python=python)
    assert rewrite.ran is not None
    assert rewrite.ran.answer == "equal"
    assert rewrite.ran.max_abs_diff is not None
    assert rewrite.ran.max_abs_diff < 1e-3


def test_a_model_that_runs_in_no_way(tmp_path: Path) -> None:
    """The fold leaves the node that this runtime refuses."""
    python = fake_python(tmp_path, write_program(tmp_path, REFUSES.format(operator="Reshape"), "5.0.0"))
    with pytest.raises(splitgraph.ConversionError, match="in no way that was tried"):
        splitgraph.convert(
            model("s = Shape(x) r = Reshape(x, m) n = Reshape(r, s) y = Neg(n)", more="<int64[1] m = {-1}>"),
            target="opencv",
            verify=True,
            runtime_python=python,
        )


UNNAMED = """
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if not (dim.dim_param or dim.dim_value):
                raise ValueError("a dimension without a name")
"""
# The table says that tract computes such an If wrong.
BRANCHES = (
    "n = Size(x) five = Constant<value_int = 5>() c = Greater(n, five) y = If(c)<"
    "then_branch = g1 () => (float[A, B] u) { u = Neg(x) }, else_branch = g2 () => (float[C, D] v) { v = Relu(x) }>"
)


@pytest.mark.parametrize(
    ("fault", "body", "answer"),
    [
        (UNNAMED, BRANCHES, "equal"),
        (UNNAMED, "y = Neg(x)", "equal"),
        (UNNAMED + "    raise BufferError('no such type')", "y = Neg(x)", "not-run"),
    ],
    ids=["a node that the table refuses", "a node that it reads", "a result that the bindings do not give"],
)
def test_a_model_that_only_wants_names_of_dimensions_keeps_its_nodes(
    tmp_path: Path, fault: str, body: str, answer: str
) -> None:
    given = model(body, 17)
    given.graph.input[0].type.tensor_type.shape.dim[0].Clear()
    python = fake_python(tmp_path, write_program(tmp_path, fault, "0.23.9"))
    rewrite = splitgraph.convert(given, target="tract", verify=True, runtime_python=python)
    assert rewrite.ran is not None
    assert rewrite.ran.answer == answer
    assert list(rewrite.model.graph.node) == list(given.graph.node)
    assert rewrite.model.graph.input[0].type.tensor_type.shape.dim[0].dim_param
