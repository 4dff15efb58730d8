"""Judges a node by measured cases: the rule of the table of operators.

A case has factors, as `splitgraph.runtimes.factors` reads them, and an answer. A factor is seen if a case with it runs.
A case that fails blames a factor if this is its only one that is not seen. Where all are seen, what it changes is to
blame together; where several are not, nothing is blamed. A node runs if all its factors are seen and nothing in it is
blamed, and is "not known" where one of them is in no case that runs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, NamedTuple

from splitgraph.runtimes.node_traits import Kind

# What is known of a node: all is read; it is refused (the process dies of it, too); results are wrong; some cases like
# it are not read; or nothing like it was measured.
Verdict = Literal["reads", "refuses", "wrong", "some", "unmeasured"]
Factor = tuple[str, str]
# Letters of answers. "?": the case could not be given, or its control fails; it says nothing of the operator.
RUNS, NOTHING, MIXED = ".", "?", "m"
_WRONG, _DEADLY, _FAILS = frozenset("Wk"), frozenset("XH"), frozenset("rWkXH")
_OF_ANOTHER_RANK = "the numbers are right, and their rank is another one"
_MOST_NAMED = 2
# So many cases have to fail, where none is a base, so that an operator version is refused.
_ENOUGH = 3


class Judged(NamedTuple):
    """A verdict and its reason. dies: the process of the runtime dies of the node. factors: those that are to blame, or
    that are not known.
    """

    verdict: Verdict
    why: str
    dies: bool = False
    factors: tuple[Factor, ...] = ()


class FactorCase(NamedTuple):
    """A case of an operator version. base: the position of the base that it was made from, -1 for one of no base."""

    factors: frozenset[Factor]
    base: int


@dataclass(frozen=True, eq=False)
class MeasuredOperator:
    """What a runtime did with the cases of an operator version.

    label: "Softmax-13". cases, letters: each case and its answer. said: the runtime's own words of a base that fails.
    notes: what is known more of factors that are not read. alike: other versions with the same meaning, whose cases
    count if this version runs.
    """

    label: str
    cases: Sequence[FactorCase]
    letters: str
    said: str = ""
    notes: Mapping[Factor, str] = field(default_factory=dict, repr=False)
    alike: Sequence[MeasuredOperator] = field(default=(), repr=False)

    @property
    def counts(self) -> Counter[str]:
        """How many cases were measured, by letter."""
        return Counter(letter for letter in self.letters if letter != NOTHING)

    @property
    def runs(self) -> bool:
        """Return True if a base runs; of a version without one, if any case does."""
        bases = self._bases
        return bool(bases) and any(self.letters[place] in (RUNS, MIXED) for place in bases)

    @cached_property
    def _bases(self) -> Sequence[int]:
        measured = [place for place, letter in enumerate(self.letters) if letter != NOTHING]
        return [place for place in measured if self.cases[place].base == place] or measured

    @cached_property
    def _own(self) -> Mapping[frozenset[Factor], str]:
        return {
            case.factors: letter for case, letter in zip(self.cases, self.letters, strict=True) if letter != NOTHING
        }

    @cached_property
    def _without_base(self) -> frozenset[frozenset[Factor]]:
        """The factors of cases that were made from no base, and have no control."""
        return frozenset(case.factors for case in self.cases if case.base < 0)

    @cached_property
    def _all(self) -> Sequence[tuple[FactorCase, str, MeasuredOperator]]:
        """All cases that count, with their answers."""
        groups = [self, *(other for other in self.alike if other.runs)]
        return [
            (case, letter, group)
            for group in groups
            for case, letter in zip(group.cases, group.letters, strict=True)
            if letter != NOTHING
        ]

    @cached_property
    def seen(self) -> frozenset[Factor]:
        """The factors of all cases that run."""
        running = [case.factors for case, letter, _ in self._all if letter in (RUNS, MIXED)]
        return frozenset().union(*running)

    @cached_property
    def _seen_here(self) -> frozenset[Factor]:
        """The factors of the cases of this very version that run."""
        return frozenset().union(*(factors for factors, letter in self._own.items() if letter in (RUNS, MIXED)))

    @cached_property
    def blamed(self) -> Mapping[Factor, str]:
        """The factors that are to blame alone, with the worst answer."""
        found: dict[Factor, str] = {}
        for case, letter, group in self._all:
            unseen = case.factors - self.seen
            if letter in (RUNS, MIXED) or len(unseen) != 1 or not group._base_runs(case):
                continue
            (factor,) = unseen
            found[factor] = max(found.get(factor, letter), letter, key=_harm)
        return found

    @cached_property
    def together(self) -> Mapping[frozenset[Factor], str]:
        """The sets of factors that are to blame together, with the answer."""
        # A case that was made from no base may run by its numbers, such as a Cast to bool of zeros and ones.
        running = [case.factors for case, letter, _ in self._all if letter in (RUNS, MIXED) and case.base >= 0]
        found: dict[frozenset[Factor], str] = {}
        for case, letter, group in self._all:
            if letter in (RUNS, MIXED) or case.base < 0 or case.factors - self.seen or not group._base_runs(case):
                continue
            changed = case.factors - group.cases[case.base].factors
            if not changed:
                continue
            # What runs in other cases is to blame only beside what none of these has.
            beside = case.factors.difference(*(factors for factors in running if changed <= factors))
            if not any(changed <= factors for factors in running):
                found[changed] = letter
            elif beside:
                found[changed | beside] = letter
        return found

    def _base_runs(self, case: FactorCase) -> bool:
        """Return True unless the base of a case is known to fail."""
        return case.base < 0 or self.letters[case.base] in (RUNS, MIXED, NOTHING)

    @cached_property
    def keys(self) -> frozenset[str]:
        """The keys of the factors of all cases."""
        return frozenset(key for case, _, _ in self._all for key, _ in case.factors)

    def judge(self, kind: Kind) -> Judged:
        """Return what is known of a node with these factors."""
        factors = frozenset(kind)
        exact = self._own.get(factors)
        if exact in _FAILS and factors in self._without_base and factors <= self.seen and not self._guilty(factors):
            # Its graph may be what failed: each factor runs in a case with a control.
            return Judged("unmeasured", f"one case like this {self.label} fails, and all that it has runs in others")
        if exact == RUNS and factors in self._without_base and self.runs and self._guilty(factors):
            return self._judge_factors(factors)
        if exact is not None and exact != MIXED:
            guilty = () if exact == RUNS or not self.runs else self._guilty(factors)
            text = f"{self.label} {f'with {factors_text(guilty)}' if guilty else 'like this one'}"
            return self._judged(exact, text, guilty)
        if exact == MIXED:
            return Judged("unmeasured", f"of cases like this {self.label} some run and some do not")
        if not self._bases:
            return Judged("unmeasured", f"no case of {self.label} was measured")
        failing = self._failing_base(factors)
        if failing is not None:
            if self._is_rescued(failing, factors):
                return self._judge_factors(factors)
            if factors <= self._seen_here or factors & self._rescuers(failing):
                return Judged("unmeasured", f"{self.label} runs in some cases only{_quoted(self.said)}")
            text = f"{self.label}{self._few_cases(failing)}"
            return self._judged(self.letters[failing], text, ()) if failing >= 0 else Judged("unmeasured", text)
        return self._judge_factors(factors)

    def _judge_factors(self, factors: frozenset[Factor]) -> Judged:
        guilty = self._guilty(factors)
        if guilty:
            letters = [self.blamed[factor] for factor in guilty if factor in self.blamed]
            letter = max(letters, key=_harm) if letters else self.together[frozenset(guilty)]
            return self._judged(letter, f"{self.label} with {factors_text(guilty)}", guilty)
        unseen = sorted(factors - self.seen)
        if unseen:
            return Judged(
                "unmeasured", f"{self.label} was not measured with {factors_text(unseen)}", False, tuple(unseen)
            )
        return Judged("reads", f"{self.label} runs with each of its factors")

    def _guilty(self, factors: frozenset[Factor]) -> tuple[Factor, ...]:
        """Return the factors of a node that are to blame, each alone; or the fewest that are so together."""
        alone = tuple(sorted(factors & self.blamed.keys()))
        sets = [changed for changed in self.together if changed <= factors]
        if alone or not sets:
            return alone
        least = min(sets, key=lambda changed: (len(changed), sorted(changed)))
        return tuple(sorted(least))

    def _failing_base(self, factors: frozenset[Factor]) -> int | None:
        """Return the base that is most like a node, if it fails; -1 where too few cases say that it does. A base that
        fails because of what the node does not have says nothing of it.
        """
        about = [place for place in self._bases if not self._fails_for_others(place, factors)]
        if not about and self.runs:
            return None
        nearest = max(about or self._bases, key=lambda place: (len(self.cases[place].factors & factors), -place))
        if self.letters[nearest] in (RUNS, MIXED):
            return None
        if self.cases[nearest].base == nearest:
            return nearest
        if self.runs:
            return None
        return nearest if len(self._bases) >= _ENOUGH else -1

    def _fails_for_others(self, place: int, factors: frozenset[Factor]) -> bool:
        """Return True for a base that fails because of what a node does not have: some of its factors are in nothing
        that runs, or a case of a base that runs is nearer to the node, with all that the node has of the base that
        fails.
        """
        if not self._seen_here or self.letters[place] in (RUNS, MIXED):
            return False
        unseen, shared = self.cases[place].factors - self.seen, self.cases[place].factors & factors
        if unseen:
            return unseen.isdisjoint(factors)
        return any(
            shared < case.factors & factors
            for case, letter, group in self._all
            if letter == RUNS and case.base >= 0 and group.letters[case.base] == RUNS
        )

    def _is_rescued(self, place: int, factors: frozenset[Factor]) -> bool:
        """Return True if a base fails, and runs with a change that the node has, too. Of a version of which nothing
        runs, what runs in another version tells nothing.
        """
        if not self._seen_here:
            return False
        base = self.cases[place].factors if place >= 0 else frozenset()
        made = (
            case.factors - base
            for case, letter, group in self._all
            if letter in (RUNS, MIXED) and case.base >= 0 and group.cases[case.base].factors == base
        )
        return any(changed and changed <= factors for changed in made)

    def _rescuers(self, base: int) -> frozenset[Factor]:
        """Return what runs although its base does not: the factors that such cases have and the base has not."""
        held = zip(self.cases, self.letters, strict=True)
        running = [case.factors for case, letter in held if case.base == base and letter in (RUNS, MIXED)]
        return frozenset().union(*running) - (self.cases[base].factors if base >= 0 else frozenset())

    def _few_cases(self, failing: int) -> str:
        if failing >= 0:
            return ""
        return f" was measured in {len(self._bases)} case{'s' if len(self._bases) > 1 else ''} only"

    def _judged(self, letter: str, text: str, factors: tuple[Factor, ...]) -> Judged:
        if letter == RUNS:
            return Judged("reads", f"{text} runs")
        verdict: Verdict = "wrong" if letter in _WRONG else "refuses"
        noted = [self.notes[factor] for factor in factors if factor in self.notes]
        more = noted[0] if noted else _OF_ANOTHER_RANK if letter == "k" else "" if factors else self.said
        return Judged(verdict, f"{text}{_quoted(more)}", letter in _DEADLY, factors)

    def at_this_version(self, kind: Kind) -> Kind:
        """Return the factors that a node of another version has at this one: attributes may have become inputs."""
        found = []
        for key, value in kind:
            if value == "attribute" and (key, value) not in self._values:
                found.append((key, "init"))
            elif key in self.keys:
                found.append((key, value))
        return tuple(sorted(found))

    @cached_property
    def _values(self) -> frozenset[Factor]:
        return frozenset(factor for case, _, _ in self._all for factor in case.factors)


def _harm(letter: str) -> int:
    return "?.mrHXkW".index(letter)


def _quoted(said: str) -> str:
    return f": {said}" if said else ""


# Words ----------------------------------------------------------------------------------------------------------------

_WORDS: Mapping[Factor, str] = {
    ("data", "sizes"): "data that are sizes",
    ("data", "const"): "data that are constant",
    ("data", "data"): "data that are computed",
    ("known", "no"): "sizes that are not known",
    ("known", "yes"): "sizes that are known",
    ("axis.sign", "negative"): "an axis counted from the end",
    ("axis.sign", "positive"): "an axis counted from the front",
    ("axis.sign", "unwritten"): "axis left out",
    ("rank", "0"): "a number as data",
    ("rank", "unknown"): "data of unknown rank",
    ("along", "open"): "a dynamic dimension along what it reads",
    ("before", "open"): "a dynamic dimension before the axis",
    ("behind", "open"): "a dynamic dimension behind the axis",
    ("channels", "open"): "a dynamic number of channels",
    ("dims", "open"): "dynamic dimensions",
    ("dims.first", "open"): "a dynamic first dimension",
    ("steps.negative", "of constants"): "negative steps of constants",
    ("dims.open", "several"): "several dynamic dimensions",
    ("others", "open"): "a dynamic dimension in another input",
    ("empty", "yes"): "data without elements",
    ("parts", "uneven"): "num_outputs that does not divide the dimension",
    ("parts", "open"): "num_outputs that may not divide the dimension",
    ("parts", "overrun"): "num_outputs that leaves nothing for the last part",
    ("parts", "beyond"): "num_outputs whose parts would go beyond the dimension",
    ("parts", "smaller last"): "a last part that is smaller",
    ("parts.empty", "yes"): "a part of length 0",
    ("parts.empty", "joined"): "a part of length 0 that a Concat reads",
    ("sizes.empty", "yes"): "an empty list of sizes as its result",
    ("sizes.empty", "joined"): "an empty list of sizes as its result that a Concat reads",
    ("split", "equal"): "equal lengths as an attribute",
    ("split", "unequal"): "lengths as an attribute that differ",
    ("split", "unnamed"): "lengths left out by an empty name",
    ("outputs.mixed", "yes"): "only some of the parts as outputs of the graph",
    ("outputs.absent", "yes"): "an output without a name",
    ("outputs.unused", "yes"): "an output that nothing reads",
    ("rank", "1 returned"): "a result of rank 1 as an output of the graph",
    ("returned", "rank 3"): "a result of rank 3 as an output of the graph",
    ("inputs.input", "beside constants"): "an input of the graph beside constants",
    ("use.Mul", "yes"): "a Mul behind it",
    ("training", "yes"): "training_mode on",
    ("use.elementwise", "yes"): "a reader that works element by element",
    ("keepdims", "0 beside a size"): "keepdims=0 beside a size",
    ("position.sign", "negative"): "a position counted from the end",
}
# Inputs whose names do not say what they are.
_NAMES = {"split": "lengths"}
_GIVEN = {
    "init": "as an initializer",
    "node": "in a Constant node",
    "folded": "computed from constants",
    "sized": "computed from fixed sizes",
    "shape": "computed from dynamic sizes",
    "computed": "computed at run time",
    "input": "as an input of the model",
    "data": "computed at run time",
    "attribute": "as an attribute",
    "absent": "left out",
    "unused": "given and not used",
    "used": "used",
    "empty": "empty",
}


def factors_text(factors: Iterable[Factor]) -> str:
    """Return factors in words: "axis=first and B computed at run time"; of many, the first ones."""
    words = [_word(key, value) for key, value in factors]
    more = len(words) - _MOST_NAMED
    shown = [*words[:_MOST_NAMED], f"{more} more"] if more > 1 else words
    *most, last = shown
    return f"{', '.join(most)} and {last}" if most else last


def _word(key: str, value: str) -> str:
    if (key, value) in _WORDS:
        return _WORDS[key, value]
    if key == "rank" and value.isdigit():
        return f"data of rank {value}"
    if value in _GIVEN:
        return f"{_NAMES.get(key, key)} {_GIVEN[value]}"
    if value == "yes":
        return key.replace(".", " ")
    return f"{key}={value}"
