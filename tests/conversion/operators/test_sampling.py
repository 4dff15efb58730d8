"""GridSample, DeformConv and RoiAlign below the opsets that have them."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from conversion.operators.crossings import Crossing, both_shapes
from conversion.operators.execute import (
    Array,
    assert_same,
    build,
    converted,
    operators,
    random_array,
    refusal,
    run,
    run_reference,
)
from onnx import helper

from splitgraph import convert

IMAGE = random_array((2, 3, 4, 5))
VOLUME = random_array((2, 2, 3, 4, 5))
# Far beyond the borders too, and on them.
GRID = np.concatenate([2 * random_array((2, 2, 6, 2), seed=1), np.zeros((2, 2, 6, 2), np.float32) - 1], axis=1)
VOLUME_GRID = 1.5 * random_array((2, 2, 3, 2, 3), seed=2)


def grid_sample(source: int, target: int, data: Array = IMAGE, grid: Array = GRID, **attributes: Any) -> Crossing:
    exact = attributes.get("mode") == "nearest"
    tolerance = 0.0 if exact else 1e-5
    return Crossing("", "GridSample", source, target, {"x": data, "g": grid}, {}, attributes, tolerance=tolerance)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (grid_sample(20, 15, mode="cubic", padding_mode="border"), "moved to the border is not specified"),
        (replace(grid_sample(16, 15), shapes="unknown"), "the rank of 'x' is unknown"),
        (
            replace(grid_sample(16, 15, IMAGE[:, :, :0]), expected=[np.zeros((2, 3, 4, 6), np.float32)]),
            "an image without elements",
        ),
        (
            replace(grid_sample(16, 15, IMAGE.astype(np.int32)), expected=[np.zeros((2, 3, 4, 6), np.int32)]),
            "how linear sampling rounds int32 is not specified",
        ),
    ],
    ids=str,
)
def test_refusals(case: Crossing, words: str) -> None:
    assert words in case.refused()


_ALL_MODES = product(("nearest", "linear", "cubic"), ("zeros", "border", "reflection"))
MODES = [pair for pair in _ALL_MODES if pair != ("cubic", "border")]


@pytest.mark.parametrize(("mode", "padding"), MODES)
@pytest.mark.parametrize("aligned", [0, 1])
def test_images(mode: str, padding: str, aligned: int) -> None:
    old = {"linear": "bilinear", "cubic": "bicubic"}.get(mode, mode)
    chosen: dict[str, Any] = {"padding_mode": padding, "align_corners": aligned}
    for case in both_shapes(grid_sample(20, 15, mode=mode, **chosen), grid_sample(16, 9, mode=old, **chosen)):
        case.check()
    grid_sample(20, 11, IMAGE.astype(np.float64), GRID.astype(np.float64), mode=mode, **chosen).check()


@pytest.mark.parametrize(("mode", "padding"), [pair for pair in MODES if pair[0] != "cubic"])
@pytest.mark.parametrize("aligned", [0, 1])
def test_volumes(mode: str, padding: str, aligned: int) -> None:
    chosen: dict[str, Any] = {"mode": mode, "padding_mode": padding, "align_corners": aligned}
    for case in both_shapes(grid_sample(20, 19, VOLUME, VOLUME_GRID, **chosen)):
        case.check()
    grid_sample(22, 13, VOLUME, VOLUME_GRID, **chosen).check()


def test_images_stay_what_they_are_above_16() -> None:
    assert operators(grid_sample(20, 16, mode="cubic", padding_mode="border").check()) == ["GridSample"]


@pytest.mark.parametrize("aligned", [0, 1])
def test_halves_are_rounded_to_even(aligned: int) -> None:
    middles = np.arange(-1.5, 5.0, 0.5)
    row = 2 * middles / 4 - 1 if aligned else (2 * middles + 1) / 5 - 1
    grid = np.stack([row, np.zeros_like(row)], axis=-1).reshape(1, 1, -1, 2).astype(np.float32)
    for padding in ("zeros", "border", "reflection"):
        grid_sample(16, 13, IMAGE[:1], grid, mode="nearest", padding_mode=padding, align_corners=aligned).check()


@pytest.mark.parametrize("padding", ["zeros", "border"])
@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_places_at_infinity(mode: str, padding: str) -> None:
    """Beyond the borders, as the document has it; onnxruntime converts infinity to an integer."""
    far = np.array([np.inf, -np.inf, 3e38, -3e38], np.float32)
    grid = np.stack([far, np.zeros_like(far)], axis=-1).reshape(1, 1, -1, 2)
    grid[..., 1] = 0.2
    near = grid.copy()
    near[..., 0] = np.clip(near[..., 0], -9, 9)
    case = grid_sample(16, 13, IMAGE[:1], grid, mode=mode, padding_mode=padding)
    found = run(converted(case.model(), 13), {"x": IMAGE[:1], "g": grid})
    expected = run(case.model(), {"x": IMAGE[:1], "g": near})
    assert_same(expected, found, 1e-6)


def test_places_that_are_no_number() -> None:
    grid = np.full((1, 1, 2, 2), np.nan, np.float32)
    for mode, padding in product(("nearest", "bilinear"), ("zeros", "border", "reflection")):
        case = grid_sample(16, 13, IMAGE[:1], grid, mode=mode, padding_mode=padding)
        (found,) = run(converted(case.model(), 13), {"x": IMAGE[:1], "g": grid})
        assert found.shape == (1, 3, 1, 2)


def test_elements_that_are_no_number_stay_where_they_are() -> None:
    data = IMAGE.copy()
    data[0, 0, 1, 2] = np.nan
    data[1, 2, 3, 4] = np.inf
    grid_sample(16, 13, data, mode="bilinear").check()


@pytest.mark.parametrize(
    ("data", "grid"),
    [
        (IMAGE[:0], GRID[:0]),
        (IMAGE, GRID[:, :0]),
        (IMAGE[:, :0], GRID),
        (IMAGE[:, :, :1, :1], GRID),
    ],
)
def test_small_and_empty(data: Array, grid: Array) -> None:
    for case in both_shapes(grid_sample(16, 9, data, grid), grid_sample(16, 9, data, grid, padding_mode="reflection")):
        if case.shapes == "static":
            case.check()
            continue
        feeds = dict(case.given)
        assert_same(run(case.model(), feeds), run(converted(case.model(), 9), feeds), 1e-5)


def test_strings() -> None:
    data = np.array([f"{item}" for item in range(20)], object).reshape(1, 1, 4, 5)
    case = replace(grid_sample(20, 15, data, GRID[:1], mode="nearest"), expected=[data])
    numbers = np.arange(20, dtype=np.float32).reshape(1, 1, 4, 5) + 1
    places = run(grid_sample(20, 20, numbers, GRID[:1], mode="nearest").model(), {"x": numbers, "g": GRID[:1]})[0]
    expected = np.array(["" if not place else f"{int(place) - 1}" for place in places.ravel()], object)
    found = run(converted(case.model(), 15), {"x": data, "g": GRID[:1]})[0]
    assert found.tolist() == expected.reshape(places.shape).tolist()


@pytest.mark.parametrize("dtype", ["int64", "uint8", "bool", "float16"])
def test_types(dtype: str) -> None:
    data = random_array((1, 2, 4, 5), dtype)
    grid = GRID[:1].astype(np.float16 if dtype == "float16" else np.float32)
    model = grid_sample(20, 20, data.astype(np.float32), grid.astype(np.float32), mode="nearest").model()
    expected = run(model, {"x": data.astype(np.float32), "g": grid.astype(np.float32)})[0].astype(dtype)
    replace(grid_sample(20, 13, data, grid, mode="nearest"), expected=[expected]).check()


def affine_grid(target: int, axes: int, size: tuple[int, ...], *, known: bool = True, **attributes: Any) -> Crossing:
    given = {"theta": random_array((size[0], axes, axes + 1))}
    held = {"size": np.array(size)}
    constants = held if known else {}
    return Crossing(
        "", "AffineGrid", 20, target, given | ({} if known else held), constants, attributes, tolerance=1e-5
    )


@pytest.mark.parametrize(("axes", "size"), [(2, (1, 3, 4, 5)), (2, (2, 3, 4, 5)), (3, (2, 1, 2, 4, 3))])
@pytest.mark.parametrize("aligned", [0, 1])
def test_affine_grid(axes: int, size: tuple[int, ...], aligned: int) -> None:
    after = affine_grid(19, axes, size, align_corners=aligned).check()
    assert not {"If", "Split"} & set(operators(after))
    affine_grid(9, axes, size, align_corners=aligned).check()
    affine_grid(9, axes, size, align_corners=aligned, known=False).check()


def test_grids_whose_corners_are_one_element() -> None:
    assert "an axis of one element" in affine_grid(19, 2, (2, 3, 1, 4), align_corners=1).refused()
    affine_grid(19, 2, (2, 3, 1, 4), align_corners=0).check()


def test_grids_of_unknown_axes() -> None:
    case = affine_grid(15, 2, (1, 3, 4, 5), known=False)
    model = case.model()
    for axis, dim in enumerate(model.graph.input[0].type.tensor_type.shape.dim):
        dim.dim_param = f"theta{axis}"
    assert_same(run(model, case.given), run(converted(model, 15), case.given), 1e-5)
    model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "rank"
    assert "how many axes the grid has is unknown" in refusal(model, 15)


def test_large_grids_are_not_kept_in_the_model() -> None:
    after = affine_grid(15, 2, (1, 1, 300, 400)).check()
    assert sum(int(np.prod(tensor.dims)) for tensor in after.graph.initializer) < 2000


def deform(target: int, held: dict[str, Array], **attributes: Any) -> Crossing:
    names = ["x", "w", "o", *(name if name in held else "" for name in ("b", "m"))]
    while not names[-1]:
        names.pop()
    return Crossing("", "DeformConv", 19, target, held, {}, attributes, names, tolerance=1e-4)


@pytest.mark.parametrize("opset", [18, 16])
def test_a_deformed_convolution_is_verified(opset: int) -> None:
    """No offset is infinite: what that would be is left open."""
    case = deform(opset, _deform_inputs(size=(3, 5)))
    found = convert(case.model(), opset=opset, verify=True).verification
    assert found is not None and found.verdict == "equal", found


def _deform_inputs(group: int = 1, offset_group: int = 1, more: str = "bm", size: tuple[int, int] = (3, 4)) -> Any:
    data, weight = random_array((2, 4, 5, 6)), random_array((6, 4 // group, 3, 2), seed=1)
    offset = random_array((2, offset_group * 12, *size), seed=2)
    held = {"x": data, "w": weight, "o": offset}
    if "b" in more:
        held["b"] = random_array((6,), seed=3)
    if "m" in more:
        held["m"] = random_array((2, offset_group * 6, *size), seed=4)
    return held


@pytest.mark.parametrize(
    ("held", "attributes"),
    [
        (_deform_inputs(size=(3, 5)), {}),
        (_deform_inputs(2, 1, "", (3, 5)), {"group": 2}),
        (_deform_inputs(1, 2, "m", (3, 5)), {"offset_group": 2}),
        (_deform_inputs(2, 4, "b", (3, 5)), {"group": 2, "offset_group": 4}),
        (_deform_inputs(size=(2, 7)), {"pads": [1, 2, 0, 0], "strides": [2, 1], "dilations": [1, 1]}),
        (_deform_inputs(size=(3, 4)), {"pads": [1, 0, 1, 0], "strides": [1, 1], "dilations": [2, 2]}),
    ],
)
def test_deformed_convolution(held: dict[str, Array], attributes: dict[str, Any]) -> None:
    for case in both_shapes(deform(18, held, **{"kernel_shape": [3, 2], **attributes})):
        case.check()
    deform(10, held, **attributes).check()


def test_deformed_convolution_needs_a_kernel() -> None:
    case = replace(deform(18, _deform_inputs(size=(3, 5))), shapes="symbolic")
    model = case.model()
    assert "kernel_shape" not in [attribute.name for attribute in model.graph.node[0].attribute]
    assert "the shape of the kernel is unknown" in case.refused()


def roi_align(source: int, target: int, **attributes: Any) -> Crossing:
    # One beyond the image, one smaller than an element, one of no size at all.
    regions = [[0, 0, 4, 3], [1.2, 0.4, 3.7, 8.1], [-3, -2, 1, 2], [2, 2, 2.3, 2.2], [3, 1, 3, 1]]
    given = {"x": IMAGE, "r": np.array(regions, np.float32), "b": np.array([0, 1, 1, 0, 1])}
    return Crossing("", "RoiAlign", source, target, given, {}, attributes, tolerance=1e-5)


@pytest.mark.parametrize("mode", ["half_pixel", "output_half_pixel", None])
@pytest.mark.parametrize("ratio", [0, 1, 2])
def test_regions(mode: str | None, ratio: int) -> None:
    chosen: dict[str, Any] = {"output_height": 2, "output_width": 3, "sampling_ratio": ratio, "spatial_scale": 1.5}
    if mode is not None:
        chosen["coordinate_transformation_mode"] = mode
    for case in both_shapes(roi_align(16, 9, **chosen)):
        case.check()
    for source in (22, 16):
        roi_align(source, 15, **chosen).check()


def test_regions_stay_regions_where_they_can() -> None:
    after = roi_align(16, 10, coordinate_transformation_mode="output_half_pixel").check()
    assert operators(after) == ["RoiAlign"]
    assert operators(roi_align(10, 9).check()).count("RoiAlign") == 0


def test_no_regions() -> None:
    case = roi_align(16, 9, sampling_ratio=0)
    given = {"x": IMAGE, "r": np.zeros((0, 4), np.float32), "b": np.zeros(0, np.int64)}
    for shaped in both_shapes(replace(case, given=given)):
        assert_same([np.zeros((0, 3, 1, 1), np.float32)], run(converted(shaped.model(), 9), given))


def test_refusal_of_greatest_in_regions() -> None:
    assert "disagree about mode=max" in roi_align(16, 15, mode="max").refused()


def test_cubic_volumes() -> None:
    """Which onnxruntime does not have."""
    case = replace(grid_sample(20, 19, VOLUME, VOLUME_GRID, mode="cubic"), expected=[VOLUME], tolerance=1e-4)
    expected = run_reference(case.model(), case.given)
    replace(case, expected=expected).check()


def test_more_bins_than_are_written_out() -> None:
    node = helper.make_node("RoiAlign", ["x", "r", "b"], ["y"], output_height=2**40)
    inputs: dict[str, Any] = {"x": ("float32", (1, 1, 4, 4)), "r": ("float32", (1, 4)), "b": ("int64", (1,))}
    assert "bins along an axis" in refusal(build(node, 16, inputs, {"y": ("float32", (1, 1, 2**40, 1))}), 9)
