"""RNN, GRU and LSTM."""

from __future__ import annotations

from splitgraph.attribute_values import UNRESOLVED
from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.conversion.operators.registry import always, changed, downward, exact, exact_upward, unchanged
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact

# Where the states stand among the inputs of each operator.
_STATES = {"RNN": (5,), "GRU": (5,), "LSTM": (5, 6)}

unchanged("GRU LSTM RNN", 14, 22)
changed("GRU", 3, "the default direction was misspelt below it", down=always)


@exact_upward("GRU", 3)
def gru_direction(crossing: Crossing) -> bool:
    """GRU 1|3, upward: the first schema misspelt "forward"."""
    crossing.accept_default("direction")
    if crossing.value("direction") is UNRESOLVED:
        return False
    if crossing.value("direction") == "foward":
        crossing.set("direction", "forward", "the spelling of GRU-1's schema was corrected")
    return True


@downward("GRU", 3)
def last_state_named(context: AdapterContext) -> None:
    """Below 3, Y_h is an output that must be named."""
    if context.known_is_set("linear_before_reset"):
        raise Inexact("linear_before_reset does not exist below it")
    context.drop("linear_before_reset", why="it has its default value, and does not exist below opset 3")
    context.outputs.extend([""] * (2 - len(context.outputs)))
    context.outputs[1] = context.outputs[1] or context.new_name("last")


changed("GRU LSTM RNN", 7, "below it, output_sequence=1 says that Y is wanted")


@exact("GRU LSTM RNN", 7)
def sequence_output(crossing: Crossing) -> bool:
    """RNN, LSTM, GRU at 7: without output_sequence, Y is optional, so it is given where it is named."""
    if not crossing.upward:
        if crossing.uses_output(0):
            crossing.set("output_sequence", 1, "below opset 7 Y is only given when it is asked for")
        return True
    crossing.drop("output_sequence", why="from opset 7 on Y is given whenever the node names it")
    return True


@downward("GRU LSTM RNN", 14)
def time_first(context: AdapterContext) -> None:
    """Below 14, time comes first: layout=1, where the batch does, is the same with Transpose around it."""
    if context.known_value("layout", 0) == 0:
        raise Inexact("its element types are not allowed below it")
    context.drop("layout", why=f"time comes first {context.side}")
    for index in (0, *_STATES[context.form.op_type]):
        if context.uses_input(index):
            context.inputs[index] = context.emit("Transpose", [context.inputs[index]], "time_first", perm=[1, 0, 2])
    for index, name in enumerate(context.outputs):
        if name:
            given = context.redirect(index, "time_first")
            order = [1, 0, 2] if index else [2, 0, 1, 3]
            context.emit_after("Transpose", [context.outputs[index]], given, perm=order)
