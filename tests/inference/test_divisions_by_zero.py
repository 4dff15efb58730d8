"""A division by what may be 0, or is 0 by what is known, stays a division, and nothing raises."""

from __future__ import annotations

import onnx
import pytest
from element_checks import check_elements

import splitgraph
from splitgraph.dim import (
    DimLike,
    Facts,
    Obligation,
    dim_max,
    dim_min,
    substitute,
    substitute_if_defined,
    sum_dims,
    symbol,
)
from splitgraph.inference.shown_symbols import TypeSimplifier

N, M = symbol("N"), symbol("M")
# So many names that the sum is one large atom.
LARGE = sum_dims([symbol(f"s{index}") for index in range(2000)])


# The dimension, what is known, and what it is said to be; None if it stays.
SIMPLIFIED: dict[str, tuple[DimLike, list[Obligation], DimLike | None]] = {
    "by a maximum that is 0": (N // dim_max(0, N - 3), [Obligation(2, ">=", N)], None),
    "a remainder by it": ((N + 5) % dim_max(0, N - 3), [Obligation(3, ">=", N)], None),
    "by a minimum less what it is": (N // (dim_min(M, N) - N), [Obligation(M, ">=", N)], None),
    "by a maximum less what it is": (M // (dim_max(M, N) - N), [Obligation(N, ">=", M + 1)], None),
    "inside of a maximum": (dim_max(M // dim_max(0, N - M), 3), [Obligation(M, ">=", N)], None),
    "beside a maximum": (M // dim_max(0, N - M) + dim_max(N, M), [Obligation(M, ">=", N)], None),
    "inside of a divisor": (M // (N // dim_max(0, N - 3) + 1), [Obligation(3, ">=", N)], None),
    "by a large sum, beside a maximum": (dim_max(N, 3) // LARGE, [], None),
    "a large sum beside a maximum": (dim_max(N, LARGE) + 1, [], None),
    "a maximum that may be 0": (N // dim_max(0, N - 3), [Obligation(9, ">=", N)], None),
    "a maximum that is decided": (N // dim_max(M, N - 3), [Obligation(M, ">=", N)], N // M),
    "a maximum that is never 0": (N // dim_max(0, N - 3), [Obligation(N, ">=", 4)], N // (N - 3)),
}


@pytest.mark.parametrize("name", SIMPLIFIED)
def test_a_division_by_zero_stays(name: str) -> None:
    dim, obligations, expected = SIMPLIFIED[name]
    facts = Facts()
    for obligation in obligations:
        assert facts.require(obligation) == "assumed"
    assert TypeSimplifier({}).dims([dim], facts)[0] is (dim if expected is None else expected)


def test_substitution_keeps_what_has_no_value() -> None:
    dim = N // (M - 1) + M
    assert substitute_if_defined(dim, {"M": 1}) is dim
    assert substitute_if_defined(dim, {"M": 3}) == N // 2 + 3
    with pytest.raises(ZeroDivisionError):
        substitute(dim, {"M": 1})


# An image, its pooled form, and the quotient of their shapes, at each of which a new size makes the divisor 0.
QUOTIENT = """<ir_version: 8, opset_import: ["": 17]>
g (float[1, 3, 8, 8] x) => (float[a, b, c, d] y) <int64 one = {1}> {
  p = MaxPool<kernel_shape=[%d, %d], strides=[%d, %d]%s>(x)
  whole = Shape(x) pooled = Shape(p) %s }"""
WAYS = {
    "Div": "q = Div(whole, pooled) y = ConstantOfShape(q)",
    "Mod": "q = Mod(whole, pooled) y = ConstantOfShape(q)",
    "Tile": "q = Div(whole, pooled) y = Tile(p, q)",
    "by what the remainder is": "r = Mod(whole, pooled) q = Div(whole, r) y = ConstantOfShape(q)",
    "by a limited remainder": "r = Mod(whole, pooled) m = Max(r, one) q = Div(whole, m) y = ConstantOfShape(q)",
    "by a difference": "r = Sub(whole, pooled) q = Div(whole, r) y = ConstantOfShape(q)",
}
POOLS = {"2, 2": (2, 2, 2, 2, ""), "2, 1": (2, 2, 1, 1, ", ceil_mode=1")}


@pytest.mark.parametrize("sizes", [["N", 3, "H", "W"], [1, 3, "H", 1], [1, 3, 1, 1]], ids=str)
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("way", WAYS)
def test_reshape_of_a_quotient_of_shapes(way: str, pool: str, sizes: list[int | str]) -> None:
    model = onnx.parser.parse_model(QUOTIENT % (*POOLS[pool], WAYS[way]))
    try:
        result = splitgraph.reshape(model, {"x": sizes})
    except splitgraph.ConversionError:
        return
    assert list(map(str, splitgraph.infer(result.model).inputs["x"].shape or ())) == list(map(str, sizes))


DECLARED = """<ir_version: 8, opset_import: ["": 17]> g (float[K, M] x) => (float[a, b] y) { y = Relu(x) }"""


def test_a_bound_divisor() -> None:
    model = onnx.parser.parse_model(DECLARED)
    # Not every parser of onnx reads an expression.
    model.graph.input[0].type.tensor_type.shape.dim[0].dim_param = "N//(M - 1)"
    assert str(splitgraph.infer(model, bind={"M": 1}).inputs["x"]) == "float32[N//(M - 1), 1]"
    assert str(splitgraph.infer(model, bind={"M": 3}).inputs["x"]) == "float32[N//2, 3]"


@pytest.mark.parametrize("seeds", [range(start, start + 100) for start in range(0, 300, 100)] + [(4962,)], ids=str)
def test_random_elements(seeds: range) -> None:
    assert [(seed, wrong) for seed in seeds for wrong in check_elements(seed)] == []
