"""Equal, Greater, Less, IsNaN, IsInf, Sign, Max, Min and Where: below the opset at which they began to exist, to
broadcast, or to take an element type.

`wider_types` computes narrow integers and 16-bit floats in wider types. This file handles the types that no older
operator compares.
"""

from __future__ import annotations

import math
from functools import partial, reduce

from splitgraph.contents import MAX_WRITTEN
from splitgraph.conversion.operators.broadcasting import align_at_axis, limit_broadcast, repeat_to_one_shape
from splitgraph.conversion.operators.predicates import (
    SHAPES_HINT,
    limited_broadcast_is_numpy,
    numpy_broadcast_is_limited,
    shapes_are_equal,
)
from splitgraph.conversion.operators.registry import always, changed, downward, unchanged, upward, where
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
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
from splitgraph.value_type import DTYPE_NUMBERS

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
def compare_long_integers(context: AdapterContext) -> None:
    """Compares 64-bit integers as float64, because Greater and Less take floats only below opset 9. Where float64
    rounds both to one number, their difference is small, and its sign decides.
    """
    dtype = context.known_dtype()
    if dtype not in _WIDE:
        raise Inexact(f"nothing compares {dtype} {context.side}")
    one, other = context.inputs if context.form.op_type == "Less" else reversed(context.inputs)
    left, right = as_int64(context, one, "signed"), as_int64(context, other, "signed")
    signed = _less_int64(context, left, right)
    if dtype == "int64":
        context.replace("Identity", [signed])
        return
    zero = context.constant(0.0, "zero", np.float64)
    signs = [
        _less(context, context.emit("Cast", [name], "real", to=TensorProto.DOUBLE), zero) for name in (left, right)
    ]
    context.replace("Xor", [signed, context.emit("Xor", signs, "signs_differ")])


def _less_int64(context: AdapterContext, one: str, other: str) -> str:
    """Compares int64 numbers."""
    reals = [context.emit("Cast", [name], "real", to=TensorProto.DOUBLE) for name in (one, other)]
    difference = context.emit("Cast", [context.emit("Sub", [one, other], "difference")], "real", to=TensorProto.DOUBLE)
    close = context.emit("Not", [context.emit("Greater", reals, "greater")], "not_greater")
    below = _less(context, difference, context.constant(0.0, "zero", np.float64))
    return context.emit("Or", [_less(context, *reals), context.emit("And", [close, below], "just_below")], "is_less")


@downward("Equal", 11)
def compare_floats(context: AdapterContext) -> None:
    """Writes Equal of floats, which exists from 11 on: two floats are equal when none is less than the other and none
    is NaN. Their sum is NaN when one of them is, and when they are opposite infinities.
    """
    dtype = context.known_dtype()
    if dtype not in FLOATS:
        raise Inexact(f"nothing compares {dtype} {context.side}")
    one, other = (_in_float32(context, name, dtype) for name in context.inputs)
    apart = context.emit("Or", [_less(context, one, other), context.emit("Greater", [one, other], "greater")], "apart")
    is_number = _is_number(
        context, context.emit("Add", [one, other], "sum"), "float32" if dtype == "float16" else dtype
    )
    context.replace("And", [context.emit("Not", [apart], "not_apart"), is_number])


@downward("Equal", 19)
def compare_strings(context: AdapterContext) -> None:
    """Numbers the strings of both inputs with Unique, which gives equal strings one number, and compares the
    numbers.
    """
    dtype = context.known_dtype()
    if dtype != "string":
        raise Inexact(f"nothing compares {dtype} {context.side}")
    flats = [flat(context, name, "strings") for name in context.inputs]
    both = context.emit("Concat", flats, "all_strings", axis=0)
    _, _, numbers = context.emit_many("Unique", [both], ["unique", "first_places", "numbers"])
    count = context.emit("Shape", flats[:1], "count")
    bounds = (context.constant([0], "start"), count), (count, context.constant([2**63 - 1], "end"))
    numbered = []
    for name, (start, end) in zip(context.inputs, bounds, strict=True):
        own = context.emit("Slice", [numbers, start, end], "own_numbers")
        shape = context.emit("Shape", [name], "shape")
        numbered.append(reshape(context, own, shape, "numbered", dense=has_no_zero(context, name)))
    context.replace("Equal", numbered)


# IsNaN --------------------------------------------------------------------------------------------------------------

unchanged("IsNaN", 13, 20)


@downward("IsNaN", 9)
def write_is_nan(context: AdapterContext) -> None:
    """Writes IsNaN: every number is less than infinity or greater than minus infinity, NaN is neither."""
    dtype = context.known_dtype()
    context.replace("Not", [_is_number(context, _in_float32(context, context.inputs[0], dtype), _no_float16(dtype))])


def _no_float16(dtype: str) -> str:
    """Gives the type in which the comparison is computed."""
    return "float32" if dtype == "float16" else dtype


