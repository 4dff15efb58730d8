"""A changed node in a body is run alone: its own numbers show a difference that numbers at the border do not reach."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import splitgraph

from ..model_pairs import Pair, find_difference

F, I64 = np.float32, np.int64
K: dict[str, Any] = {"n": I64(2), "t": np.bool_(True), "half": F(0.5), "z": F(0), "k": F(3.7), "c": F(11.3)}
K |= {"one": F(1), "lim": F(7.25), "m": I64(3), "two": I64(2)}

# What the body computes before: numbers at its border do not reach the ties behind it.
_HEAD = "h = Mul({s}, k) g = Tanh(h) b = Mul(g, c) "
# The changed node: q is computed from b.
CHANGES: dict[str, tuple[str, str]] = {
    "ties": ("q = Round(b)", "a = Add(b, half) q = Floor(a)"),
    "a threshold": ("w = Greater(b, lim) q = Where(w, b, z)", "w = GreaterOrEqual(b, lim) q = Where(w, b, z)"),
    "zeros": ("q = Sign(b)", "w = Less(b, z) v = Where(w, z, one) q = Sub(v, z)"),
}
SIGNATURE = "float[N] x, bool p => float[N] y"
EMPTY = "float[N] e"


def in_if(text: str) -> str:
    head = _HEAD.format(s="x")
    return (
        f"y = If(p) <then_branch = t1 () => (float[N] r1) {{ {head} {text} r1 = Identity(q) }}, "
        "else_branch = e1 () => (float[N] r2) { r2 = Neg(x) }>"
    )


def in_else(text: str) -> str:
    head = _HEAD.format(s="x")
    return (
        "y = If(p) <then_branch = t1 () => (float[N] r2) { r2 = Neg(x) }, "
        f"else_branch = e1 () => (float[N] r1) {{ {head} {text} r1 = Identity(q) }}>"
    )


def in_loop(text: str) -> str:
    head = _HEAD.format(s="s")
    return (
        "y = Loop(n, t, x) <body = l (int64 i, bool on, float[N] s) => (bool go, float[N] r) "
        f"{{ go = Identity(on) {head} {text} r = Identity(q) }}>"
    )


def scanned_by_loop(text: str) -> str:
    head = _HEAD.format(s="x")
    return (
        "ys = Loop(n, t, ) <body = l (int64 i, bool on) => (bool go, float[N] r) "
        f"{{ go = Identity(on) {head} {text} r = Identity(q) }}> y = ReduceMax<keepdims = 0>(ys, axes)"
    )


def in_scan(text: str) -> str:
    head = _HEAD.format(s="s")
    return (
        f"y = Scan<num_scan_inputs = 1>(x) <body = l (float s) => (float r) {{ {head} {text} r = Identity(q) }}>"
    ).replace("y = Scan<num_scan_inputs = 1>(x) <", "y = Scan(x) <num_scan_inputs = 1, ")


def nested(text: str) -> str:
    head = _HEAD.format(s="s")
    return (
        "y = Loop(n, t, x) <body = l (int64 i, bool on, float[N] s) => (bool go, float[N] r) { go = Identity(on) "
        f"r = If(p) <then_branch = t1 () => (float[N] r1) {{ {head} {text} r1 = Identity(q) }}, "
        "else_branch = e1 () => (float[N] r2) { r2 = Neg(s) }> }>"
    )


BODIES = {"If": in_if, "else": in_else, "Loop": in_loop, "scan output of Loop": scanned_by_loop, "Scan": in_scan}
BODIES |= {"If in Loop": nested}
CONSTANTS = K | {"axes": I64([0])}
FUNCTION = (
    '<opset_import: ["": 18], domain: "local"> f (s) => (q) {{ k = Constant<value = float {{3.7}}>() '
    "c = Constant<value = float {{11.3}}>() half = Constant<value = float {{0.5}}>() "
    "z = Constant<value = float {{0}}>() "
    "one = Constant<value = float {{1}}>() lim = Constant<value = float {{7.25}}>() {head} {text} }}"
)


def pair(body: str, before: str, after: str) -> Pair:
    if body == "function":
        head = _HEAD.format(s="s")
        texts = tuple(FUNCTION.format(head=head, text=text) for text in (before, after))
        return Pair("float[N] x => float[N] y", "y = local.f(x)", "y = local.f(x)", functions=(texts[0], texts[1]))
    make = BODIES[body]
    return Pair(SIGNATURE, make(before), make(after), constants=CONSTANTS)


CASES = [(body, change) for body in (*BODIES, "function") for change in CHANGES]
EQUAL = {
    "the same": ("q = Relu(b)", "q = Relu(b)"),
    "renamed": ("v = Neg(b) q = Neg(v)", "w = Neg(b) q = Neg(w)"),
    "reordered": ("u = Neg(b) v = Abs(b) q = Add(u, v)", "v = Abs(b) u = Neg(b) q = Add(u, v)"),
    "rewritten": ("q = Relu(b)", "q = Max(b, z)"),
    "computed twice": ("u = Sin(b) v = Sin(b) q = Add(u, v)", "u = Sin(b) q = Add(u, u)"),
    "what Relu passes": ("u = Relu(b) q = Abs(u)", "u = Relu(b) q = Identity(u)"),
    "a dead node": ("u = Sin(b) q = Neg(b)", "q = Neg(b)"),
}


@pytest.mark.parametrize(("body", "change"), CASES)
@pytest.mark.sample(7)
def test_a_difference_in_a_body_is_found(body: str, change: str) -> None:
    before, after = CHANGES[change]
    find_difference(pair(body, before, after))
    find_difference(pair(body, after, before))


@pytest.mark.parametrize("body", [*BODIES, "function"])
@pytest.mark.parametrize("name", EQUAL)
@pytest.mark.sample(14)
def test_equal_bodies_raise_no_alarm(body: str, name: str) -> None:
    found = splitgraph.verify(*pair(body, *EQUAL[name]).models())
    assert found.verdict == "equal", found


_LOOP = (
    "{out} = Loop(n, t, {given}) <body = l (int64 i, bool on, {states}) => (bool go, {results}) "
    "{{ go = Identity(on) {text} }}>"
)
_TWO = {"states": "float[N] s, float[N] v", "results": "float[N] r, float[N] q"}
_TURNED = {"states": "float[N] v, float[N] s", "results": "float[N] q, float[N] r"}
_ONE = {"given": "x", "states": "float[N] s", "results": "float[N] r"}
_STATES = "r = Neg(v) q = Sin(s)"
_DEAD = "d = Add(s, u) e = Neg(d) r = Neg(s)"
# What only dead nodes of a body read is not read; states of a loop have no order.
SAME: dict[str, tuple[str, str, str]] = {
    "other values for dead nodes": (
        "float[N] y",
        "u = Sin(x) " + _LOOP.format(out="y", text=_DEAD, **_ONE),
        "u = Cos(x) " + _LOOP.format(out="y", text=_DEAD, **_ONE),
    ),
    "no values for dead nodes": (
        "float[N] y",
        "u = Sin(x) " + _LOOP.format(out="y", text=_DEAD, **_ONE),
        _LOOP.format(out="y", text="r = Neg(s)", **_ONE),
    ),
    "a dead branch in a branch": (
        "float[N] y",
        "u = Sin(x) y = If(p) <then_branch = a () => (float[N] r1) { d = If(p) <then_branch = c () => (float[N] r3) "
        "{ r3 = Neg(u) }, else_branch = e () => (float[N] r4) { r4 = Abs(u) }> r1 = Neg(x) }, "
        "else_branch = b () => (float[N] r2) { r2 = Abs(x) }>",
        "y = If(p) <then_branch = a () => (float[N] r1) { r1 = Neg(x) }, "
        "else_branch = b () => (float[N] r2) { r2 = Abs(x) }>",
    ),
    "states in another order": (
        "float[N] y, float[N] w",
        _LOOP.format(out="y, w", given="x, x", text=_STATES, **_TWO),
        _LOOP.format(out="w, y", given="x, x", text=_STATES, **_TURNED),
    ),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", SAME)
def test_what_nobody_reads_in_a_body_raises_no_alarm(name: str) -> None:
    outputs, before, after = SAME[name]
    models = Pair(f"float[N] x, bool p => {outputs}", before, after, constants=CONSTANTS).models()
    for one, other in (models, models[::-1]):
        found = splitgraph.verify(one, other)
        assert found.verdict == "equal", found


@pytest.mark.usefixtures("in_process")
def test_states_that_take_each_others_place_are_different() -> None:
    texts = (
        _LOOP.replace("n, t", "m, t").format(out=out, given="x, x", text=_STATES, **_TWO) for out in ("y, w", "w, y")
    )
    find_difference(Pair("float[N] x => float[N] y, float[N] w", *texts, constants=CONSTANTS))


@pytest.mark.parametrize("name", ["split_in_scan", "branched_gate.opset18.dynamo"])
def test_sizes_that_are_known_around_a_body_stay(name: str) -> None:
    """The lengths that a conversion writes hold for the sizes that a body can have."""
    model = Path(__file__).parents[4] / "models" / f"{name}.onnx"
    rewrite = splitgraph.convert(model, "variadic-split", verify=True)
    assert rewrite.verification is not None
    assert rewrite.verification.verdict == "equal", rewrite.verification
