"""The reductions, ArgMax and ArgMin: axes that were an attribute and became an input."""

from __future__ import annotations

from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.conversion.operators.axes import axes_as_input
from splitgraph.conversion.operators.predicates import MINUS_AXIS, RANK_HINT, axes_counted_from_front
from splitgraph.conversion.operators.registry import always, changed, downward, exact, unchanged, upward
from splitgraph.conversion.writing.adapter_context import Inexact, Step
from splitgraph.conversion.writing.reshaping import reshaped
from splitgraph.conversion.writing.shape_nodes import (
    dimension,
    has_no_zero,
    mask_of_axes,
    positions,
)
from splitgraph.deferred import np

_REDUCTIONS_18 = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSumSquare"
)


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
def reduces_all_axes(c: Crossing) -> bool:
    """No axes are given and that means all of them."""
    if c.upward:
        return not c.has("axes")
    return not c.uses_input(1) and c.value("noop_with_empty_axes", 0) == 0


upward("ReduceSum", 13)(axes_as_input)


@downward("ReduceSum", 13)
@downward(_REDUCTIONS_18, 18)
def reduced_axes_as_attribute(step: Step) -> None:
    """A constant second input becomes the attribute axes; axes known only at run time become those of a tensor with
    two dimensions for each of the data: the one that is kept and the one that is reduced, of which one is 1.

    With noop_with_empty_axes, no axes at all reduce nothing, but the elements are still squared and so on.
    """
    step.require_types()
    is_noop = step.known_value("noop_with_empty_axes", 0) == 1
    step.drop("noop_with_empty_axes", why=f"it does not exist {step.side}")
    axes = step.integers(1)
    if step.uses_input(1) and axes is None:
        _reduce_at_run_time(step, is_noop)
        return
    del step.inputs[1:]
    if axes:
        step.set("axes", axes, f"it is an attribute {step.side}")
    elif is_noop:
        _reduce_nothing(step)


def _reduce_nothing(step: Step) -> None:
    """Reduce a dimension of 1 behind all others, which leaves what the operator does besides reducing."""
    if step.form.op_type in ("ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd"):
        step.replace("Identity", step.inputs)
        return
    rank = step.known_rank(0)
    step.inputs[0] = step.emit("Unsqueeze", [step.inputs[0], step.constant([rank], "behind")], "with_one")
    step.set("axes", [rank], f"nothing is reduced, which below opset {step.upper.since_version} a dimension of 1 does")
    step.set("keepdims", 0, "the dimension of 1 was added")


def _reduce_at_run_time(step: Step, is_noop: bool) -> None:
    data, axes = step.inputs
    rank, keeps = step.known_rank(0), step.known_value("keepdims", 1)
    del step.inputs[1:]
    if rank == 0:
        # A scalar has no axes; over none or all is the same.
        return
    shape = step.emit("Shape", [data], "shape")
    mask = mask_of_axes(step, axes, step.constant([rank], "rank"), "is_reduced")
    if not is_noop:
        count = step.emit("Shape", [axes], "axes_count")
        mask = step.emit(
            "Or", [mask, step.emit("Equal", [count, step.constant([0], "zero")], "reduces_all")], "reduced"
        )
    one, column = step.constant([1], "one"), step.constant([rank, 1], "column")
    kept, gone = step.emit("Where", [mask, one, shape], "kept"), step.emit("Where", [mask, shape, one], "gone")
    pairs = [step.emit("Reshape", [sizes, column], "as_column") for sizes in (kept, gone)]
    paired = step.emit("Reshape", [step.emit("Concat", pairs, "pairs", axis=1), step.constant([-1], "row")], "paired")
    dense = has_no_zero(step, data)
    operator, inputs, attributes = reshaped(step, data, paired, dense=dense)
    in_pairs = step.emit(operator, inputs, "in_pairs", **attributes)
    reduced = {"axes": list(range(1, 2 * rank, 2)), "keepdims": 0}
    step.reasons["axes"] = "the axes are known only at run time"
    if keeps:
        step.replace(step.form.op_type, [in_pairs], **reduced)
        return
    with_ones = step.emit(step.form.op_type, [in_pairs], "with_ones", **reduced)
    left = step.emit("Gather", [shape, positions(step, step.emit("Not", [mask], "is_kept"), "kept_axes")], "left")
    operator, inputs, attributes = reshaped(step, with_ones, left, dense=dense)
    step.replace(operator, inputs, **attributes)


unchanged("ReduceL1 ReduceL2 ReduceMean ReduceProd ReduceSumSquare", 13)
changed(_REDUCTIONS_18, 18, "the attribute axes became an input")
exact(_REDUCTIONS_18, 18)(reduces_all_axes)
upward(_REDUCTIONS_18, 18)(axes_as_input)
unchanged("ReduceLogSum ReduceLogSumExp", 13, 28)
unchanged("ReduceMax ReduceMin", 12, 13, 20)
unchanged("ArgMax ArgMin", 12, 13)
changed("ArgMax ArgMin", 11, MINUS_AXIS, up=always, down=axes_counted_from_front("axis"), hint=RANK_HINT)


@downward("ArgMax ArgMin", 12)
def last_index_in_reverse(step: Step) -> None:
    """The last of several equal elements is the first of them in the reversed tensor."""
    step.require_types()
    if not step.known_is_set("select_last_index"):
        raise Inexact("the first of several equal elements is not what stands in the way")
    axis = step.known_value("axis", 0)
    if axis < 0 and step.input_type(0).rank is not None:
        axis += step.known_rank(0)
    shape = step.emit("Shape", [step.inputs[0]], "shape")
    bounds = [[-1], [np.iinfo(np.int64).min], [axis], [-1]]
    names = [step.constant(held, hint) for held, hint in zip(bounds, ("start", "end", "axis", "step"), strict=True)]
    step.inputs[0] = step.emit("Slice", [step.inputs[0], *names], "reversed")
    last = step.emit("Sub", [dimension(step, shape, axis, "length"), step.constant(1, "one")], "last")
    step.drop("select_last_index", why=f"it does not exist {step.side}")
    old = step.redirect(0, "in_reverse")
    step.emit_after("Sub", [last, step.outputs[0]], old)
