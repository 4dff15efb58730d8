"""A region that differs only on inner values that the model cannot produce is equal; near misses have a witness."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

import splitgraph
from splitgraph.verification.regions.drawing.draw import is_fully_drawn
from splitgraph.verification.regions.drawing.jumps import at_jumps
from splitgraph.verification.values import Value
from splitgraph.verification.verdict.second_look import SecondLook
from splitgraph.verification.verification import Region

from ..regions.model_pairs import Pair, find_difference, show_difference
from ..small_models import parsed

F, I64 = np.float32, np.int64
WEIGHTS = np.random.default_rng(0).standard_normal((4, 4)).astype(F)
K = {
    "w": WEIGHTS,
    "zero": F(0),
    "one": F(1),
    "half": F(0.5),
    "near": F(0.4),
    "far": F(-0.5),
    "k": I64([1]),
    "two": I64([2]),
    "all": I64([4]),
    "start": I64([0]),
    "whole": I64(1),
    "power": F(2),
    "most": F(1e4),
    "low": F(3.1),
    "high": F(3.2),
    "scale": F(0.1),
    "z": np.uint8(128),
}
FOUR, MORE = "float[N, 4] x => float[N, 4] y", "float[N, 4] x => float[N, 4] y, float[N, 4] o"
ONE = "float[N, 4] x => float[N, 1] y, float[N, 4] v"
# A node that both models have keeps the values in front of a region from being those of the input.
M = "m = MatMul(x, w) "
SHIFTED = M + "r = ReduceMax(m, k) d = Sub(m, r) "
CENTRED = M + "a = ReduceMean(m, k) d = Sub(m, a) c = ReduceMax(d, k) "
SORTED = M + "v, i = TopK(m, all) "
QUANTIZED = M + "q = QuantizeLinear(m, scale, z) d = DequantizeLinear(q, scale, z) "


def behind(kept: str, before: str, after: str, signature: str = FOUR, **witness: np.ndarray) -> Pair:
    """Return a pair of models that both begin with some nodes."""
    return Pair(signature, kept + before, kept + after, witness, K)


# The elements of one value depend on each other, or two values on a third one.
EQUAL: dict[str, Pair] = {
    "a Sigmoid within 0 and 1": behind(M + "s = Sigmoid(m) ", "c = Clip(s, zero, one) y = Tanh(c)", "y = Tanh(s)"),
    "a Softmax within 0 and 1": behind(M + "s = Softmax(m) ", "c = Clip(s, zero, one) y = Tanh(c)", "y = Tanh(s)"),
    "a Softmax by its sum": behind(
        M + "s = Softmax(m) ", "r = ReduceSum(s, k) d = Div(s, r) y = Tanh(d)", "y = Tanh(s)"
    ),
    "below the maximum": behind(SHIFTED, "c = Min(d, zero) y = Exp(c)", "y = Exp(d)"),
    "the first of sorted values": behind(
        SORTED, "r = ReduceMax(v, k) y = Exp(r)", "r = Slice(v, start, k, k) y = Exp(r)", ONE
    ),
    "a value and its negative": behind(
        M + "n = Neg(m) o = Exp(n) ", "r = Max(m, n) y = Tanh(r)", "r = Abs(n) y = Tanh(r)", MORE
    ),
    "the root of a square": behind(
        M + "n = Mul(m, m) o = Exp(n) ", "r = Sqrt(n) y = Tanh(r)", "r = Abs(m) y = Tanh(r)", MORE
    ),
    "rounded twice": behind(M + "f = Floor(m) ", "r = Round(f) y = Tanh(r)", "y = Tanh(f)"),
    "the square of a sign": behind(M + "f = Sign(m) ", "r = Mul(f, f) y = Tanh(r)", "r = Abs(f) y = Tanh(r)"),
    "a positive number": behind(M + "f = Exp(m) ", "r = Abs(f) y = Tanh(r)", "y = Tanh(f)"),
    "quantized twice": behind(
        QUANTIZED,
        "p = QuantizeLinear(d, scale, z) e = DequantizeLinear(p, scale, z) y = Tanh(e)",
        "y = Tanh(d)",
    ),
    "a position": behind(
        M + "a = ArgMax<axis = 1>(m) ",
        "b = Abs(a) y = Add(b, whole)",
        "y = Add(a, whole)",
        "float[N, 4] x => int64[N, 1] y",
    ),
    "at least the mean": behind(CENTRED, "e = Max(c, zero) f = Sub(d, e) y = Exp(f)", "f = Sub(d, c) y = Exp(f)"),
}


def solved(*values: float) -> np.ndarray:
    """Return the row whose product with the weights is about this."""
    return np.linalg.solve(WEIGHTS.T.astype(np.float64), values).astype(F)[None]


ROW, BELOW = solved(2, -1, 0.5, 3), solved(-1, -2, -0.5, -3)
# The same where the model does produce such values.
DIFFERENT: dict[str, Pair] = {
    "a Sigmoid above a half": behind(M + "s = Sigmoid(m) ", "c = Clip(s, half, one) y = Tanh(c)", "y = Tanh(s)", x=ROW),
    "far below the maximum": behind(SHIFTED, "c = Max(d, far) y = Exp(c)", "y = Exp(d)", x=ROW),
    "the last of sorted values": behind(
        SORTED, "r = ReduceMin(v, k) y = Exp(r)", "r = Slice(v, start, k, k) y = Exp(r)", ONE, x=ROW
    ),
    "a value and its half": behind(
        M + "n = Mul(m, half) o = Exp(n) ", "r = Max(m, n) y = Tanh(r)", "r = Abs(m) y = Tanh(r)", MORE, x=BELOW
    ),
    "a number below 0": behind(M + "f = Elu(m) ", "r = Abs(f) y = Tanh(r)", "y = Tanh(f)", x=BELOW),
    "quantized by another step": behind(
        QUANTIZED, "p = QuantizeLinear(d, near, z) e = DequantizeLinear(p, near, z) y = Tanh(e)", "y = Tanh(d)", x=ROW
    ),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.sample(8)
def test_values_that_the_model_cannot_produce_show_nothing(name: str, is_turned: bool) -> None:
    models = EQUAL[name].models()
    found = splitgraph.verify(*(reversed(models) if is_turned else models))
    assert found.verdict == "equal", found.first_difference
    assert [note.code for note in found.diagnostics if note.severity != "info"] == []


@pytest.mark.usefixtures("in_process")
def test_what_was_different_is_said() -> None:
    found = splitgraph.verify(*EQUAL["below the maximum"].models())
    (note,) = (each for each in found.diagnostics if each.code == "SG515")
    assert "1 changed parts differ on inner values" in note.message
    assert "main/Min#3: y: at [0, 0] the first model gives 1.0" in note.message
    (region,) = found.regions
    assert region.verdict == "equal" and region.nodes_before == ("main/Min#3", "main/Exp#4")


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.sample(8)
def test_values_that_the_model_produces_are_different(name: str) -> None:
    find_difference(DIFFERENT[name])
    show_difference(DIFFERENT[name])


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("before", [M, M + "s = Sigmoid(m) ", M + "r = Relu(m) s = Mul(r, half) "])
def test_a_threshold_that_draws_of_inputs_do_not_reach_stays_different(before: str) -> None:
    value = "s" if "s =" in before else "m"
    ways = [f"y = {operator}({value}, near)" for operator in ("Greater", "GreaterOrEqual")]
    pair = behind(before, *ways, "float[N, 4] x => bool[N, 4] y")
    find_difference(pair)


GATES = {
    "a limit that nothing reaches": "s = Tanh(m) c = Greater(s, high) ",
    "two limits": "s = Sigmoid(m) a = Greater(s, half) b = Less(s, near) c = And(a, b) ",
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", GATES)
def test_a_condition_that_is_never_true_gives_no_verdict(name: str) -> None:
    kept = M + GATES[name] + "n = Neg(m) v = Where(c, n, half) "
    pair = behind(kept, "r = Abs(v) y = Tanh(r)", "y = Tanh(v)")
    assert splitgraph.verify(*pair.models()).verdict == "not-run"


@pytest.mark.usefixtures("in_process")
def test_a_window_is_met_where_its_limits_are() -> None:
    kept = M + "a = Greater(m, low) b = Less(m, high) c = And(a, b) n = Neg(m) v = Where(c, n, half) "
    find_difference(behind(kept, "r = Abs(v) y = Tanh(r)", "y = Tanh(v)"))


@pytest.mark.usefixtures("in_process")
def test_a_condition_that_is_true_and_false_gives_a_verdict() -> None:
    kept = M + "c = Greater(m, high) n = Abs(m) v = Where(c, n, half) "
    assert splitgraph.verify(*behind(kept, "r = Abs(v) y = Tanh(r)", "y = Tanh(v)").models()).verdict == "equal"


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(("rows", "verdict"), [(40, "equal"), (60, "not-run")])
def test_a_table_that_is_not_read_as_a_whole_gives_no_verdict(rows: int, verdict: str) -> None:
    table = np.rint(np.random.default_rng(1).standard_normal((rows, 4))).astype(F)
    ways = ("g = Gather(t, x) r = Floor(g) y = Tanh(r)", "g = Gather(t, x) y = Tanh(g)")
    found = splitgraph.verify(*(parsed("int64[N] x => float[N, 4] y", way, t=table) for way in ways))
    assert found.verdict == verdict
    said = "could not be drawn so that all kinds of values and conditions are met" in found.diagnostics[0].message
    assert said == (verdict == "not-run")


def test_loops_that_may_not_end_and_long_tables_are_not_fully_drawn() -> None:
    signature = "int64[N] x, float[60] u => float[N] y"
    assert is_fully_drawn([parsed(signature, "y = Gather(u, x)")])
    assert is_fully_drawn([parsed(signature, "y = Gather(t, x)", t=np.zeros(48, F))])
    assert not is_fully_drawn([parsed(signature, "y = Gather(t, x)", t=np.zeros(49, F))])


JOINED = {
    "equal": (Region("r", ("a", "b"), ("c",), 5, 0.0, "equal"), ["equal"]),
    "compared, and its difference not judged": (
        Region("r", ("a", "b"), ("c",), 5, 1e-7, "not-run", "there was no time to judge a difference"),
        ["not-run"],
    ),
    "never compared": (Region("r", ("a", "b"), ("c",), 0, None, "not-run", "it cannot run"), ["different"] * 2),
    "different": (Region("r", ("a", "b"), ("c",), 5, 1.0, "different", "y"), ["different"] * 2),
}


@pytest.mark.parametrize("name", JOINED)
def test_what_several_regions_are_as_one_counts(name: str) -> None:
    joined, expected = JOINED[name]
    parts = [Region(part, (part,), (part,), 5, 1.0, "different", "y") for part in "ab"]
    found = SimpleNamespace(joined=lambda regions: regions, through_sizes=lambda regions: ())
    border = SimpleNamespace(before="y")
    member = SimpleNamespace(region=SimpleNamespace(outputs=[border]), case=lambda: 0, is_noise=lambda: False)
    local = SimpleNamespace(found=found, members=[member for _ in parts])
    together = SimpleNamespace(members=[member], results=lambda: (joined,), losses=list)
    look = SecondLook(cast(Any, local), lambda region, models: cast(Any, together), lambda *_: True, [])
    assert [region.verdict for region in look.result(parts, is_equal=False, is_near=False)] == expected
    assert (look.different is None) == ("different" not in expected)


def _below(limit: float) -> np.ndarray:
    """Return inputs of the model around those at which three numbers are so far below the maximum."""
    row = solved(2, *[2 - limit] * 3)
    steps = np.random.default_rng(0).integers(-40, 40, (4000, 4))
    return (row + steps * np.spacing(np.abs(row))).astype(F)


# A value of one name is another one in each model, and its readers give the same.
D, E = "a = ReduceMean(m, k) d = Sub(m, a) ", "a = ReduceMean(m, k) d = Sub(a, m) "
READ = {
    "a square": (D + "y = Mul(d, d)", E + "y = Mul(d, d)"),
    "a power": (D + "y = Pow(d, power)", E + "y = Pow(d, power)"),
    "an even function": (D + "y = Cos(d)", E + "y = Cos(d)"),
    "the readers of a reader": (D + "e = Mul(d, half) y = Abs(e)", E + "e = Mul(d, half) y = Abs(e)"),
    "two readers": (D + "q = Abs(d) r = Mul(d, d) y = Add(q, r)", E + "q = Abs(d) r = Mul(d, d) y = Add(q, r)"),
    "a variance": (
        D + "q = Mul(d, d) v = ReduceMean(q, k) y = Sqrt(v)",
        E + "q = Mul(d, d) v = ReduceMean(q, k) y = Sqrt(v)",
    ),
    "another function": ("d = Neg(m) y = Abs(d)", "d = Identity(m) y = Abs(d)"),
    # Several values have other meanings at once.
    "a product of three": (
        "a, b = Split<axis = 1, num_outputs = 2>(m) p = Mul(a, a) q = Mul(b, b) d = Sub(p, q) t = Mul(a, b) "
        "e = Add(t, t) y = Concat<axis = 1>(d, e)",
        "a, b = Split<axis = 1, num_outputs = 2>(m) s = Add(a, b) u = Sub(a, b) d = Mul(s, u) q = Mul(s, s) "
        "p = Mul(a, a) r = Mul(b, b) t = Add(p, r) e = Sub(q, t) y = Concat<axis = 1>(d, e)",
    ),
    "a reader that changes, too": (D + "q = Mul(d, d) y = Sqrt(q)", E + "q = Mul(d, d) y = Pow(q, half)"),
}
READ_OTHERWISE = {
    "a limit that no value reaches": (
        D + "g = Less(d, most) y = Cast<to = 1>(g)",
        E + "g = Less(d, most) y = Cast<to = 1>(g)",
    ),
    "a sign": (D + "y = Relu(d)", E + "y = Relu(d)"),
    "one of two readers": (D + "q = Mul(d, d) y = Add(q, d)", E + "q = Mul(d, d) y = Add(q, d)"),
    "other weights": ("d = Mul(m, half) y = Sign(d)", "d = Mul(m, near) y = Sign(d)"),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", READ)
@pytest.mark.sample(3)
def test_a_value_whose_readers_give_the_same_is_no_difference(name: str) -> None:
    models = behind(M, *READ[name]).models()
    for one, other in (models, models[::-1]):
        found = splitgraph.verify(one, other)
        assert found.verdict == "equal", found.first_difference


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", READ_OTHERWISE)
@pytest.mark.sample(8)
def test_a_value_whose_readers_give_something_else_is_one(name: str) -> None:
    pair = behind(M, *READ_OTHERWISE[name])
    find_difference(pair)
    find_difference(pair._replace(before=pair.after, after=pair.before))


FLAGS = "float[N, 4] x => bool[N, 4] y"
# The first part is equal on all numbers below a maximum, and hides a limit that no draw of the inputs meets.
HIDDEN = {
    "a comparison": behind(SHIFTED, "c = Min(d, zero) y = Greater(c, far)", "y = GreaterOrEqual(d, far)", FLAGS),
    "a choice": behind(
        SHIFTED,
        "c = Min(d, zero) b = Greater(c, far) y = Where(b, c, zero)",
        "b = GreaterOrEqual(d, far) y = Where(b, d, zero)",
    ),
    "a rounding": behind(SHIFTED, "c = Min(d, zero) y = Round(c)", "a = Add(d, half) y = Floor(a)"),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", HIDDEN)
@pytest.mark.sample(8)
def test_a_limit_behind_values_that_depend_on_each_other_is_met(name: str) -> None:
    models = HIDDEN[name].models()
    for one, other in (models, models[::-1]):
        assert splitgraph.verify(one, other).verdict != "equal"
    near = {"x": np.concatenate([_below(0.5), _below(1.5)])}
    assert splitgraph.verify(*models, inputs=near).verdict == "different"


def test_jumps_are_found_between_neighbours() -> None:
    def step(inputs: Mapping[str, Value]) -> list[Value]:
        return [np.floor(np.asarray(inputs["x"]) / F(0.3)), np.asarray(inputs["x"]) * F(2)]

    ordinary = [{"x": np.array([low, 1.0], F), "n": np.array([3])} for low in (-0.1, 0.2, 0.4)]
    found = list(at_jumps(step, ordinary, np.random.default_rng(0)))
    pairs = [(np.asarray(one["x"]), np.asarray(other["x"])) for one, other in zip(found[::2], found[1::2], strict=True)]
    assert all(np.abs(one - other).max() <= np.spacing(F(1)) for one, other in pairs)
    limit = np.float32(0.3)
    assert any(sorted([one[0], other[0]]) == [np.nextafter(limit, F(0)), limit] for one, other in pairs)
    assert list(at_jumps(lambda inputs: [], ordinary, np.random.default_rng(0))) == []
