"""Whether a node fits a version of its operator: its attributes, the inputs and outputs that it names, and their types.

A conversion asks about all types that a value may have, spelled as in schemas: "tensor(float)". Inference asks about
those that are known, by the names that findings have for them: "float32".
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

from splitgraph.model.onnx_proto import AttributeProto
from splitgraph.model.schemas.operator_version import Formal, OperatorVersion

# The element types that NumPy and schemas call otherwise.
_IN_SCHEMAS: Mapping[str, str] = {"float32": "float", "float64": "double"}
_IN_NUMPY: Mapping[str, str] = {spelled: name for name, spelled in _IN_SCHEMAS.items()}
_FORMS: dict[str | None, tuple[str, ...]] = {
    "tensor": ("tensor({})",),
    "sequence": ("seq(tensor({}))",),
    "optional": ("optional(tensor({}))", "optional(seq(tensor({})))"),
    None: ("tensor({})", "seq(tensor({}))", "optional(tensor({}))", "optional(seq(tensor({})))"),
}
_KINDS = (("tensor(", ""), ("seq(tensor(", "sequence of "), ("optional(tensor(", "optional of "))
_PREFIXES: dict[str | None, tuple[str, ...]] = {
    "tensor": ("tensor(",),
    "sequence": ("seq(",),
    "optional": ("optional(",),
    None: ("",),
}


def numpy_name(name: str) -> str:
    """Return the name that NumPy has for an element type of a schema: "float32" for "float"."""
    return _IN_NUMPY.get(name, name)


def element_of(spelled: str) -> str:
    """Return the element type of a type, by its NumPy name."""
    return numpy_name(spelled.rstrip(")").rpartition("(")[2])


def tensor_of(dtype: str) -> str:
    """Return the type of a tensor with an element type, given by its NumPy name."""
    return f"tensor({_IN_SCHEMAS.get(dtype, dtype)})"


def formal_at(formals: Sequence[Formal], position: int) -> Formal | None:
    """Return the formal input or output at a position, the last one where that is variadic; None if there is none."""
    if position < len(formals):
        return formals[position]
    return formals[-1] if formals and formals[-1].option == "variadic" else None


@dataclass(frozen=True, slots=True)
class Misfit:
    """What a node has and a version does not ("more"), what the version needs and the node does not have ("less"), or
    an attribute of another type ("other"). name: "" for an input or output that has none.
    """

    kind: Literal["attribute", "input", "output"]
    what: Literal["more", "less", "other"]
    name: str
    position: int = 0

    def __str__(self) -> str:
        if self.what == "less":
            return f"needs the {self.kind} {self.name}"
        return f"has no {self.kind} {self.name or self.position}{' of this type' if self.what == 'other' else ''}"


def misfits(
    version: OperatorVersion,
    attributes: Mapping[str, AttributeProto | None],
    inputs: Sequence[str],
    outputs: Sequence[str],
    own: OperatorVersion | None = None,
) -> Iterator[Misfit]:
    """Yield what of a node does not fit a version, whatever the types of its values are. attributes: None for one that
    is not known. inputs, outputs: names, "" for one that is left out. own: the version that names what is too many.
    """
    named = ((), ()) if own is None else (own.inputs, own.outputs)
    yield from _misfits_of("input", version.inputs, inputs, version.max_inputs, named[0])
    yield from _misfits_of("output", version.outputs, outputs, version.max_outputs, named[1])
    for name, given in attributes.items():
        formal = version.attributes.get(name)
        if formal is None or (given is not None and given.type != formal.type):
            yield Misfit("attribute", "more" if formal is None else "other", name)
    required = (name for name, formal in version.attributes.items() if formal.required)
    yield from (Misfit("attribute", "less", name) for name in required if name not in attributes)


def _misfits_of(
    kind: Literal["input", "output"], formals: Sequence[Formal], names: Sequence[str], most: int, own: Sequence[Formal]
) -> Iterator[Misfit]:
    for position in range(most, len(names)):
        yield Misfit(kind, "more", own[min(position, len(own) - 1)].name if own else "", position)
    for position, formal in enumerate(formals):
        if formal.option == "optional":
            continue
        is_variadic = formal.option == "variadic"
        given = names[position:] if is_variadic else names[position : position + 1]
        # Of several outputs, each may be left out.
        checked = () if is_variadic and kind == "output" else given
        lacking = [place for place, name in enumerate(checked, position) if name == ""]
        if len(given) < formal.min_count:
            lacking.append(position)
        yield from (Misfit(kind, "less", formal.name, place) for place in lacking)


def unnamed_outputs(version: OperatorVersion, outputs: Sequence[str]) -> list[int]:
    """Return the positions of the outputs without a name that a version does not let a node leave out."""
    pairs = enumerate(zip(outputs, version.outputs, strict=False))
    return [position for position, (name, formal) in pairs if name == "" and formal.option == "single"]


@dataclass(frozen=True, slots=True)
class Slot:
    """An input or output of a node: its label, its formal parameter, and the types that it may have."""

    label: str
    old: Formal
    position: int
    is_input: bool
    types: frozenset[str]

    def formal_in(self, version: OperatorVersion) -> Formal | None:
        """Return its formal parameter in another version of the operator; None if it has none there."""
        return formal_at(version.inputs if self.is_input else version.outputs, self.position)

    @property
    def group(self) -> str:
        """A text that is equal for slots of one type: the type variable, otherwise the label."""
        return self.old.type_variable if self.old.is_generic and self.old.homogeneous else self.label

    @property
    def type_text(self) -> str:
        """The type in words; "" where the element type is unknown."""
        if len(self.types) == 1:
            return _in_words(next(iter(self.types)))
        dtypes = {element_of(text) for text in self.types}
        if len(dtypes) != 1:
            return ""
        if all(text.startswith("optional(") for text in self.types):
            return f"an optional of {dtypes.pop()}"
        return f"{dtypes.pop()} in every form (tensor, sequence, optional)"

    @property
    def is_castable(self) -> bool:
        """True where the value may be a tensor; only tensors can be cast."""
        return any(text.startswith("tensor(") for text in self.types)


def possible_types(formal: Formal, dtype: str | None, kind: str | None) -> frozenset[str]:
    """Return the types of the formal parameter that the value may have; the known type of the value if there is
    none.
    """
    if dtype is None:
        prefixes = _PREFIXES.get(kind, (f"{kind}(",))
        return frozenset(text for text in formal.types if text.startswith(prefixes)) or formal.types
    name = _IN_SCHEMAS.get(dtype, dtype)
    forms = frozenset(form.format(name) for form in _FORMS.get(kind, (f"{kind}({{}})",)))
    return forms & formal.types or forms


# New element types. A value of unknown type hardly ever has one of them.
YOUNG_TYPES = (
    *("bfloat16", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz", "float8e8m0"),
    *("float4e2m1", "float6e2m3", "float6e3m2", "int4", "uint4", "int2", "uint2"),
)


def fits_but_for_young_types(slot: Slot, new: OperatorVersion) -> str:
    """Return the new types that another version does not take, in words, if these are the only obstacle for a value of
    unknown type; otherwise "".
    """
    formal = slot.formal_in(new)
    if formal is None or slot.type_text:
        return ""
    # One or two possible types: the type is known, or its declarations contradict each other.
    if len({element_of(text) for text in slot.types}) < 3:
        return ""
    refused = {element_of(text) for text in slot.types - formal.types}
    return " or ".join(sorted(refused)) if refused and refused <= frozenset(YOUNG_TYPES) else ""


def mistyped(slots: Sequence[Slot], new: OperatorVersion, *, skip_renamed: bool) -> list[Slot]:
    """Return the slots with a type that another version of the operator may not take. Slots that it lacks are not
    included.
    """
    unfit = []
    for slot in slots:
        formal = slot.formal_in(new)
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
        formal = slot.formal_in(new)
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


def _share_variable(left: Formal, right: Formal) -> bool:
    if not (left.homogeneous and right.homogeneous):
        return False
    return left.type_variable == right.type_variable


def _in_words(text: str) -> str:
    if text.startswith("tensor("):
        return element_of(text)
    return f"{'an optional' if text.startswith('optional(') else 'a sequence'} of {element_of(text)}"


# Types that are known -------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def wrong_type(
    version: OperatorVersion, given: tuple[str | None, ...], kind: Literal["input", "output"] = "input"
) -> str | None:
    """Return the text about the first input or output whose type a version does not allow, or about an input whose type
    differs from that of one that it must match; None if all fit. given: the types, as far as they are known.
    """
    formals = version.inputs if kind == "input" else version.outputs
    bound: dict[str, tuple[int, str]] = {}
    for index, text in enumerate(given):
        formal = formals[min(index, len(formals) - 1)] if formals else None
        allowed = _allowed(formal.types) if formal is not None else None
        if text is None or formal is None or not allowed:
            continue
        if text not in allowed:
            return f"{kind} {index} is {text}; it must be {_choice(allowed)}"
        if kind == "output" or not formal.is_generic or not formal.homogeneous:
            continue
        earlier = bound.setdefault(formal.type_variable, (index, text))
        if earlier[1] != text:
            return f"input {index} is {text} and input {earlier[0]} is {earlier[1]}; both must have the same type"
    return None


@lru_cache(maxsize=1024)
def _allowed(types: frozenset[str]) -> frozenset[str]:
    return frozenset(text for spelled in types if (text := _plain(spelled)) is not None)


def _plain(spelled: str) -> str | None:
    """Return our name of a type in a schema; None for a type that this check does not follow."""
    for prefix, kind in _KINDS:
        if spelled.startswith(prefix):
            return kind + element_of(spelled)
    return None


def only_dtype(types: frozenset[str]) -> str | None:
    """Return the element type of a tensor that can have no other one; else None. types: those that a schema allows."""
    text = _plain(next(iter(types))) if len(types) == 1 else None
    return None if text is None or " " in text else text


def element_types(types: frozenset[str]) -> frozenset[str]:
    """Return the element types of the tensors among the types that a schema allows."""
    return frozenset(text for text in _allowed(types) if " " not in text)


def _choice(allowed: frozenset[str]) -> str:
    names = sorted(allowed)
    return names[0] if len(names) == 1 else f"one of {', '.join(names)}"
