"""Calls of model-local functions: the body is walked with the call's inputs and attributes, once for equal calls.

An equal call repeats the outputs of the first one, and the entries that the first one left in the journal.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from splitgraph.dim import Dim, DimLike, Facts, Obligation, substitute, symbols_of
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference.context import NodeContext
from splitgraph.inference.graph_walk import Bindings, GraphWalk, symbols_of_type
from splitgraph.inference.memo import MOST_BYTES, Memo, with_dims
from splitgraph.inference.record import Avoidable, Entry, Finding, Requirement
from splitgraph.inference.walk_results import FoundSplit, FunctionCall, SplitDetail
from splitgraph.inference.walk_state import WalkState
from splitgraph.model.onnx_proto import AttributeProto, FunctionProto, TensorProto
from splitgraph.model.scopes import Steps, called_function
from splitgraph.model.value_type import Contents, Item, Ratio, SequenceInfo, ValueType
from splitgraph.splits.canonical import CanonicalSplit

# The function, the attributes that it is called with, whether findings are reported, and one object for what is known
# of each input.
CallKey = tuple[Hashable, ...]


@dataclass(frozen=True, slots=True)
class CallVisit:
    """The results and effects of walking a function body for one call.

    given: the outputs. made: symbols in the outputs, or in what is reported, that this call generated. location: of
    the call. start, end: its entries in the journal. unknown: how often each unknown operator occurred. bindings: keeps
    attributes alive that the key compares by identity.
    """

    given: CallOutputs
    made: Sequence[str]
    location: str
    start: int
    end: int
    unknown: Mapping[str, int]
    bindings: Bindings | None


def infer_call(
    walk: GraphWalk, ctx: NodeContext, function: FunctionProto
) -> Generator[Steps, None, Sequence[ValueType]]:
    """Return the output types of a call."""
    state, name = walk.state, called_function(ctx.node)
    if name in state.record.calling:
        help = "Remove the recursive call; ONNX does not support recursion."
        walk.report(diagnostic("SG102", f"the function {function.name!r} calls itself", ctx.location, help=help))
        # If another function starts the recursion, this call is the first one and no error.
        state.record.journal.unrepeatable += 1
        return ()
    if (fault := _fault_of_call(ctx, function)) is not None:
        walk.report(diagnostic("SG212", fault, ctx.location))
        return ()
    bindings = _bindings(walk, ctx, function)
    _read_shared(walk, ctx)
    key = _key(state, ctx, bindings)
    visit = _find(walk.memo, key, ctx)
    if visit is not None:
        return _repeat(state, visit, ctx)
    if not state.record.may_follow_call(ctx.location):
        return ()
    if not state.record.quiet or name not in state.record.calls:
        state.record.calls.setdefault(name, []).append(FunctionCall(tuple(ctx.inputs)))
    return (yield from _walked(walk, ctx, function, bindings, key))


def _walked(
    walk: GraphWalk, ctx: NodeContext, function: FunctionProto, bindings: Bindings | None, key: CallKey
) -> Generator[Steps, None, Sequence[ValueType]]:
    """Return the output types of a call. Walk the body for it, and remember the results for equal calls."""
    calling, before = walk.state.record.calling, _Before.of(walk)
    calling.append(called_function(ctx.node))
    body = walk.called(function, ctx.location, bindings)
    _define_inputs(walk, body, ctx, function)
    yield body.steps(function.node)
    body.check_function_outputs(function)
    calling.pop()
    read = frozenset(p for p, name in enumerate(function.input) if name in body.elements_read)
    for position in read:
        # The graph around the body has read these elements, too.
        ctx.contents(position)
    given = _outputs(body, function)
    visit = _repeatable_visit(walk, ctx.location, given, bindings, before)
    if visit is not None:
        # From now on, calls with other elements are different calls.
        read |= walk.memo.find(key) or frozenset()
        walk.memo.keep(key, read, settled=True)
        is_settled = before.questions == walk.facts.open_questions
        walk.memo.keep(_with_elements(key, ctx, read), visit, settled=is_settled)
    return _hand_over(given, ctx)


class _Before(NamedTuple):
    """What a walk had recorded before a call.

    version, questions: the facts, and the open questions about them. entries, unrepeatable: see `Journal`. generated:
    the number of symbols. unknown: how often each unknown operator occurred.
    """

    version: int
    questions: int
    entries: int
    unrepeatable: int
    generated: int
    unknown: Mapping[str, int]

    @classmethod
    def of(cls, walk: GraphWalk) -> _Before:
        record, facts = walk.state.record, walk.facts
        entries, unrepeatable = len(record.journal.entries), record.journal.unrepeatable
        generated, unknown = len(walk.state.symbols.generated), dict(record.unknown_operators)
        return cls(facts.version, facts.open_questions, entries, unrepeatable, generated, unknown)


def _repeatable_visit(
    walk: GraphWalk, location: str, given: CallOutputs, bindings: Bindings | None, before: _Before
) -> CallVisit | None:
    """Return the results and effects of a call that has been walked. Return None if an equal call cannot repeat them:
    the body taught something about symbols of the graph around it, said something that holds at its own place only, or
    has facts about symbols that the repetition would rename.

    given: the outputs. before: what the walk had recorded before the call.
    """
    state, journal = walk.state, walk.state.record.journal
    if before.version != walk.facts.version or before.unrepeatable != journal.unrepeatable:
        return None
    made: list[str] | None = []
    if len(state.symbols.generated) > before.generated:
        made = symbols_to_rename(state, before.entries, given.symbols(), before.generated, walk.facts)
    if made is None:
        return None
    counts = {
        label: count - before.unknown.get(label, 0)
        for label, count in state.record.unknown_operators.items()
        if count != before.unknown.get(label, 0)
    }
    return CallVisit(given, made, location, before.entries, len(journal.entries), counts, bindings)


def _find(memo: Memo, key: CallKey, ctx: NodeContext) -> CallVisit | None:
    """Return an equal earlier call; None if the body must be walked."""
    read: frozenset[int] | None = memo.find(key)
    if read is None:
        return None
    visit: CallVisit | None = memo.find(_with_elements(key, ctx, read))
    return visit


def _with_elements(key: CallKey, ctx: NodeContext, read: frozenset[int]) -> CallKey:
    """Return the key of a call, together with the elements that the body reads."""
    for position in read:
        ctx.contents(position)
    return (key, *(ctx.given[position] for position in sorted(read)))


def _repeat(state: WalkState, visit: CallVisit, ctx: NodeContext) -> Sequence[ValueType]:
    """Repeat an earlier call for this one. Return the types of the outputs."""
    names = {name: state.fresh() for name in visit.made}
    replay(state, visit.start, visit.end, Move(visit.location, ctx.location, names))
    for label, count in visit.unknown.items():
        state.record.unknown_operators[label] += count
    return _hand_over(visit.given.renamed(names), ctx)


def _hand_over(outputs: CallOutputs, ctx: NodeContext) -> Sequence[ValueType]:
    """Record the elements and sequences of a call's outputs. Return the types of the outputs."""
    ctx.contents_out.update(outputs.contents)
    ctx.sequences_out.update(outputs.sequences)
    return outputs.types


