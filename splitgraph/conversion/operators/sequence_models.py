"""RNN, GRU and LSTM: a misspelt default of GRU (3), output_sequence (7), and layout (14).

Attention: masks that are shorter than the keys (24), and inputs and outputs that must come together (25).
"""

from __future__ import annotations

from splitgraph.conversion.notation.function_bodies import drop_heads_of_rank_4
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.registry import (
    always,
    changed,
    downward,
    edited,
    edited_upward,
    exact,
    unchanged,
    upward,
)
from splitgraph.model.attributes import UNRESOLVED

# The positions of the states among the inputs.
_STATES = {"RNN": (5,), "GRU": (5,), "LSTM": (5, 6)}

# RNN, GRU, LSTM ----------------------------------------------------------------------------------------------------

unchanged("GRU LSTM RNN", 14, 22)
changed("GRU", 3, "the default direction was misspelt below it", down=always)


@edited_upward("GRU", 3)
def direction_can_be_respelled(node: NodeAtBoundary) -> None:
    """Keep a node when the direction is known. Correct "foward", as the schema of GRU-1 has it."""
    node.accept_default("direction")
    if node.value("direction") is UNRESOLVED:
        raise Inexact
    if node.value("direction") == "foward":
        node.set("direction", "forward", "the spelling of GRU-1's schema was corrected")


@downward("GRU", 3)
def name_last_state(node: NodeAtBoundary) -> None:
    """Name the output Y_h, which is required below 3."""
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
    """Transpose inputs and outputs, because below 14 time comes first. With layout=1 the batch comes first."""
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


# Attention ----------------------------------------------------------------------------------------------------------

changed(
    "Attention",
    24,
    "a mask shorter than the keys is broadcast below it, padded with -inf from then on",
    hint="or declare the shapes of mask and key",
)


@exact("Attention", 24)
def mask_covers_all_keys(node: NodeAtBoundary) -> bool:
    """Return True when the mask is as long as the keys, so that no version broadcasts or pads it."""
    if not node.uses_input(3):
        return True
    mask, key = node.shape(3), node.shape(1)
    if not mask or mask[-1] is None:
        return False
    if node.upward and isinstance(mask[-1], int) and mask[-1] > 1:
        return True
    return not node.uses_input(4) and key is not None and len(key) > 2 and key[-2] == mask[-1]


changed(
    "Attention",
    25,
    (
        "from it on, the past or present of keys and values must be given together and not with "
        "nonpad_kv_seqlen, and inputs of rank 4 take no number of heads"
    ),
    down=always,
)


@edited_upward("Attention", 25)
def pairs_are_complete(node: NodeAtBoundary) -> None:
    """Keep a node when it has both keys and values of the past or neither, the same for the present, not both the past
    and nonpad_kv_seqlen, and the numbers of heads only with inputs of rank 3.
    """
    past, present = node.uses_input(4), node.uses_output(1)
    if past != node.uses_input(5) or present != node.uses_output(2) or (node.uses_input(6) and (past or present)):
        raise Inexact
    if not (drop_heads_of_rank_4(node)):
        raise Inexact


@upward("Attention", 25)
def complete_pairs(node: NodeAtBoundary) -> None:
    """Name both present outputs where one is read, and drop the numbers of heads from inputs of rank 4."""
    past, present = node.uses_input(4), node.uses_output(1) or node.uses_output(2)
    if past != node.uses_input(5):
        raise Inexact("it takes the past keys and the past values only together")
    if node.uses_input(6) and (past or present):
        raise Inexact("nonpad_kv_seqlen is not taken together with past or present keys and values")
    if present:
        node.outputs.extend([""] * (3 - len(node.outputs)))
        for index, hint in ((1, "present_key"), (2, "present_value")):
            node.outputs[index] = node.outputs[index] or node.new_name(hint)
    if not drop_heads_of_rank_4(node):
        raise Inexact(
            "it takes no number of heads with inputs of rank 4, and the rank is unknown", "declare the shapes"
        )
