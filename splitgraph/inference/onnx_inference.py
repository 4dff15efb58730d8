"""onnx's own inference for a single node, for operators without a rule of splitgraph.

Some of onnx's inference functions read a symbolic dimension as 0. They then give a wrong number or refuse a valid node.
So a result with symbols is believed only if numbers in place of the symbols give the same result.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx
from onnx import defs, shape_inference

from splitgraph.dim import Dim, DimLike, evaluate, symbols_of
from splitgraph.inference.context import NodeContext
from splitgraph.inference.operators import Operator
from splitgraph.model.attributes import HOLDING_GRAPHS
from splitgraph.model.onnx_proto import TensorProto, TypeProto
from splitgraph.model.value_type import UNKNOWN, Contents, ValueType
from splitgraph.model.values import int64_tensor, type_proto, value_type

Given = Mapping[str, ValueType]
Sizes = Mapping[str, int]

_INVALID = (shape_inference.InferenceError, onnx.checker.ValidationError)
# Two choices of sizes. No two sizes are equal, and all are divisible by the usual divisors.
_UNITS = (840, 1320)


def infer_with_onnx(ctx: NodeContext, operator: Operator) -> Sequence[ValueType]:
    """Return the output types that onnx infers for a node; UNKNOWN if it infers nothing. Report an invalid node."""
    given = _given(ctx)
    if given is None or any(attribute.type in HOLDING_GRAPHS for attribute in ctx.node.attribute):
        return ()
    fixed = not any(_is_open(known) or _symbols(known) for known in given.values())
    try:
        outputs = _run(ctx, operator, given)
    except _INVALID as error:
        return _report(ctx, error) if fixed else _without_shapes(ctx, operator, given)
    if fixed:
        return outputs
    if any(_is_open(known) for known in given.values()):
        return [_shapeless(known) for known in outputs]
    names = sorted(set().union(*(_symbols(known) for known in given.values())))
    probes = [{name: unit * (index + 2) for index, name in enumerate(names)} for unit in _UNITS]
    return _confirmed(ctx, operator, given, outputs, probes)


def _given(ctx: NodeContext) -> dict[str, ValueType] | None:
    """Return the types of the inputs; None if one is unknown. onnx's functions read the type of every input that is
    present, without checking that there is one.
    """
    given: dict[str, ValueType] = {}
    for name, known in zip(ctx.node.input, ctx.inputs, strict=True):
        if name and (known is None or type_proto(known) is None):
            return None
        if name and known is not None:
            given[name] = known
    return given


def _run(ctx: NodeContext, operator: Operator, given: Given) -> list[ValueType]:
    """Return what onnx infers from these types; nothing if the installed onnx does not know the operator. Raise one of
    _INVALID for an invalid node.
    """
    try:
        schema = defs.get_schema(ctx.node.op_type, operator.since_version, operator.domain)
    except defs.SchemaError:
        return []
    if schema.since_version != operator.since_version:
        # The installed onnx knows an older version only, which may mean something else.
        return []
    types: dict[str, TypeProto] = {}
    stand_ins: dict[str, DimLike] = {}
    for name, known in given.items():
        # To onnx, a symbolic dimension is a name that it passes on. `stand_ins` has its meaning.
        stand_ins.update({str(dim): dim for dim in known.shape or () if isinstance(dim, Dim)})
        proto = type_proto(known)
        if proto is not None:
            types[name] = proto
    data = {
        name: made for index, name in enumerate(ctx.node.input) if name and (made := _constant(ctx, index)) is not None
    }
    inferred = shape_inference.infer_node_outputs(
        schema,
        ctx.node,
        types,
        data,
        {},
        [onnx.helper.make_opsetid(ctx.node.domain, ctx.opset)],
        ctx.ir_version,
    )

    def parse(text: str) -> DimLike:
        return stand_ins[text] if text in stand_ins else ctx.fresh()

    protos = [inferred.get(name) for name in ctx.node.output]
    return [UNKNOWN if proto is None else value_type(proto, parse) for proto in protos]


def _without_shapes(ctx: NodeContext, operator: Operator, given: Given) -> Sequence[ValueType]:
    """Return what onnx infers from element types alone. A node that it refuses then is invalid for all shapes."""
    try:
        return [
            _shapeless(known)
            for known in _run(ctx, operator, {name: _shapeless(value) for name, value in given.items()})
        ]
    except _INVALID as error:
        return _report(ctx, error)


def _confirmed(
    ctx: NodeContext, operator: Operator, given: Given, outputs: Sequence[ValueType], probes: Sequence[Sizes]
) -> list[ValueType]:
    """Return the outputs without the dimensions that onnx does not confirm when numbers replace the symbols."""
    try:
        numbered = [_run(ctx, operator, {name: _at(known, sizes) for name, known in given.items()}) for sizes in probes]
    except (*_INVALID, ArithmeticError):
        return [_shapeless(known) for known in outputs]
    result: list[ValueType] = []
    for position, known in enumerate(outputs):
        shapes = [types[position].shape for types in numbered]
        if known.shape is None or any(shape is None or len(shape) != len(known.shape) for shape in shapes):
            result.append(_shapeless(known))
            continue
        agreed = [
            dim
            if all(_is_at(dim, sizes, (shape or ())[axis]) for sizes, shape in zip(probes, shapes, strict=True))
            else None
            for axis, dim in enumerate(known.shape)
        ]
        result.append(known.with_shape(agreed))
    return result


def _is_at(dim: DimLike | None, sizes: Sizes, number: DimLike | None) -> bool:
    """Return True if a dimension is this number at these sizes."""
    if isinstance(dim, Dim):
        return symbols_of(dim) <= sizes.keys() and evaluate(dim, sizes) == number
    return dim is not None and dim == number


def _is_open(known: ValueType) -> bool:
    """Return True if a rank or a dimension is unknown and has no symbol. Not all of onnx's functions expect that."""
    if known.element is not None:
        return _is_open(known.element)
    return known.shape is None or None in known.shape


