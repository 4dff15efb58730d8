"""A node between two opsets, and the element types that its inputs and outputs may have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from splitgraph.model.attributes import CONSTANT_DTYPES, HOLDING_GRAPHS, make_attribute, make_node
from splitgraph.model.onnx_proto import AttributeProto, GraphProto, NodeProto, TensorProto
from splitgraph.model.schemas import Formal, OperatorVersion
from splitgraph.model.value_type import ValueType


@dataclass(slots=True)
class Node:
    """A node of ai.onnx at some opset between source and target.

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

    @classmethod
    def of(cls, node: NodeProto) -> Node:
        """Return a node of the model as it is."""
        attributes = {attribute.name: attribute for attribute in node.attribute}
        return cls(node.op_type, list(node.input), list(node.output), attributes, node, node.name)

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
        """Return `reads` without what graphs of the model read: these are scopes, whose nodes are counted there."""
        originals = () if self.original is None else self.original.attribute
        graphs = [attribute for attribute in self.attributes.values() if attribute.type in HOLDING_GRAPHS]
        written = [attribute for attribute in graphs if attribute not in originals]
        return [name for name in self.inputs if name] + _read_in_graphs(written)

    def copy(self) -> Node:
        """Return a copy of the node, for editing."""
        inputs, outputs = list(self.inputs), list(self.outputs)
        return Node(self.op_type, inputs, outputs, dict(self.attributes), self.original, self.name, self.wrap)

    def message(self, graph: GraphProto | None = None) -> NodeProto:
        """Return the node as a message: the original where it is unchanged. graph: holds the new node, if given."""
        if self.original is not None and not self.is_edited:
            return self.original
        node = make_node(self.op_type, self.inputs, self.outputs, name=self.name, graph=graph)
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
    op_type: str, inputs: Sequence[str], outputs: Sequence[str], name: str, attributes: Mapping[str, object]
) -> Node:
    """Return a node that conversion adds; attributes of value None are left out."""
    made = {key: make_attribute(key, value) for key, value in attributes.items() if value is not None}
    return Node(op_type, list(inputs), list(outputs), made, None, name)


# The types that inputs and outputs may have ---------------------------------------------------------------------------

# The two names of element types that differ between NumPy and ONNX.
_ONNX_NAMES = {"float32": "float", "float64": "double"}
_NUMPY_NAMES = {onnx_name: name for name, onnx_name in _ONNX_NAMES.items()}
_FORMS: dict[str | None, tuple[str, ...]] = {
    "tensor": ("tensor({})",),
    "sequence": ("seq(tensor({}))",),
    "optional": ("optional(tensor({}))", "optional(seq(tensor({})))"),
    None: ("tensor({})", "seq(tensor({}))", "optional(tensor({}))", "optional(seq(tensor({})))"),
}
_PREFIXES: dict[str | None, tuple[str, ...]] = {
    "tensor": ("tensor(",),
    "sequence": ("seq(",),
    "optional": ("optional(",),
    None: ("",),
}


@dataclass(frozen=True, slots=True)
class Slot:
    """An input or output of a node: its label, its formal parameter, and the types that it may have."""

    label: str
    old: Formal
    position: int
    is_input: bool
    types: frozenset[str]

    @property
    def group(self) -> str:
        """A text that is equal for slots of one type: the type variable, otherwise the label."""
        return self.old.type_variable if self.old.is_generic and self.old.homogeneous else self.label

    @property
    def type_text(self) -> str:
        """The type in words; "" where the element type is unknown."""
        if len(self.types) == 1:
            return _in_words(next(iter(self.types)))
        dtypes = {_element(text) for text in self.types}
        if len(dtypes) != 1:
            return ""
        if all(text.startswith("optional(") for text in self.types):
            return f"an optional of {dtypes.pop()}"
        return f"{dtypes.pop()} in every form (tensor, sequence, optional)"

    @property
    def is_castable(self) -> bool:
        """True where the value may be a tensor; only tensors can be cast."""
        return any(text.startswith("tensor(") for text in self.types)


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


def possible_types(formal: Formal, dtype: str | None, kind: str | None) -> frozenset[str]:
    """Return the types of the formal parameter that the value may have; the known type of the value if there is
    none.
    """
    if dtype is None:
        prefixes = _PREFIXES.get(kind, (f"{kind}(",))
        return frozenset(text for text in formal.types if text.startswith(prefixes)) or formal.types
    name = _ONNX_NAMES.get(dtype, dtype)
    forms = frozenset(form.format(name) for form in _FORMS.get(kind, (f"{kind}({{}})",)))
    return forms & formal.types or forms


