"""How far two models may be apart of which one does with other arithmetic what the other does with one operator."""

from __future__ import annotations

from collections.abc import Iterator

import onnx

from splitgraph.execution.comparison import HALF_TYPES, narrow_tolerances
from splitgraph.execution.model_edits import nodes_within
from splitgraph.graph.scopes import scopes
from splitgraph.inference import infer_model
from splitgraph.value_type import DTYPE_NAMES, UNKNOWN

# Operators that give elements as they are: weights may be kept in halves that nothing computes with.
MOVES = frozenset(
    {"Cast", "CastLike", "Concat", "Constant", "ConstantOfShape", "Expand", "Flatten", "Gather", "Identity", "Reshape"}
    | {"Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"}
)
# Rounding errors add up: over 24 layers, each with a LayerNormalization that was written out, to 3.5 times the absolute
# tolerance of one operation.
_ADDED_UP = 4


def rounding_tolerances(model: onnx.ModelProto, rtol: float, atol: float) -> tuple[float, float]:
    """The tolerances (rtol, atol) for a model whose operators were written as arithmetic: those given, or where they
    are greater some times those of the coarsest of float16 and bfloat16 that it computes with, whatever its outputs'
    types.
    """
    computed = set(_computed(model))
    coarse = [narrow_tolerances(dtype) for dtype in HALF_TYPES if dtype in computed]
    widest = [max((each[part] for each in coarse), default=0.0) for part in (0, 1)]
    return max(rtol, _ADDED_UP * widest[0]), max(atol, _ADDED_UP * widest[1])


def _computed(model: onnx.ModelProto) -> Iterator[str | None]:
    """The element types of what a model computes; of the body of a function, those that it casts to, as the others
    differ from call to call.
    """
    types = infer_model(model, fill=False).graphs
    for scope in scopes(model):
        if scope.location in types:
            nodes = (node for node in scope.nodes if node.op_type not in MOVES)
            yield from (types[scope.location].get(name, UNKNOWN).dtype for node in nodes for name in node.output)
    for function in model.functions:
        casts = (node for node in nodes_within(function.node) if node.op_type == "Cast")
        yield from (DTYPE_NAMES.get(a.i) for cast in casts for a in cast.attribute if a.name == "to")
