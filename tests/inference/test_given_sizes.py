"""Shapes given for inputs against the declared ones: what fits them is used, what contradicts them is said to."""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import TensorProto, helper

import splitgraph
from splitgraph.findings.diagnostics import SplitgraphError


def relu_of(dims: list[Any] | None) -> onnx.ModelProto:
    declared = helper.make_tensor_value_info("x", TensorProto.FLOAT, dims)
    result = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([helper.make_node("Relu", ["x"], ["y"])], "g", [declared], [result])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


FITTING: list[tuple[list[Any] | None, list[Any], str]] = [
    ([3, 4], [3, None], "float32[3, 4]"),
    ([3, 4], ["N", 4], "float32[3, 4]"),
    (["N", 4], [5, 4], "float32[5, 4]"),
    (["N", 4], ["M", 4], "float32[M, 4]"),
    (["N", "N"], [5, 5], "float32[5, 5]"),
    (["N", "2*N"], [5, 10], "float32[5, 10]"),
    (["2*N", 4], [6, 4], "float32[6, 4]"),
    (None, [1, 2], "float32[1, 2]"),
    ([], [], "float32[]"),
    (["batch-size", 4], ["batch-size", 4], "float32[batch-size, 4]"),
    (["2N", "seq:0"], ["2N", "seq:0"], "float32[2N, seq:0]"),
    (["a/b", 4], ["a/b", 4], "float32[a/b, 4]"),
    (["N", 4], ["M+1", "?"], "float32[M + 1, 4]"),
]


@pytest.mark.parametrize(("declared", "given", "shape"), FITTING)
def test_a_shape_that_fits_is_used(declared: list[Any] | None, given: list[Any], shape: str) -> None:
    analysis = splitgraph.infer(relu_of(declared), input_shapes={"x": given})
    assert analysis.diagnostics == ()
    assert str(analysis.types["y"]) == shape


@pytest.mark.parametrize("text", ["batch-size", "2N", "seq:0", "[4", "4x3", "a b", "", "None", "unk", "-1", "1.5"])
def test_a_new_name_is_an_identifier(text: str) -> None:
    """Any other text is a slip, or a spelling of something else."""
    with pytest.raises(SplitgraphError, match="is not a dimension"):
        splitgraph.infer(relu_of(["N", 4]), input_shapes={"x": [text, 4]})


def test_an_unknown_dimension_is_none_in_python() -> None:
    with pytest.raises(SplitgraphError, match=r"a dimension of 'x' cannot be -1; .* or a name such as 'N'"):
        splitgraph.infer(relu_of(["N", 4]), input_shapes={"x": [-1, 4]})
    assert str(splitgraph.infer(relu_of(["N", 4]), input_shapes={"x": [None, 4]}).types["y"]) == "float32[N, 4]"


CONTRADICTING: list[tuple[list[Any], list[Any], str, str]] = [
    ([3, 4], [4, 4], "error", "dimension 0 is given as 4, declared as 3"),
    ([3, 4], [4, 5], "error", "dimension 0 is given as 4, declared as 3; dimension 1 is given as 5, declared as 4"),
    ([4, 4], ["N + 5", 4], "error", "dimension 0 is given as N + 5, declared as 4"),
    ([3, 4], [3], "error", "has rank 1; the model declares float32[3, 4], of rank 2"),
    ([], [1], "error", "has rank 1; the model declares float32[], of rank 0"),
    (["2*N", 4], [5, 4], "warning", "dimension 0 is given as 5, declared as 2*N"),
]


@pytest.mark.parametrize(("declared", "given", "severity", "said"), CONTRADICTING)
def test_a_shape_that_contradicts_the_declared_one(
    declared: list[Any], given: list[Any], severity: str, said: str
) -> None:
    (found,) = splitgraph.infer(relu_of(declared), input_shapes={"x": given}).diagnostics
    assert (found.code, found.severity, found.location) == ("SG304", severity, "main")
    assert "the input 'x'" in found.message
    assert said in found.message
    assert "'x'" in found.help


def test_a_value_of_a_symbol_that_contradicts_the_given_shape() -> None:
    (found,) = splitgraph.infer(relu_of(["N", 4]), input_shapes={"x": [3, 4]}, bind={"N": 5}).diagnostics
    assert found.code == "SG304"
    assert "float32[N, 4]: dimension 0 is given as 3, declared as N, which is 5" in found.message


def test_a_symbol_has_the_value_that_a_given_shape_says_everywhere() -> None:
    x, w = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", "N"]) for name in "xw")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["y"])]
    graph = helper.make_graph(nodes, "g", [x, w], [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    analysis = splitgraph.infer(model, input_shapes={"x": [5, 5]})
    assert analysis.diagnostics == ()
    assert str(analysis.types["w"]) == "float32[5, 5]"
    (found, *_) = splitgraph.infer(model, input_shapes={"x": [5, 4]}).diagnostics
    assert found.code == "SG304"
    assert "float32[N, N]: dimension 1 is given as 4, declared as N, which is 5" in found.message


def test_what_a_node_contradicts_is_no_fault_of_the_given_shape() -> None:
    model = relu_of(["N", 4])
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 4]))
    (found,) = splitgraph.infer(model, input_shapes={"x": [5, 4]}).diagnostics
    assert found.code == "SG301"


@pytest.mark.parametrize("declared", ["N + 1", "2*N", "batch-size", "N"])
def test_a_dimension_given_as_the_model_writes_it_is_the_model_s(declared: str) -> None:
    as_declared = splitgraph.infer(relu_of([declared]))
    as_given = splitgraph.infer(relu_of([declared]), input_shapes={"x": [declared]})
    assert as_given.types == as_declared.types
    assert as_given.symbols == as_declared.symbols


NEGATIVE: list[tuple[list[Any], dict[str, Any], str | None]] = [
    (["N - 2", 4], {"bind": {"N": 2}}, None),
    (["N - 2", 4], {"bind": {"N": 1}}, "dimension N - 2 of the input 'x' is -1 with the sizes given"),
    (["N", "2 - N"], {"input_shapes": {"x": [2, None]}}, None),
    (["N", "2 - N"], {"input_shapes": {"x": [5, None]}}, "dimension 2 - N of the input 'x' is -3 with the sizes given"),
    (["max(0, N - 2)"], {"bind": {"N": 1}}, None),
    ([-1, 4], {}, None),
]


@pytest.mark.parametrize(("declared", "given", "said"), NEGATIVE)
def test_sizes_make_no_dimension_negative(declared: list[Any], given: dict[str, Any], said: str | None) -> None:
    analysis = splitgraph.infer(relu_of(declared), **given)
    assert [found.message for found in analysis.diagnostics] == ([said] if said else [])
    assert [found.code for found in analysis.diagnostics] == ["SG304"] * bool(said)
