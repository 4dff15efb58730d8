"""Older versions of operators, by what their texts say: onnxruntime has few of them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from splitgraph.verification.reference import evaluator
from splitgraph.verification.reference.kernels import KernelError
from splitgraph.verification.values import UnsupportedError

from ..small_models import model_of, node, value

F, I32, I64, U8 = np.float32, np.int32, np.int64, np.uint8
DATA = np.arange(24, dtype=F).reshape(2, 3, 4) - 9
CHANNELS, ROW = F([1, 2, 3]), F([1, 2, 3, 4])
NAN = np.array([[[1, np.nan, 3, 5]]], F)
TEXTS = np.array(["abc", "Abc", "q", "it's"], dtype=object)
SIGNED = F([[[1, -2], [-3, 4]]])
TABLE = F([[1, 2, 3], [4, 5, 6]])


def run(op_type: str, opset: int, inputs: list[Any], attributes: dict[str, Any]) -> list[Any]:
    names = [f"i{place}" for place in range(len(inputs))]
    types = [value(name, held.shape) for name, held in zip(names, inputs, strict=True)]
    model = model_of([node(op_type, names, ["y"], **attributes)], types, ["y"], opset=opset)
    return evaluator.run(evaluator.load(model), dict(zip(names, inputs, strict=True)))


# Operator, opset, inputs, attributes, result.
CASES: dict[str, tuple[str, int, list[Any], dict[str, Any], Any]] = {
    "Add at an axis": ("Add", 6, [DATA, CHANNELS], {"broadcast": 1, "axis": 1}, DATA + CHANNELS[:, None]),
    "Sub at the end": ("Sub", 6, [DATA, ROW], {"broadcast": 1}, DATA - ROW),
    "Mul by a scalar": ("Mul", 1, [DATA, F(2)], {"broadcast": 1}, DATA * 2),
    "Add of equal shapes": ("Add", 1, [DATA, DATA], {}, DATA * 2),
    "Div of integers": ("Div", 6, [I32([-7, 7]), I32([2, 2])], {}, I32([-3, 3])),
    "Pow": ("Pow", 1, [DATA, F(2)], {"broadcast": 1}, DATA**2),
    "Pow of an infinity": ("Pow", 13, [F([-np.inf, 4, -0.0]), F(0.5)], {}, F([np.inf, 2, 0])),
    "Pow with exponents of another type": ("Pow", 12, [F([[2], [3]]), I64([1, 2])], {}, F([[2, 4], [3, 9]])),
    "Pow of integers": ("Pow", 15, [I32([-2, 3]), F(3)], {}, I32([-8, 27])),
    "Less at the first axis": ("Less", 1, [DATA, F([0, 5])], {"broadcast": 1, "axis": 0}, F([[[0]], [[5]]]) > DATA),
    "And": ("And", 1, [DATA > 0, ROW > 2], {"broadcast": 1}, (DATA > 0) & (ROW > 2)),
    "StringNormalizer without stopwords": ("StringNormalizer", 10, [TEXTS], {}, TEXTS),
    "StringNormalizer of any case": ("StringNormalizer", 10, [TEXTS], {"stopwords": ["ABC"]}, TEXTS[2:]),
    "StringNormalizer of one case": (
        "StringNormalizer",
        10,
        [TEXTS],
        {"stopwords": ["abc", "Q"], "is_case_sensitive": 1, "case_change_action": "UPPER"},
        np.array(["ABC", "Q", "IT'S"], dtype=object),
    ),
    "StringNormalizer of nothing left": (
        "StringNormalizer",
        10,
        [TEXTS[np.newaxis, 2:3]],
        {"stopwords": ["q"], "case_change_action": "LOWER"},
        np.array([[""]], dtype=object),
    ),
    "Gemm": (
        "Gemm",
        6,
        [TABLE, TABLE, F([10, 20])],
        {"transB": 1, "broadcast": 1, "alpha": 2.0, "beta": 0.5},
        2 * TABLE @ TABLE.T + F([5, 10]),
    ),
    "GatherElements along 100": (
        "GatherElements",
        13,
        [np.arange(200, dtype=F).reshape(2, 100), I64([[99, -100, 5], [0, 1, -1]])],
        {"axis": 1},
        F([[99, 0, 5], [100, 101, 199]]),
    ),
    "GatherElements of fewer rows": ("GatherElements", 11, [TABLE, I64([[2, 0]])], {"axis": -1}, F([[3, 1]])),
    "GatherElements along the first axis": ("GatherElements", 13, [TABLE, I32([[1, 0, -1]])], {}, F([[4, 2, 6]])),
    "PRelu of each channel": ("PRelu", 6, [DATA, CHANNELS], {}, np.where(DATA < 0, DATA * CHANNELS[:, None], DATA)),
    "PRelu of all": ("PRelu", 1, [DATA, F([3])], {}, np.where(DATA < 0, DATA * 3, DATA)),
    "PRelu of a zero": ("PRelu", 16, [F([0, -0.0, -1]), F([np.nan, np.inf, 2])], {}, F([0, 0, -2])),
    "Selu": ("Selu", 1, [F([-1, 2])], {}, F([1.0507 * 1.6732 * (np.exp(-1) - 1), 2 * 1.0507])),
    "Clip": ("Clip", 1, [DATA], {"min": -2.0, "max": 3.0}, DATA.clip(-2, 3)),
    "Clip within the limits of the type": ("Clip", 11, [F([np.inf, -9])], {}, F([np.finfo(F).max, -9])),
    "Clip of a scalar": ("Clip", 11, [F(7), F(-1), F(3)], {}, F(3)),
    "Selu of a scalar": ("Selu", 1, [F(0)], {}, F(0)),
    "Clip from below": ("Clip", 13, [F([np.inf, -np.inf]), F(-1)], {}, F([np.finfo(F).max, -1])),
    "Clip of integers": ("Clip", 12, [I32([-7, 7]), I32(-2)], {}, I32([-2, 7])),
    "Clip with bounds in the other order": ("Clip", 13, [DATA, F(3), F(-2)], {}, np.full_like(DATA, -2)),
    "LogSoftmax of far numbers": ("LogSoftmax", 13, [F([[0, 200], [3, 3]])], {}, F([[-200, 0], [-np.log(2)] * 2])),
    "LpNormalization by absolute values": (
        "LpNormalization",
        22,
        [F([[1, -3], [0, 0]])],
        {"p": 1},
        F([[0.25, -0.75], [0, 0]]),
    ),
    "LpNormalization along an axis": (
        "LpNormalization",
        1,
        [F([[3, 1], [-4, 0]])],
        {"axis": 0},
        F([[0.6, 1], [-0.8, 0]]),
    ),
    "LogSoftmax along an axis": (
        "LogSoftmax",
        13,
        [F([[0, 200], [0, 300]])],
        {"axis": 0},
        F([[-np.log(2), -100], [-np.log(2), 0]]),
    ),
    "Concat": ("Concat", 1, [DATA, DATA], {}, np.concatenate([DATA, DATA], 1)),
    "Dropout": ("Dropout", 6, [DATA], {"is_test": 1}, DATA),
    "Reshape": ("Reshape", 1, [DATA], {"shape": [0, -1]}, DATA.reshape(2, 12)),
    "Tile": ("Tile", 1, [TABLE, F([3]), F([1])], {}, np.tile(TABLE, (1, 3))),
    "Scatter": (
        "Scatter",
        9,
        [TABLE, I64([[1, -2, 1]]), F([[7, 8, 9]])],
        {},
        F([[1, 8, 3], [7, 5, 9]]),
    ),
    "Scatter along an axis": (
        "Scatter",
        10,
        [TABLE, I64([[2], [0]]), F([[7], [8]])],
        {"axis": 1},
        F([[1, 2, 7], [8, 5, 6]]),
    ),
    "OneHot without negative indices": (
        "OneHot",
        9,
        [I64([-1, 0, 2, 3]), I64(3), I64([5, 7])],
        {},
        I64([[5, 5, 5], [7, 5, 5], [5, 5, 7], [5, 5, 5]]),
    ),
    "OneHot at an axis": ("OneHot", 10, [I64([0, 1]), I64([2]), F([0, 1])], {"axis": 0}, F([[1, 0], [0, 1]])),
    "OneHot-11 with negative indices": ("OneHot", 11, [I64([-1]), I64(3), I64([5, 7])], {}, I64([[5, 5, 7]])),
    "DequantizeLinear": ("DequantizeLinear", 10, [U8([0, 200]), F(0.5), U8(100)], {}, F([-50, 50])),
    "DequantizeLinear of an axis": (
        "DequantizeLinear",
        13,
        [U8([[1, 2], [3, 4]]), F([1, 10]), U8([0, 1])],
        {"axis": 0},
        F([[1, 2], [20, 30]]),
    ),
    "DequantizeLinear without a zero point": ("DequantizeLinear", 13, [I32([3]), F(2)], {}, F([6])),
    "GlobalLpPool": ("GlobalLpPool", 2, [SIGNED], {"p": 1}, F([[[3], [7]]])),
    "AveragePool-1 does not count pads": (
        "AveragePool",
        6,
        [F([[[2, 4]]])],
        {"kernel_shape": [2], "pads": [1, 0]},
        F([[[2, 3]]]),
    ),
    "AveragePool of NaN": ("AveragePool", 11, [NAN], {"kernel_shape": [2]}, F([[[np.nan, np.nan, 4]]])),
    "AveragePool-19 counts pads": (
        "AveragePool",
        19,
        [F([[[2, 4]]])],
        {"kernel_shape": [2], "pads": [1, 0], "count_include_pad": 1},
        F([[[1, 3]]]),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the evaluator computes these numbers as NumPy does
def test_what_the_text_says(name: str) -> None:
    op_type, opset, inputs, attributes, expected = CASES[name]
    (found,) = run(op_type, opset, inputs, attributes)
    assert (found.dtype, found.shape) == (expected.dtype, np.shape(expected))
    if expected.dtype == object:
        np.testing.assert_array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_roi_align_10_does_not_shift() -> None:
    image = np.arange(16, dtype=F).reshape(1, 1, 4, 4)
    inputs = [image, F([[0, 0, 2, 2]]), I64([0])]
    sizes = {"output_height": 2, "output_width": 2, "sampling_ratio": 1}
    (found,) = run("RoiAlign", 10, inputs, sizes)
    np.testing.assert_allclose(found[0, 0], [[2.5, 3.5], [6.5, 7.5]])
    (shifted,) = run("RoiAlign", 16, inputs, sizes)
    np.testing.assert_allclose(shifted[0, 0], [[0, 1], [4, 5]])


@pytest.mark.parametrize("mode", [None, "nearest", "bilinear", "bicubic"])
@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
def test_grid_sample_16_names_its_modes_otherwise(mode: str | None, padding: str) -> None:
    image = np.arange(16, dtype=F).reshape(1, 1, 4, 4) ** 2
    grid = np.linspace(-1.3, 1.2, 18, dtype=F).reshape(1, 3, 3, 2)
    named = {"bilinear": "linear", "bicubic": "cubic", None: "linear"}.get(mode, mode)
    (found,) = run(
        "GridSample", 16, [image, grid], {"padding_mode": padding} | ({} if mode is None else {"mode": mode})
    )
    (expected,) = run("GridSample", 20, [image, grid], {"padding_mode": padding, "mode": named})
    np.testing.assert_array_equal(found, expected)


REFUSED: dict[str, tuple[str, int, list[Any], dict[str, Any], type[Exception], str]] = {
    "without broadcast": ("Add", 6, [DATA, ROW], {}, KernelError, "needs broadcast=1"),
    "the first input broadcast": (
        "Add",
        6,
        [F([1]), ROW],
        {"broadcast": 1},
        KernelError,
        "broadcasts its second input",
    ),
    "an axis too far": ("Add", 6, [DATA, CHANNELS[None]], {"broadcast": 1, "axis": 2}, KernelError, "has no axis 2"),
    "training": ("Dropout", 6, [DATA], {}, UnsupportedError, "training mode"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused(name: str) -> None:
    op_type, opset, inputs, attributes, error, told = REFUSED[name]
    with pytest.raises(error, match=told):
        run(op_type, opset, inputs, attributes)
