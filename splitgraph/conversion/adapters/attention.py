"""Attention from opset 25 on, which says what may be given together."""

from __future__ import annotations

from splitgraph.conversion.adapters.registry import upward
from splitgraph.conversion.shape_rules import drop_heads_of_rank_4
from splitgraph.conversion.step import Inexact, Step


@upward("Attention", 25)
def given_together(step: Step) -> None:
    """Give the new keys and values both where one is read, and leave out the heads that inputs of rank 4 have on an
    axis.
    """
    past, present = step.uses_input(4), step.uses_output(1) or step.uses_output(2)
    if past != step.uses_input(5):
        raise Inexact("it takes the past of keys and that of values together only")
    if step.uses_input(6) and (past or present):
        raise Inexact("nonpad_kv_seqlen is not taken together with past or present keys and values")
    if present:
        step.outputs.extend([""] * (3 - len(step.outputs)))
        for index, hint in ((1, "present_key"), (2, "present_value")):
            step.outputs[index] = step.outputs[index] or step.new_name(hint)
    if not drop_heads_of_rank_4(step):
        raise Inexact(
            "it takes no number of heads with inputs of rank 4, and the rank is unknown", "declare the shapes"
        )
