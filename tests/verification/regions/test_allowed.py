"""What the first model cleans, limits or divides by takes any number; what means nothing to it is no difference."""

from __future__ import annotations

import numpy as np
import pytest

import splitgraph

from .model_pairs import Pair, find_difference, show_difference

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


DIFFERENT = {
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
EQUAL = {
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
