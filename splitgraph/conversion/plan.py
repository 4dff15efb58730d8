"""The plan of a rewrite: what becomes of each node and all blockers, collected before anything is edited."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from splitgraph.conversion.known_values import LeftOut, find_left_out
from splitgraph.conversion.node import Node
from splitgraph.conversion.rewrite import Change
from splitgraph.findings.diagnostics import ConversionError, Diagnostic, abridged
from splitgraph.inference import Walked
from splitgraph.model.names import Definitions, ValueKey
from splitgraph.model.onnx_proto import GraphProto, ModelProto, NodeProto, TensorProto
from splitgraph.model.places import versioned_operator
from splitgraph.model.scopes import GraphPath, Scope, node_label, plain_domain, roots, subgraphs
from splitgraph.splits.variadic_split_1 import DOMAIN, FORM_KEY

# The end of a note about a wrong declaration that stays.
KEPT = "; it is kept as declared"


@dataclass(slots=True)
class Replacement:
    """What becomes of one node.

    nodes: the nodes in its place, in order: an empty list removes the node, None keeps it. A Node with an original is
    the node itself, edited. constants: new initializers of the graph. why: the reason for the user; "" lists no change.
    before, after: the operator for the list of changes, by default that of the node with its version, and those of the
    new nodes without: further steps may bring them to another opset.
    """

    nodes: Sequence[Node | NodeProto] | None
    constants: Sequence[TensorProto] = ()
    why: str = ""
    before: str = ""
    after: str = ""

    def messages(self) -> list[NodeProto]:
        """Return the new nodes that are messages already."""
        return [node for node in self.nodes or () if isinstance(node, NodeProto)]


@dataclass(slots=True)
class GraphEdits:
    """The edits of one graph.

    replaced: by index of a node, the nodes in its place; a Node is the node itself, edited. unread: the nodes that are
    removed because nobody reads them any more. waiting: of these, the replacements that are made if a later replacement
    reads them. constants: new initializers. gone_initializers: those that are removed.
    """

    replaced: dict[int, list[Node | NodeProto]] = field(default_factory=dict)
    unread: set[int] = field(default_factory=set)
    waiting: dict[int, Replacement] = field(default_factory=dict)
    constants: list[TensorProto] = field(default_factory=list)
    gone_initializers: set[str] = field(default_factory=set)

    def changes(self, index: int) -> bool:
        """Return True if the node with this index is edited, replaced or removed."""
        return index in self.replaced or index in self.unread


@dataclass(slots=True)
class Plan:
    """A rewrite of a model as a replacement for each node; with blockers it is not applied. It is made root by root
    (`start`): a root is the main graph or a function, with its subgraphs.

    rounding: floating-point results may differ in their last bits. opset: the new version of ai.onnx, None for the old
    one. domains: the new versions of other domains. finish: edits each graph after all other edits. left_out: what
    calls of functions omit. variadic_parts: the numbers of parts for which the model needs a VariadicSplit function.
    gone_functions: those that are removed. known: the inference of the model. drafts: holds the new nodes and tensors,
    also those that are not used in the end: messages without a parent take kilobytes each.
    """

    edits: dict[GraphPath, GraphEdits] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    blockers: list[Diagnostic] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)
    rounding: bool = False
    opset: int | None = None
    domains: Mapping[str, int] = field(default_factory=dict)
    finish: Callable[[GraphProto], None] | None = None
    left_out: LeftOut = field(default_factory=LeftOut)
    variadic_parts: set[int] = field(default_factory=set)
    gone_functions: set[str] = field(default_factory=set)
    known: Walked | None = None
    drafts: GraphProto = field(default_factory=GraphProto)
    _uses: UseCounts = field(default_factory=lambda: UseCounts(()))

    def at(self, path: GraphPath) -> GraphEdits:
        """Return the edits of one graph."""
        edits = self.edits.get(path)
        if edits is None:
            edits = self.edits[path] = GraphEdits()
        return edits

    # Replacements --------------------------------------------------------------------------------------------------

    def start(self, root: Sequence[Scope]) -> None:
        """Begin with another root: all replacements that follow are of its nodes."""
        self._uses = UseCounts(root)

    def is_read(self, path: GraphPath, name: str) -> bool:
        """Return True when a node reads the value with this name after the replacements so far, or a graph outputs
        it.
        """
        return self._uses.is_read(path, name)

    def replace(self, scope: Scope, index: int, replacement: Replacement) -> None:
        """Plan what becomes of a node. Nodes and initializers without a reader afterwards are removed; what was removed
        and is read by the new nodes stays.
        """
        graph = self.at(scope.path)
        if index in graph.unread:
            graph.waiting[index] = replacement
        else:
            self._make(graph, scope, index, replacement)

    def replace_all(self, replacements: Sequence[tuple[Scope, int, Replacement]]) -> None:
        """Plan what becomes of several nodes, given in graph order. The last one is planned first: a node that nobody
        reads after the others were replaced is removed instead.
        """
        first = len(self.changes)
        for scope, index, replacement in reversed(replacements):
            self.replace(scope, index, replacement)
        self.changes[first:] = reversed(self.changes[first:])

    def _make(self, graph: GraphEdits, scope: Scope, index: int, replacement: Replacement) -> None:
        original, nodes = scope.nodes[index], replacement.nodes
        if replacement.why:
            before = replacement.before or versioned_operator(original, scope.imports)
            after = replacement.after or _operators(nodes or ()) or original.op_type
            location = f"{scope.location}/{node_label(original, index)}"
            self.changes.append(Change(location, before, after, replacement.why))
        if nodes is None:
            self._uses.hold(scope, index)
            return
        graph.constants.extend(replacement.constants)
        graph.replaced[index] = [self._written(node, original) for node in nodes]
        reads = [name for node in nodes for name in (node.new_reads if isinstance(node, Node) else node.input) if name]
        if len(nodes) == 1 and reads == [name for name in original.input[:] if name]:
            self._uses.hold(scope, index)
            return
        effects = self._uses.exchange(scope, index, reads)
        for inner, gone in effects.gone:
            self.at(inner.path).unread.add(gone)
        for path, name in effects.gone_initializers:
            self.at(path).gone_initializers.add(name)
        for path, name in effects.back_initializers:
            self.at(path).gone_initializers.discard(name)
        for inner, back in effects.back:
            again = self.at(inner.path)
            again.unread.remove(back)
            waiting = again.waiting.pop(back, None)
            if waiting is not None:
                self._make(again, inner, back, waiting)

    def _written(self, node: Node | NodeProto, original: NodeProto) -> Node | NodeProto:
        """Return the node itself, edited, or a new node as a message. New nodes get the metadata of the node that they
        replace, such as stack traces and namespaces.
        """
        if isinstance(node, Node):
            if node.original is not None:
                return node
            node = node.message(self.drafts)
        if node.domain == DOMAIN:
            self.variadic_parts.add(len(node.output))
        if original.metadata_props:
            known = {FORM_KEY, *(entry.key for entry in node.metadata_props)}
            node.metadata_props.extend(entry for entry in original.metadata_props if entry.key not in known)
        return node

    # Blockers ------------------------------------------------------------------------------------------------------

    def refuse_errors(self, walked: Walked) -> None:
        """Make every error of the model a blocker. A wrongly declared shape is no error: it stays, with a warning,
        because runtimes and conversion go by what nodes compute; only beside nodes that are replaced it does not.
        """
        self.known = walked
        self.blockers += errors_of(walked)
        for finding in walked.misdeclared:
            self.notes.append(replace(finding, severity="warning", message=finding.message + KEPT))

    def needed(self, walked: Walked) -> list[Diagnostic]:
        """Return the accepted findings that block this plan after all: it changes their nodes."""
        blockers = []
        for (path, index), accepted in walked.set_aside.items():
            edits = self.edits.get(path)
            if edits is not None and edits.changes(index):
                blockers.append(needed_by_conversion(accepted))
        return blockers

    def raise_blockers(self, failure: str, notes: Sequence[Diagnostic] = ()) -> None:
        """Raise ConversionError with every blocker, if there are any. notes: those about stale acceptances are added:
        a blocker may be what was meant.
        """
        if not self.blockers:
            return
        blockers = list(dict.fromkeys(self.blockers))
        lines = "".join(f"\n  {d.code}  {abridged(d.location)}  {d.message}" for d in blockers)
        count = f"{len(blockers)} blocker" + ("s" if len(blockers) > 1 else "")
        raise ConversionError(
            f"{failure}: {count}{lines}", [*blockers, *(note for note in notes if note.code == "SG606")]
        )


def _operators(nodes: Sequence[Node | NodeProto]) -> str:
    """Return the operators of nodes for the list of changes. Constants are left out if there are other nodes."""
    told = [node for node in nodes if node.op_type != "Constant"] or nodes[:1]
    return ", ".join(dict.fromkeys(node.op_type for node in told))


def started_roots(plan: Plan, model: ModelProto, walked: Walked) -> Iterator[Sequence[Scope]]:
    """Yield each root of a model, with the plan at its start; none for a model with errors, which become blockers."""
    plan.left_out = find_left_out(model, walked.scopes)
    plan.refuse_errors(walked)
    for root in () if plan.blockers else roots(walked.scopes):
        plan.start(root)
        yield root


def opset_of(imports: Mapping[str, int]) -> int:
    """Return the imported opset of ai.onnx, 1 when there is none."""
    return imports.get("", 1)


def needed_by_conversion(accepted: Diagnostic) -> Diagnostic:
    """Return the blocker for an accepted finding of a node that the conversion has to change."""
    help = f"It cannot be accepted: this conversion has to change the node, or to know what it means. {accepted.help}"
    return replace(accepted, help=help)


def errors_of(walked: Walked) -> list[Diagnostic]:
    """Return the errors that inference found in the model."""
    return [finding for finding in walked.diagnostics if finding.severity == "error"]


@dataclass(slots=True)
class Effects:
    """What one replacement does to the rest of a root: nodes and initializers without a reader are `gone`; those that
    were gone, and that the new nodes read, are `back`.
    """

    gone: list[tuple[Scope, int]] = field(default_factory=list)
    gone_initializers: list[tuple[GraphPath, str]] = field(default_factory=list)
    back: list[tuple[Scope, int]] = field(default_factory=list)
    back_initializers: list[tuple[GraphPath, str]] = field(default_factory=list)


class UseCounts:
    """For each value of a root (main graph or function, with its subgraphs): how often it is read, and its producer.

    The counts are those of the plan as a whole: a node that lost its last reader comes back when a later replacement
    reads it, so the order of the replacements does not matter.
    """

    def __init__(self, root: Sequence[Scope]) -> None:
        self._root = root
        self._is_counted = False
        self._definitions = Definitions(root)
        self._reads: Counter[ValueKey] = Counter()
        # By position among the nodes of all graphs, one after the other: a tuple for each node would take megabytes.
        self._producers: dict[ValueKey, int] = {}
        self._first_positions: list[int] = []
        self._initializers: dict[ValueKey, Scope] = {}
        # What was removed, and may come back.
        self._gone: dict[ValueKey, int] = {}
        self._gone_initializers: dict[ValueKey, Scope] = {}
        # Nodes that stay or were replaced, so that they are not removed.
        self._staying: list[tuple[Scope, int]] = []

    def is_read(self, path: GraphPath, name: str) -> bool:
        """Return True when a node reads the value with this name, or when a graph outputs it."""
        self._count()
        return self._reads[self._definitions.key(path, name)] > 0

    def hold(self, scope: Scope, index: int) -> None:
        """Record that a node stays, even if nobody reads its outputs."""
        if not self._is_counted:
            self._staying.append((scope, index))
            return
        for output in self._keys(scope, scope.nodes[index].output[:]):
            self._producers.pop(output, None)

    def _keys(self, scope: Scope, names: Sequence[str]) -> Sequence[ValueKey]:
        return self._definitions.keys(scope.path, names)

    def exchange(self, scope: Scope, index: int, inputs: Sequence[str]) -> Effects:
        """Record that nodes that read `inputs` replace a node. Return what is gone afterwards, with everything that
        only this read, and what is back.
        """
        # One by one: Counter's own methods for few names take ten times as long.
        reads, effects = self._reads, Effects()
        needed = self._keys(scope, inputs)
        for value in needed:
            reads[value] = reads.get(value, 0) + 1
        if self._gone or self._gone_initializers:
            self._bring_back(needed, effects)
        self.hold(scope, index)
        released = self._keys(scope, [name for name in scope.nodes[index].input[:] if name])
        for value in released:
            reads[value] = reads.get(value, 0) - 1
        # A value that is read more often than before has a reader: nothing needs to be counted.
        self._release([value for value in released if self._is_counted or reads[value] < 0], effects)
        return effects

    def _count(self) -> None:
        # Counted only when asked for: a conversion after which everything is read never asks.
        if self._is_counted:
            return
        self._is_counted = True
        first = 0
        for scope in self._root:
            self._first_positions.append(first)
            self._read_scope(scope, first)
            first += len(scope.nodes)
        for scope, index in self._staying:
            self.hold(scope, index)

    def _read_scope(self, scope: Scope, first: int) -> None:
        # Reads and producers share one string object for each name: protobuf makes a new one for every message.
        reads, producers = self._reads, self._producers
        for position, node in enumerate(scope.nodes, first):
            for value in self._keys(scope, node.output[:]):
                producers[value] = position
                reads.setdefault(value, 0)
        for node in scope.nodes:
            for value in self._keys(scope, node.input[:]):
                reads[value] = reads.get(value, 0) + 1
        if scope.is_function:
            self._reads.update(scope.proto.output)
            return
        self._reads.update(self._keys(scope, [value.name for value in scope.proto.output]))
        notes = scope.proto.quantization_annotation
        # Quantization annotations name values, and scales and zero points, which may have no other reader.
        named = [entry.value for note in notes for entry in note.quant_parameter_tensor_names]
        named += [note.tensor_name for note in notes]
        self._reads.update(self._keys(scope, named))
        inputs = {value.name for value in scope.proto.input}
        for tensor in scope.proto.initializer:
            # An initializer that is also an input belongs to the model's interface.
            if tensor.name not in inputs:
                self._initializers[self._definitions.key(scope.path, tensor.name)] = scope

    def _release(self, values: Iterable[ValueKey], effects: Effects) -> None:
        """Add the nodes and initializers without a reader, given the values that lost one."""
        waiting = list(values)
        if waiting:
            self._count()
        while waiting:
            value = waiting.pop()
            if self._reads[value] > 0:
                continue
            if value in self._initializers:
                scope = self._gone_initializers[value] = self._initializers.pop(value)
                effects.gone_initializers.append((scope.path, _name_of(value)))
            elif value in self._producers:
                position = self._producers[value]
                scope, index = self._place_of(position)
                node = scope.nodes[index]
                if self._is_removable(scope, node):
                    effects.gone.append((scope, index))
                    for output in self._keys(scope, node.output[:]):
                        self._producers.pop(output, None)
                        self._gone[output] = position
                    read = self._keys(scope, [name for name in node.input if name])
                    self._reads.subtract(read)
                    waiting.extend(read)

    def _bring_back(self, values: Iterable[ValueKey], effects: Effects) -> None:
        """Add the nodes and initializers that are gone but read, given the values with a new reader."""
        waiting = list(values)
        while waiting:
            value = waiting.pop()
            if value in self._gone_initializers:
                scope = self._initializers[value] = self._gone_initializers.pop(value)
                effects.back_initializers.append((scope.path, _name_of(value)))
            elif value in self._gone:
                position = self._gone[value]
                scope, index = self._place_of(position)
                effects.back.append((scope, index))
                for output in self._keys(scope, scope.nodes[index].output[:]):
                    self._producers[output] = self._gone.pop(output)
                read = self._keys(scope, [name for name in scope.nodes[index].input if name])
                self._reads.update(read)
                waiting.extend(read)

    def _place_of(self, position: int) -> tuple[Scope, int]:
        # Several graphs begin here when some have no nodes; the last one has nodes.
        which = bisect_right(self._first_positions, position) - 1
        return self._root[which], position - self._first_positions[which]

    def _is_removable(self, scope: Scope, node: NodeProto) -> bool:
        unread = all(self._reads[value] <= 0 for value in self._keys(scope, [name for name in node.output if name]))
        return unread and plain_domain(node.domain) == "" and not any(True for _ in subgraphs(node))


def _name_of(value: ValueKey) -> str:
    return value if isinstance(value, str) else value[1]
