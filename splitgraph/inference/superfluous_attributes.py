"""Attributes that only another version of an operator has, at values that change nothing.

Each entry was measured, and in no engine does the attribute change the result. `dilations` of MaxPool and LpPool and
both attributes of Resize run in OpenVINO and the reference evaluator. `dilations` of AveragePool, `spatial` and
`output_sequence` run in OpenVINO only: the reference evaluator knows the attributes of a node by its version, and
onnxruntime (1.15, 1.17, 1.32) refuses the node. That they change nothing at these values is what the documents of the
versions that have them say. `tests/campaigns/tolerated_slips.py` tries every operator. What a later version has by
default is found without an entry (`repairs.py`).
"""

from __future__ import annotations

from collections.abc import Mapping

# Of a list: each element is this number.
ALL_ONES = "all 1"

# By operator and attribute, the value that changes nothing.
SUPERFLUOUS: Mapping[str, Mapping[str, int | str]] = {
    **{op: {"dilations": ALL_ONES} for op in ("AveragePool", "LpPool", "MaxPool")},
    "BatchNormalization": {"spatial": 1},
    **{op: {"output_sequence": 0} for op in ("GRU", "LSTM", "RNN")},
    "Resize": {"antialias": 0, "keep_aspect_ratio_policy": "stretch"},
}


def changes_nothing(op: str, name: str, value: object) -> bool:
    """True for an attribute of another version at a value that changes nothing."""
    held = SUPERFLUOUS.get(op, {}).get(name)
    if held == ALL_ONES:
        return isinstance(value, tuple) and bool(value) and set(value) == {1}
    return held is not None and value == held
