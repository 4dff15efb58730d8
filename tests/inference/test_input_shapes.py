"""Shapes of scales, caches, offsets, bounds and biases that contradict the operator: errors, warnings and near misses.

Each case was run in onnxruntime, OpenVINO and the reference evaluator, those of com.microsoft in the first two.
"""

from __future__ import annotations

import pytest
from node_models import model_of

import splitgraph

MS = "com.microsoft."
DEFORMED = ("float[1, 1, 4, 4] x, float[1, 1, 2, 2] w, float[{}] o", "y = DeformConv(x, w, o)", 19)
MASKED = (
    "float[1, 1, 4, 4] x, float[1, 1, 2, 2] w, float[1, 8, 3, 3] o, float[{}] m",
    "y = DeformConv(x, w, o, , m)",
    19,
)
ROTARY = ("float[2, 2, 3, 4] x, float[{0}] c, float[{0}] s", "y = RotaryEmbedding(x, c, s)", 23)
PLACED = ("float[1, 2, 3, 4] x, float[{0}] c, float[{0}] s, int64[1, 3] p", "y = RotaryEmbedding(x, c, s, p)", 23)
QUANTIZED = (
    "uint8[1, 1, 3, 3] x, float{} a, uint8 b, uint8[2, 1, 2, 2] w, float{} c, uint8{} d, float e, uint8 f",
    "y = QLinearConv(x, a, b, w, c, d, e, f)",
    13,
)
CLIP = ("float[2, 3] x, float{} l", "y = Clip(x, l)", 13)
TOPK = ("float[3, 4] x, int64{} k", "y, z = TopK(x, k)", 11)
DFT = ("float[1, 4, 3, 1] x, int64{} n, int64{} a", "y = DFT(x, n, a)", 20)
SKIP = ("float[2, 3, 4] x, float[{}] s, float[{}] g", f"y = {MS}SkipLayerNormalization(x, s, g)", 17)
EMBED = (
    "int32[1, 2] i, int32[{}] t, float[5, 4] w, float[5, {}] p, float[5, 4] u, float[{}] g, float[4] b",
    f"y, z = {MS}EmbedLayerNormalization(i, t, w, p, u, g, b)",
    17,
)
GELU = ("float[2, 4] x, float[{}] b", f"y = {MS}BiasGelu(x, b)", 17)
ATTENTION = (
    "float[1, 2, 4] x, float[{}, 12] w, float[{}] b, float[{}] p",
    f"y, z = {MS}Attention<num_heads = 2>(x, w, b, , p)",
    17,
)
OF_INTEGERS = (
    "uint8[1, 2, 4] x, uint8[4, 12] w, float[12] b, float{} s, float{} t",
    f"y = {MS}QAttention<num_heads = 2>(x, w, b, s, t)",
    17,
)
HEADS = (
    "float[1, 2, 4] q, float[{}] k, float[1, 3, 4] v, float[{}] b",
    f"y = {MS}MultiHeadAttention<num_heads = 2>(q, k, v, b)",
    17,
)
DEQUANTIZED = ("uint8[2, 3] x, float{} s, uint8{} z", f"y = {MS}DequantizeLinear<axis = 1>(x, s, z)", 17)
DYNAMIC = ("float[2, 4] a, uint8[4, 3] b, float{} s", f"y = {MS}DynamicQuantizeMatMul(a, b, s)", 17)
TO_FLOAT = ("uint8[2, 4] a, uint8[4, 3] b, float{} s, float{} t", f"y = {MS}MatMulIntegerToFloat(a, b, s, t)", 17)
MEAN = ("float[1, 2, 3] x", "y = MeanVarianceNormalization<axes = [{}]>(x)", 13)
TUPLES = ("float{} x, int64{} i, float{} u", "y = ScatterND(x, i, u)", 18)
SCATTERED = ("float{} x, int64{} i, float{} u", "y = ScatterElements(x, i, u)", 18)
Form = tuple[str, str, int]
Case = tuple[str, Form, tuple[str, ...]]

