"""Equal, Greater, Less, IsNaN, IsInf, Sign, Max, Min and Where: below the opset at which they began to exist, to
broadcast, or to take an element type.

`wider_types` computes narrow integers and 16-bit floats in wider types. This file handles the types that no older
operator compares.
"""

from __future__ import annotations

import math
from functools import partial, reduce

from splitgraph.conversion.operators.broadcasting import align_at_axis, limit_broadcast, repeat_to_one_shape
from splitgraph.conversion.operators.predicates import (
    SHAPES_HINT,
    limited_broadcast_is_numpy,
    numpy_broadcast_is_limited,
    shapes_are_equal,
)
from splitgraph.conversion.operators.registry import always, changed, downward, unchanged, upward, where
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.writing.reshaping import reshape
from splitgraph.conversion.writing.shape_nodes import (
    FLOATS,
    as_int64,
    flat,
    has_no_zero,
    replace_by_cast,
    static_shape,
    typed,
)
from splitgraph.deferred import np
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NUMBERS, MAX_WRITTEN

_WIDE = {"int64", "uint64"}

unchanged("GreaterOrEqual LessOrEqual", 16)

# Equal, Greater, Less -----------------------------------------------------------------------------------------------

unchanged("Equal", 11, 13, 19)
unchanged("Greater Less", 9, 13)
changed(
    "Equal Greater Less",
    7,
    "below it, the second input broadcasts only with broadcast=1, along `axis`; from then on as in NumPy",
    up=limited_broadcast_is_numpy,
    down=numpy_broadcast_is_limited,
    hint=SHAPES_HINT,
)
upward("Equal Greater Less", 7)(align_at_axis)
downward("Equal Greater Less", 7)(limit_broadcast)


@downward("Greater Less", 9)
def compare_long_integers(node: NodeAtBoundary) -> None:
    """Compares 64-bit integers as float64, because Greater and Less take floats only below opset 9. Where float64
    rounds both to one number, their difference is small, and its sign decides.
    """
    dtype = node.known_dtype()
    if dtype not in _WIDE:
        raise Inexact(f"nothing compares {dtype} {node.side}")
    one, other = node.inputs if node.op_type == "Less" else reversed(node.inputs)
    left, right = as_int64(node, one, "signed"), as_int64(node, other, "signed")
    signed = _less_int64(node, left, right)
    if dtype == "int64":
        node.replace("Identity", [signed])
        return
    zero = node.constant(0.0, "zero", np.float64)
    signs = [_less(node, node.write("Cast", [name], "real", to=TensorProto.DOUBLE), zero) for name in (left, right)]
    node.replace("Xor", [signed, node.write("Xor", signs, "signs_differ")])


def _less_int64(node: NodeAtBoundary, one: str, other: str) -> str:
    """Compares int64 numbers."""
    reals = [node.write("Cast", [name], "real", to=TensorProto.DOUBLE) for name in (one, other)]
    difference = node.write("Cast", [node.write("Sub", [one, other], "difference")], "real", to=TensorProto.DOUBLE)
    close = node.write("Not", [node.write("Greater", reals, "greater")], "not_greater")
    below = _less(node, difference, node.constant(0.0, "zero", np.float64))
    return node.write("Or", [_less(node, *reals), node.write("And", [close, below], "just_below")], "is_less")


@downward("Equal", 11)
def compare_floats(node: NodeAtBoundary) -> None:
    """Writes Equal of floats, which exists from 11 on: two floats are equal when none is less than the other and none
    is NaN. Their sum is NaN when one of them is, and when they are opposite infinities.
    """
    dtype = node.known_dtype()
    if dtype not in FLOATS:
        raise Inexact(f"nothing compares {dtype} {node.side}")
    one, other = (_in_float32(node, name, dtype) for name in node.inputs)
    apart = node.write("Or", [_less(node, one, other), node.write("Greater", [one, other], "greater")], "apart")
    is_number = _is_number(node, node.write("Add", [one, other], "sum"), "float32" if dtype == "float16" else dtype)
    node.replace("And", [node.write("Not", [apart], "not_apart"), is_number])


