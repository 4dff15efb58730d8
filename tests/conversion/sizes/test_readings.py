"""What the target of a Reshape says in terms of dimensions."""

from __future__ import annotations

import itertools
from dataclasses import replace
from math import prod

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from splitgraph.conversion.sizes.digits import Digit
from splitgraph.conversion.sizes.reshape_targets import Choice, DisplacedError, read_target
from splitgraph.conversion.sizes.wanted import Wanted
from splitgraph.dim import Dim, DimLike, evaluate, parse_dim, parse_expression, substitute_if_defined


def wanted(**old: int) -> Wanted:
    return Wanted({}, old, {}, {}, {}, {}, frozenset({"N"}))


def dims(text: str) -> list[DimLike]:
    return [parse_expression(part.strip()) for part in text.split(",")]


@pytest.mark.parametrize(
    ("data", "target", "old", "expected"),
    [
        # The size that it has.
        ("N, 16", (1, 16), {"N": 1}, "N, 16"),
        ("N, 7, 768", (8, 7, 12, 64), {"N": 8}, "N, 7, 12, 64"),
        ("1, S, 768", (1, 256, 12, 64), {"S": 256}, "1, S, 12, 64"),
        # With others in one entry, and apart again.
        ("N, 7, 768", (56, 768), {"N": 8}, "7*N, 768"),
        ("7*N, 768", (8, 7, 768), {"N": 8}, "N, 7, 768"),
        ("N, 3, 4, 5", (12, 5), {"N": 1}, "12*N, 5"),
        ("1, N, 4, 4", (1, 16), {"N": 1}, "N, 16"),
        # Several ones: the axis that it had, from the nearer end.
        ("N, 16", (1, 1, 16), {"N": 1}, "N, 1, 16"),
        ("16, N", (16, 1, 1), {"N": 1}, "16, 1, N"),
        # 0 and -1 stay where they say the same.
        ("N, 16", (-1, 16), {"N": 1}, "-1, 16"),
        ("N, 16", (0, -1), {"N": 1}, "0, -1"),
        ("N, 16", (1, -1), {"N": 1}, "N, -1"),
        ("N, 16", (-1,), {"N": 1}, "-1"),
        # A dimension of unknown size beside it.
        ("B, N, 16", (-1, 1, 4, 4), {"N": 1}, "-1, N, 4, 4"),
        ("B, N, 16", (0, 16), {"N": 1}, "0, 16*N"),
        ("(W + 7)//8, N, 2, 512", (0, 0, -1), {"N": 1}, "0, 0, -1"),
        ("(W + 7)//8, 6*N*W, 4", (0, -1, 24), {"N": 1}, "0, -1, 24"),
        # Two at once, and an expression of one.
        ("1, 4, (H + 1)//2, 6", (1, 4, 48), {"H": 15}, "1, 4, 6*((H + 1)//2)"),
    ],
)
def test_the_target_of_a_reshape(data: str, target: tuple[int, ...], old: dict[str, int], expected: str) -> None:
    read = read_target(dims(data), target, wanted(**old))
    assert read == dims(expected)


@pytest.mark.parametrize(
    ("data", "target", "old"),
    [("N, 16", (1, 17), {"N": 1}), ("N, 16", (3, -1, 7), {"N": 1})],
)
def test_a_target_that_does_not_fit(data: str, target: tuple[int, ...], old: dict[str, int]) -> None:
    assert read_target(dims(data), target, wanted(**old)) is None


