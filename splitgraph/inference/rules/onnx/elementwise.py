"""Elementwise operators: arithmetic, comparison and logic with broadcasting, Where, and those that keep a type."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from splitgraph.inference.context import NodeContext, Rule, rule
from splitgraph.inference.rules import arithmetic as exact
from splitgraph.inference.rules.arithmetic import BinaryItem, UnaryItem
from splitgraph.inference.rules.broadcasting import broadcast_dims, broadcast_items, expect_to_fit, fits_into
from splitgraph.inference.rules.indices import require_lengths
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    check_axis,
    differ,
    dims_of,
    dims_of_rank,
    exact_quotient,
    expect_dims,
    expect_one_element,
    int_attribute,
    known_dtype,
    like_input,
    operator,
    spelled_dims,
    static_count,
    tolerate,
)
from splitgraph.inference.rules.signatures import expect_shapes, shaped, shapes
from splitgraph.model.schemas import kinds
from splitgraph.model.value_type import MAX_ITEMS, Contents, Item, ValueType, scalar, tensor

ARITHMETIC: dict[str, BinaryItem | None] = {
    "Add": exact.add,
    "Sub": exact.subtract,
    "Mul": exact.multiply,
    "Div": exact.divide,
    **dict.fromkeys(kinds.BROADCASTS & kinds.BITS),
}
LOGIC: dict[str, BinaryItem] = {
    "Equal": exact.equal,
    "Greater": exact.greater,
    "GreaterOrEqual": exact.greater_or_equal,
    "Less": exact.less,
    "LessOrEqual": exact.less_or_equal,
    "And": exact.logical_and,
    "Or": exact.logical_or,
    "Xor": exact.logical_xor,
}
VARIADIC: dict[str, BinaryItem | None] = {"Sum": exact.add, "Min": exact.smallest, "Max": exact.largest, "Mean": None}
UNARY: dict[str, UnaryItem] = {
    "Neg": exact.negate,
    "Abs": exact.absolute,
    "Floor": exact.floor,
    "Ceil": exact.ceiling,
    "Round": exact.rounded,
    "Sign": exact.signum,
    "Sqrt": exact.square_root,
    "Not": exact.logical_not,
}
# Shapes come of a few numbers; more floating-point ones are weights.
_MOST_FLOATS = 64
# From these versions on shapes broadcast both ways; before, the second is fitted to the first, or all are alike.
_NUMPY_BROADCAST_SINCE = 7
_VARIADIC_BROADCAST_SINCE = 8
# Version 1 of Softmax and its kin makes a matrix of the input at any axis up to the rank; 13 moved the default.
_AXIS_IN_RANGE_SINCE = 11
_LAST_AXIS_SINCE = 13
_SCALE_BY_CHANNEL_SINCE = 21


@rule(*(kinds.EACH & kinds.ROUNDED) - {*UNARY, "PRelu"}, "BitwiseNot", "CumProd")
def same_type(ctx: NodeContext) -> Sequence[ValueType] | None:
    """Return the type of the first input."""
    known = ctx.input(0)
    return [known] if known.kind in ("tensor", "unknown") else None


# Of neighbouring channels, beside at least one more axis.
shaped("LRN", "X: N C D ...", gives="0 N C D ...")
shaped("IsNaN IsInf", "X: ...", gives="bool ...")
# A gate, and a value.
shaped("SwiGLU", "X: ...", "Y: ...", gives="0,1 ...")
shaped("InstanceNormalization", "input: N C ...", "scale: C", "B: C", gives="0 N C ...")


@operator("PRelu")
def prelu(ctx: NodeContext) -> Sequence[ValueType]:
    """Scale negative elements. The slope broadcasts to the input, or has one element for each channel (before version 7
    by definition).
    """
    dims, slope = dims_of(ctx, 0), dims_of(ctx, 1)
    known = tensor(ctx.input(0).dtype, dims)
    if dims is None or slope is None:
        return [known]
    for_channels = len(slope) == 1 and len(dims) >= 2 and not differ(dims[1], slope[0])
    if (for_channels and ctx.since_version < _NUMPY_BROADCAST_SINCE) or fits_into(slope, dims):
        # One slope for each channel may be read along the last axis, too, unless that is the channels' own.
        if not for_channels or len(dims) == 2:
            expect_to_fit(ctx, 1, dims, "the slope")
        return [known]
    text = f"the slope {spelled_dims(slope)} does not broadcast to the input {spelled_dims(dims)}"
    if not for_channels or len(dims) == 2:
        raise InvalidNode(text)
    tolerate(ctx, text, "with one slope for each channel")
    return [known]


def _operand_shape(ctx: NodeContext) -> Dims | None:
    a, b = dims_of(ctx, 0), dims_of(ctx, 1)
    if ctx.since_version >= _NUMPY_BROADCAST_SINCE:
        return a if a is not None and a == b else broadcast_dims(ctx, (a, b))
    if a is None and not int_attribute(ctx, "broadcast", 0):
        return b
    return a


def binary(
    item: BinaryItem | None,
    gives: str | None = None,
    shape_of: Callable[[NodeContext], Dims | None] = _operand_shape,
) -> Rule:
    """Make the rule of an operator on two operands. item: computes an element; None if elements are not followed.
    gives: the element type of the output if it is not that of the operands. shape_of: how the shapes fit each other.
    """

    def rule(ctx: NodeContext) -> Sequence[ValueType]:
        shape = shape_of(ctx)
        dtype = known_dtype(ctx, (0, 1))
        if gives is not None:
            dtype = gives
        if item is not None and dtype is not None:
            follow_operands(ctx, item, dtype, shape, (0, 1))
        return [tensor(dtype, shape)]

    return rule


def unary(item: UnaryItem) -> Rule:
    """Make the rule of an operator on one operand. item: computes an element."""

    def rule(ctx: NodeContext) -> Sequence[ValueType]:
        shape, dtype = dims_of(ctx, 0), ctx.input(0).dtype
        contents = ctx.contents(0) if dtype is not None and static_count(shape) is not None else None
        if contents is not None and dtype is not None:
            facts = ctx.facts
            ctx.set_contents(0, Contents(contents.shape, tuple(item(facts, dtype, known) for known in contents.items)))
        return [tensor(dtype, shape)]

    return rule


@operator("Pow")
def power(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute powers. The exponent may have another element type."""
    shape = _operand_shape(ctx)
    dtype = ctx.input(0).dtype
    if dtype is not None:
        follow_operands(ctx, exact.power, dtype, shape, (0, 1))
    return [tensor(dtype, shape)]


