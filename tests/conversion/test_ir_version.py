"""The IR version: raised where the opset needs it, lowered only where that is asked for and possible."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

import splitgraph
from splitgraph.conversion.opset import convert_opset


def relu(ir_version: int, opset: int, dtype: int = TensorProto.FLOAT) -> onnx.ModelProto:
    values = [helper.make_tensor_value_info(name, dtype, [2]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "g", values[:1], values[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)


def with_initializer(ir_version: int) -> onnx.ModelProto:
    model = relu(ir_version, 8)
    model.graph.initializer.append(helper.make_tensor("w", TensorProto.FLOAT, [1], [0.0]))
    return model


def with_initializer_in_a_branch(ir_version: int) -> onnx.ModelProto:
    held = helper.make_tensor("k", TensorProto.FLOAT, [1], [0.0])
    branches = {
        f"{side}_branch": helper.make_graph(
            [helper.make_node("Add", ["x", "k"], [side])],
            side,
            [],
            [helper.make_tensor_value_info(side, TensorProto.FLOAT, [2])],
            [held],
        )
        for side in ("then", "else")
    }
    model = relu(ir_version, 8)
    model.graph.node[0].CopyFrom(helper.make_node("If", ["c"], ["y"], **branches))
    model.graph.input.append(helper.make_tensor_value_info("c", TensorProto.BOOL, []))
    return model


def with_function(ir_version: int) -> onnx.ModelProto:
    model = relu(ir_version, 13)
    nodes = [helper.make_node("Relu", ["a"], ["b"])]
    model.functions.append(helper.make_function("local", "f", ["a"], ["b"], nodes, [helper.make_opsetid("", 13)]))
    return model


def with_metadata(ir_version: int) -> onnx.ModelProto:
    model = relu(ir_version, 13)
    model.graph.node[0].metadata_props.add(key="k", value="v")
    return model


REFUSED = [
    (relu(8, 17), 18, 7, "opset 18"),
    (with_initializer(8), 7, 3, "the initializer 'w'"),
    (with_initializer_in_a_branch(8), 8, 3, "the initializer 'k'"),
    (with_function(8), 13, 7, "FunctionProto"),
    (with_metadata(10), 11, 9, "metadata_props of NodeProto"),
    (relu(10, 21, TensorProto.INT4), 22, 9, "the element type INT4"),
]


@pytest.mark.parametrize(("model", "opset", "version", "what"), REFUSED)
def test_too_old_for_the_model(model: onnx.ModelProto, opset: int, version: int, what: str) -> None:
    with pytest.raises(splitgraph.ConversionError) as caught:
        convert_opset(model, opset, version)
    assert [found.code for found in caught.value.diagnostics] == ["SG412"]
    assert what in str(caught.value)


@pytest.mark.parametrize("version", [0, -1, onnx.IR_VERSION + 1])
def test_no_such_version(version: int) -> None:
    with pytest.raises(splitgraph.SplitgraphError, match="there is no IR version"):
        convert_opset(relu(8, 17), 18, version)


# The IR version of the release that added each element type.
TYPES = [
    ("BFLOAT16", 4),
    *[(name, 9) for name in ("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ")],
    ("UINT4", 10),
    ("INT4", 10),
    ("FLOAT4E2M1", 11),
    ("FLOAT8E8M0", 12),
    ("UINT2", 13),
    ("INT2", 13),
]


@pytest.mark.parametrize(("name", "least"), [case for case in TYPES if hasattr(TensorProto, case[0])])
def test_element_types_need_the_release_that_added_them(name: str, least: int) -> None:
    model = relu(onnx.IR_VERSION, 7)
    model.graph.input.append(helper.make_tensor_value_info("unread", TensorProto.DataType.Value(name), [2]))
    assert convert_opset(model, 7, least).model.ir_version == least
    with pytest.raises(splitgraph.ConversionError, match=f"needs IR version {least}, for the element type {name}"):
        convert_opset(model, 7, least - 1)


KEPT = [
    (relu(10, 18), 11, None, 10),
    (relu(3, 8), 9, None, 4),
    (relu(10, 18), 11, 6, 6),
    (relu(8, 17), 18, 9, 9),
    (with_initializer(8), 7, 4, 4),
]


@pytest.mark.parametrize(("model", "opset", "version", "expected"), KEPT)
def test_version_of_the_result(model: onnx.ModelProto, opset: int, version: int | None, expected: int) -> None:
    made = convert_opset(model, opset, version).model
    assert made.ir_version == expected
    onnx.checker.check_model(made)
