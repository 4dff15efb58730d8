"""Add, Sub, Mul, Div, And, Or, Xor, Sum, Mean, Gemm and PRelu: broadcasting is limited below opset 7 (8 for Sum and
Mean), and follows NumPy from then on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.registry import (
    SHAPES_HINT,
    always,
    changed,
    downward,
    edited_downward,
    edited_upward,
    exact,
    shapes_are_equal,
    unchanged,
    upward,
    where,
)
from splitgraph.dim import Dim, DimLike
from splitgraph.inference.rules.broadcasting import fits_into
from splitgraph.model.attributes import UNRESOLVED
from splitgraph.model.value_type import Shape

_BINARY = "Add Sub Mul Div And Or Xor"

# The operator that gives the same with exchanged operands.
_MIRRORED = {op: op for op in ("Add", "Mul", "And", "Or", "Xor", "Equal")} | {"Greater": "Less", "Less": "Greater"}

# A dimension: a number, symbolic, or None where it is unknown.
Size = int | Dim | None

# Add, Sub, Mul, Div, And, Or, Xor -----------------------------------------------------------------------------------

unchanged("Add Sub Mul Div", 6, 13, 14)


def broadcasts_as_numpy_from_7(operators: str) -> None:
    """Decide about boundary 7 of binary operators, which are in several families."""
    changed(
        operators,
        7,
        "below it, the second input broadcasts only with broadcast=1, along `axis`; from then on as in NumPy",
        up=_limited_broadcast_is_numpy,
        down=_numpy_broadcast_is_limited,
        hint=SHAPES_HINT,
    )
    upward(operators, 7)(_align_at_axis)
    downward(operators, 7)(_limit_broadcast)


def _limited_broadcast_is_numpy(node: NodeAtBoundary) -> None:
    """Keep a node when its limited broadcasting gives the same under NumPy's rules: without `axis`, or with an `axis`
    that aligns B with the last dimensions of A. Drop both attributes.
    """
    broadcast = node.value_or_default("broadcast")
    if broadcast is UNRESOLVED:
        raise Inexact
    if broadcast and node.has("axis"):
        rank_a, rank_b = node.rank(0), node.rank(1)
        if rank_a is None or rank_b is None or node.value("axis") != rank_a - rank_b:
            raise Inexact
    node.drop("broadcast", "axis", why="NumPy broadcasting gives the same from opset 7 on")


def _numpy_broadcast_is_limited(node: NodeAtBoundary) -> None:
    """Keep a node when its NumPy broadcasting is also limited broadcasting: equal shapes, or a B that is one element or
    a suffix of A's shape.
    """
    if node.shapes_are_equal():
        return
    shape_a, shape_b = node.shape(0), node.shape(1)
    if shape_b != ():
        if shape_a is None or shape_b is None or len(shape_b) > len(shape_a):
            raise Inexact
        suffix = shape_a[len(shape_a) - len(shape_b) :]
        is_suffix = all(dim is not None and dim == size for dim, size in zip(shape_b, suffix, strict=True))
        if not is_suffix and any(dim != 1 for dim in shape_b):
            raise Inexact
    node.set("broadcast", 1, "below opset 7 broadcasting is off unless it is asked for")


def _align_at_axis(node: NodeAtBoundary) -> None:
    """Append dimensions of 1 to B. Below 7, `axis` says which dimension of A the first dimension of B is; NumPy aligns
    the last dimensions.
    """
    axis, rank_a, rank_b = node.known_value("axis"), node.known_rank(0), node.known_rank(1)
    if node.known_value_or_default("broadcast") == 0 or axis is None or _is_one_element(node.shape(1)):
        behind = 0
    elif axis < 0:
        behind = -rank_b - axis
    else:
        behind = rank_a - rank_b - axis
    if behind < 0 or rank_b > rank_a or (axis is not None and axis < 0 < behind):
        raise Inexact(f"axis {axis} does not say where {rank_b} dimensions belong among {rank_a}")
    node.drop("broadcast", "axis", why="NumPy broadcasting gives the same from opset 7 on")
    if behind:
        axes = list(range(rank_b, rank_b + behind))
        node.inputs[1] = node.write("Unsqueeze", [node.inputs[1]], "aligned", axes=axes)


def _limit_broadcast(node: NodeAtBoundary) -> None:
    """Write a node that broadcasts as in NumPy for opset 6, where only B broadcasts, to successive dimensions of A.

    The operands are exchanged if only A can broadcast in this way. Tile repeats A to the shape of the result. Squeeze
    removes the dimensions of 1 around the dimensions of B that must match A; if these match no successive dimensions,
    Tile repeats B, too.
    """
    shape_a, shape_b = _with_wider_operand_first(node)
    why = f"broadcasting is limited {node.side}"
    f, whole = Formula(node), _broadcast_shape(shape_a, shape_b)
    sizes = _common_sizes(f, list(node.inputs), [shape_a, shape_b])
    if not _are_equal(shape_a, whole):
        node.inputs[0] = tiled(f, 0, shape_a, whole, sizes)
    place = _place_within(whole, shape_b)
    if place is None:
        node.inputs[1] = tiled(f, 1, shape_b, whole, sizes)
        return
    axis, ones = place
    if ones:
        node.inputs[1] = f.input(1).squeezed(*ones).name
    rank_left = len(shape_b) - len(ones)
    if rank_left < len(whole) or not _are_equal(shape_b, whole):
        node.set("broadcast", 1, why)
    # Without `axis`, B belongs to the last dimensions of A.
    if rank_left and axis + rank_left < len(whole):
        node.set("axis", axis, why)


broadcasts_as_numpy_from_7(_BINARY)


def _with_wider_operand_first(node: NodeAtBoundary) -> tuple[tuple[Size, ...], tuple[Size, ...]]:
    """Exchange the operands if only A fits into B and the operator allows it; return the shapes of A and B."""
    shape_a, shape_b = _known_shape(node, 0), _known_shape(node, 1)
    if (
        _place_within(shape_a, shape_b) is None
        and _place_within(shape_b, shape_a) is not None
        and node.op_type in _MIRRORED
    ):
        node.op_type = _MIRRORED[node.op_type]
        node.inputs.reverse()
        return shape_b, shape_a
    return shape_a, shape_b


def _place_within(whole: Sequence[Size], part: Sequence[Size]) -> tuple[int, list[int]] | None:
    """Find where a shape, without the 1s around it, lies in another shape, and return the axes of these 1s; None where
    it lies nowhere.
    """
    if len(part) > len(whole):
        return None
    first, last = 0, len(part)
    while first < last and part[first] == 1:
        first += 1
    while last > first and part[last - 1] == 1:
        last -= 1
    start = len(whole) - len(part) + first
    if not all(map(_same, part[first:last], whole[start : start + last - first])):
        return None
    return start, [axis for axis in range(len(part)) if not first <= axis < last]


def _broadcast_shape(left: tuple[Size, ...], right: tuple[Size, ...]) -> tuple[Size, ...]:
    """Return the shape to which both broadcast; None for a dimension that is known only at run time."""
    rank = max(len(left), len(right))
    pairs = zip((1,) * (rank - len(left)) + left, (1,) * (rank - len(right)) + right, strict=True)
    return tuple(a if b == 1 or _same(a, b) else b if a == 1 else None for a, b in pairs)


def _common_sizes(f: Formula, names: Sequence[str], shapes: Sequence[Sequence[Size]]) -> Callable[[], Term]:
    """Return a function that computes the shape to which all inputs broadcast: each input adds its size where the
    inputs before it have 1.
    """

    def sizes() -> Term:
        rank, common = max(map(len, shapes)), None
        for name, shape in zip(names, shapes, strict=True):
            front = [f.number([1] * (rank - len(shape)))] if len(shape) < rank else []
            size = f.joined([*front, f.shape(name)])
            common = size if common is None else common + _is_one(common, rank) * (size - common)
        assert common is not None
        return common

    return sizes


# Sum, Mean ----------------------------------------------------------------------------------------------------------

unchanged("Sum Mean", 6, 13)
changed(
    "Sum Mean",
    8,
    "below it, all inputs must have the same shape",
    up=always,
    down=where(shapes_are_equal),
    hint=SHAPES_HINT,
)


@downward("Sum Mean", 8)
def add_in_turn(node: NodeAtBoundary) -> None:
    """Add the inputs from left to right with Add, which broadcasts from 7 on; divide by their number for Mean. Below 8,
    Sum and Mean take inputs of one shape only.
    """
    f = Formula(node)
    total = reduce(Term.__add__, [f.input(index) for index in range(len(node.inputs))])
    if node.op_type == "Mean":
        total = total / f.number(len(node.inputs), node.known_dtype(0))
    f.give(total)


# Gemm ---------------------------------------------------------------------------------------------------------------

unchanged("Gemm", 6, 9, 11, 13)
changed(
    "Gemm",
    7,
    "below it, C broadcasts only with broadcast=1, and only when it is one element or a row",
    hint=SHAPES_HINT,
)


@edited_upward("Gemm", 7)
def broadcast_of_c_is_numpy(node: NodeAtBoundary) -> None:
    """Keep every node: C is one element or a suffix, which NumPy broadcasts in the same way. Drop broadcast."""
    node.drop("broadcast", why="C always broadcasts from opset 7 on")


@edited_downward("Gemm", 7)
def c_has_shape_of_result_or_row(node: NodeAtBoundary) -> None:
    """Keep a node when C has the shape of the result, or is a scalar or a row. Sets broadcast for the latter."""
    shape = node.shape(2)
    if shape is None:
        raise Inexact
    if len(shape) > 1:
        if not (None not in shape and shape == _gemm_shape(node)):
            raise Inexact
        return
    node.set("broadcast", 1, "below opset 7 broadcasting is off unless it is asked for")


def _gemm_shape(node: NodeAtBoundary) -> Shape | None:
    """Return the shape of A times B, None where it is unknown."""
    dims: list[DimLike | None] = []
    for index, (name, kept) in enumerate((("transA", 0), ("transB", 1))):
        transposed, shape = node.value(name, 0), node.shape(index)
        if transposed is UNRESOLVED or shape is None or len(shape) != 2:
            return None
        dims.append(shape[1 - kept if transposed else kept])
    return tuple(dims)


@downward("Gemm", 7)
def limit_broadcast_of_c(node: NodeAtBoundary) -> None:
    """Squeeze a C that is a row in the form of a matrix, and repeat other ones. Below 7, C has the shape of the result,
    or broadcasts as a row or one element.
    """
    trans_a, trans_b = node.known_value_or_default("transA"), node.known_value_or_default("transB")
    _, _, shape_c = (_known_shape(node, index) for index in range(3))
    whole = _gemm_shape(node)
    if whole is None:
        raise Inexact("A and B must be matrices")
    if _are_equal(shape_c, whole):
        return
    f = Formula(node)
    if len(shape_c) == 2 and shape_c[0] == 1:
        node.inputs[2] = f.input(2).squeezed(0).name
        node.set("broadcast", 1, f"C is of the shape of the result {node.side} unless it is set")
        return
    places = [(0, 1 if trans_a else 0), (1, 0 if trans_b else 1)]
    node.inputs[2] = tiled(
        f, 2, shape_c, whole, lambda: f.joined([f.shape(node.inputs[index]).take([axis]) for index, axis in places])
    )


@downward("Gemm", 11)
def add_a_zero_c(node: NodeAtBoundary) -> None:
    """Add a C of -0, which changes nothing, not even -0, whatever beta is. Below 11, C is required."""
    if node.uses_input(2):
        raise Inexact("its element type is not allowed below it")
    dtype = node.known_dtype(0)
    node.drop("beta", why="without C it has no effect")
    node.inputs[2:] = [node.constant(-0.0, "c", dtype)]


# PRelu --------------------------------------------------------------------------------------------------------------

unchanged("PRelu", 6, 9, 16)
changed(
    "PRelu",
    7,
    "below it, a slope of length C is for each channel; from then on it broadcasts as in NumPy",
    hint=SHAPES_HINT,
)


@exact("PRelu", 7)
def slope_is_shared_or_last(node: NodeAtBoundary) -> bool:
    """Return True when the slope is one element, or one for each channel where the channels are the last axis."""
    return node.shape(1) in ((), (1,)) or (node.rank(0) == 2 and node.rank(1) == 1)


@upward("PRelu", 7)
def align_slope_of_channels(node: NodeAtBoundary) -> None:
    """Append dimensions of 1 to the slope. Below 7, a slope of length C is for each channel."""
    rank, rank_slope = node.known_rank(0), node.known_rank(1)
    shape, slope = node.shape(0), node.shape(1)
    assert shape is not None and slope is not None
    if rank_slope == 1 and rank >= 2:
        axes = list(range(1, rank - 1))
        node.inputs[1] = node.write("Unsqueeze", [node.inputs[1]], "slope", axes=axes) if axes else node.inputs[1]
    elif not (_is_one_element(slope) or _are_equal(slope, shape) or _is_for_channels(slope, rank)):
        raise Inexact("a slope of this shape is neither one element nor one for each channel")


def _is_for_channels(slope: Sequence[Size], rank: int) -> bool:
    """Return True when a slope, aligned as in NumPy, differs from 1 along the second dimension of the input only."""
    channel = len(slope) - rank + 1
    return channel >= 0 and rank >= 2 and all(dim == 1 for axis, dim in enumerate(slope) if axis != channel)


@downward("PRelu", 7)
def limit_slope(node: NodeAtBoundary) -> None:
    """Squeeze a slope for each channel. Repeat any other slope to the shape of the input, and reshape both so that
    every element is a channel.
    """
    shape, slope = _known_shape(node, 0), _known_shape(node, 1)
    if len(slope) == 1 and len(shape) > 2 and slope[0] == shape[1] and not fits_into(slope, shape):
        # Engines read what does not broadcast as a slope for each channel, which it is below 7.
        return
    if _is_for_channels(slope, len(shape)):
        channel = len(slope) - len(shape) + 1
        ones = [axis for axis in range(len(slope)) if axis != channel]
        node.inputs[1] = node.write("Squeeze", [node.inputs[1]], "slope", axes=ones)
        return
    f = Formula(node)
    repeated, restored = f.input(1), f.input(0).shape()
    if not _are_equal(slope, shape):
        repeated = f.value(tiled(f, 1, slope, shape, lambda: restored), repeated.dtype)
    node.inputs[:] = [f.input(0).reshape(1, -1).name, repeated.reshape(-1).name]
    f.follow(0, lambda activated: activated.shaped(restored))


# Helpers of several operators ---------------------------------------------------------------------------------------


def repeat_to_one_shape(node: NodeAtBoundary) -> None:
    """Repeat inputs with Tile until all have one shape, as they must below 8."""
    shapes = [_known_shape(node, index) for index in range(len(node.inputs))]
    f, whole = Formula(node), reduce(_broadcast_shape, shapes)
    sizes = _common_sizes(f, list(node.inputs), shapes)
    for index, shape in enumerate(shapes):
        if not _are_equal(shape, whole):
            node.inputs[index] = tiled(f, index, shape, whole, sizes)


def _known_shape(node: NodeAtBoundary, index: int) -> tuple[Size, ...]:
    """Return the shape of an input; raise Inexact when the rank is unknown."""
    node.known_rank(index)
    shape = node.shape(index)
    return () if shape is None else tuple(shape)


def _are_equal(left: Sequence[Size], right: Sequence[Size]) -> bool:
    """Return True when two shapes are known to be equal."""
    return len(left) == len(right) and all(map(_same, left, right))


def _same(left: Size, right: Size) -> bool:
    """Return True when two dimensions are known to be equal."""
    return left is not None and left == right


def tiled(f: Formula, index: int, shape: Sequence[Size], whole: Sequence[Size], sizes: Callable[[], Term]) -> str:
    """Repeat an input to a shape to which it broadcasts, and return the name of the result. sizes: computes this shape
    where it is known only at run time.
    """
    data, missing, rank = f.input(index), len(whole) - len(shape), len(whole)
    if missing:
        data = data.unsqueezed(*range(missing))
    padded = (1,) * missing + tuple(shape)
    counts = [1 if _same(dim, size) else size if dim == 1 else None for dim, size in zip(padded, whole, strict=True)]
    repeats = [count for count in counts if isinstance(count, int)]
    if len(repeats) == len(counts):
        return f.apply("Tile", data, f.number(repeats)).name
    ones = f.number([1] * rank)
    return f.apply("Tile", data, ones + _is_one(f.shape(data.name), rank) * (sizes() - ones)).name


def _is_one(sizes: Term, rank: int) -> Term:
    """Tell at run time which sizes are 1, as int64."""
    return sizes.equals(sizes.formula.number([1] * rank)).cast("int64")


def _is_one_element(shape: Shape | None) -> bool:
    """Return True when a shape is known to hold one element."""
    return shape is not None and all(dim == 1 for dim in shape)
