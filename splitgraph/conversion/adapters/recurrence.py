"""RNN, GRU and LSTM."""

from __future__ import annotations

from splitgraph.conversion.adapters.registry import downward
from splitgraph.conversion.step import Inexact, Step

# Where the states stand among the inputs of each operator.
_STATES = {"RNN": (5,), "GRU": (5,), "LSTM": (5, 6)}


@downward("GRU LSTM RNN", 14)
def time_first(step: Step) -> None:
    """Below 14, time comes first: layout=1, where the batch does, is the same with Transpose around it."""
    if step.known_value("layout", 0) == 0:
        raise Inexact("its element types are not allowed below it")
    step.drop("layout", why=f"time comes first {step.side}")
    for index in (0, *_STATES[step.form.op_type]):
        if step.uses_input(index):
            step.inputs[index] = step.emit("Transpose", [step.inputs[index]], "time_first", perm=[1, 0, 2])
    for index, name in enumerate(step.outputs):
        if name:
            given = step.redirect(index, "time_first")
            order = [1, 0, 2] if index else [2, 0, 1, 3]
            step.emit_after("Transpose", [step.outputs[index]], given, perm=order)


@downward("GRU", 3)
def last_state_named(step: Step) -> None:
    """Below 3, Y_h is an output that must be named."""
    if step.known_is_set("linear_before_reset"):
        raise Inexact("linear_before_reset does not exist below it")
    step.drop("linear_before_reset", why="it has its default value, and does not exist below opset 3")
    step.outputs.extend([""] * (2 - len(step.outputs)))
    step.outputs[1] = step.outputs[1] or step.new_name("last")
