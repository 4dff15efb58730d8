"""A case told another way has the same answers: other names, another order of facts, other questions before, scopes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

from dim_answers import ask, facts_of
from dim_cases import Case, Question
from dim_expressions import renamed
from random_cases import other_questions

from splitgraph.dim import Dim, substitute, symbol

VARIANTS: Final = ("other names", "another order", "other questions before", "an inner scope")
_OTHER_NAMES: Final = ("A", "N", "Z", "batch", "d0", "d1", "d10", "height", "k", "unk0", "w", "zz")

# The answers to the facts, and the answer to the question.
Answers = tuple[list[object], object]


def differences(case: Case, seed: int) -> Iterator[tuple[str, str]]:
    """(variant, text) of each variant of which an answer differs."""
    told = _answers(case)
    rng = Random(f"variants {seed}")
    new = dict(zip(case.names, rng.sample(_OTHER_NAMES, len(case.names)), strict=True))
    answers = _renamed_back(_answers(_renamed(case, new)), {name: old for old, name in new.items()})
    if answers != told:
        yield VARIANTS[0], f"{_text(told)}; with {new}: {_text(answers)}"
    shuffled = case._replace(facts=tuple(rng.sample(case.facts, len(case.facts))))
    answers = _answers(shuffled)
    if _whatever_the_order(answers) != _whatever_the_order(told):
        yield VARIANTS[1], f"{_text(told)}; with {', '.join(map(str, shuffled.facts))}: {_text(answers)}"
    others = other_questions(case, seed)
    answers = _answers(case, others)
    if answers != told:
        yield VARIANTS[2], f"{_text(told)}; after {', '.join(map(str, others))}: {_text(answers)}"
    answers = _answers(case, inner=rng.randint(0, len(case.facts)))
    if answers != told:
        yield VARIANTS[3], f"{_text(told)}; with the later facts in an inner scope: {_text(answers)}"


def _answers(case: Case, others: Sequence[Question] = (), inner: int | None = None) -> Answers:
    """others: asked first, and again after each fact. inner: from this fact on, all is said in a scope of its own."""
    facts = facts_of(case)
    found: list[object] = []
    for place, fact in enumerate(case.facts):
        facts = facts.child() if place == inner else facts
        for other in others:
            ask(facts, other)
        found += ask(facts, Question("require", fact.left, fact.right, fact.relation))
    if inner == len(case.facts):
        facts = facts.child()
    for other in others:
        ask(facts, other)
    return found, ask(facts, case.question)


def _whatever_the_order(answers: Answers) -> object:
    """What the order of facts must not change. Where two contradict each other, the later one is not taken."""
    to_facts, to_question = answers
    return "contradiction" if "contradiction" in to_facts else to_question


def _renamed(case: Case, names: dict[str, str]) -> Case:
    def anew(one):  # type: ignore[no-untyped-def]
        return one._replace(left=renamed(one.left, names), right=renamed(one.right, names))

    return Case(
        {names[name]: bound for name, bound in case.bounds.items()},
        tuple(map(anew, case.facts)),
        anew(case.question),
        {names[name]: value for name, value in case.witness.items()},
    )


def _renamed_back(answers: Answers, names: dict[str, str]) -> Answers:
    old = {name: symbol(other) for name, other in names.items()}
    to_question = tuple(substitute(one, old) if isinstance(one, Dim) else one for one in answers[1])
    return answers[0], to_question


def _text(answers: Answers) -> str:
    to_facts, to_question = answers
    return f"{', '.join(map(str, [*to_facts, *to_question]))}"
