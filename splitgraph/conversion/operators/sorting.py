"""Unique, and TopK of 64-bit integers: written by sorting below opset 11."""

from __future__ import annotations

from splitgraph.attributes import make_node
from splitgraph.conversion.operators.registry import downward, unchanged
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.writing.shape_nodes import GREATEST_INT64, as_int64, counting, filled, flat, positions
from splitgraph.deferred import helper, np
from splitgraph.value_type import DTYPE_NUMBERS

_SORTED = {f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)}

unchanged("Unique", 28)


@downward("Unique", 11)
def find_unique_by_sorting(node: NodeAtBoundary) -> None:
    """Sorts the elements: equal ones are neighbours, in order, and each element that differs from the one before it
    begins a group. Without `sorted` the groups are in the order of their first elements. NaN form one group, the last
    one, as in numpy.unique, which the document names.

    Along an axis, the parts are sorted by their elements from the last to the first.
    """
    node.dialect = 11
    dtype, axis = node.known_dtype(), node.known_value("axis")
    if dtype not in _SORTED:
        raise Inexact(f"nothing sorts {dtype} {node.side}")
    if axis is None or node.rank(0) == 1:
        data, axis = flat(node, node.inputs[0], "elements"), 0
        count = node.write("Shape", [data], "count")
        order, same = _sort_elements(node, data, count, dtype)
    else:
        data, axis = node.inputs[0], axis % node.known_rank()
        count = node.write(
            "Gather", [node.write("Shape", [data], "shape"), node.constant([axis], "axis")], "count", axis=0
        )
        order, same = _sort_parts(node, data, count, axis)
    first, inverse, counts = _groups(node, count, order, same)
    given = list(node.outputs)
    del node.outputs[1:]
    node.replace("Gather", [data, first], axis=axis)
    for name, value in zip(given[1:], (first, inverse, counts), strict=False):
        if name:
            node.write_after("Identity", [value], name)


def _sort_elements(node: NodeAtBoundary, data: str, count: str, dtype: str) -> tuple[str, str]:
    """Gives the order of elements, and where an element equals the one before it."""
    order = _order(node, data, count, dtype)
    later, earlier = _neighbours(node, data, order)
    same = node.write("Equal", [later, earlier], "is_same")
    if not dtype.startswith("float"):
        return order, same
    # An element behind a NaN is a NaN too.
    return order, node.write("Or", [same, node.write("IsNaN", [earlier], "is_nan")], "is_same")


def _order(node: NodeAtBoundary, data: str, count: str, dtype: str) -> str:
    """Gives the places of elements in ascending order. Equal elements keep their order, and NaN is last."""
    if not dtype.startswith("float"):
        return node.write_many("TopK", [data, count], ["ordered", "order"], largest=0)[1]
    is_nan = node.write("IsNaN", [data], "is_nan")
    numbers = node.write("Where", [is_nan, node.constant(np.inf, "infinity", dtype), data], "numbers")
    _, order = node.write_many("TopK", [numbers, count], ["ordered", "order"], largest=0)
    flags = node.write("Gather", [is_nan, order], "flags", axis=0)
    keys = node.write("Cast", [flags], "keys", to=DTYPE_NUMBERS["float32"])
    _, again = node.write_many("TopK", [keys, count], ["ordered_again", "order_again"], largest=0)
    return node.write("Gather", [order, again], "whole_order", axis=0)


def _neighbours(node: NodeAtBoundary, data: str, order: str) -> tuple[str, str]:
    """Gives sorted elements or rows without the first, and without the last."""
    ordered = node.write("Gather", [data, order], "ordered", axis=0)
    bounds = [(node.constant([1], "second"), node.constant([GREATEST_INT64], "end"))]
    bounds.append((node.constant([0], "first"), node.constant([-1], "last")))
    later, earlier = (
        node.write("Slice", [ordered, *bound, node.constant([0], "axis")], "neighbours") for bound in bounds
    )
    return later, earlier


def _sort_parts(node: NodeAtBoundary, data: str, count: str, axis: int) -> tuple[str, str]:
    """Gives the order of the parts along an axis, and where a part equals the one before it."""
    perm = [axis, *(other for other in range(node.known_rank()) if other != axis)]
    rows = node.write("Flatten", [node.write("Transpose", [data], "axis_first", perm=perm)], "rows", axis=1)
    order = _order_of_rows(node, rows, count)
    equal = node.write("Equal", list(_neighbours(node, rows, order)), "are_same")
    truth = node.write("Cast", [equal], "truth", to=DTYPE_NUMBERS["float32"])
    least = node.write("ReduceMin", [truth], "least", axes=[1], keepdims=0)
    return order, node.write("Cast", [least], "is_same", to=DTYPE_NUMBERS["bool"])


