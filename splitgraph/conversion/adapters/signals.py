"""Sampling of images: RoiAlign."""

from __future__ import annotations

from splitgraph.conversion.adapters.registry import downward
from splitgraph.conversion.step import Inexact, Step


@downward("RoiAlign", 16)
def shifted_regions(step: Step) -> None:
    """Below 16 there is no shift by half a pixel, and regions are at least one pixel wide and high."""
    step.require_types()
    if step.known_value("mode", "avg") != "avg":
        raise Inexact("runtimes changed what mode=max computes")
    raise Inexact("half_pixel lets a region be smaller than a pixel, which below it none is")
