"""What is said of a model: findings, splits, requirements, and the results for each graph."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from splitgraph.diagnostics import CODES, Diagnostic, diagnostic
from splitgraph.dim import Facts, Obligation
from splitgraph.graph.scopes import MOST_NESTED, FunctionKey, GraphPath, Scope, nested_depth
from splitgraph.inference.task import Task, TensorCheck
from splitgraph.inference.walk_results import FoundSplit, FunctionCall, GraphDetail


class Finding(NamedTuple):
    """A finding. of_symbols, is_misdeclared: see `Record.report`. never_runs: no run takes the branch of the
    finding.
    """

    found: Diagnostic
    of_symbols: bool
    is_misdeclared: bool
    never_runs: bool


class Avoidable(NamedTuple):
    """An error in a body, where another branch has no error."""

    found: Diagnostic


class Requirement(NamedTuple):
    """A requirement of a node. facts: those of its graph. branch: the location of the innermost body around the node,
    which may not run; "" for a node of the main graph or of a function that it calls.
    """

    obligation: Obligation
    location: str
    facts: Facts
    branch: str


Entry: TypeAlias = Finding | Avoidable | Requirement | FoundSplit


@dataclass(slots=True)
class Journal:
    """The effects of all calls of one inference, in order: what walking a function body did besides inferring outputs,
    so that an equal call can do the same at its own location.

    unrepeatable: how often something was done that cannot be done again at another place. repeated: how many entries
    were done again. is_cut: there were too many of these, and a warning says so.
    """

    entries: list[Entry] = field(default_factory=list)
    unrepeatable: int = 0
    repeated: int = 0
    is_cut: bool = False


class OpenBranches:
    """Errors in branches that may not run: of an If with an unknown condition, or the body of a Loop that may not
    start. If the other branch has no error and the error depends on sizes, this branch never runs.

    avoidable: errors in a branch whose sibling has none. of_symbols: findings that are contradictory requirements on
    symbols, which no runtime notices before it runs the nodes.
    """

    def __init__(self) -> None:
        self.avoidable: dict[Diagnostic, None] = {}
        self.of_symbols: set[Diagnostic] = set()
        self._held: list[list[Diagnostic]] = []

    @contextmanager
    def hold(self) -> Iterator[list[Diagnostic]]:
        """Hold back findings from here on, until the other branches have been walked."""
        found: list[Diagnostic] = []
        self._held.append(found)
        try:
            yield found
        finally:
            self._held.pop()

    def place(self, diagnostics: list[Diagnostic]) -> list[Diagnostic]:
        """The list for a new finding: the findings held back, or else these diagnostics of the model."""
        return self._held[-1] if self._held else diagnostics

    def spoil(self, found: Sequence[Diagnostic]) -> bool:
        """True if the findings of a branch include an error that is not avoidable."""
        return any(each.severity == "error" and each not in self.avoidable for each in found)

    def avoid(self, found: Sequence[Diagnostic]) -> None:
        """Record the errors of a branch as avoidable: another branch has none."""
        self.avoidable.update((each, None) for each in found if each.severity == "error")

    def settled(
        self, diagnostics: Sequence[Diagnostic], is_of_sizes: Callable[[Diagnostic], bool]
    ) -> tuple[list[Diagnostic], list[Diagnostic]]:
        """The diagnostics, in which avoidable errors that depend on sizes became information; and these errors."""
        if not self.avoidable:
            return list(diagnostics), []
        never = [found for found in self.avoidable if found in self.of_symbols or is_of_sizes(found)]
        chosen = frozenset(never)
        return [_as_information(found) if found in chosen else found for found in diagnostics], never


def _as_information(found: Diagnostic) -> Diagnostic:
    text = f"this branch cannot run with these sizes: {found.message} [{found.code}]"
    return replace(found, code="SG306", severity="info", message=text, help=CODES["SG306"].help)


@dataclass(slots=True)
class Record:
    """Everything that the walks of one inference say.

    diagnostics: the findings. reports: the splits that are reported. requirements: those on symbols. never_run: errors
    of nodes that never run, in order. misdeclared: findings about declarations with only a wrong shape, on which no
    node's meaning depends. size_conditions: each warning about a declaration of one size only with the condition under
    which it holds, and the facts that may prove it when everything has been walked. unknown_operators, first_unknown:
    how many nodes each unknown operator has, and the first of them, by its label.

    details, facts: the results for each graph, and what is known of the symbols there. scopes: every graph of the
    model, after the walk. calls: those of each function; calling: the functions around the node that is walked.

    tensors: checks the tensors, and counts those without data. effects: a counter of effects besides inferred outputs:
    a visit with effects must not be left out when it repeats. computes: outputs of a node were left to be computed.
    is_disordered: a node reads the output of a later node.
    is_too_deep: bodies were left out, as they are nested too deep. quiet: a body is walked only until it settles.
    muted: findings are about nodes that never run.
    """

    task: Task
    diagnostics: list[Diagnostic] = field(default_factory=list)
    reports: list[FoundSplit] = field(default_factory=list)
    requirements: list[Requirement] = field(default_factory=list)
    never_run: dict[Diagnostic, None] = field(default_factory=dict)
    misdeclared: set[Diagnostic] = field(default_factory=set)
    size_conditions: dict[Diagnostic, tuple[Facts, Obligation]] = field(default_factory=dict)
    unknown_operators: dict[str, int] = field(default_factory=dict)
    first_unknown: dict[str, str] = field(default_factory=dict)
    journal: Journal = field(default_factory=Journal)
    branches: OpenBranches = field(default_factory=OpenBranches)
    details: dict[GraphPath, GraphDetail] = field(default_factory=dict)
    facts: dict[GraphPath, Facts] = field(default_factory=dict)
    scopes: tuple[Scope, ...] = ()
    calls: dict[FunctionKey, list[FunctionCall]] = field(default_factory=dict)
    calling: list[FunctionKey] = field(default_factory=list)
    effects: int = 0
    computes: bool = False
    is_disordered: bool = False
    is_too_deep: bool = False
    quiet: int = 0
    muted: int = 0
    tensors: TensorCheck = field(init=False)
    _reported: set[Diagnostic] = field(default_factory=set)
    _followed: int = 0

    def __post_init__(self) -> None:
        self.tensors = TensorCheck(self.task.model)

    def report(self, found: Diagnostic, *, of_symbols: bool = False, is_misdeclared: bool = False) -> None:
        """Keep a finding, once. of_symbols: it contradicts what is known of symbols. is_misdeclared: it is about a
        declaration with only a wrong shape.
        """
        self.effects += 1
        if of_symbols:
            self.branches.of_symbols.add(found)
        if is_misdeclared:
            self.misdeclared.add(found)
        if self.calling and not self.quiet:
            self.journal.entries.append(Finding(found, of_symbols, is_misdeclared, self.muted > 0))
        if self.muted and not self.quiet and found.severity == "error":
            self.never_run[found] = None
        if not (self.quiet or self.muted) and found not in self._reported:
            self._reported.add(found)
            self.branches.place(self.diagnostics).append(found)

    def note_requirement(self, found: Requirement) -> None:
        """Keep a requirement of a node that may run."""
        if self.quiet or self.muted:
            return
        self.requirements.append(found)
        if self.calling:
            self.journal.entries.append(found)

    def note_unknown_operator(self, label: str, location: str) -> None:
        """Count a node with an unknown operator, and keep where the first one is."""
        if not self.quiet:
            self.effects += 1
            self.first_unknown.setdefault(label, location)
            self.unknown_operators[label] = self.unknown_operators.get(label, 0) + 1

    def keep_report(self, found: FoundSplit) -> None:
        """Keep a split that is to be reported."""
        self.reports.append(found)
        if self.calling:
            self.journal.entries.append(found)

    @property
    def keeps_reports(self) -> bool:
        """Whether a split that is found now is reported."""
        return self.task.is_reported and not self.quiet

    def release(self, found: Sequence[Diagnostic]) -> None:
        """Report findings that were held back."""
        self.branches.place(self.diagnostics).extend(found)

    def avoid(self, found: Sequence[Diagnostic]) -> None:
        """Record the errors of a body as avoidable: another branch has none."""
        self.branches.avoid(found)
        if self.calling:
            self.journal.entries.extend(map(Avoidable, found))

    @contextmanager
    def quietly(self) -> Iterator[None]:
        """Walk a body only until it settles, without findings."""
        self.quiet += 1
        try:
            yield
        finally:
            self.quiet -= 1

    @contextmanager
    def muting(self, never_runs: bool) -> Iterator[None]:
        """Mark findings as never running, if `never_runs`."""
        self.muted += never_runs
        try:
            yield
        finally:
            self.muted -= never_runs

    @property
    def follows_every_call(self) -> bool:
        """False when there were too many function calls, or too deeply nested ones, so that `calls` is incomplete."""
        return self._followed <= self.task.most_calls and not self.is_too_deep

    def may_follow_call(self, location: str) -> bool:
        """Count a function call that repeats no other. False, with a warning, when there are too many to walk each
        body.
        """
        self._followed += 1
        if self._followed == self.task.most_calls + 1:
            text = (
                f"functions call each other in more than {self.task.most_calls:,} ways; further calls are not followed"
            )
            self.diagnostics.append(diagnostic("SG303", text, location, severity="warning"))
        self.journal.unrepeatable += not self.follows_every_call
        return self.follows_every_call

    def note_too_deep(self, location: str) -> None:
        """Report, once, that bodies are not walked, even from a quiet walk or a branch that may not run: the model is
        not fully known then.
        """
        self.journal.unrepeatable += 1
        if self.is_too_deep:
            return
        self.is_too_deep = True
        text = (
            f"subgraphs and called functions are nested {nested_depth(self.task.model):,} levels deep; "
            f"at most {MOST_NESTED} levels are supported"
        )
        self.diagnostics.append(diagnostic("SG114", text, location))
