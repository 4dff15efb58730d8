"""Softmax, LogSoftmax and Hardmax: all dimensions from an axis on together, or one axis."""

from __future__ import annotations

from splitgraph.conversion.adapters.registry import downward, upward
from splitgraph.conversion.step import Inexact, Step

_OPERATORS = "Hardmax LogSoftmax Softmax"


@upward(_OPERATORS, 13)
def flattened(step: Step) -> None:
    """Below 13 the input is a matrix, folded at `axis` (1 by default): Flatten folds it there, with the same default
    and of any rank, the operator works on the last axis, and Reshape unfolds what comes out.
    """
    data = step.inputs[0]
    axis = step.attributes.pop("axis", None)
    step.reasons["axis"] = f"only one axis is normalized {step.side}"
    step.inputs[0] = step.emit("Flatten", [data], "folded")
    if axis is not None:
        step.before[-1].attributes["axis"] = axis
    shape = step.emit("Shape", [data], "shape")
    unfolded = step.redirect(0, "normalized")
    step.emit_after("Reshape", [step.outputs[0], shape], unfolded)


@downward(_OPERATORS, 13)
def axis_moved_to_the_end(step: Step) -> None:
    """Below 13 the last axis alone is only normalized where it is given as the last: Transpose exchanges the axis for
    it before and after.
    """
    axis = step.known_value("axis", -1)
    rank = step.known_rank(0)
    if not -rank <= axis < rank:
        raise Inexact(f"axis {axis} is out of range")
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    step.inputs[0] = step.emit("Transpose", [step.inputs[0]], "exchanged", perm=order)
    step.set("axis", rank - 1, f"the last axis is the one that is normalized alone {step.side}")
    given = step.redirect(0, "normalized")
    step.emit_after("Transpose", [step.outputs[0]], given, perm=order)
