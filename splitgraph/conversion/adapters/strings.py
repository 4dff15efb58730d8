"""Strings below the opset at which an operator took them: Equal."""

from __future__ import annotations

from splitgraph.conversion.adapters.registry import downward
from splitgraph.conversion.adapters.reshaping import reshaped
from splitgraph.conversion.shape_nodes import flat, has_no_zero
from splitgraph.conversion.step import Inexact, Step


@downward("Equal", 19)
def equal_of_strings(step: Step) -> None:
    """Unique gives each string of both inputs a number, the same to equal ones; the numbers are compared."""
    dtype = step.known_dtype()
    if dtype != "string":
        raise Inexact(f"nothing compares {dtype} {step.side}")
    flats = [flat(step, name, "strings") for name in step.inputs]
    both = step.emit("Concat", flats, "all_strings", axis=0)
    _, _, numbers = step.emit_many("Unique", [both], ["unique", "first_places", "numbers"])
    count = step.emit("Shape", flats[:1], "count")
    bounds = (step.constant([0], "start"), count), (count, step.constant([2**63 - 1], "end"))
    numbered = []
    for name, (start, end) in zip(step.inputs, bounds, strict=True):
        own = step.emit("Slice", [numbers, start, end], "own_numbers")
        shape = step.emit("Shape", [name], "shape")
        operator, inputs, attributes = reshaped(step, own, shape, dense=has_no_zero(step, name))
        numbered.append(step.emit(operator, inputs, "numbered", **attributes))
    step.replace("Equal", numbered)
