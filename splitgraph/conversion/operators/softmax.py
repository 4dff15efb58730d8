"""Softmax, LogSoftmax and Hardmax: below 13 they normalize all dimensions from an axis on together, from 13 on one
axis.
"""

from __future__ import annotations

from splitgraph.attributes import UNRESOLVED
from splitgraph.conversion.operators.predicates import MINUS_AXIS, RANK_HINT, axes_counted_from_front
from splitgraph.conversion.operators.registry import always, changed, downward, exact, upward
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.writing.reshaping import copies_zeros, reshape_behind
from splitgraph.dim import DimLike, product
from splitgraph.value_type import Shape

_OPERATORS = "Hardmax LogSoftmax Softmax"

changed(_OPERATORS, 11, MINUS_AXIS, up=always, down=axes_counted_from_front("axis"), hint=RANK_HINT)
changed(
    _OPERATORS,
    13,
    (
        "below it, all dimensions from axis (1 by default) on are normalized together; from then on, only the"
        " axis (-1 by default)"
    ),
    hint=RANK_HINT,
)


@exact(_OPERATORS, 13)
def normalizes_last_axis(node: NodeAtBoundary) -> bool:
    """True when all dimensions after the axis are 1, so that folding changes nothing."""
    axis = node.value("axis", 1 if node.upward else -1)
    if axis is UNRESOLVED:
        return False
    if axis == -1:
        return True
    shape = node.shape(0)
    if shape is None or not -len(shape) <= axis < len(shape):
        return False
    return all(dim == 1 for dim in shape[axis % len(shape) + 1 :])


@upward(_OPERATORS, 13)
def fold_into_matrix(node: NodeAtBoundary) -> None:
    """Folds the input into a matrix at `axis` (1 by default) with Flatten, which has the same default and takes every
    rank; normalizes the last axis, and unfolds the result with Reshape.
    """
    data, place = node.inputs[0], node.value_or_default("axis")
    axis = node.attributes.pop("axis", None)
    node.reasons["axis"] = f"only one axis is normalized {node.side}"
    node.inputs[0] = node.write("Flatten", [data], "folded")
    if axis is not None:
        node.before[-1].attributes["axis"] = axis
    shape = node.write("Shape", [data], "shape")
    unfolded = node.redirect(0, "normalized")
    reshape_behind(
        node,
        node.outputs[0],
        shape,
        unfolded,
        copies=_unfolds_by_copying(node.values.type_of(data).shape, place),
    )


def _unfolds_by_copying(dims: Shape | None, axis: object) -> bool:
    """True when Reshape to these dimensions, after a fold at the axis, copies a 0 only where it is meant."""
    if dims is None or not isinstance(axis, int):
        return False
    return copies_zeros(dims, (_product(dims[:axis]), _product(dims[axis:])))


def _product(dims: Shape) -> DimLike | None:
    """Gives the product of dimensions, None where one is unknown."""
    known = [dim for dim in dims if dim is not None]
    return product(known) if len(known) == len(dims) else None


@downward(_OPERATORS, 13)
def move_axis_to_the_end(node: NodeAtBoundary) -> None:
    """Exchanges the axis with the last one by Transpose, before and behind the node. Below 13 only the last axis can be
    normalized alone.
    """
    axis = node.known_value_or_default("axis")
    rank = node.known_rank(0)
    if not -rank <= axis < rank:
        raise Inexact(f"axis {axis} is out of range")
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    node.inputs[0] = node.write("Transpose", [node.inputs[0]], "exchanged", perm=order)
    node.set("axis", rank - 1, f"the last axis is the one that is normalized alone {node.side}")
    given = node.redirect(0, "normalized")
    node.write_after("Transpose", [node.outputs[0]], given, perm=order)
