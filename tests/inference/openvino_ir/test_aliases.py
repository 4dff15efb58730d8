"""Layers that are operators of ONNX under other names: each gives what ONNX's operator gives."""

from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from inference.openvino_ir.one_layer import one_layer
from onnx import TensorProto, helper

import splitgraph
from splitgraph.dim import Dim
from splitgraph.inference.openvino_ir import infer_ir
from splitgraph.inference.openvino_ir.infer import fault_of_layer
from splitgraph.inference.rules.openvino.aliases import BROADCAST, BROADCAST_LOGIC, FORMULAS, KEEP_TYPE, RENAMED

# ConvertLike reads a type and Einsum an equation; the others compute an element from those at its place.
OF_ONE = [(layer, operator) for layer, operator in RENAMED.items() if layer not in ("ConvertLike", "Einsum")]
OF_TWO = [*BROADCAST.items(), *BROADCAST_LOGIC.items()]
BOOLEAN = {"LogicalAnd", "LogicalNot", "LogicalOr", "LogicalXor"}
INTEGER = {"BitwiseAnd", "BitwiseLeftShift", "BitwiseNot", "BitwiseOr", "BitwiseRightShift", "BitwiseXor"}


def of_layer(folder: Path, layer: str, shapes: list[str]) -> tuple[str | None, list[int | None] | None]:
    kind = "boolean" if layer in BOOLEAN else "u8" if layer in INTEGER else "f32"
    analysis = infer_ir(one_layer(folder, layer, "opset15", {}, [f"{kind} {shape}" for shape in shapes]))
    assert not analysis.diagnostics
    return described(analysis)


def of_operator(layer: str, operator: str, shapes: list[str]) -> tuple[str | None, list[int | None] | None]:
    kind = TensorProto.BOOL if layer in BOOLEAN else TensorProto.UINT8 if layer in INTEGER else TensorProto.FLOAT
    names = [f"x{index}" for index in range(len(shapes))]
    dims = [[int(dim) if dim.isdigit() else None for dim in shape.split(",")] for shape in shapes]
    op_type, _, attribute = operator.partition(", ")
    attributes = {"fmod": 1} if attribute == "fmod=1" or op_type == "Mod" else {}
    if op_type == "BitShift":
        attributes = {"direction": "LEFT"}
    graph = helper.make_graph(
        [helper.make_node(op_type, names, ["y"], **attributes)],
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in zip(names, dims, strict=True)],
        [onnx.ValueInfoProto(name="y")],
    )
    analysis = splitgraph.infer(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)]))
    return described(analysis)


def described(analysis: splitgraph.Analysis) -> tuple[str | None, list[int | None] | None]:
    known = analysis.types["y"]
    shape = None if known.shape is None else [None if isinstance(dim, Dim) else dim for dim in known.shape]
    return known.dtype, shape


@pytest.mark.parametrize(("layer", "operator"), OF_ONE)
def test_of_one_operand(tmp_path: Path, layer: str, operator: str) -> None:
    shapes = ["2,?,4"]
    assert of_layer(tmp_path, layer, shapes) == of_operator(layer, operator, shapes)


@pytest.mark.parametrize(("layer", "operator"), OF_TWO)
def test_of_two_operands(tmp_path: Path, layer: str, operator: str) -> None:
    shapes = ["2,?,4", "3,1"]
    assert of_layer(tmp_path, layer, shapes) == of_operator(layer, operator, shapes)


def test_every_layer_of_the_table_exists() -> None:
    layers = [*RENAMED, *BROADCAST, *BROADCAST_LOGIC, *FORMULAS, *KEEP_TYPE.split()]
    assert len(set(layers)) == len(layers)
    assert [layer for layer in layers if fault_of_layer(layer, "opset17")] == []
