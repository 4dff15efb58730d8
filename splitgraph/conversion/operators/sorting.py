"""Unique, and TopK of 64-bit integers: written by sorting below opset 11."""

from __future__ import annotations

from splitgraph.attributes import make_node
from splitgraph.conversion.operators.registry import downward, unchanged
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.conversion.writing.shape_nodes import GREATEST_INT64, as_int64, counting, filled, flat, positions
from splitgraph.deferred import helper, np
from splitgraph.value_type import DTYPE_NUMBERS

_SORTED = {f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)}

unchanged("Unique", 28)


@downward("Unique", 11)
def find_unique_by_sorting(context: AdapterContext) -> None:
    """Sorts the elements: equal ones are neighbours, in order, and each element that differs from the one before it
    begins a group. Without `sorted` the groups are in the order of their first elements. NaN form one group, the last
    one, as in numpy.unique, which the document names.

    Along an axis, the parts are sorted by their elements from the last to the first.
    """
    context.dialect = 11
    dtype, axis = context.known_dtype(), context.known_value("axis")
    if dtype not in _SORTED:
        raise Inexact(f"nothing sorts {dtype} {context.side}")
    if axis is None or context.rank(0) == 1:
        data, axis = flat(context, context.inputs[0], "elements"), 0
        count = context.emit("Shape", [data], "count")
        order, same = _sort_elements(context, data, count, dtype)
    else:
        data, axis = context.inputs[0], axis % context.known_rank()
        count = context.emit(
            "Gather", [context.emit("Shape", [data], "shape"), context.constant([axis], "axis")], "count", axis=0
        )
        order, same = _sort_parts(context, data, count, axis)
    first, inverse, counts = _groups(context, count, order, same)
    given = list(context.outputs)
    del context.outputs[1:]
    context.replace("Gather", [data, first], axis=axis)
    for name, value in zip(given[1:], (first, inverse, counts), strict=False):
        if name:
            context.emit_after("Identity", [value], name)


def _sort_elements(context: AdapterContext, data: str, count: str, dtype: str) -> tuple[str, str]:
    """Gives the order of elements, and where an element equals the one before it."""
    order = _order(context, data, count, dtype)
    later, earlier = _neighbours(context, data, order)
    same = context.emit("Equal", [later, earlier], "is_same")
    if not dtype.startswith("float"):
        return order, same
    # An element behind a NaN is a NaN too.
    return order, context.emit("Or", [same, context.emit("IsNaN", [earlier], "is_nan")], "is_same")


def _order(context: AdapterContext, data: str, count: str, dtype: str) -> str:
    """Gives the places of elements in ascending order. Equal elements keep their order, and NaN is last."""
    if not dtype.startswith("float"):
        return context.emit_many("TopK", [data, count], ["ordered", "order"], largest=0)[1]
    is_nan = context.emit("IsNaN", [data], "is_nan")
    numbers = context.emit("Where", [is_nan, context.constant(np.inf, "infinity", dtype), data], "numbers")
    _, order = context.emit_many("TopK", [numbers, count], ["ordered", "order"], largest=0)
    flags = context.emit("Gather", [is_nan, order], "flags", axis=0)
    keys = context.emit("Cast", [flags], "keys", to=DTYPE_NUMBERS["float32"])
    _, again = context.emit_many("TopK", [keys, count], ["ordered_again", "order_again"], largest=0)
    return context.emit("Gather", [order, again], "whole_order", axis=0)


def _neighbours(context: AdapterContext, data: str, order: str) -> tuple[str, str]:
    """Gives sorted elements or rows without the first, and without the last."""
    ordered = context.emit("Gather", [data, order], "ordered", axis=0)
    bounds = [(context.constant([1], "second"), context.constant([GREATEST_INT64], "end"))]
    bounds.append((context.constant([0], "first"), context.constant([-1], "last")))
    later, earlier = (
        context.emit("Slice", [ordered, *bound, context.constant([0], "axis")], "neighbours") for bound in bounds
    )
    return later, earlier


def _sort_parts(context: AdapterContext, data: str, count: str, axis: int) -> tuple[str, str]:
    """Gives the order of the parts along an axis, and where a part equals the one before it."""
    perm = [axis, *(other for other in range(context.known_rank()) if other != axis)]
    rows = context.emit("Flatten", [context.emit("Transpose", [data], "axis_first", perm=perm)], "rows", axis=1)
    order = _order_of_rows(context, rows, count)
    equal = context.emit("Equal", list(_neighbours(context, rows, order)), "are_same")
    truth = context.emit("Cast", [equal], "truth", to=DTYPE_NUMBERS["float32"])
    least = context.emit("ReduceMin", [truth], "least", axes=[1], keepdims=0)
    return order, context.emit("Cast", [least], "is_same", to=DTYPE_NUMBERS["bool"])


