"""Sampling of images and signals: DFT, GridSample, RoiAlign."""

from __future__ import annotations

from splitgraph.conversion.adapters.registry import downward, upward
from splitgraph.conversion.step import Inexact, Step


@upward("DFT", 20)
def transform_axis_as_input(step: Step) -> None:
    """The attribute axis, 1 when absent, becomes a constant; the default of the input is the last but one."""
    step.require_types()
    step.inputs.extend([""] * (2 - len(step.inputs)))
    has = step.has("axis")
    step.inputs.append(step.attribute_as_input("axis") if has else step.constant(1, "axis"))


@downward("DFT", 20)
def transform_axis_as_attribute(step: Step) -> None:
    """A constant axis becomes an attribute; the default, the last but one, is -2 there."""
    step.require_types()
    axis = step.constant_ints(2, "axis")[0] if step.uses_input(2) else -2
    del step.inputs[2:]
    while step.inputs[-1] == "":
        step.inputs.pop()
    step.set("axis", axis, f"it is an attribute {step.side}")


@downward("RoiAlign", 16)
def shifted_regions(step: Step) -> None:
    """Below 16 there is no shift by half a pixel, and regions are at least one pixel wide and high."""
    step.require_types()
    if step.known_value("mode", "avg") != "avg":
        raise Inexact("runtimes changed what mode=max computes")
    raise Inexact("half_pixel lets a region be smaller than a pixel, which below it none is")
