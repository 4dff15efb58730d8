"""Resize and Upsample in all versions, as onnxruntime computes them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from splitgraph.verification.reference import evaluator
from splitgraph.verification.reference.kernels import KernelError
from splitgraph.verification.reference.resizing import run_resize

from ..small_models import model_of, node, value

F, I64 = np.float32, np.int64
IMAGE = np.random.default_rng(0).normal(size=(1, 2, 3, 5)).astype(F)
SHRINKS, GROWS, ONE = ({"scales": F([1, 1, *each])} for each in ((0.6, 0.7), (2, 2.7), (0.5, 2)))
SIZES = {"sizes": I64([1, 2, 4, 3])}
COORDINATES = ("half_pixel", "pytorch_half_pixel", "align_corners", "asymmetric")
Given = dict[str, Any]


def run_both(op_type: str, opset: int, given: Given, attributes: Given) -> tuple[Any, Any]:
    # Opset 11 needs all inputs.
    needed = {"roi": F([]), "scales": F([])} if op_type == "Resize" and 11 <= opset < 13 else {}
    inputs = {"x": IMAGE, **needed, **given}
    order = ["x", "scales"] if op_type == "Upsample" or opset < 11 else ["x", "roi", "scales", "sizes"]
    names = [name if name in inputs else "" for name in order]
    while not names[-1]:
        names.pop()
    types = [value(name, held.shape, helper.np_dtype_to_tensor_dtype(held.dtype)) for name, held in inputs.items()]
    model = model_of([node(op_type, names, ["y"], **attributes)], types, ["y"], opset=opset)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return evaluator.run(evaluator.load(model), inputs)[0], session.run(None, inputs)[0]


CASES: dict[str, tuple[str, int, Given, Given]] = {
    **{
        f"{mode} {coordinates} {place} at {opset}": (
            "Resize",
            opset,
            given,
            {"mode": mode, "coordinate_transformation_mode": coordinates},
        )
        for mode, coordinates, (place, given), opset in itertools.product(
            ("nearest", "linear", "cubic"),
            COORDINATES,
            (("shrinks", SHRINKS), ("grows", GROWS), ("to one", ONE), ("to sizes", SIZES)),
            (11, 19),
        )
        # Where a length is rounded down, onnx's own tests align the corners of the exact one (see below).
        if coordinates != "align_corners" or place not in ("shrinks", "grows")
    },
    **{
        f"nearest, {rounding}": ("Resize", 13, GROWS, {"nearest_mode": rounding})
        for rounding in ("floor", "ceil", "round_prefer_floor", "round_prefer_ceil")
    },
    "half_pixel_symmetric": (
        "Resize",
        19,
        GROWS,
        {"mode": "linear", "coordinate_transformation_mode": "half_pixel_symmetric"},
    ),
    "tf_half_pixel_for_nn": ("Resize", 11, GROWS, {"coordinate_transformation_mode": "tf_half_pixel_for_nn"}),
    "tf_crop_and_resize": (
        "Resize",
        13,
        {"roi": F([0, 0, 0.1, -0.2, 1, 1, 0.7, 1.3]), **GROWS},
        {"mode": "linear", "coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 9.0},
    ),
    "cubic without what is outside": ("Resize", 13, GROWS, {"mode": "cubic", "exclude_outside": 1}),
    "cubic with another coefficient": ("Resize", 13, GROWS, {"mode": "cubic", "cubic_coeff_a": -0.5}),
    "antialiased": ("Resize", 18, SHRINKS, {"mode": "linear", "antialias": 1}),
    "antialiased cubic": ("Resize", 18, SHRINKS, {"mode": "cubic", "antialias": 1}),
    "some axes": ("Resize", 18, {"sizes": I64([7, 2])}, {"mode": "linear", "axes": [3, 2]}),
    "not larger": ("Resize", 18, {"sizes": I64([7, 7])}, {"axes": [2, 3], "keep_aspect_ratio_policy": "not_larger"}),
    "not smaller": ("Resize", 18, {"sizes": I64([7, 7])}, {"axes": [2, 3], "keep_aspect_ratio_policy": "not_smaller"}),
    "a size that float64 rounds otherwise": ("Resize", 13, {"scales": F([1, 5, 1.4, 1.4])}, {"mode": "nearest"}),
    **{
        f"Resize-10 {mode} {place}": ("Resize", 10, given, {"mode": mode})
        for mode in ("nearest", "linear")
        for place, given in (("shrinks", SHRINKS), ("grows", GROWS))
    },
    "Upsample-9": ("Upsample", 9, GROWS, {"mode": "nearest"}),
    "Upsample-9 linear": ("Upsample", 9, GROWS, {"mode": "linear"}),
    "Upsample-7": ("Upsample", 7, {}, {"mode": "nearest", "scales": [1.0, 1.0, 2.0, 3.0]}),
}


@pytest.mark.parametrize("name", CASES)
def test_as_onnxruntime_computes_it(name: str) -> None:
    found, expected = run_both(*CASES[name])
    assert found.dtype == expected.dtype
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("scales", [SHRINKS, GROWS])
def test_corners_are_aligned_at_the_exact_length(scales: Given) -> None:
    """onnx's own test of linear align_corners with scales has it so; onnxruntime takes the rounded length."""
    ways = {"mode": "linear", "coordinate_transformation_mode": "align_corners"}
    names, held = ["x", "", "scales"], {"x": IMAGE, **scales}
    types = [value(name, array.shape, helper.np_dtype_to_tensor_dtype(array.dtype)) for name, array in held.items()]
    model = model_of([node("Resize", names, ["y"], **ways)], types, ["y"], opset=19)
    (expected,) = ReferenceEvaluator(model).run(None, held)
    np.testing.assert_allclose(evaluator.run(evaluator.load(model), held)[0], expected, rtol=1e-4, atol=1e-5)


def test_upsample_1_has_a_scale_for_each_side() -> None:
    """onnxruntime does not run it."""
    (found,) = run_resize("Upsample", 1, [IMAGE], {"height_scale": 2.0, "width_scale": 3.0, "mode": "nearest"}, 1)
    np.testing.assert_array_equal(found, IMAGE.repeat(2, 2).repeat(3, 3))


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.bool_, object])
def test_the_nearest_element_keeps_its_type(dtype: Any) -> None:
    data = np.array([[3, 250]]).astype(dtype)
    (found,) = run_resize("Resize", 19, [data, None, F([1, 2])], {}, 1)
    assert found.dtype == data.dtype
    np.testing.assert_array_equal(found, data.repeat(2, 1))


REFUSED: dict[str, tuple[list[Any], Given, str]] = {
    "neither scales nor sizes": ([IMAGE], {}, "either scales or sizes"),
    "both": ([IMAGE, None, SHRINKS["scales"], SIZES["sizes"]], {}, "either scales or sizes"),
    "a region that is missing": (
        [IMAGE, None, GROWS["scales"]],
        {"coordinate_transformation_mode": "tf_crop_and_resize"},
        "needs a region",
    ),
    "an unknown mode": ([IMAGE, None, GROWS["scales"]], {"mode": "area"}, "no mode 'area'"),
    "an unknown rounding": ([IMAGE, None, GROWS["scales"]], {"nearest_mode": "up"}, "no nearest_mode 'up'"),
    "unknown coordinates": ([IMAGE, None, GROWS["scales"]], {"coordinate_transformation_mode": "?"}, "no coordinate_"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    inputs, attributes, told = REFUSED[name]
    with pytest.raises(KernelError, match=told):
        run_resize("Resize", 19, inputs, attributes, 1)
