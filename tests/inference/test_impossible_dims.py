"""No node gives a dimension below 0."""

from __future__ import annotations

from typing import Any

import pytest
from onnx import ModelProto, TensorProto, helper

import splitgraph

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64
Shape = list[Any]


def model_of(
    op_type: str,
    inputs: dict[str, Shape],
    attributes: dict[str, Any],
    constants: dict[str, Any] | None = None,
    opset: int = 17,
    outputs: int = 1,
    order: list[str] | None = None,
) -> ModelProto:
    held = [
        helper.make_tensor(
            name, INT64, [len(items)] if isinstance(items, list) else [], items if isinstance(items, list) else [items]
        )
        for name, items in (constants or {}).items()
    ]
    given = [helper.make_tensor_value_info(name, FLOAT, shape) for name, shape in inputs.items()]
    names = order or [*inputs, *(constants or {})]
    node = helper.make_node(op_type, names, [f"y{index}" for index in range(outputs)], name="n", **attributes)
    graph = helper.make_graph([node], "g", given, [helper.make_empty_tensor_value_info("y0")], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


IMAGE = {"x": [1, 1, 4, 4]}
IMPOSSIBLE = {
    "Multinomial": model_of("Multinomial", {"x": [2, 3]}, {"sample_size": -3}),
    "RandomUniform": model_of("RandomUniform", {}, {"shape": [2, -3]}),
    "RandomNormal": model_of("RandomNormal", {}, {"shape": [-1]}),
    "ConstantOfShape": model_of("ConstantOfShape", {}, {}, {"s": [2, -3]}),
    "Expand": model_of("Expand", {"x": [2, 3]}, {}, {"s": [-2, 3]}),
    "Tile": model_of("Tile", {"x": [2, 3]}, {}, {"r": [1, -2]}),
    "Pad": model_of("Pad", {"x": ["N", 3]}, {}, {"p": [0, -2, 0, -2]}),
    "AveragePool": model_of("AveragePool", IMAGE, {"kernel_shape": [9, 9]}),
    "Conv": model_of("Conv", {**IMAGE, "w": [1, 1, 9, 9]}, {}),
    "Conv without a kernel": model_of("Conv", {**IMAGE, "w": [1, 1, 0, 3]}, {}),
    "ConvTranspose without a kernel": model_of("ConvTranspose", {**IMAGE, "w": [1, 1, 3, 0]}, {}),
    "ConvTranspose": model_of("ConvTranspose", {**IMAGE, "w": [1, 1, 2, 2]}, {"pads": [5, 5, 5, 5]}),
    "MaxUnpool": model_of("MaxUnpool", {**IMAGE, "i": [1, 1, 4, 4]}, {"kernel_shape": [2, 2], "pads": [9, 9, 9, 9]}),
    "CausalConvWithState": model_of("CausalConvWithState", {"x": [1, 4, 8], "w": [4, 1, 0]}, {}, opset=27, outputs=2),
    "Resize": model_of("Resize", IMAGE, {}, {"s": [1, 1, -4, 4]}, order=["x", "", "", "s"]),
    "TopK": model_of("TopK", {"x": [2, 4]}, {}, {"k": [-3]}, outputs=2),
    "HannWindow": model_of("HannWindow", {}, {}, {"s": -4}),
    "Col2Im": model_of("Col2Im", {"x": [1, 4, 4]}, {}, {"s": [-2, 2], "b": [2, 2]}, opset=18),
    "AffineGrid": model_of("AffineGrid", {"x": [1, 2, 3]}, {}, {"s": [1, 1, -4, 5]}, opset=20),
}
POSSIBLE = {
    "Multinomial": (model_of("Multinomial", {"x": [2, 3]}, {"sample_size": 3}), "int32[2, 3]"),
    "RandomUniform": (model_of("RandomUniform", {}, {"shape": [2, 0]}), "float32[2, 0]"),
    "Tile": (model_of("Tile", {"x": [2, 3]}, {}, {"r": [1, 0]}), "float32[2, 0]"),
    "Pad": (model_of("Pad", {"x": ["N", 4]}, {}, {"p": [0, -2, 0, -2]}), "float32[N, 0]"),
    "Slice": (model_of("Slice", {"x": [4]}, {}, {"s": [3], "e": [1]}), "float32[0]"),
    "Conv": (model_of("Conv", {**IMAGE, "w": [1, 1, 4, 4]}, {}), "float32[1, 1, 1, 1]"),
    "Conv on a symbol": (model_of("Conv", {"x": [1, 1, "H", 4], "w": [1, 1, 3, 3]}, {}), "float32[1, 1, H - 2, 2]"),
    "CausalConvWithState": (
        model_of("CausalConvWithState", {"x": [1, 4, 8], "w": [4, 1, 1]}, {}, opset=27, outputs=2),
        "float32[1, 4, 8]",
    ),
    "beyond int64, which nobody can hold": (
        model_of("Concat", {"x": [2**62], "z": [2**62]}, {"axis": 0}),
        f"float32[{2**63}]",
    ),
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_impossible(name: str) -> None:
    found = splitgraph.infer(IMPOSSIBLE[name])
    errors = [each for each in found.diagnostics if each.severity == "error"]
    assert [(each.code, each.location) for each in errors] == [("SG302", "main/n")]
    assert found.types["y0"].shape is None or all(
        not isinstance(dim, int) or dim >= 0 for dim in found.types["y0"].shape
    )
    with pytest.raises(splitgraph.ConversionError):
        splitgraph.upgrade(IMPOSSIBLE[name], 28)


@pytest.mark.parametrize("name", POSSIBLE)
def test_possible(name: str) -> None:
    model, expected = POSSIBLE[name]
    found = splitgraph.infer(model)
    assert found.ok
    assert str(found.types["y0"]) == expected


def test_a_symbol_that_is_known_to_be_too_small() -> None:
    """The split says that N is 2; then there is nothing left for the window."""
    inputs = [helper.make_tensor_value_info("x", FLOAT, [1, 1, "N"])]
    lengths = helper.make_tensor("l", INT64, [2], [1, 1])
    nodes = [
        helper.make_node("Split", ["x", "l"], ["a", "b"], axis=2),
        helper.make_node("Conv", ["x", "w"], ["y"], name="n"),
    ]
    weights = helper.make_tensor("w", FLOAT, [1, 1, 5], [0.0] * 5)
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("y")], [lengths, weights])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    (found,) = splitgraph.infer(model).diagnostics
    assert (found.code, found.location) == ("SG302", "main/n")