def _dtype_from_attributes(node: Node) -> str | None:
    """Return the element type of a node's first output if an attribute gives it, otherwise None."""
    for attribute in node.attributes.values():
        if attribute.ref_attr_name:
            continue
        if attribute.name in ("to", "dtype") and attribute.type == AttributeProto.INT:
            return _numpy_name(attribute.i)
        if attribute.name == "value" and attribute.type == AttributeProto.TENSOR:
            return _numpy_name(attribute.t.data_type)
        if attribute.name in CONSTANT_DTYPES and node.op_type == "Constant":
            return CONSTANT_DTYPES[attribute.name]
    return None


def _numpy_name(number: int) -> str | None:
    types = TensorProto.DataType
    if number == TensorProto.UNDEFINED or number not in types.values():
        return None
    name = types.Name(number).lower()
    return _NUMPY_NAMES.get(name, name)


# New element types. A value of unknown type hardly ever has one of them.
YOUNG_TYPES = (
    *("bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0"),
    *("float4e2m1", "float6e2m3", "float6e3m2", "int4", "uint4", "int2", "uint2"),
)


def fits_but_for_young_types(slot: Slot, new: OperatorVersion) -> str:
    """Return the new types that another version does not take, in words, if these are the only obstacle for a value of
    unknown type; otherwise "".
    """
    formal = formal_at(new.inputs if slot.is_input else new.outputs, slot.position)
    if formal is None or slot.type_text:
        return ""
    # One or two possible types: the type is known, or its declarations contradict each other.
    if len({_element(text) for text in slot.types}) < 3:
        return ""
    refused = {_element(text) for text in slot.types - formal.types}
    return " or ".join(sorted(refused)) if refused and refused <= frozenset(YOUNG_TYPES) else ""


def misfits(slots: Sequence[Slot], new: OperatorVersion, *, skip_renamed: bool) -> list[Slot]:
    """Return the slots with a type that another version of the operator may not take. Slots that it lacks are not
    included.
    """
    unfit = []
    for slot in slots:
        formal = formal_at(new.inputs if slot.is_input else new.outputs, slot.position)
        if formal is None or slot.types <= formal.types or (skip_renamed and formal.name != slot.old.name):
            continue
        unfit.append(slot)
    return unfit


def unequal_pair(slots: Sequence[Slot], new: OperatorVersion) -> tuple[Slot, Slot] | None:
    """Return two slots that need one type in another version of the operator, but may have different types; None
    without.
    """
    firsts: dict[str, Slot] = {}
    for slot in slots:
        formal = formal_at(new.inputs if slot.is_input else new.outputs, slot.position)
        if formal is None or not formal.is_generic or not formal.homogeneous:
            continue
        first = firsts.setdefault(formal.type_variable, slot)
        if first is slot or _share_variable(first.old, slot.old):
            continue
        if len(first.types | slot.types) != 1:
            return first, slot
    return None


def types_always_fit(old: OperatorVersion, new: OperatorVersion) -> bool:
    """Return True when every node with valid types for one version has valid types for the other."""
    pairs = list(zip(old.inputs, new.inputs, strict=False)) + list(zip(old.outputs, new.outputs, strict=False))
    partners: dict[str, Formal] = {}
    for before, after in pairs:
        if not before.types <= after.types:
            return False
        if not (after.is_generic and after.homogeneous):
            continue
        if after.option == "variadic" and not before.homogeneous:
            return False
        first = partners.setdefault(after.type_variable, before)
        if first is not before and not _share_variable(first, before):
            return False
    return True


def formal_at(formals: Sequence[Formal], position: int) -> Formal | None:
    """Return the formal parameter at a position, None where there is none."""
    if position < len(formals):
        return formals[position]
    return formals[-1] if formals and formals[-1].option == "variadic" else None


def _share_variable(left: Formal, right: Formal) -> bool:
    if not (left.homogeneous and right.homogeneous):
        return False
    return left.type_variable == right.type_variable


def _element(text: str) -> str:
    dtype = text.rstrip(")").rpartition("(")[2]
    return _NUMPY_NAMES.get(dtype, dtype)


def _in_words(text: str) -> str:
    if text.startswith("tensor("):
        return _element(text)
    return f"{'an optional' if text.startswith('optional(') else 'a sequence'} of {_element(text)}"
