"""The reductions (ReduceSum, ReduceMean, ...), ArgMax and ArgMin: negative axes (11), axes became an input (13 for
ReduceSum, 18 for the others), and select_last_index (12).
"""

from __future__ import annotations

from splitgraph.conversion.operators.axes import make_axes_an_input
from splitgraph.conversion.operators.predicates import MINUS_AXIS, RANK_HINT, axes_counted_from_front
from splitgraph.conversion.operators.registry import always, changed, downward, exact, unchanged, upward
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
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
def reduces_all_axes(crossing: AdapterContext) -> bool:
    """True when the node has no axes, which means all axes."""
    if crossing.upward:
        return not crossing.has("axes")
    return not crossing.uses_input(1) and crossing.value("noop_with_empty_axes", 0) == 0


upward("ReduceSum", 13)(make_axes_an_input)


@downward("ReduceSum", 13)
@downward(_REDUCTIONS_18, 18)
def make_reduced_axes_an_attribute(context: AdapterContext) -> None:
    """Turns a constant second input into the attribute axes. Without axes and with noop_with_empty_axes, nothing is
    reduced, but the elements are still squared and so on.

    Axes that are known only at run time: the data gets two dimensions for each of its dimensions, one that is kept and
    one that is reduced; one of the two is 1.
    """
    context.require_types()
    is_noop = context.known_value_or_default("noop_with_empty_axes") == 1
    context.drop("noop_with_empty_axes", why=f"it does not exist {context.side}")
    axes = context.integers(1)
    if context.uses_input(1) and axes is None:
        _reduce_at_run_time(context, is_noop)
        return
    del context.inputs[1:]
    if axes:
        context.set("axes", axes, f"it is an attribute {context.side}")
    elif is_noop:
        _reduce_nothing(context)


def _reduce_at_run_time(context: AdapterContext, is_noop: bool) -> None:
    """Reduces along axes that are known only at run time."""
    data, axes = context.inputs
    rank, keeps = context.known_rank(0), context.known_value_or_default("keepdims")
    del context.inputs[1:]
    if rank == 0:
        # A scalar has no axes: reducing none or all is the same.
        return
    shape = context.emit("Shape", [data], "shape")
    mask = mask_of_axes(context, axes, context.constant([rank], "rank"), "is_reduced")
    if not is_noop:
        count = context.emit("Shape", [axes], "axes_count")
        mask = context.emit(
            "Or", [mask, context.emit("Equal", [count, context.constant([0], "zero")], "reduces_all")], "reduced"
        )
    one, column = context.constant([1], "one"), context.constant([rank, 1], "column")
    kept, gone = context.emit("Where", [mask, one, shape], "kept"), context.emit("Where", [mask, shape, one], "gone")
    pairs = [context.emit("Reshape", [sizes, column], "as_column") for sizes in (kept, gone)]
    paired = context.emit(
        "Reshape", [context.emit("Concat", pairs, "pairs", axis=1), context.constant([-1], "row")], "paired"
    )
    dense = has_no_zero(context, data)
    in_pairs = reshape(context, data, paired, "in_pairs", dense=dense)
    reduced = {"axes": list(range(1, 2 * rank, 2)), "keepdims": 0}
    context.reasons["axes"] = "the axes are known only at run time"
    if keeps:
        context.replace(context.form.op_type, [in_pairs], **reduced)
        return
    with_ones = context.emit(context.form.op_type, [in_pairs], "with_ones", **reduced)
    left = kept_dimensions(context, shape, mask)
    replace_by_reshape(context, with_ones, left, dense=dense)


def _reduce_nothing(context: AdapterContext) -> None:
    """Reduces an added dimension of 1, so that the operator does everything else that it does."""
    if context.form.op_type in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"):
        context.replace("Identity", context.inputs)
        return
    rank = context.known_rank(0)
    context.inputs[0] = context.emit("Unsqueeze", [context.inputs[0], context.constant([rank], "behind")], "with_one")
    context.set(
        "axes", [rank], f"nothing is reduced, which below opset {context.upper.since_version} a dimension of 1 does"
    )
    context.set("keepdims", 0, "the dimension of 1 was added")


changed(_REDUCTIONS_18, 18, "the attribute axes became an input")
exact(_REDUCTIONS_18, 18)(reduces_all_axes)
upward(_REDUCTIONS_18, 18)(make_axes_an_input)

# ArgMax, ArgMin -----------------------------------------------------------------------------------------------------

unchanged("ArgMax ArgMin", 12, 13)
changed("ArgMax ArgMin", 11, MINUS_AXIS, up=always, down=axes_counted_from_front("axis"), hint=RANK_HINT)


@downward("ArgMax ArgMin", 12)
def find_last_index_in_reverse(context: AdapterContext) -> None:
    """Reverses the tensor: the last of several equal elements is the first one there."""
    context.require_types()
    if not context.known_is_set("select_last_index"):
        raise Inexact("the first of several equal elements is not what stands in the way")
    axis = context.known_value_or_default("axis")
    if axis < 0 and context.input_type(0).rank is not None:
        axis += context.known_rank(0)
    shape = context.emit("Shape", [context.inputs[0]], "shape")
    bounds = [[-1], [np.iinfo(np.int64).min], [axis], [-1]]
    names = [context.constant(held, hint) for held, hint in zip(bounds, ("start", "end", "axis", "step"), strict=True)]
    context.inputs[0] = context.emit("Slice", [context.inputs[0], *names], "reversed")
    last = context.emit("Sub", [dimension(context, shape, axis, "length"), context.constant(1, "one")], "last")
    context.drop("select_last_index", why=f"it does not exist {context.side}")
    old = context.redirect(0, "in_reverse")
    context.emit_after("Sub", [last, context.outputs[0]], old)
