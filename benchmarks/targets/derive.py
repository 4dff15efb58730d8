"""What measured answers say of traits: which ones a runtime reads, and which ones are to blame where it does not.

A trait is read if one of the models with it is read. Of a model that is not read, those of its traits are to blame
that no model shows as read: first the form or the modifier, then an operator. Where each of its traits alone is read,
two or three of them together are to blame; where even a model with all of them is read, the answer hangs on something
that no trait tells, and the form with what is unusual about it counts as not read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from splitgraph.targets.target import ANSWERS, Answer
from splitgraph.targets.traits import FORMS, MODIFIERS

Traits = frozenset[str]
Row = tuple[Traits, Answer]


class Derived(NamedTuple):
    """What is known of a runtime: traits that it reads, and sets of traits that it does not read."""

    reads: frozenset[str]
    failures: Mapping[Traits, Answer]


def derive(rows: Iterable[Row]) -> Derived:
    """What models with these traits and these answers say."""
    rows = list(rows)
    right = [traits for traits, answer in rows if answer == "reads"]
    good = frozenset().union(*right)
    failing = sorted((row for row in rows if row[1] != "reads"), key=lambda row: -ANSWERS.index(row[1]))
    found: dict[Traits, Answer] = {}

    def blame(traits: Iterable[str], answer: Answer) -> None:
        key = frozenset(traits)
        found[key] = max(found.get(key, answer), answer, key=ANSWERS.index)

    for traits, answer in failing:
        suspects = [trait for trait in traits - good if not is_operator(trait)]
        if len(suspects) == 1:
            blame(suspects, answer)
    for traits, answer in failing:
        suspects = traits - good
        if not suspects or _is_explained(traits, found):
            continue
        forms = [trait for trait in suspects if trait in FORMS]
        others = [trait for trait in suspects if not is_operator(trait)]
        # An operator is to blame alone only in a model with nothing unusual.
        unusual = [trait for trait in traits if trait in MODIFIERS]
        blame(forms or others or [*unusual, *(_form_of(traits) if unusual else suspects)], answer)
    for traits, answer in failing:
        if not _is_explained(traits, found):
            blame(_together(traits, right), answer)
    for traits, answer in failing:
        keys = [each for each in found if each <= traits]
        if len(keys) == 1:
            blame(keys[0], answer)
    smallest = {each: answer for each, answer in found.items() if not any(other < each for other in found)}
    return Derived(frozenset(good - {trait for each in smallest if len(each) == 1 for trait in each}), smallest)


def is_operator(trait: str) -> bool:
    """True for an operator with its version, such as "Relu-13"."""
    name, dash, version = trait.rpartition("-")
    return bool(dash) and version.isdigit() and name[:1].isupper()


def _is_explained(traits: Traits, found: Collection[Traits]) -> bool:
    return any(each <= traits for each in found)


def _together(traits: Traits, right: Sequence[Traits]) -> Collection[str]:
    """The smallest part of the traits that no model that is read has; else the form with what is unusual."""
    if "local-function" in traits:
        return ["local-function"]
    # Operators are traits of other nodes of the model.
    own = [trait for trait in traits if not is_operator(trait)]
    ordered = sorted(own, key=lambda trait: (trait not in FORMS, trait not in MODIFIERS, trait))
    for count in (2, 3):
        for part in combinations(ordered, count):
            if not any(set(part) <= each for each in right):
                return part
    return [*_form_of(traits), *(trait for trait in traits if trait in MODIFIERS)] or traits


def _form_of(traits: Traits) -> list[str]:
    return [trait for trait in traits if trait in FORMS]
