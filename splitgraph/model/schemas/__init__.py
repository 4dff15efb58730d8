"""The schemas of onnx's operators, every version of each, without loading onnx.

`table` reads them from schemas.txt, which `installed` writes from the installed onnx. `history` adds experimental
operators and those of onnxruntime; `allowed_values` adds what schemas do not say: attributes that take a few values
only.
"""

from __future__ import annotations

from splitgraph.model.schemas.operator_version import Formal, FormalAttribute, OperatorVersion, Option
from splitgraph.model.schemas.table import newest_opset, version_at, versions_of

__all__ = [
    "Formal",
    "FormalAttribute",
    "OperatorVersion",
    "Option",
    "newest_opset",
    "version_at",
    "versions_of",
]
