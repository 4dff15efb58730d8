"""Operators on strings, and n-grams: refusals, then shapes."""

from __future__ import annotations

import pytest
from node_models import NEWEST_OPSET, infer_nodes, shape_text

INVALID = [
    ("strings", "string[2,2,2] x", "y = StringNormalizer(x)", 10, "it must be [C] or [1, C]"),
]
INVALID_HERE = [case for case in INVALID if case[3] <= NEWEST_OPSET]


@pytest.mark.parametrize(
    ("inputs", "body", "opset", "said"), [c[1:] for c in INVALID_HERE], ids=[c[0] for c in INVALID_HERE]
)
def test_an_invalid_node_is_a_finding(inputs: str, body: str, opset: int, said: str) -> None:
    analysis = infer_nodes(inputs, body, opset=opset)
    (found,) = analysis.diagnostics
    assert found.code == "SG302"
    assert said in found.message
    assert analysis.types["y"].shape is None


SHAPES = [
    ("strings", "string[N,1] a, string[4] b", "y = StringConcat(a, b)", 20, "string[N, 4]"),
    ("matches", "string[N] a", "y = RegexFullMatch(a)", 20, "bool[N]"),
    ("normalized", "string[1,N] a", "y = StringNormalizer(a)", 10, "string[1, max(N, 1)]"),
    ("stopped", "string[N] a", 'y = StringNormalizer<stopwords=["a"]>(a)', 10, "string[?]"),
    (
        "n-grams",
        "int64[N,C] a",
        'y = TfIdfVectorizer<mode="TF", min_gram_length=1, max_gram_length=1, max_skip_count=0, ngram_counts=[0], '
        "ngram_indexes=[0,2], pool_int64s=[3,4]>(a)",
        9,
        "float32[N, 3]",
    ),
]
SHAPES_HERE = [case for case in SHAPES if case[3] <= NEWEST_OPSET]


@pytest.mark.parametrize(
    ("inputs", "body", "opset", "expected"), [c[1:] for c in SHAPES_HERE], ids=[c[0] for c in SHAPES_HERE]
)
def test_shapes(inputs: str, body: str, opset: int, expected: str) -> None:
    assert shape_text(inputs, body, opset=opset) == expected
