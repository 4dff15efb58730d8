"""Functions with which rules read the inputs and attributes of a node, and report an invalid node."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, TypeAlias, cast, overload

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext, Relation, Rule, rule
from splitgraph.model.deferred import np
from splitgraph.model.schemas.history import meant_version
from splitgraph.model.value_type import (
    DTYPE_NAMES,
    MAX_ITEMS,
    MAX_RANK,
    MAX_UNKNOWN,
    Contents,
    ValueType,
    tensor,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray


Dims = tuple[DimLike, ...]
# NumPy is imported by what moves elements along several axes: most shape arithmetic is on vectors, and does without.
Positions: TypeAlias = "NDArray[np.int64]"


class InvalidNode(Exception):
    """The node is invalid for every input; the message says what was found and what is allowed."""


class FailsWhenRun(InvalidNode):
    """The node fails for every input, but no runtime sees that before it runs the node."""


def operator(*op_types: str, gives: Sequence[int | str | None] = (0,), domain: str = "") -> Callable[[Rule], Rule]:
    """Register a rule that may raise InvalidNode, which becomes a finding.

    gives: the element type of each output of an invalid node: that of the input of this number, or this type. If it is
    empty, nothing is said of the outputs, which may be no tensors.
    """

    def register(function: Rule) -> Rule:
        @wraps(function)
        def guarded(ctx: NodeContext) -> Sequence[ValueType] | None:
            try:
                return function(ctx)
            except InvalidNode as fault:
                ctx.find("SG302", f"{label(ctx)}: {fault}", when_run=isinstance(fault, FailsWhenRun))
                return [tensor(ctx.input(given).dtype if isinstance(given, int) else given, None) for given in gives]

        return rule(*op_types, domain=domain)(guarded)

    return register


def label(ctx: NodeContext) -> str:
    """Return the operator with its version, as messages begin."""
    return f"{ctx.node.op_type}-{ctx.since_version}"


def tolerate(
    ctx: NodeContext, fault: str, reading: str = "alike", run_by: str = "OpenVINO and the reference evaluator"
) -> None:
    """Report as a warning a fault of the node that some engines run; reading: how they run it."""
    ctx.tolerate("SG302", f"{label(ctx)}: {fault}", run_by, reading)


def expect(ctx: NodeContext, lhs: DimLike, relation: Relation, rhs: DimLike, fault: Callable[[], str]) -> None:
    """Record that `lhs == rhs` or `lhs >= rhs` must hold, and report a finding if it never can. found: makes the text
    that says what is wrong; it is called only then, because spelling a dimension takes longer than comparing it. Raise
    InvalidNode if both sides are numbers.
    """
    if isinstance(lhs, int) and isinstance(rhs, int):
        if lhs < rhs or (lhs > rhs and relation == "=="):
            raise InvalidNode(fault())
        return
    ctx.require(lhs, relation, rhs, message=lambda: f"{label(ctx)}: {fault()}")


def dims_of(ctx: NodeContext, index: int) -> Dims | None:
    """Return the dimensions of an input tensor; None if its rank is unknown. Raise InvalidNode if it is no tensor."""
    known = ctx.input(index)
    if known.kind == "tensor":
        return cast("Dims | None", known.shape)
    if known.kind == "unknown":
        return None
    raise InvalidNode(f"input {index} is a {known.kind}, not a tensor")


def dims_of_rank(ctx: NodeContext, index: int, rank: int) -> Dims | None:
    """Return the dimensions of an input that must have this rank; None if they are unknown. Raise InvalidNode for
    another rank.
    """
    dims = dims_of(ctx, index)
    if dims is not None and len(dims) != rank:
        raise InvalidNode(f"input {index} has rank {len(dims)}; it must have rank {rank}")
    return dims


def ranked_dims(ctx: NodeContext, index: int, rank: int) -> tuple[DimLike | None, ...]:
    """Return the dimensions of an input that must have this rank, None for each where they are unknown. Raise
    InvalidNode for another rank.
    """
    dims = dims_of_rank(ctx, index, rank)
    return (None,) * rank if dims is None else dims


def like_input(ctx: NodeContext, index: int = 0) -> ValueType:
    """Return the type of an input as that of an output. Raise InvalidNode if it is no tensor."""
    return tensor(ctx.input(index).dtype, dims_of(ctx, index))


def int_attribute(ctx: NodeContext, name: str, default: int) -> int:
    """Return an integer attribute. Raise InvalidNode if it is something else."""
    value = ctx.attribute(name, default)
    if not isinstance(value, int):
        raise InvalidNode(f"attribute {name!r} must be an integer")
    return value


def ints_attribute(ctx: NodeContext, name: str) -> tuple[int, ...] | None:
    """Return an attribute that is a list of integers; None if it is absent. Raise InvalidNode if it is something
    else.
    """
    value = ctx.attribute(name)
    if value is not None and not (isinstance(value, tuple) and all(isinstance(item, int) for item in value)):
        raise InvalidNode(f"attribute {name!r} must be a list of integers")
    return cast("tuple[int, ...] | None", value)


def input_of(ctx: NodeContext, name: str) -> int | None:
    """Return the input that an argument is in the version of the node; None where it is an attribute, or absent."""
    version = meant_version(ctx.node.op_type, ctx.since_version)
    formals = () if version is None else version.inputs
    return next((place for place, formal in enumerate(formals) if formal.name.lower() == name), None)


def argument(ctx: NodeContext, name: str) -> tuple[DimLike | None, ...] | None:
    """Return a list that is an attribute or an input, whichever it is in the version of the node: None for an unknown
    element, and for a list that is left out or whose length is unknown. Raise InvalidNode if it is no list.
    """
    position = input_of(ctx, name)
    if position is None:
        return ints_attribute(ctx, name)
    return vector_dims(ctx, position) if ctx.has_input(position) else None


def has_argument(ctx: NodeContext, name: str) -> bool:
    """Return True if an argument is given, as an attribute or an input."""
    position = input_of(ctx, name)
    return ctx.has_attribute(name) if position is None else ctx.has_input(position)


def dtype_attribute(ctx: NodeContext, name: str, default: str | None) -> str | None:
    """Return the element type that an integer attribute names; `default` if it is absent or 0. Raise InvalidNode for a
    number that is no element type.
    """
    number = int_attribute(ctx, name, 0)
    if number and number not in DTYPE_NAMES:
        raise InvalidNode(f"attribute {name!r} is {number}, which is not an element type")
    return DTYPE_NAMES[number] if number else default


def exact_quotient(ctx: NodeContext, dim: DimLike, parts: int, what: str) -> DimLike:
    """Divide a dimension by a number of parts. Raise InvalidNode if there is a remainder."""
    if parts < 1:
        raise InvalidNode(f"cannot divide {what} by {parts}")

    expect(ctx, dim % parts, "==", 0, lambda: f"cannot divide {what}: {dim} is not divisible by {parts}")
    return dim // parts


def normal_axis(axis: int, rank: int, name: str = "axis", *, end_allowed: bool = False) -> int:
    """Return the axis counted from the front. end_allowed: the rank is a valid axis, too. Raise InvalidNode if it is
    out of range.
    """
    last = rank if end_allowed else rank - 1
    if not -rank <= axis <= last:
        raise InvalidNode(f"{name} {axis} is out of range for a tensor of rank {rank}; it must be in [{-rank}, {last}]")
    return axis + rank if axis < 0 else axis


def check_axis(ctx: NodeContext, default: int, rank: int) -> None:
    """Raise InvalidNode if the attribute `axis` is out of range, for a node whose types do not depend on it. A
    reference to a function's attribute is left to the call.
    """
    if not ctx.is_unresolved("axis"):
        normal_axis(int_attribute(ctx, "axis", default), rank)


def normal_axes(axes: Sequence[int], rank: int) -> tuple[int, ...]:
    """Return distinct axes counted from the front. Raise InvalidNode if one is out of range or repeated."""
    normal = tuple(normal_axis(axis, rank) for axis in axes)
    if len(set(normal)) != len(normal):
        raise InvalidNode(f"axes {list(axes)} contain an axis twice")
    return normal


def vector_length(ctx: NodeContext, index: int) -> int | None:
    """Return the static length of a 1-D input; None if it is unknown or very large. Raise InvalidNode for another
    rank.
    """
    dims = dims_of_rank(ctx, index, 1)
    length = None if dims is None else dims[0]
    return length if isinstance(length, int) and length <= MAX_UNKNOWN else None


def vector_dims(ctx: NodeContext, index: int) -> tuple[DimLike | None, ...] | None:
    """Return the elements of a 1-D integer input, None for each that is unknown; None if even their number is
    unknown.
    """
    contents = ctx.contents(index)
    if contents is not None:
        if len(contents.shape) != 1:
            raise InvalidNode(f"input {index} has rank {len(contents.shape)}; it must have rank 1")
        return contents.dims
    length = vector_length(ctx, index)
    return None if length is None else (None,) * length


def scalar_dim(ctx: NodeContext, index: int) -> DimLike | None:
    """Return the only element of an integer input; None if it is unknown."""
    contents = ctx.contents(index)
    return contents.dims[0] if contents is not None and len(contents.items) == 1 else None


def static_count(dims: Sequence[DimLike | None] | None) -> int | None:
    """Return the number of elements if every dimension is static and the elements are few enough to be followed; else
    None.
    """
    if dims is None or len(dims) > MAX_RANK:
        return None
    count = 1
    for dim in dims:
        if not isinstance(dim, int):
            return None
        count *= dim
    return count if count <= MAX_ITEMS else None


def contents_or_unknown(ctx: NodeContext, index: int) -> Contents | None:
    """Return the contents of an input. All elements are unknown if only its small static shape is known."""
    contents = ctx.contents(index)
    if contents is not None:
        return contents
    dims = dims_of(ctx, index)
    count = static_count(dims)
    return None if count is None else Contents(cast("tuple[int, ...]", dims), (None,) * count)


def positions(contents: Contents) -> Positions:
    """Return the position of each element, in the shape of the tensor."""
    return np.arange(len(contents.items)).reshape(contents.shape)


def rearranged(contents: Contents, order: Positions) -> Contents:
    """Return the contents with the elements at the positions of `order`, in the shape of `order`."""
    items = contents.items
    return Contents(tuple(int(dim) for dim in order.shape), tuple(items[index] for index in order.reshape(-1).tolist()))


def at_most(ctx: NodeContext, *factors: DimLike, least: int = 0) -> DimLike:
    """Return a new dimension that is at most the product of others, and at least `least` if the product is."""
    made, most = ctx.fresh(), largest(ctx, factors)
    lows = [ctx.facts.range_of(dim)[0] or 0 for dim in factors]
    low = least if math.prod(max(low, 0) for low in lows) >= least else 0
    if most is not None or low:
        ctx.facts.tighten(str(made), low, None if most is None else max(most, low))
    return made


def largest(ctx: NodeContext, factors: Sequence[DimLike]) -> int | None:
    """Return the largest product of dimensions; None if there is no limit. Less is known of a product that is written
    out.
    """
    highs = [ctx.facts.range_of(dim)[1] for dim in factors]
    known = [max(high, 0) for high in highs if high is not None]
    if 0 in known:
        return 0
    return math.prod(known) if len(known) == len(highs) else None


@overload
def merged_dim(ctx: NodeContext, first: DimLike, second: DimLike, what: str) -> DimLike: ...
@overload
def merged_dim(ctx: NodeContext, first: DimLike | None, second: DimLike | None, what: str) -> DimLike | None: ...
def merged_dim(ctx: NodeContext, first: DimLike | None, second: DimLike | None, what: str) -> DimLike | None:
    """Return two dimensions that must be equal as one, the static one if any. Record that they are equal; beside an
    unknown one (None), the other is returned.
    """
    if first is None or second is None:
        return second if first is None else first
    if first == second:
        return first

    expect(ctx, first, "==", second, lambda: f"{what} must be equal, not {first} and {second}")
    return second if isinstance(second, int) else first


def expect_dims(ctx: NodeContext, index: int, wanted: Sequence[DimLike | None], name: str) -> None:
    """Record that an input has these dimensions, None for any, if it is given and its rank is known. Raise InvalidNode
    if it cannot have them.
    """
    dims = dims_of_rank(ctx, index, len(wanted)) if ctx.has_input(index) else None
    for axis, (dim, other) in enumerate(zip(dims or (), wanted, strict=False)):
        if other is not None:
            expect(
                ctx,
                dim,
                "==",
                other,
                partial("{} has dimension {} on axis {}; it must be {}".format, name, dim, axis, other),
            )


def equal_dims(ctx: NodeContext, shapes: Sequence[Dims | None]) -> Dims | None:
    """Return the dimensions of inputs that must have the same shape. Raise InvalidNode if they have not."""
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


def expect_one_element(ctx: NodeContext, index: int, name: str) -> None:
    """Raise InvalidNode if an input that must hold one number has another number of elements."""
    count = static_count(dims_of(ctx, index)) if ctx.has_input(index) else None
    if count not in (None, 1):
        raise InvalidNode(f"{name} has {count} elements; it must have one")


def known_dtype(ctx: NodeContext, indices: Sequence[int]) -> str | None:
    """Return the element type that these inputs share. Raise InvalidNode if two of them differ."""
    common: str | None = None
    for index in indices:
        dtype = ctx.input(index).dtype
        if dtype is None or dtype == common:
            continue
        if common is not None:
            raise InvalidNode(f"the inputs must have the same element type, not {common} and {dtype}")
        common = dtype
    return common


def differ(a: DimLike | None, b: DimLike | None) -> bool:
    """Return True for two numbers that are not equal; a symbol may be any number."""
    return isinstance(a, int) and isinstance(b, int) and a != b


def spelled_dims(dims: Sequence[object]) -> str:
    """Return a shape as messages show it."""
    return f"[{', '.join(map(str, dims))}]"
