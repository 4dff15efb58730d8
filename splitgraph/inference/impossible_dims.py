"""A check of all rules' results: no dimension is below 0. A node whose rule gives a negative dimension is invalid.

No dimension has more than 64 bits either. A multiple of such a number could only be 0, so that it is left unknown.
"""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import Dim, DimLike, has_huge_number
from splitgraph.inference.context import NodeContext
from splitgraph.value_type import ValueType


def without_impossible_dims(ctx: NodeContext, outputs: Sequence[ValueType]) -> Sequence[ValueType]:
    """The output types of a node. A type with an impossible dimension loses its shape, and the node is reported."""
    outputs = [_without_huge_numbers(value) for value in outputs]
    found = [_impossible(ctx, value) for value in outputs]
    if not any(dim is not None for dim in found):
        return outputs
    # What an input says already has been told.
    is_new = not any(known is not None and _impossible(ctx, known) is not None for known in ctx.inputs)
    if is_new and not ctx.errors:
        index = next(index for index, dim in enumerate(found) if dim is not None)
        text = f"{ctx.node.op_type}-{ctx.since_version}: output {index} has a dimension of {found[index]}"
        ctx.find("SG302", f"{text}; no dimension is below 0")
    pairs = zip(outputs, found, strict=True)
    return [value if dim is None else value.with_shape(None) for value, dim in pairs]


def _without_huge_numbers(value: ValueType) -> ValueType:
    shape = value.shape or ()
    if not any(dim is not None and has_huge_number(dim) for dim in shape):
        return value
    return value.with_shape([None if dim is None or has_huge_number(dim) else dim for dim in shape])


def _impossible(ctx: NodeContext, value: ValueType) -> DimLike | None:
    for dim in value.shape or ():
        if isinstance(dim, int):
            if dim < 0:
                return dim
        # Without a negative constant a dim is hardly ever negative, and to ask for a proof each time would cost.
        elif isinstance(dim, Dim) and dim.const < 0 and ctx.facts.prove_ge(-1, dim):
            return dim
    return None
