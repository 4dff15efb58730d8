"""Records what an inference finds: findings, splits, requirements, and the results for each graph.

`Record` holds it all. Its `Journal` lets an equal call say the same again, its `OpenBranches` keep apart what may never
run, and its `TensorCheck` looks at tensors. `advise` adds what to do about an invalid node.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypeAlias

from splitgraph.dim import Facts, Obligation
from splitgraph.findings.diagnostics import CODES, Diagnostic, diagnostic
from splitgraph.inference.task import Task
from splitgraph.inference.walk_results import FoundSplit, FunctionCall, GraphDetail
from splitgraph.model.onnx_proto import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto
from splitgraph.model.schemas import versions_of
from splitgraph.model.scopes import MOST_NESTED, FunctionKey, GraphPath, Scope, nested_depth, plain_domain, scopes
from splitgraph.model.tensor_data import byte_size, lacks_data, misfit, misfit_of_sparse

# Entries of the journal -----------------------------------------------------------------------------------------------


class Finding(NamedTuple):
    """A finding. when_run, is_misdeclared: see `Record.report`. never_runs: no run takes the branch of the
    finding.
    """

    diagnostic: Diagnostic
    when_run: bool
    is_misdeclared: bool
    never_runs: bool


class Avoidable(NamedTuple):
    """An error in a body, where another branch has no error."""

    diagnostic: Diagnostic


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
    """The effects of all calls of one inference, in order: what walking a function body did besides inferring outputs.
    An equal call does the same again at its own location.

    unrepeatable: counts what cannot be done again at another place. repeated: the number of entries that were done
    again. is_cut: there were too many of them, and a warning says so.
    """

    entries: list[Entry] = field(default_factory=list)
    unrepeatable: int = 0
    repeated: int = 0
    is_cut: bool = False


# Branches that may not run --------------------------------------------------------------------------------------------


class OpenBranches:
    """Errors in branches that may not run: of an If with an unknown condition, or the body of a Loop that may not
    start. If the other branch has no error and the error depends on sizes, this branch never runs.

    avoidable: errors in a branch whose sibling has none. when_run: findings that no runtime notices before it
    runs the nodes: contradictory requirements on symbols, and indices out of range.
    """

    def __init__(self) -> None:
        self.avoidable: dict[Diagnostic, None] = {}
        self.when_run: set[Diagnostic] = set()
        self._held_back: list[list[Diagnostic]] = []

    @contextmanager
    def hold(self) -> Iterator[list[Diagnostic]]:
        """Hold back findings until the other branches have been walked."""
        findings: list[Diagnostic] = []
        self._held_back.append(findings)
        try:
            yield findings
        finally:
            self._held_back.pop()

    def place(self, diagnostics: list[Diagnostic]) -> list[Diagnostic]:
        """Return the list for a new finding: the findings that are held back, or else the diagnostics of the model."""
        return self._held_back[-1] if self._held_back else diagnostics

    def spoil(self, findings: Sequence[Diagnostic]) -> bool:
        """Return True if the findings of a branch include an error that is not avoidable."""
        return any(finding.severity == "error" and finding not in self.avoidable for finding in findings)

    def avoid(self, findings: Sequence[Diagnostic]) -> None:
        """Record the errors of a branch as avoidable: another branch has none."""
        self.avoidable.update((finding, None) for finding in findings if finding.severity == "error")

    def settled(
        self, diagnostics: Sequence[Diagnostic], is_of_sizes: Callable[[Diagnostic], bool]
    ) -> tuple[list[Diagnostic], list[Diagnostic]]:
        """Return the diagnostics, and the avoidable errors that depend on sizes. Each such error becomes information
        among the diagnostics.
        """
        if not self.avoidable:
            return list(diagnostics), []
        never = [finding for finding in self.avoidable if finding in self.when_run or is_of_sizes(finding)]
        chosen = frozenset(never)
        return [_as_information(finding) if finding in chosen else finding for finding in diagnostics], never


def _as_information(error: Diagnostic) -> Diagnostic:
    text = f"this branch cannot run with these sizes: {error.message} [{error.code}]"
    return replace(error, code="SG306", severity="info", message=text, help=CODES["SG306"].help)


# All that is said -----------------------------------------------------------------------------------------------------


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

    def report(self, finding: Diagnostic, *, when_run: bool = False, is_misdeclared: bool = False) -> None:
        """Keep a finding, once. when_run: no runtime notices it before it runs the node. is_misdeclared: only a
        declared shape is wrong.
        """
        self.effects += 1
        if when_run:
            self.branches.when_run.add(finding)
        if is_misdeclared:
            self.misdeclared.add(finding)
        if self.calling and not self.quiet:
            self.journal.entries.append(Finding(finding, when_run, is_misdeclared, self.muted > 0))
        if self.muted and not self.quiet and finding.severity == "error":
            self.never_run[finding] = None
        if not (self.quiet or self.muted) and finding not in self._reported:
            self._reported.add(finding)
            self.branches.place(self.diagnostics).append(finding)

    def note_requirement(self, requirement: Requirement) -> None:
        """Keep a requirement of a node that may run."""
        if self.quiet or self.muted:
            return
        self.requirements.append(requirement)
        if self.calling:
            self.journal.entries.append(requirement)

    def note_unknown_operator(self, label: str, location: str) -> None:
        """Count a node with an unknown operator, and keep the location of the first one."""
        if not self.quiet:
            self.effects += 1
            self.first_unknown.setdefault(label, location)
            self.unknown_operators[label] = self.unknown_operators.get(label, 0) + 1

    def keep_report(self, report: FoundSplit) -> None:
        """Keep a split that is to be reported."""
        self.reports.append(report)
        if self.calling:
            self.journal.entries.append(report)

    @property
    def keeps_reports(self) -> bool:
        """True if a split is reported here."""
        return self.task.is_reported and not self.quiet

    def release(self, findings: Sequence[Diagnostic]) -> None:
        """Report findings that were held back."""
        self.branches.place(self.diagnostics).extend(findings)

    def avoid(self, findings: Sequence[Diagnostic]) -> None:
        """Record the errors of a body as avoidable: another branch has none."""
        self.branches.avoid(findings)
        if self.calling:
            self.journal.entries.extend(map(Avoidable, findings))

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
        """False if there were too many function calls, or if they were nested too deep: `calls` is incomplete then."""
        return self._followed <= self.task.most_calls and not self.is_too_deep

    def may_follow_call(self, location: str) -> bool:
        """Count a function call that repeats no other. Return False, with a warning, if there are too many to walk each
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
        """Report, once, that bodies are nested too deep to be walked. Report it even in a quiet walk or in a branch
        that may not run, because the model is not fully known then.
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


# Faulty tensors -------------------------------------------------------------------------------------------------------


class TensorCheck:
    """Checks the tensors of one model. lacking: the number of tensors without data in an architecture."""

    def __init__(self, model: ModelProto) -> None:
        self._model = model
        self._is_architecture: bool | None = None
        self.lacking = 0

    def problem(self, tensor: TensorProto) -> str | None:
        """Return what is wrong with a tensor; None for a sound one."""
        fault = misfit(tensor)
        if fault is not None or not lacks_data(tensor):
            return fault
        if self._is_architecture is None:
            self._is_architecture = _is_architecture(self._model)
        if not self._is_architecture:
            return f"it has no elements, and its shape is {list(tensor.dims)}"
        self.lacking += 1
        return None

    def of_node(self, node: NodeProto) -> str | None:
        """Return what is wrong with the first malformed tensor among a node's attributes; None if all are sound."""
        for attribute in node.attribute:
            problem = self._of_attribute(attribute)
            if problem is not None:
                return f"attribute {attribute.name!r} of {node.op_type}: the tensor is malformed: {problem}"
        return None

    def _of_attribute(self, attribute: AttributeProto) -> str | None:
        if attribute.type == AttributeProto.TENSOR:
            return self.problem(attribute.t)
        if attribute.type == AttributeProto.TENSORS:
            return next(filter(None, map(self.problem, attribute.tensors)), None)
        if attribute.type == AttributeProto.SPARSE_TENSOR:
            return misfit_of_sparse(attribute.sparse_tensor)
        if attribute.type == AttributeProto.SPARSE_TENSORS:
            return next(filter(None, map(misfit_of_sparse, attribute.sparse_tensors)), None)
        return None

    def of_initializers(self, graph: GraphProto, location: str) -> Iterator[Diagnostic]:
        """Yield a finding for each malformed initializer of a graph. It is only a warning if nothing reads the
        initializer.
        """
        problems = [(tensor.name, self.problem(tensor)) for tensor in graph.initializer]
        problems += [(sparse.values.name, misfit_of_sparse(sparse)) for sparse in graph.sparse_initializer]
        for name, problem in problems:
            if problem is None:
                continue
            if self._is_read(name):
                yield diagnostic("SG111", f"the initializer {name!r} is malformed: {problem}", location)
                continue
            text = f"the unused initializer {name!r} is malformed: {problem}"
            yield diagnostic("SG111", text, location, severity="warning", help="Remove the initializer.")

    def _is_read(self, name: str) -> bool:
        """Return True if a graph of the model reads or returns a value of this name."""
        graphs = [scope.proto for scope in scopes(self._model)]
        outputs = (value.name for graph in graphs if isinstance(graph, GraphProto) for value in graph.output)
        return name in outputs or any(name in node.input for graph in graphs for node in graph.node)

    def finding(self) -> Diagnostic | None:
        """Return the finding that the model is an architecture; None for a model that has its weights."""
        if not self.lacking:
            return None
        tensors = "1 tensor has a shape" if self.lacking == 1 else f"{self.lacking} tensors have shapes"
        return diagnostic("SG113", f"{tensors} but no elements: the weights were removed", "main", severity="warning")


