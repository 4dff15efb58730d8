"""RNN, GRU and LSTM: a misspelt default of GRU (3), output_sequence (7), and layout (14).

Attention: masks that are shorter than the keys (24), and inputs and outputs that must come together (25).
"""

from __future__ import annotations

from splitgraph.attribute_values import UNRESOLVED
from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.conversion.operators.registry import always, changed, downward, exact, exact_upward, unchanged, upward
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.conversion.writing.inexact_bodies import drop_heads_of_rank_4

# The positions of the states among the inputs.
_STATES = {"RNN": (5,), "GRU": (5,), "LSTM": (5, 6)}

# RNN, GRU, LSTM ----------------------------------------------------------------------------------------------------

unchanged("GRU LSTM RNN", 14, 22)
changed("GRU", 3, "the default direction was misspelt below it", down=always)


@exact_upward("GRU", 3)
def direction_can_be_respelled(crossing: Crossing) -> bool:
    """True when the direction is known. Corrects "foward", as the schema of GRU-1 has it."""
    crossing.accept_default("direction")
    if crossing.value("direction") is UNRESOLVED:
        return False
    if crossing.value("direction") == "foward":
        crossing.set("direction", "forward", "the spelling of GRU-1's schema was corrected")
    return True


@downward("GRU", 3)
def name_last_state(context: AdapterContext) -> None:
    """Names the output Y_h, which is required below 3."""
    if context.known_is_set("linear_before_reset"):
        raise Inexact("linear_before_reset does not exist below it")
    context.drop("linear_before_reset", why="it has its default value, and does not exist below opset 3")
    context.outputs.extend([""] * (2 - len(context.outputs)))
    context.outputs[1] = context.outputs[1] or context.new_name("last")


changed("GRU LSTM RNN", 7, "below it, output_sequence=1 says that Y is wanted")


@exact("GRU LSTM RNN", 7)
def y_is_given_where_named(crossing: Crossing) -> bool:
    """True for every node: without output_sequence, Y is optional, and a node gives it when the node names it. Sets or
    drops output_sequence.
    """
    if not crossing.upward:
        if crossing.uses_output(0):
            crossing.set("output_sequence", 1, "below opset 7 Y is only given when it is asked for")
        return True
    crossing.drop("output_sequence", why="from opset 7 on Y is given whenever the node names it")
    return True


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


# Attention ----------------------------------------------------------------------------------------------------------

changed(
    "Attention",
    24,
    "a mask shorter than the keys is broadcast below it, padded with -inf from then on",
    hint="or declare the shapes of mask and key",
)


@exact("Attention", 24)
def mask_covers_all_keys(crossing: Crossing) -> bool:
    """True when the mask is as long as the keys, so that no version broadcasts or pads it."""
    if not crossing.uses_input(3):
        return True
    mask, key = crossing.shape(3), crossing.shape(1)
    if not mask or mask[-1] is None:
        return False
    if crossing.upward and isinstance(mask[-1], int) and mask[-1] > 1:
        return True
    return not crossing.uses_input(4) and key is not None and len(key) > 2 and key[-2] == mask[-1]


changed(
    "Attention",
    25,
    (
        "from it on, the past or present of keys and values must be given together and not with "
        "nonpad_kv_seqlen, and inputs of rank 4 take no number of heads"
    ),
    down=always,
)


@exact_upward("Attention", 25)
def pairs_are_complete(crossing: Crossing) -> bool:
    """True when the node has both keys and values of the past or neither, the same for the present, not both the past
    and nonpad_kv_seqlen, and the numbers of heads only with inputs of rank 3.
    """
    past, present = crossing.uses_input(4), crossing.uses_output(1)
    if (
        past != crossing.uses_input(5)
        or present != crossing.uses_output(2)
        or (crossing.uses_input(6) and (past or present))
    ):
        return False
    return drop_heads_of_rank_4(crossing)


@upward("Attention", 25)
def complete_pairs(context: AdapterContext) -> None:
    """Names both present outputs where one is read, and drops the numbers of heads from inputs of rank 4."""
    past, present = context.uses_input(4), context.uses_output(1) or context.uses_output(2)
    if past != context.uses_input(5):
        raise Inexact("it takes the past of keys and that of values together only")
    if context.uses_input(6) and (past or present):
        raise Inexact("nonpad_kv_seqlen is not taken together with past or present keys and values")
    if present:
        context.outputs.extend([""] * (3 - len(context.outputs)))
        for index, hint in ((1, "present_key"), (2, "present_value")):
            context.outputs[index] = context.outputs[index] or context.new_name(hint)
    if not drop_heads_of_rank_4(context):
        raise Inexact(
            "it takes no number of heads with inputs of rank 4, and the rank is unknown", "declare the shapes"
        )
