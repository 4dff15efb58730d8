"""Axes that were an attribute and became an input: Squeeze, Unsqueeze, the reductions."""

from __future__ import annotations

from splitgraph.conversion.adapters.registry import downward, upward
from splitgraph.conversion.step import Step

_REDUCTIONS_18 = (
    "ReduceL1 ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd ReduceSumSquare"
)


@upward("Squeeze Unsqueeze ReduceSum", 13)
@upward(_REDUCTIONS_18, 18)
def axes_as_input(step: Step) -> None:
    """The attribute axes becomes a constant, the second input."""
    if step.has("axes"):
        step.inputs.append(step.attribute_as_input("axes"))


@downward("Squeeze Unsqueeze ReduceSum", 13)
@downward(_REDUCTIONS_18, 18)
def axes_as_attribute(step: Step) -> None:
    """A constant second input becomes the attribute axes. With noop_with_empty_axes, no axes at all reduce nothing."""
    axes = step.constant_ints(1, "axes") if step.uses_input(1) else []
    is_noop = step.known_value("noop_with_empty_axes", 0) == 1
    step.drop("noop_with_empty_axes", why=f"it does not exist {step.side}")
    del step.inputs[1:]
    if axes:
        step.set("axes", axes, f"it is an attribute {step.side}")
    elif is_noop:
        step.replace("Identity", step.inputs)
