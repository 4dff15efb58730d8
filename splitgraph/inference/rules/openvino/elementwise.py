"""OpenVINO's elementwise layers: arithmetic, comparison and logic with broadcasting, Select, Convert, activations."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.contents import Contents, Item
from splitgraph.dim import Facts
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules import arithmetic as exact
from splitgraph.inference.rules.arithmetic import BinaryItem, UnaryItem
from splitgraph.inference.rules.broadcasting import broadcast_dims
from splitgraph.inference.rules.onnx.constants import converted
from splitgraph.inference.rules.onnx.elementwise import chosen, follow_operands, operand_items
from splitgraph.inference.rules.openvino.attributes import element_type, flag, layer, text
from splitgraph.inference.rules.operands import Dims, InvalidNode, dims_of, known_dtype, merged_dim, static_count
from splitgraph.value_type import ValueType, tensor


def floor_divide(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    """a / b, rounded down for integer constants, as Divide does unless told to truncate.

    A symbolic quotient that is negative stays unknown: OpenVINO folds constants rounding down, and the CPU truncates.
    """
    if exact.is_integer_type(dtype) and isinstance(a, int) and isinstance(b, int):
        return exact.fit(facts, dtype, a // b) if b else None
    return exact.divide(facts, dtype, a, b)


_ARITHMETIC: dict[str, BinaryItem | None] = {
    "Add": exact.add,
    "Subtract": exact.subtract,
    "Multiply": exact.multiply,
    "Divide": floor_divide,
    "FloorMod": exact.modulo,
    "Mod": exact.fmod,
    "Power": exact.power,
    "Maximum": exact.largest,
    "Minimum": exact.smallest,
    "SquaredDifference": None,
    "BitwiseAnd": None,
    "BitwiseOr": None,
    "BitwiseXor": None,
    "BitwiseLeftShift": None,
    "BitwiseRightShift": None,
    "PReLU": None,
}
_LOGIC: dict[str, BinaryItem] = {
    "Equal": exact.equal,
    "Greater": exact.greater,
    "GreaterEqual": exact.greater_or_equal,
    "Less": exact.less,
    "LessEqual": exact.less_or_equal,
    "LogicalAnd": exact.logical_and,
    "LogicalOr": exact.logical_or,
    "LogicalXor": exact.logical_xor,
}
_NOT_EQUAL = "NotEqual"
_UNARY: dict[str, UnaryItem] = {
    "Negative": exact.negate,
    "Abs": exact.absolute,
    "Floor": exact.floor,
    "Ceiling": exact.ceiling,
    "Sign": exact.signum,
    "Sqrt": exact.square_root,
    "LogicalNot": exact.logical_not,
}
_SAME_TYPE = (
    "Acos",
    "Acosh",
    "Asin",
    "Asinh",
    "Atan",
    "Atanh",
    "BatchNormInference",
    "BitwiseNot",
    "Cos",
    "Cosh",
    "CumSum",
    "Elu",
    "Erf",
    "ErfInv",
    "Exp",
    "GRN",
    "GatherTree",
    "Gelu",
    "GroupNormalization",
    "HSigmoid",
    "HSwish",
    "HardSigmoid",
    "Inverse",
    "LRN",
    "Log",
    "LogSoftmax",
    "MVN",
    "Mish",
    "NormalizeL2",
    "ReLU",
    "Relu",
    "Reverse",
    "ReverseSequence",
    "Roll",
    "Round",
    "Selu",
    "ShuffleChannels",
    "Sigmoid",
    "Sin",
    "Sinh",
    "SliceScatter",
    "SoftMax",
    "SoftPlus",
    "SoftSign",
    "Swish",
    "Tan",
    "Tanh",
)
# Of so few floats, a shape may be made.
_FEW = 64
# PReLU's slope is fitted to the data; the others broadcast both ways.
_TO_FIRST = frozenset({"PReLU"})


@layer(*_SAME_TYPE)
def same_type(ctx: NodeContext) -> Sequence[ValueType]:
    """The output has the type and shape of the first input."""
    return [tensor(ctx.input(0).dtype, dims_of(ctx, 0))]


@layer("Identity", "Assign")
def passed_on(ctx: NodeContext) -> Sequence[ValueType]:
    """The first input itself."""
    ctx.set_contents(0, ctx.contents(0))
    return [tensor(ctx.input(0).dtype, dims_of(ctx, 0))]


@layer(*_ARITHMETIC)
def arithmetic(ctx: NodeContext) -> Sequence[ValueType]:
    """A number for each pair of elements."""
    shape = dims_of(ctx, 0) if ctx.node.op_type in _TO_FIRST else broadcast(ctx, (0, 1))
    dtype, item = known_dtype(ctx, (0, 1)), _ARITHMETIC[ctx.node.op_type]
    if ctx.node.op_type == "Divide" and not flag(ctx, "m_pythondiv", True):
        item = exact.divide
    if item is not None and dtype is not None and _is_followed(ctx):
        follow_operands(ctx, item, dtype, shape, (0, 1))
    return [tensor(dtype, shape)]


@layer(*_LOGIC, _NOT_EQUAL, gives=("bool",))
def logic(ctx: NodeContext) -> Sequence[ValueType]:
    """A boolean for each pair of elements."""
    shape = broadcast(ctx, (0, 1))
    known_dtype(ctx, (0, 1))
    if _is_followed(ctx):
        follow_operands(ctx, _LOGIC.get(ctx.node.op_type, _not_equal), "bool", shape, (0, 1))
    return [tensor("bool", shape)]


def _not_equal(facts: Facts, dtype: str, a: Item, b: Item) -> Item:
    verdict = exact.equal(facts, dtype, a, b)
    return 1 - verdict if isinstance(verdict, int) else None


def broadcast(ctx: NodeContext, indices: Sequence[int]) -> Dims | None:
    """The shape that inputs broadcast to as `auto_broadcast` says. Raises InvalidNode when they do not fit.

    numpy: both ways; none: all are alike; pdpd: to the shape of the first.
    """
    shapes, mode = [dims_of(ctx, index) for index in indices], text(ctx, "auto_broadcast", "numpy")
    if mode == "numpy":
        return broadcast_dims(ctx, shapes)
    if mode not in ("none", "explicit", "pdpd"):
        raise InvalidNode(f"auto_broadcast is {mode!r}; it must be numpy, none or pdpd")
    return shapes[0] if mode == "pdpd" else _alike(ctx, shapes)


def _alike(ctx: NodeContext, shapes: Sequence[Dims | None]) -> Dims | None:
    known = [dims for dims in shapes if dims is not None]
    if not known:
        return None
    result = known[0]
    for dims in known[1:]:
        if len(dims) != len(result):
            raise InvalidNode(f"the inputs have the ranks {len(result)} and {len(dims)}; both must have the same shape")
        pairs = enumerate(zip(result, dims, strict=True))
        result = tuple(merged_dim(ctx, a, b, f"the dimensions on axis {axis}") for axis, (a, b) in pairs)
    return result


def _is_followed(ctx: NodeContext) -> bool:
    # pdpd aligns the second operand at an axis of the first, which shapes are not computed with.
    return text(ctx, "auto_broadcast", "numpy") != "pdpd"


@layer(*_UNARY)
def unary(ctx: NodeContext) -> Sequence[ValueType]:
    """A number for each element."""
    dtype, shape = ctx.input(0).dtype, dims_of(ctx, 0)
    contents = ctx.contents(0) if dtype is not None and static_count(shape) is not None else None
    if contents is not None and dtype is not None:
        item, facts = _UNARY[ctx.node.op_type], ctx.facts
        ctx.set_contents(0, Contents(contents.shape, tuple(item(facts, dtype, held) for held in contents.items)))
    return [tensor(dtype, shape)]


@layer("Clamp")
def clamp(ctx: NodeContext) -> Sequence[ValueType]:
    """The input between two bounds; integers are followed where the bounds are whole."""
    dtype, shape = ctx.input(0).dtype, dims_of(ctx, 0)
    contents = ctx.contents(0) if static_count(shape) is not None else None
    bounds = [_bound(ctx, name) for name in ("min", "max")]
    if contents is not None and exact.is_integer_type(dtype) and None not in bounds:
        low, high = bounds
        items = [exact.largest(ctx.facts, str(dtype), item, low) for item in contents.items]
        held = tuple(exact.smallest(ctx.facts, str(dtype), item, high) for item in items)
        ctx.set_contents(0, Contents(contents.shape, held))
    return [tensor(dtype, shape)]


def _bound(ctx: NodeContext, name: str) -> int | None:
    try:
        value = float(text(ctx, name))
    except ValueError:
        raise InvalidNode(f"attribute {name!r} is {text(ctx, name)!r}; it must be a number") from None
    return int(value) if value.is_integer() and abs(value) < 2**53 else None


@layer("IsNaN", "IsInf", "IsFinite", gives=("bool",))
def tests(ctx: NodeContext) -> Sequence[ValueType]:
    """A boolean for each element."""
    return [tensor("bool", dims_of(ctx, 0))]


@layer("Select", gives=(1,))
def select(ctx: NodeContext) -> Sequence[ValueType]:
    """Elements of the second or third input as the first says."""
    dtype = known_dtype(ctx, (1, 2))
    if text(ctx, "auto_broadcast", "numpy") == "pdpd":
        # Condition and third input are fitted to the second.
        return [tensor(dtype, dims_of(ctx, 1))]
    shape = broadcast(ctx, range(3))
    operands = operand_items(ctx, shape, range(3))
    if operands is not None:
        static, rows = operands
        ctx.set_contents(0, Contents(static, tuple(chosen(*row) for row in zip(*rows, strict=True))))
    return [tensor(dtype, shape)]


@layer("FakeQuantize", "FakeConvert")
def fake_quantize(ctx: NodeContext) -> Sequence[ValueType]:
    """The data, rounded to levels; limits broadcast with it."""
    if ctx.node.op_type == "FakeConvert":
        return [tensor(ctx.input(0).dtype, dims_of(ctx, 0))]
    return [tensor(ctx.input(0).dtype, broadcast(ctx, range(5)))]


@layer("Convert", gives=(None,))
def convert(ctx: NodeContext) -> Sequence[ValueType]:
    """The input in the element type of an attribute."""
    target, dims = element_type(ctx, "destination_type", None), dims_of(ctx, 0)
    if target is None or _are_weights(ctx.input(0).dtype, target, static_count(dims)):
        return [tensor(target, dims)]
    return [converted(ctx, target)]


def _are_weights(source: str | None, target: str, count: int | None) -> bool:
    """True for large float constants that stay floats, such as weights in half precision: no shape is computed from
    them.
    """
    is_whole = exact.is_integer_type(source) or exact.is_integer_type(target)
    return not is_whole and (count is None or count > _FEW)


@layer("ConvertLike", gives=(1,))
def convert_like(ctx: NodeContext) -> Sequence[ValueType]:
    """The input in the element type of the second input."""
    target = ctx.input(1).dtype
    return [tensor(None, dims_of(ctx, 0)) if target is None else converted(ctx, target)]


@layer("ConvertPromoteTypes", gives=(None, None))
def promoted(ctx: NodeContext) -> Sequence[ValueType]:
    """Both inputs in one element type, which is what the ports say unless both have it."""
    first, second = ctx.input(0).dtype, ctx.input(1).dtype
    return [tensor(first if first == second else None, dims_of(ctx, index)) for index in (0, 1)]


@layer("Bucketize", "SearchSorted", gives=(None,))
def positions_among(ctx: NodeContext) -> Sequence[ValueType]:
    """Where each value belongs among sorted ones: those of the second input, or for SearchSorted of the first."""
    values = 1 if ctx.node.op_type == "SearchSorted" else 0
    return [tensor(element_type(ctx, "output_type", "int64"), dims_of(ctx, values))]
