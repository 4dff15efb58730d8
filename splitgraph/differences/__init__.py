"""What differs between two models: parts of the model, nodes, types of values, findings."""

from __future__ import annotations

from splitgraph.differences.compare import compare_models
from splitgraph.differences.difference import (
    ModelDifference,
    NodeDifference,
    NodeForm,
    PartDifference,
    ValueDifference,
)

__all__ = [
    "ModelDifference",
    "NodeDifference",
    "NodeForm",
    "PartDifference",
    "ValueDifference",
    "compare_models",
]
