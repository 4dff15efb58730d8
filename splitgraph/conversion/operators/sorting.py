"""Unique, TopK of 64-bit integers and NonMaxSuppression: written by sorting, or as a Loop, below opset 11 and 10."""

from __future__ import annotations

from functools import reduce

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.registry import downward, unchanged
from splitgraph.model.deferred import np

_SORTED = {f"{kind}{bits}" for kind in ("int", "uint", "float") for bits in (8, 16, 32, 64)}

# Unique -------------------------------------------------------------------------------------------------------------

unchanged("Unique", 28)


@downward("Unique", 11)
def find_unique_by_sorting(node: NodeAtBoundary) -> None:
    """Sort the elements: equal ones are neighbours, in order, and each element that differs from the one before it
    begins a group. Without `sorted` the groups are in the order of their first elements. NaN form one group, the last
    one, as in numpy.unique, which the document names.

    Along an axis, the parts are sorted by their elements from the last to the first.
    """
    node.dialect = 11
    dtype, axis = node.known_dtype(), node.known_value("axis")
    if dtype not in _SORTED:
        raise Inexact(f"nothing sorts {dtype} {node.side}")
    f, data = Formula(node), node.inputs[0]
    if axis is None or node.rank(0) == 1:
        elements, axis = f.value(data, dtype).reshape(-1), 0
        count = elements.shape()
        order, same = _sort_elements(elements, count)
    else:
        elements, axis = f.value(data, dtype), axis % node.known_rank()
        count = f.shape(data).take([axis])
        order, same = _sort_parts(elements, count, axis, node.known_rank())
    first, group, counts = _groups(f, count, order, same, in_order=bool(node.known_value_or_default("sorted")))
    f.give(elements.take(first, axis), first, group, counts)


def _sort_elements(data: Term, count: Term) -> tuple[Term, Term]:
    """Return the order of elements, and where an element equals the one before it."""
    f, order = data.formula, _order(data, count)
    later, earlier = _neighbours(data, order)
    same = later.equals(earlier)
    # An element behind a NaN is a NaN too.
    return order, same | f.apply("IsNaN", earlier) if data.dtype.startswith("float") else same


def _order(data: Term, count: Term) -> Term:
    """Return the places of elements in ascending order. Equal elements keep their order, and NaN is last."""
    f = data.formula
    if not data.dtype.startswith("float"):
        return _sorted(data, count)
    is_nan = f.apply("IsNaN", data)
    order = _sorted(f.where(is_nan, np.inf, data), count)
    return order.take(_sorted(is_nan.take(order).cast("float32"), count))


def _sorted(data: Term, count: Term, **directions: int) -> Term:
    """Return the places of elements in the order of TopK, ascending unless directions say otherwise."""
    return data.formula.write("TopK", [data, count], data.dtype, "int64", **{"largest": 0, **directions})[1]


def _neighbours(data: Term, order: Term) -> tuple[Term, Term]:
    """Return sorted elements or rows without the first, and without the last."""
    ordered = data.take(order)
    return ordered.sliced(1, axis=0), ordered.sliced(0, -1, axis=0)


def _sort_parts(data: Term, count: Term, axis: int, rank: int) -> tuple[Term, Term]:
    """Return the order of the parts along an axis, and where a part equals the one before it. Sort the rows of a matrix
    by each column, from the last to the first; equal rows keep their order.
    """
    f = data.formula
    rows = f.apply("Flatten", data.transposed(axis, *(place for place in range(rank) if place != axis)), axis=1)
    columns = rows.shape().take(1)
    last = columns - 1

    def step(number: Term, order: Term) -> list[Term]:
        keys = rows.take(last - number, 1).take(order)
        return [order.take(_sorted(keys, count))]

    (order,) = f.loop(columns, [f.counting(count, is_row=True)], step, [[None]])
    later, earlier = _neighbours(rows, order)
    same = later.equals(earlier).cast("float32")
    return order, f.apply("ReduceMin", same, axes=[1], keepdims=0).cast("bool")


def _groups(f: Formula, count: Term, order: Term, same: Term, *, in_order: bool) -> tuple[Term, Term, Term]:
    """Return the place of the first element in each group, the group of each element, and the size of each group. same:
    where an element equals the one before it in the order. in_order: the groups stay sorted.
    """
    # Without elements there is no first element.
    begins = f.joined([f.number([1]), (~same).cast("int64")]).sliced(0, count)
    group, starts = _counted(begins) - 1, f.positions(begins)
    ends = f.joined([starts.sliced(1), count]).sliced(0, starts.shape())
    counts, first, none = ends - starts, order.take(starts), f.filled(count, 0)
    if not in_order:
        is_first = f.put(none, order, begins)
        renamed = (_counted(is_first) - 1).take(first)
        group, counts, first = renamed.take(group), f.put(counts, renamed, counts), f.positions(is_first)
    return first, f.put(none, order, group), counts