ERRORS: list[Case] = [
    ("tuples for a scalar", TUPLES, ("", "[3, 1]", "[3]")),
    ("empty tuples for a scalar", TUPLES, ("", "[3, 0]", "[3]")),
    ("a scalar for data of unknown rank", TUPLES, ("[]", "", "[]")),
    ("tuples of two for a vector", TUPLES, ("[4]", "[3, 2]", "[3]")),
    ("one tuple that is too long", TUPLES, ("[4, 5]", "[3]", "[]")),
    ("tuples for unknown updates", TUPLES, ("[N, M]", "[K, 3]", "[]")),
    ("a scalar as tuples", TUPLES, ("[4, 5]", "", "")),
    ("an update of another rank", TUPLES, ("[4, 5]", "[3, 1]", "[3]")),
    ("updates of no rank that tuples have", TUPLES, ("[4, 5]", "[3, K]", "[3, 4, 5, 6]")),
    ("updates of too low a rank", TUPLES, ("[4, 5]", "[2, 3, K]", "[6]")),
    ("updates of other slices", TUPLES, ("[4, 5]", "[3, K]", "[3, 4]")),
    ("indices of a lower rank", SCATTERED, ("[4, 5]", "[3]", "[3]")),
    ("indices of a higher rank", SCATTERED, ("[4]", "[2, 2]", "[2, 2]")),
    ("offset of other channels", DEFORMED, ("1, 6, 3, 3",)),
    ("offset of the input's size", DEFORMED, ("1, 8, 4, 4",)),
    ("offset for another batch", DEFORMED, ("2, 8, 3, 3",)),
    ("offset of rank 3", DEFORMED, ("8, 3, 3",)),
    ("mask of other channels", MASKED, ("1, 3, 3, 3",)),
    ("cache of another width", PLACED, ("5, 3",)),
    ("cache of tokens beside positions", PLACED, ("1, 3, 2",)),
    ("cache without positions", ROTARY, ("3, 2",)),
    ("cache of more tokens", ROTARY, ("2, 4, 2",)),
    ("cache of a third batch", ROTARY, ("3, 3, 2",)),
    ("scales of more filters", QUANTIZED, ("", "[3]", "[3]")),
    ("scales in a matrix", QUANTIZED, ("", "[1, 2]", "[1, 2]")),
    ("two scales of the input", QUANTIZED, ("[2]", "", "")),
    ("bound of another length", CLIP, ("[2]",)),
    ("empty bound", CLIP, ("[0]",)),
    ("bound of a higher rank", CLIP, ("[1, 1, 1]",)),
    ("scalar k", TOPK, ("",)),
    ("two ks", TOPK, ("[2]",)),
    ("length in a vector", DFT, ("[1]", "")),
    ("axis in a vector", DFT, ("", "[1]")),
    ("window of a vector", ("int64[1] n", "y = HannWindow(n)", 17), ()),
    ("window of two", ("int64[2] n", "y = BlackmanWindow(n)", 17), ()),
    ("step in a vector", ("float[1, 16, 1] x, int64[1] s, int64 n", "y = STFT(x, s, , n)", 17), ()),
    ("LRN of rank 2", ("float[2, 4] x", "y = LRN<size = 3>(x)", 13), ()),
    ("LRN of rank 1", ("float[4] x", "y = LRN<size = 3>(x)", 13), ()),
    ("axis out of range", MEAN, ("0, 3",)),
    ("default axes of rank 3", ("float[1, 2, 3] x", "y = MeanVarianceNormalization(x)", 13), ()),
    (
        "zero point of another filter",
        ("uint8[2, 4] a, uint8[4, 3] b, uint8 z, uint8[2] w", "y = MatMulInteger(a, b, z, w)", 10),
        (),
    ),
    ("gamma", SKIP, ("2, 3, 4", "3")),
    ("gamma in a matrix", SKIP, ("2, 3, 4", "1, 4")),
    ("skip of another length", SKIP, ("2, 2, 4", "4")),
    ("segments of another length", EMBED, ("1, 3", "4", "4")),
    ("positions of another width", EMBED, ("1, 2", "3", "4")),
    ("gamma of embeddings", EMBED, ("1, 2", "4", "3")),
    ("bias of another length", GELU, ("3",)),
    ("bias in a matrix", GELU, ("2, 4",)),
    ("bias of FastGelu", ("float[2, 4] x, float[3] b", f"y = {MS}FastGelu(x, b)", 17), ()),
    ("weights of another input", ATTENTION, ("3", "12", "2, 1, 2, 3, 2")),
    ("bias of other weights", ATTENTION, ("4", "11", "2, 1, 2, 3, 2")),
    ("past of other heads", ATTENTION, ("4", "12", "2, 1, 3, 3, 2")),
    ("past of one state", ATTENTION, ("4", "12", "1, 1, 2, 3, 2")),
    ("two scales of integers", OF_INTEGERS, ("[2]", "")),
    ("scales of three columns", OF_INTEGERS, ("", "[3]")),
    ("keys of another batch", HEADS, ("2, 3, 4", "12")),
    ("keys of another width", HEADS, ("1, 3, 6", "12")),
    ("bias of projections", HEADS, ("1, 3, 4", "11")),
    ("scales of another axis", DEQUANTIZED, ("[2]", "[2]")),
    ("zero points of another number", DEQUANTIZED, ("[3]", "")),
    ("scales in rows", DEQUANTIZED, ("[2, 3]", "[2, 3]")),
    ("scales of two columns", DYNAMIC, ("[2]",)),
    ("scales for each row", TO_FLOAT, ("[2]", "[3]")),
]
WARNINGS: list[Case] = [
    ("bound for each column", CLIP, ("[3]",)),
    ("bound for each row", CLIP, ("[2, 1]",)),
    ("bound in a matrix", CLIP, ("[1, 1]",)),
    ("bound for each element", CLIP, ("[2, 3]",)),
    ("one cache for all", ROTARY, ("1, 3, 2",)),
    ("an axis twice", MEAN, ("1, 1",)),
    ("an axis twice, once from the end", MEAN, ("1, -2",)),
]
FINE: list[Case] = [
    ("tuples of one", TUPLES, ("[4, 5]", "[3, 1]", "[3, 5]")),
    ("tuples of two", TUPLES, ("[4, 5]", "[3, 2]", "[3]")),
    ("empty tuples", TUPLES, ("[4]", "[3, 0]", "[3, 4]")),
    ("one tuple", TUPLES, ("[4, 5]", "[2]", "")),
    ("tuples that may be of one", TUPLES, ("[4, 5]", "[3, K]", "[3, 5]")),
    ("tuples of unknown data", TUPLES, ("[]", "[3, 7]", "[3]")),
    ("fewer indices", SCATTERED, ("[4, 5]", "[3, 2]", "[3, 2]")),
    ("offset", DEFORMED, ("1, 8, 3, 3",)),
    ("offset of unknown channels", DEFORMED, ("1, C, 3, 3",)),
    ("mask", MASKED, ("1, 4, 3, 3",)),
    ("cache", PLACED, ("5, 2",)),
    ("cache of unknown width", PLACED, ("5, W",)),
    ("cache for each batch", ROTARY, ("2, 3, 2",)),
    ("one scale", QUANTIZED, ("", "", "")),
    ("one scale in vectors", QUANTIZED, ("[1]", "[1]", "[1]")),
    ("scales of filters", QUANTIZED, ("", "[2]", "[2]")),
    ("scales of filters and one zero point", QUANTIZED, ("", "[2]", "")),
    ("bound", CLIP, ("",)),
    ("bound in a vector", CLIP, ("[1]",)),
    ("bound of unknown length", CLIP, ("[L]",)),
    ("k", TOPK, ("[1]",)),
    ("length and axis", DFT, ("", "")),
    ("window", ("int64 n", "y = HannWindow(n)", 17), ()),
    ("LRN of rank 3", ("float[2, 4, 3] x", "y = LRN<size = 3>(x)", 13), ()),
    ("axes", MEAN, ("0, -1",)),
    ("skip for all of the batch", SKIP, ("1, 3, 4", "4")),
    ("skip without a batch", SKIP, ("3, 4", "4")),
    ("embeddings", EMBED, ("1, 2", "4", "4")),
    ("bias", GELU, ("4",)),
    ("past", ATTENTION, ("4", "12", "2, 1, 2, 3, 2")),
    ("scales of columns", OF_INTEGERS, ("[1]", "[12]")),
    ("keys and values", HEADS, ("1, 3, 4", "12")),
    ("scales", DEQUANTIZED, ("[3]", "[3]")),
    ("one scale of all", DEQUANTIZED, ("[1]", "")),
    ("columns", DYNAMIC, ("[3]",)),
    ("one scale of each", TO_FLOAT, ("[1]", "[1]")),
]


