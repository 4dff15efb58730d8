"""The part of the guard that compares element types with the schema beyond a boundary."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from splitgraph.attribute_values import CONSTANT_DTYPES
from splitgraph.conversion.nodes.known_values import KnownValues
from splitgraph.conversion.nodes.node import Node
from splitgraph.onnx_proto import AttributeProto, TensorProto
from splitgraph.schemas import Formal, OperatorVersion

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
        """Equal for slots with the same type: the type variable, otherwise the label."""
        return self.old.type_variable if self.old.is_generic and self.old.homogeneous else self.label

    @property
    def found(self) -> str:
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


def slots_of(node: Node, values: KnownValues, old: OperatorVersion) -> list[Slot]:
    """The inputs and outputs of a node with the types that they may have.

    The known type of one value also restricts the others with the same type variable.
    """
    slots = _slots(node.inputs, values, old.inputs, is_input=True)
    slots += _slots(node.outputs, values, old.outputs, _dtype_from_attributes(node), is_input=False)
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


# New element types, which a value of unknown type hardly ever has.
_YOUNG_TYPES = (
    *("bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0"),
    *("float4e2m1", "float6e2m3", "float6e3m2", "int4", "uint4", "int2", "uint2"),
)


def fits_but_for_young_types(slot: Slot, new: OperatorVersion) -> str:
    """The new types that another version does not take, in words, if these are the only obstacle for a value of
    unknown type; otherwise "".
    """
    formal = formal_at(new.inputs if slot.is_input else new.outputs, slot.position)
    if formal is None or slot.found:
        return ""
    # One or two possible types: the type is known, or its declarations contradict each other.
    if len({_element(text) for text in slot.types}) < 3:
        return ""
    refused = {_element(text) for text in slot.types - formal.types}
    return " or ".join(sorted(refused)) if refused and refused <= frozenset(_YOUNG_TYPES) else ""


def misfits(slots: Sequence[Slot], new: OperatorVersion, *, skip_renamed: bool) -> list[Slot]:
    """The slots with a type that another version of the operator may not take. Slots that it lacks are not included."""
    found = []
    for slot in slots:
        formal = formal_at(new.inputs if slot.is_input else new.outputs, slot.position)
        if formal is None or slot.types <= formal.types or (skip_renamed and formal.name != slot.old.name):
            continue
        found.append(slot)
    return found


def unequal_pair(slots: Sequence[Slot], new: OperatorVersion) -> tuple[Slot, Slot] | None:
    """Two slots that need one type in another version of the operator, but may have different types; None without."""
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
    """True when every node with valid types for one version has valid types for the other."""
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
    """The formal parameter at a position, None where there is none."""
    if position < len(formals):
        return formals[position]
    return formals[-1] if formals and formals[-1].option == "variadic" else None


def _share_variable(one: Formal, other: Formal) -> bool:
    if not (one.homogeneous and other.homogeneous):
        return False
    return one.type_variable == other.type_variable


def _slots(
    names: Sequence[str], values: KnownValues, formals: Sequence[Formal], first: str | None = None, *, is_input: bool
) -> list[Slot]:
    slots = []
    for position, name in enumerate(names):
        formal = formal_at(formals, position)
        if name == "" or formal is None:
            continue
        known = values.type_of(name)
        dtype = known.dtype or (first if position == 0 else None)
        kind = None if known.kind == "unknown" else known.kind
        label = f"{'input' if is_input else 'output'} {name!r}"
        slots.append(Slot(label, formal, position, is_input, possible_types(formal, dtype, kind)))
    return slots


def possible_types(formal: Formal, dtype: str | None, kind: str | None) -> frozenset[str]:
    """The types of the formal parameter that the value may have; the known type of the value if there is none."""
    if dtype is None:
        prefixes = _PREFIXES.get(kind, (f"{kind}(",))
        return frozenset(text for text in formal.types if text.startswith(prefixes)) or formal.types
    name = _ONNX_NAMES.get(dtype, dtype)
    forms = frozenset(form.format(name) for form in _FORMS.get(kind, (f"{kind}({{}})",)))
    return forms & formal.types or forms


def _dtype_from_attributes(node: Node) -> str | None:
    """The element type of a node's first output if an attribute gives it, otherwise None."""
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


def _element(text: str) -> str:
    dtype = text.rstrip(")").rpartition("(")[2]
    return _NUMPY_NAMES.get(dtype, dtype)


def _in_words(text: str) -> str:
    if text.startswith("tensor("):
        return _element(text)
    return f"{'an optional' if text.startswith('optional(') else 'a sequence'} of {_element(text)}"