def _counted(flags: Term) -> Term:
    """Count the flags that are set up to each place."""
    return flags.formula.apply("CumSum", flags, flags.formula.number(0))


# TopK ---------------------------------------------------------------------------------------------------------------


def sort_long_integers(node: NodeAtBoundary) -> None:
    """Sort 64-bit integers by their lower halves, and then by their upper halves, where equal elements keep their
    order. TopK takes floats only below 11, and float64 does not hold every 64-bit integer.
    """
    node.dialect = 11
    f, axis, dtype = Formula(node), node.known_value_or_default("axis"), node.known_dtype()
    directions = {"axis": axis, "largest": node.known_value_or_default("largest")}
    number = f.input(0).cast("int64")
    low = number % 2**32
    high = (number - low) / 2**32
    if dtype == "uint64":
        high = high % 2**32
    count = f.shape(node.inputs[0]).take([axis])
    order = _sorted(low.cast("float64"), count, **directions)
    key = f.apply("GatherElements", high.cast("float64"), order, axis=axis)
    order = f.apply("GatherElements", order, _sorted(key, count, **directions), axis=axis)
    first = order.sliced(0, f.given(1, "int64"), axis)
    f.give(f.apply("GatherElements", f.input(0), first, axis=axis), first)


# NonMaxSuppression --------------------------------------------------------------------------------------------------

unchanged("NonMaxSuppression", 11)


@downward("NonMaxSuppression", 10)
def suppress_by_loop(node: NodeAtBoundary) -> None:
    """Write a Loop over the boxes of each class in the order of their scores: select a box that is left, as long as
    there is room, and leave out those that overlap it. Compute and compare areas as onnxruntime does.
    """
    node.dialect = 10
    f = Formula(node)
    scores, (batches, classes, count) = f.input(1, "float32"), f.sizes(node.inputs[1], 3)
    overlaps = f.apply("Flatten", _overlaps(node, f), axis=2)
    _, order = f.write("TopK", [scores, count.reshape(1)], "float32", "int64", axis=2)
    has_threshold = node.uses_input(4)
    left = scores > f.input(4, "float32").reshape() if has_threshold else f.filled(f.shape(scores.name), 1, "bool")
    selected = f.filled(f.vector([batches, classes, 1]), 0)
    most = f.given(2).cast("int64").reshape() if node.uses_input(2) else f.number(0)
    first, numbers = (f.counting(batches) * count).reshape(-1, 1), f.counting(count)

    def step(number: Term, left: Term, selected: Term) -> list[Term]:
        # One step for each class takes the next box in order. It gives the boxes that are left, the number of selected
        # boxes, and whether this box was selected.
        box = order.take(number, 2)
        is_left = box.unsqueezed(2).equals(numbers) & left
        is_any = f.apply("ReduceMax", is_left.cast("float32"), axes=[2]).cast("bool")
        chosen = is_any & (selected < most)
        left = left & ~(chosen & overlaps.take(first + box))
        return [left, selected + chosen.cast("int64"), chosen.squeezed(2)]

    _, _, chosen = f.loop(count, [left, selected], step, [[None] * 3, [None] * 3, [None] * 2])
    # Each chosen box has a batch, a class and a place in the order.
    places = f.apply("NonZero", chosen.transposed(1, 2, 0), gives="int64")
    batch, class_, place = (places.take([row]) for row in range(3))
    box = order.reshape(-1).take((batch * classes + class_) * count + place)
    f.give(f.joined([batch, class_, box]).transposed(1, 0))


def _overlaps(node: NodeAtBoundary, f: Formula) -> Term:
    """Tell for each two boxes of a batch whether their intersection over union is above the threshold."""
    sides = [f.input(0, "float32").take([place], 2) for place in range(4)]
    if node.known_value_or_default("center_point_box"):
        halves = [size / 2.0 for size in sides[2:]]
        bounds = [(centre - half, centre + half) for centre, half in zip(sides[:2], halves, strict=True)]
    else:
        bounds = [(f.apply("Min", *pair), f.apply("Max", *pair)) for pair in zip(sides[:2], sides[2:], strict=True)]
    area = reduce(Term.__mul__, [high - low for low, high in bounds])
    other_area, lengths = area.transposed(0, 2, 1), []
    for low, high in bounds:
        start, end = f.apply("Max", low, low.transposed(0, 2, 1)), f.apply("Min", high, high.transposed(0, 2, 1))
        lengths.append(end - start)
    inner = reduce(Term.__mul__, lengths)
    union = area + other_area - inner
    threshold = f.given(3).reshape() if node.uses_input(3) else 0.0
    result = inner / union > threshold
    for size in (*lengths, inner, area, other_area, union):
        result = result & (size > 0.0)
    return result