def found(case: Case) -> list[tuple[str, str]]:
    (inputs, body, opset), given = case[1], case[2]
    inputs = inputs.format(*given)
    body = body.format(*given) if case[1] is MEAN else body
    model = model_of(inputs, body.replace(MS, ""), opset=opset)
    if MS in body:
        model.graph.node[0].domain = MS[:-1]
        model.opset_import.add(domain=MS[:-1], version=1)
    return [(each.code, each.severity) for each in splitgraph.infer(model).diagnostics]


@pytest.mark.parametrize("case", ERRORS, ids=lambda case: case[0])
def test_what_fewer_than_two_engines_run(case: Case) -> None:
    assert found(case) == [("SG302", "error")]


@pytest.mark.parametrize("case", WARNINGS, ids=lambda case: case[0])
def test_what_two_engines_run(case: Case) -> None:
    assert found(case) == [("SG302", "warning")]


@pytest.mark.parametrize("case", FINE, ids=lambda case: case[0])
def test_what_is_right(case: Case) -> None:
    assert found(case) == []


@pytest.mark.parametrize("opset", [10, 9])
def test_a_bound_for_each_column_is_never_an_attribute(opset: int) -> None:
    model = model_of("float[2, 3] x", "l = Constant<value_floats = [1.0, 2.0, 3.0]>() y = Clip(x, l)", opset=12)
    written = splitgraph.downgrade(model, opset).model.graph.node
    assert "Clip" not in {node.op_type for node in written}
