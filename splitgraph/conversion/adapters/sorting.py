"""What needs elements in order, below opset 11: TopK of 64-bit integers, Unique."""

from __future__ import annotations

import numpy as np

from splitgraph.conversion.adapters.registry import downward
from splitgraph.conversion.shape_nodes import as_int64, filled, flat, positions
from splitgraph.conversion.step import Inexact, Step
from splitgraph.value_type import DTYPE_NUMBERS

_GREATEST = int(np.iinfo(np.int64).max)
_SORTED = {f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)}


def topmost_of_long_integers(step: Step) -> None:
    """TopK below 11 orders floats only, and float64 does not hold every 64-bit integer: all are ordered by their lower
    halves, and then by the upper ones, where equal elements stay in order.
    """
    step.dialect = 11
    data, axis, dtype = step.inputs[0], step.known_value("axis", -1), step.known_dtype()
    direction = {"axis": axis, "largest": step.known_value("largest", 1)}
    half, place = step.constant(2**32, "half"), step.constant([axis], "axis")
    number = data if dtype == "int64" else as_int64(step, data, "number")
    low = step.emit("Mod", [number, half], "low")
    high = step.emit("Div", [step.emit("Sub", [number, low], "multiple"), half], "high")
    if dtype == "uint64":
        high = step.emit("Mod", [high, half], "unsigned_high")
    count = step.emit("Gather", [step.emit("Shape", [data], "shape"), place], "count", axis=0)
    keys = [step.emit("Cast", [part], "key", to=DTYPE_NUMBERS["float64"]) for part in (low, high)]
    _, order = step.emit_many("TopK", [keys[0], count], ["keys", "order"], **direction)
    key = step.emit("GatherElements", [keys[1], order], "ordered_key", axis=axis)
    _, again = step.emit_many("TopK", [key, count], ["keys", "order_again"], **direction)
    order = step.emit("GatherElements", [order, again], "whole_order", axis=axis)
    first = step.emit("Slice", [order, step.constant([0], "start"), step.inputs[1], place], "topmost")
    given = list(step.outputs)
    del step.outputs[1:]
    step.replace("GatherElements", [data, first], axis=axis)
    if len(given) > 1 and given[1]:
        step.emit_after("Identity", [first], given[1])


@downward("Unique", 11)
def unique_by_sorting(step: Step) -> None:
    """Sorted, equal elements stand side by side, the first of them first: each element that is unlike the one before it
    begins a group. Without `sorted` the groups are in the order of their first elements. NaN is a group, the last one,
    as in numpy.unique, which the document refers to.
    """
    step.dialect = 11
    dtype, axis = step.known_dtype(), step.known_value("axis", None)
    if dtype not in _SORTED:
        raise Inexact(f"nothing sorts {dtype} {step.side}")
    if axis is not None and step.known_rank() != 1:
        raise Inexact("nothing compares parts of a tensor as wholes")
    zero, one = step.constant([0], "zero"), step.constant([1], "one")
    data = flat(step, step.inputs[0], "elements")
    count = step.emit("Shape", [data], "count")
    order = _order(step, data, count, dtype)
    ordered = step.emit("Gather", [data, order], "ordered", axis=0)
    later = step.emit("Slice", [ordered, one, step.constant([_GREATEST], "end")], "later")
    earlier = step.emit("Slice", [ordered, zero, step.constant([-1], "last")], "earlier")
    same = step.emit("Equal", [later, earlier], "is_same")
    if dtype.startswith("float"):
        # What follows a NaN is one, too.
        same = step.emit("Or", [same, step.emit("IsNaN", [earlier], "is_nan")], "is_same")
    differs = step.emit("Not", [same], "differs")
    begins = step.emit("Concat", [one, as_int64(step, differs, "differences")], "begins", axis=0)
    # Without elements there is no first one either.
    begins = step.emit("Slice", [begins, zero, count], "begins")
    group = step.emit("Sub", [_counted(step, begins), one], "group")
    starts = positions(step, begins, "starts")
    ends = step.emit("Concat", [_rest(step, starts, one), count], "ends", axis=0)
    ends = step.emit("Slice", [ends, zero, step.emit("Shape", [starts], "groups")], "ends")
    counts = step.emit("Sub", [ends, starts], "counts")
    first = step.emit("Gather", [order, starts], "first", axis=0)
    if not step.known_value("sorted", 1):
        is_first = step.emit("ScatterElements", [filled(step, count, 0, "none"), order, begins], "is_first", axis=0)
        numbers = step.emit("Sub", [_counted(step, is_first), one], "numbers")
        renamed = step.emit("Gather", [numbers, first], "renamed", axis=0)
        group = step.emit("Gather", [renamed, group], "group", axis=0)
        counts = step.emit("ScatterElements", [counts, renamed, counts], "counts", axis=0)
        first = positions(step, is_first, "first")
    inverse = step.emit("ScatterElements", [filled(step, count, 0, "none"), order, group], "inverse", axis=0)
    given = list(step.outputs)
    del step.outputs[1:]
    step.replace("Gather", [data, first], axis=0)
    for name, value in zip(given[1:], (first, inverse, counts), strict=False):
        if name:
            step.emit_after("Identity", [value], name)


def _order(step: Step, data: str, count: str, dtype: str) -> str:
    """The places of elements in ascending order, equal ones in their own and NaN last."""
    if not dtype.startswith("float"):
        return step.emit_many("TopK", [data, count], ["ordered", "order"], largest=0)[1]
    is_nan = step.emit("IsNaN", [data], "is_nan")
    numbers = step.emit("Where", [is_nan, step.constant(np.inf, "infinity", dtype), data], "numbers")
    _, order = step.emit_many("TopK", [numbers, count], ["ordered", "order"], largest=0)
    flags = step.emit("Gather", [is_nan, order], "flags", axis=0)
    keys = step.emit("Cast", [flags], "keys", to=DTYPE_NUMBERS["float32"])
    _, again = step.emit_many("TopK", [keys, count], ["ordered_again", "order_again"], largest=0)
    return step.emit("Gather", [order, again], "whole_order", axis=0)


def _counted(step: Step, flags: str) -> str:
    """How many flags are set up to each place."""
    return step.emit("CumSum", [flags, step.constant(0, "axis")], "counted")


def _rest(step: Step, values: str, one: str) -> str:
    return step.emit("Slice", [values, one, step.constant([_GREATEST], "end")], "rest")
