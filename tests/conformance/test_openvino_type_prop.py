"""The cases of OpenVINO's own type propagation tests of Split-1 and VariadicSplit-1, rebuilt from what they describe
(`src/core/tests/type_prop/split.cpp` and `variadic_split.cpp`).

A dimension is a number, an interval [lowest, most or None], or "?". Ours may be tighter than OpenVINO's, never looser;
where it is, the table has both. An expectation that is a text is an error, with the code that we give.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from splitgraph.model.value_type import Contents
from splitgraph.splits import infer_split, openvino_split_1, variadic_split_1

from .test_openvino_cases import LayerSite, noted, run

# Lengths of VariadicSplit in every element type that its tests use, with the axis as a scalar and as a vector.
_LENGTH_TYPES = [("i16", []), ("i32", [1]), ("i64", [])]


class Case(NamedTuple):
    """A split of data of one shape. parts: their number (Split), or their lengths (VariadicSplit). ours: our answer
    where it is tighter than OpenVINO's.
    """

    shape: Any
    axis: int | None
    parts: int | list[int]
    expected: Any
    ours: Any = None
    axis_type: str = "i64"
    axis_shape: Any = ()
    data_type: str = "f32"


def rows(*shapes: list[Any]) -> list[list[Any]]:
    return [*shapes]


SPLITS = [
    Case([2, 3, 4], 1, 3, rows([2, 1, 4], [2, 1, 4], [2, 1, 4]), data_type="f16"),
    Case([2, 6], -2, 2, rows([1, 6], [1, 6]), data_type="i32"),
    Case([2, 12, "?"], 1, 3, rows([2, 4, "?"], [2, 4, "?"], [2, 4, "?"]), axis_type="i32"),
    Case([2, "?", "?"], 0, 2, rows([1, "?", "?"], [1, "?", "?"]), axis_type="i16"),
    Case([4, "?", 3, 5], 1, 3, rows(*[[4, "?", 3, 5]] * 3), axis_type="i8"),
    # Of the interval only what divides is left: 4 or 6 of 3 to 6.
    Case([4, [3, 6], [3, 6], 5], 1, 2, rows(*[[4, [1, 3], [3, 6], 5]] * 2), rows(*[[4, [2, 3], [3, 6], 5]] * 2), "i8"),
    # 3 is the only multiple of 3 from 2 to 4.
    Case([4, [2, 4], 3, 5], 1, 3, rows(*[[4, [0, 1], 3, 5]] * 3), rows(*[[4, 1, 3, 5]] * 3), "i8"),
    Case([4, [1, 2], 3, 5], 1, 3, "SG206", axis_type="i8"),
    Case({"rank": 4}, 1, 3, rows(*[["?"] * 4] * 3), axis_type="u64"),
    Case({"rank": 4}, None, 3, rows(*[["?"] * 4] * 3), axis_type="u32"),
    Case(None, 2, 3, [None] * 3, axis_type="u16"),
    Case(None, None, 3, [None] * 3, axis_type="u8"),
    Case(None, None, 3, [None] * 3, axis_type="u8", axis_shape=None),
    Case([2, 6], 1, 2, "SG218", axis_type="f32"),
    Case([2, 6], 1, 2, "SG218", axis_type="boolean"),
    Case([2, 6], None, 1, "SG218", axis_shape=(2,), data_type="i32"),
    Case([2, 6], 1, 0, "SG209", data_type="i32"),
    Case([2, 6], -5, 4, "SG201", data_type="i32"),
    Case([2, 6], 1, 4, "SG206", data_type="i32"),
    Case([6, 2], 0, 1, rows([6, 2]), axis_type="i32"),
    Case([6], 0, 2, rows([3], [3]), axis_type="i32"),
    Case([3, 6, 7, 3], 1, 2, rows(*[[3, 3, 7, 3]] * 2), axis_type="i32"),
    Case([[2, 6], 2], 0, 1, rows([[2, 6], 2]), axis_type="i32"),
    Case([[4, 8]], 0, 2, rows([[2, 4]], [[2, 4]]), axis_type="i32"),
    Case([3, 6, [10, 20], [1, 3]], 2, 2, rows(*[[3, 6, [5, 10], [1, 3]]] * 2), axis_type="i32"),
]

VARIADIC_SPLITS = [
    Case([6, 2], 0, [6], rows([6, 2])),
    Case([6, 2, 10], -1, [6, -1, 3], rows([6, 2, 6], [6, 2, 1], [6, 2, 3])),
    Case([1, 20, 3], 1, [-1, 10, 3, 5], rows([1, 2, 3], [1, 10, 3], [1, 3, 3], [1, 5, 3])),
    Case([[2, 6], 2], 0, [4], rows([4, 2])),
    # OpenVINO gives the rest of an interval up; 4 + 1 leave 0 or 1 of 2 to 6.
    Case([[2, 6], 2], 0, [4, 1, -1], rows([4, 2], [1, 2], ["?", 2]), rows([4, 2], [1, 2], [[0, 1], 2])),
    Case([12, "?"], -2, [7, -1, 2], rows([7, "?"], [3, "?"], [2, "?"])),
    Case(["?", "?", 6], 2, [3, 1, 2], rows(["?", "?", 3], ["?", "?", 1], ["?", "?", 2])),
    Case(["?", 6], 1, [6, 0], rows(["?", 6], ["?", 0])),
    Case([[2, 4], "?"], 1, [4, 1, -1, 3], rows([[2, 4], 4], [[2, 4], 1], [[2, 4], "?"], [[2, 4], 3])),
    Case([6, 2], 0, [4, 1], "SG204"),
    Case([6, 2], 0, [7, -1], "SG204"),
    Case([6, 2], 0, [-2, 8], "SG205"),
    Case([6, 2], 0, [-1, -1, 2], "SG216"),
    Case([6, 2], 2, [6], "SG201"),
]

# The lengths of a shape are split, and used as shape: what is known of each stays known.
OF_SHAPES = [
    ([6, 2, 3, 4], 2),
    ([6, 2, 3, 4], 4),
    ([[2, 6], 2, 3, 4], 2),
    ([[2, 6], "?", [0, 6], [7, None]], 2),
    ([[2, 6], 2, 3], [2, 1, 0]),
    ([[2, 6], 2, 3, [0, 6], 5], [1, -1, 0, 2]),
    ([[2, 6], 2, 3, 8, 10, [0, 6], 5], [-1, 3, 0, 2]),
    ([[2, 6], 2, 3, 5], [2, -1, 0]),
]


def as_corpus(case: Case, length_type: str = "i64") -> dict[str, Any]:
    """The case in the notation of the corpus."""
    shape = None if case.axis_shape is None else list(case.axis_shape)
    made: dict[str, Any] = {
        "op": "Split" if isinstance(case.parts, int) else "VariadicSplit",
        "data": {"shape": case.shape, "type": case.data_type},
        "axis": {"value": case.axis, "shape": shape, "type": case.axis_type},
    }
    if isinstance(case.parts, int):
        made["num_splits"] = case.parts
    else:
        made["split_lengths"] = {"values": case.parts, "shape": [len(case.parts)], "type": length_type}
    return made


def check(case: Case, length_type: str = "i64") -> None:
    shapes, found = run(as_corpus(case, length_type))
    if isinstance(case.expected, str):
        assert [text.split()[0] for text in found] == [case.expected]
        return
    assert not found
    assert shapes == (case.ours or case.expected)


@pytest.mark.parametrize("case", SPLITS, ids=str)
def test_split(case: Case) -> None:
    check(case)


@pytest.mark.parametrize(("length_type", "axis_shape"), _LENGTH_TYPES, ids=str)
@pytest.mark.parametrize("case", VARIADIC_SPLITS, ids=str)
def test_variadic_split(case: Case, length_type: str, axis_shape: list[int]) -> None:
    check(case._replace(axis_type=length_type, axis_shape=axis_shape), length_type)


class _Site(LayerSite):
    """Keeps what is known of the elements of each output."""

    def __init__(self, case: dict[str, Any]) -> None:
        super().__init__(case)
        self.elements: dict[int, list[Any]] = {}

    def set_contents(self, index: int, contents: Contents | None) -> None:
        self.elements[index] = [] if contents is None else [noted(self.facts, dim) for dim in contents.items]


@pytest.mark.parametrize(("shape", "parts"), OF_SHAPES, ids=str)
def test_split_of_a_shape(shape: list[Any], parts: int | list[int]) -> None:
    case = as_corpus(Case(None, 0, parts, None, data_type="i64"))
    case["data"] = {"from": "shapeof", "of": shape, "type": "i64"}
    site = _Site(case)
    variant = openvino_split_1.VARIANT if isinstance(parts, int) else variadic_split_1.VARIANT
    split, _ = infer_split(variant, site)
    assert split is not None
    assert not site.found
    lengths = [len(shape) // parts] * parts if isinstance(parts, int) else parts
    rest = len(shape) - sum(length for length in lengths if length != -1)
    whole = [rest if length == -1 else length for length in lengths]
    starts = [sum(whole[:index]) for index in range(len(whole))]
    unbounded = ["?" if dim == [0, None] else dim for dim in shape]
    expected = [unbounded[start : start + length] for start, length in zip(starts, whole, strict=True)]
    assert [site.elements[index] for index in range(len(whole))] == expected


def test_where_ours_is_tighter() -> None:
    """OpenVINO's answers to these hold too, but say less."""
    tighter = [case for case in (*SPLITS, *VARIADIC_SPLITS) if case.ours is not None]
    assert len(tighter) == 3