def _is_architecture(model: ModelProto) -> bool:
    """Return True if more bytes are missing than present. A model with fewer missing bytes is damaged."""
    given = lacking = 0
    constants = (attribute.t for node in model.graph.node if node.op_type == "Constant" for attribute in node.attribute)
    for tensor in (*model.graph.initializer, *constants):
        size = max(byte_size(tensor) or 0, 0)
        if lacks_data(tensor):
            lacking += size
        else:
            given += size
    return lacking > given


# Advice about an invalid node -----------------------------------------------------------------------------------------

_TYPE = re.compile(r"input (\d+) is \w[\w ]*; it must be (?:one of )?(\w+)")
_SAME_TYPE = re.compile(r"same (?:element )?type|types must be equal")
_INPUT = re.compile(r"\b(?:the )?input (\d+)\b")
_OF_BODIES = re.compile(r"\b(?:branch(?:es)?|then_branch|else_branch|body|bodies)\b")
_WORD = re.compile(r"\w+")
_MISSING = ("needs the attribute", "is required", "are required", "must be given", "none of the attributes")
_SUPERFLUOUS = ("only one is allowed", "only one of", "more than one of")
# Shorter names are also common words.
_SHORTEST_NAME = 4


def advise(node: NodeProto, message: str) -> str:
    """Return what to do about a finding of SG302 at a node. The advice names the attribute or input that the message is
    about.
    """
    mismatch = _TYPE.search(message)
    if mismatch is not None:
        return f"Insert a Cast to {mismatch[2]} before {_input(node, int(mismatch[1]))}, or correct what gives it."
    if _SAME_TYPE.search(message) and "kind" not in message:
        return f"Insert a Cast, so that {_listed(node.input)} have one element type."
    if _OF_BODIES.search(message):
        return "Correct the inputs and outputs of the graphs in the attributes of the node."
    named = _named_attributes(node, message)
    if named:
        return _of_attributes(named, message)
    positions = _named_inputs(node, message)
    if positions:
        given = " and ".join(_input(node, position) for position in positions)
        return f"Correct {given}, or what gives it; infer --all shows the types of all values."
    if not any(node.input):
        return "Export the node again with a newer exporter, or correct its attributes by the operator's specification."
    shaped = _listed(node.input, "or")
    return f"Correct the shape of {shaped}, also where the model declares it; infer --all shows all shapes."