@downward("Equal", 19)
def compare_strings(node: NodeAtBoundary) -> None:
    """Numbers the strings of both inputs with Unique, which gives equal strings one number, and compares the
    numbers.
    """
    dtype = node.known_dtype()
    if dtype != "string":
        raise Inexact(f"nothing compares {dtype} {node.side}")
    flats = [flat(node, name, "strings") for name in node.inputs]
    both = node.write("Concat", flats, "all_strings", axis=0)
    _, _, numbers = node.write_many("Unique", [both], ["unique", "first_places", "numbers"])
    count = node.write("Shape", flats[:1], "count")
    bounds = (node.constant([0], "start"), count), (count, node.constant([2**63 - 1], "end"))
    numbered = []
    for name, (start, end) in zip(node.inputs, bounds, strict=True):
        own = node.write("Slice", [numbers, start, end], "own_numbers")
        shape = node.write("Shape", [name], "shape")
        numbered.append(reshape(node, own, shape, "numbered", dense=has_no_zero(node, name)))
    node.replace("Equal", numbered)


# IsNaN --------------------------------------------------------------------------------------------------------------

unchanged("IsNaN", 13, 20)


@downward("IsNaN", 9)
def write_is_nan(node: NodeAtBoundary) -> None:
    """Writes IsNaN: every number is less than infinity or greater than minus infinity, NaN is neither."""
    dtype = node.known_dtype()
    node.replace("Not", [_is_number(node, _in_float32(node, node.inputs[0], dtype), _no_float16(dtype))])


def _no_float16(dtype: str) -> str:
    """Gives the type in which the comparison is computed."""
    return "float32" if dtype == "float16" else dtype


# IsInf --------------------------------------------------------------------------------------------------------------

unchanged("IsInf", 20)


@downward("IsInf", 10)
def write_is_inf(node: NodeAtBoundary) -> None:
    """Writes IsInf: only an infinity is beyond the greatest finite number."""
    dtype = node.known_dtype()
    data, limit = node.inputs[0], float(np.finfo(dtype).max)
    found = []
    if node.known_value_or_default("detect_positive"):
        found.append(node.write("Greater", [data, node.tensor(typed([limit], dtype), "largest")], "positive"))
    if node.known_value_or_default("detect_negative"):
        found.append(_less(node, data, node.tensor(typed([-limit], dtype), "smallest")))
    if len(found) == 2:
        node.replace("Or", found)
    elif found:
        # The node becomes the comparison itself.
        last = node.before.pop()
        node.replace(last.op_type, last.inputs)
    else:
        node.replace("Less", [data, data])


# Sign ---------------------------------------------------------------------------------------------------------------

unchanged("Sign", 13)


@downward("Sign", 9)
def write_sign(node: NodeAtBoundary) -> None:
    """Writes Sign: 1 where the number is greater than 0, less 1 where it is less than 0."""
    dtype, data = node.known_dtype(), node.inputs[0]
    if dtype not in FLOATS:
        # Rounding to float64 keeps the sign of every integer.
        data = node.write("Cast", [data], "real", to=TensorProto.DOUBLE)
    zero = node.constant(0.0, "zero", dtype if dtype in FLOATS else np.float64)
    above = node.write("Cast", [node.write("Greater", [data, zero], "is_above")], "above", to=DTYPE_NUMBERS[dtype])
    below = node.write("Cast", [_less(node, data, zero)], "below", to=DTYPE_NUMBERS[dtype])
    node.replace("Sub", [above, below])


# Max, Min -----------------------------------------------------------------------------------------------------------

unchanged("Max Min", 6, 12, 13)
changed(
    "Max Min",
    8,
    "below it, all inputs must have the same shape",
    up=always,
    down=where(shapes_are_equal),
    hint=SHAPES_HINT,
)
downward("Max Min", 8)(repeat_to_one_shape)