@settings(max_examples=300, deadline=None)
@given(st.lists(st.integers(1, 4), min_size=1, max_size=3), st.integers(1, 3), st.integers(2, 4), st.data())
def test_items_stay_apart(sizes: list[int], items: int, more: int, drawn: st.DataObject) -> None:
    """Any grouping of the axes behind the first: each item is reshaped as it would be alone."""
    cuts = drawn.draw(st.lists(st.booleans(), min_size=len(sizes), max_size=len(sizes)))
    target = [items]
    for size, is_cut in zip(sizes, cuts, strict=True):
        if is_cut:
            target.append(size)
        else:
            target[-1] *= size
    read = read_target([parse_dim("N"), *sizes], target, wanted(N=items))
    assert read is not None
    data = np.arange(items * more * prod(sizes)).reshape(items * more, *sizes)
    whole = data.reshape([evaluate(entry, {"N": items * more}) for entry in read])
    axis = next((axis for axis, entry in enumerate(read) if isinstance(entry, Dim)), 0)
    groups = [data[first : first + items].reshape(target) for first in range(0, items * more, items)]
    assert np.array_equal(whole, np.concatenate(groups, axis))


def test_all_sizes_of_a_dimension_are_told_apart() -> None:
    for before, size, after in itertools.product((1, 2, 3), repeat=3):
        read = read_target([before, parse_dim("N"), after], (before, size, after), wanted(N=size))
        assert read == [before, parse_dim("N"), after]


def test_a_one_that_is_no_batch_has_one_place_only() -> None:
    """A length of 1 among as many as before keeps its turn. With several other places, they are asked about."""
    asked: list[Choice] = []

    def choose(choice: Choice) -> int:
        asked.append(choice)
        return len(choice.readings) - 1

    assert read_target(dims("4, H"), (4, 1), wanted(H=1), choose=choose) == dims("4, H") and not asked
    assert read_target(dims("1, H, 5"), (1, 1, 5), wanted(H=1), choose=choose) == dims("1, H, 5") and not asked
    assert read_target(dims("4, H, 5"), (4, 1, 1, 5), wanted(H=1), choose=choose) == dims("4, 1, 1, 5*H")
    choice = asked.pop()
    assert [str(each) for _, each in choice.readings] == ["H", "H", "4*H", "5*H"] and choice.is_asked
    assert read_target(dims("4, H, 5"), (4, 5), wanted(H=1), choose=choose) == dims("4, 5*H")
    (choice,) = asked
    assert choice.readings == ((0, parse_dim("4*H")), (1, parse_dim("5*H"))) and choice.is_asked


@pytest.mark.parametrize(
    ("data", "target", "expected"),
    [
        ("56, 3", (8, 7, 3), ["H//7, 7, 3", "8, H//8, 3"]),
        ("56, 3", (-1, 7, 3), ["-1, 7, 3"]),
        ("6, 2", (3, 4), ["H//2, 4", "3, (2*H)//3"]),
        # Windows of all that there is, where another axis is cut into windows of the same size.
        ("7, 7, 3", (1, 7, 1, 7, 3), ["1, H, 1, 7, 3", "H//7, 7, 1, 7, 3"]),
        ("7, 14, 3", (1, 7, 2, 7, 3), ["1, H, 2, 7, 3", "H//7, 7, 2, 7, 3"]),
        ("14, 7, 3", (7, 2, 7, 1, 3), ["H//2, 2, 7, 1, 3", "7, H//7, 7, 1, 3"]),
        ("7, 7, 3", (7, 1, 7, 1, 3), ["H, 1, 7, 1, 3", "7, H//7, 7, 1, 3"]),
        # As many as a pair has.
        ("2, 5", (1, 10), ["1, 5*H", "H//2, 10"]),
        ("2, 5", (-1, 10), ["-1, 5*H", "-1, 10"]),
        # An axis of 1 that is added, or that the data has.
        ("7, 3", (1, 7, 3), ["1, H, 3"]),
        ("7, 1, 21", (7, 1, 3, 7), ["H, 1, 3, 7"]),
        ("7, 14, 3", (7, 1, 14, 3), ["H, 1, 14, 3"]),
    ],
)
def test_a_digit_that_is_cut_has_several_readings(data: str, target: tuple[int, ...], expected: list[str]) -> None:
    sizes = wanted(H=int(data.split(",")[0]))
    data = f"H,{data.partition(',')[2]}"
    counts: list[int] = []
    found = []
    for number in range(len(expected)):
        read = read_target(
            dims(data),
            target,
            sizes,
            choose=lambda choice, number=number: counts.append(len(choice.readings)) or number,
        )
        found.append(read)
    assert found == [dims(text) for text in expected]
    assert counts == ([] if len(expected) == 1 else [len(expected)] * len(expected))


