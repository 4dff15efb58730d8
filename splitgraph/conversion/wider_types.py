"""Computing a node in a wider element type, because its operator does not take the type of its inputs. int32 stands in
for int64 where all elements are known to fit.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from splitgraph.conversion.node import slots_of
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.model.deferred import np
from splitgraph.model.schemas import OperatorVersion, kinds
from splitgraph.model.schemas.fit import Slot, tensor_of
from splitgraph.model.value_type import DTYPE_NUMBERS

# For each element type, the wider types in which the result is exact after a cast back; the first allowed one is used.
_Table = Mapping[str, str]

# Operators that only move elements need a type that holds every value of the narrower one. Between integers of one
# width, Cast keeps the bits. saturate=0 gives the infinities of float8 back as they were.
_MOVED: _Table = {
    "bool": "uint8 int32 int64 float32",
    "int8": "int32 int64 float32",
    "uint8": "int32 uint32 int64 float32",
    "int16": "int32 int64 float32",
    "uint16": "int32 uint32 int64 float32",
    "int32": "int64 float64",
    "uint32": "int32 uint64 int64 float64",
    "int64": "uint64",
    "uint64": "int64",
    "float16": "float32",
    "bfloat16": "float32",
    "float32": "float64",
    "float8e4m3fn": "float16 float32",
    "float8e4m3fnuz": "float16 float32",
    "float8e5m2": "float16 float32",
    "float8e5m2fnuz": "float16 float32",
    "int4": "int8",
    "uint4": "uint8",
}
# Operators that compare elements need a cast that keeps their order.
_ORDERED: _Table = {
    "bool": "uint8 int32 float32",
    "int8": "int32 float32 int64 float64",
    "uint8": "int32 float32 int64 float64",
    "int16": "int32 float32 int64 float64",
    "uint16": "int32 float32 int64 float64",
    "int32": "int64 float64",
    "uint32": "uint64 int64 float64",
    "float16": "float32",
    "bfloat16": "float32",
    "float8e4m3fn": "float16 float32",
    "float8e4m3fnuz": "float16 float32",
    "float8e5m2": "float16 float32",
    "float8e5m2fnuz": "float16 float32",
}
# No engine clips float64 at opset 11. For 32-bit integers the adapter of Clip selects between the bounds.
_CLIPPED: _Table = {dtype: wide for dtype, wide in _ORDERED.items() if dtype not in ("int32", "uint32")}
# The low bits of sums, differences and products depend on low bits only, which Cast to a narrower integer keeps.
_MODULAR: _Table = {
    "int8": "int32 int64",
    "uint8": "uint32 int32 uint64 int64",
    "int16": "int32 int64",
    "uint16": "uint32 int32 uint64 int64",
    "int32": "int64",
    "uint32": "uint64 int64",
    "uint64": "int64",
    "float16": "float32",
    "bfloat16": "float32",
}
# Integer quotients and remainders are exact in every type that holds both operands.
_DIVIDED: _Table = {
    "int8": "int32 int64",
    "uint8": "uint32 int32 uint64 int64",
    "int16": "int32 int64",
    "uint16": "uint32 int32 uint64 int64",
    "int32": "int64",
    "uint32": "uint64 int64",
    "float16": "float32",
    "bfloat16": "float32",
}
# float32 has more than twice the precision of the 16-bit types and two bits: an elementwise result, rounded twice, is
# the one rounded once. Longer computations round more coarsely in the narrow type itself.
_REAL: _Table = {"float16": "float32", "bfloat16": "float32"}

_TABLE_OF: Mapping[str, _Table] = {
    **dict.fromkeys(kinds.MOVED, _MOVED),
    **dict.fromkeys(kinds.ORDERED | kinds.COMPARED, _ORDERED),
    **dict.fromkeys(kinds.BASIC | kinds.ADDED | kinds.SIGNED, _MODULAR),
    **dict.fromkeys(kinds.DIVIDED, _DIVIDED),
    **dict.fromkeys(kinds.ROUNDED | kinds.WHOLE, _REAL),
    "Clip": _CLIPPED,
    # What is equal is so in every type that holds all values.
    "Equal": _MOVED,
}
# Reductions of an empty set give a bound of the narrow type: the operator that applies it, and the bound.
_EMPTY: Mapping[str, tuple[str, str]] = {"ReduceMax": ("Max", "min"), "ReduceMin": ("Min", "max")}
# Where all elements are known and fit, operators that give no others may have the narrower type.
_NARROWED = ("int64", "int32")


def widen(node: NodeAtBoundary, fits: OperatorVersion, among: Collection[str] | None = None) -> None:
    """Cast inputs to an element type that another version of the operator takes, and the results back.

    among: the only element types that the node may have, by their NumPy names, wherever its operator has a choice.
    Raises Inexact where no such type is exact. The nodes are written for the opset that the node comes from.
    """
    node.dialect = node.dialect or node.old.since_version
    groups: dict[str, list[Slot]] = {}
    for slot in slots_of(node.came, node.values.type_of, node.old):
        groups.setdefault(slot.group, []).append(slot)
    widened = False
    for slots in groups.values():
        formals = [slot.formal_in(fits) for slot in slots]
        taken = [_restricted(formal.types, among) for formal in formals if formal is not None]
        # A cast does not help where the other version lacks the input.
        if not taken or all(slot.types <= types for slot in slots for types in taken):
            continue
        allowed = frozenset.intersection(*taken)
        _widen_group(node, slots, allowed)
        widened = True
    if not widened:
        raise Inexact("its element types are allowed")


def _restricted(types: frozenset[str], among: Collection[str] | None) -> frozenset[str]:
    return types if among is None or len(types) == 1 else types & set(map(tensor_of, among))


def _widen_group(node: NodeAtBoundary, slots: Sequence[Slot], allowed: frozenset[str]) -> None:
    narrow = slots[0].type_text
    wide = _wider(node, narrow, allowed, slots)
    node.reasons["type"] = f"{node.op_type} does not take {narrow} {node.side}"
    cast: dict[str, str] = {}
    for slot in slots:
        if slot.is_input:
            name = node.inputs[slot.position]
            if name not in cast:
                elements = node.values.elements(name) if (narrow, wide) == _NARROWED else None
                if elements is not None:
                    cast[name] = node.constant(elements, f"as_{wide}", wide)
                else:
                    cast[name] = node.write("Cast", [name], f"as_{wide}", to=DTYPE_NUMBERS[wide])
            node.inputs[slot.position] = cast[name]
            continue
        name = node.redirect(slot.position, f"as_{wide}")
        result = node.outputs[slot.position]
        if node.op_type in _EMPTY and narrow not in _REAL:
            result = _bounded(node, result, narrow, wide)
        saturate = 0 if narrow.startswith("float8") else None
        node.write_after("Cast", [result], name, to=DTYPE_NUMBERS[narrow], saturate=saturate)


def _wider(node: NodeAtBoundary, narrow: str, allowed: frozenset[str], slots: Sequence[Slot]) -> str:
    """Return the first exact type that is allowed. slots: those of the type."""
    op_type = node.op_type
    table = _TABLE_OF.get(op_type)
    if op_type in kinds.MOVED_BY_DEFAULT:
        name, default = kinds.MOVED_BY_DEFAULT[op_type]
        table = _MOVED if node.value(name, default) == default else _REAL
    for wide in (table or {}).get(narrow, "").split():
        if tensor_of(wide) in allowed:
            return wide
    is_kept = table in (_MOVED, _ORDERED) and op_type not in _EMPTY
    if is_kept and narrow == _NARROWED[0] and tensor_of(_NARROWED[1]) in allowed:
        given = [node.values.elements(node.inputs[slot.position]) for slot in slots if slot.is_input]
        if all(elements is not None and np.array_equal(elements, elements.astype(_NARROWED[1])) for elements in given):
            return _NARROWED[1]
    raise Inexact(f"it takes no element type that holds {narrow or 'an unknown type'} exactly")


def _bounded(node: NodeAtBoundary, result: str, narrow: str, wide: str) -> str:
    """Return the result; over an empty set it is that of the narrow type."""
    op_type, bound = _EMPTY[node.op_type]
    limits = {"min": 0, "max": 1} if narrow == "bool" else {"min": np.iinfo(narrow).min, "max": np.iinfo(narrow).max}
    name = node.new_name("bounded")
    node.write_after(op_type, [result, node.constant(limits[bound], "bound", wide)], name)
    return name