def _order_of_rows(node: NodeAtBoundary, rows: str, count: str) -> str:
    """Gives the places of the rows of a matrix in ascending order: sorts by each column, from the last to the first.
    Equal rows keep their order.
    """
    columns = node.write("Gather", [node.write("Shape", [rows], "shape"), node.constant(1, "one")], "columns", axis=0)
    last = node.write("Sub", [columns, node.constant(1, "one")], "last")
    going = node.constant(True, "going", np.bool_)
    number, kept, order = (node.new_name(hint) for hint in ("number", "kept", "order"))
    column, elements, keys, again = (node.new_name(hint) for hint in ("column", "elements", "keys", "order_again"))
    still, ordered, found = (node.new_name(hint) for hint in ("still", "ordered_keys", "order_found"))
    nodes = [
        make_node("Sub", [last, number], [column], node.new_name("place")),
        make_node("Gather", [rows, column], [elements], node.new_name("take"), axis=1),
        make_node("Gather", [elements, order], [keys], node.new_name("arrange"), axis=0),
        make_node("TopK", [keys, count], [ordered, again], node.new_name("sort"), largest=0),
        make_node("Gather", [order, again], [found], node.new_name("rearrange"), axis=0),
        make_node("Identity", [kept], [still], node.new_name("go_on")),
    ]
    declared = [(number, "int64", 0), (kept, "bool", 0), (order, "int64", 1), (still, "bool", 0), (found, "int64", 1)]
    values = [
        helper.make_tensor_value_info(name, DTYPE_NUMBERS[dtype], [None] * rank) for name, dtype, rank in declared
    ]
    body = helper.make_graph(nodes, "sorting", values[:3], values[3:])
    return node.write("Loop", [columns, going, counting(node, count, "places")], "sorted_order", body=body)


def _groups(node: NodeAtBoundary, count: str, order: str, same: str) -> tuple[str, str, str]:
    """Gives the place of the first element in each group, the group of each element, and the size of each group. same:
    where an element equals the one before it in the order.
    """
    zero, one = node.constant([0], "zero"), node.constant([1], "one")
    differs = node.write("Not", [same], "differs")
    begins = node.write("Concat", [one, as_int64(node, differs, "differences")], "begins", axis=0)
    # Without elements there is no first element.
    begins = node.write("Slice", [begins, zero, count], "begins")
    group = node.write("Sub", [_count_flags(node, begins), one], "group")
    starts = positions(node, begins, "starts")
    ends = node.write("Concat", [_all_but_first(node, starts, one), count], "ends", axis=0)
    ends = node.write("Slice", [ends, zero, node.write("Shape", [starts], "groups")], "ends")
    counts = node.write("Sub", [ends, starts], "counts")
    first = node.write("Gather", [order, starts], "first", axis=0)
    if not node.known_value_or_default("sorted"):
        is_first = node.write("ScatterElements", [filled(node, count, 0, "none"), order, begins], "is_first", axis=0)
        numbers = node.write("Sub", [_count_flags(node, is_first), one], "numbers")
        renamed = node.write("Gather", [numbers, first], "renamed", axis=0)
        group = node.write("Gather", [renamed, group], "group", axis=0)
        counts = node.write("ScatterElements", [counts, renamed, counts], "counts", axis=0)
        first = positions(node, is_first, "first")
    inverse = node.write("ScatterElements", [filled(node, count, 0, "none"), order, group], "inverse", axis=0)
    return first, inverse, counts


def _count_flags(node: NodeAtBoundary, flags: str) -> str:
    """Counts the flags that are set up to each place."""
    return node.write("CumSum", [flags, node.constant(0, "axis")], "counted")


def _all_but_first(node: NodeAtBoundary, values: str, one: str) -> str:
    """Gives all elements but the first."""
    return node.write("Slice", [values, one, node.constant([GREATEST_INT64], "end")], "rest")


def sort_long_integers(node: NodeAtBoundary) -> None:
    """Sorts 64-bit integers by their lower halves, and then by their upper halves, where equal elements keep their
    order. TopK takes floats only below 11, and float64 does not hold every 64-bit integer.
    """
    node.dialect = 11
    data, axis, dtype = node.inputs[0], node.known_value_or_default("axis"), node.known_dtype()
    direction = {"axis": axis, "largest": node.known_value_or_default("largest")}
    half, place = node.constant(2**32, "half"), node.constant([axis], "axis")
    number = as_int64(node, data, "number")
    low = node.write("Mod", [number, half], "low")
    high = node.write("Div", [node.write("Sub", [number, low], "multiple"), half], "high")
    if dtype == "uint64":
        high = node.write("Mod", [high, half], "unsigned_high")
    count = node.write("Gather", [node.write("Shape", [data], "shape"), place], "count", axis=0)
    keys = [node.write("Cast", [part], "key", to=DTYPE_NUMBERS["float64"]) for part in (low, high)]
    _, order = node.write_many("TopK", [keys[0], count], ["keys", "order"], **direction)
    key = node.write("GatherElements", [keys[1], order], "ordered_key", axis=axis)
    _, again = node.write_many("TopK", [key, count], ["keys", "order_again"], **direction)
    order = node.write("GatherElements", [order, again], "whole_order", axis=axis)
    first = node.write("Slice", [order, node.constant([0], "start"), node.inputs[1], place], "topmost")
    given = list(node.outputs)
    del node.outputs[1:]
    node.replace("GatherElements", [data, first], axis=axis)
    if len(given) > 1 and given[1]:
        node.write_after("Identity", [first], given[1])
