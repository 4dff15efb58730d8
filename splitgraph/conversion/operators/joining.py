"""Concat and Transpose: the axis of Concat became required (4) and may be negative (11)."""

from __future__ import annotations

from splitgraph.conversion.operators.predicates import MINUS_AXIS, RANK_HINT, axes_counted_from_front
from splitgraph.conversion.operators.registry import always, changed, edited_upward, unchanged
from splitgraph.conversion.writing.node_at_boundary import NodeAtBoundary

unchanged("Transpose", 13, 21, 23, 24, 25)

unchanged("Concat", 13)
changed("Concat", 4, "below it, the default axis is 1; from then on the axis must be given", down=always)


@edited_upward("Concat", 4)
def write_default_axis(node: NodeAtBoundary) -> None:
    """Keep every node. Writes out the default axis of Concat-1, which is 1; from opset 4 on the axis is
    required.
    """
    if not node.has("axis"):
        node.set("axis", 1, "the default of Concat-1, which from opset 4 on must be written")


changed("Concat", 11, MINUS_AXIS, up=always, down=axes_counted_from_front("axis"), hint=RANK_HINT)
