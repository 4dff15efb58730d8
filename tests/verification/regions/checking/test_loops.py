"""Differences in the body of a Loop, on all kinds of numbers, and loops that must not run without end."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import splitgraph

from ..model_pairs import Pair, find_difference, show_difference

F, I32, I64 = np.float32, np.int32, np.int64
K: dict[str, Any] = {"n": I64(2), "t": np.bool_(True), "one": I64(1), "cap": I64(2**40), "lo": I64(-(2**31))}
K |= {"hi": I64(2**31 - 1), "lim": F(1e9), "half": F(0.5), "z": F(0), "far": I64(2**62)}


def loop(body: str, dtype: str = "float", *, head: str = "n, t, x", on: str = "go = Identity(on)") -> str:
    """Return a Loop whose body computes the state r from the state s."""
    return f"y = Loop({head}) <body = l (int64 i, bool on, {dtype}[N] s) => (bool go, {dtype}[N] r) {{ {on} {body} }}>"


def pair(before: str, after: str, witness: Any, dtype: str = "float", inputs: str = "", **options: Any) -> Pair:
    given = witness if isinstance(witness, dict) else {"x": witness}
    signature = f"{dtype}[N] x{inputs} => {dtype}[N] y"
    return Pair(signature, loop(before, dtype, **options), loop(after, dtype, **options), given, K)


UV = {"x": [np.nan, 1], "u": [1, 2]}
DIFFERENT = {
    "Max and Where on NaN": pair(
        "g = Greater(s, u) r = Max(s, u)", "g = Greater(s, u) r = Where(g, s, u)", UV, inputs=", float[N] u"
    ),
    "Cast to int32 and to int64": pair(
        "q = Cast<to = 6>(s) r = Cast<to = 1>(q)", "q = Cast<to = 7>(s) r = Cast<to = 1>(q)", [1e10]
    ),
    "a cap at 2**40": pair("r = Add(s, one)", "q = Add(s, one) r = Min(q, cap)", [2**50], "int64"),
    "wrapping and saturation": pair(
        "r = Add(s, s)",
        "a = Cast<to = 7>(s) b = Add(a, a) d = Clip(b, lo, hi) r = Cast<to = 6>(d)",
        [2**30],
        "int32",
    ),
    "NaN to a number": pair("r = Identity(s)", "k = IsNaN(s) r = Where(k, z, s)", [np.nan, 1]),
    "a limit of 1e9": pair("r = Identity(s)", "r = Min(s, lim)", [1e18]),
    "ties": pair("r = Round(s)", "a = Add(s, half) r = Floor(a)", [0.5, 2.5]),
    "uint8 that wraps": pair(
        "r = Add(s, s)",
        "a = Cast<to = 6>(s) b = Add(a, a) m = Constant<value = int32 {255}>() d = Min(b, m) r = Cast<to = 2>(d)",
        [200],
        "uint8",
    ),
    "in a branch of a Loop": pair(
        "r = If(on) <then_branch = t1 () => (float[N] p) { p = Identity(s) }, else_branch = e1 () => (float[N] q) "
        "{ q = Neg(s) }>",
        "r = If(on) <then_branch = t1 () => (float[N] p) { p = Min(s, lim) }, else_branch = e1 () => (float[N] q) "
        "{ q = Neg(s) }>",
        [1e18],
    ),
    "a condition of constants": pair(
        "r = Identity(s)", "r = Min(s, lim)", [1e18], on="go = Constant<value = bool {1}>()"
    ),
}
EQUAL = {
    "a sum of two orders": pair("r = Add(s, half)", "r = Add(half, s)", []),
    "Relu and Max": pair("r = Relu(s)", "r = Max(s, z)", []),
    "positions in the state": pair(
        "q = Constant<value = float[4] {1.0, 2.0, 3.0, 4.0}>() g = Gather(q, s) f = Cast<to = 7>(g) r = Sub(f, one)",
        "q = Constant<value = float[4] {1.0, 2.0, 3.0, 4.0}>() g = Gather(q, s) f = Cast<to = 7>(g) h = Neg(one) "
        "r = Add(f, h)",
        [],
        "int64",
    ),
}
WITHOUT_END = {
    "no number of iterations": {"head": ", t, x", "on": "m = ReduceMax<keepdims = 0>(s) go = Less(m, lim)"},
    "very many iterations": {"head": "far, t, x", "on": "m = ReduceMax<keepdims = 0>(s) go = Less(m, lim)"},
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_a_difference_in_a_loop_is_found(name: str) -> None:
    show_difference(DIFFERENT[name])
    find_difference(DIFFERENT[name])


@pytest.mark.parametrize("name", EQUAL)
def test_equal_loops_raise_no_alarm(name: str) -> None:
    found = splitgraph.verify(*EQUAL[name].models())
    assert found.verdict == "equal", found


@pytest.mark.parametrize("name", WITHOUT_END)
def test_a_loop_that_its_numbers_end(name: str) -> None:
    # The numbers grow from any start to the limit; from an infinite one below 0, and without elements, they never do.
    growing = "q = Max(s, z) w = Add(q, q) r = Add({}, {})"
    models = pair(growing.format("w", "lim"), growing.format("lim", "w"), [], **WITHOUT_END[name])
    fixed = models._replace(
        **{part: getattr(models, part).replace("[N]", "[3]") for part in ("signature", "before", "after")}
    )
    found = splitgraph.verify(*fixed.models())
    assert found.verdict == "equal", found


@pytest.mark.parametrize("divisor", ["z", "d"])
def test_a_body_reads_initializers_where_these_are_inputs(divisor: str) -> None:
    # Below opset 9 models have IR version 3; what Mod becomes has a Loop that reads a table.
    node = f"y = Mod<fmod = 1>(x, {divisor})"
    signature = "float[2, 3] x, float[2, 3] z => float[2, 3] y"
    before, _ = Pair(signature, node, node, constants={"d": F([2, 3, 4])}, opset=13).models()
    found = splitgraph.convert(before, opset=8, verify=True).verification
    assert found is not None
    assert [region.cases > 0 for region in found.regions] == [True]
