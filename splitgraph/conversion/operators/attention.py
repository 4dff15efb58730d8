"""Attention: masks that are shorter than the keys (24), and inputs and outputs that must come together (25)."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import always, changed, edited_upward, exact, upward
from splitgraph.conversion.writing.inexact_bodies import drop_heads_of_rank_4
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary

changed(
    "Attention",
    24,
    "a mask shorter than the keys is broadcast below it, padded with -inf from then on",
    hint="or declare the shapes of mask and key",
)


@exact("Attention", 24)
def mask_covers_all_keys(node: NodeAtBoundary) -> bool:
    """True when the mask is as long as the keys, so that no version broadcasts or pads it."""
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
    """Names both present outputs where one is read, and drops the numbers of heads from inputs of rank 4."""
    past, present = node.uses_input(4), node.uses_output(1) or node.uses_output(2)
    if past != node.uses_input(5):
        raise Inexact("it takes the past of keys and that of values together only")
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
