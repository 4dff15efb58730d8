"""Axes that were an attribute and became an input: Squeeze, Unsqueeze, the reductions."""

from __future__ import annotations

from splitgraph.conversion.adapters.registry import downward, upward
from splitgraph.conversion.adapters.reshaping import reshaped
from splitgraph.conversion.shape_nodes import has_no_zero, mask_of_axes, positions
from splitgraph.conversion.step import Inexact, Step

_REDUCTIONS_18 = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSumSquare"
)


@upward("Squeeze Unsqueeze ReduceSum", 13)
@upward(_REDUCTIONS_18, 18)
def axes_as_input(step: Step) -> None:
    """The attribute axes becomes a constant, the second input."""
    step.require_types()
    if step.has("axes"):
        step.inputs.append(step.attribute_as_input("axes"))


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


@downward("Squeeze Unsqueeze", 13)
def moved_axes_as_attribute(step: Step) -> None:
    """A constant second input becomes the attribute axes; with axes known only at run time the node is a Reshape."""
    step.require_types()
    found = step.integers(1)
    if step.uses_input(1) and found is None:
        data, axes = step.inputs
        shape = step.emit("Shape", [data], "shape")
        new = _squeezed(step, shape, axes) if step.form.op_type == "Squeeze" else _unsqueezed(step, shape, axes)
        dense = has_no_zero(step, data)
        operator, inputs, attributes = reshaped(step, data, new, dense=dense)
        step.replace(operator, inputs, **attributes)
        return
    del step.inputs[1:]
    if found:
        step.set("axes", found, f"it is an attribute {step.side}")
    elif found is not None:
        if step.form.op_type == "Squeeze":
            raise Inexact("an empty list of axes squeezes nothing or everything, depending on who reads it")
        step.replace("Identity", step.inputs)


def _squeezed(step: Step, shape: str, axes: str) -> str:
    mask = mask_of_axes(step, axes, step.emit("Shape", [shape], "rank"), "is_squeezed")
    return step.emit("Gather", [shape, positions(step, step.emit("Not", [mask], "is_kept"), "kept_axes")], "left")


def _unsqueezed(step: Step, shape: str, axes: str) -> str:
    """The shape with dimensions of 1 among the others, which stay in order."""
    sizes = [step.emit("Shape", [value], "count") for value in (shape, axes)]
    mask = mask_of_axes(step, axes, step.emit("Add", sizes, "rank"), "is_new")
    kept = positions(step, step.emit("Not", [mask], "is_old"), "old_axes")
    as_ones = step.emit("Cast", [mask], "ones", to=7)
    return step.emit("ScatterElements", [as_ones, kept, shape], "unsqueezed_shape", axis=0)
