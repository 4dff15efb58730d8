"""A node between two opsets, and the types that its inputs and outputs may have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from splitgraph.model.attributes import CONSTANT_DTYPES, HOLDING_GRAPHS, make_attribute, make_node
from splitgraph.model.onnx_proto import AttributeProto, GraphProto, NodeProto
from splitgraph.model.schemas import Formal, OperatorVersion
from splitgraph.model.schemas.fit import Slot, formal_at, possible_types
from splitgraph.model.scopes import plain_domain
from splitgraph.model.value_type import DTYPE_NAMES, ValueType


@dataclass(slots=True)
class Node:
    """A node at some opset between source and target. domain: "" for ai.onnx.

    original: the node of the model that this node is, None for a node that conversion added. The original is edited in
    place, so that documentation, metadata and unknown fields are kept.
    """

    op_type: str
    inputs: list[str]
    outputs: list[str]
    attributes: dict[str, AttributeProto] = field(default_factory=dict)
    original: NodeProto | None = None
    name: str = ""
    # Edits the node and its subgraphs after all other edits.
    wrap: Callable[[NodeProto], None] | None = None
    domain: str = ""

    @classmethod
    def of(cls, node: NodeProto) -> Node:
        """Return a node of the model as it is."""
        attributes = {attribute.name: attribute for attribute in node.attribute}
        domain = plain_domain(node.domain)
        return cls(node.op_type, list(node.input), list(node.output), attributes, node, node.name, None, domain)

    @classmethod
    def of_added(cls, node: NodeProto) -> Node:
        """Return a node that conversion wrote."""
        added = cls.of(node)
        added.original = None
        return added

    @property
    def is_edited(self) -> bool:
        """True when the node differs from its original, or has none."""
        node = self.original
        if node is None or self.wrap or plain_domain(node.domain) != self.domain:
            return True
        if node.op_type != self.op_type or len(node.attribute) != len(self.attributes):
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
        """Return `reads` without what graphs of the model read: these are scopes, whose nodes are counted there."""
        originals = () if self.original is None else self.original.attribute
        graphs = [attribute for attribute in self.attributes.values() if attribute.type in HOLDING_GRAPHS]
        written = [attribute for attribute in graphs if attribute not in originals]
        return [name for name in self.inputs if name] + _read_in_graphs(written)

    def copy(self) -> Node:
        """Return a copy of the node, for editing."""
        inputs, outputs = list(self.inputs), list(self.outputs)
        attributes = dict(self.attributes)
        return Node(self.op_type, inputs, outputs, attributes, self.original, self.name, self.wrap, self.domain)

    def message(self, graph: GraphProto | None = None) -> NodeProto:
        """Return the node as a message: the original where it is unchanged. graph: holds the new node, if given."""
        if self.original is not None and not self.is_edited:
            return self.original
        node = make_node(self.op_type, self.inputs, self.outputs, name=self.name, domain=self.domain, graph=graph)
        node.attribute.extend(self.attributes.values())
        return node


def changed_attributes(node: NodeProto, attributes: Mapping[str, AttributeProto]) -> list[str]:
    """Return the names of the attributes of a node that are others, or gone, among these attributes."""
    before = {attribute.name: attribute for attribute in node.attribute}
    gone = [name for name in before if name not in attributes]
    return gone + [
        name for name, value in attributes.items() if before.get(name) is not value and before.get(name) != value
    ]


def needed(nodes: Sequence[Node], wanted: Iterable[str]) -> list[Node]:
    """Return the nodes that the wanted values depend on, in order."""
    kept: list[Node] = []
    known = set(wanted)
    for node in reversed(nodes):
        if not known.isdisjoint(node.outputs):
            kept.append(node)
            known.update(node.reads)
    return kept[::-1]


def reads_of(node: NodeProto) -> list[str]:
    """Return all names that a node and the nodes in its subgraphs read."""
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
    op_type: str,
    inputs: Sequence[str],
    outputs: Sequence[str],
    name: str,
    attributes: Mapping[str, object],
    domain: str = "",
) -> Node:
    """Return a node that conversion adds; attributes of value None are left out."""
    made = {key: make_attribute(key, value) for key, value in attributes.items() if value is not None}
    return Node(op_type, list(inputs), list(outputs), made, None, name, None, domain)


# The types that inputs and outputs may have ---------------------------------------------------------------------------


def slots_of(node: Node, type_of: Callable[[str], ValueType], old: OperatorVersion) -> list[Slot]:
    """Return the inputs and outputs of a node with the types that they may have.

    The known type of one value also restricts the others with the same type variable.
    """
    slots = _slots(node.inputs, type_of, old.inputs, is_input=True)
    slots += _slots(node.outputs, type_of, old.outputs, _dtype_from_attributes(node), is_input=False)
    bound: dict[str, frozenset[str]] = {}
    for slot in slots:
        if slot.old.is_generic and slot.old.homogeneous:
            types = bound.get(slot.old.type_variable, slot.types)
            # Types that contradict each other do not restrict each other.
            bound[slot.old.type_variable] = types & slot.types or types | slot.types
    return [
        replace(slot, types=bound[slot.old.type_variable]) if slot.old.is_generic and slot.old.homogeneous else slot
        for slot in slots
    ]


def _slots(
    names: Sequence[str],
    type_of: Callable[[str], ValueType],
    formals: Sequence[Formal],
    first: str | None = None,
    *,
    is_input: bool,
) -> list[Slot]:
    slots = []
    for position, name in enumerate(names):
        formal = formal_at(formals, position)
        if name == "" or formal is None:
            continue
        known = type_of(name)
        dtype = known.dtype or (first if position == 0 else None)
        kind = None if known.kind == "unknown" else known.kind
        label = f"{'input' if is_input else 'output'} {name!r}"
        slots.append(Slot(label, formal, position, is_input, possible_types(formal, dtype, kind)))
    return slots


def _dtype_from_attributes(node: Node) -> str | None:
    """Return the element type of a node's first output if an attribute gives it, otherwise None."""
    for attribute in node.attributes.values():
        if attribute.ref_attr_name:
            continue
        if attribute.name in ("to", "dtype") and attribute.type == AttributeProto.INT:
            return DTYPE_NAMES.get(attribute.i)
        if attribute.name == "value" and attribute.type == AttributeProto.TENSOR:
            return DTYPE_NAMES.get(attribute.t.data_type)
        if attribute.name in CONSTANT_DTYPES and node.op_type == "Constant":
            return CONSTANT_DTYPES[attribute.name]
    return None
