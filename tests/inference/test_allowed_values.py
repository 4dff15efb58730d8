"""Attributes that take one of a few values: all of them are taken, and no other."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper

import splitgraph

FLOAT, INT64, STRING = TensorProto.FLOAT, TensorProto.INT64, TensorProto.STRING
ML = "ai.onnx.ml"
# Operator, domain, opset, inputs (element type and shape), constants, attributes, the attribute in question, values
# that are allowed, and values that are not.
Case = tuple[str, str, int, dict[str, tuple[int, list[Any]]], dict[str, Any], dict[str, Any], str, list[Any], list[Any]]
IMAGE = {"x": (FLOAT, [1, 4, 4, 4])}
SIZES = {"s": [1, 4, 8, 8]}
CASES: list[Case] = [
    (
        "BitShift",
        "",
        17,
        {"x": (TensorProto.UINT8, [2]), "z": (TensorProto.UINT8, [2])},
        {},
        {},
        "direction",
        ["LEFT", "RIGHT"],
        ["left", "UP", ""],
    ),
    ("DepthToSpace", "", 17, IMAGE, {}, {"blocksize": 2}, "mode", ["DCR", "CRD"], ["dcr", "", "nonsense"]),
    ("Gelu", "", 20, IMAGE, {}, {}, "approximate", ["none", "tanh"], ["erf", "NONE"]),
    (
        "GridSample",
        "",
        20,
        IMAGE | {"g": (FLOAT, [1, 2, 2, 2])},
        {},
        {},
        "padding_mode",
        ["zeros", "border", "reflection"],
        ["reflect"],
    ),
    ("GridSample", "", 20, IMAGE | {"g": (FLOAT, [1, 2, 2, 2])}, {}, {}, "mode", ["linear", "cubic"], ["area"]),
    ("LpNormalization", "", 17, IMAGE, {}, {}, "p", [1, 2], [0, 3, -1]),
    ("MaxPool", "", 17, IMAGE, {}, {"kernel_shape": [2, 2]}, "storage_order", [0, 1], [2, -1]),
    ("Pad", "", 19, IMAGE, {"p": [0] * 8}, {}, "mode", ["constant", "reflect", "edge", "wrap"], ["Constant", "mirror"]),
    ("Resize", "", 19, IMAGE, SIZES, {}, "mode", ["nearest", "linear", "cubic"], ["LINEAR", "area", ""]),
    ("Resize", "", 19, IMAGE, SIZES, {}, "nearest_mode", ["floor", "ceil", ""], ["round"]),
    ("Resize", "", 19, IMAGE, SIZES, {}, "coordinate_transformation_mode", ["align_corners"], ["corners"]),
    ("Resize", "", 19, IMAGE, SIZES, {}, "keep_aspect_ratio_policy", ["stretch"], ["keep", ""]),
    (
        "ReverseSequence",
        "",
        17,
        {"x": (FLOAT, [3, 2]), "l": (INT64, [2])},
        {},
        {"time_axis": 0},
        "batch_axis",
        [1],
        [0, 2, -1],
    ),
    (
        "ScatterElements",
        "",
        18,
        {"x": (FLOAT, [3]), "i": (INT64, [1]), "u": (FLOAT, [1])},
        {},
        {},
        "reduction",
        ["none", "add", "mul", "max", "min"],
        ["sum", "ADD"],
    ),
    (
        "SoftmaxCrossEntropyLoss",
        "",
        17,
        {"x": (FLOAT, [3, 5]), "l": (INT64, [3])},
        {},
        {},
        "reduction",
        ["none", "sum", "mean"],
        ["add", ""],
    ),
    ("StringNormalizer", "", 17, {"x": (STRING, [3])}, {}, {}, "case_change_action", ["LOWER", "NONE"], ["lower"]),
    ("Upsample", "", 9, IMAGE, {"f": [1.0, 1.0, 2.0, 2.0]}, {}, "mode", ["nearest", "linear"], ["area"]),
    ("Normalizer", ML, 1, {"x": (FLOAT, [2, 3])}, {}, {}, "norm", ["MAX", "L1", "L2"], ["L3", "max"]),
    (
        "LinearRegressor",
        ML,
        1,
        {"x": (FLOAT, [2, 3])},
        {},
        {"coefficients": [1.0, 2.0, 3.0]},
        "post_transform",
        ["NONE", "SOFTMAX_ZERO", "PROBIT"],
        ["softmax"],
    ),
]


def model_of(case: Case, value: Any) -> ModelProto:
    op_type, domain, opset, inputs, constants, attributes, name, _, _ = case
    kinds = {key: FLOAT if isinstance(items[0], float) else INT64 for key, items in constants.items()}
    held = [helper.make_tensor(key, kinds[key], [len(items)], items) for key, items in constants.items()]
    names = ["x", "", "", "s"] if op_type == "Resize" else [*inputs, *constants]
    node = helper.make_node(op_type, names, ["y"], name="n", domain=domain, **{**attributes, name: value})
    return finished([node], inputs, held, opset if not domain else 21, [helper.make_opsetid(ML, 1)] if domain else [])


def finished(
    nodes: list[NodeProto],
    inputs: dict[str, tuple[int, list[Any]]],
    held: list[TensorProto],
    opset: int,
    more: list[Any],
) -> ModelProto:
    given = [helper.make_tensor_value_info(name, *what) for name, what in inputs.items()]
    graph = helper.make_graph(nodes, "g", given, [helper.make_empty_tensor_value_info("y")], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset), *more], ir_version=8)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0]}.{case[6]}")
def test_values(case: Case) -> None:
    *_, allowed, others = case
    for value in allowed:
        assert not splitgraph.infer(model_of(case, value)).diagnostics, value
    for value in others:
        (found,) = splitgraph.infer(model_of(case, value)).diagnostics
        assert (found.code, found.severity, found.location) == ("SG302", "error", "main/n"), value
        assert repr(value) in found.message or str(value) in found.message


@pytest.mark.parametrize("kind", ["FLOAT", "GRAPH", "GRAPHS", "INTS", "STRINGS", "TYPE_PROTO"])
def test_an_attribute_of_a_split_is_of_its_type(kind: str) -> None:
    node = helper.make_node("Split", ["x"], ["y", "z"], name="n", axis=0)
    node.attribute[0].type = type(node.attribute[0]).AttributeType.Value(kind)
    found = splitgraph.infer(finished([node], {"x": (FLOAT, [4])}, [], 13, [])).diagnostics
    assert {(each.code, each.location) for each in found} == {("SG212", "main/n")}


def branches(count: int) -> NodeProto:
    body = helper.make_graph(
        [helper.make_node("Identity", ["x"], [f"b{index}"]) for index in range(2)],
        "b",
        [],
        [helper.make_empty_tensor_value_info(f"b{index}") for index in range(2)],
    )
    outputs = ["y", "o1", "o2"][:count]
    return helper.make_node("If", ["c"], outputs, name="n", then_branch=body, else_branch=body)


@pytest.mark.parametrize(("count", "errors"), [(2, []), (3, ["SG212"])])
def test_bodies_give_every_output(count: int, errors: list[str]) -> None:
    inputs = {"x": (FLOAT, [4]), "c": (TensorProto.BOOL, [])}
    found = splitgraph.infer(finished([branches(count)], inputs, [], 17, [])).diagnostics
    assert [each.code for each in found] == errors
