"""Lengths beside parts of themselves: differences, shifts and paddings, and bodies of loops, against numpy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import splitgraph

Array = Any
# Lengths that the tool did not choose.
LENGTHS = (4, 5, 7, 9, 14)
HEAD = '<ir_version: 8, opset_import: ["": 17]> g (float[1, 4, 8] x) => (float[?, ?, ?] y)'


def _weights(**lists: list[int]) -> str:
    return ", ".join(f"int64[{len(items)}] {name} = {{{', '.join(map(str, items))}}}" for name, items in lists.items())


def _model(weights: str, nodes: str) -> ModelProto:
    made = parser.parse_model(f"{HEAD} <{weights}> {{ {nodes} }}")
    for name, array in (("zero", np.zeros((1, 4, 1))), ("ones", np.ones((4, 1, 3)))):
        made.graph.initializer.append(numpy_helper.from_array(array.astype(np.float32), name))
    return made


def _slices(nodes: str, **bounds: list[int]) -> ModelProto:
    return _model(_weights(a=[2], **bounds), nodes)


def _loop(node: str, **targets: list[int]) -> ModelProto:
    """Three rounds, each with a Reshape to `s`, the node from r to q, and a Reshape to `u`."""
    body = f"m = Identity (k) r = Reshape (v, s) {node} w = Reshape (q, u)"
    carried = "int64 i, bool k, float[1, 4, 8] v) => (bool m, float[1, 4, 8] w"
    nodes = f"y = Loop (n, t, x) <body = b ({carried}) <{_weights(**targets)}> {{ {body} }}>"
    return _model("bool t = {1}, int64 n = {3}", nodes)


def _softmax(x: Array) -> Array:
    return np.exp(x) / np.exp(x).sum(-1, keepdims=True)


def _padded(x: Array) -> Array:
    return np.pad(x, ((0, 0), (0, 0), (1, 1)))


def _summed(x: Array) -> Array:
    return x[..., :-2] + x[..., 1:-1] + x[..., 2:]


def _swapped(x: Array) -> Array:
    return x.reshape(1, 2, 2, -1).swapaxes(1, 2).reshape(1, 4, -1)


PAIR = "p = Slice (x, s, e, a) q = Slice (x, z, f, a) y = Sub (p, q)"
WINDOW = "p = Slice (x, s, e, a) q = Conv <kernel_shape = [3], group = 4> (x, ones) y = Sub (p, q)"
PADDED = "c = Pad (x, pads) q = Slice (c, s, e, a) y = Add (x, q)"
BEHIND = "q = Slice (x, s, e, a) k = Concat <axis = 2>"
PADS = [0, 0, 1, 0, 0, 1]
FOLLOWING: dict[str, tuple[ModelProto, Callable[[Array], Array]]] = {
    "differences": (_slices(PAIR, s=[1], e=[8], z=[0], f=[7]), lambda x: x[..., 1:] - x[..., :-1]),
    "differences to the end": (_slices(PAIR, s=[1], e=[2**63 - 1], z=[0], f=[7]), lambda x: x[..., 1:] - x[..., :-1]),
    "differences of two": (_slices(PAIR, s=[2], e=[8], z=[0], f=[6]), lambda x: x[..., 2:] - x[..., :-2]),
    "the end beside a window": (_slices(WINDOW, s=[2], e=[8]), lambda x: x[..., 2:] - _summed(x)),
    "the middle beside a window": (_slices(WINDOW, s=[1], e=[7]), lambda x: x[..., 1:-1] - _summed(x)),
    "the start of what is padded": (_slices(PADDED, s=[0], e=[8], pads=PADS), lambda x: x + _padded(x)[..., :-2]),
    "a shift behind a zero": (
        _slices(f"{BEHIND} (zero, q) y = Add (x, k)", s=[0], e=[7]),
        lambda x: x + _padded(x)[..., :-2],
    ),
    "a shift before a zero": (
        _slices(f"{BEHIND} (q, zero) y = Add (x, k)", s=[1], e=[8]),
        lambda x: x + _padded(x)[..., 2:],
    ),
    "a shift behind its first": (
        _slices(f"f = Slice (x, s, o, a) {BEHIND} (f, q) y = Add (x, k)", s=[0], o=[1], e=[7]),
        lambda x: x + np.concatenate([x[..., :1], x[..., :-1]], -1),
    ),
    "a loop over a flat form": (
        _loop("q = Softmax (r)", s=[4, 8], u=[1, 4, 8]),
        lambda x: _softmax(_softmax(_softmax(x))),
    ),
    "a loop over parts": (
        _loop("q = Transpose <perm = [0, 2, 1, 3]> (r)", s=[1, 2, 2, 8], u=[1, -1, 8]),
        lambda x: _swapped(_swapped(_swapped(x))),
    ),
}
# Two readings fit.
ASKED: dict[str, ModelProto] = {
    "a roll": _slices(
        "q = Slice (x, s, e, a) r = Slice (x, e, f, a) y = Concat <axis = 2> (r, q)", s=[0], e=[7], f=[8]
    ),
    "a part alone": _slices("y = Slice (x, s, e, a)", s=[0], e=[7]),
    "lengths of parts": _model(
        _weights(l=[1, 7], r=[7, 1]), "a, b = Split <axis = 2> (x, l) c, d = Split <axis = 2> (x, r) y = Sub (b, c)"
    ),
}


@pytest.mark.parametrize("name", ASKED)
@pytest.mark.parametrize("length", ["T", 13])
def test_what_has_two_readings_is_asked(name: str, length: Any) -> None:
    with pytest.raises(splitgraph.SplitgraphError) as caught:
        splitgraph.reshape(ASKED[name], {"x": [1, 4, length]})
    assert {found.code for found in caught.value.diagnostics} == {"SG421"}


@pytest.mark.parametrize("name", FOLLOWING)
@pytest.mark.parametrize("length", ["T", 13])
def test_a_length_follows(name: str, length: Any) -> None:
    made, function = FOLLOWING[name]
    after = ReferenceEvaluator(splitgraph.reshape(made, {"x": [1, 4, length]}, verify=False).model)
    for size in LENGTHS if length == "T" else (length,):
        x = np.random.default_rng(size).standard_normal((1, 4, size)).astype(np.float32)
        np.testing.assert_allclose(after.run(None, {"x": x})[0], function(x), rtol=1e-4, atol=1e-6)


LATE = [3 * [7], 3 * [7]]
SCATTERED = parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> g (float[2, 8, 3] x, float[2, 1, 3] u)
    => (float[2, 8, 3] y) { y = ScatterElements <axis = 1> (x, i, u) }""")
SCATTERED.graph.initializer.append(numpy_helper.from_array(np.array(LATE).reshape(2, 1, 3), "i"))


@pytest.mark.parametrize("batch", [2, "N"])
def test_an_index_of_the_last_element_is_no_less_one_for_a_batch_that_repeats_it(batch: Any) -> None:
    with pytest.raises(splitgraph.SplitgraphError, match="takes elements in the second half of T by their numbers"):
        splitgraph.reshape(SCATTERED, {"x": [batch, "T", 3], "u": [batch, 1, 3]})
    after = splitgraph.reshape(SCATTERED, {"x": [batch, 8, 3], "u": [batch, 1, 3]}, verify=False).model
    x, u = np.zeros((2, 8, 3), np.float32), np.ones((2, 1, 3), np.float32)
    assert (ReferenceEvaluator(after).run(None, {"x": x, "u": u})[0][:, 7] == 1).all()
