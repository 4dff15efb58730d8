"""OpenVINO's elementwise layers that differ from ONNX's operators, reductions over axes, and attention."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import Facts
from splitgraph.inference.context import NodeContext, Rule
from splitgraph.inference.rules import arithmetic as exact
from splitgraph.inference.rules.arithmetic import BinaryItem
from splitgraph.inference.rules.broadcasting import broadcast_dims
from splitgraph.inference.rules.onnx.constants import converted
from splitgraph.inference.rules.onnx.elementwise import binary, follow_choice
from splitgraph.inference.rules.onnx.reduction import COMBINED, dims_after_unknown_axes, reduced
from splitgraph.inference.rules.openvino.attributes import element_type, flag, layer, listed_axes, number, text
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    dims_of,
    equal_dims,
    expect_dims,
    known_dtype,
    like_input,
    merged_dim,
    normal_axis,
    static_count,
)
from splitgraph.inference.rules.signatures import shaped
from splitgraph.model.schemas.kinds import LAYER_REDUCTIONS
from splitgraph.model.value_type import Contents, Item, ValueType, tensor
from splitgraph.splits.openvino_split_1 import DOMAIN

# Of so few floats, a shape may be made.
_FEW = 64


def broadcast(ctx: NodeContext, indices: Sequence[int]) -> Dims | None:
    """Return the shape that inputs broadcast to as `auto_broadcast` says: with numpy both ways, with none all shapes
    are equal, with pdpd to the shape of the first. Raise InvalidNode if they do not fit.
    """
    shapes, mode = [dims_of(ctx, index) for index in indices], text(ctx, "auto_broadcast", "numpy")
    if mode == "numpy":
        return broadcast_dims(ctx, shapes)
    if mode not in ("none", "explicit", "pdpd"):
        raise InvalidNode(f"auto_broadcast is {mode!r}; it must be numpy, none or pdpd")
    return shapes[0] if mode == "pdpd" else equal_dims(ctx, shapes)


def broadcasting(item: BinaryItem | None, gives: str | None = None) -> Rule:
    """Make the rule of a layer on two operands; `item` and `gives` as for `binary`. With pdpd, which aligns the second
    operand at an axis of the first, the elements are not followed.
    """

    def shape_of(ctx: NodeContext) -> Dims | None:
        return broadcast(ctx, (0, 1))

    followed, fitted = binary(item, gives, shape_of), binary(None, gives, shape_of)
    return lambda ctx: (fitted if text(ctx, "auto_broadcast", "numpy") == "pdpd" else followed)(ctx)


layer("SquaredDifference")(broadcasting(None))
layer("NotEqual", gives=("bool",))(broadcasting(exact.not_equal, "bool"))
# The slope is fitted to the data.
layer("PReLU")(binary(None, shape_of=lambda ctx: dims_of(ctx, 0)))


@layer("Divide")
def divide(ctx: NodeContext) -> Sequence[ValueType] | None:
    """Divide, and round integers down unless `m_pythondiv` is false."""
    return _ROUNDED_DOWN(ctx) if flag(ctx, "m_pythondiv", True) else _TRUNCATED(ctx)


def floor_divide(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """Compute a / b, rounded down for integer constants, as Divide does unless told to truncate.

    A symbolic quotient that is negative stays unknown: OpenVINO rounds constants down, and the CPU truncates.
    """
    if exact.is_integer_type(dtype) and isinstance(a, int) and isinstance(b, int):
        return exact.fit(facts, dtype, a // b) if b else None
    return exact.divide(facts, dtype, a, b)


_ROUNDED_DOWN, _TRUNCATED = broadcasting(floor_divide), broadcasting(exact.divide)


@layer("Identity", "Assign")
def passed_on(ctx: NodeContext) -> Sequence[ValueType]:
    """Pass the first input on."""
    ctx.set_contents(0, ctx.contents(0))
    return [like_input(ctx)]


@layer("ReverseSequence")
def reverse_sequence(ctx: NodeContext) -> Sequence[ValueType]:
    """Pass the first input on, which has as many items as there are lengths."""
    kind = like_input(ctx)
    if kind.shape is not None:
        batch = normal_axis(number(ctx, "batch_axis", 0), len(kind.shape), "batch_axis")
        expect_dims(ctx, 1, (kind.shape[batch],), "the list of lengths")
    return [kind]


shaped("GroupNormalization", "data: N C ...", "scale: C", "bias: C", gives="0 N C ...", domain=DOMAIN)


@layer("Clamp")
def clamp(ctx: NodeContext) -> Sequence[ValueType]:
    """Limit the input by two bounds. Integers are followed if the bounds are whole."""
    dtype, shape = ctx.input(0).dtype, dims_of(ctx, 0)
    contents = ctx.contents(0) if static_count(shape) is not None else None
    bounds = [_bound(ctx, name) for name in ("min", "max")]
    if contents is not None and exact.is_integer_type(dtype) and None not in bounds:
        low, high = bounds
        items = [exact.largest(ctx.facts, str(dtype), item, low) for item in contents.items]
        limited = tuple(exact.smallest(ctx.facts, str(dtype), item, high) for item in items)
        ctx.set_contents(0, Contents(contents.shape, limited))
    return [tensor(dtype, shape)]


def _bound(ctx: NodeContext, name: str) -> int | None:
    try:
        value = float(text(ctx, name))
    except ValueError:
        raise InvalidNode(f"attribute {name!r} is {text(ctx, name)!r}; it must be a number") from None
    return int(value) if value.is_integer() and abs(value) < 2**53 else None


@layer("Select", gives=(1,))
def select(ctx: NodeContext) -> Sequence[ValueType]:
    """Choose elements of the second or third input by the first."""
    dtype = known_dtype(ctx, (1, 2))
    if text(ctx, "auto_broadcast", "numpy") == "pdpd":
        # Condition and third input are fitted to the second.
        return [tensor(dtype, dims_of(ctx, 1))]
    shape = broadcast(ctx, range(3))
    follow_choice(ctx, shape)
    return [tensor(dtype, shape)]


@layer("FakeQuantize")
def fake_quantize(ctx: NodeContext) -> Sequence[ValueType]:
    """Round the data to levels; limits broadcast with it."""
    return [tensor(ctx.input(0).dtype, broadcast(ctx, range(5)))]


@layer("Convert", gives=(None,))
def convert(ctx: NodeContext) -> Sequence[ValueType]:
    """Cast the input to the element type of an attribute."""
    target, dims = element_type(ctx, "destination_type", None), dims_of(ctx, 0)
    if target is None:
        return [tensor(None, dims)]
    # No shape is computed from large float constants that stay floats, such as weights in half precision.
    is_whole, count = exact.is_integer_type(ctx.input(0).dtype) or exact.is_integer_type(target), static_count(dims)
    if not is_whole and (count is None or count > _FEW):
        return [tensor(target, dims)]
    return [converted(ctx, target)]


@layer("ConvertPromoteTypes", gives=(None, None))
def promoted(ctx: NodeContext) -> Sequence[ValueType]:
    """Cast both inputs to one element type. The ports say which, unless both inputs have it."""
    first, second = ctx.input(0).dtype, ctx.input(1).dtype
    return [tensor(first if first == second else None, dims_of(ctx, index)) for index in (0, 1)]


@layer("Bucketize", "SearchSorted", gives=(None,))
def positions_among(ctx: NodeContext) -> Sequence[ValueType]:
    """Find the position of each value among sorted ones: those of the second input, or for SearchSorted of the
    first.
    """
    values = 1 if ctx.node.op_type == "SearchSorted" else 0
    return [tensor(element_type(ctx, "output_type", "int64"), dims_of(ctx, values))]


@layer(*LAYER_REDUCTIONS)
def reduce(ctx: NodeContext) -> Sequence[ValueType]:
    """Reduce the input over the axes, which stay as 1 with `keep_dims`; over no axis if none is listed."""
    dtype, dims, axes = ctx.input(0).dtype, dims_of(ctx, 0), listed_axes(ctx, 1)
    keep = flag(ctx, "keep_dims", False)
    if dims is None:
        return [tensor(dtype, None)]
    if axes is None:
        return [tensor(dtype, dims_after_unknown_axes(dims, keep))]
    where = tuple(dict.fromkeys(normal_axis(axis, len(dims)) for axis in axes))
    return reduced(ctx, COMBINED.get(ctx.node.op_type), dims, where, keep)


@layer("ScaledDotProductAttention")
def attention(ctx: NodeContext) -> Sequence[ValueType]:
    """Weight values by how much queries and keys agree. The output has batches and length of the query, features of the
    value.
    """
    dtype = known_dtype(ctx, range(3))
    query, key, value = (dims_of(ctx, index) for index in range(3))
    if query is None or key is None or value is None:
        return [tensor(dtype, None)]
    if min(len(query), len(key), len(value)) < 2:
        raise InvalidNode("query, key and value must have at least two axes")
    merged_dim(ctx, query[-1], key[-1], "the features of query and key")
    merged_dim(ctx, key[-2], value[-2], "the lengths of key and value")
    batches = broadcast_dims(ctx, (query[:-2], key[:-2], value[:-2])) or ()
    mask = dims_of(ctx, 3) if ctx.has_input(3) and not flag(ctx, "causal", False) else None
    if mask is not None and len(mask) > 1:
        broadcast_dims(ctx, (mask[-2:], (query[-2], key[-2])))
    return [tensor(dtype, (*batches, query[-2], value[-1]))]