@pytest.mark.parametrize("target", [(1, 2, 1, 4), (-1, 2, 1, 4), (1, 8, 1), (0, 2, 1, 4)])
def test_a_length_of_one_behind_others_may_have_been_transposed(target: tuple[int, ...]) -> None:
    with pytest.raises(DisplacedError):
        read_target(dims("1, T, 8"), target, wanted(T=1))


@pytest.mark.parametrize(
    ("data", "target"), [("5, N, 2, 4", (1, 5, 8)), ("5, N, 2, 4", (1, 5, -1)), ("2, N, 2, 4", (1, 2, 8))]
)
def test_a_batch_of_one_inside_others_may_have_been_transposed(data: str, target: tuple[int, ...]) -> None:
    sizes = replace(wanted(N=1), axes={"N": {"x": 0}})
    with pytest.raises(DisplacedError):
        read_target(dims(data), target, sizes)


def test_a_batch_of_one_that_was_merged_inside_others_may_have_been_transposed() -> None:
    order = {0: (Digit(5), Digit(dims("N")[0], home=(1, 3)))}
    sizes = replace(wanted(N=1), axes={"N": {"x": 0}})
    with pytest.raises(DisplacedError):
        read_target(dims("5*N, 6"), (1, 5, 6), sizes, order)
    assert read_target(dims("5*N, 6"), (5, 1, 6), sizes, order) == dims("5, N, 6")
    assert read_target(dims("5*N, 6"), (5, 2, 3), sizes, order) == dims("5*N, 2, 3")


@pytest.mark.parametrize(
    ("data", "target", "expected"),
    [
        # Items that stand outside are merged with what follows.
        ("N, 5, 8", (5, 1, 8), "5*N, 1, 8"),
        # Its own place is there, and no entry of 1 is new.
        ("5, N, 2, 4", (5, 1, 8), "5, N, 8"),
        ("5, N, 2, 4", (5, 8), "5*N, 8"),
    ],
)
def test_a_batch_of_one_is_merged_otherwise(data: str, target: tuple[int, ...], expected: str) -> None:
    assert read_target(dims(data), target, replace(wanted(N=1), axes={"N": {"x": 0}})) == dims(expected)


@pytest.mark.parametrize(
    ("data", "target", "expected"),
    [
        # Its own place is there, and the 1 behind is one more.
        ("1, T, 8", (1, 1, 8, 1), "1, T, 8, 1"),
        ("1, T, 8", (8,), "8*T"),
        # A batch stays outside.
        ("N, 1, 8", (1, 2, 1, 4), "N, 2, 1, 4"),
        # As many of 1 as before.
        ("1, T, 8, 1", (1, 8, 1), "T, 8, 1"),
    ],
)
def test_a_length_of_one_with_a_place(data: str, target: tuple[int, ...], expected: str) -> None:
    first = replace(wanted(N=1, T=1), axes={"N": {"x": 0}, "T": {"x": 1}})
    assert read_target(dims(data), target, first) == dims(expected)


@pytest.mark.parametrize("text", ["N", "2*N + T", "T//N", "T//(N - 2)", "S", "max(N, T)"])
def test_old_sizes_are_computed_once_and_are_those_of_each_request(text: str) -> None:
    """What is remembered is what is computed anew; a division by 0 stays as it is."""
    dim, first = parse_expression(text), wanted(N=2, T=7)
    kept = [first.before(dim) for _ in range(2)]
    assert kept == [substitute_if_defined(dim, first.old)] * 2
    other = replace(first, old={"N": 3, "T": 8})
    assert other.before(dim) == substitute_if_defined(dim, other.old)