def _key(state: WalkState, ctx: NodeContext, bindings: Bindings | None) -> CallKey:
    name, is_reported = called_function(ctx.node), (state.record.quiet > 0, state.record.muted > 0)
    return ("call", name, is_reported, _key_of_bindings(bindings), *ctx.given)


def _key_of_bindings(bindings: Bindings | None) -> tuple[tuple[str, bytes | int], ...] | None:
    if bindings is None:
        return None
    return tuple([(name, _key_of_attribute(bindings[name])) for name in sorted(bindings)])


def _key_of_attribute(attribute: AttributeProto) -> bytes | int:
    """Return the attribute's bytes, or the identity of a long attribute."""
    if attribute.ByteSize() > MOST_BYTES:
        return id(attribute)
    return attribute.SerializeToString()


def _read_shared(walk: GraphWalk, ctx: NodeContext) -> None:
    """Read the elements of inputs that a body has read since the inputs were looked up."""
    for position, known in enumerate(ctx.given):
        if known.unread and not isinstance(walk.constant_of(ctx.node.input[position]), TensorProto):
            ctx.contents(position)


def _define_inputs(walk: GraphWalk, body: GraphWalk, ctx: NodeContext, function: FunctionProto) -> None:
    """Define the inputs of a function's body from a call's inputs: types, contents, sequences."""
    for position, name in enumerate(function.input):
        if not ctx.has_input(position):
            body.omitted.add(name)
            continue
        body.define(name, ctx.input(position), body.location)
        # A constant that nobody has looked at is handed on as it is.
        unread = ctx.given[position].unread
        contents = walk.constant_of(ctx.node.input[position]) if unread else ctx.contents(position)
        if contents is not None:
            body.constants[name] = contents
        if (sequence := ctx.sequence(position)) is not None:
            body.sequences[name] = sequence


def _outputs(body: GraphWalk, function: FunctionProto) -> CallOutputs:
    names = list(enumerate(function.output))
    contents = {position: elements for position, name in names if (elements := body.contents_of(name)) is not None}
    sequences = {position: info for position, name in names if (info := body.sequence_of(name)) is not None}
    return CallOutputs([body.type_of(name) for _, name in names], contents, sequences)


