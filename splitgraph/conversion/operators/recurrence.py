"""RNN, GRU and LSTM: a misspelt default of GRU (3), output_sequence (7), and layout (14)."""

from __future__ import annotations

from splitgraph.attributes import UNRESOLVED
from splitgraph.conversion.operators.registry import always, changed, downward, edited, edited_upward, unchanged
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary

# The positions of the states among the inputs.
_STATES = {"RNN": (5,), "GRU": (5,), "LSTM": (5, 6)}

unchanged("GRU LSTM RNN", 14, 22)
changed("GRU", 3, "the default direction was misspelt below it", down=always)


@edited_upward("GRU", 3)
def direction_can_be_respelled(node: NodeAtBoundary) -> None:
    """Keep a node when the direction is known. Corrects "foward", as the schema of GRU-1 has it."""
    node.accept_default("direction")
    if node.value("direction") is UNRESOLVED:
        raise Inexact
    if node.value("direction") == "foward":
        node.set("direction", "forward", "the spelling of GRU-1's schema was corrected")


@downward("GRU", 3)
def name_last_state(node: NodeAtBoundary) -> None:
    """Names the output Y_h, which is required below 3."""
    if node.known_is_set("linear_before_reset"):
        raise Inexact("linear_before_reset does not exist below it")
    node.drop("linear_before_reset", why="it has its default value, and does not exist below opset 3")
    node.outputs.extend([""] * (2 - len(node.outputs)))
    node.outputs[1] = node.outputs[1] or node.new_name("last")


changed("GRU LSTM RNN", 7, "below it, output_sequence=1 says that Y is wanted")


@edited("GRU LSTM RNN", 7)
def y_is_given_where_named(node: NodeAtBoundary) -> None:
    """Keep every node: without output_sequence, Y is optional, and a node gives it when the node names it. Sets or
    drops output_sequence.
    """
    if not node.upward:
        if node.uses_output(0):
            node.set("output_sequence", 1, "below opset 7 Y is only given when it is asked for")
        return
    node.drop("output_sequence", why="from opset 7 on Y is given whenever the node names it")


@downward("GRU LSTM RNN", 14)
def bring_time_first(node: NodeAtBoundary) -> None:
    """Transposes inputs and outputs, because below 14 time comes first. With layout=1 the batch comes first."""
    if node.known_value_or_default("layout") == 0:
        raise Inexact("its element types are not allowed below it")
    node.drop("layout", why=f"time comes first {node.side}")
    for index in (0, *_STATES[node.op_type]):
        if node.uses_input(index):
            node.inputs[index] = node.write("Transpose", [node.inputs[index]], "time_first", perm=[1, 0, 2])
    for index, name in enumerate(node.outputs):
        if name:
            given = node.redirect(index, "time_first")
            order = [1, 0, 2] if index else [2, 0, 1, 3]
            node.write_after("Transpose", [node.outputs[index]], given, perm=order)