def _symbols(known: ValueType) -> frozenset[str]:
    """Return the symbols in a type."""
    inner = frozenset() if known.element is None else _symbols(known.element)
    return inner.union(*(symbols_of(dim) for dim in known.shape or () if isinstance(dim, Dim)))


def _shapeless(known: ValueType) -> ValueType:
    """Return the type with every rank unknown."""
    return ValueType(known.kind, known.dtype, None, None if known.element is None else _shapeless(known.element))


def _at(known: ValueType, sizes: Sizes) -> ValueType:
    """Return the type with numbers for its symbols. A negative number becomes unknown."""
    shape = None
    if known.shape is not None:
        numbers = [evaluate(dim, sizes) if isinstance(dim, Dim) else dim for dim in known.shape]
        shape = tuple(None if number is None or number < 0 else number for number in numbers)
    return ValueType(known.kind, known.dtype, shape, None if known.element is None else _at(known.element, sizes))


def _constant(ctx: NodeContext, index: int) -> TensorProto | None:
    contents: Contents | None = ctx.contents(index)
    integers = None if contents is None else contents.integers
    if contents is None or integers is None or ctx.input(index).dtype != "int64":
        return None
    made = int64_tensor(ctx.node.input[index], integers)
    del made.dims[:]
    made.dims.extend(contents.shape)
    return made


def _report(ctx: NodeContext, error: Exception) -> Sequence[ValueType]:
    """Report a node that onnx refuses, without onnx's prefixes and positions."""
    text = str(error).split("] ", 1)[-1].strip().rstrip(".").replace("\n", " ")[:300]
    ctx.find("SG302", f"{ctx.node.op_type}-{ctx.since_version} is invalid: {text}")
    return ()
