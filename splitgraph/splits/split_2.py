"""Split-2 (opsets 2 to 10): the lengths are an attribute, or the parts are equal.

Input: input (T). Attributes: axis (default 0); split (ints): the lengths. Without lengths, the parts are equal.
Outputs: one or more. T: every type but bfloat16 and younger types. A negative axis is not documented before Split-11,
but every runtime accepts it.

Changed from Split-1: there is no second input, all types are allowed, and the axis has a default.
"""

from __future__ import annotations

from splitgraph.splits.lowering import LowerRequest
from splitgraph.splits.shared import lift_attribute_split, lower_attribute_split
from splitgraph.splits.variant import ALL_TYPES, Variant


def lower(request: LowerRequest) -> None:
    """Write a Split-2 node, its axis non-negative where the rank is known; Slice nodes for what only run time knows."""
    lower_attribute_split(request, negative_axis=False)


VARIANT = Variant(
    op_type="Split",
    domain="",
    since_version=2,
    inputs=(1, 1),
    outputs=(1, None),
    attributes={"axis": "int", "split": "ints"},
    dtypes=ALL_TYPES,
    lift=lift_attribute_split,
    lower=lower,
)
