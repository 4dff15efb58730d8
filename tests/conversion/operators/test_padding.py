"""Pad and Clip through all their versions."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import onnx.parser
import pytest
from conversion.operators.crossings import Crossing, both_shapes
from conversion.operators.execute import operators, random_array

import splitgraph

X = random_array((3, 4))
PADS = np.array([1, 0, 2, 3])
GREATEST = float(np.finfo(np.float32).max)
SPECIAL = np.array([np.nan, np.inf, -np.inf, -0.0, 0.0, 1.5, -1.5, 7, -7, GREATEST, -GREATEST], np.float32)


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (Crossing("negative", "Pad", 2, 1, {"x": X}, {}, {"pads": [0, 0, -1, 0]}), "negative pads"),
        (
            Crossing(
                "rank",
                "Pad",
                18,
                17,
                {"x": X, "p": np.array([1, 1]), "axes": np.array([0])},
                {},
                {},
                ("x", "p", "", "axes"),
                shapes="unknown",
            ),
            "the rank of 'x' is unknown",
        ),
        (
            Crossing(
                "limits", "Clip", 1, 10, {"x": X.astype(np.float64)}, {}, {"min": 0.0}, expected=[X.astype(np.float64)]
            ),
            "the limits of float64",
        ),
    ],
    ids=str,
)
def test_refusals(case: Crossing, words: str) -> None:
    assert words in case.refused()


def test_axes_that_are_no_list_are_refused() -> None:
    model = onnx.parser.parse_model("""<ir_version: 8, opset_import: ["" : 18]> g (float[3, 4] x) => (y)
        <int64[2] pads = {1, 1}, int64 axes = {0}> { y = Pad(x, pads, , axes) }""")
    with pytest.raises(splitgraph.ConversionError, match="the axes must be a 1-D tensor, not of rank 0"):
        splitgraph.downgrade(model, 17)


@pytest.mark.parametrize("target", [2, 7, 11, 13, 18, 21])
def test_first_pad(target: int) -> None:
    """All beginnings first, then all ends."""
    padded = np.pad(X, [(1, 2), (0, 3)], constant_values=1.5)
    attributes = {"paddings": [1, 0, 2, 3], "value": 1.5}
    case = Crossing("", "Pad", 1, target, {"x": X}, {}, attributes, expected=[padded])
    case.check()


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("target", [11, 13, 18])
def test_attributes_become_constants(mode: str, target: int) -> None:
    for value in (0.0, 1.0, -1.5, float("-inf")):
        attributes = {"pads": PADS, "mode": mode, "value": value}
        Crossing("", "Pad", 10, target, {"x": X}, {}, attributes).check()
        Crossing("", "Pad", 10, target, {"x": X.astype(np.float64)}, {}, attributes).check()


def test_value_of_a_type_that_is_not_known() -> None:
    attributes = {"pads": PADS, "value": -1.5}
    Crossing("", "Pad", 10, 18, {"x": X}, {}, attributes, shapes="unknown").check()


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "int64", "int32"])
@pytest.mark.parametrize("target", [10, 9])
def test_constants_become_attributes(mode: str, dtype: str, target: int) -> None:
    x = X.astype(dtype)
    value = {"value": np.array(3, dtype)} if mode == "constant" else {}
    for held in ({"p": PADS, **value}, {"p": PADS}, {"p": np.array([-1, 1, 0, 0]), **value}):
        for case in both_shapes(Crossing("", "Pad", 11, target, {"x": x}, held, {"mode": mode})):
            case.check()


@pytest.mark.parametrize("mode", ["constant", "reflect", "edge"])
@pytest.mark.parametrize("pads", [(1, 0, 2, 3), (0, 0, 0, 0), (2, 3, 2, 3), (-1, -2, 0, 1), (-1, 0, -1, 0)])
@pytest.mark.parametrize("target", [10, 9])
def test_pads_at_run_time(mode: str, pads: tuple[int, ...], target: int) -> None:
    given = {"x": X, "p": np.array(pads)}
    if mode == "constant":
        given["value"] = np.array(0.1, np.float32)
    for case in both_shapes(Crossing("", "Pad", 13, target, given, {}, {"mode": mode})):
        case.check()


def test_nothing_is_padded_by_a_value() -> None:
    empty = np.zeros((0, 2), np.float32)
    for case in both_shapes(
        Crossing("", "Pad", 13, 9, {"x": empty, "p": np.array([1, 1, 1, 0])}, {"v": np.array(2.5, np.float32)})
    ):
        case.check()


@pytest.mark.parametrize("axes", [(1,), (0, 1), (-1, 0), (-1,)])
@pytest.mark.parametrize("target", [17, 13, 11])
def test_some_axes(axes: tuple[int, ...], target: int) -> None:
    pads = np.arange(1, 2 * len(axes) + 1)
    inputs = ("x", "p", "v", "axes")
    parts: dict[str, Any] = {"p": pads, "v": np.array(1.5, np.float32), "axes": np.array(axes)}
    for given in ((), ("p",), ("axes",), ("p", "axes", "v")):
        first = {"x": X, **{name: parts[name] for name in given}}
        rest = {name: array for name, array in parts.items() if name not in given}
        Crossing("", "Pad", 18, target, first, rest, {}, inputs).check()


def check_wrapping(x: Any, pads: tuple[int, ...], target: int, expected: Any) -> None:
    """Pads that are known, and pads of run time; static and symbolic shapes."""
    parts = {"x": x, "p": np.array(pads)}
    for given, held in ((("x",), ("p",)), (("x", "p"), ())):
        case = Crossing(
            "", "Pad", 19, target, {n: parts[n] for n in given}, {n: parts[n] for n in held}, {"mode": "wrap"}
        )
        for each in both_shapes(case):
            replace(each, expected=[expected]).check()


@pytest.mark.parametrize("pads", [(1, 0, 2, 3), (-1, 2, 0, 9), (3, 4, 6, 8), (0, 0, 0, 0)])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_wrapping_around(pads: tuple[int, ...], dtype: str) -> None:
    x = X.astype(dtype)
    rows = np.arange(-pads[0], 3 + pads[2]) % 3
    columns = np.arange(-pads[1], 4 + pads[3]) % 4
    for target in (18, 13, 11, 10):
        check_wrapping(x, pads, target, x[rows][:, columns])


@pytest.mark.parametrize("pads", [(-1, 1), (-1, 4), (1, -1), (5, -2), (-1, -1), (-3, 0)])
@pytest.mark.parametrize("target", [18, 13, 10])
def test_what_negative_pads_remove_does_not_come_back(pads: tuple[int, int], target: int) -> None:
    """The document does not say; onnxruntime wraps what is left."""
    x = np.arange(3, dtype=np.float32)
    kept = x[max(-pads[0], 0) : 3 - max(-pads[1], 0)]
    check_wrapping(x, pads, target, np.pad(kept, (max(pads[0], 0), max(pads[1], 0)), "wrap") if kept.size else kept)


def test_nothing_left_to_wrap_around() -> None:
    case = Crossing("", "Pad", 19, 18, {"x": np.ones(2, np.float32)}, {"p": np.array([3, -2])}, {"mode": "wrap"},
                    expected=[np.ones(3, np.float32)])  # fmt: skip
    assert "nothing is left" in case.refused()


# Clip --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bounds", [{}, {"min": -1.0}, {"max": 1.0}, {"min": -1.0, "max": 1.0}], ids=str)
@pytest.mark.parametrize("dtype", ["float32", "float16", "float64"])
@pytest.mark.parametrize("source", [1, 6])
@pytest.mark.parametrize("target", [6, 11, 12, 13, 18])
def test_bounds_go_up(bounds: dict[str, float], dtype: str, source: int, target: int) -> None:
    if source == target or (dtype == "float64" and target == 6):
        return
    x = SPECIAL.astype(dtype)
    # Opset 1: the limits of the type; 6: those of float32, which is beyond those of float16.
    limit = float(np.finfo(dtype).max) if source == 1 else GREATEST
    low, high = bounds.get("min", -limit), bounds.get("max", limit)
    expected = np.where(x < low, low, np.where(x > high, high, x)).astype(dtype)
    case = Crossing("", "Clip", source, target, {"x": x}, {}, bounds, expected=[expected])
    if dtype == "float32" or target > 6:
        case.check()


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64"])
@pytest.mark.parametrize("target", [11, 10, 9])
def test_integers_go_down(dtype: str, target: int) -> None:
    x = np.arange(12).astype(dtype)
    low, high = np.array(3, dtype), np.array(8, dtype)
    for inputs, given in product((("x", "low", "high"), ("x", "low"), ("x", "", "high"), ("x",)), (False, True)):
        parts = {name: array for name, array in (("low", low), ("high", high)) if name in inputs}
        first, rest = ({"x": x, **parts}, {}) if given else ({"x": x}, parts)
        after = Crossing("", "Clip", 12, target, first, rest, {}, inputs).check()
        # At opset 11 onnxruntime clips float32 only.
        assert dtype in ("int8", "uint8") or "Clip" not in operators(after)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint32"])
@pytest.mark.parametrize("target", [8, 7, 6])
def test_integers_go_below_9_by_constant_bounds(dtype: str, target: int) -> None:
    held = {"low": np.array(3, dtype), "high": np.array(8, dtype)}
    Crossing("", "Clip", 12, target, {"x": np.arange(12).astype(dtype)}, held).check()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("target", [10, 9])
def test_floats_go_down(dtype: str, target: int) -> None:
    x = SPECIAL.astype(dtype)
    for low, high in ((-1.5, 1.5), (0.1, 5.3), (-np.inf, np.inf), (2.0, 1.0)):
        parts = {"low": np.array(low, dtype), "high": np.array(high, dtype)}
        raised = np.where(x < low, low, x)
        expected = [np.where(raised > high, high, raised).astype(dtype)]
        for first, rest in (({"x": x}, parts), ({"x": x, **parts}, {})):
            Crossing("", "Clip", 13, target, first, rest, expected=expected).check()


def test_constant_bounds_stay_one_node() -> None:
    held = {"low": np.float32(-1), "high": np.float32(0.1)}
    assert operators(Crossing("", "Clip", 13, 9, {"x": X}, held).check()) == ["Clip"]


@pytest.mark.parametrize("target", [17, 13, 9])
@pytest.mark.parametrize("shapes", ["static", "symbolic"])
@pytest.mark.parametrize(("sizes", "axes"), [([4, 1], None), ([2], [-1]), ([6, 5], [1, 0])])
def test_center_crop_pad_to_sizes_of_int32(sizes: list[int], axes: list[int] | None, shapes: Any, target: int) -> None:
    given = {"x": X, "sizes": np.array(sizes, np.int32)}
    # onnxruntime has only the function body, which does not fit sizes of int32.
    wanted = dict(zip(axes or [0, 1], sizes, strict=True))
    expected = X
    for axis, size in wanted.items():
        axis %= 2
        more = max(size - expected.shape[axis], 0)
        expected = np.pad(expected, [(more // 2, more - more // 2) if at == axis else (0, 0) for at in range(2)])
        begin = (expected.shape[axis] - size) // 2
        expected = np.take(expected, range(begin, begin + size), axis)
    attributes = {} if axes is None else {"axes": axes}
    Crossing("", "CenterCropPad", 18, target, given, {}, attributes, expected=[expected], shapes=shapes).check()
