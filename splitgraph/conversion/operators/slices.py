"""Slice and Trilu: starts, ends and axes became inputs (10), steps were added (10), and negative axes were allowed
(11); Trilu is written with Where below its first opset.
"""

from __future__ import annotations

from splitgraph.conversion.known_values import Array
from splitgraph.conversion.notation.formula import GREATEST_INT64, Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary, require_few, require_few_axes
from splitgraph.conversion.operators.registry import always, changed, downward, input_is_omitted, unchanged, upward
from splitgraph.inference.computed_values import is_end_disputed
from splitgraph.model.deferred import np

# Slice --------------------------------------------------------------------------------------------------------------

unchanged("Slice", 13)
changed("Slice", 10, "the attributes starts, ends and axes became inputs")


@upward("Slice", 10)
def make_bounds_inputs(node: NodeAtBoundary) -> None:
    """Turn starts, ends and axes into constants. A bound beyond a dimension means its end on both sides."""
    node.require_types()
    names = ["starts", "ends"] + (["axes"] if node.has("axes") else [])
    node.inputs.extend([node.attribute_as_input(name) for name in names])


@downward("Slice", 10)
def make_bounds_attributes(node: NodeAtBoundary) -> None:
    """Turn constant starts, ends and axes into attributes. Where they are known only at run time, or a step is not 1,
    the indices of the slice are computed and gathered, axis after axis.
    """
    node.require_types()
    starts, ends, axes = node.elements(1), node.elements(2), node.elements(3)
    steps = node.elements(4) if node.uses_input(4) else np.ones(1, np.int64)
    if not node.uses_input(3):
        axes = np.arange(_sliced_axis_count(node))
    if ends is not None and steps is not None and any(map(is_end_disputed, _ints(ends), _ints(steps))):
        raise Inexact(
            "onnxruntime takes the largest integer as the end of a backward slice for its beginning, and the "
            "specification for the last element",
            "give the smallest integer as its end",
        )
    if starts is None or ends is None or axes is None or steps is None or np.any(steps != 1):
        _slice_by_gathering(node, axes)
        return
    del node.inputs[1:]
    node.set("starts", _ints(starts), f"it is an attribute {node.side}")
    node.set("ends", _ints(ends), f"it is an attribute {node.side}")
    node.set("axes", _from_front(node, axes), f"it is an attribute {node.side}")


def _sliced_axis_count(node: NodeAtBoundary) -> int:
    """Return the number of axes that the node slices."""
    for index in (1, 2, 3, 4):
        shape = node.input_type(index).shape
        if shape and isinstance(shape[0], int):
            require_few(shape[0])
            return shape[0]
    raise Inexact("how many axes it slices is known only at run time")


def _ints(elements: Array) -> list[int]:
    """Return the elements of an array as Python integers."""
    return [int(item) for item in elements.reshape(-1)]


def _slice_by_gathering(node: NodeAtBoundary, given: Array | None) -> None:
    """Gather the slice axis after axis. given: the axes, None where they are known only at run time."""
    f = Formula(node)
    starts, ends = (f.given(index).cast("int64") for index in (1, 2))
    if node.uses_input(4):
        steps = f.given(4).cast("int64")
    else:
        steps = f.filled(f.shape(node.inputs[1]), 1) if given is None else f.number([1] * given.size)
    if given is None:
        # Only the run tells the axes: there are bounds for all axes.
        axes, places = list(range(node.known_rank(0))), f.input(3).cast("int64")
        whole = [f.number([number] * len(axes)) for number in (0, GREATEST_INT64, 1)]
        starts, ends, steps = (
            f.apply("Scatter", of_all, places, bound, axis=0)
            for of_all, bound in zip(whole, (starts, ends, steps), strict=True)
        )
    else:
        axes = _from_front(node, given)
    require_few_axes(len(axes))
    # Other axes are sliced by now; each axis still has the length that it has in the input.
    data = f.input(0)
    for place, axis in enumerate(axes):
        bounds = [bound.take(place) for bound in (starts, ends, steps)]
        data = data.take(_places(f.size(0, axis), *bounds), axis)
    f.give(data)


def _from_front(node: NodeAtBoundary, axes: Array) -> list[int]:
    """Count axes from the front."""
    if np.any(axes < 0):
        axes = axes % node.known_rank(0)
    return _ints(axes)


def _places(length: Term, start: Term, end: Term, step: Term) -> Term:
    """Compute the places of a slice, as the document of Slice-13 says."""
    f = length.formula
    # Backwards, both bounds are one less: from the last element to the one before the first.
    one_less = f.where(step < 0, f.number(-1), 0)
    last = length + one_less
    first = start.from_front(length).clipped(0, last)
    final = end.from_front(length).clipped(one_less, last)
    # Adding the step less one (with the sign of the step) rounds the quotient up.
    count = (final - first + (step - f.apply("Sign", step))) / step
    return f.counting(count.at_least(0)) * step + first


changed(
    "Slice",
    11,
    "below it, the axes must not be negative, and here they are an input",
    up=always,
    down=input_is_omitted(3),
)


@downward("Slice", 11)
def count_slice_axes_from_front(node: NodeAtBoundary) -> None:
    """Count negative axes from the front, as below 11: constants now, others at run time."""
    node.require_types()
    axes = node.elements(3)
    if axes is not None and np.all(axes >= 0):
        return
    f, rank = Formula(node), node.input_type(0).rank
    size = f.shape(node.inputs[0]).shape() if rank is None else f.number([rank])
    given = f.given(3)
    node.known_dtype(3)
    node.inputs[3] = given.cast("int64").from_front(size).cast(given.dtype).name


# Trilu --------------------------------------------------------------------------------------------------------------


@downward("Trilu", 14)
def mask_triangle(node: NodeAtBoundary) -> None:
    """Keep the elements where column - row is at least (upper) or at most (lower) k; the others become 0."""
    dtype = node.known_dtype(0)
    if dtype == "string":
        raise Inexact("the value outside of a triangle of strings is not specified")
    f, rank = Formula(node), node.input_type(0).rank
    data = f.input(0)
    places = [-2, -1] if rank is None else [rank - 2, rank - 1]
    rows, columns = (f.counting(f.shape(data.name).take([place]), is_row=True) for place in places)
    offsets = columns - rows.reshape(-1, 1)
    k = f.given(1).reshape() if node.uses_input(1) else f.number(0)
    outside = offsets < k if node.known_value_or_default("upper") else offsets > k
    # Where of some engines does not take booleans.
    f.give(data & ~outside if dtype == "bool" else f.where(outside, 0, data))
