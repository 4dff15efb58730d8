"""Resize written as gathering: every mode, every way of coordinates, known and unknown sizes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.crossings import Crossing, Shapes
from conversion.operators.execute import (
    Array,
    assert_same,
    build,
    converted,
    operators,
    random_array,
    run,
    run_reference,
)
from onnx import helper

X = random_array((1, 2, 5, 7))
NOTHING = np.zeros(0, np.float32)
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
SIZES = ((1, 2, 3, 9), (1, 2, 1, 1), (1, 2, 5, 4))
FACTORS = ((1.0, 1.0, 1.5, 0.6), (1.0, 1.0, 0.4, 0.3), (1.0, 1.0, 2.0, 3.0))
# What is known at conversion: everything; all but the shape of the data; nothing.
KNOWN = ("all", "sizes", "nothing")


@dataclass(frozen=True)
class _Resize(Crossing):
    """onnx wants the number of scales or sizes to be known."""

    def _declared(self, name: str, array: Array) -> onnx.ValueInfoProto:
        kept = self if name == "x" else replace(self, shapes="static")
        return super(_Resize, kept)._declared(name, array)


def resize(known: str, source: int, target: int, held: dict[str, Any], **attributes: Any) -> Crossing:
    """Resize of X with its inputs by name: roi, scales, sizes."""
    held = {name: np.array(array, np.int64 if name == "sizes" else np.float32) for name, array in held.items()}
    if source < 13:
        held = {"roi": NOTHING, "scales": NOTHING} | held
    inputs = ["x", *(name if name in held else "" for name in ("roi", "scales", "sizes"))]
    while not inputs[-1]:
        inputs.pop()
    given = {"x": X}
    if known == "nothing":
        given |= {name: array for name, array in held.items() if array.size}
    constants = {name: array for name, array in held.items() if name not in given}
    shapes: Shapes = "static" if known == "all" else "symbolic"
    tolerance = 0.0 if attributes.get("mode", "nearest") == "nearest" else 2e-5
    return _Resize(
        "", "Resize", source, target, given, constants, attributes, inputs, tolerance=tolerance, shapes=shapes
    )


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (
            resize("nothing", 11, 10, {"scales": (1, 1, 2, 2)}, coordinate_transformation_mode="align_corners"),
            "the meaning of a rounded size is not clear",
        ),
        (
            resize("all", 11, 10, {"scales": (1, 1, 1.5, 2)}, coordinate_transformation_mode="align_corners"),
            "the meaning of a rounded size is not clear",
        ),
        (
            resize(
                "all",
                11,
                10,
                {"scales": (1, 1, 1.5, 2)},
                coordinate_transformation_mode="tf_half_pixel_for_nn",
                nearest_mode="ceil",
            ),
            "unless it is rounded down",
        ),
        (
            resize(
                "nothing",
                13,
                10,
                {"roi": (0, 0, 0, 0, 1, 1, 0.5, 1), "scales": (1, 1, 1.5, 2)},
                coordinate_transformation_mode="tf_crop_and_resize",
            ),
            "disagree about what scales mean for a region of interest",
        ),
        (
            replace(
                resize("all", 13, 10, {"sizes": (1, 2, 4, 5)}, coordinate_transformation_mode="tf_crop_and_resize"),
                expected=[X[..., :4, :5]],
            ),
            "without a region of interest has no meaning",
        ),
        (
            resize(
                "all",
                18,
                10,
                {"sizes": (1, 2, 4, 5)},
                coordinate_transformation_mode="align_corners",
                keep_aspect_ratio_policy="not_larger",
            ),
            "the meaning of a rounded size is not clear",
        ),
        (
            replace(
                resize("all", 13, 10, {"sizes": (1, 2, 3, 3)}, mode="cubic"),
                given={"x": X.astype(np.int32)},
                expected=[X[..., :3, :3].astype(np.int32)],
            ),
            "how cubic resizing rounds int32 is not specified",
        ),
    ],
    ids=str,
)
def test_refusals(case: Crossing, words: str) -> None:
    assert words in case.refused()


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("rounding", ["floor", "round_prefer_floor"])
def test_half_pixel_for_nearest(known: str, rounding: str) -> None:
    for factors in FACTORS:
        chosen = {"coordinate_transformation_mode": "tf_half_pixel_for_nn", "nearest_mode": rounding}
        resize(known, 11, 10, {"scales": factors}, **chosen).check()


def test_what_does_not_change_is_left_alone() -> None:
    after = resize("sizes", 13, 10, {"scales": (1, 1, 1, 1)}, mode="cubic").check()
    assert operators(after) == ["Identity"]
    # Along the two axes that are resized, and no others.
    after = resize("all", 13, 10, {"sizes": (1, 2, 3, 9)}, mode="linear").check()
    assert operators(after).count("Gather") == 2


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("coordinates", COORDINATES)
def test_nearest(known: str, coordinates: str) -> None:
    for rounding in ("round_prefer_floor", "round_prefer_ceil", "floor", "ceil"):
        chosen = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
        resize(known, 13, 10, {"sizes": SIZES[0]}, **chosen).check()
        for factors in FACTORS if coordinates != "align_corners" else ():
            resize(known, 11, 10, {"scales": factors}, **chosen).check()


@pytest.mark.parametrize("rounding", ["round_prefer_floor", "round_prefer_ceil"])
def test_halfway_between_elements(rounding: str) -> None:
    """Where float32 misses the middle by its last bit."""
    for coordinates, old, new in (("asymmetric", (40, 7), (27, 16)), ("half_pixel", (28, 24), (30, 28))):
        chosen = {"coordinate_transformation_mode": coordinates, "nearest_mode": rounding}
        case = resize("all", 13, 10, {"sizes": (1, 1, *new)}, **chosen)
        replace(case, given={"x": random_array((1, 1, *old))}).check()


def test_sizes_that_are_only_partly_known() -> None:
    """As exporters write them: the first two of the data, the others worked out."""
    nodes = [
        helper.make_node("Shape", ["x"], ["shape"]),
        helper.make_node("Slice", ["shape", "zero", "two"], ["front"]),
        helper.make_node("Concat", ["front", "wanted"], ["sizes"], axis=0),
        helper.make_node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear"),
    ]
    model = build(
        nodes,
        13,
        {"x": ("float32", ["n", 3, "h", "w"]), "wanted": ("int64", [2])},
        {"y": ("float32", ["n", 3, None, None])},
        {"zero": np.array([0]), "two": np.array([2])},
    )
    after = converted(model, 10)
    # Not along the first two axes.
    assert sum(node.op_type == "ReduceSum" for node in after.graph.node) == 2
    feeds = {"x": random_array((2, 3, 5, 7)), "wanted": np.array([3, 9])}
    assert_same(run(model, feeds), run(after, feeds), 1e-5)


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize(("coordinates", "mode"), [*product(COORDINATES, ("linear", "cubic"))])
def test_interpolated(known: str, coordinates: str, mode: str) -> None:
    for sizes in SIZES:
        resize(known, 13, 10, {"sizes": sizes}, coordinate_transformation_mode=coordinates, mode=mode).check()
    for factors in FACTORS if coordinates != "align_corners" else FACTORS[2:]:
        if known != "nothing" or coordinates != "align_corners":
            chosen = {"coordinate_transformation_mode": coordinates, "mode": mode}
            resize(known, 11, 10, {"scales": factors}, **chosen).check()


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_scales_that_keep_the_size_still_move_the_coordinates(known: str, mode: str) -> None:
    # onnxruntime copies a tensor of which all axes keep their size.
    resize(known, 11, 10, {"scales": (1.0, 1.0, 1.19, 1.5)}, mode=mode).check()


@pytest.mark.parametrize("known", ["all", "sizes"])
@pytest.mark.parametrize(("name", "other", "given"), [("scales", "sizes", FACTORS[0]), ("sizes", "scales", SIZES[0])])
def test_of_scales_and_sizes_one_may_be_empty_below_13(known: str, name: str, other: str, given: Any) -> None:
    # onnxruntime takes no sizes beside scales, not even empty ones.
    expected = run(resize(known, 13, 10, {name: given}, mode="linear").model(), {"x": X})
    replace(resize(known, 11, 10, {name: given, other: ()}, mode="linear"), expected=expected).check()


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("sizes", SIZES)
def test_what_is_outside(known: str, sizes: tuple[int, ...]) -> None:
    resize(known, 13, 10, {"sizes": sizes}, mode="cubic", exclude_outside=1, cubic_coeff_a=-0.5).check()
    if sizes[2] == X.shape[2]:
        # onnxruntime crops nothing along an axis that keeps its size.
        return
    for mode in ("nearest", "linear", "cubic"):
        resize(
            known,
            13,
            10,
            {"sizes": sizes, "roi": (0, 0, -0.2, 0.3, 1, 1, 0.8, 1.2)},
            coordinate_transformation_mode="tf_crop_and_resize",
            mode=mode,
            extrapolation_value=7.5,
        ).check()


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize(("starts", "ends"), [((-0.2, 0.3), (0.8, 1.2)), ((0, 0), (0.5, 1))])
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the evaluator computes these numbers as NumPy does
def test_cropping_what_keeps_its_size(known: str, starts: tuple[float, ...], ends: tuple[float, ...]) -> None:
    held = {"sizes": SIZES[2], "roi": (0, 0, *starts, 1, 1, *ends)}
    case = resize(known, 13, 10, held, coordinate_transformation_mode="tf_crop_and_resize", mode="linear")
    model, feeds = case.model(), {name: np.asarray(array) for name, array in case.given.items()}
    assert_same(run_reference(model, feeds), run_reference(converted(model, 10), feeds), 1e-5)


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("mode", ["linear", "cubic"])
@pytest.mark.parametrize("exclude", [0, 1])
def test_antialias(known: str, mode: str, exclude: int) -> None:
    for sizes in SIZES:
        resize(known, 18, 17, {"sizes": sizes}, mode=mode, antialias=1, exclude_outside=exclude).check()
    for factors in FACTORS:
        chosen = {"mode": mode, "antialias": 1, "exclude_outside": exclude, "axes": [-1, 2]}
        resize(known, 18, 13, {"scales": factors[2:]}, **chosen).check()


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("policy", ["not_larger", "not_smaller"])
@pytest.mark.parametrize("mode", ["nearest", "linear"])
def test_policy(known: str, policy: str, mode: str) -> None:
    for sizes in SIZES:
        chosen = {"keep_aspect_ratio_policy": policy, "mode": mode, "axes": [2, 3]}
        resize(known, 18, 17, {"sizes": sizes[2:]}, **chosen).check()


@pytest.mark.parametrize("known", KNOWN)
@pytest.mark.parametrize("mode", ["nearest", "linear", "cubic"])
def test_symmetric(known: str, mode: str) -> None:
    for factors in FACTORS:
        chosen = {"coordinate_transformation_mode": "half_pixel_symmetric", "mode": mode}
        resize(known, 19, 18, {"scales": factors}, **chosen).check()


@pytest.mark.parametrize("mode", ["linear", "cubic"])
def test_elements_that_are_no_finite_number(mode: str) -> None:
    data = X.copy()
    data[0, 0, 2, 3], data[0, 1, 4, 6], data[0, 1, 0, 0] = np.nan, np.inf, -np.inf
    for coordinates in COORDINATES:
        case = resize("all", 13, 10, {"sizes": (1, 2, 9, 13)}, coordinate_transformation_mode=coordinates, mode=mode)
        replace(case, given={"x": data}).check()
    # Rows and columns that are far from it stay clear of it.
    data = random_array((1, 1, 40, 40))
    data[0, 0, 20, 21] = np.inf
    case = resize("sizes", 18, 17, {"sizes": (1, 1, 10, 10)}, mode=mode, antialias=1)
    replace(case, given={"x": data}).check()


@pytest.mark.parametrize("dtype", ["float16", "float64", "uint8", "int64"])
def test_types(dtype: str) -> None:
    mode = "linear" if dtype.startswith("float") else "nearest"
    case = resize("all", 13, 10, {"sizes": (1, 2, 3, 9)}, mode=mode, coordinate_transformation_mode="align_corners")
    data = random_array(X.shape, dtype)
    expected = run_reference(replace(case, given={"x": data}, expected=[data]).model(), {"x": data})
    replace(case, given={"x": data}, expected=expected, tolerance=1e-3 if dtype == "float16" else 1e-6).check()


def test_empty_batch() -> None:
    data = np.zeros((0, 2, 5, 7), np.float32)
    case = replace(resize("sizes", 13, 10, {"scales": (1, 1, 1.5, 0.6)}, mode="linear"), given={"x": data})
    assert_same([np.zeros((0, 2, 7, 4), np.float32)], run(case.check(), {"x": data}))


def test_inside_a_function_constants_are_nodes() -> None:
    node = helper.make_node("Resize", ["a", "", "", "s"], ["b"], mode="linear")
    imports = [helper.make_opsetid("", 13)]
    function = helper.make_function("own", "F", ["a", "s"], ["b"], [node], imports)
    call = helper.make_node("F", ["x", "sizes"], ["y"], domain="own")
    values = [
        helper.make_tensor_value_info("x", 1, X.shape),
        helper.make_tensor_value_info("sizes", onnx.TensorProto.INT64, [4]),
    ]
    graph = helper.make_graph([call], "g", values, [helper.make_tensor_value_info("y", 1, [None] * 4)])
    both = [*imports, helper.make_opsetid("own", 1)]
    model = helper.make_model(graph, functions=[function], opset_imports=both, ir_version=8)
    feeds = {"x": X, "sizes": np.array(SIZES[0])}
    assert_same(run_reference(model, feeds), run_reference(converted(model, 10), feeds), 1e-5)
