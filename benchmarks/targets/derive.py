"""What measured answers say of traits: which ones a runtime reads, and which ones are to blame where it does not.

A trait is read if one of the models with it is read. Of a model that is not read, those of its traits are to blame
that no model shows as read: first the form or the modifier, then an operator. Where each of its traits alone is read,
two or three of them together are to blame; where even a model with all of them is read, the answer hangs on something
that no trait tells, and the form with what is unusual about it counts as not read.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import NamedTuple

from splitgraph.runtimes.target import ANSWERS, Answer
from splitgraph.runtimes.traits import FORMS, MODIFIERS

Traits = frozenset[str]
_MISSING = re.compile("unsupported|not supported|unimplemented|not.?implemented", re.IGNORECASE)
Row = tuple[Traits, Answer]


class Derived(NamedTuple):
    """What is known of a runtime: traits that it reads, and sets of traits that it does not read."""

    reads: frozenset[str]
    failures: Mapping[Traits, Answer]


def derive(rows: Iterable[Row], whole: Iterable[tuple[Traits, Answer, str]] = ()) -> Derived:
    """What models with these traits and these answers say. rows: models of one form. whole: models of many nodes, with
    the reasons. They say what is read; what is not read they say only of a single operator that no model that is read
    has, where the process dies or the reason says that this operator is not there.
    """
    rows, whole = list(rows), list(whole)
    right = [traits for traits, answer in rows if answer == "reads"]
    good = frozenset().union(*right, *(traits for traits, answer, _ in whole if answer == "reads"))
    found = _Blame(good, right)
    failing = sorted((row for row in rows if row[1] != "reads"), key=lambda row: -ANSWERS.index(row[1]))
    for find in (found.only_suspect, found.suspects, found.together, found.worst):
        for traits, answer in failing:
            find(traits, answer)
    for traits, answer, reason in whole:
        suspects = _plainest(traits - good)
        if answer in ("refuses", "dies") and not found.explains(traits) and len(suspects) == 1:
            (suspect,) = suspects
            if answer == "dies" or (suspect.partition("-")[0] in reason and _MISSING.search(reason)):
                found.blame(suspects, answer)
    smallest = {each: answer for each, answer in found.found.items() if not any(other < each for other in found.found)}
    return Derived(frozenset(good - {trait for each in smallest if len(each) == 1 for trait in each}), smallest)


@dataclass(slots=True)
class _Blame:
    """What is to blame so far. good: traits that a model that is read has. right: the traits of these models."""

    good: frozenset[str]
    right: Sequence[Traits]
    found: dict[Traits, Answer] = field(default_factory=dict)

    def blame(self, traits: Iterable[str], answer: Answer) -> None:
        """Blame traits, and keep the worst answer."""
        key = frozenset(traits)
        self.found[key] = max(self.found.get(key, answer), answer, key=ANSWERS.index)

    def explains(self, traits: Traits) -> bool:
        """Whether a part of the traits is to blame already."""
        return any(each <= traits for each in self.found)

    def only_suspect(self, traits: Traits, answer: Answer) -> None:
        """Blame the only trait that is no operator and that no model that is read has."""
        suspects = [trait for trait in traits - self.good if not is_operator(trait)]
        if len(suspects) == 1:
            self.blame(suspects, answer)

    def suspects(self, traits: Traits, answer: Answer) -> None:
        """Blame the form, other traits, or the only operator that no model that is read has."""
        suspects = traits - self.good
        if not suspects or self.explains(traits):
            return
        others = [trait for trait in suspects if not is_operator(trait)]
        unusual = [trait for trait in traits if trait in MODIFIERS]
        # Another version of the operator may be read.
        operators = frozenset(_versions(suspects))
        operator = operators if len(operators) == 1 and not unusual else ()
        self.blame(_forms(suspects) or others or operator or [*unusual, *_forms(traits)], answer)

    def together(self, traits: Traits, answer: Answer) -> None:
        """Blame traits that are read alone, and not together."""
        if not self.explains(traits):
            self.blame(_together(traits, self.right), answer)

    def worst(self, traits: Traits, answer: Answer) -> None:
        """Give what alone explains this model the worst of the answers."""
        keys = [each for each in self.found if each <= traits]
        if len(keys) == 1:
            self.blame(keys[0], answer)


def is_operator(trait: str) -> bool:
    """True for an operator, with its version or without: "Relu-13", "Relu"."""
    return trait[:1].isupper()


def _plainest(suspects: Traits) -> Traits:
    """Suspects without the versions of operators of which no version is read."""
    return frozenset(trait for trait in suspects if trait.rpartition("-")[0] not in suspects)


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
    return [*_forms(traits), *(trait for trait in traits if trait in MODIFIERS)] or _versions(traits)


def _versions(traits: Traits) -> list[str]:
    """The operators with their versions."""
    return [trait for trait in traits if is_operator(trait) and "-" in trait]


def _forms(traits: Traits) -> list[str]:
    return [trait for trait in traits if trait in FORMS]
