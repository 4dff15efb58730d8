"""Equal, Greater, Less, IsNaN, IsInf, Sign, Max, Min, Clip and Where: below the opset at which they began to exist, to
broadcast, or to take an element type.

`wider_types` computes narrow integers and 16-bit floats in wider types. This file handles the types that no older
operator compares.
"""

from __future__ import annotations

import math
from functools import reduce

from splitgraph.conversion.notation.formula import FLOATS, Formula, Term, has_no_zero, static_shape
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.broadcasting import broadcasts_as_numpy_from_7, repeat_to_one_shape
from splitgraph.conversion.operators.registry import (
    SHAPES_HINT,
    always,
    changed,
    downward,
    edited,
    exact,
    shapes_are_equal,
    unchanged,
    upward,
    where,
)
from splitgraph.model.attributes import UNRESOLVED
from splitgraph.model.deferred import np
from splitgraph.model.value_type import MAX_WRITTEN

_WIDE = {"int64", "uint64"}
_WHERE_SINCE = 9
# The types that engines compare narrow integers in.
_COMPARED = {"int8": "int32", "int16": "int32", "uint8": "int32", "uint16": "int32", "uint32": "int64"}

unchanged("GreaterOrEqual LessOrEqual", 16)

# Equal, Greater, Less -----------------------------------------------------------------------------------------------

unchanged("Equal", 11, 13, 19)
unchanged("Greater Less", 9, 13)
broadcasts_as_numpy_from_7("Equal Greater Less")


@downward("Greater Less", 9)
def compare_long_integers(node: NodeAtBoundary) -> None:
    """Compare 64-bit integers as float64, because Greater and Less take floats only below opset 9. Where float64 rounds
    both to one number, their difference is small, and its sign decides.
    """
    dtype = node.known_dtype()
    if dtype not in _WIDE:
        raise Inexact(f"nothing compares {dtype} {node.side}")
    f = Formula(node)
    numbers = [f.input(index, dtype).cast("int64") for index in range(2)]
    left, right = numbers if node.op_type == "Less" else numbers[::-1]
    reals = [left.cast("float64"), right.cast("float64")]
    is_close = ~(reals[0] > reals[1])
    is_less = (reals[0] < reals[1]) | is_close & ((left - right).cast("float64") < 0)
    if dtype == "uint64":
        # Read as int64, numbers with the highest bit come before all others; read as uint64, after them.
        is_less = is_less ^ ((reals[0] < 0) ^ (reals[1] < 0))
    f.give(is_less)


@downward("Equal", 11)
def compare_floats(node: NodeAtBoundary) -> None:
    """Write Equal of floats, which exists from 11 on: two floats are equal when none is less than the other and none is
    NaN. Their sum is NaN when one of them is, and when they are opposite infinities.
    """
    dtype = node.known_dtype()
    if dtype not in FLOATS:
        raise Inexact(f"nothing compares {dtype} {node.side}")
    # Many runtimes never compared float16.
    f, wide = Formula(node), "float32" if dtype == "float16" else dtype
    left, right = (f.input(index, dtype).cast(wide) for index in range(2))
    f.give(~((left < right) | (left > right)) & _is_number(left + right))


@downward("Equal", 19)
def compare_strings(node: NodeAtBoundary) -> None:
    """Number the strings of both inputs with Unique, which gives equal strings one number, and compare the numbers."""
    dtype = node.known_dtype()
    if dtype != "string":
        raise Inexact(f"nothing compares {dtype} {node.side}")
    f = Formula(node)
    flats = [f.input(index, dtype).reshape(-1) for index in range(2)]
    _, _, numbers = f.write("Unique", [f.joined(flats)], dtype, "int64", "int64")
    count, numbered = flats[0].shape(), []
    for name, own in zip(node.inputs, (numbers.sliced(0, count), numbers.sliced(count)), strict=True):
        numbered.append(own.with_shape(f.shape(name), dense=has_no_zero(node, name)))
    f.give(numbered[0].equals(numbered[1]))


# IsNaN --------------------------------------------------------------------------------------------------------------

unchanged("IsNaN", 13, 20)


@downward("IsNaN", 9)
def write_is_nan(node: NodeAtBoundary) -> None:
    """Write IsNaN: the magnitude of every number, infinity as well, is greater than -1."""
    dtype, f = node.known_dtype(), Formula(node)
    f.give(~_is_number(f.input(0).cast("float32" if dtype == "float16" else dtype)))


