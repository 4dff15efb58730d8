"""What needs elements in order, below opset 11: TopK of 64-bit integers, Unique."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import downward, unchanged
from splitgraph.conversion.writing.adapter_context import Inexact, Step
from splitgraph.conversion.writing.shape_nodes import as_int64, counting, filled, flat, positions
from splitgraph.deferred import helper, np
from splitgraph.node_making import make_node
from splitgraph.value_type import DTYPE_NUMBERS

_GREATEST = 2**63 - 1

_SORTED = {f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)}


def topmost_of_long_integers(step: Step) -> None:
    """TopK below 11 orders floats only, and float64 does not hold every 64-bit integer: all are ordered by their lower
    halves, and then by the upper ones, where equal elements stay in order.
    """
    step.dialect = 11
    data, axis, dtype = step.inputs[0], step.known_value("axis", -1), step.known_dtype()
    direction = {"axis": axis, "largest": step.known_value("largest", 1)}
    half, place = step.constant(2**32, "half"), step.constant([axis], "axis")
    number = as_int64(step, data, "number")
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


unchanged("Unique", 28)


@downward("Unique", 11)
def unique_by_sorting(step: Step) -> None:
    """Sorted, equal elements stand side by side, the first of them first: each element that is unlike the one before it
    begins a group. Without `sorted` the groups are in the order of their first elements. NaN is a group, the last one,
    as in numpy.unique, which the document refers to.

    Along an axis, the parts are sorted by their elements from the last to the first.
    """
    step.dialect = 11
    dtype, axis = step.known_dtype(), step.known_value("axis", None)
    if dtype not in _SORTED:
        raise Inexact(f"nothing sorts {dtype} {step.side}")
    if axis is None or step.rank(0) == 1:
        data, axis = flat(step, step.inputs[0], "elements"), 0
        count = step.emit("Shape", [data], "count")
        order, same = _sorted_elements(step, data, count, dtype)
    else:
        data, axis = step.inputs[0], axis % step.known_rank()
        count = step.emit(
            "Gather", [step.emit("Shape", [data], "shape"), step.constant([axis], "axis")], "count", axis=0
        )
        order, same = _sorted_parts(step, data, count, axis)
    first, inverse, counts = _groups(step, count, order, same)
    given = list(step.outputs)
    del step.outputs[1:]
    step.replace("Gather", [data, first], axis=axis)
    for name, value in zip(given[1:], (first, inverse, counts), strict=False):
        if name:
            step.emit_after("Identity", [value], name)


def _groups(step: Step, count: str, order: str, same: str) -> tuple[str, str, str]:
    """Of each group the place of its first element, of each element its group, and of each group its size; same: where
    an element is as the one before it in the order.
    """
    zero, one = step.constant([0], "zero"), step.constant([1], "one")
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
    return first, inverse, counts


def _sorted_elements(step: Step, data: str, count: str, dtype: str) -> tuple[str, str]:
    """The order of elements, and where one is as the one before it."""
    order = _order(step, data, count, dtype)
    later, earlier = _neighbours(step, data, order)
    same = step.emit("Equal", [later, earlier], "is_same")
    if not dtype.startswith("float"):
        return order, same
    # What follows a NaN is one, too.
    return order, step.emit("Or", [same, step.emit("IsNaN", [earlier], "is_nan")], "is_same")


def _sorted_parts(step: Step, data: str, count: str, axis: int) -> tuple[str, str]:
    """The order of the parts along an axis, and where one is as the one before it."""
    perm = [axis, *(other for other in range(step.known_rank()) if other != axis)]
    rows = step.emit("Flatten", [step.emit("Transpose", [data], "axis_first", perm=perm)], "rows", axis=1)
    order = _order_of_rows(step, rows, count)
    equal = step.emit("Equal", list(_neighbours(step, rows, order)), "are_same")
    truth = step.emit("Cast", [equal], "truth", to=DTYPE_NUMBERS["float32"])
    least = step.emit("ReduceMin", [truth], "least", axes=[1], keepdims=0)
    return order, step.emit("Cast", [least], "is_same", to=DTYPE_NUMBERS["bool"])


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


def _order_of_rows(step: Step, rows: str, count: str) -> str:
    """The places of the rows of a matrix in ascending order, equal ones in their own: they are sorted by each column,
    from the last to the first.
    """
    columns = step.emit("Gather", [step.emit("Shape", [rows], "shape"), step.constant(1, "one")], "columns", axis=0)
    last = step.emit("Sub", [columns, step.constant(1, "one")], "last")
    going = step.constant(True, "going", np.bool_)
    number, kept, order = (step.new_name(hint) for hint in ("number", "kept", "order"))
    column, elements, keys, again = (step.new_name(hint) for hint in ("column", "elements", "keys", "order_again"))
    still, ordered, found = (step.new_name(hint) for hint in ("still", "ordered_keys", "order_found"))
    nodes = [
        make_node("Sub", [last, number], [column], step.new_name("place")),
        make_node("Gather", [rows, column], [elements], step.new_name("take"), axis=1),
        make_node("Gather", [elements, order], [keys], step.new_name("arrange"), axis=0),
        make_node("TopK", [keys, count], [ordered, again], step.new_name("sort"), largest=0),
        make_node("Gather", [order, again], [found], step.new_name("rearrange"), axis=0),
        make_node("Identity", [kept], [still], step.new_name("go_on")),
    ]
    declared = [(number, "int64", 0), (kept, "bool", 0), (order, "int64", 1), (still, "bool", 0), (found, "int64", 1)]
    values = [
        helper.make_tensor_value_info(name, DTYPE_NUMBERS[dtype], [None] * rank) for name, dtype, rank in declared
    ]
    body = helper.make_graph(nodes, "sorting", values[:3], values[3:])
    return step.emit("Loop", [columns, going, counting(step, count, "places")], "sorted_order", body=body)


def _neighbours(step: Step, data: str, order: str) -> tuple[str, str]:
    """Sorted elements or rows: all but the first, and all but the last."""
    ordered = step.emit("Gather", [data, order], "ordered", axis=0)
    bounds = [(step.constant([1], "second"), step.constant([_GREATEST], "end"))]
    bounds.append((step.constant([0], "first"), step.constant([-1], "last")))
    later, earlier = (
        step.emit("Slice", [ordered, *bound, step.constant([0], "axis")], "neighbours") for bound in bounds
    )
    return later, earlier


def _counted(step: Step, flags: str) -> str:
    """How many flags are set up to each place."""
    return step.emit("CumSum", [flags, step.constant(0, "axis")], "counted")


def _rest(step: Step, values: str, one: str) -> str:
    return step.emit("Slice", [values, one, step.constant([_GREATEST], "end")], "rest")
