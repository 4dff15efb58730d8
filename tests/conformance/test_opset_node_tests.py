"""onnx's node tests at other opsets: never wrong, never invalid, and enough of them converted.

By default a seeded part that has half of the operators, with `-m slow` the other half and one case in four. All of
them are for `opset_report.py`, which shows tables of it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from known_opsets import known

from .model_cases import ModelCase, opset_of
from .opset_cases import WRAPS, Wrap, node_cases, operators_of, wrapped
from .opset_report import DOWN, UP, Found, faults, share, survey, ways_of

BACK = (28, 18, 13, 9)
# In percent: what is asserted of the cases as they are, and what issue 4 aims at. Of the cases that go down to 18, 15 %
# have inputs or outputs of types that no operator has there: of the others, 97 % are converted.
SHARES = {
    "up to 18": (99.9, 99.5),
    "up to 26": (99.9, 99.5),
    "up to 28": (99.9, 99.5),
    "down to 18": (82.0, 90.0),
    "down to 13": (86.0, 76.0),
    "down to 11": (86.0, 71.0),
    "down to 9": (84.0, 63.0),
}
# In percent: how much less than SHARES is asserted downward of a sample of the nodes elsewhere; fewer have constants,
# and more of these have types that lower opsets lack. Where each call gives the attributes, few can be written anew.
LESS: dict[Wrap, float] = {"none": 0, "if": 4, "function": 4, "references": 80, "constants": 14}
# One case of so many. Fewer are enough where the nodes are converted by the same code as elsewhere.
EACH: dict[Wrap, int] = {"none": 4, "if": 24, "function": 24, "references": 12, "constants": 12}
# In percent: by so much fewer of the chosen cases than of all may go downward. Upward nearly all do.
SAMPLING_ERROR = 2.0
WRONG = ("wrong", "invalid", "crashed", "doubtful")
# Operators that no engine of the tests runs: the evaluator needs a package for images.
NOT_RUN = ("test_image_decoder",)


def every_operator(seed: int, cases: Sequence[ModelCase] = node_cases()) -> list[ModelCase]:
    """A case of each operator and opset, chosen by a seed."""
    shuffled = random.Random(seed).sample(cases, len(cases))
    chosen, seen = [], set()
    for case in shuffled:
        new = {(operator, opset_of(case.model)) for operator in operators_of(case.model)} - seen
        if new:
            seen |= new
            chosen.append(case)
    return chosen


def go(cases: Sequence[ModelCase], wrap: Wrap, there_and_back: Sequence[int] = ()) -> Found:
    made = [case for one in cases if (case := wrapped(one, wrap)) is not None]
    return survey([(case, ways_of(case, known(UP), DOWN, known(there_and_back))) for case in made])


def judged(found: Found) -> list[str]:
    """What must not be: one line for each fault."""
    assert found
    unjudged = [
        f"unjudged {way}: {name}"
        for way, verdicts in found.items()
        for name, verdict in verdicts
        if verdict.status == "unjudged" and not name.startswith(NOT_RUN)
    ]
    return [*faults(found, *WRONG), *unjudged]


def test_operators_up_and_down() -> None:
    assert judged(go(every_operator(0)[::8], "none")) == []


@pytest.mark.parametrize("wrap", WRAPS[1:])
@pytest.mark.sample(1)
def test_operators_in_other_places(wrap: Wrap) -> None:
    cases = every_operator(WRAPS.index(wrap))
    assert judged(go(cases[::20], wrap)) == []


def test_there_and_back() -> None:
    jobs = [(case, ways_of(case, (), (), known(BACK))) for case in every_operator(7)[::12]]
    assert judged(survey(jobs)) == []


@pytest.mark.slow
@pytest.mark.parametrize("wrap", WRAPS)
def test_many_up_and_down(wrap: Wrap) -> None:
    found = go(node_cases()[:: EACH[wrap]], wrap)
    assert judged(found) == []
    is_less = {way: way.startswith("down") or wrap == "references" for way in SHARES}
    least = {way: held - (LESS[wrap] + SAMPLING_ERROR if is_less[way] else 0) for way, (held, _) in SHARES.items()}
    shares = {way: share(verdicts) for way, verdicts in found.items()}
    assert {way: reached for way, reached in shares.items() if reached < least.get(way, 0)} == {}


@pytest.mark.slow
def test_the_other_operators_up_and_down() -> None:
    assert judged(go([case for index, case in enumerate(every_operator(0)) if index % 8], "none")) == []


@pytest.mark.slow
def test_many_there_and_back() -> None:
    jobs = [(case, ways_of(case, (), (), known(BACK))) for case in node_cases()[::24]]
    assert judged(survey(jobs)) == []
