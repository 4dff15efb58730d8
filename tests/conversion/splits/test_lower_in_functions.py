"""Splits in functions whose axis or lengths are attributes of the function: each call may give others, or none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from known_opsets import known
from onnx import AttributeProto, TensorProto, helper

import splitgraph
from splitgraph.verification.reference.evaluator import load, run

DATA = {"x": np.arange(24, dtype=np.float32).reshape(6, 4)}


def reference(name: str, kind: int) -> AttributeProto:
    return AttributeProto(name=name, type=kind, ref_attr_name="given")


def model_of(
    opset: int, calls: Sequence[Any], referring: AttributeProto, *, default: Any = None, **attributes: Any
) -> onnx.ModelProto:
    """A function of one Split in two, called once for each value of its attribute (None: the call leaves it out)."""
    node = helper.make_node("Split", ["item"], ["a", "b"], name="split", **attributes)
    node.attribute.append(referring)
    function = helper.make_function(
        "local", "Cut", ["item"], ["a", "b"], [node], [helper.make_opsetid("", opset)],
        attributes=[] if default is not None else ["given"],
        attribute_protos=[] if default is None else [helper.make_attribute("given", default)],
    )  # fmt: skip
    nodes = [
        helper.make_node("Cut", ["x"], [f"a{i}", f"b{i}"], domain="local", **({} if call is None else {"given": call}))
        for i, call in enumerate(calls)
    ]
    outputs = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, [None, None]) for call in nodes for name in call.output
    ]
    declared = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "M"])
    imports = [helper.make_opsetid("", opset), helper.make_opsetid("local", 1)]
    graph = helper.make_graph(nodes, "calls", [declared], outputs)
    model = helper.make_model(graph, opset_imports=imports, functions=[function], ir_version=9)
    onnx.checker.check_model(model)
    return model


def assert_same(before: onnx.ModelProto, after: onnx.ModelProto, *, data: dict[str, np.ndarray] = DATA) -> None:
    onnx.checker.check_model(after)
    for want, have in zip(run(load(before), data), run(load(after), data), strict=True):
        np.testing.assert_array_equal(want, have)


def convert(model: onnx.ModelProto, target: int) -> onnx.ModelProto:
    source = model.opset_import[0].version
    verb = splitgraph.upgrade if target >= source else splitgraph.downgrade
    converted: onnx.ModelProto = verb(model, target).model
    return converted


AXES: list[tuple[list[int | None], int | None]] = [
    ([0], None), ([1], None), ([-1], None), ([0, 1], None),
    ([None], 1), ([None, 0], -1), ([None], None), ([None, 1], None),
]  # fmt: skip


def axis_model(calls: Sequence[int | None], default: int | None) -> onnx.ModelProto:
    return model_of(18, calls, reference("axis", AttributeProto.INT), default=default, num_outputs=2)


@pytest.mark.parametrize("target", [8, 2, 1])
def test_a_computed_axis_needs_opset_9(target: int) -> None:
    with pytest.raises(splitgraph.ConversionError) as raised:
        convert(axis_model([0, 1], None), target)
    assert raised.value.diagnostics[0].code == "SG402"
    assert raised.value.diagnostics[0].location == "local::Cut/split"


@pytest.mark.parametrize("target", known([9, 10, 11, 12, 13, 17, 18, 28]))
@pytest.mark.parametrize(("calls", "default"), AXES)
def test_an_axis_of_the_function(calls: Sequence[int | None], default: int | None, target: int) -> None:
    model = axis_model(calls, default)
    converted = convert(model, target)
    for shape in ((6, 4), (5, 7)):
        data = {"x": np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape)}
        assert_same(model, converted, data=data)


@pytest.mark.parametrize(("calls", "default"), AXES)
def test_an_axis_of_the_function_in_a_variadic_split(calls: Sequence[int | None], default: int | None) -> None:
    model = axis_model(calls, default)
    variadic = splitgraph.convert(model, "variadic-split").model
    assert_same(model, variadic)
    back = splitgraph.convert(variadic, "split")
    assert_same(model, back.model)
    # Losslessly: the function takes its axis from its calls as before.
    assert back.diagnostics == ()
    (function,) = back.model.functions
    (split,) = function.node
    assert sorted(split.attribute, key=str) == sorted(model.functions[0].node[0].attribute, key=str)


@pytest.mark.parametrize("lengths", [[2, 4], [3, 3]])
def test_lengths_along_an_axis_of_the_function_as_split(lengths: list[int]) -> None:
    """The axis as somebody else would write it: a constant of no dimensions; the lengths are constant."""
    model = splitgraph.convert(axis_model([0], None), "variadic-split").model
    function = next(function for function in model.functions if function.name == "Cut")
    del function.node[:-1]
    function.node[0].input[1:] = ["axis", "lengths"]
    axis = helper.make_node("Constant", [], ["axis"])
    axis.attribute.append(AttributeProto(name="value_int", type=AttributeProto.INT, ref_attr_name="given"))
    held = helper.make_node("Constant", [], ["lengths"], value_ints=lengths)
    call = function.node[0]
    nodes = [axis, held, *function.node]
    del function.node[:]
    function.node.extend(nodes)
    assert call.op_type == "VariadicSplit_2"
    converted = splitgraph.convert(model, "split")
    assert converted.diagnostics == ()
    assert_same(model, converted.model)
    (cut,) = converted.model.functions
    assert [(a.name, a.ref_attr_name) for a in cut.node[-1].attribute] == [("axis", "given")]


def test_an_axis_that_calls_compute_is_kept_and_said_to_be() -> None:
    model = splitgraph.convert(axis_model([0], None), "variadic-split").model
    function = next(function for function in model.functions if function.name == "Cut")
    number = next(node for node in function.node if node.op_type == "Constant" and node.attribute[0].ref_attr_name)
    doubled = helper.make_node("Add", [number.output[0]] * 2, ["doubled"])
    for node in function.node:
        node.input[:] = ["doubled" if name == number.output[0] else name for name in node.input]
    position = list(function.node).index(number) + 1
    nodes = [*function.node[:position], doubled, *function.node[position:]]
    del function.node[:]
    function.node.extend(nodes)
    converted = splitgraph.convert(model, "split")
    assert converted.model == model
    (found,) = converted.diagnostics
    assert (found.code, found.severity, found.location) == ("SG408", "warning", "local::Cut/split")
    assert "the arguments of each call of the function" in found.message
    assert "inline the function" in found.help


@pytest.mark.parametrize("source", [2, 11])
@pytest.mark.parametrize("target", known([1, 2, 9, 11, 12, 13, 18, 28]))
@pytest.mark.parametrize("calls", [[[2, 4]], [[2, 4], [1, 5]], [[0, 6], [6, 0]]])
def test_lengths_of_the_function(calls: Sequence[list[int]], source: int, target: int) -> None:
    model = model_of(source, calls, reference("split", AttributeProto.INTS), axis=0)
    assert_same(model, convert(model, target))


@pytest.mark.usefixtures("functions_stay")
@pytest.mark.parametrize("target", known([13, 18, 28]))
def test_lengths_that_a_call_leaves_out_have_no_tensor(target: int) -> None:
    """Without the attribute the parts are equal, which no tensor of lengths from opset 13 on can say."""
    model = model_of(11, [[2, 4], None], reference("split", AttributeProto.INTS), axis=0)
    assert_same(model, convert(model, 2))
    with pytest.raises(splitgraph.ConversionError) as raised:
        convert(model, target)
    assert [found.code for found in raised.value.diagnostics] == ["SG402"]


def test_a_number_of_parts_of_the_function() -> None:
    model = model_of(18, [2], reference("num_outputs", AttributeProto.INT), axis=0)
    for target in known([11, 13, 21, 28]):
        assert_same(model, convert(model, target), data={"x": np.ones((5, 2), np.float32)})
