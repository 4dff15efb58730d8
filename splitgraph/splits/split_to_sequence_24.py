"""SplitToSequence-24 (opset 24 on): SplitToSequence-11 with bfloat16.

Inputs, attributes and meaning are those of SplitToSequence-11. Changed: T also holds bfloat16.
"""

from __future__ import annotations

from splitgraph.splits.split_to_sequence_11 import lift, lower, sequence_type
from splitgraph.splits.variant import ALL_TYPES_IR4, Variant

VARIANT = Variant(
    op_type="SplitToSequence",
    domain="",
    since_version=24,
    inputs=(1, 2),
    outputs=(1, 1),
    attributes={"axis": "int", "keepdims": "int"},
    dtypes=ALL_TYPES_IR4,
    lift=lift,
    lower=lower,
    output_types=sequence_type,
)
