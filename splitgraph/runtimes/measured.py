"""The table of measured operators: `cases.json` with the cases, and one file for each runtime with a letter for each.

An entry of `cases.json` holds the first case of an operator version as its factors, and the others as what differs from
it: a new value, "" for a key that is left out, and the position of the base that the case was made from. `like` names
other versions of the same meaning. A runtime's file has a text with one letter for each case (`verdicts.py`), its own
words where a base fails, and notes on factors that it does not read: "Split parts=uneven".
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from types import MappingProxyType
from typing import Any

from splitgraph.model.value_type import DTYPE_NUMBERS
from splitgraph.runtimes.node_traits import Kind
from splitgraph.runtimes.verdicts import Factor, FactorCase, Judged, MeasuredOperator

FOLDER = files("splitgraph.runtimes").joinpath("table").joinpath("operators")


class MeasuredOperators(Mapping[str, MeasuredOperator]):
    """The operator versions that a runtime was measured with. Each is read when it is asked for."""

    def __init__(
        self,
        shared: Mapping[str, Any],
        letters: Mapping[str, str],
        said: Mapping[str, str],
        notes: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._shared, self._letters, self._said, self._notes = shared, letters, said, notes
        self._read: dict[str, MeasuredOperator] = {}

    def __getitem__(self, label: str) -> MeasuredOperator:
        if label not in self._read:
            letters = self._letters[label]
            others = [other for other in self._shared[label].get("like", ()) if other in self._letters]
            said, notes = self._said.get(label, ""), notes_on(label, self._notes)
            made = self._read[label] = MeasuredOperator(label, cases_of(label), letters, said, notes)
            # The others have this one among theirs.
            object.__setattr__(made, "alike", tuple(self[other] for other in others))
        return self._read[label]

    def __contains__(self, label: object) -> bool:
        return label in self._letters

    def __iter__(self) -> Iterator[str]:
        return iter(self._letters)

    def __len__(self) -> int:
        return len(self._letters)


@dataclass(frozen=True, slots=True)
class MeasuredTable:
    """What one version of a runtime did with the cases of operators. measured: the date of the measurement. entries: by
    operator version, "Relu-14".
    """

    measured: str
    entries: Mapping[str, MeasuredOperator]
    _judged: dict[tuple[str, Kind], Judged] = field(default_factory=dict, compare=False)
    _at_version: dict[tuple[str, Kind], Kind] = field(default_factory=dict, compare=False)

    def judge(self, operator: str, traits: frozenset[str], kind: Kind) -> Judged:
        """Return what is known of a node. operator: with its version. kind: the factors of the node."""
        known = self._judged.get((operator, kind))
        if known is None:
            entry = self.entries.get(operator)
            missing = Judged("unmeasured", f"no case of {operator} was measured")
            known = missing if entry is None else entry.judge(kind)
            self._judged[operator, kind] = known
        return known

    def judge_version(self, operator: str, traits: frozenset[str], kind: Kind) -> Judged:
        """Return what is known of a node of another version of its operator, as if it were of this one."""
        at_version = self._at_version.get((operator, kind))
        if at_version is None:
            entry = self.entries.get(operator)
            at_version = kind if entry is None else entry.at_this_version(kind)
            self._at_version[operator, kind] = at_version
        return self.judge(operator, traits, at_version)

    def types_read(self, operator: str) -> frozenset[str]:
        """Return the element types that an operator version was measured to read, in any of its inputs."""
        entry = self.entries.get(operator)
        return frozenset(value for _, value in entry.seen if value in DTYPE_NUMBERS) if entry else frozenset()

    def refuses_import(self, domain: str, version: int) -> bool:
        """Return True for an opset of another domain that a model must not import, even if nothing uses it."""
        entry = self.entries.get(imports_label(domain, version))
        return entry is not None and not entry.runs

    def reads(self, operator: str) -> bool:
        """Return True for an operator version whose base runs."""
        entry = self.entries.get(operator)
        return entry is not None and entry.runs


def imports_label(domain: str, version: int) -> str:
    """Return the name of the cases that only import an opset of a domain."""
    return f"imports.{domain}-{version}"


def measured_table(held: Mapping[str, Any]) -> MeasuredTable:
    """Return the table that the file of a runtime describes."""
    operators = MeasuredOperators(shared_cases(), held["answers"], held["said"], held["notes"])
    return MeasuredTable(held["measured"], operators)


def notes_on(label: str, notes: Mapping[str, str]) -> dict[Factor, str]:
    """Return the notes on the factors of an operator version, by factor."""
    operator = label.rpartition("-")[0] or label
    told = ((note.partition(" "), text) for note, text in notes.items())
    factors = ((factor.partition("="), text) for (name, _, factor), text in told if name == operator)
    return {(key, value): text for (key, _, value), text in factors}


@cache
def shared_cases() -> Mapping[str, Any]:
    """Return the cases of all operator versions, as the file has them."""
    held: Mapping[str, Any] = json.loads(FOLDER.joinpath("cases.json").read_text("utf-8"))
    return held


@cache
def cases_of(label: str) -> Sequence[FactorCase]:
    """Return the cases of an operator version."""
    entry = shared_cases()[label]
    if isinstance(entry["cases"], str):
        return cases_of(entry["cases"])
    first: dict[str, str] = entry["first"]
    cases = [FactorCase(frozenset(first.items()), 0 if entry.get("base") else -1)]
    for changed, *base in entry["cases"]:
        factors = {key: value for key, value in {**first, **changed}.items() if value}
        cases.append(FactorCase(frozenset(factors.items()), base[0] if base else -1))
    return cases