# IsInf --------------------------------------------------------------------------------------------------------------

unchanged("IsInf", 20)


@downward("IsInf", 10)
def write_is_inf(context: AdapterContext) -> None:
    """Writes IsInf: only an infinity is beyond the greatest finite number."""
    dtype = context.known_dtype()
    data, limit = context.inputs[0], float(np.finfo(dtype).max)
    found = []
    if context.known_value_or_default("detect_positive"):
        found.append(context.emit("Greater", [data, context.tensor(typed([limit], dtype), "largest")], "positive"))
    if context.known_value_or_default("detect_negative"):
        found.append(_less(context, data, context.tensor(typed([-limit], dtype), "smallest")))
    if len(found) == 2:
        context.replace("Or", found)
    elif found:
        # The node becomes the comparison itself.
        last = context.before.pop()
        context.replace(last.op_type, last.inputs)
    else:
        context.replace("Less", [data, data])


# Sign ---------------------------------------------------------------------------------------------------------------

unchanged("Sign", 13)


@downward("Sign", 9)
def write_sign(context: AdapterContext) -> None:
    """Writes Sign: 1 where the number is greater than 0, less 1 where it is less than 0."""
    dtype, data = context.known_dtype(), context.inputs[0]
    if dtype not in FLOATS:
        # Rounding to float64 keeps the sign of every integer.
        data = context.emit("Cast", [data], "real", to=TensorProto.DOUBLE)
    zero = context.constant(0.0, "zero", dtype if dtype in FLOATS else np.float64)
    above = context.emit("Cast", [context.emit("Greater", [data, zero], "is_above")], "above", to=DTYPE_NUMBERS[dtype])
    below = context.emit("Cast", [_less(context, data, zero)], "below", to=DTYPE_NUMBERS[dtype])
    context.replace("Sub", [above, below])


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
def choose_extreme_of_long_integers(context: AdapterContext) -> None:
    """Chooses the greater or less of two 64-bit integers by a comparison. Max and Min take no integers below
    opset 12.
    """
    dtype = context.known_dtype()
    if dtype not in _WIDE:
        raise Inexact(f"nothing finds the {context.form.op_type.lower()}imum of {dtype} {context.side}")
    names = [as_int64(context, name, "signed") for name in context.inputs]
    choose = partial(_choose, context, dtype, context.form.op_type == "Max")
    first, *rest = names
    result = reduce(choose, rest, first)
    replace_by_cast(context, result, "int64", dtype)


def _choose(context: AdapterContext, dtype: str, largest: bool, one: str, other: str) -> str:
    """Chooses the greatest or least of two."""
    smaller = _less(context, one, other)
    if dtype == "uint64":
        zero = context.constant(0, "zero")
        signs = context.emit("Xor", [_less(context, one, zero), _less(context, other, zero)], "signs_differ")
        # Read as int64, numbers with the highest bit come before all others; read as uint64, after them.
        smaller = context.emit("Xor", [smaller, signs], "smaller")
    return context.emit("Where", [smaller, *((other, one) if largest else (one, other))], "chosen")


# Where --------------------------------------------------------------------------------------------------------------

unchanged("Where", 16)


@downward("Where", 9)
def choose_by_gather(context: AdapterContext) -> None:
    """Writes Where as Gather from the elements of both inputs in one dimension. The shapes tell where each element of
    the result comes from.
    """
    known = [static_shape(context, name) for name in context.inputs]
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
    flat = context.constant([-1], "flat_shape")
    condition, chosen, other = (context.emit("Reshape", [name, flat], "flat") for name in context.inputs)
    truth = context.emit("Cast", [condition], "truth", to=TensorProto.INT64)
    truths = context.emit("Gather", [truth, context.constant(places, "places")], "truths", axis=0)
    moved = context.emit("Mul", [truths, context.constant(first - second, "way")], "moved")
    index = context.emit("Add", [moved, context.constant(second, "second")], "index")
    both = context.emit("Concat", [chosen, other], "both", axis=0)
    found = context.emit("Gather", [both, index], "gathered", axis=0)
    context.replace("Reshape", [found, context.constant(shape, "shape")])


# Helpers of several operators ---------------------------------------------------------------------------------------


def _less(context: AdapterContext, one: str, other: str) -> str:
    """Emits Less."""
    return context.emit("Less", [one, other], "less")


def _is_number(context: AdapterContext, data: str, dtype: str) -> str:
    """Tells where floats are no NaN."""
    below = _less(context, data, context.constant(np.inf, "infinity", dtype))
    above = context.emit("Greater", [data, context.constant(-np.inf, "minus_infinity", dtype)], "above")
    return context.emit("Or", [below, above], "is_number")


def _in_float32(context: AdapterContext, name: str, dtype: str) -> str:
    """Casts float16 to float32, because many runtimes never compared float16."""
    return context.emit("Cast", [name], "float32", to=TensorProto.FLOAT) if dtype == "float16" else name
