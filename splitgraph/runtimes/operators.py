"""Reads what is known of the operators of a runtime that cannot be run, from its documents; and of the layers of an IR.

The file of such a runtime in `table/operators/` holds what its public documents say: which operators it reads, with
which element types, and the traits with which it does not. `measured.py` reads the files of the others.
For layers of an IR, an entry holds how many cases a release reads, refuses, computes wrong or dies of; the traits that
tell these cases apart; and the release's own words.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from types import MappingProxyType
from typing import Any, NamedTuple

from splitgraph.model.schemas import history, table
from splitgraph.runtimes.measured import FOLDER, MeasuredTable, measured_table, notes_on
from splitgraph.runtimes.node_traits import Kind
from splitgraph.runtimes.operator_traits import is_default, needs_a_case, traits_text
from splitgraph.runtimes.verdicts import Factor, Judged, Verdict, factors_text

_FROM_SHAPES = " from shapes"


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
    The documents may also tell rules, about factors, too ("split=computed"), and in `said` the reason of a refusal.
    open: factors of which they say nothing. notes: more about a trait of a rule. types: the element types of the first
    input that they name; empty if they name none. are_all_types: no other type is read; else it is not known.
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
    notes: Mapping[str, str] = field(default_factory=dict)
    open: frozenset[str] = frozenset()

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
            return self._failed(text, max(self.counts, key=_harm))
        for rule in self.rules:
            if rule.traits <= traits:
                text = f"0 of {_cases(rule.cases)} of {operator} {_with(rule.traits)} run"
                if rule.is_weak(traits):
                    return Judged("some", f"{text}{_appended(self.said, ': ')}")
                return self._failed(text, rule.answer)
        missing = sorted(
            trait for trait in traits - known | traits & self.unread if needs_a_case(trait) and not is_default(trait)
        )
        if missing:
            return Judged("unmeasured", f"{operator} was not measured with {traits_text(missing)}")
        if not self.is_explained and self.like <= traits:
            return Judged("some", f"{read} of {_cases(self.cases)} of {operator} run{_appended(self.said, ': ')}")
        return Judged("reads", f"{read} of {_cases(self.cases)} of {operator} run")

    def _judge_by_documents(self, operator: str, traits: frozenset[str]) -> Judged:
        """Return what the documents say of a node. Each reason names them, so that it is not taken for measured."""
        if self.documented != "reads":
            return Judged("refuses", f"from its documents{_appended(self.said, ': ')}")
        for rule in self.rules:
            if rule.traits <= traits:
                blamed = sorted(rule.traits)
                note = next((self.notes[trait] for trait in blamed if trait in self.notes), "")
                words = factors_text(map(_as_factor, blamed))
                return Judged("refuses", f"from its documents: not with {words}{_appended(note, ': ')}")
        others = _first_types(operator, traits) - self.types if self.types else ()
        if others and self.are_all_types:
            return Judged("refuses", f"from its documents: takes {_listed(self.types)}")
        if others:
            types = tuple(("T", dtype) for dtype in sorted(others))
            return Judged("unmeasured", f"its documents do not name {_listed(others)} for {operator}", False, types)
        not_told = tuple(map(_as_factor, sorted(self.open & traits)))
        if not_told:
            text = f"its documents do not tell of {operator} with {factors_text(not_told)}"
            return Judged("unmeasured", text, False, not_told)
        return Judged("reads", "from its documents")

    def _failed(self, text: str, answer: str) -> Judged:
        verdict: Verdict = "wrong" if answer in ("wrong", "rank") else "refuses"
        return Judged(verdict, f"{text}{_appended(self.said, ': ')}", answer in ("dies", "hangs"))


def _as_factor(trait: str) -> Factor:
    """Return the factor that a trait of a rule is; one without a value is told as it is."""
    key, _, value = trait.partition("=")
    return key, value or "yes"


def _cases(number: int) -> str:
    return f"{number} case{'' if number == 1 else 's'}"


def _with(traits: Iterable[str]) -> str:
    """Return "with axis<0 and mode=cubic and without axes"."""
    left_out = sorted(filter(is_default, traits))
    others = traits_text(trait.removeprefix("with ") for trait in set(traits) - set(left_out))
    return " and ".join([*([f"with {others}"] if others else ()), *left_out])


def _appended(text: str, between: str = "") -> str:
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
    known = table.version_at(domain, name, int(version)) if domain else history.meant_version(name, int(version))
    if known is None:
        return "T"
    first = known.inputs[0] if known.inputs else None
    return first.type_variable if first is not None and first.is_generic else None


_HARM = ("reads", "refuses", "hangs", "dies", "rank", "wrong")


def _harm(answer: str) -> int:
    return _HARM.index(answer)


@dataclass(frozen=True, slots=True)
class OperatorTable:
    """What the documents of one version of a runtime say of operators. entries: by operator version, "Relu-14", or by
    operator where they tell no versions. measured: None, as it was not run.
    """

    measured: None
    entries: Mapping[str, OperatorEntry]

    def judge(self, operator: str, traits: frozenset[str], kind: Kind) -> Judged:
        """Return what is known of a node. operator: with its version, "Relu-14". traits: as `operator_traits`."""
        entry = self._entry(operator)
        if entry is None:
            text = "its documents say nothing of {}" if self.entries else "no case of {} was measured"
            return Judged("unmeasured", text.format(operator))
        return entry.judge(operator, traits | {f"{key}={value}" for key, value in kind}, frozenset())

    judge_version = judge

    def types_read(self, operator: str) -> frozenset[str]:
        """Return the element types that documents name for the first input."""
        entry = self.entries.get(operator)
        return frozenset() if entry is None else entry.types

    def refuses_import(self, domain: str, version: int) -> bool:
        """Return False: documents say nothing of opsets that a model must not import."""
        return False

    def reads(self, operator: str) -> bool:
        """Return True for an operator that is read according to the documents."""
        entry = self._entry(operator)
        return entry is not None and entry.documented == "reads"

    def _entry(self, operator: str) -> OperatorEntry | None:
        return self.entries.get(operator) or self.entries.get(operator.rpartition("-")[0])


@cache
def operator_table(key: str) -> OperatorTable | MeasuredTable:
    """Return the table of a target by its key, "mnn@3.6.1"; an empty one where there is none."""
    file = FOLDER.joinpath(f"{key}.json")
    if not file.is_file():
        return OperatorTable(None, MappingProxyType({}))
    held = json.loads(file.read_text("utf-8"))
    if held["measured"]:
        return measured_table(held)
    entries = {name: read_entry(each, notes_on(name, held["notes"])) for name, each in held["operators"].items()}
    return OperatorTable(None, entries)


def read_entry(held: Mapping[str, Any], notes: Mapping[Factor, str] = MappingProxyType({})) -> OperatorEntry:
    """Return the entry that a line of a file describes. notes: on factors."""
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
        {f"{key}={value}": text for (key, value), text in notes.items()},
        frozenset(held.get("open", ())),
    )