def _order_of_rows(context: AdapterContext, rows: str, count: str) -> str:
    """Gives the places of the rows of a matrix in ascending order: sorts by each column, from the last to the first.
    Equal rows keep their order.
    """
    columns = context.emit(
        "Gather", [context.emit("Shape", [rows], "shape"), context.constant(1, "one")], "columns", axis=0
    )
    last = context.emit("Sub", [columns, context.constant(1, "one")], "last")
    going = context.constant(True, "going", np.bool_)
    number, kept, order = (context.new_name(hint) for hint in ("number", "kept", "order"))
    column, elements, keys, again = (context.new_name(hint) for hint in ("column", "elements", "keys", "order_again"))
    still, ordered, found = (context.new_name(hint) for hint in ("still", "ordered_keys", "order_found"))
    nodes = [
        make_node("Sub", [last, number], [column], context.new_name("place")),
        make_node("Gather", [rows, column], [elements], context.new_name("take"), axis=1),
        make_node("Gather", [elements, order], [keys], context.new_name("arrange"), axis=0),
        make_node("TopK", [keys, count], [ordered, again], context.new_name("sort"), largest=0),
        make_node("Gather", [order, again], [found], context.new_name("rearrange"), axis=0),
        make_node("Identity", [kept], [still], context.new_name("go_on")),
    ]
    declared = [(number, "int64", 0), (kept, "bool", 0), (order, "int64", 1), (still, "bool", 0), (found, "int64", 1)]
    values = [
        helper.make_tensor_value_info(name, DTYPE_NUMBERS[dtype], [None] * rank) for name, dtype, rank in declared
    ]
    body = helper.make_graph(nodes, "sorting", values[:3], values[3:])
    return context.emit("Loop", [columns, going, counting(context, count, "places")], "sorted_order", body=body)


def _groups(context: AdapterContext, count: str, order: str, same: str) -> tuple[str, str, str]:
    """Gives the place of the first element in each group, the group of each element, and the size of each group. same:
    where an element equals the one before it in the order.
    """
    zero, one = context.constant([0], "zero"), context.constant([1], "one")
    differs = context.emit("Not", [same], "differs")
    begins = context.emit("Concat", [one, as_int64(context, differs, "differences")], "begins", axis=0)
    # Without elements there is no first element.
    begins = context.emit("Slice", [begins, zero, count], "begins")
    group = context.emit("Sub", [_count_flags(context, begins), one], "group")
    starts = positions(context, begins, "starts")
    ends = context.emit("Concat", [_all_but_first(context, starts, one), count], "ends", axis=0)
    ends = context.emit("Slice", [ends, zero, context.emit("Shape", [starts], "groups")], "ends")
    counts = context.emit("Sub", [ends, starts], "counts")
    first = context.emit("Gather", [order, starts], "first", axis=0)
    if not context.known_value_or_default("sorted"):
        is_first = context.emit(
            "ScatterElements", [filled(context, count, 0, "none"), order, begins], "is_first", axis=0
        )
        numbers = context.emit("Sub", [_count_flags(context, is_first), one], "numbers")
        renamed = context.emit("Gather", [numbers, first], "renamed", axis=0)
        group = context.emit("Gather", [renamed, group], "group", axis=0)
        counts = context.emit("ScatterElements", [counts, renamed, counts], "counts", axis=0)
        first = positions(context, is_first, "first")
    inverse = context.emit("ScatterElements", [filled(context, count, 0, "none"), order, group], "inverse", axis=0)
    return first, inverse, counts


def _count_flags(context: AdapterContext, flags: str) -> str:
    """Counts the flags that are set up to each place."""
    return context.emit("CumSum", [flags, context.constant(0, "axis")], "counted")


def _all_but_first(context: AdapterContext, values: str, one: str) -> str:
    """Gives all elements but the first."""
    return context.emit("Slice", [values, one, context.constant([GREATEST_INT64], "end")], "rest")


def sort_long_integers(context: AdapterContext) -> None:
    """Sorts 64-bit integers by their lower halves, and then by their upper halves, where equal elements keep their
    order. TopK takes floats only below 11, and float64 does not hold every 64-bit integer.
    """
    context.dialect = 11
    data, axis, dtype = context.inputs[0], context.known_value_or_default("axis"), context.known_dtype()
    direction = {"axis": axis, "largest": context.known_value_or_default("largest")}
    half, place = context.constant(2**32, "half"), context.constant([axis], "axis")
    number = as_int64(context, data, "number")
    low = context.emit("Mod", [number, half], "low")
    high = context.emit("Div", [context.emit("Sub", [number, low], "multiple"), half], "high")
    if dtype == "uint64":
        high = context.emit("Mod", [high, half], "unsigned_high")
    count = context.emit("Gather", [context.emit("Shape", [data], "shape"), place], "count", axis=0)
    keys = [context.emit("Cast", [part], "key", to=DTYPE_NUMBERS["float64"]) for part in (low, high)]
    _, order = context.emit_many("TopK", [keys[0], count], ["keys", "order"], **direction)
    key = context.emit("GatherElements", [keys[1], order], "ordered_key", axis=axis)
    _, again = context.emit_many("TopK", [key, count], ["keys", "order_again"], **direction)
    order = context.emit("GatherElements", [order, again], "whole_order", axis=axis)
    first = context.emit("Slice", [order, context.constant([0], "start"), context.inputs[1], place], "topmost")
    given = list(context.outputs)
    del context.outputs[1:]
    context.replace("GatherElements", [data, first], axis=axis)
    if len(given) > 1 and given[1]:
        context.emit_after("Identity", [first], given[1])
