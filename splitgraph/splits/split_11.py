"""Split-11 (opsets 11 and 12): as Split-2, but the axis may be negative.

Input: input (T). Attributes: axis (default 0, in [-rank, rank - 1]); split (ints >= 0): the lengths. Without lengths,
the parts are equal. Outputs: one or more. T: every type but bfloat16 and younger types.

Changed from Split-2: a negative axis counts from the back; the text allows an empty part explicitly.
"""

from __future__ import annotations

from splitgraph.splits.shared import lift_attribute_split, lower_attribute_split
from splitgraph.splits.variant import ALL_TYPES, Variant

VARIANT = Variant(
    op_type="Split",
    domain="",
    since_version=11,
    inputs=(1, 1),
    outputs=(1, None),
    attributes={"axis": "int", "split": "ints"},
    dtypes=ALL_TYPES,
    lift=lift_attribute_split,
    lower=lower_attribute_split,
)
