"""Operators on strings, and n-grams: refusals, then shapes."""

from __future__ import annotations

from node_models import assert_invalid, each, infer_nodes, shape_text

INVALID = [
    ("strings", "string[2,2,2] x", "y = StringNormalizer(x)", 10, "it must be [C] or [1, C]"),
]


@each(INVALID)
def test_an_invalid_node_is_a_finding(inputs: str, body: str, opset: int, expected: str) -> None:
    assert_invalid(infer_nodes(inputs, body, opset=opset), expected)


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


@each(SHAPES)
def test_shapes(inputs: str, body: str, opset: int, expected: str) -> None:
    assert shape_text(inputs, body, opset=opset) == expected
