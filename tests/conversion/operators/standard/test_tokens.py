"""Operators of com.microsoft on tokens and words in operators of ai.onnx."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conversion.operators.standard.inferred import check
from conversion.operators.standard.one_node import Array, Case, refusal
from known_opsets import known

_RNG = np.random.default_rng(9)
_NEW_AND_OLD = (24, 13)
_EXACT = {"rtol": 0, "atol": 0}
_IDS = np.array([[1, 2, 3]], np.int64)


@pytest.mark.parametrize(
    ("operator", "reason"),
    [
        ("Tokenizer", "regular expressions"),
        *((name, "whole model in a loop") for name in ("BeamSearch", "GreedySearch", "Sampling", "WhisperBeamSearch")),
        ("BifurcationDetector", "begin to differ"),
        ("VarlenNGramHashMapping", "one after the other"),
        ("AttnLSTM", "within each step"),
    ],
)
def test_what_has_no_form_is_refused(operator: str, reason: str) -> None:
    assert reason in refusal(Case(operator, [_IDS]))


# MurmurHash3 ---------------------------------------------------------------------------------------------------------


def _numbers(dtype: str) -> Array:
    if dtype.startswith("float"):
        return (_RNG.standard_normal((3, 50)) * 1e3).astype(dtype)
    info = np.iinfo(dtype)
    drawn = _RNG.integers(info.min, info.max, (3, 50), dtype, endpoint=True)
    drawn.flat[:3] = info.min, info.max, 0
    return drawn


@pytest.mark.parametrize("positive", [0, 1])
@pytest.mark.parametrize("seed", [0, 42, 2**31 - 1])
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_murmur_hash(dtype: str, seed: int, positive: int) -> None:
    case = Case("MurmurHash3", [_numbers(dtype)], {"seed": seed, "positive": positive}, free=positive == 1, **_EXACT)
    check(case, (24, 17) if seed == 42 else (24,))


@pytest.mark.skipif(not known([26]), reason="the installed onnx does not have BitCast")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_murmur_hash_of_floats_needs_their_bits(dtype: str) -> None:
    case = Case("MurmurHash3", [_numbers(dtype)], **_EXACT)
    assert f"the bytes of {dtype}" in refusal(case, 24)
    check(case, (26,))


def test_murmur_hash_of_strings_is_refused() -> None:
    assert "the bytes of string" in refusal(Case("MurmurHash3", [np.array(["a", "b"], object)]), 24)


# NGramHashMapping ----------------------------------------------------------------------------------------------------


def _hashes(dtype: str, longest: int, heads: int, length: int, large: bool, **given: bool) -> Case:
    most = np.iinfo(dtype).max if large else 1000
    count = (longest - 1) * heads
    inputs: list[Array | None] = [
        _RNG.integers(0, 5000, (2, length)).astype(dtype),
        _RNG.integers(1, most, longest).astype(dtype),
        _RNG.integers(3, 10007, count).astype(dtype),
        _RNG.integers(0, 50, (2, longest - 1)).astype(dtype) if given.get("past") else None,
        _RNG.integers(0, 9, count).astype(dtype) if given.get("offsets") else None,
    ]
    attributes = {"max_ngram_size": longest, "n_head_per_ngram": heads, "pad_id": 7}
    return Case("NGramHashMapping", inputs, attributes, outputs=2, **_EXACT)


@pytest.mark.parametrize("past", [False, True])
@pytest.mark.parametrize("offsets", [False, True])
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_hash_of_ngrams(dtype: str, large: bool, offsets: bool, past: bool) -> None:
    for longest, heads, length in ((2, 1, 4), (3, 2, 6), (4, 2, 1)):
        case = _hashes(dtype, longest, heads, length, large, past=past, offsets=offsets)
        check(case, (24, 17) if longest == 3 else (24,))


def test_hash_of_ngrams_alone() -> None:
    case = _hashes("int64", 3, 2, 5, large=True, past=True)
    check(Case(case.operator, case.inputs, case.attributes, **_EXACT), (24,))


@pytest.mark.parametrize("place", [5, 6])
def test_tokens_that_hide_others_are_refused(place: int) -> None:
    inputs: list[Array | None] = [*_hashes("int64", 3, 2, 5, large=False).inputs, None, None]
    inputs[place] = np.array(9, np.int64) if place == 5 else np.zeros((2, 5), np.int32)
    attributes = {"max_ngram_size": 3, "n_head_per_ngram": 2, "pad_id": 7}
    assert "hide the tokens" in refusal(Case("NGramHashMapping", inputs, attributes, outputs=2))


# NGramRepeatBlock, WordConvEmbedding ---------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("length", [1, 2, 3, 9, 20])
@pytest.mark.parametrize("free", [False, True])
def test_repetitions(size: int, length: int, free: bool) -> None:
    ids = _RNG.integers(0, 3, (4, length)).astype(np.int64)
    scores = _RNG.standard_normal((4, 5)).astype(np.float32)
    case = Case("NGramRepeatBlock", [ids, scores], {"ngram_size": size}, free=free, **_EXACT)
    check(case, (24, 17, 13) if free else (17,))


def test_repetitions_of_nothing_are_refused() -> None:
    scores = np.zeros((1, 5), np.float32)
    assert "at least 1" in refusal(Case("NGramRepeatBlock", [_IDS, scores], {"ngram_size": 0}))


def _words(words: Any, window: int, **more: Any) -> Case:
    filters, size, vocabulary = 5, 4, 9
    weights = _RNG.standard_normal((filters, 1, window, size)).astype(np.float32)
    bias, table = (_RNG.standard_normal(shape).astype(np.float32) for shape in ((filters,), (vocabulary, size)))
    return Case("WordConvEmbedding", [np.array(words, np.int32), weights, bias, table], **more)


@pytest.mark.parametrize("window", [1, 2, 3])
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize(
    "words",
    [
        [[1, 2, 3, 4, 5, 6], [8, 7, 6, 5, 4, 3]],
        [[1, 2, 3, 4, 0, 0], [1, 2, 0, 0, 0, 0], [5, 0, 0, 0, 0, 0]],
        [[1, 0, 3, 4, 5, 6], [1, 2, 3, 0, 0, 7]],
        [[1, 2, 3]],
    ],
)
def test_words(words: Any, free: bool, window: int) -> None:
    case = _words(words, window, constants=frozenset({1, 2, 3}), free=free)
    check(case, _NEW_AND_OLD if window == 2 else (17,))


def test_words_of_more_dimensions_are_refused() -> None:
    assert "must be [W, L]" in refusal(_words([[[1, 2, 3]]], 2))