def _bindings(walk: GraphWalk, ctx: NodeContext, function: FunctionProto) -> Bindings | None:
    """Return the attributes of a call by name. Return None if one refers to an attribute of the enclosing function,
    whose caller is unknown.
    """
    bound = {attribute.name: attribute for attribute in function.attribute_proto}
    for attribute in ctx.node.attribute:
        if not attribute.ref_attr_name:
            bound[attribute.name] = attribute
        elif walk.bindings is None:
            return None
        elif attribute.ref_attr_name in walk.bindings:
            bound[attribute.name] = walk.bindings[attribute.ref_attr_name]
    return bound


def _fault_of_call(ctx: NodeContext, function: FunctionProto) -> str | None:
    """Return the text of an error if a call has more inputs or outputs than the function; else None. An attribute that
    the function does not declare is no error: onnxruntime and the reference evaluator ignore it.
    """
    if ctx.input_count > len(function.input):
        return f"the function {function.name!r} has {_counted(function.input, 'input')}, not {ctx.input_count}"
    if len(ctx.node.output) > len(function.output):
        return f"the function {function.name!r} has {_counted(function.output, 'output')}, not {len(ctx.node.output)}"
    return None


def _counted(names: Sequence[str], noun: str) -> str:
    return f"{len(names) or 'no'} {noun}{'s' * (len(names) != 1)}"


Change = Callable[[Dim], DimLike]


@dataclass(frozen=True, slots=True)
class CallOutputs:
    """The types of a call's outputs in order, with known elements and sequences by position."""

    types: Sequence[ValueType]
    contents: Mapping[int, Contents]
    sequences: Mapping[int, SequenceInfo]

    def symbols(self) -> frozenset[str]:
        """Return every symbol in the outputs."""
        names = set[str]()

        def note(dim: Dim) -> DimLike:
            names.update(symbols_of(dim))
            return dim

        self._with_dims(note)
        return frozenset(names)

    def renamed(self, names: Mapping[str, DimLike]) -> CallOutputs:
        """Return the same outputs with symbols replaced."""
        return self._with_dims(lambda dim: substitute(dim, names)) if names else self

    def _with_dims(self, change: Change) -> CallOutputs:
        types = [with_dims(value, change) for value in self.types]
        contents = {position: _contents(known, change) for position, known in self.contents.items()}
        sequences = {position: _sequence(known, change) for position, known in self.sequences.items()}
        return CallOutputs(types, contents, sequences)


def _contents(known: Contents, change: Change) -> Contents:
    # One object where nothing changes: longer contents are told apart by identity.
    if not any(isinstance(item, (Dim, Ratio)) for item in known.items):
        return known
    return Contents(known.shape, tuple([_item(item, change) for item in known.items]))


def _item(item: Item, change: Change) -> Item:
    if isinstance(item, Dim):
        return change(item)
    if isinstance(item, Ratio):
        numerator = change(item.numerator)
        return Ratio(numerator, item.denominator) if isinstance(numerator, Dim) else item
    return item


def _sequence(known: SequenceInfo, change: Change) -> SequenceInfo:
    length, total, size = (change(d) if isinstance(d, Dim) else d for d in (known.length, known.total, known.size))
    elements = None if known.elements is None else tuple([with_dims(element, change) for element in known.elements])
    return replace(known, length=length, elements=elements, total=total, size=size)


_WORD = re.compile(r"\w+", re.ASCII)