def _is_number(data: Term) -> Term:
    """Tell where floats are no NaN, with one comparison: some runtimes read no Or."""
    return abs(data) > -1


# IsInf --------------------------------------------------------------------------------------------------------------

unchanged("IsInf", 20)


@downward("IsInf", 10)
def write_is_inf(node: NodeAtBoundary) -> None:
    """Write IsInf: only an infinity is beyond the greatest finite number."""
    dtype = node.known_dtype()
    f, limit = Formula(node), float(np.finfo(dtype).max)
    data, beyond = f.input(0), []
    if node.known_value_or_default("detect_positive"):
        beyond.append(data > limit)
    if node.known_value_or_default("detect_negative"):
        beyond.append(data < -limit)
    f.give(reduce(Term.__or__, beyond) if beyond else data < data)


# Sign ---------------------------------------------------------------------------------------------------------------

unchanged("Sign", 13)


@downward("Sign", 9)
def write_sign(node: NodeAtBoundary) -> None:
    """Write Sign: 1 where the number is greater than 0, less 1 where it is less than 0, and NaN where it is NaN."""
    dtype, f = node.known_dtype(), Formula(node)
    # Rounding to float64 keeps the sign of every integer.
    data = f.input(0).cast(dtype if dtype in FLOATS else "float64")
    sign = (data > 0).cast(dtype) - (data < 0).cast(dtype)
    # NaN alone is not greater than -1 without its sign, and 0 / 0 is NaN.
    f.give(sign / (abs(data) > -1).cast(dtype) if dtype in FLOATS else sign)


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
    """Choose the greater or less of two 64-bit integers by a comparison. Max and Min take no integers below opset
    12.
    """
    dtype = node.known_dtype()
    if dtype not in _WIDE:
        raise Inexact(f"nothing finds the {node.op_type.lower()}imum of {dtype} {node.side}")
    f, largest = Formula(node), node.op_type == "Max"

    def choose(left: Term, right: Term) -> Term:
        is_less = left < right
        if dtype == "uint64":
            # Read as int64, numbers with the highest bit come before all others; read as uint64, after them.
            is_less = is_less ^ ((left < 0) ^ (right < 0))
        return f.where(is_less, *((right, left) if largest else (left, right)))

    f.give(reduce(choose, [f.input(index, dtype).cast("int64") for index in range(len(node.inputs))]).cast(dtype))


# Clip ---------------------------------------------------------------------------------------------------------------

unchanged("Clip", 12, 13)
changed("Clip", 6, "below it, an absent bound is the limit of the type; from then on, the limit of float32")


@edited("Clip", 6)
def bounds_are_written_or_float32(node: NodeAtBoundary) -> None:
    """Keep a node when it has both bounds, or the data is float32, whose limits are the defaults on both sides."""
    bounds = [node.value("min"), node.value("max")]
    if all(bound is not None and bound is not UNRESOLVED for bound in bounds):
        return
    node.accept_default("min", "max")
    if not (UNRESOLVED not in bounds and node.dtype(0) == "float32"):
        raise Inexact


@upward("Clip", 6)
def write_limits_as_bounds(node: NodeAtBoundary) -> None:
    """Write out absent bounds: below 6, they are the limits of the type. The limits of float64 fit no attribute, which
    is float32, but fit an input from opset 11 on.
    """
    node.require_types()
    dtype = node.known_dtype(0)
    limit = float(np.finfo(dtype).max)
    bounds = [node.known_value("min", -limit), node.known_value("max", limit)]
    node.drop("consumed_inputs", "min", "max", why="bounds are written out")
    if dtype != "float64":
        node.set("min", bounds[0], "from opset 6 on, the default is the limit of float32")
        node.set("max", bounds[1], "from opset 6 on, the default is the limit of float32")
        return
    if node.to_opset < 11:
        raise Inexact("the limits of float64 are no float32, which the bounds are", "go to opset 11 or above")
    node.dialect = 11
    node.inputs.extend(node.constant(bound, "bound", np.float64) for bound in bounds)


changed("Clip", 11, "the attributes min and max became inputs")


