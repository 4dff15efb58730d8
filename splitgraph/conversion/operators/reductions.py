"""The reductions (ReduceSum, ReduceMean, ...), ArgMax and ArgMin: negative axes (11), axes became an input (13 for
ReduceSum, 18 for the others), and select_last_index (12).
"""

from __future__ import annotations

from splitgraph.conversion.operators.predicates import MINUS_AXIS, RANK_HINT, axes_counted_from_front
from splitgraph.conversion.operators.registry import always, changed, downward, exact, unchanged, upward
from splitgraph.conversion.operators.shapes import make_axes_an_input
from splitgraph.conversion.writing.formula import Formula, has_no_zero
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.deferred import np

_REDUCTIONS_18 = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSumSquare"
)

# The reductions -----------------------------------------------------------------------------------------------------

unchanged("ReduceL1 ReduceL2 ReduceMean ReduceProd ReduceSumSquare", 13)
unchanged("ReduceLogSum ReduceLogSumExp", 13, 28)
unchanged("ReduceMax ReduceMin", 12, 13, 20)
changed(
    f"ReduceSum {_REDUCTIONS_18}",
    11,
    MINUS_AXIS,
    up=always,
    down=axes_counted_from_front("axes"),
    hint=RANK_HINT,
)
changed("ReduceSum", 13, "the attribute axes became an input")


@exact("ReduceSum", 13)
def reduces_all_axes(node: NodeAtBoundary) -> bool:
    """True when the node has no axes, which means all axes."""
    if node.upward:
        return not node.has("axes")
    return not node.uses_input(1) and node.value("noop_with_empty_axes", 0) == 0


upward("ReduceSum", 13)(make_axes_an_input)


@downward("ReduceSum", 13)
@downward(_REDUCTIONS_18, 18)
def make_reduced_axes_an_attribute(node: NodeAtBoundary) -> None:
    """Turns a constant second input into the attribute axes. Without axes and with noop_with_empty_axes, nothing is
    reduced, but the elements are still squared and so on.

    Axes that are known only at run time: the data gets two dimensions for each of its dimensions, one that is kept and
    one that is reduced; one of the two is 1.
    """
    node.require_types()
    is_noop = node.known_value_or_default("noop_with_empty_axes") == 1
    node.drop("noop_with_empty_axes", why=f"it does not exist {node.side}")
    axes = node.integers(1)
    if node.uses_input(1) and axes is None:
        _reduce_at_run_time(node, is_noop)
        return
    del node.inputs[1:]
    if axes:
        node.set("axes", axes, f"it is an attribute {node.side}")
    elif is_noop:
        _reduce_nothing(node)


def _reduce_at_run_time(node: NodeAtBoundary, is_noop: bool) -> None:
    """Reduces along axes that are known only at run time."""
    rank, keeps, f = node.known_rank(0), node.known_value_or_default("keepdims"), Formula(node)
    data, axes, dense = f.input(0), f.input(1, "int64"), has_no_zero(node, node.inputs[0])
    del node.inputs[1:]
    if rank == 0:
        # A scalar has no axes: reducing none or all is the same.
        return
    shape, is_reduced = f.shape(data.name), f.mask_of_axes(axes, f.number([rank]))
    if not is_noop:
        is_reduced = is_reduced | f.shape(axes.name).equals(f.number([0]))
    kept, gone = f.where(is_reduced, f.number([1]), shape), f.where(is_reduced, shape, f.number([1]))
    pairs = f.joined([sizes.reshape(rank, 1) for sizes in (kept, gone)], 1).reshape(-1)
    node.reasons["axes"] = "the axes are known only at run time"
    in_pairs = data.with_shape(pairs, dense=dense)
    reduced = f.node(node.op_type, in_pairs, axes=list(range(1, 2 * rank, 2)), keepdims=0)
    f.give(reduced if keeps else reduced.with_shape(shape.take(f.positions(~is_reduced)), dense=dense))


def _reduce_nothing(node: NodeAtBoundary) -> None:
    """Reduces an added dimension of 1, so that the operator does everything else that it does."""
    if node.op_type in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"):
        node.replace("Identity", node.inputs)
        return
    rank = node.known_rank(0)
    node.inputs[0] = Formula(node).input(0).unsqueezed(rank).name
    node.set("axes", [rank], f"nothing is reduced, which below opset {node.upper.since_version} a dimension of 1 does")
    node.set("keepdims", 0, "the dimension of 1 was added")


changed(_REDUCTIONS_18, 18, "the attribute axes became an input")
exact(_REDUCTIONS_18, 18)(reduces_all_axes)
upward(_REDUCTIONS_18, 18)(make_axes_an_input)

# ArgMax, ArgMin -----------------------------------------------------------------------------------------------------

unchanged("ArgMax ArgMin", 12, 13)
changed("ArgMax ArgMin", 11, MINUS_AXIS, up=always, down=axes_counted_from_front("axis"), hint=RANK_HINT)


@downward("ArgMax ArgMin", 12)
def find_last_index_in_reverse(node: NodeAtBoundary) -> None:
    """Reverses the tensor: the last of several equal elements is the first one there."""
    node.require_types()
    if not node.known_is_set("select_last_index"):
        raise Inexact("the first of several equal elements is not what stands in the way")
    f, axis = Formula(node), node.known_value_or_default("axis")
    if axis < 0 and node.input_type(0).rank is not None:
        axis += node.known_rank(0)
    last = f.shape(node.inputs[0]).take(axis) - 1
    bounds = [f.number([bound]) for bound in (-1, np.iinfo(np.int64).min, axis, -1)]
    node.inputs[0] = f.node("Slice", f.input(0), *bounds).name
    node.drop("select_last_index", why=f"it does not exist {node.side}")
    f.follow(0, lambda in_reverse: last - in_reverse)
