"""What differs between two models: parts of the model, nodes, types of values, findings.

In: two opened models. `compare` takes each as a `Side` (`sides`), pairs their graphs, and in each pair of graphs the
nodes and values (`matching`); then it compares `nodes`, `parts` and types, and constants by their elements
(`formats.constants`). Out: a `ModelDifference` (`difference`).
"""

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
