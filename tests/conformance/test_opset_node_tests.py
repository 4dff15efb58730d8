"""onnx's node tests at other opsets: never wrong, never invalid, and enough of them converted.

By default a seeded part that has every operator, with `-m slow` all of them. `opset_report.py` shows tables of it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from known_opsets import known

from .opset_cases import WRAPS, NodeCase, Wrap, node_cases, operators_of, opset_of, wrapped
from .opset_report import DOWN, UP, Found, faults, share, survey, ways_of

BACK = (28, 18, 13, 9)
# In percent, by where the nodes are: what issue 4 aims at for the first two, and what is asserted.
AIMS = {"up to 18": 99.5, "up to 26": 99.5, "up to 28": 99.5}
AIMS |= {"down to 18": 90.0, "down to 13": 76.0, "down to 11": 71.0, "down to 9": 63.0}
REACHED: dict[Wrap, dict[str, float]] = {
    "none": AIMS | {"down to 18": 76.0, "down to 9": 58.0},
    "if": AIMS | {"down to 18": 76.0, "down to 9": 58.0},
    "function": AIMS | {"down to 18": 76.0, "down to 9": 58.0},
    "constants": AIMS | {"down to 18": 60.0, "down to 13": 60.0, "down to 11": 60.0, "down to 9": 50.0},
}
WRONG = ("wrong", "invalid", "crashed", "doubtful")
# Operators that no engine of the tests runs: the evaluator needs a package for images.
NOT_RUN = ("test_image_decoder",)


def every_operator(seed: int, cases: Sequence[NodeCase] = node_cases()) -> list[NodeCase]:
    """A case of each operator and opset, chosen by a seed."""
    shuffled = random.Random(seed).sample(cases, len(cases))
    chosen, seen = [], set()
    for case in shuffled:
        new = {(operator, opset_of(case.model)) for operator in operators_of(case.model)} - seen
        if new:
            seen |= new
            chosen.append(case)
    return chosen


def go(cases: Sequence[NodeCase], wrap: Wrap, there_and_back: Sequence[int] = ()) -> Found:
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


def test_every_operator_up_and_down() -> None:
    assert judged(go(every_operator(0), "none")) == []


@pytest.mark.parametrize("wrap", WRAPS[1:])
def test_every_operator_in_other_places(wrap: Wrap) -> None:
    cases = every_operator(WRAPS.index(wrap))
    assert judged(go(cases[::3], wrap)) == []


def test_there_and_back() -> None:
    jobs = [(case, ways_of(case, (), (), known(BACK))) for case in every_operator(7)[::2]]
    assert judged(survey(jobs)) == []


@pytest.mark.slow
@pytest.mark.parametrize("wrap", WRAPS)
def test_all_up_and_down(wrap: Wrap) -> None:
    found = go(node_cases(), wrap)
    assert judged(found) == []
    shares = {way: share(verdicts) for way, verdicts in found.items()}
    assert {way: shares[way] for way, least in REACHED[wrap].items() if way in shares and shares[way] < least} == {}


@pytest.mark.slow
def test_all_there_and_back() -> None:
    assert judged(survey([(case, ways_of(case, (), (), known(BACK))) for case in node_cases()])) == []
