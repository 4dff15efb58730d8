"""The traits of a node of any operator: what may decide whether a runtime reads it.

Element types by type variable (`T=int64`), attributes that are not at their default (`mode=cubic`), what may be left
out (`with bias`, `without axes`), inputs that are computed at run time (`shape computed`, or `shape from shapes` if the
sizes of the inputs are enough to compute them), ranks, and dynamic dimensions: the first one, the second one, or a
later one (`dim 0 open`, `dim 1 open`, `dim 2 open`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

from splitgraph.model.attributes import HOLDING_GRAPHS
from splitgraph.model.onnx_proto import AttributeProto, NodeProto
from splitgraph.model.schemas import Formal, OperatorVersion
from splitgraph.model.schemas.fit import formal_at
from splitgraph.model.value_type import UNKNOWN, ValueType

# Traits that describe the shape of the data. A runtime that reads an operator seldom depends on them, so that a node is
# taken for measured without them.
_SHAPES = ("rank ", "broadcast")
_WITHOUT = "without "
_LISTS = (AttributeProto.INTS, AttributeProto.FLOATS)
# The types of an input that can only be a list of sizes.
_SIZES = {"tensor(int64)"}
# Lists that say the same as no list, if all their numbers are this one.
_NEUTRAL = {"pads": 0, "strides": 1, "dilations": 1, "output_padding": 0}


def needs_a_case(trait: str) -> bool:
    """Return True for a trait with which a runtime must have read a case, or it is not known to read a node with it."""
    return not trait.startswith(_SHAPES)


def is_default(trait: str) -> bool:
    """Return True for a trait of a node that leaves something out: if no case does so, it is taken for measured."""
    return trait.startswith(_WITHOUT)


def is_structure(trait: str) -> bool:
    """Return True for a trait of how a node stands in its model: open dimensions, ranks, inputs that are computed."""
    return trait.endswith((" open", " computed", " from shapes")) or not needs_a_case(trait)


# How people say the dynamic dimensions among the traits.
_DYNAMIC = {
    "dim 0 open": "a dynamic first dimension",
    "dim 1 open": "a dynamic second dimension",
    "dim 2 open": "a dynamic dimension behind the second one",
}


def traits_text(traits: Iterable[str]) -> str:
    """Return traits in words: "K computed at run time and a dynamic first dimension"."""
    return " and ".join(map(_trait_text, sorted(traits)))


def _trait_text(trait: str) -> str:
    if trait in _DYNAMIC:
        return _DYNAMIC[trait]
    if trait.endswith(" computed"):
        return f"{trait} at run time"
    if trait.endswith(" from shapes"):
        return f"{trait.removesuffix(' from shapes')} computed from dynamic sizes"
    return f"data of {trait}" if trait.startswith("rank ") else trait


def operator_traits(
    node: NodeProto,
    version: OperatorVersion | None,
    type_of: Callable[[str], ValueType],
    is_known: Callable[[str], bool],
    is_of_shapes: Callable[[str], bool] = lambda name: False,
) -> frozenset[str]:
    """Return the traits of a node. version: None for an operator without a schema, of which less can be said.

    type_of: the type of a value, UNKNOWN where it is not known. is_known: whether the elements of a value are known
    before the run. is_of_shapes: whether those of another one follow from the sizes of the inputs.
    """
    traits = set(_of_attributes(node, version))
    inputs = [type_of(name) if name else UNKNOWN for name in node.input]
    if version is None:
        traits.update(f"T={kind.dtype}" for kind in inputs[:1] if kind.dtype is not None)
    else:
        outputs = [type_of(name) if name else UNKNOWN for name in node.output]
        traits |= _of_types(version.inputs, inputs) | _of_types(version.outputs, outputs)
        left_out, fewer = _given(version.inputs, node.input, inputs), _given(version.outputs, node.output, outputs)
        # To give less than all outputs is no more than to give them.
        traits |= left_out | {trait for trait in fewer if not trait.startswith(_WITHOUT)}
        for position, name in enumerate(node.input):
            formal = formal_at(version.inputs, position)
            if not name or formal is None or formal.option == "variadic":
                continue
            if not position and formal.types != _SIZES:
                # The data.
                continue
            if not is_known(name):
                traits.add(f"{formal.name} {'from shapes' if is_of_shapes(name) else 'computed'}")
            if 0 in (inputs[position].shape or ()):
                # An empty value often stands for one that is not there.
                traits.add(f"{formal.name} empty")
    if _is_broadcast(version, node, inputs, is_known):
        traits.add("broadcast")
    return frozenset(traits | set(_of_shapes(node, inputs, is_known)))


def _of_attributes(node: NodeProto, version: OperatorVersion | None) -> Iterator[str]:
    for attribute in node.attribute:
        formal = None if version is None else version.attributes.get(attribute.name)
        if formal is None or formal.default is None or not _equal(attribute, formal.default):
            yield from _of_attribute(attribute)
    given = {attribute.name for attribute in node.attribute}
    for name, formal in ({} if version is None else version.attributes).items():
        # What is left out may mean a list that depends on the data: all axes, strides of 1.
        if name not in given and formal.default is None and not formal.required and formal.type in _LISTS:
            yield f"{_WITHOUT}{name}"


def _equal(attribute: AttributeProto, default: AttributeProto) -> bool:
    return attribute.type == default.type and attribute.SerializeToString() == default.SerializeToString()


def _of_attribute(attribute: AttributeProto) -> Iterator[str]:
    name, kind = attribute.name, attribute.type
    if kind == AttributeProto.STRING:
        yield f"{name}={attribute.s.decode('utf-8', 'replace')}"
    elif kind == AttributeProto.INT:
        yield f"{name}={attribute.i}" if attribute.i in (0, 1) else f"{name}{'<0' if attribute.i < 0 else '>1'}"
    elif kind == AttributeProto.INTS:
        if set(attribute.ints) - {_NEUTRAL.get(name)}:
            yield name
        if len(set(attribute.ints)) > 1:
            yield f"{name} unequal"
        if min(attribute.ints, default=0) < 0:
            yield f"{name}<0"
    elif kind not in HOLDING_GRAPHS:
        yield name


def _of_types(formals: Sequence[Formal], types: Iterable[ValueType]) -> set[str]:
    traits = set()
    for position, known in enumerate(types):
        formal = formal_at(formals, position)
        if position and 0 in (known.shape or ()):
            # No element has the type.
            continue
        if formal is not None and formal.is_generic and known.dtype is not None:
            kind = "" if known.kind == "tensor" else f"{known.kind} of "
            traits.add(f"{formal.type_variable}={kind}{known.dtype}")
    return traits


def _given(formals: Sequence[Formal], names: Sequence[str], types: Sequence[ValueType]) -> set[str]:
    """Return a trait for each optional value: whether it is there, and not empty."""
    traits = set()
    for position, formal in enumerate(formals):
        if formal.option == "optional":
            is_there = position < len(names) and names[position] and 0 not in (types[position].shape or ())
            traits.add(f"with {formal.name}" if is_there else f"{_WITHOUT}{formal.name}")
    return traits


def _is_broadcast(
    version: OperatorVersion | None, node: NodeProto, inputs: Sequence[ValueType], is_known: Callable[[str], bool]
) -> bool:
    """Return True where inputs of one type variable have several shapes, numbers aside. Without a schema, all inputs
    that are computed at run time count.
    """
    shapes = [None if is_known(name) else known.shape for name, known in zip(node.input, inputs, strict=True)]
    if version is not None:
        formals = [formal_at(version.inputs, position) for position in range(len(inputs))]
        variables = [None if formal is None else formal.type_variable for formal in formals]
        pairs = zip(variables, inputs, strict=True)
        shapes = [known.shape for variable, known in pairs if variable is not None and variable == variables[0]]
    return len({shape for shape in shapes if shape}) > 1


def _of_shapes(node: NodeProto, inputs: Sequence[ValueType], is_known: Callable[[str], bool]) -> Iterator[str]:
    shapes = [known.shape for name, known in zip(node.input, inputs, strict=True) if name and not is_known(name)]
    if not shapes:
        return
    if shapes[0] is not None:
        yield f"rank {len(shapes[0])}" if shapes[0] else "scalar"
    if any(shape is None for shape in shapes):
        yield "rank unknown"
    known_shapes = [shape for shape in shapes if shape is not None]
    for place, part in enumerate((slice(0, 1), slice(1, 2), slice(2, None))):
        if any(not isinstance(dim, int) for shape in known_shapes for dim in shape[part]):
            yield f"dim {place} open"
    if any(0 in shape for shape in known_shapes):
        yield "empty"
