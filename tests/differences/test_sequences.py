"""The longest common subsequence, at bounded cost."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from splitgraph.differences.matching import common_subsequence

TEXTS = st.text("abcd", max_size=12)


def longest(one: str, two: str) -> int:
    """The length of the longest common subsequence, by its definition."""

    @cache
    def rest(index: int, place: int) -> int:
        if index == len(one) or place == len(two):
            return 0
        if one[index] == two[place]:
            return 1 + rest(index + 1, place + 1)
        return max(rest(index + 1, place), rest(index, place + 1))

    return rest(0, 0)


@pytest.mark.parametrize(
    ("one", "two", "pairs"),
    [
        ("", "", []),
        ("", "abc", []),
        ("abc", "xyz", []),
        ("abc", "abc", [(0, 0), (1, 1), (2, 2)]),
        ("abc", "ac", [(0, 0), (2, 1)]),
        ("bc", "abc", [(0, 1), (1, 2)]),
        ("xaxbx", "ayb", [(1, 0), (3, 2)]),
    ],
)
def test_positions_of_the_same_items(one: str, two: str, pairs: list[tuple[int, int]]) -> None:
    assert common_subsequence(one, two) == pairs


@settings(derandomize=True, deadline=None, max_examples=examples(500))
@given(TEXTS, TEXTS)
def test_the_subsequence_is_the_longest_one(one: str, two: str) -> None:
    pairs = common_subsequence(one, two)
    assert all(one[index] == two[place] for index, place in pairs)
    assert all(before[0] < after[0] and before[1] < after[1] for before, after in pairwise(pairs))
    assert len(pairs) == longest(one, two)


def test_lists_with_too_many_edits_are_paired_in_their_order() -> None:
    one = [index % 7 for index in range(5000)]
    two = [6 - index % 7 for index in range(5000)]
    pairs = common_subsequence(one, two)
    assert all(one[index] == two[place] for index, place in pairs)
    assert len({index for index, _ in pairs}) == len({place for _, place in pairs}) == len(pairs) > 4900