@downward("Max Min", 12)
def choose_extreme_of_long_integers(node: NodeAtBoundary) -> None:
    """Chooses the greater or less of two 64-bit integers by a comparison. Max and Min take no integers below
    opset 12.
    """
    dtype = node.known_dtype()
    if dtype not in _WIDE:
        raise Inexact(f"nothing finds the {node.op_type.lower()}imum of {dtype} {node.side}")
    names = [as_int64(node, name, "signed") for name in node.inputs]
    choose = partial(_choose, node, dtype, node.op_type == "Max")
    first, *rest = names
    result = reduce(choose, rest, first)
    replace_by_cast(node, result, "int64", dtype)


def _choose(node: NodeAtBoundary, dtype: str, largest: bool, one: str, other: str) -> str:
    """Chooses the greatest or least of two."""
    smaller = _less(node, one, other)
    if dtype == "uint64":
        zero = node.constant(0, "zero")
        signs = node.write("Xor", [_less(node, one, zero), _less(node, other, zero)], "signs_differ")
        # Read as int64, numbers with the highest bit come before all others; read as uint64, after them.
        smaller = node.write("Xor", [smaller, signs], "smaller")
    return node.write("Where", [smaller, *((other, one) if largest else (one, other))], "chosen")


# Where --------------------------------------------------------------------------------------------------------------

unchanged("Where", 16)


@downward("Where", 9)
def choose_by_gather(node: NodeAtBoundary) -> None:
    """Writes Where as Gather from the elements of both inputs in one dimension. The shapes tell where each element of
    the result comes from.
    """
    known = [static_shape(node, name) for name in node.inputs]
    shapes = [shape for shape in known if shape is not None]
    if len(shapes) < 3:
        raise Inexact("choosing elements needs to know where they are", "give the inputs static shapes")
    shape = np.broadcast_shapes(*shapes)
    if 0 in shape:
        raise Inexact("a dimension is 0, which Reshape cannot give there")
    if math.prod(shape) > MAX_WRITTEN or any(math.prod(own) > MAX_WRITTEN for own in shapes):
        raise Inexact(f"the places of more than {MAX_WRITTEN:,} elements are not written out")
    places, first, second = (
        np.broadcast_to(np.arange(math.prod(own)).reshape(own), shape).reshape(-1) for own in shapes
    )
    second = second + math.prod(shapes[1])
    flat = node.constant([-1], "flat_shape")
    condition, chosen, other = (node.write("Reshape", [name, flat], "flat") for name in node.inputs)
    truth = node.write("Cast", [condition], "truth", to=TensorProto.INT64)
    truths = node.write("Gather", [truth, node.constant(places, "places")], "truths", axis=0)
    moved = node.write("Mul", [truths, node.constant(first - second, "way")], "moved")
    index = node.write("Add", [moved, node.constant(second, "second")], "index")
    both = node.write("Concat", [chosen, other], "both", axis=0)
    found = node.write("Gather", [both, index], "gathered", axis=0)
    node.replace("Reshape", [found, node.constant(shape, "shape")])


# Helpers of several operators ---------------------------------------------------------------------------------------


def _less(node: NodeAtBoundary, one: str, other: str) -> str:
    """Emits Less."""
    return node.write("Less", [one, other], "less")


def _is_number(node: NodeAtBoundary, data: str, dtype: str) -> str:
    """Tells where floats are no NaN."""
    below = _less(node, data, node.constant(np.inf, "infinity", dtype))
    above = node.write("Greater", [data, node.constant(-np.inf, "minus_infinity", dtype)], "above")
    return node.write("Or", [below, above], "is_number")


def _in_float32(node: NodeAtBoundary, name: str, dtype: str) -> str:
    """Casts float16 to float32, because many runtimes never compared float16."""
    return node.write("Cast", [name], "float32", to=TensorProto.FLOAT) if dtype == "float16" else name