@operator("Clip", "Relu")
def clip(ctx: NodeContext) -> Sequence[ValueType]:
    """Limit the input by two bounds, either of which may be missing; Relu has the lower bound 0."""
    dtype, shape = ctx.input(0).dtype, dims_of(ctx, 0)
    for index, name in ((1, "min"), (2, "max")):
        _check_bound(ctx, index, name, shape)
    contents = ctx.contents(0) if dtype is not None and static_count(shape) is not None else None
    if contents is not None and dtype is not None and (ctx.node.op_type == "Relu" or ctx.since_version >= 11):
        # A bound whose element is unknown is a scalar of None.
        low, high = (ctx.contents(index) or scalar(None) if ctx.has_input(index) else None for index in (1, 2))
        if ctx.node.op_type == "Relu":
            low = scalar(0 if exact.is_integer_type(dtype) else 0.0)
        facts, items = ctx.facts, contents.items
        if low is not None:
            items = tuple(exact.largest(facts, dtype, item, low.scalar) for item in items)
        if high is not None:
            items = tuple(exact.smallest(facts, dtype, item, high.scalar) for item in items)
        ctx.set_contents(0, Contents(contents.shape, items))
    return [tensor(dtype, shape)]


def _check_bound(ctx: NodeContext, index: int, name: str, dims: Dims | None) -> None:
    """Require a bound that is a number. Two engines also run a bound of several elements that broadcasts to the
    input.
    """
    bound = dims_of(ctx, index) if ctx.has_input(index) else None
    if not bound or bound == (1,) or dims is None or not any(isinstance(dim, int) for dim in bound):
        return
    text = f"{name} (input {index}) has the shape {spelled_dims(bound)}; it must be a scalar"
    if not fits_into(bound, dims):
        raise InvalidNode(text)
    tolerate(ctx, text, "with a bound for each element")


def _variadic(ctx: NodeContext) -> Sequence[ValueType]:
    indices = range(len(ctx.node.input))
    dtype = known_dtype(ctx, indices)
    shapes = [dims_of(ctx, index) for index in indices]
    shape: Dims | None
    if ctx.since_version >= _VARIADIC_BROADCAST_SINCE:
        shape = broadcast_dims(ctx, shapes)
    else:
        shape = next((dims for dims in shapes if dims is not None), None)
    item = VARIADIC[ctx.node.op_type]
    if item is not None and dtype is not None:
        follow_operands(ctx, item, dtype, shape, indices)
    return [tensor(dtype, shape)]


for _op_type, _item in ARITHMETIC.items():
    operator(_op_type)(binary(_item))
for _op_type, _test in LOGIC.items():
    operator(_op_type, gives=("bool",))(binary(_test, "bool"))
for _op_type, _unary in UNARY.items():
    operator(_op_type)(unary(_unary))
operator(*VARIADIC)(_variadic)


