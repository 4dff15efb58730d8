"""DepthToSpace with mode=CRD below 11, and Col2Im below 18."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.crossings import Crossing, both_shapes
from conversion.operators.execute import (
    Array,
    assert_same,
    converted,
    number_of,
    operators,
    random_array,
    refusal,
    run,
    run_reference,
)
from onnx import helper


def depth_to_space(data: Array, mode: str = "CRD", source: int = 13) -> Crossing:
    return Crossing(mode, "DepthToSpace", source, 10, {"x": data}, {}, {"blocksize": 2, "mode": mode})


@pytest.mark.parametrize("data", [random_array((2, 12, 3, 2)), np.zeros((0, 8, 2, 3), np.float32)])
def test_depth_to_space(data: Array) -> None:
    for case in both_shapes(depth_to_space(data), depth_to_space(data, source=11)):
        assert "DepthToSpace" in operators(case.check())


def test_depth_to_space_that_needs_nothing() -> None:
    assert operators(depth_to_space(random_array((1, 4, 2, 2)), "DCR").check()) == ["DepthToSpace"]


@pytest.mark.parametrize("dtype", ["uint8", "int64", "bool"])
def test_depth_to_space_of_types(dtype: str) -> None:
    case = depth_to_space(random_array((1, 8, 2, 3), dtype))
    parts = case.given["x"].reshape(1, 2, 2, 2, 2, 3).transpose(0, 1, 4, 2, 5, 3)
    model = replace(case, expected=[parts.reshape(1, 2, 4, 6)]).model()
    # onnxruntime knows floating-point numbers only, and so the nodes alone are looked at.
    assert operators(converted(model, 10)) == ["Gather", "DepthToSpace"]


# The shape of the image, that of a block, and the attributes.
IMAGES: list[tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = [
    ((5, 5), (1, 5), {}),
    ((5, 5), (3, 3), {"strides": [2, 2]}),
    ((5, 4), (1, 3), {"pads": [0, 1, 0, 1]}),
    ((6, 7), (2, 3), {"pads": [1, 0, 0, 2], "strides": [3, 2], "dilations": [2, 1]}),
    ((6, 6), (2, 2), {"dilations": [1, 5]}),
    ((3, 4, 5), (1, 2, 3), {"strides": [1, 2, 1], "pads": [0, 1, 1, 0, 0, 1]}),
    # A last row that no block reaches.
    ((6, 6), (2, 2), {"strides": [3, 4]}),
]


def col2im(target: int, image: Any, block: Any, attributes: dict[str, Any], *, known: bool = True) -> Crossing:
    strides = attributes.get("strides", [1] * len(image))
    dilations, pads = attributes.get("dilations", [1] * len(image)), attributes.get("pads", [0] * 2 * len(image))
    rows = zip(image, block, strides, dilations, pads, pads[len(image) :], strict=False)
    counts = [(size + begin + end - dilation * (span - 1) - 1) // s + 1 for size, span, s, dilation, begin, end in rows]
    data = random_array((2, 3 * int(np.prod(block)), int(np.prod(counts))))
    held = {"image": np.array(image), "block": np.array(block)}
    given, constants = ({"x": data}, held) if known else ({"x": data} | held, {})
    return Crossing("", "Col2Im", 18, target, given, constants, attributes, tolerance=1e-5)


@pytest.mark.parametrize(("image", "block", "attributes"), IMAGES)
def test_blocks(image: Any, block: Any, attributes: dict[str, Any]) -> None:
    for case in both_shapes(col2im(17, image, block, attributes)):
        case.check()
    col2im(9, image, block, attributes, known=False).check()


def test_block_elements_that_are_no_number_stay_where_they_are() -> None:
    case = col2im(17, (5, 5), (3, 3), {})
    data = case.given["x"].copy()
    data[0, 0, 0], data[1, 2, 4] = np.nan, np.inf
    replace(case, given={"x": data}).check()


def test_blocks_of_integers() -> None:
    case = col2im(13, *IMAGES[3])
    given = {"x": random_array(case.given["x"].shape, "int64")}
    case = replace(case, given=given, expected=[given["x"]], tolerance=0.0)
    expected = run_reference(case.model(), given)
    replace(case, expected=expected).check()


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_halves_are_added_up_in_float32(dtype: str) -> None:
    case = col2im(17, (5, 5), (3, 3), {})
    model = replace(case, expected=[np.zeros((2, 3, 5, 5), np.float32)]).model()
    for value in (model.graph.input[0], model.graph.output[0]):
        value.type.tensor_type.elem_type = number_of(dtype)
    after = converted(model, 17)
    (data,) = (node for node in after.graph.node if node.op_type == "Cast" and "x" in node.input)
    assert [attribute.i for attribute in data.attribute] == [onnx.TensorProto.FLOAT]


def test_no_images() -> None:
    case = replace(col2im(9, *IMAGES[1]), given={"x": np.zeros((0, 27, 4), np.float32)}, shapes="symbolic")
    case = replace(case, expected=[np.zeros((0, 3, 5, 5), np.float32)])
    assert_same(case.expected or [], run(converted(case.model(), 9), case.given))


def test_refusals() -> None:
    case = col2im(17, *IMAGES[0])
    boolean = replace(case, given={"x": case.given["x"] > 0}, expected=[np.zeros((2, 3, 5, 5), bool)])
    assert "sums of bool do not exist" in boolean.refused()
    short = replace(case, attributes={"strides": [1]}, expected=[np.zeros((2, 3, 5, 5), np.float32)])
    assert "must have the same number of spatial dimensions" in short.refused()
    node = helper.make_node("Col2Im", ["x", "image", "block"], ["y"])
    unknown = [helper.make_tensor_value_info(name, onnx.TensorProto.INT64, [None]) for name in ("image", "block")]
    values = [helper.make_tensor_value_info("x", 1, [None] * 3), *unknown]
    graph = helper.make_graph([node], "g", values, [onnx.ValueInfoProto(name="y")])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    assert "how many axes the image has is unknown" in refusal(model, 17)
