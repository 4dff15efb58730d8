"""Constants and random numbers, and operators that only pass a value on or change its element type."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext, rule
from splitgraph.inference.rules.arithmetic import cast_item
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    dims_of,
    dtype_attribute,
    expect,
    int_attribute,
    ints_attribute,
    operator,
    ranked_dims,
    static_count,
    vector_dims,
)
from splitgraph.model.attributes import CONSTANT_DTYPES
from splitgraph.model.onnx_proto import SparseTensorProto, TensorProto
from splitgraph.model.schemas.fit import numpy_name
from splitgraph.model.value_type import (
    DTYPE_NAMES,
    DTYPE_NUMBERS,
    MAX_ITEMS,
    MAX_LISTED,
    UNKNOWN,
    Contents,
    Item,
    ValueType,
    scalar,
    tensor,
    vector,
)
from splitgraph.model.values import tensor_contents, tensor_type


@operator("Constant", gives=(None,))
def constant(ctx: NodeContext) -> Sequence[ValueType]:
    """Make a constant, from any of the attributes that can hold it."""
    given = [name for name in ("value", "sparse_value", *CONSTANT_DTYPES) if name in ctx.attributes()]
    if len(given) != 1:
        raise InvalidNode(f"exactly one of its value attributes must be given, not {len(given)}")
    name = given[0]
    if name in CONSTANT_DTYPES and ctx.is_unresolved(name):
        # An attribute of the enclosing function: its type and rank are those of the attribute's form.
        return [tensor(CONSTANT_DTYPES[name], (None,) if name.endswith("s") else ())]
    value = ctx.attribute(name)
    if value is None:
        return [UNKNOWN]
    if name == "value":
        if not isinstance(value, TensorProto):
            raise InvalidNode("attribute 'value' must be a tensor")
        ctx.set_contents(0, tensor_contents(value))
        return [tensor_type(value)]
    if name == "sparse_value":
        return [_sparse_constant(ctx, value)]
    contents = vector(value) if isinstance(value, tuple) else scalar(value)
    if len(contents.items) <= (MAX_LISTED if name == "value_ints" else MAX_ITEMS):
        ctx.set_contents(0, contents)
    return [tensor(CONSTANT_DTYPES[name], contents.shape)]


def _sparse_constant(ctx: NodeContext, value: Any) -> ValueType:
    if not isinstance(value, SparseTensorProto):
        raise InvalidNode("attribute 'sparse_value' must be a sparse tensor")
    shape = tuple(value.dims)
    known = tensor(tensor_type(value.values).dtype, shape)
    count = static_count(shape)
    values, indices = tensor_contents(value.values), tensor_contents(value.indices)
    where = None if indices is None else indices.integers
    if count is None or values is None or indices is None or where is None:
        return known
    zero: Item = (
        "" if known.dtype == "string" else (0.0 if any(isinstance(item, float) for item in values.items) else 0)
    )
    items: list[Item] = [zero] * count
    if len(indices.shape) == 2:
        where = _linear(where, shape)
    if len(where) != len(values.items) or any(not 0 <= position < count for position in where):
        raise InvalidNode("the indices of 'sparse_value' do not fit its values and dims")
    for position, item in zip(where, values.items, strict=True):
        items[position] = item
    ctx.set_contents(0, Contents(shape, tuple(items)))
    return known


def _linear(coordinates: tuple[int, ...], shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the positions in row-major order for coordinates that are listed one after another."""
    rank = len(shape)
    result = []
    for first in range(0, len(coordinates), rank):
        position = 0
        for coordinate, dim in zip(coordinates[first : first + rank], shape, strict=True):
            position = position * dim + coordinate
        result.append(position)
    return tuple(result)


@operator("ConstantOfShape", gives=(None,))
def constant_of_shape(ctx: NodeContext) -> Sequence[ValueType]:
    """Make a tensor of one value, in the shape that the input holds."""
    value = ctx.attribute("value")
    dtype, item = "float32", 0.0
    known_item: Item = item
    if isinstance(value, TensorProto):
        contents = tensor_contents(value)
        known_item = None if contents is None else contents.scalar
        dtype = DTYPE_NAMES.get(value.data_type, "")
    dims = target_shape(ctx, 0)
    count = static_count(dims)
    if count is not None and dims is not None and known_item is not None:
        ctx.set_contents(0, Contents(tuple(dim for dim in dims if isinstance(dim, int)), (known_item,) * count))
    return [tensor(dtype or None, dims)]