@exact("Clip", 11)
def bounds_are_limits_of_float32(node: NodeAtBoundary) -> bool:
    """Return True when the data is float32 and the node has no bounds, or bounds that are the limits of float32."""
    if node.dtype(0) != "float32":
        return False
    if not node.upward:
        return not node.uses_input(1) and not node.uses_input(2)
    defaults = node.lower.attributes
    return all(
        node.value(name, defaults[name].default_value) == defaults[name].default_value for name in ("min", "max")
    )


@upward("Clip", 11)
def make_bounds_inputs(node: NodeAtBoundary) -> None:
    """Turn min and max into constants of the type of the data. Absent ones are the limits of float32."""
    node.require_types()
    low, high = node.known_value_or_default("min"), node.known_value_or_default("max")
    node.drop("min", "max", why=f"it is an input {node.side}")
    node.inputs.extend([node.like_data(low, "min"), node.like_data(high, "max")])


@downward("Clip", 11)
def make_bounds_attributes(node: NodeAtBoundary) -> None:
    """Turn constant bounds that float32 holds into attributes. Absent ones are the limits of the type. With other
    bounds, Where chooses the bound where the data is beyond it.
    """
    node.require_types()
    limit = float(np.finfo(node.known_dtype(0)).max)
    values = []
    for index, absent in ((1, -limit), (2, limit)):
        bound = node.elements(index) if node.uses_input(index) else np.asarray(absent)
        # OpenVINO and the reference evaluator broadcast bounds of several elements, as Where does.
        values.append(float(bound.reshape(-1)[0]) if bound is not None and bound.size == 1 else None)
    low, high = values
    if low is not None and high is not None and _fit_float32_in_order(low, high):
        del node.inputs[1:]
        node.set("min", low, f"it is an attribute {node.side}")
        node.set("max", high, f"it is an attribute {node.side}")
        return
    _choose_bounds(node, node.known_dtype(0), limit)


def _fit_float32_in_order(low: float, high: float) -> bool:
    """Return True when float32 holds both bounds and they are in order. Only from 13 on the document says which bound
    counts otherwise.
    """
    with np.errstate(over="ignore"):
        return low <= high and all(float(np.float32(bound)) == bound for bound in (low, high))


def _choose_bounds(node: NodeAtBoundary, computed: str, limit: float = 0.0) -> None:
    """Choose min where the data is less, then max where the data is greater. The bounds hold no NaN. computed: the type
    to compare in. limit: stands for an absent bound, unless 0.
    """
    f, dtype = Formula(node), node.known_dtype(0)
    data = f.input(0).cast(computed)
    for index, sign in ((1, -1), (2, 1)):
        if not node.uses_input(index) and not limit:
            continue
        bound = f.input(index, dtype).cast(computed) if node.uses_input(index) else f.number(sign * limit, computed)
        data = f.where(data < bound if index == 1 else data > bound, bound, data)
    f.give(data.cast(dtype))


@downward("Clip", 12)
def clip_integers(node: NodeAtBoundary) -> None:
    """Choose the bound where integers are beyond it. Below 12, Clip takes floating-point types only. Below 9 there is
    no Where: 32-bit integers are clipped as float64.
    """
    dtype = node.known_dtype(0)
    if not dtype.startswith(("int", "uint")) or dtype.endswith(("int4", "int2")):
        node.require_types()
        raise Inexact(f"it does not clip {dtype}")
    if node.to_opset >= _WHERE_SINCE or dtype not in ("int32", "uint32"):
        # Engines compare only some types of integers.
        _choose_bounds(node, _COMPARED.get(dtype, dtype))
        return
    f = Formula(node)
    node.inputs[:] = [f.input(index).cast("float64").name if name else "" for index, name in enumerate(node.inputs)]
    f.follow(0, lambda clipped: f.value(clipped.name, "float64").cast(dtype))


# Where --------------------------------------------------------------------------------------------------------------

unchanged("Where", 16)


@downward("Where", 9)
def choose_by_gather(node: NodeAtBoundary) -> None:
    """Write Where as Gather from the elements of both inputs in one dimension. The shapes tell where each element of
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
    f = Formula(node)
    condition, chosen, otherwise = (f.input(index).reshape(-1) for index in range(3))
    truths = condition.cast("int64").take(f.number(places))
    gathered = f.joined([chosen, otherwise]).take(truths * f.number(first - second) + f.number(second))
    f.give(gathered.reshape(*shape))