@operator("Mod")
def modulo(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute remainders with the sign of the second operand, or with `fmod` of the first."""
    shape, dtype = _operand_shape(ctx), known_dtype(ctx, (0, 1))
    if dtype is not None:
        item = exact.fmod if int_attribute(ctx, "fmod", 0) else exact.modulo
        follow_operands(ctx, item, dtype, shape, (0, 1))
    return [tensor(dtype, shape)]


@operator("Where", gives=(1,))
def where(ctx: NodeContext) -> Sequence[ValueType]:
    """Choose elements of the second or third input by the first."""
    shape = broadcast_dims(ctx, [dims_of(ctx, index) for index in range(3)])
    dtype = known_dtype(ctx, (1, 2))
    if dtype is not None:
        follow_choice(ctx, shape)
    return [tensor(dtype, shape)]


def follow_choice(ctx: NodeContext, shape: Dims | None) -> None:
    """State the elements that the first input chooses from the second and third, if something is known of all three."""
    operands = operand_items(ctx, shape, range(3))
    if operands is not None:
        static, rows = operands
        ctx.set_contents(0, Contents(static, tuple(_chosen(*row) for row in zip(*rows, strict=True))))


def _chosen(condition: Item, x: Item, y: Item) -> Item:
    """Return the element that a condition chooses. If both elements are the same, the condition need not be known."""
    if condition is None:
        return x if x == y else None
    return x if condition else y


@operator("Hardmax", "LogSoftmax", "LpNormalization", "Softmax")
@operator("RMSNormalization", gives=(1,))
def along_axis(ctx: NodeContext) -> Sequence[ValueType]:
    """Normalise the input along an axis, or from an axis on. A scale gives its type to the output."""
    dims = dims_of(ctx, 0)
    of_any_version = ctx.node.op_type == "LpNormalization"
    if dims is not None and (of_any_version or ctx.since_version >= _AXIS_IN_RANGE_SINCE):
        by_default = -1 if of_any_version or ctx.since_version >= _LAST_AXIS_SINCE else 1
        check_axis(ctx, by_default, len(dims))
    if dims is not None and ctx.node.op_type == "RMSNormalization":
        expect_to_fit(ctx, 1, dims, "the scale")
    return [tensor(ctx.input(1 if ctx.node.op_type == "RMSNormalization" else 0).dtype, dims)]


@operator("Trilu", "ReverseSequence")
def of_matrices(ctx: NodeContext) -> Sequence[ValueType]:
    """Return the type of the input, checked to have rank 2 or more."""
    dims = dims_of(ctx, 0)
    if dims is not None and len(dims) < 2:
        raise InvalidNode(f"the input has rank {len(dims)}; it must have at least 2")
    if ctx.node.op_type == "ReverseSequence":
        batch, time = int_attribute(ctx, "batch_axis", 1), int_attribute(ctx, "time_axis", 0)
        if batch == time:
            raise InvalidNode(f"batch_axis and time_axis are both {batch}; they must be different")
        expect_dims(ctx, 1, (None if dims is None else dims[batch],), "sequence_lens")
        longest = None if dims is None else dims[time]
        require_lengths(ctx, 1, longest, "sequence_lens (input 1)", run_by="the reference evaluator")
    else:
        expect_one_element(ctx, 1, "k")
    return [tensor(ctx.input(0).dtype, dims)]


@operator("GroupNormalization")
def of_groups(ctx: NodeContext) -> Sequence[ValueType]:
    """Normalise the input, with a scale and a bias for each channel, or until version 20 for each group."""
    groups, letter = int_attribute(ctx, "num_groups", 1), "G" if ctx.since_version < _SCALE_BY_CHANNEL_SINCE else "C"
    given = ("X: N C ...", f"scale: {letter}", f"bias: {letter}")
    channels = expect_shapes(ctx, *given[:1]).get("C")
    if channels is not None:
        exact_quotient(ctx, channels, groups, "the channels into groups")
    return shapes(ctx, *given, sizes={"G": groups}, gives="0 N C ...")


@operator("Dropout", gives=(0, "bool"))
def dropout(ctx: NodeContext) -> Sequence[ValueType]:
    """Return the input, and a mask of its shape: boolean from version 10 on, before of the input's type."""
    for index in (1, 2):
        dims_of_rank(ctx, index, 0)
    known = like_input(ctx)
    mask = known if ctx.since_version < 10 else tensor("bool", known.shape)
    return [known, mask]


def follow_operands(ctx: NodeContext, item: BinaryItem, dtype: str, shape: Dims | None, indices: Sequence[int]) -> None:
    """State the elements of the output, if something is known of every operand."""
    operands = operand_items(ctx, shape, indices)
    if operands is None:
        return
    static, rows = operands
    facts = ctx.facts
    result: Sequence[Item] = rows[0]
    for row in rows[1:]:
        result = [item(facts, dtype, a, b) for a, b in zip(result, row, strict=True)]
    if any(value is not None for value in result):
        ctx.set_contents(0, Contents(static, tuple(result)))


def operand_items(
    ctx: NodeContext, shape: Dims | None, indices: Sequence[int]
) -> tuple[tuple[int, ...], list[tuple[Item, ...]]] | None:
    """Return the static shape that the operands broadcast to, and the elements of each of them in this shape; None if
    one is unknown.
    """
    count = static_count(shape)
    if count is None or shape is None or (count > _MOST_FLOATS and exact.is_float_type(ctx.input(indices[0]).dtype)):
        return None
    if ctx.since_version < _NUMPY_BROADCAST_SINCE and ctx.has_attribute("axis"):
        return None
    static = tuple(dim for dim in shape if isinstance(dim, int))
    known: list[Contents] = []
    for index in indices:
        contents = ctx.contents(index)
        if contents is None or len(contents.items) > MAX_ITEMS:
            return None
        known.append(contents)
    return static, [broadcast_items(contents, static, count) for contents in known]
