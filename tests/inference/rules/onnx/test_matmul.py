"""Matrix products: refusals, then shapes."""

from __future__ import annotations

from node_models import assert_invalid, each, infer_nodes, shape_text

HELD = "uint8 zp = {0}, int8 zp8 = {0}, float rate = {1}"

INVALID = [
    ("diagonal", "float[3,4] x", 'y = Einsum<equation="ii->i">(x)', 18, "equal, not 3 and 4"),
    ("matmul", "float[2,3] a, float[4,5] b", "y = MatMul(a, b)", 18, "inner dimensions must be equal, not 3 and 4"),
    ("matmul-scalar", "float[2,3] a, float b", "y = MatMul(a, b)", 18, "scalar"),
    ("matmul-batch", "float[2,3,4] a, float[5,4,2] b", "y = MatMul(a, b)", 18, "2 and 5"),
    ("gemm-rank", "float[2,3,4] a, float[4,5] b", "y = Gemm(a, b)", 18, "rank 3"),
    ("gemm-added", "float[2,3] a, float[3,5] b, float[4] c", "y = Gemm(a, b, c)", 18, "4 where the product has 5"),
    ("einsum-terms", "float[2,3] a", 'y = Einsum<equation="ij,jk->ik">(a)', 18, "2 terms for 1 inputs"),
    ("einsum-rank", "float[2,3] a", 'y = Einsum<equation="ijk->ik">(a)', 18, "rank 2"),
]


@each(INVALID)
def test_an_invalid_node_is_a_finding(inputs: str, body: str, opset: int, expected: str) -> None:
    assert_invalid(infer_nodes(inputs, body, opset=opset, constants=HELD), expected)


SHAPES = [
    (
        "matmul-quantized",
        "uint8[B,N,4] a, int8[4,M] b",
        "y = QLinearMatMul(a, rate, zp, b, rate, zp8, rate, zp)",
        10,
        "uint8[B, N, M]",
    ),
    ("diagonal", "float[B,N,N] x", 'y = Einsum<equation="bii->bi">(x)', 18, "float32[B, N]"),
    ("matmul", "float[N,3] a, float[3,M] b", "y = MatMul(a, b)", 18, "float32[N, M]"),
    ("matmul-batch", "float[B,H,N,4] a, float[H,4,M] b", "y = MatMul(a, b)", 18, "float32[B, H, N, M]"),
    ("matmul-vectors", "float[3] a, float[3] b", "y = MatMul(a, b)", 18, "float32[]"),
    ("matmul-row", "float[3] a, float[B,3,M] b", "y = MatMul(a, b)", 18, "float32[B, M]"),
    ("matmul-column", "float[B,N,3] a, float[3] b", "y = MatMul(a, b)", 18, "float32[B, N]"),
    ("matmul-unknown", "float[N,3] a, float[] b", "y = MatMul(a, b)", 18, "float32[...]"),
    ("gemm", "float[K,N] a, float[M,K] b, float[M] c", "y = Gemm<transA=1, transB=1>(a, b, c)", 18, "float32[N, M]"),
    ("gemm-unknown", "float[] a, float[K,M] b", "y = Gemm(a, b)", 18, "float32[unk0, M]"),
    ("einsum", "float[B,N,K] a, float[B,K,M] b", 'y = Einsum<equation="bij,bjk->bik">(a, b)', 18, "float32[B, N, M]"),
    ("einsum-implicit", "float[N,K] a, float[K,M] b", 'y = Einsum<equation="ij,jk">(a, b)', 18, "float32[N, M]"),
    ("einsum-ellipsis", "float[A,B,N,M] a", 'y = Einsum<equation="...ij->...ji">(a)', 18, "float32[A, B, M, N]"),
    ("det", "float[A,3,3] x", "y = Det(x)", 18, "float32[A]"),
]


@each(SHAPES)
def test_shapes(inputs: str, body: str, opset: int, expected: str) -> None:
    assert shape_text(inputs, body, opset=opset, constants=HELD) == expected


def test_inner_dimensions_that_must_agree() -> None:
    analysis = infer_nodes("float[N,K] a, float[3,M] b", "y = MatMul(a, b)")
    assert analysis.symbols["K"] == (3, 3)
    refused = infer_nodes("float[N,K] a, float[3,M] b, float[4,M] c", "y = MatMul(a, b) z = MatMul(a, c)")
    assert not refused.ok
