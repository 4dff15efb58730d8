"""Upsample and Resize through all their versions."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.crossings import Crossing
from conversion.operators.execute import assert_same, operators, random_array, run
from onnx import numpy_helper

from splitgraph.conversion.opset import convert_opset

X = random_array((1, 2, 5, 7))
NOTHING = np.zeros(0, np.float32)


def scales(*given: float) -> np.ndarray:
    return np.array(given, np.float32)


def resize(source: int, target: int, held: dict[str, Any], **attributes: Any) -> Crossing:
    """Resize with its inputs by name: roi, scales, sizes."""
    inputs = ["x", *(name if name in held else "" for name in ("roi", "scales", "sizes"))]
    while not inputs[-1]:
        inputs.pop()
    return Crossing("", "Resize", source, target, {"x": X}, held, attributes, inputs, tolerance=1e-6)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (
            resize(
                11,
                13,
                {"roi": NOTHING, "scales": scales(1, 1, 2, 2)},
                coordinate_transformation_mode="tf_half_pixel_for_nn",
                mode="linear",
            ),
            "tf_half_pixel_for_nn was removed",
        ),
        (
            Crossing("batch", "Upsample", 7, 6, {"x": X}, {}, {"scales": [2.0, 1.0, 2.0, 2.0]}),
            "only height and width of images",
        ),
        (
            Crossing("channels", "Upsample", 7, 6, {"x": X}, {}, {"scales": [1.0, 2.0, 2.0, 2.0]}),
            "only height and width of images",
        ),
    ],
    ids=str,
)
def test_refusals(case: Crossing, words: str) -> None:
    assert words in case.refused()


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize(("size", "wanted"), [(3, 5), (5, 7), (3, 7), (10, 14), (29, 59), (4, 8), (7, 7)])
def test_scales_give_the_size_that_is_asked_for(mode: str, target: int, size: int, wanted: int) -> None:
    """7 / 5 as float32 is less, and 5 times it, rounded down, is 6."""
    attributes = {"mode": mode, "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
    x, sizes = random_array((1, 1, 2, size)), np.array([1, 1, 2, wanted])
    inputs = ["x", "", "", "sizes"]
    case = Crossing("", "Resize", 13, target, {"x": x}, {"sizes": sizes}, attributes, inputs, tolerance=1e-6)
    inferred = onnx.shape_inference.infer_shapes(case.check(), strict_mode=True)
    assert [dim.dim_value for dim in inferred.graph.output[0].type.tensor_type.shape.dim] == sizes.tolist()


@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
@pytest.mark.parametrize("target", [7, 9, 10, 11, 13, 18, 19])
def test_first_upsample(mode: str, target: int) -> None:
    attributes = {"height_scale": 2.0, "width_scale": 3.0, "mode": mode}
    named = {"scales": [1.0, 1.0, 2.0, 3.0], "mode": "nearest" if mode == "nearest" else "linear"}
    # onnxruntime runs the same from version 7 on.
    expected = run(Crossing("", "Upsample", 7, 7, {"x": X}, {}, named).model(), {"x": X})
    Crossing("", "Upsample", 1, target, {"x": X}, {}, attributes, expected=expected, tolerance=1e-6).check()


@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_down_to_the_first_upsample_and_back(mode: str) -> None:
    before = Crossing("", "Upsample", 7, 6, {"x": X}, {}, {"scales": [1.0, 1.0, 2.0, 3.0], "mode": mode}).model()
    after = convert_opset(before, 6).model
    assert {held.name for held in after.graph.node[0].attribute} == {"height_scale", "width_scale", "mode"}
    assert_same(run(before, {"x": X}), run(convert_opset(after, 7).model, {"x": X}))


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("target", [10, 11, 13, 18, 19])
@pytest.mark.parametrize("factors", [(1, 1, 2, 3), (1, 1, 1.3, 2.6), (1, 1, 1, 1)])
def test_upsample(mode: str, target: int, factors: tuple[float, ...]) -> None:
    Crossing("", "Upsample", 9, target, {"x": X}, {"s": scales(*factors)}, {"mode": mode}, tolerance=1e-6).check()
    Crossing("", "Upsample", 9, target, {"x": X, "s": scales(*factors)}, {}, {"mode": mode}, tolerance=1e-6).check()
    Crossing(
        "",
        "Upsample",
        7,
        target,
        {"x": X},
        {},
        {"mode": mode, "scales": [float(factor) for factor in factors]},
        tolerance=1e-6,
    ).check()


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("target", [11, 13, 18, 19])
@pytest.mark.parametrize("factors", [(1, 1, 0.6, 0.7), (1, 1, 1.3, 0.55), (1, 1, 2, 1.7), (1, 1, 0.3, 1)])
def test_resize_without_a_choice_of_coordinates(mode: str, target: int, factors: tuple[float, ...]) -> None:
    Crossing("", "Resize", 10, target, {"x": X}, {"s": scales(*factors)}, {"mode": mode}, tolerance=1e-6).check()
    Crossing("", "Resize", 10, target, {"x": X, "s": scales(*factors)}, {}, {"mode": mode}, tolerance=1e-6).check()


@pytest.mark.parametrize("mode", ["nearest", "linear"])
@pytest.mark.parametrize("factors", [(1, 1, 0.6, 0.7), (1, 1, 1.3, 0.55), (1, 1, 2, 1.7), (1, 1, 0.3, 1)])
def test_resize_below_its_first_version(mode: str, factors: tuple[float, ...]) -> None:
    grows = all(factor >= 1 for factor in factors)
    after = Crossing("", "Resize", 10, 9, {"x": X}, {"s": scales(*factors)}, {"mode": mode}, tolerance=1e-6).check()
    assert ("Upsample" in operators(after)) == grows
    Crossing("", "Resize", 10, 9, {"x": X, "s": scales(*factors)}, {}, {"mode": mode}, tolerance=1e-6).check()


def test_scales_of_one_kind_need_one_node() -> None:
    for factors, count in (((1, 1, 2, 3), 1), ((1, 1, 0.5, 0.3), 1), ((1, 1, 2, 0.5), 2)):
        after = Crossing("", "Resize", 10, 11, {"x": X}, {"s": scales(*factors)}).check()
        assert operators(after).count("Resize") == count


def test_sizes_that_scales_give_exactly_need_one_node() -> None:
    attributes = {"mode": "linear", "coordinate_transformation_mode": "asymmetric"}
    after = resize(13, 10, {"sizes": np.array([1, 2, 10, 14])}, **attributes).check()
    assert operators(after) == ["Resize"]


COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")


@pytest.mark.parametrize("coordinates", COORDINATES)
@pytest.mark.parametrize("target", [11, 13, 17, 18])
def test_between_11_and_19(coordinates: str, target: int) -> None:
    for mode, held in product(
        ("nearest", "linear", "cubic"), ({"scales": scales(1, 1, 1.5, 0.6)}, {"sizes": np.array([1, 2, 3, 9])})
    ):
        attributes = {"mode": mode, "coordinate_transformation_mode": coordinates}
        resize(19, target, held, **attributes).check()
        below = {"roi": NOTHING, "scales": NOTHING, **held}
        if target > 11:
            resize(11, target, below, **attributes).check()


@pytest.mark.parametrize("target", [13, 18])
@pytest.mark.parametrize("rounding", ["floor", "round_prefer_floor"])
def test_rounding_from_the_corner_of_a_pixel(target: int, rounding: str) -> None:
    for factors in ((1, 1, 1.5, 0.6), (1, 1, 2, 3), (1, 1, 0.35, 4.2)):
        held = {"roi": NOTHING, "scales": scales(*factors)}
        resize(11, target, held, coordinate_transformation_mode="tf_half_pixel_for_nn", nearest_mode=rounding).check()


@pytest.mark.parametrize("target", [10, 9])
@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil"])
def test_whole_scales_repeat_elements(target: int, rounding: str) -> None:
    for coordinates in ("half_pixel", "pytorch_half_pixel"):
        attributes = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
        resize(13, target, {"scales": scales(1, 1, 2, 3)}, **attributes).check()
        resize(13, target, {"sizes": np.array([1, 2, 10, 28])}, **attributes).check()


@pytest.mark.parametrize(("factors", "rounding"), [((1, 1, 0.6, 0.7), "ceil"), ((1, 1, 1.3, 2), "floor")])
def test_what_was_implicit_below_11(factors: tuple[float, ...], rounding: str) -> None:
    attributes = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": rounding}
    resize(13, 10, {"scales": scales(*factors)}, **attributes).check()
    resize(13, 10, {"scales": scales(*factors)}, mode="linear", **attributes).check()


@pytest.mark.parametrize("axes", [(2, 3), (3, 2), (-1, -2), (3,)])
@pytest.mark.parametrize("target", [17, 13])
def test_some_axes(axes: tuple[int, ...], target: int) -> None:
    for held in ({"scales": scales(1.5, 0.6)[: len(axes)]}, {"sizes": np.array([3, 9])[: len(axes)]}):
        resize(18, target, held, axes=axes).check()
        resize(18, target, held, axes=axes, mode="linear", antialias=0).check()
        given = {"x": X, **held}
        inputs = ("x", "", "scales") if "scales" in held else ("x", "", "", "sizes")
        Crossing("", "Resize", 18, target, given, {}, {"axes": axes}, inputs).check()


def test_region_of_some_axes() -> None:
    roi = scales(0.1, 0.2, 0.8, 0.9)
    attributes = {"coordinate_transformation_mode": "tf_crop_and_resize", "axes": (3, 2), "mode": "linear"}
    resize(18, 17, {"roi": roi, "sizes": np.array([4, 6])}, **attributes).check()


@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("sizes", [(10, 21), (10, 14), (20, 14)])
def test_aspect_ratio_of_whole_sizes(policy: str, sizes: tuple[int, ...]) -> None:
    for mode in ("nearest", "linear"):
        attributes = {"keep_aspect_ratio_policy": policy, "axes": (2, 3), "mode": mode}
        resize(18, 17, {"sizes": np.array(sizes)}, **attributes).check()


def test_region_of_some_axes_with_a_policy() -> None:
    held = {"roi": scales(0, 0, 1, 1), "sizes": np.array([10, 20])}
    policy = {"keep_aspect_ratio_policy": "not_larger", "axes": (2, 3), "mode": "linear"}
    after = resize(18, 17, held, coordinate_transformation_mode="tf_crop_and_resize", **policy).check()
    node = after.graph.node[0]
    held_after = {tensor.name: numpy_helper.to_array(tensor).tolist() for tensor in after.graph.initializer}
    assert [held_after[name] for name in (node.input[1], node.input[3])] == [[0, 0, 0, 0, 1, 1, 1, 1], [1, 2, 10, 14]]


def test_antialias_of_what_grows() -> None:
    for held in ({"scales": scales(1, 1, 1.5, 2)}, {"sizes": np.array([1, 2, 5, 9])}):
        resize(18, 17, held, mode="linear", antialias=1).check()


def test_symmetric_coordinates_of_whole_sizes() -> None:
    attributes = {"coordinate_transformation_mode": "half_pixel_symmetric", "mode": "linear"}
    resize(19, 18, {"scales": scales(1, 1, 2, 3)}, **attributes).check()
    resize(19, 18, {"sizes": np.array([1, 2, 3, 9])}, **attributes).check()


SIZES_AND_SCALES = [
    # onnxruntime copies what keeps its size, and the one node before resampled the axis that grows too little.
    ([2, 8, 3], [1.3, 1.0, 1 / 3]),
    ([2, 9], [1.4, 0.5]),
    ([9, 2], [0.3, 1.2]),
    ([3, 3, 9], [1.3, 1.1, 0.9]),
    ([5, 7], [1.5, 0.5]),
    ([5, 7], [0.5, 2.7]),
    ([2], [1.3]),
    ([7], [0.4]),
    ([3, 4], [2.0, 1.0]),
    ([3, 4], [1.2, 1.2]),
]


@pytest.mark.parametrize("is_given", [False, True], ids=["constant", "run time"])
@pytest.mark.parametrize(("shape", "given"), SIZES_AND_SCALES, ids=str)
def test_some_axes_grow_and_others_shrink(shape: list[int], given: list[float], is_given: bool) -> None:
    x = onnx.helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)
    graph = onnx.helper.make_graph(
        [onnx.helper.make_node("Resize", ["x", "scales"], ["y"], mode="nearest")],
        "g",
        [x, *([onnx.helper.make_tensor_value_info("scales", 1, [len(shape)])] if is_given else [])],
        [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, None)],
        [] if is_given else [numpy_helper.from_array(scales(*given), "scales")],
    )
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 10)], ir_version=5)
    feeds = {"x": random_array(shape), **({"scales": scales(*given)} if is_given else {})}
    for target in (11, 13):
        assert_same(run(model, feeds), run(convert_opset(model, target).model, feeds))
