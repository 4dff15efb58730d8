"""Tell which numbers a value can be, from the operator that computes it: other numbers are not drawn for it."""

from __future__ import annotations

import math
from collections.abc import Mapping

from splitgraph.verification.models.model_files import is_default_domain
from splitgraph.verification.regions.sides import ModelSide

# The least and the largest number.
Range = tuple[float, float]

_RANGES: Mapping[str, Range] = {
    **dict.fromkeys(("Cos", "Erf", "Sin", "Softsign", "Tanh"), (-1.0, 1.0)),
    **dict.fromkeys(("HardSigmoid", "Sigmoid", "Softmax"), (0.0, 1.0)),
    **dict.fromkeys(("Exp", "ReduceL1", "ReduceL2", "ReduceSumSquare", "Softplus", "Sqrt"), (0.0, math.inf)),
    "LogSoftmax": (-math.inf, 0.0),
}
# Operators whose results are elements of their first input.
_PASSING = frozenset(
    {
        "Expand",
        "Flatten",
        "Gather",
        "Identity",
        "Reshape",
        "Slice",
        "Split",
        "Squeeze",
        "Tile",
        "Transpose",
        "Unsqueeze",
    }
)


_NONE: Mapping[str, Range | None] = {}


def range_of(side: ModelSide, name: str, known: Mapping[str, Range | None] = _NONE) -> Range | None:
    """Return the least and the largest number that a value can be, beside NaN; None if it can be any. known: of inputs
    of the model.
    """
    while (index := side.makers.get(name)) is not None:
        node = side.nodes[index]
        if not is_default_domain(node.domain):
            return None
        if node.op_type not in _PASSING:
            return _RANGES.get(node.op_type)
        name = node.input[0]
    return known.get(name)


def union(one: Range | None, other: Range | None) -> Range | None:
    """Return the range of what is in one of two ranges."""
    return None if one is None or other is None else (min(one[0], other[0]), max(one[1], other[1]))