@operator("ConstantFill", gives=(None,))
def constant_fill(ctx: NodeContext) -> Sequence[ValueType]:
    """Make a tensor of one value. Its shape is an attribute, that of the input or what the input holds, then
    extra_shape.

    The operator was experimental and does not exist from opset 9 on. Its value is a float even if the elements are not.
    """
    if ctx.opset >= 9:
        raise InvalidNode("it was experimental and was removed at opset 9")
    dtype, dims = dtype_attribute(ctx, "dtype", "float32"), _filled_dims(ctx)
    value, count = ctx.attribute("value", 0.0), static_count(dims)
    if count is not None and dims is not None and count <= MAX_ITEMS and isinstance(value, float):
        item: Item = value if dtype == "float32" else int(value) if value.is_integer() else None
        ctx.set_contents(0, Contents(tuple(dim for dim in dims if isinstance(dim, int)), (item,) * count))
    return [tensor(dtype, dims)]


@operator("GivenTensorFill", gives=(None,))
def given_tensor_fill(ctx: NodeContext) -> Sequence[ValueType]:
    """Make a tensor of the elements in `values`, in the shape that ConstantFill would make. It was experimental."""
    dims, values = _filled_dims(ctx), ctx.attribute("values")
    count = static_count(dims)
    if count is not None and isinstance(values, tuple) and count != len(values):
        raise InvalidNode(f"values has {len(values)} elements; the shape needs {count}")
    return [tensor(ctx.input(0).dtype if ctx.has_input(0) else "float32", dims)]


def _filled_dims(ctx: NodeContext) -> Dims | None:
    given = ints_attribute(ctx, "shape")
    if given is not None and ctx.has_input(0):
        raise InvalidNode("the shape is given by both the attribute 'shape' and an input; only one is allowed")
    dims = given if not ctx.has_input(0) else dims_of(ctx, 0)
    if ctx.has_input(0) and int_attribute(ctx, "input_as_shape", 0):
        dims = target_shape(ctx, 0)
    extra = ints_attribute(ctx, "extra_shape") or ()
    return None if dims is None else tuple(required_dim(ctx, dim) for dim in (*dims, *extra))


def target_shape(ctx: NodeContext, index: int) -> Dims | None:
    """Return the shape that a 1-D input holds, with a fresh symbol for each unknown element; None if its length is
    unknown.

    Raise InvalidNode for a negative element; require a symbolic element not to be negative.
    """
    elements = vector_dims(ctx, index)
    if elements is None:
        return None
    return tuple(required_dim(ctx, element) for element in elements)


def required_dim(ctx: NodeContext, element: DimLike | None) -> DimLike:
    """Return an element of a shape as a dimension; a fresh symbol if it is unknown. Raise InvalidNode if it is
    negative.
    """
    if element is None:
        return ctx.fresh()
    expect(ctx, element, ">=", 0, lambda: f"the shape has a negative dimension {element}")
    return element


@rule("Identity")
def identity(ctx: NodeContext) -> Sequence[ValueType]:
    """Pass the input on, whatever its kind."""
    ctx.set_contents(0, ctx.contents(0))
    info = ctx.sequence(0)
    if info is not None:
        ctx.set_sequence(0, info)
    return [ctx.input(0)]


@operator("Cast", gives=(None,))
def cast_to(ctx: NodeContext) -> Sequence[ValueType]:
    """Cast the input to another element type, which version 1 names by a string."""
    if ctx.is_unresolved("to"):
        return [tensor(None, dims_of(ctx, 0))]
    to = ctx.attribute("to")
    # As TensorProto spells element types, which schemas do as well.
    target = numpy_name(to.lower()) if isinstance(to, str) else DTYPE_NAMES.get(to)
    if target not in DTYPE_NUMBERS:
        raise InvalidNode(f"attribute 'to' is {to!r}, which is not an element type")
    return [converted(ctx, target)]


