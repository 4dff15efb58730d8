"""The reductions (ReduceSum, ReduceMean, ...), ArgMax and ArgMin: negative axes (11), axes became an input (13 for
ReduceSum, 18 for the others), and select_last_index (12).
"""

from __future__ import annotations

from splitgraph.conversion.operators.axes import make_axes_an_input
from splitgraph.conversion.operators.predicates import MINUS_AXIS, RANK_HINT, axes_counted_from_front
from splitgraph.conversion.operators.registry import always, changed, downward, exact, unchanged, upward
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.writing.reshaping import replace_by_reshape, reshape
from splitgraph.conversion.writing.shape_nodes import dimension, has_no_zero, kept_dimensions, mask_of_axes
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
    data, axes = node.inputs
    rank, keeps = node.known_rank(0), node.known_value_or_default("keepdims")
    del node.inputs[1:]
    if rank == 0:
        # A scalar has no axes: reducing none or all is the same.
        return
    shape = node.write("Shape", [data], "shape")
    mask = mask_of_axes(node, axes, node.constant([rank], "rank"), "is_reduced")
    if not is_noop:
        count = node.write("Shape", [axes], "axes_count")
        mask = node.write(
            "Or", [mask, node.write("Equal", [count, node.constant([0], "zero")], "reduces_all")], "reduced"
        )
    one, column = node.constant([1], "one"), node.constant([rank, 1], "column")
    kept, gone = node.write("Where", [mask, one, shape], "kept"), node.write("Where", [mask, shape, one], "gone")
    pairs = [node.write("Reshape", [sizes, column], "as_column") for sizes in (kept, gone)]
    paired = node.write("Reshape", [node.write("Concat", pairs, "pairs", axis=1), node.constant([-1], "row")], "paired")
    dense = has_no_zero(node, data)
    in_pairs = reshape(node, data, paired, "in_pairs", dense=dense)
    reduced = {"axes": list(range(1, 2 * rank, 2)), "keepdims": 0}
    node.reasons["axes"] = "the axes are known only at run time"
    if keeps:
        node.replace(node.op_type, [in_pairs], **reduced)
        return
    with_ones = node.write(node.op_type, [in_pairs], "with_ones", **reduced)
    left = kept_dimensions(node, shape, mask)
    replace_by_reshape(node, with_ones, left, dense=dense)


def _reduce_nothing(node: NodeAtBoundary) -> None:
    """Reduces an added dimension of 1, so that the operator does everything else that it does."""
    if node.op_type in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"):
        node.replace("Identity", node.inputs)
        return
    rank = node.known_rank(0)
    node.inputs[0] = node.write("Unsqueeze", [node.inputs[0], node.constant([rank], "behind")], "with_one")
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
    axis = node.known_value_or_default("axis")
    if axis < 0 and node.input_type(0).rank is not None:
        axis += node.known_rank(0)
    shape = node.write("Shape", [node.inputs[0]], "shape")
    bounds = [[-1], [np.iinfo(np.int64).min], [axis], [-1]]
    names = [node.constant(held, hint) for held, hint in zip(bounds, ("start", "end", "axis", "step"), strict=True)]
    node.inputs[0] = node.write("Slice", [node.inputs[0], *names], "reversed")
    last = node.write("Sub", [dimension(node, shape, axis, "length"), node.constant(1, "one")], "last")
    node.drop("select_last_index", why=f"it does not exist {node.side}")
    old = node.redirect(0, "in_reverse")
    node.write_after("Sub", [last, node.outputs[0]], old)
