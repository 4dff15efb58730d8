"""List known faults of OpenVINO's CPU plugin in splits, so that no model is blamed for them.

Measured with OpenVINO 2026.4. `openvino_engine` detects another fault, a negative remainder, while the model runs.
"""

from __future__ import annotations

from splitgraph.execution.models.model_edits import is_default_domain, scoped_nodes
from splitgraph.inference.analysis import Analysis, SplitReport

# 4-bit types that OpenVINO splits wrongly along every axis except the first.
_PACKED = ("float4e2m1", "nf4")


def openvino_fault(analysis: Analysis) -> str | None:
    """Return the first known fault of OpenVINO that affects a model; None without one."""
    for split in analysis.splits:
        fault = _fault(split)
        if fault is not None:
            return f"{split.location}: {fault}"
    for node, imports in scoped_nodes(analysis.model):
        if not (node.op_type == "Split" and is_default_domain(node.domain) and imports.get("", 0) < 2):
            continue
        if len(node.input) > 1 and node.input[1]:
            return f"{node.name or node.op_type}: OpenVINO ignores the lengths input of Split-1"
    return None


def _fault(split: SplitReport) -> str | None:
    if split.op not in ("Split", "VariadicSplit"):
        return None
    if split.input.dtype == "string":
        return "OpenVINO gives wrong values or crashes when it splits strings"
    if split.input.dtype in _PACKED and split.axis != 0:
        return f"OpenVINO gives wrong values when it splits {split.input.dtype} along any axis except the first"
    return None
