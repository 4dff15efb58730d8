"""Draw few numbers and texts for the inputs of a region, special ones among them, in all combinations: for two inputs
that meet, and for ties.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from splitgraph.verification.models.model_files import scoped_nodes
from splitgraph.verification.values import Array, Value

WORDS = ("alpha", "b", "", "gamma delta", "naïve", "42", "A", "x-y", "two  spaces", "Ω", "end.", " lead", "ZED")
# A longer text is no delimiter. So many words are split.
_LONGEST_DELIMITER, _PARTS = 4, (3, 10, 100)
# So many texts of a region are tried, of constants of at most so many.
_MOST_CONSTANTS, _MOST_TEXTS = 24, 64
# In so many cases at most, combinations are tried, and flags of which one is not like the others.
_MOST_MIXED, _MOST_CASES = 64, 12
# A larger number of combinations is no integer of 64 bits.
_MOST_COMBINATIONS = 2**32


def draw_mixed(free: Mapping[str, Array], words: Sequence[str]) -> Iterator[dict[str, Value]]:
    """Yield few numbers for the inputs, so that those of several inputs meet in all combinations."""
    lists = {name: _few(value.dtype, words) for name, value in free.items()}
    lists = {name: few for name, few in lists.items() if few.size}
    smallest = min((free[name].size for name in lists), default=0)
    combinations = min(math.prod(few.size for few in lists.values()), _MOST_COMBINATIONS)
    cases = min(-(-combinations // smallest), _MOST_MIXED) if smallest else 0
    # Of more combinations than that, the first ones, and some from everywhere: the last input takes all numbers, too.
    spread = -(-combinations // max(cases * smallest, 1))
    while math.gcd(spread, combinations) > 1:
        spread += 1
    for stride, case in itertools.product((1, spread) if spread > 1 else (1,), range(cases)):
        made: dict[str, Value] = {}
        step = 1
        for name, few in lists.items():
            places = (case * smallest + np.arange(free[name].size)) * stride
            made[name] = few[places // step % few.size].reshape(free[name].shape)
            # Further inputs go through their numbers as the first ones do.
            step = step * few.size if step * few.size < _MOST_COMBINATIONS else 1
        yield made
    for flags in (name for name, value in free.items() if is_flags(value) and value.ndim):
        yield from ({flags: row} for row in _one_apart(free[flags]))


def _few(dtype: np.dtype[Any], words: Sequence[str]) -> Array:
    if dtype.kind in "OUS":
        return np.array(words, dtype=object)
    if dtype.kind == "b":
        return np.array([True, False])
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        least = [int(info.min), -2, -1] if dtype.kind == "i" else []
        return np.array([0, 1, 2, *least, 3, int(info.max)], dtype)
    if dtype.kind == "f" or dtype.name == "bfloat16":
        return np.array([0.0, 1.0, np.nan, np.inf, -np.inf, -0.0, -1.0, 2.0]).astype(dtype)
    return np.empty(0, dtype)


def _one_apart(value: Array) -> Iterator[Array]:
    """Yield flags of which one in each row is not like the others."""
    length = value.shape[-1]
    rows = value.size // max(length, 1)
    for common in (True, False):
        for case in range(min(-(-length // max(rows, 1)), _MOST_CASES)):
            flags = np.full((rows, length), common)
            flags[np.arange(rows), (case * rows + np.arange(rows)) % length] = not common
            yield flags.reshape(value.shape)


def words_of(models: Iterable[onnx.ModelProto]) -> list[str]:
    """Return words: those of a region, of one of its models alone first, in other letters, and usual ones."""
    held: list[dict[bytes, None]] = []
    for model in models:
        own = [text for tensor in model.graph.initializer for text in tensor.string_data[:_MOST_TEXTS]]
        for node, _ in scoped_nodes(model):
            for attribute in node.attribute:
                own += (attribute.s, *attribute.strings, *attribute.t.string_data)
        held.append(dict.fromkeys(text for text in own if text))
    texts = sorted({text: None for own in held for text in own}, key=lambda text: all(text in own for own in held))
    told = [text.decode("utf-8", "replace") for text in texts[:_MOST_CONSTANTS]]
    # What may be a delimiter stands between few and many words.
    parts = [
        text.join(WORDS[:1] * count) for text in (*told, " ") if len(text) <= _LONGEST_DELIMITER for count in _PARTS
    ]
    cased = [other for text in told for other in (text, text.upper(), text.lower(), text.title(), text.swapcase())]
    return list(dict.fromkeys(["", " ", *cased, *parts, *WORDS]))


def is_flags(value: Value) -> bool:
    return isinstance(value, np.ndarray) and value.dtype.kind == "b"
