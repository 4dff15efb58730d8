"""Values of attributes by the node's own version: errors, repairs where only one value can be meant, and warnings where
two engines run the node.
"""

from __future__ import annotations

from typing import Any

import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

import splitgraph

IMAGE, BOXES = [1, 2, 4, 4], [1, 4]
SCALES = {"s": [1.0, 1.0, 2.0, 2.0]}
GRID = {"g": [1, 3, 3, 2]}
RESIZED = {"r": [], "s": [1.0, 1.0, 2.0, 2.0]}


def model(op: str, opset: int, attributes: dict[str, Any], shape: list[int], more: dict[str, Any]) -> ModelProto:
    """A model of one node. more: constants by their elements, or inputs by their shapes if these are integers."""
    inputs, held = {"x": shape}, []
    for name, items in more.items():
        if items and isinstance(items[0], int):
            inputs[name] = items
        else:
            held.append(helper.make_tensor(name, TensorProto.FLOAT, [len(items)], items))
    if op == "RoiAlign":
        held.append(helper.make_tensor("i", TensorProto.INT64, [1], [0]))
    node = helper.make_node(op, ["x", *more, *(["i"] if op == "RoiAlign" else [])], ["y"], "n", **attributes)
    given = [helper.make_tensor_value_info(name, TensorProto.FLOAT, dims) for name, dims in inputs.items()]
    graph = helper.make_graph([node], "g", given, [helper.make_empty_tensor_value_info("y")], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


def upsample(mode: str, opset: int, rank: int = 4) -> ModelProto:
    scales = [1.0, 1.0, *[2.0] * (rank - 2)]
    if opset < 7:
        return model("Upsample", opset, {"mode": mode, "height_scale": 2.0, "width_scale": 2.0}, IMAGE, {})
    if opset < 9:
        return model("Upsample", opset, {"mode": mode, "scales": scales}, [1, 2, *[4] * (rank - 2)], {})
    return model("Upsample", opset, {"mode": mode}, [1, 2, *[4] * (rank - 2)], {"s": scales})


def resize(opset: int, **attributes: Any) -> ModelProto:
    return model("Resize", opset, attributes, IMAGE, RESIZED if opset > 10 else SCALES)


def sample(mode: str, opset: int, rank: int = 4) -> ModelProto:
    grid = [1, *[3] * (rank - 2), rank - 2]
    return model("GridSample", opset, {"mode": mode}, [1, 2, *[4] * (rank - 2)], {"g": grid})


def align(mode: str, opset: int) -> ModelProto:
    return model("RoiAlign", opset, {"mode": mode}, IMAGE, {"b": BOXES})


# What is wrong, and what no conversion writes.
ERRORS = {
    "Upsample-7 cubic, which onnxruntime alone runs": upsample("cubic", 7),
    "Upsample-9 bilinear of another rank": upsample("bilinear", 9, rank=5),
    "Upsample-9 of no version": upsample("area", 9),
    "Resize-10 cubic, of which engines disagree": resize(10, mode="cubic"),
    "Resize-11 in capitals": resize(11, mode="LINEAR"),
    "GridSample-20 bilinear of volumes": sample("bilinear", 20, rank=5),
    "GridSample-20 of no version": sample("area", 20),
    "RoiAlign-16 bilinear": align("bilinear", 16),
    "RoiAlign-10 empty": align("", 10),
    "RoiAlign-22 mean": align("mean", 22),
    "Resize-13 rounding that is read": resize(13, mode="nearest", nearest_mode="simple"),
    "ReduceMax-13 keepdims 2": model("ReduceMax", 13, {"keepdims": 2}, IMAGE, {}),
    "Trilu-14 upper -1": model("Trilu", 14, {"upper": -1}, IMAGE, {}),
}
# A model with a value that can mean one thing only, a newer opset, and what a conversion to it writes.
REPAIRS = {
    "Upsample-7": (upsample("bilinear", 7), 8, "mode", b"linear"),
    "Upsample-9": (upsample("bilinear", 9), 10, "mode", b"linear"),
    "Upsample-9 of volumes": (upsample("trilinear", 9, rank=5), 10, "mode", b"linear"),
    "Upsample-1": (upsample("linear", 6), 8, "mode", b"linear"),
    "GridSample-20": (sample("bilinear", 20), 22, "mode", b"linear"),
    "GridSample-22": (sample("bicubic", 22), 23, "mode", b"cubic"),
    "GridSample-16": (sample("linear", 16), 17, "mode", b"bilinear"),
    "GridSample-16 over its rename": (sample("cubic", 16), 20, "mode", b"cubic"),
    "RoiAlign-16": (align("AVG", 16), 18, "mode", b"avg"),
}
# Values that two engines run.
WARNINGS = {
    "Resize-13 half_pixel_symmetric": resize(13, mode="nearest", coordinate_transformation_mode="half_pixel_symmetric"),
    "Resize-18 tf_half_pixel_for_nn": resize(18, mode="nearest", coordinate_transformation_mode="tf_half_pixel_for_nn"),
    "Pad-2 wrap": model("Pad", 10, {"mode": "wrap", "pads": [0, 0, 1, 1, 0, 0, 1, 1]}, IMAGE, {}),
}
# Values of the node's own version.
ALLOWED = {
    "Upsample-1 bilinear": upsample("bilinear", 6),
    "Upsample-9 linear": upsample("linear", 9),
    "GridSample-16 bicubic": sample("bicubic", 16),
    "GridSample-20 linear of volumes": sample("linear", 20, rank=5),
    "RoiAlign-16 max": align("max", 16),
    "Resize-11 tf_half_pixel_for_nn": resize(11, mode="nearest", coordinate_transformation_mode="tf_half_pixel_for_nn"),
    "Resize-19 half_pixel_symmetric": resize(19, mode="nearest", coordinate_transformation_mode="half_pixel_symmetric"),
    "Resize-11 cubic": resize(11, mode="cubic"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_what_stays_an_error(name: str) -> None:
    (found,) = splitgraph.infer(ERRORS[name]).diagnostics
    assert (found.code, found.severity, found.location) == ("SG302", "error", "main/n")
    with pytest.raises(splitgraph.ConversionError):
        splitgraph.upgrade(ERRORS[name], 28, verify=False)


@pytest.mark.parametrize("name", ALLOWED)
def test_what_is_allowed(name: str) -> None:
    assert not splitgraph.infer(ALLOWED[name]).diagnostics


@pytest.mark.parametrize("name", REPAIRS)
def test_what_can_mean_one_thing_only(name: str) -> None:
    source, opset, attribute, written = REPAIRS[name]
    (found,) = splitgraph.infer(source).diagnostics
    assert (found.code, found.severity) == ("SG302", "error")
    assert "a conversion does so" in found.help
    rewrite = splitgraph.upgrade(source, opset, verify=False)
    values = {each.name: onnx.helper.get_attribute_value(each) for each in rewrite.model.graph.node[-1].attribute}
    assert values[attribute] == written
    assert "SG401" in {each.code for each in rewrite.diagnostics}
    assert not splitgraph.infer(rewrite.model).diagnostics


def test_a_value_that_is_not_read_is_removed() -> None:
    source = resize(13, mode="linear", nearest_mode="simple")
    (found,) = splitgraph.infer(source).diagnostics
    assert (found.code, found.severity) == ("SG302", "warning")
    (node,) = splitgraph.upgrade(source, 18, verify=False).model.graph.node
    assert [each.name for each in node.attribute] == ["mode"]


@pytest.mark.parametrize("name", WARNINGS)
def test_what_two_engines_run(name: str) -> None:
    (found,) = splitgraph.infer(WARNINGS[name]).diagnostics
    assert (found.code, found.severity) == ("SG302", "warning")
    assert "onnxruntime and" in found.message
    rewrite = splitgraph.upgrade(WARNINGS[name], 19, verify=False)
    assert found in rewrite.diagnostics


def test_a_value_of_another_type_is_found_where_types_are_checked() -> None:
    model = onnx.parser.parse_model(
        '<ir_version: 8, opset_import: ["": 16]> g (float[1,2,4,4] x, float[1,3,3,2] grid) => (y) '
        "{ y = GridSample (x, grid) }"
    )
    body = onnx.helper.make_graph([], "body", [], [])
    model.graph.node[0].attribute.append(onnx.helper.make_attribute("mode", body))
    assert {found.code for found in splitgraph.infer(model).diagnostics} == {"SG212"}
