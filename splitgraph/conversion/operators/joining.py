"""Concat, Transpose."""

from __future__ import annotations

from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.conversion.operators.predicates import MINUS_AXIS, RANK_HINT, axes_counted_from_front
from splitgraph.conversion.operators.registry import always, changed, exact_upward, unchanged

unchanged("Transpose", 13, 21, 23, 24, 25)

unchanged("Concat", 13)
changed("Concat", 4, "below it, the default axis is 1; from then on the axis must be given", down=always)


@exact_upward("Concat", 4)
def concat_axis_written(crossing: Crossing) -> bool:
    """Concat 1|4, upward: the axis, 1 when absent, must be written from opset 4 on."""
    if not crossing.has("axis"):
        crossing.set("axis", 1, "the default of Concat-1, which from opset 4 on must be written")
    return True


changed("Concat", 11, MINUS_AXIS, up=always, down=axes_counted_from_front("axis"), hint=RANK_HINT)
