"""The table of operators: what a runtime did with the cases of each operator version, and what follows for a node.

A file of `table/operators/` holds, for each operator version, how many cases the runtime reads, refuses, computes wrong
or dies of; the traits that tell these cases apart; and the runtime's own words. `cases.json` holds the traits that the
cases have, for all runtimes. The file of a runtime that cannot be run holds what its public documents say.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

from splitgraph.model.schemas import history, table
from splitgraph.model.value_type import DTYPE_NUMBERS
from splitgraph.runtimes.operator_traits import is_default, needs_a_case

# What is known of a node: all is read; it is refused (the process dies of it, too); results are wrong; some cases like
# it are not read; or nothing like it was measured.
Verdict = Literal["reads", "refuses", "wrong", "some", "unmeasured"]


class Judged(NamedTuple):
    """A verdict and its reason. dies: the process of the runtime dies of the node."""

    verdict: Verdict
    why: str
    dies: bool = False


_FROM_SHAPES = " from shapes"
# Where a runtime was measured with the first cases only, so many of an operator version have to fail, so that it is
# refused: the first ones may be special, as a model of nothing but a Shape is.
_ENOUGH = 4


def _at_run_time(trait: str) -> str:
    return f"{trait.removesuffix(_FROM_SHAPES)} computed"


class CaseRule(NamedTuple):
    """Traits with which no case is read: the answer, and the number of cases; 0 if documents say so. like: where the
    traits are only of how a node stands in its model, what else all of these cases have.
    """

    traits: frozenset[str]
    answer: str
    cases: int
    like: frozenset[str] = frozenset()

    def is_weak(self, traits: frozenset[str]) -> bool:
        """Return True where a node with these may be read all the same: one case that is wrong, or one with other
        traits than a type or a mode, may be so for another reason; so may all cases, if the node is not like them; and
        the sizes in the cases are those of an input of its own.
        """
        # A type or a mode is the same wherever it stands; numbers of one case may be bad ones.
        may_be_other = self.answer in ("wrong", "rank") or not all("=" in trait for trait in self.traits)
        is_one = self.cases == 1 and may_be_other
        return is_one or not self.like <= traits or any(trait.endswith(_FROM_SHAPES) for trait in self.traits)


@dataclass(frozen=True, slots=True)
class OperatorEntry:
    """What a runtime does with an operator version.

    counts: of cases by answer. rules: what tells the cases apart that are not read. unread: traits of cases none of
    which is read. is_explained: each case that is not read has the traits of a rule. like: traits that all cases have
    that no rule explains; a node without one of them is not like these. said: the runtime's own words.

    documented: "reads" or "refuses", where the runtime was not run and its documents say so; "" for what was measured.
    The documents may also tell rules, and in `said` the reason of a refusal. types: the element types of the first
    input that they name; empty if they name none. are_all_types: no other type is read; else it is not known.
    is_sampled: the runtime was measured with the first cases of each operator version only.
    """

    counts: Mapping[str, int]
    rules: Sequence[CaseRule] = ()
    unread: frozenset[str] = frozenset()
    is_explained: bool = True
    said: str = ""
    documented: str = ""
    types: frozenset[str] = frozenset()
    are_all_types: bool = True
    like: frozenset[str] = frozenset()
    is_sampled: bool = False

    @property
    def cases(self) -> int:
        """The number of all cases."""
        return sum(self.counts.values())

    def judge(self, operator: str, traits: frozenset[str], known: frozenset[str]) -> Judged:
        """Return what is known of a node of this operator version. known: the traits of all cases."""
        if self.documented:
            return self._judge_by_documents(operator, traits)
        # What reads any value that the run tells reads one that follows from sizes.
        easier = {
            trait for trait in traits if trait.endswith(_FROM_SHAPES) and _at_run_time(trait) in known - self.unread
        }
        traits = traits - easier | {_at_run_time(trait) for trait in easier}
        read = self.counts.get("reads", 0)
        if not read:
            text = f"0 of {_cases(self.cases)} of {operator} run"
            if self.is_sampled and self.cases < _ENOUGH:
                return Judged("some", f"{text}{_told(self.said, ': ')}")
            return self._failed(text, max(self.counts, key=_harm))
        for rule in self.rules:
            if rule.traits <= traits:
                text = f"0 of {_cases(rule.cases)} of {operator} {_with(rule.traits)} run"
                if rule.is_weak(traits):
                    return Judged("some", f"{text}{_told(self.said, ': ')}")
                return self._failed(text, rule.answer)
        missing = sorted(
            trait for trait in traits - known | traits & self.unread if needs_a_case(trait) and not is_default(trait)
        )
        if missing:
            return Judged("unmeasured", f"{operator} was not measured with {' and '.join(missing)}")
        if not self.is_explained and self.like <= traits:
            return Judged("some", f"{read} of {_cases(self.cases)} of {operator} run{_told(self.said, ': ')}")
        return Judged("reads", f"{read} of {_cases(self.cases)} of {operator} run")

    def _judge_by_documents(self, operator: str, traits: frozenset[str]) -> Judged:
        """Return what the documents say of a node. Each reason names them, so that it is not taken for measured."""
        if self.documented != "reads":
            return Judged("refuses", f"from its documents{_told(self.said, ': ')}")
        for rule in self.rules:
            if rule.traits <= traits:
                return Judged("refuses", f"from its documents: not with {_listed(rule.traits)}")
        others = _first_types(operator, traits) - self.types if self.types else ()
        if others and self.are_all_types:
            return Judged("refuses", f"from its documents: takes {_listed(self.types)}")
        if others:
            return Judged("unmeasured", f"its documents do not name {_listed(others)} for {operator}")
        return Judged("reads", "from its documents")

    def _failed(self, text: str, answer: str) -> Judged:
        verdict: Verdict = "wrong" if answer in ("wrong", "rank") else "refuses"
        return Judged(verdict, f"{text}{_told(self.said, ': ')}", answer in ("dies", "hangs"))


def _cases(number: int) -> str:
    return f"{number} case{'' if number == 1 else 's'}"


def _with(traits: Iterable[str]) -> str:
    """Return "with axis<0 and mode=cubic and without axes"."""
    left_out = sorted(filter(is_default, traits))
    others = " and ".join(trait.removeprefix("with ") for trait in sorted(set(traits) - set(left_out)))
    return " and ".join([*([f"with {others}"] if others else ()), *left_out])


def _told(text: str, between: str = "") -> str:
    return between + text if text else ""


def _listed(words: Iterable[str]) -> str:
    """Return "float16, float32 and int64"."""
    *most, last = sorted(words)
    return f"{', '.join(most)} and {last}" if most else last


def _first_types(operator: str, traits: frozenset[str]) -> set[str]:
    """Return the element types of the first input, as the traits of a node name them; none if they are not known."""
    variable = _first_variable(operator)
    named = (trait.partition("=") for trait in traits)
    return {kind for name, _, kind in named if name == variable}


@cache
def _first_variable(operator: str) -> str | None:
    """Return the type variable of the first input of an operator version, None if its type is always the same one."""
    label, _, version = operator.rpartition("-")
    domain, _, name = label.rpartition(".")
    if not version.isdigit():
        return "T"
    known = table.version_at(domain, name, int(version)) if domain else history.version_at(name, int(version))
    if known is None:
        return "T"
    first = known.inputs[0] if known.inputs else None
    return first.type_variable if first is not None and first.is_generic else None


_HARM = ("reads", "refuses", "hangs", "dies", "rank", "wrong")


def _harm(answer: str) -> int:
    return _HARM.index(answer)


@dataclass(frozen=True, slots=True)
class OperatorTable:
    """What one version of a runtime does with operators. entries: by operator version, "Relu-14", or by operator where
    the runtime's documents tell no versions. measured: the date, None where it was not run.
    """

    measured: str | None
    entries: Mapping[str, OperatorEntry]

    def judge(self, operator: str, traits: frozenset[str]) -> Judged:
        """Return what is known of a node. operator: with its version, "Relu-14". traits: as `operator_traits`."""
        entry = self.entries.get(operator) or self.entries.get(operator.rpartition("-")[0])
        if entry is None:
            is_documented = self.entries and self.measured is None
            text = "its documents say nothing of {}" if is_documented else "no case of {} was measured"
            return Judged("unmeasured", text.format(operator))
        return entry.judge(operator, traits, _known_traits().get(operator, frozenset()))

    def types_read(self, operator: str) -> frozenset[str]:
        """Return the element types that an operator version was measured to read, in any of its inputs; or those that
        documents name for its first input.
        """
        entry = self.entries.get(operator)
        if entry is not None and entry.documented:
            return entry.types
        known = frozenset[str]() if entry is None else _known_traits().get(operator, frozenset()) - entry.unread
        values = (trait.partition("=")[2] for trait in known)
        return frozenset(value for value in values if value in DTYPE_NUMBERS)

    def refuses_import(self, domain: str, version: int) -> bool:
        """Return True for an opset of another domain that a model must not import, even if nothing uses it."""
        entry = self.entries.get(imports_label(domain, version))
        return entry is not None and not entry.counts.get("reads")

    def reads(self, operator: str) -> bool:
        """Return True for an operator version of which plain cases are read."""
        entry = self.entries.get(operator) or self.entries.get(operator.rpartition("-")[0])
        return entry is not None and (bool(entry.counts.get("reads")) or entry.documented == "reads")


def imports_label(domain: str, version: int) -> str:
    """Return the name of the cases that only import an opset of a domain."""
    return f"imports.{domain}-{version}"


_FOLDER = files("splitgraph.runtimes").joinpath("table").joinpath("operators")


@cache
def _known_traits() -> Mapping[str, frozenset[str]]:
    """Return the traits of all cases by operator version."""
    held = json.loads(_FOLDER.joinpath("cases.json").read_text("utf-8"))
    return {operator: frozenset(traits) for operator, traits in held.items()}


@cache
def operator_table(key: str) -> OperatorTable:
    """Return the table of a target by its key, "mnn@3.6.1"; an empty one where there is none."""
    file = _FOLDER.joinpath(f"{key}.json")
    if not file.is_file():
        return OperatorTable(None, MappingProxyType({}))
    held = json.loads(file.read_text("utf-8"))
    entries = {name: read_entry(each) for name, each in held["operators"].items()}
    if held["measured"] and held["cases"] < _ENOUGH * len(entries):
        entries = {name: replace(entry, is_sampled=True) for name, entry in entries.items()}
    return OperatorTable(held["measured"], entries)


def read_entry(held: Mapping[str, Any]) -> OperatorEntry:
    """Return the entry that a line of a file describes."""
    rules = tuple(
        CaseRule(frozenset(traits), answer, cases, frozenset(*like))
        for traits, answer, cases, *like in held.get("rules", ())
    )
    counts = {answer: held[answer] for answer in _HARM if answer in held}
    return OperatorEntry(
        counts,
        rules,
        frozenset(held.get("unread", ())),
        not held.get("unexplained", 0),
        held.get("said", ""),
        held.get("documented", ""),
        frozenset(held.get("types", ())),
        held.get("other_types", "refuses") == "refuses",
        frozenset(held.get("like", ())),
    )
