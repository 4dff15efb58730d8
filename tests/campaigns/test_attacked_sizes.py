"""A sample of the attack on sizes: its cases are cases, it sees wrong results, and what it asks for is right."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from attacked_sizes import CASES, Request, answers, check_case, difference, unique
from attacked_sizes_cases import Case
from attacked_sizes_engines import Runtime
from attacked_sizes_tape import F, Tape, Value

ENGINE = Runtime()
BY_NAME = {case.name: case for case in unique(CASES)}
_EVERY = 24
_RIGHT = (
    "heads/2x7/zeros",
    "table/looked up and expanded/2x5",
    "mask/where/2x5",
    "recurrent/GRU/both ways/2x6",
    "image/u-net by sizes/2x4x4",
)


def _doubled(t: Tape, N: int, T: int) -> Value:
    return t.input("x", "N", "T", 2) * 2.0


def _doubled_and_counted(t: Tape, N: int, T: int) -> Value:
    return t.input("x", "N", "T", 2) * 2.0 + t.constant([0.0] * (T == 5) + [1.0] * (T != 5), F)


def test_there_are_more_than_400_cases() -> None:
    assert len(BY_NAME) > 400


@pytest.mark.parametrize("name", list(BY_NAME)[::_EVERY])
def test_a_program_and_its_model_agree_at_the_old_sizes(name: str) -> None:
    assert check_case(BY_NAME[name], ENGINE) is None


def test_a_reading_that_is_not_the_model_is_no_case() -> None:
    case = Case("tripled", (_doubled, lambda t, N, T: _doubled(t, N, T) * 1.5), {"N": 1, "T": 5})
    assert check_case(case, ENGINE) == "reading 1 at {'N': 1, 'T': 5}: y0 has other elements at N=1 T=5"


def test_a_wrong_result_is_seen() -> None:
    case = Case("counted", (_doubled_and_counted,), {"N": 1, "T": 5})
    run = ENGINE.loaded(case.model())
    assert difference(case, {"N": 1, "T": 5}, run, 0) is None
    found = {(answer.request, answer.word) for answer in answers(case, ENGINE, "T=name", verify_all=False)}
    assert found == {("T=name", "wrong, called equal")}


def test_a_refusal_of_a_table_is_right() -> None:
    words = {(str(each.request), each.word) for each in _answers("a_table_that_was_cut/2x5")}
    assert ("N=name", "right") in words and ("T=name", "rightly refused") in words
    assert {word for _, word in words} == {"right", "rightly refused"}


@pytest.mark.parametrize("name", _RIGHT)
def test_what_is_asked_for_is_right(name: str) -> None:
    assert {each.word for each in _answers(name)} == {"right"}


def _answers(name: str) -> Iterator[Any]:
    return iter(answers(BY_NAME[name], ENGINE, "", verify_all=False))


def test_a_request_is_printed_as_it_is_given() -> None:
    assert str(Request({"N": "N_new", "T": 7})) == "N=name,T=7"