@dataclass(frozen=True, slots=True)
class Move:
    """The way from an earlier call to the call that repeats it. old, new: their locations. names: new symbols for those
    that the earlier call generated.
    """

    old: str
    new: str
    names: Mapping[str, DimLike]

    def location(self, location: str) -> str:
        return self.new + location[len(self.old) :]

    def branch(self, branch: str) -> str:
        """Return the moved location of a body. A body around the earlier call stays where it is."""
        return self.location(branch) if branch.startswith(f"{self.old}/") else branch

    def finding(self, finding: Diagnostic) -> Diagnostic:
        message = finding.message
        if self.names:
            message = _WORD.sub(lambda word: str(self.names.get(word[0], word[0])), message)
        return replace(finding, location=self.location(finding.location), message=message)

    def requirement(self, requirement: Requirement) -> Requirement:
        moved = requirement._replace(
            location=self.location(requirement.location), branch=self.branch(requirement.branch)
        )
        return moved._replace(obligation=self._obligation(requirement.obligation)) if self.names else moved

    def split(self, report: FoundSplit) -> FoundSplit:
        moved = report._replace(location=self.location(report.location), branch=self.branch(report.branch))
        if self.names.keys().isdisjoint(_symbols_of_split(report)):
            return moved
        return moved._replace(
            detail=self._detail(report.detail),
            outputs=[self._type(value) for value in report.outputs],
            obligations=tuple(map(self._obligation, report.obligations)),
        )

    def _detail(self, detail: SplitDetail) -> SplitDetail:
        split = detail.split
        if split is not None:
            lengths = None if split.lengths is None else tuple(map(self._dim, split.lengths))
            total, count, size = (
                None if dim is None else self._dim(dim) for dim in (split.total, split.count, split.size)
            )
            split = replace(split, lengths=lengths, total=total, count=count, size=size)
        written = detail.written
        if written is not None:
            lengths_written = tuple(None if length is None else self._dim(length) for length in written.lengths)
            written = written._replace(lengths=lengths_written)
        return replace(detail, split=split, data=self._type(detail.data), written=written)

    def _obligation(self, obligation: Obligation) -> Obligation:
        return Obligation(self._dim(obligation.lhs), obligation.relation, self._dim(obligation.rhs), obligation.text)

    def _type(self, value: ValueType) -> ValueType:
        return with_dims(value, self._dim)

    def _dim(self, dim: DimLike) -> DimLike:
        return substitute(dim, self.names) if isinstance(dim, Dim) else dim


def symbols_to_rename(
    state: WalkState, start: int, given: Collection[str], made_before: int, facts: Facts
) -> list[str] | None:
    """Return the symbols that a call generated and that are in its outputs or in its journal entries, in the order in
    which they were made. Return None if an entry of a body has one: the facts of the body know the symbol by its own
    name.

    given: the symbols of the outputs. start: the first entry. made_before: the number of symbols before the call.
    facts: those of the graph around the call.
    """

    def made(names: Collection[str]) -> set[str]:
        return {name for name in names if state.symbols.ordinals.get(name, -1) >= made_before}

    symbols = made(given)
    for entry in state.record.journal.entries[start:]:
        if isinstance(entry, (Finding, Avoidable)):
            symbols |= made(_WORD.findall(entry.diagnostic.message))
            continue
        if isinstance(entry, Requirement):
            here = made(symbols_of(entry.obligation.lhs) | symbols_of(entry.obligation.rhs))
        else:
            here = made(_symbols_of_split(entry))
        if here and entry.facts is not facts:
            return None
        symbols |= here
    return sorted(symbols, key=state.symbols.ordinals.__getitem__)


def _symbols_of_split(report: FoundSplit) -> frozenset[str]:
    split: CanonicalSplit | None = report.detail.split
    dims: list[DimLike | None] = [*report.detail.shown.lengths]
    dims += [] if split is None else [split.total, split.count, split.size]
    dims += [side for obligation in report.obligations for side in (obligation.lhs, obligation.rhs)]
    names = frozenset[str]().union(*(symbols_of(dim) for dim in dims if isinstance(dim, Dim)))
    return names.union(*(_symbols_of_value(value) for value in (report.detail.data, *report.outputs)))


def _symbols_of_value(value: ValueType) -> frozenset[str]:
    inner = frozenset[str]() if value.element is None else _symbols_of_value(value.element)
    return symbols_of_type(value) | inner


def replay(state: WalkState, start: int, end: int, move: Move) -> None:
    """Repeat the journal's entries from start to end for another call."""
    journal = state.record.journal
    for position in range(start, end):
        journal.repeated += 1
        if journal.repeated > state.task.most_repeated:
            _warn(state, move.new)
            return
        _again(state, journal.entries[position], move)


def _warn(state: WalkState, location: str) -> None:
    if state.record.journal.is_cut:
        return
    state.record.journal.is_cut = True
    help = "The others are the same as in the earlier calls of these functions."
    text = f"only {state.task.most_repeated:,} splits and findings of repeated function calls are listed"
    state.record.diagnostics.append(diagnostic("SG303", text, location, severity="warning", help=help))


def _again(state: WalkState, entry: Entry, move: Move) -> None:
    if isinstance(entry, Avoidable):
        state.record.avoid([move.finding(entry.diagnostic)])
    elif isinstance(entry, Finding):
        with state.record.muting(entry.never_runs):
            state.record.report(
                move.finding(entry.diagnostic), when_run=entry.when_run, is_misdeclared=entry.is_misdeclared
            )
    elif isinstance(entry, Requirement):
        state.record.note_requirement(move.requirement(entry))
    else:
        state.record.keep_report(move.split(entry))
