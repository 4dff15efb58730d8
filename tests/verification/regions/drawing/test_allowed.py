"""What the first model cleans, limits or divides by takes any number; what means nothing to it is no difference. What
constants are rounded by is none, either.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import splitgraph

from ..model_pairs import Pair, find_difference, show_difference

F = np.float32
NAN, INF = F("nan"), F("inf")
K = {
    "zero": F(0),
    "low": F(-100),
    "step": F(0.1),
    "ten": F(10),
    "floor": F(1e-3),
    "levels": F(127),
    "off": np.uint8(3),
    "two": np.int64([2]),
    "five": np.int64(5),
    "prime": np.int64(31),
    "prime32": np.int32(31),
    "five32": np.int32(5),
    "least": np.int64(0),
    "last": np.int64(4),
    "table": np.arange(10, dtype=F).reshape(5, 2),
    "boxes": np.array([[0, 0, 3, 3]], F),
    "image": np.int64([0]),
}
NO_NAN, NO_INF = "n = IsNaN(x) w = Where(n, low, x) ", "n = IsInf(x) w = Where(n, zero, x) "
KEPT_NAN = "n = IsNaN(x) m = Not(n) w = Where(m, x, low) "
FIVE = np.array([[1, NAN, 3, 2, 5]], F)
PICTURE = np.where(np.arange(16) == 5, INF, np.arange(16)).reshape(1, 1, 4, 4).astype(F)
TOP, QUANTIZED = "float[N, 5] x => float[N, 2] v, int64[N, 2] i", "float[N, 5] x => uint8[N, 5] y"
ROWS = "int64[N] x => float[N, 2] y"


def cleaned(signature: str, text: str, x: np.ndarray, cleaning: str = NO_NAN) -> Pair:
    """Return two models of which the first one cleans what it reads."""
    return Pair(signature, cleaning + text.format("w"), text.format("x"), {"x": x}, K)


MEAN, SPREAD = np.array([0.485, 0.456, 0.406]), np.array([0.229, 0.224, 0.225])
NORMALISED = {"white": F(255), "mean": MEAN.astype(F), "spread": SPREAD.astype(F)}
NORMALISED |= {"scale": (1 / 255 / SPREAD).astype(F), "shift": (-MEAN / SPREAD).astype(F)}
ANGLES = 2 * np.pi / 8 * np.outer(np.arange(8), np.arange(8))
COSINES, SINES = np.cos(ANGLES).astype(F), -np.sin(ANGLES).astype(F)
DIFFERENT: dict[str, Pair] = {
    "NaN before TopK": cleaned(TOP, "v, i = TopK({}, two)", FIVE),
    "the other choice": cleaned(TOP, "v, i = TopK({}, two)", FIVE, KEPT_NAN),
    "NaN before Unique": cleaned("float[N] x => float[M] y", "y = Unique({})", FIVE[0]),
    "NaN before QuantizeLinear": cleaned(
        QUANTIZED, "y = QuantizeLinear({}, step, off)", FIVE, "n = IsNaN(x) w = Where(n, ten, x) "
    ),
    "infinities before a quantized range": cleaned(
        "float[N, 5] x => uint8[N, 5] y, float s, uint8 z",
        "y, s, z = DynamicQuantizeLinear({})",
        np.array([[1, INF, 3, 2, 5]], F),
        NO_INF,
    ),
    "infinities of a picture": cleaned(
        "float[1, 1, 4, 4] x => float[1, 1, 2, 2] y",
        "y = RoiAlign<output_height = 2, output_width = 2>({}, boxes, image)",
        PICTURE,
        NO_INF,
    ),
    "the largest scale": Pair(
        "float[N, 5] x, float s => uint8[N, 5] y",
        "m = Min(s, ten) y = QuantizeLinear(x, m, off)",
        "y = QuantizeLinear(x, s, off)",
        {"x": np.array([[1, 0.5, 300, 2, 5]], F), "s": F(50)},
        K,
    ),
    "the least scale": Pair(
        QUANTIZED,
        "a = Abs(x) m = ReduceMax<keepdims = 0>(a) s = Div(m, levels) t = Max(s, floor) y = QuantizeLinear(x, t, off)",
        "a = Abs(x) m = ReduceMax<keepdims = 0>(a) s = Div(m, levels) y = QuantizeLinear(x, s, off)",
        {"x": np.array([[1e-3, 5e-4, 3e-4, 2e-4, 0]], F)},
        K,
    ),
    "a product before a Mod": Pair(
        ROWS,
        "a = Mul(x, prime) m = Mod(a, five) y = Gather(table, m)",
        "c = Cast<to = 6>(x) a = Mul(c, prime32) m = Mod(a, five32) y = Gather(table, m)",
        {"x": np.array([1, 3_000_000_000])},
        K,
    ),
    "a Clip before a table": Pair(
        ROWS,
        "m = Clip(x, least, last) y = Gather(table, m)",
        "c = Cast<to = 6>(x) d = Cast<to = 7>(c) m = Clip(d, least, last) y = Gather(table, m)",
        {"x": np.array([1, 3_000_000_000])},
        K,
    ),
    **{
        f"the sign of a zero, {text}": Pair(
            "float[N] x => float[N] y",
            f"a = Mul(x, one) b = {text} y = Reciprocal(b)",
            f"a = Add(x, zero) b = {text} y = Reciprocal(b)",
            {"x": np.array([-0.0, 1], F)},
            K | {"one": F(1)},
        )
        for text in ("Sin(a)", "Tanh(a)", "Ceil(a)", "Max(a, low)", "Div(a, ten)")
    },
    "the sign of a zero, as text": Pair(
        "float[N] x => string[N] y",
        "a = Mul(x, one) y = Cast<to = 8>(a)",
        "a = Add(x, zero) y = Cast<to = 8>(a)",
        {"x": np.array([-0.0, 1], F)},
        K | {"one": F(1)},
    ),
}
# Lengths, places, shifts, fractions, loops, foreign operators and exponentials behind what limits them.
K |= {
    "three": np.int32([3]),
    "three64": np.int64([3]),
    "bits": np.uint8(3),
    "forty": np.int64(40),
    "seven": np.int64(7),
}
K |= {
    "weights": np.ones((1, 4, 2), F),
    "back": np.ones((1, 4, 1), F),
    "cos": np.cos(np.arange(16, dtype=F)).reshape(8, 2),
}
K |= {"sin": np.sin(np.arange(16, dtype=F)).reshape(8, 2), "one": F(1), "end": F(5), "yes": np.bool_(True)}
K |= {"power": F(np.exp(20.0)), "twenty": F(20), "half": F(0.5), "nothing": np.int64(0), "least8": np.int8(-127)}
K |= {"zero8": np.int8(0), "fours": np.int64(4), "two0": np.int64(2), "unit": np.int64(1)}
STEPS = np.arange(10, dtype=F).reshape(5, 1, 2)


def limited(signature: str, text: str, limit: str, name: str, witness: dict[str, Any], opset: int = 18) -> Pair:
    """Return two models of which the first one limits an input."""
    before = f"m = {limit} " + text.replace("INPUT", "m")
    return Pair(signature, before, text.replace("INPUT", name), witness, K, opset=opset)


DIFFERENT |= {
    "lengths of a reversal": limited(
        "float[5, 1, 2] x, int64[1] l => float[5, 1, 2] y",
        "y = ReverseSequence(x, INPUT)",
        "Min(l, three64)",
        "l",
        {"x": STEPS, "l": [5]},
    ),
    "lengths of a recurrence": limited(
        "float[5, 1, 2] x, int32[1] l => float[5, 1, 1, 1] y",
        "y = LSTM<hidden_size = 1>(x, weights, back, , INPUT)",
        "Min(l, three)",
        "l",
        {"x": STEPS, "l": [5]},
    ),
    "places that are written": limited(
        "float[8] x, int64[1, 1] i, float[1] u => float[8] y",
        "y = ScatterND(x, INPUT, u)",
        "Min(i, fours)",
        "i",
        {"x": np.zeros(8), "i": [[7]], "u": [1]},
    ),
    "places along an axis": limited(
        "float[2, 6] x, int64[2, 1] i, float[2, 1] u => float[2, 6] y",
        "y = ScatterElements<axis = 1>(x, INPUT, u)",
        "Min(i, fours)",
        "i",
        {"x": np.zeros((2, 6)), "i": [[5], [1]], "u": [[1], [2]]},
    ),
    "a shift of bits": limited(
        "uint8[N] x, uint8[N] s => uint8[N] y",
        'y = BitShift<direction = "RIGHT">(x, INPUT)',
        "Min(s, bits)",
        "s",
        {"x": [255], "s": [5]},
    ),
    "positions of a rotation": limited(
        "float[1, 2, 3, 4] x, int64[1, 3] p => float[1, 2, 3, 4] y",
        "y = RotaryEmbedding(x, cos, sin, INPUT)",
        "Min(p, fours)",
        "p",
        {"x": np.ones((1, 2, 3, 4)), "p": [[1, 2, 7]]},
        opset=23,
    ),
    "a row behind a division": Pair(
        "int64[N] x => float[N, 2] y",
        "q = Div(x, forty) y = Gather(table, q)",
        "q = Div(x, forty) m = Min(q, three64) y = Gather(table, m)",
        {"x": [199, 2]},
        K,
    ),
    "the end of a Range": Pair(
        "float l => float[M] y",
        "y = Range(zero, l, one)",
        "f = Floor(l) y = Range(zero, f, one)",
        {"l": 2.5},
        K,
    ),
    "the scales of a Resize": limited(
        "float[1, 1, 6, 6] x, float[4] s => float[A, B, C, D] y",
        'y = Resize<mode = "nearest">(x, , INPUT)',
        "Max(s, one)",
        "s",
        {"x": np.arange(36).reshape(1, 1, 6, 6), "s": [1, 1, 0.5, 0.5]},
    ),
    "a loop that counts": Pair(
        "float[N] x => float[N] y",
        "y, e = Loop(, yes, x, nothing) <body = l (int64 i, bool c, float[N] s, int64 j) => "
        "(bool d, float[N] r, int64 m) { p = Mul(s, half) r = Max(p, zero) m = Add(j, unit) d = Less(m, two0) }>",
        "a = Mul(x, half) g = Greater(a, zero) b = Where(g, a, zero) c = Mul(b, half) h = Greater(c, zero) "
        "y = Where(h, c, zero)",
        {"x": [NAN, 1]},
        K,
    ),
    "an exponential of a shift": Pair(
        "float[N] x => float[N] y",
        "a = Sub(x, twenty) y = Exp(a)",
        "b = Exp(x) y = Div(b, power)",
        {"x": [95, 1]},
        K,
    ),
    "columns of other sizes": Pair(
        "float[1, 4] x => float[1, 3] y",
        "y = MatMul(x, columns)",
        "a = MatMul(x, columns) y = Add(a, none)",
        {"x": [[1, 1, 1, 1]]},
        K | {"columns": np.array([[1e6, 1, 1]] * 4, F), "none": np.zeros(3, F)},
        {"columns": np.array([[1e6, 1, 0.9]] * 4, F)},
    ),
}
EQUAL = {
    # What is left where numbers cancel is what constants of float32 are rounded by.
    "images, normalised": Pair(
        "float[N, 3] x => float[N, 3] y",
        "a = Div(x, white) b = Sub(a, mean) y = Div(b, spread)",
        "a = Mul(x, scale) y = Add(a, shift)",
        {},
        NORMALISED,
    ),
    "a matrix that centres": Pair(
        "float[N, 3] x => float[N, 3] y",
        "m = ReduceMean(x, axis) y = Sub(x, m)",
        "y = MatMul(x, centre)",
        {},
        {"axis": np.int64([1]), "centre": (np.eye(3) - 1 / 3).astype(F)},
    ),
    "a Fourier transform": Pair(
        "float[1, 8, 1] x => float[1, 8, 2] y",
        "y = DFT(x, , axis)",
        "a = Squeeze(x, two) c = MatMul(a, cosines) s = MatMul(a, sines) r = Unsqueeze(c, two) i = Unsqueeze(s, two) "
        "y = Concat<axis = 2>(r, i)",
        {},
        {
            "axis": np.int64(1),
            "two": np.int64([2]),
            "cosines": np.cos(ANGLES).astype(F),
            "sines": -np.sin(ANGLES).astype(F),
        },
        opset=20,
    ),
    "LRN, written out": Pair(
        "float[N, 4, H, W] x => float[N, 4, H, W] y",
        "y = LRN<size = 3, alpha = 0.3, beta = 0.75, bias = 1.0>(x)",
        "s = Mul(x, x) u = Unsqueeze(s, axis) p = Pad(u, ends) a = AveragePool<kernel_shape = [3, 1, 1]>(p) "
        "b = Squeeze(a, axis) m = Mul(b, alpha) c = Add(m, bias) d = Pow(c, beta) y = Div(x, d)",
        {},
        {
            "axis": np.int64([1]),
            "ends": np.int64([0, 0, 1, 0, 0, 0, 0, 1, 0, 0]),
            "alpha": F(0.3),
            "bias": F(1),
            "beta": F(0.75),
        },
    ),
    # The specification does not say where NaN stands, nor what it becomes.
    "NaN in TopK": Pair(TOP, "v, i = TopK(x, two)", NO_NAN + "v, i = TopK(w, two)", {}, K),
    "NaN quantized": Pair(
        QUANTIZED, "y = QuantizeLinear(x, step, off)", NO_NAN + "y = QuantizeLinear(w, step, off)", {}, K
    ),
    "NaN cleaned by both": Pair(TOP, NO_NAN + "v, i = TopK(w, two)", KEPT_NAN + "v, i = TopK(w, two)", {}, K),
    "positions of a table": Pair(ROWS, "y = Gather(table, x)", "m = Min(x, last) y = Gather(table, m)", {}, K),
    "a Mod of a Mod": Pair(
        ROWS, "m = Mod(x, five) y = Gather(table, m)", "a = Mod(x, five) m = Mod(a, five) y = Gather(table, m)", {}, K
    ),
    "the sign of a zero that nobody tells": Pair(
        "float[N] x => float[N] y",
        "a = Mul(x, one) y = Sin(a)",
        "a = Add(x, zero) y = Sin(a)",
        {},
        K | {"one": F(1)},
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_the_models_differ(name: str) -> None:
    show_difference(DIFFERENT[name])


@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.sample(6)
def test_the_difference_is_found(name: str) -> None:
    find_difference(DIFFERENT[name])


@pytest.mark.parametrize("name", EQUAL)
def test_no_difference_is_told(name: str) -> None:
    found = splitgraph.verify(*EQUAL[name].models(), timeout=60)
    assert found.verdict == "equal", found
