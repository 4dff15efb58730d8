"""What nobody reads is not compared: outputs of nodes with several ones, and nodes that no output depends on."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import TensorProto as T

import splitgraph

from ..model_pairs import Pair, find_difference, show_difference

F, I64 = np.float32, np.int64
LINE, PLACES = "float[N, 6] x => float[N, 6] y", "float[N, 6] x => int64[N, 2] y"
BOTH = "float[N, 6] x => int64[N, 2] y, float[N, 2] z"
K = {"k": I64([2]), "c": F(2), "w": np.ones((1, 8, 6), F), "r": np.ones((1, 8, 2), F), "s": np.ones(6, F)}
TURNED = "n = Neg(x) v, i = TopK(n, k) {} y = Identity(i)"
SMALLEST = "v, i = TopK<largest = 0>(x, k) y = Identity(i)"
DROPOUT = "a, m = Dropout(x) y = Neg(a)"
LSTM = "float[5, N, 6] x => float[1, N, 2] z"

READ = {
    # What a caller or a node reads is compared, whatever else is unread.
    "the values are read, too": Pair(
        BOTH,
        "z, i = TopK<largest = 0>(x, k) y = Identity(i)",
        "n = Neg(x) z, i = TopK(n, k) y = Identity(i)",
        {"x": [[1, 2, 3, 4, 5, 6]]},
        K,
    ),
    "an output that is read": Pair(
        PLACES,
        SMALLEST,
        "v, i = TopK(x, k) y = Identity(i)",
        {"x": [[1, 2, 3, 4, 5, 6]]},
        K,
    ),
    "a value behind two nodes": Pair(
        LINE, "a = Exp(x) b = Neg(a) y = Abs(b)", "a = Exp(x) b = Sin(a) y = Abs(b)", {"x": [[1, 2, 3, 4, 5, 6]]}
    ),
    "the mask in another node": Pair(
        "float[N, 6] x => bool[N, 6] y",
        "a, m = Dropout(x) y = Not(m)",
        "a, m = Dropout(x) y = Identity(m)",
        {"x": [[1, 2, 3, 4, 5, 6]]},
    ),
    "what only a branch reads": Pair(
        "bool g, float[N, 6] x => float[N, 6] y",
        "a, b = Split<num_outputs = 2, axis = 1>(x) y = If(g) <then_branch = t () => (float[N, 6] p) "
        "{ p = Concat<axis = 1>(a, b) }, else_branch = e () => (float[N, 6] q) { q = Concat<axis = 1>(a, a) }>",
        "a, n = Split<num_outputs = 2, axis = 1>(x) b = Neg(n) y = If(g) <then_branch = t () => (float[N, 6] p) "
        "{ p = Concat<axis = 1>(a, b) }, else_branch = e () => (float[N, 6] q) { q = Concat<axis = 1>(a, a) }>",
        {"g": True, "x": [[1, 2, 3, 4, 5, 6]]},
    ),
}

UNREAD = {
    "values of TopK": Pair(PLACES, SMALLEST, TURNED.format(""), {}, K),
    "values of TopK, turned back by a node that nobody reads": Pair(
        PLACES, SMALLEST, "n = Neg(x) u, i = TopK(n, k) v = Neg(u) y = Identity(i)", {}, K
    ),
    "values of TopK, read by a chain of nodes that nobody reads": Pair(
        PLACES, SMALLEST, TURNED.format("e = Exp(v) f = Sin(e)"), {}, K
    ),
    "values of TopK that only the first model has": Pair(
        PLACES, "n = Neg(x) v, i = TopK(n, k) e = Exp(v) y = Identity(i)", SMALLEST, {}, K
    ),
    "positions of TopK": Pair(
        "float[N, 6] x => float[N, 2] y",
        "y, i = TopK(x, k)",
        "n = Neg(x) u, i = TopK<largest = 0>(n, k) y = Neg(u) j = Neg(i)",
        {},
        K,
    ),
    "a part of a Split": Pair(
        "float[N, 6] x => float[N, 3] y",
        "y, b = Split<axis = 1, num_outputs = 2>(x)",
        "n = Neg(x) u, b = Split<axis = 1, num_outputs = 2>(n) y = Neg(u)",
    ),
    "the middle part of a Split": Pair(
        "float[N, 6] x => float[N, 2] y, float[N, 2] z",
        "y, b, z = Split<axis = 1, num_outputs = 3>(x)",
        "y, t, z = Split<axis = 1, num_outputs = 3>(x) b = Neg(t) d = Abs(b)",
    ),
    "the mask of Dropout": Pair(LINE, DROPOUT, "a, n = Dropout(x) m = Not(n) y = Neg(a)"),
    "Y of LSTM": Pair(
        LSTM,
        "y, z = LSTM<hidden_size = 2>(x, w, r)",
        "u, z = LSTM<hidden_size = 2>(x, w, r) y = Neg(u)",
        {},
        K,
    ),
    "positions of MaxPool": Pair(
        "float[N, 1, 6] x => float[N, 1, 3] y",
        "y, i = MaxPool<kernel_shape = [2], strides = [2]>(x)",
        "y, j = MaxPool<kernel_shape = [2], strides = [2]>(x) i = Neg(j)",
    ),
    "the mean of LayerNormalization": Pair(
        LINE,
        "y, m, d = LayerNormalization(x, s)",
        "y, n, d = LayerNormalization(x, s) m = Neg(n)",
        {},
        K,
    ),
    "positions of Unique": Pair(
        "float[6] x => float[M] y",
        "y, i, j, k = Unique(x)",
        "y, a, j, k = Unique(x) i = Neg(a)",
    ),
    "the zero point of DynamicQuantizeLinear": Pair(
        "float[N, 6] x => float s",
        "q, s, z = DynamicQuantizeLinear(x)",
        "q, s, p = DynamicQuantizeLinear(x) z = BitwiseNot(p)",
    ),
    "an output of a branch": Pair(
        "bool g, float[N, 6] x => float[N, 6] y",
        "y, z = If(g) <then_branch = t () => (float[N, 6] a, float[N, 6] b) { a = Exp(x) b = Neg(x) }, "
        "else_branch = e () => (float[N, 6] c, float[N, 6] d) { c = Sin(x) d = Abs(x) }>",
        "y, z = If(g) <then_branch = t () => (float[N, 6] a, float[N, 6] b) { a = Exp(x) b = Abs(x) }, "
        "else_branch = e () => (float[N, 6] c, float[N, 6] d) { c = Sin(x) d = Neg(x) }>",
    ),
    "the last state of a Scan": Pair(
        "float[N, 6] x => float[N, 6] y",
        "f, y = Scan(s, x) <num_scan_inputs = 1, body = b (float[6] p, float[6] v) => (float[6] q, float[6] o) "
        "{ q = Abs(p) o = Neg(v) }>",
        "f, y = Scan(s, x) <num_scan_inputs = 1, body = b (float[6] p, float[6] v) => (float[6] q, float[6] o) "
        "{ q = Neg(p) o = Neg(v) }>",
        {},
        K,
    ),
    "a node that nobody reads does something else": Pair(
        LINE, "a = Mul(x, c) b = Exp(a) d = Abs(b) y = Neg(a)", "a = Mul(x, c) b = Log(a) d = Abs(b) y = Neg(a)", {}, K
    ),
}


@pytest.mark.parametrize("name", READ)
def test_what_is_read_is_compared(name: str) -> None:
    show_difference(READ[name])
    find_difference(READ[name])


@pytest.mark.parametrize("name", UNREAD)
def test_what_nobody_reads_is_not_compared(name: str) -> None:
    pair = UNREAD[name]
    for models in (pair.models(), pair.models()[::-1]):
        found = splitgraph.verify(*models)
        assert found.verdict == "equal", found


@pytest.mark.parametrize("opset", [9, 10])
@pytest.mark.parametrize(("read", "dtype"), [("i", T.INT64), ("v", T.FLOAT)])
def test_a_downgrade_whose_other_output_nobody_reads(opset: int, read: str, dtype: int) -> None:
    make = onnx.helper
    nodes = [
        make.make_node("TopK", ["x", "k"], ["v", "i"], axis=1, largest=0),
        make.make_node("Identity", [read], ["y"]),
    ]
    inputs = [make.make_tensor_value_info("x", T.FLOAT, ["N", 20])]
    outputs = [make.make_tensor_value_info("y", dtype, ["N", 5])]
    size = onnx.numpy_helper.from_array(I64([5]), "k")
    graph = make.make_graph(nodes, "g", inputs, outputs, [size])
    model = make.make_model(graph, opset_imports=[make.make_opsetid("", 17)], ir_version=8)
    verification = splitgraph.downgrade(model, opset, verify=True).verification
    assert verification is not None
    assert verification.verdict == "equal"