def _of_attributes(names: Sequence[str], message: str) -> str:
    listed = _quoted(names[:2])
    if any(text in message for text in _MISSING):
        return f"Add {listed} to the node."
    if any(text in message for text in _SUPERFLUOUS):
        return f"Remove all but one of the attributes {listed}."
    if "changes nothing" in message:
        return f"Remove {listed} from the node; a conversion does so."
    if re.search(r"must be (?:at least|one of|less|[^;]* to )|must not|out of range|which is not", message):
        return f"Set {listed} of the node to an allowed value."
    return f"Set {listed} of the node to a value that fits its inputs."


def _named_attributes(node: NodeProto, message: str) -> list[str]:
    """Return the attributes of the operator that a message names, in the order of the message."""
    known = {attribute.name for attribute in node.attribute}
    known |= {name for version in versions_of(plain_domain(node.domain), node.op_type) for name in version.attributes}
    given = {attribute.name for attribute in node.attribute}
    words = dict.fromkeys(_WORD.findall(message.split(": ", 1)[-1]))
    # The word "shape" or "axis" means the attribute only if the node has one.
    return [word for word in words if word in known and (word in given or f"'{word}'" in message or "_" in word)]


def _named_inputs(node: NodeProto, message: str) -> list[int]:
    """Return the positions of the inputs that a message names, by number or as the schema does."""
    positions = {int(number) for number in _INPUT.findall(message)}
    words = {word.lower() for word in _WORD.findall(message)}
    for version in versions_of(plain_domain(node.domain), node.op_type)[-1:]:
        for position, formal in enumerate(version.inputs):
            name = formal.name.lower()
            if len(name) >= _SHORTEST_NAME and name in words and name not in ("input", "data"):
                positions.add(position)
    return sorted(position for position in positions if position < len(node.input) and node.input[position])[:2]


def _input(node: NodeProto, position: int) -> str:
    name = node.input[position] if position < len(node.input) else ""
    return f"{name!r} (input {position})"


def _listed(names: Sequence[str], joint: str = "and") -> str:
    return _quoted([name for name in dict.fromkeys(names) if name][:4], joint)


def _quoted(names: Sequence[str], joint: str = "and") -> str:
    spelled = [repr(name) for name in names]
    return spelled[0] if len(spelled) == 1 else f"{', '.join(spelled[:-1])} {joint} {spelled[-1]}"
