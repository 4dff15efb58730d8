"""Where rounding alone decides on which side of a limit a number is, and what is a difference all the same."""

from __future__ import annotations

import numpy as np
import pytest

import splitgraph

from ..model_pairs import Pair, find_difference

F, F16 = np.float32, np.float16
LINE, THREE = "float[N] x => float[N] y", "float[N] x, float[N] v, float[N] u => float[N] y"
TWO, FOUR = "float[N] x, float[N] v => float[N] y", "float[N, 4] x, float[N, 4] v => float[N, 1] y"
K = {"zero": F(0), "one": F(1), "half": F(0.5), "six": F(6), "third": F(0.3), "far": F(2.0**17), "k": np.int64([1])}
K |= {"tiny": F(1e-7), "less": F(2e-8)}
K |= {"n": F16(0.5), "huge": F(3e38)}
PRODUCT = "s = Add(v, u) p = Mul(x, s) ", "q = Mul(x, v) r = Mul(x, u) o = Add(q, r) "


def decided(before: str, after: str = "", parts: tuple[str, str] = PRODUCT, signature: str = THREE) -> Pair:
    """Return two models that compute one number in two ways, p and o, and decide by it."""
    return Pair(
        signature, parts[0] + before, parts[1] + (after or before).replace("(p", "(o").replace(" p", " o"), {}, K
    )


SQUARES = "d = Sub(x, v) s = Add(x, v) p = Mul(d, s) ", "q = Mul(x, x) r = Mul(v, v) o = Sub(q, r) "
ORDERS = "s = Add(x, v) p = Add(s, u) ", "s = Add(v, u) o = Add(x, s) "
MEANS = "d = Sub(x, v) p = ReduceMean(d, k) ", "q = ReduceMean(x, k) r = ReduceMean(v, k) o = Sub(q, r) "
STEP = "g = Greater(p, zero) y = Cast<to = 1>(g)"
EQUAL = {
    "a sum": decided("y = Neg(p)"),
    "Relu": decided("y = Relu(p)"),
    "Sign": decided("y = Sign(p)"),
    "Greater": decided(STEP),
    "GreaterOrEqual": decided("g = GreaterOrEqual(p, one) y = Cast<to = 1>(g)"),
    "Less as Greater": decided("g = Greater(p, half) y = Cast<to = 1>(g)", "g = Less(half, p) y = Cast<to = 1>(g)"),
    "Floor": decided("y = Floor(p)"),
    "Round": decided("y = Round(p)"),
    "Clip": decided("y = Clip(p, zero, six)"),
    "Cast": decided("c = Cast<to = 7>(p) y = Cast<to = 1>(c)"),
    "Where": decided("g = Greater(p, one) y = Where(g, x, v)"),
    "a difference of squares": decided("y = Sign(p)", "", SQUARES, TWO),
    "sums in another order": decided("y = Sign(p)", "", ORDERS),
    "the limit of a sum": decided("g = Greater(p, third) y = Cast<to = 1>(g)", "", ORDERS),
    "ReduceMean": decided("y = Sign(p)", "", MEANS, FOUR),
}
HALVES = "h = Cast<to = 10>(v) g = Greater({}, half) i = Greater(h, n) j = And(g, i) y = Cast<to = 1>(j)"
DIFFERENT = {
    "Greater and GreaterOrEqual": Pair(
        LINE, "g = Greater(x, half) y = Cast<to = 1>(g)", "g = GreaterOrEqual(x, half) y = Cast<to = 1>(g)", {}, K
    ),
    "of a sum of products": decided(STEP, STEP.replace("Greater", "GreaterOrEqual")),
    "two limits, exchanged": Pair(
        LINE,
        "g = Greater(x, half) h = GreaterOrEqual(x, one) a = Xor(g, h) y = Cast<to = 1>(a)",
        "g = GreaterOrEqual(x, half) h = Greater(x, one) a = Xor(g, h) y = Cast<to = 1>(a)",
        {},
        K,
    ),
    "Floor a little above": Pair(LINE, "y = Floor(x)", "a = Add(x, tiny) y = Floor(a)", {}, K),
    "a limit between two numbers": Pair(
        LINE,
        "g = GreaterOrEqual(x, half) y = Cast<to = 1>(g)",
        "a = Add(x, less) g = GreaterOrEqual(a, half) y = Cast<to = 1>(g)",
        {},
        K,
    ),
    "Round of halves": Pair(LINE, "y = Round(x)", "a = Add(x, half) y = Floor(a)", {}, K),
    "Floor and Ceil": decided("y = Floor(p)", "y = Ceil(p)"),
    "the first and the last": Pair(
        "float[N, 4] x => int64[N, 1] y", "y = ArgMax<axis = 1>(x)", "y = ArgMax<axis = 1, select_last_index = 1>(x)"
    ),
    "digits that are lost": Pair(LINE, "y = Sign(x)", "a = Add(x, far) b = Sub(a, far) y = Sign(b)", {}, K),
    "digits that are lost, first": Pair(LINE, "a = Add(x, far) b = Sub(a, far) y = Sign(b)", "y = Sign(x)", {}, K),
    "rounded to float16 before": Pair(
        TWO,
        HALVES.format("x"),
        HALVES.replace("h =", "f = Cast<to = 10>(x) e = Cast<to = 1>(f) h =").format("e"),
        {},
        K,
    ),
    "NaN that is asked about": decided("c = IsNaN(p) y = Where(c, one, p)"),
    "infinity that is cut": decided("y = Relu(p)", "y = Clip(p, zero, huge)"),
    "infinity less itself": Pair(THREE, "z = Sub(x, x) s = Add(z, v) y = Relu(s)", "y = Relu(v)", {}, K),
    "infinity times 0": Pair(
        THREE, "z = Mul(x, zero) s = Add(z, v) y = Sign(s)", "s = Add(v, zero) y = Sign(s)", {}, K
    ),
    "another sum": decided("y = Sign(p)", "", (PRODUCT[0], PRODUCT[1].replace("Add", "Sub"))),
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # the evaluator computes with infinities as NumPy does
@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.sample(6)
def test_what_rounding_decides_is_no_difference(name: str) -> None:
    models = EQUAL[name].models()
    for one, other in (models, models[::-1]):
        found = splitgraph.verify(one, other, timeout=60)
        assert found.verdict == "equal", found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.sample(8)
def test_what_the_models_decide_is_one(name: str) -> None:
    pair = DIFFERENT[name]
    find_difference(pair)
    find_difference(pair._replace(before=pair.after, after=pair.before))
