"""The plan of a rewrite: all edits of a model and all blockers, collected before anything is edited."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from splitgraph.conversion.nodes.crossing import AttributeEdit
from splitgraph.conversion.nodes.omitted_arguments import LeftOut
from splitgraph.conversion.rewrite import Change
from splitgraph.diagnostics import ConversionError, Diagnostic, abridged
from splitgraph.graph.scopes import GraphPath
from splitgraph.inference import Walked
from splitgraph.onnx_proto import GraphProto, NodeProto, TensorProto


@dataclass(frozen=True, slots=True)
class NodeEdit:
    """The new operator, inputs and outputs of a node that is edited in place."""

    op_type: str
    inputs: Sequence[str]
    outputs: Sequence[str]


class InPlace(NamedTuple):
    """How a node is edited without new nodes: operator, inputs (None: unchanged), and edits of its attributes."""

    op_type: str
    inputs: Sequence[str] | None
    attributes: Sequence[AttributeEdit]


@dataclass(slots=True)
class GraphEdits:
    """The edits of one graph.

    replaced: by index of a node, the nodes that replace it; an empty list removes it, None in the list is the node
    itself. nodes, attributes: edits of nodes in place. wraps: functions that edit a node and its subgraphs after all
    other edits. gone_initializers: those that are removed. gone_values: values whose value_info is removed. postponed:
    by index of a removed node, what plans its replacement if a later replacement reads the node.
    """

    replaced: dict[int, list[NodeProto | None]] = field(default_factory=dict)
    nodes: dict[int, NodeEdit] = field(default_factory=dict)
    wraps: dict[int, Callable[[NodeProto], None]] = field(default_factory=dict)
    attributes: dict[int, list[AttributeEdit]] = field(default_factory=dict)
    new_initializers: list[TensorProto] = field(default_factory=list)
    gone_initializers: set[str] = field(default_factory=set)
    gone_values: set[str] = field(default_factory=set)
    postponed: dict[int, Callable[[], None]] = field(default_factory=dict)

    def changes(self, index: int) -> bool:
        """True if the node with this index is edited, replaced or removed."""
        return any(index in edits for edits in (self.replaced, self.nodes, self.wraps, self.attributes))


@dataclass(slots=True)
class Plan:
    """A rewrite of a model as a list of edits for each graph; with blockers it is not applied.

    rounding: floating-point results may differ in their last bits. opset: the new version of ai.onnx, None for the old
    one. finish: edits each graph after all other edits. left_out: what calls of functions omit. variadic_parts: the
    numbers of parts for which the model needs a VariadicSplit function. gone_functions: those that are removed. drafts:
    holds the new nodes and tensors, also those that are not used in the end.
    """

    edits: dict[GraphPath, GraphEdits] = field(default_factory=dict)
    changes: list[Change] = field(default_factory=list)
    blockers: list[Diagnostic] = field(default_factory=list)
    notes: list[Diagnostic] = field(default_factory=list)
    rounding: bool = False
    opset: int | None = None
    finish: Callable[[GraphProto], None] | None = None
    left_out: LeftOut = field(default_factory=LeftOut)
    variadic_parts: set[int] = field(default_factory=set)
    gone_functions: set[str] = field(default_factory=set)
    drafts: GraphProto = field(default_factory=GraphProto)

    def at(self, path: GraphPath) -> GraphEdits:
        """The edits of one graph."""
        found = self.edits.get(path)
        if found is None:
            found = self.edits[path] = GraphEdits()
        return found

    def refuse_errors(self, walked: Walked) -> None:
        """Make every error of the model a blocker. A wrongly declared shape is no error: it stays, with a warning,
        because runtimes and conversion go by what nodes compute.
        """
        self.blockers += errors_of(walked)
        for found in walked.misdeclared:
            self.notes.append(replace(found, severity="warning", message=f"{found.message}; it is kept as declared"))

    def needed(self, walked: Walked) -> list[Diagnostic]:
        """The accepted findings that block this plan after all: it changes their nodes."""
        found = []
        for (path, index), accepted in walked.set_aside.items():
            edits = self.edits.get(path)
            if edits is not None and edits.changes(index):
                found.append(needed_by_conversion(accepted))
        return found

    def raise_blockers(self, what: str, notes: Sequence[Diagnostic] = ()) -> None:
        """Raise ConversionError with every blocker, if there are any. notes: those about stale acceptances are added:
        a blocker may be what was meant.
        """
        if not self.blockers:
            return
        found = list(dict.fromkeys(self.blockers))
        lines = "".join(f"\n  {d.code}  {abridged(d.location)}  {d.message}" for d in found)
        count = f"{len(found)} blocker" + ("s" if len(found) > 1 else "")
        raise ConversionError(f"{what}: {count}{lines}", [*found, *(note for note in notes if note.code == "SG606")])


def opset_of(imports: Mapping[str, int]) -> int:
    """The imported opset of ai.onnx, 1 when there is none."""
    return imports.get("", 1)


def needed_by_conversion(accepted: Diagnostic) -> Diagnostic:
    """The blocker for an accepted finding of a node that the conversion has to change."""
    help = f"It cannot be accepted: this conversion has to change the node, or to know what it means. {accepted.help}"
    return replace(accepted, help=help)


def errors_of(walked: Walked) -> list[Diagnostic]:
    """The errors that inference found in the model."""
    return [found for found in walked.diagnostics if found.severity == "error"]
