"""RNN, GRU and LSTM: a misspelt default of GRU (3), output_sequence (7), and layout (14)."""

from __future__ import annotations

from splitgraph.attribute_values import UNRESOLVED
from splitgraph.conversion.operators.registry import (
    always,
    changed,
    downward,
    edited,
    edited_upward,
    unchanged,
)
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact

# The positions of the states among the inputs.
_STATES = {"RNN": (5,), "GRU": (5,), "LSTM": (5, 6)}

unchanged("GRU LSTM RNN", 14, 22)
changed("GRU", 3, "the default direction was misspelt below it", down=always)


@edited_upward("GRU", 3)
def direction_can_be_respelled(crossing: AdapterContext) -> None:
    """Keep a node when the direction is known. Corrects "foward", as the schema of GRU-1 has it."""
    crossing.accept_default("direction")
    if crossing.value("direction") is UNRESOLVED:
        raise Inexact
    if crossing.value("direction") == "foward":
        crossing.set("direction", "forward", "the spelling of GRU-1's schema was corrected")


@downward("GRU", 3)
def name_last_state(context: AdapterContext) -> None:
    """Names the output Y_h, which is required below 3."""
    if context.known_is_set("linear_before_reset"):
        raise Inexact("linear_before_reset does not exist below it")
    context.drop("linear_before_reset", why="it has its default value, and does not exist below opset 3")
    context.outputs.extend([""] * (2 - len(context.outputs)))
    context.outputs[1] = context.outputs[1] or context.new_name("last")


changed("GRU LSTM RNN", 7, "below it, output_sequence=1 says that Y is wanted")


@edited("GRU LSTM RNN", 7)
def y_is_given_where_named(crossing: AdapterContext) -> None:
    """Keep every node: without output_sequence, Y is optional, and a node gives it when the node names it. Sets or
    drops output_sequence.
    """
    if not crossing.upward:
        if crossing.uses_output(0):
            crossing.set("output_sequence", 1, "below opset 7 Y is only given when it is asked for")
        return
    crossing.drop("output_sequence", why="from opset 7 on Y is given whenever the node names it")


@downward("GRU LSTM RNN", 14)
def bring_time_first(context: AdapterContext) -> None:
    """Transposes inputs and outputs, because below 14 time comes first. With layout=1 the batch comes first."""
    if context.known_value_or_default("layout") == 0:
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
