"""The schemas of onnx's operators, every version of each, without loading onnx."""

from __future__ import annotations

from splitgraph.schemas.operator_version import Formal, FormalAttribute, OperatorVersion, Option
from splitgraph.schemas.table import newest_opset, version_at, versions_of

__all__ = [
    "Formal",
    "FormalAttribute",
    "OperatorVersion",
    "Option",
    "newest_opset",
    "version_at",
    "versions_of",
]
