"""Steps, predicates and texts that several families use.

A step looks at one node: its attributes, its inputs and outputs, and what is known of their types and shapes. It may
edit the attributes. It raises Inexact unless the edited node provably means the same on both sides. A predicate only
looks.
"""

from __future__ import annotations

from splitgraph.attributes import UNRESOLVED
from splitgraph.conversion.operators.registry import Step, where
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary

MINUS_AXIS = "below it, an axis must not be negative"
SHAPES_HINT = "or give the inputs static shapes"
RANK_HINT = "or declare the shape of the input"


def limited_broadcast_is_numpy(node: NodeAtBoundary) -> None:
    """Keep a node when its limited broadcasting gives the same under NumPy's rules: without `axis`, or with an `axis`
    that aligns B with the last dimensions of A. Drops both attributes.
    """
    broadcast = node.value_or_default("broadcast")
    if broadcast is UNRESOLVED:
        raise Inexact
    if broadcast and node.has("axis"):
        rank_a, rank_b = node.rank(0), node.rank(1)
        if rank_a is None or rank_b is None or node.value("axis") != rank_a - rank_b:
            raise Inexact
    node.drop("broadcast", "axis", why="NumPy broadcasting gives the same from opset 7 on")


def numpy_broadcast_is_limited(node: NodeAtBoundary) -> None:
    """Keep a node when its NumPy broadcasting is also limited broadcasting: equal shapes, or a B that is one element or
    a suffix of A's shape.
    """
    if node.shapes_are_equal():
        return
    shape_a, shape_b = node.shape(0), node.shape(1)
    if shape_b != ():
        if shape_a is None or shape_b is None or len(shape_b) > len(shape_a):
            raise Inexact
        suffix = shape_a[len(shape_a) - len(shape_b) :]
        is_suffix = all(dim is not None and dim == other for dim, other in zip(shape_b, suffix, strict=True))
        if not is_suffix and any(dim != 1 for dim in shape_b):
            raise Inexact
    node.set("broadcast", 1, "below opset 7 broadcasting is off unless it is asked for")


def shapes_are_equal(node: NodeAtBoundary) -> bool:
    """True when all inputs have the same shape, or when there is only one input."""
    return len(node.came.inputs) == 1 or node.shapes_are_equal()


def axes_counted_from_front(name: str, *, rank_of_output: bool = False) -> Step:
    """Make a step: the axes in an attribute are at least 0, or the rank is known, so that the axes can be counted from
    the front, as they must be below opset 11.

    rank_of_output: the axes are those of the output, which has one more dimension for each axis.
    """

    def step(node: NodeAtBoundary) -> None:
        count_from_front(node, name, rank_of_output)

    return step


def count_from_front(node: NodeAtBoundary, name: str, rank_of_output: bool) -> None:
    """Count the axes in an attribute from the front. Raise Inexact where the rank is needed and unknown."""
    value = node.value(name)
    if value is UNRESOLVED:
        raise Inexact
    axes = value if isinstance(value, tuple) else () if value is None else (value,)
    if all(axis >= 0 for axis in axes):
        return
    rank = node.rank(0)
    if rank is None:
        raise Inexact
    rank += len(axes) if rank_of_output else 0
    positive = [axis + rank if axis < 0 else axis for axis in axes]
    node.set(
        name, positive if isinstance(value, tuple) else positive[0], "below opset 11 axes are counted from the front"
    )


def input_is_omitted(index: int) -> Step:
    """Make a step that keeps a node without an input."""
    return where(lambda node: not node.uses_input(index))


def value_is_one_of(name: str, *allowed: str) -> Step:
    """Make a step that keeps a node when a string attribute has one of the values that the other version knows."""
    return where(lambda node: node.value_or_default(name) in allowed)
