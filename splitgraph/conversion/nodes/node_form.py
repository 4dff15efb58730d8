"""The form of a node between two opsets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from splitgraph.attributes import HOLDING_GRAPHS, make_attribute, make_node
from splitgraph.onnx_proto import AttributeProto, GraphProto, NodeProto


@dataclass(slots=True)
class NodeForm:
    """A node of ai.onnx at some opset between source and target.

    original: the node of the model that becomes this form, None for a node that conversion added. The original is
    edited in place, so that documentation, metadata and unknown fields are kept.
    """

    op_type: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, AttributeProto] = field(default_factory=dict)
    original: NodeProto | None = None
    name: str = ""
    # Edits the node and its subgraphs after all other edits.
    wrap: Callable[[NodeProto], None] | None = None

    @classmethod
    def of(cls, node: NodeProto) -> NodeForm:
        """The first form of a node of the model."""
        attributes = {attribute.name: attribute for attribute in node.attribute}
        return cls(node.op_type, list(node.input), list(node.output), attributes, node, node.name)

    @classmethod
    def of_added(cls, node: NodeProto) -> NodeForm:
        """The form of a node that conversion wrote."""
        form = cls.of(node)
        form.original = None
        return form

    @property
    def is_edited(self) -> bool:
        """True when the form differs from the node of the model, or has none."""
        node = self.original
        if node is None or self.wrap or node.op_type != self.op_type or len(node.attribute) != len(self.attributes):
            return True
        if list(node.input) != self.inputs or list(node.output) != self.outputs:
            return True
        return any(self.attributes.get(attribute.name) != attribute for attribute in node.attribute)

    @property
    def has_graphs(self) -> bool:
        """True for a node with subgraphs."""
        return any(attribute.type in HOLDING_GRAPHS for attribute in self.attributes.values())

    @property
    def reads(self) -> list[str]:
        """All names that the node and the nodes in its subgraphs read."""
        return [name for name in self.inputs if name] + _read_in_graphs(self.attributes.values())

    @property
    def new_reads(self) -> list[str]:
        """As `reads`, without what is read in graphs of the model: these are scopes, whose nodes are counted there."""
        held = () if self.original is None else self.original.attribute
        written = [attribute for attribute in self.attributes.values() if attribute not in held]
        return [name for name in self.inputs if name] + _read_in_graphs(written)

    def copy(self) -> NodeForm:
        """A copy of the form, for editing."""
        inputs, outputs = list(self.inputs), list(self.outputs)
        return NodeForm(self.op_type, inputs, outputs, dict(self.attributes), self.original, self.name, self.wrap)

    def node(self, graph: GraphProto | None = None) -> NodeProto:
        """The form as a node: the original where it is unchanged. graph: holds the new node, if given."""
        if self.original is not None and not self.is_edited:
            return self.original
        node = make_node(self.op_type, self.inputs, self.outputs, name=self.name, graph=graph)
        node.attribute.extend(self.attributes.values())
        return node


def needed(forms: Sequence[NodeForm], wanted: Iterable[str]) -> list[NodeForm]:
    """The forms that the wanted values depend on, in order."""
    kept: list[NodeForm] = []
    known = set(wanted)
    for form in reversed(forms):
        if not known.isdisjoint(form.outputs):
            kept.append(form)
            known.update(form.reads)
    return kept[::-1]


def reads_of(node: NodeProto) -> list[str]:
    """All names that a node and the nodes in its subgraphs read."""
    return [name for name in node.input if name] + _read_in_graphs(node.attribute)


def _read_in_graphs(attributes: Iterable[AttributeProto]) -> list[str]:
    names: list[str] = []
    for attribute in attributes:
        for graph in (attribute.g, *attribute.graphs) if attribute.type in HOLDING_GRAPHS else ():
            names += [value.name for value in graph.output]
            for node in graph.node:
                names += reads_of(node)
    return names


def added(
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], name: str, attributes: Mapping[str, object]
) -> NodeForm:
    """The form of a node that conversion adds; attributes of value None are left out."""
    made = {key: make_attribute(key, value) for key, value in attributes.items() if value is not None}
    return NodeForm(op_type, list(inputs), list(outputs), made, None, name)