@operator("BitCast", gives=(None,))
def bit_cast(ctx: NodeContext) -> Sequence[ValueType]:
    """Read the bits of the input as another element type of the same width."""
    source, target = ctx.input(0).dtype, dtype_attribute(ctx, "to", None)
    if source is not None and target is not None and _bits(source) != _bits(target):
        raise InvalidNode(f"{source} and {target} have different widths")
    return [tensor(target, dims_of(ctx, 0))]


def _bits(dtype: str) -> int:
    digits = re.search(r"\d+", dtype)
    return 8 if digits is None else int(digits[0])


@operator("CastLike", gives=(1,))
def cast_like(ctx: NodeContext) -> Sequence[ValueType]:
    """Cast the input to the element type of the second input."""
    target = ctx.input(1).dtype
    return [tensor(None, dims_of(ctx, 0)) if target is None else converted(ctx, target)]


def converted(ctx: NodeContext, target: str) -> ValueType:
    """Return the type of the first input after a cast, and state its elements."""
    dims = dims_of(ctx, 0)
    contents = ctx.contents(0) if static_count(dims) is not None else None
    if contents is not None:
        source, facts = ctx.input(0).dtype, ctx.facts
        ctx.set_contents(
            0, Contents(contents.shape, tuple(cast_item(facts, source, target, item) for item in contents.items))
        )
    return tensor(target, dims)


@rule("Optional")
def optional(ctx: NodeContext) -> Sequence[ValueType] | None:
    """Make an optional of the input. One that is made from a type alone is left to onnx."""
    element = ctx.input(0)
    if not ctx.has_input(0) or element.kind == "unknown":
        return None
    ctx.set_contents(0, ctx.contents(0))
    return [ValueType("optional", element.dtype, element.shape, None if element.kind == "tensor" else element)]


@rule("OptionalGetElement")
def optional_get_element(ctx: NodeContext) -> Sequence[ValueType] | None:
    """Return the type of the element of the optional. From version 18 on, a tensor or sequence is passed on."""
    given = ctx.input(0)
    ctx.set_contents(0, ctx.contents(0))
    if given.kind != "optional":
        info = ctx.sequence(0)
        if info is not None:
            ctx.set_sequence(0, info)
        return [given]
    return [given.element or tensor(given.dtype, given.shape)]


@operator("OptionalHasElement", gives=("bool",))
def optional_has_element(ctx: NodeContext) -> Sequence[ValueType]:
    """Test for an element. The result is known for a tensor or sequence, and for an omitted input."""
    if not ctx.has_input(0):
        ctx.set_contents(0, scalar(0))
    elif ctx.input(0).kind in ("tensor", "sequence"):
        ctx.set_contents(0, scalar(1))
    return [tensor("bool", ())]


@operator("RandomNormal", "RandomUniform", gives=(None,))
def random(ctx: NodeContext) -> Sequence[ValueType]:
    """Draw random numbers in the shape of an attribute."""
    dtype, shape = dtype_attribute(ctx, "dtype", "float32"), ints_attribute(ctx, "shape")
    if shape is not None and any(dim < 0 for dim in shape):
        raise InvalidNode(f"shape {list(shape)} has a negative dimension")
    return [tensor(dtype, shape)]


@operator("RandomNormalLike", "RandomUniformLike", "Bernoulli")
def random_like(ctx: NodeContext) -> Sequence[ValueType]:
    """Draw random numbers in the shape of the input, and in its element type unless another one is given."""
    return [tensor(dtype_attribute(ctx, "dtype", ctx.input(0).dtype), dims_of(ctx, 0))]


@operator("EyeLike")
def eye_like(ctx: NodeContext) -> Sequence[ValueType]:
    """Make a matrix with ones on a diagonal, in the shape of the input."""
    dims = ranked_dims(ctx, 0, 2)
    return [tensor(dtype_attribute(ctx, "dtype", ctx.input(0).dtype), dims)]


@operator("Multinomial", gives=(None,))
def multinomial(ctx: NodeContext) -> Sequence[ValueType]:
    """Draw `sample_size` classes for each row of the input."""
    dims, count = ranked_dims(ctx, 0, 2), int_attribute(ctx, "sample_size", 1)
    return [tensor(dtype_attribute(ctx, "dtype", "int32"), (dims[0], count))]
