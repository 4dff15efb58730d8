"""What OpenVINO's CPU plugin does wrong with splits, known beforehand, so that no model is blamed for it.

Measured with OpenVINO 2026.4 against its own inputs; a negative rest is found when it runs (see `openvino_engine`).
"""

from __future__ import annotations

from splitgraph.execution.model_edits import is_default_domain, scoped_nodes
from splitgraph.inference.analysis import Analysis, SplitReport

# Types of 4 bits that it cuts wrongly along any axis but the first.
_PACKED = ("float4e2m1", "nf4")


def openvino_fault(analysis: Analysis) -> str | None:
    """The first fault that OpenVINO is known to have with a model, None where there is none."""
    for split in analysis.splits:
        fault = _fault(split)
        if fault is not None:
            return f"{split.location}: {fault}"
    for node, imports in scoped_nodes(analysis.model):
        if not (node.op_type == "Split" and is_default_domain(node.domain) and imports.get("", 0) < 2):
            continue
        if len(node.input) > 1 and node.input[1]:
            return f"{node.name or node.op_type}: OpenVINO ignores the lengths that Split-1 has as an input"
    return None


def _fault(split: SplitReport) -> str | None:
    if split.op not in ("Split", "VariadicSplit"):
        return None
    if split.input.dtype == "string":
        return "OpenVINO gives wrong values, or crashes, where strings are split"
    if split.input.dtype in _PACKED and split.axis != 0:
        return f"OpenVINO gives wrong values where {split.input.dtype} is split along any axis but the first"
    return None
