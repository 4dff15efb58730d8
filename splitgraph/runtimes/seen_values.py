"""Shows the readers of factors the values of a node; and has the words for axes and lists."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Literal, Protocol

from splitgraph.model.onnx_proto import AttributeProto, NodeProto
from splitgraph.model.value_type import UNKNOWN, Contents, ValueType

# How the elements of a value are given: an initializer, a Constant node, computed from constants, from fixed sizes,
# from open sizes, from the elements of an input, or as an input of the graph.
How = Literal["init", "node", "folded", "sized", "shape", "computed", "input"]
BEFORE_THE_RUN: frozenset[How] = frozenset({"init", "node", "folded", "sized"})
CAST_TO_INTEGERS = "Cast to integers"
# Lists that say the same as no list, if all their numbers are this one.
_NEUTRAL = {"pads": 0, "strides": 1, "dilations": 1, "output_padding": 0, "kernel_shape": 1}


class Seen(Protocol):
    """What is known of the values that a node reads and gives."""

    def type_of(self, name: str) -> ValueType:
        """Return the type of a value, UNKNOWN where it is not known."""
        ...

    def how(self, name: str) -> How:
        """Return how the elements of a value are given."""
        ...

    def contents(self, name: str) -> Contents | None:
        """Return the elements of a short value, as far as they are known or follow from sizes."""
        ...

    def maker(self, name: str) -> NodeProto | None:
        """Return the node that makes a value, None for one that no node makes."""
        ...

    def readers(self, name: str) -> Collection[str]:
        """Return the operators that read a value, "" for an output of the graph, and CAST_TO_INTEGERS for a Cast that
        makes no floats.
        """
        ...


def attribute(node: NodeProto, name: str) -> AttributeProto | None:
    """Return an attribute of a node, None where it is left out."""
    return next((each for each in node.attribute if each.name == name), None)


def are_sizes(node: NodeProto, seen: Seen) -> bool:
    """Return True for arithmetic of sizes: its data is a short list or a number that follows from sizes."""
    name = node.input[0] if node.input else ""
    known = seen.type_of(name) if name else UNKNOWN
    is_short = known.dtype in ("int64", "int32") and known.rank in (0, 1)
    return is_short and (seen.how(name) in ("folded", "sized", "shape") or seen.contents(name) is not None)


def is_joined(names: Sequence[str], seen: Seen) -> bool:
    """Return True where only Concat nodes read these values."""
    return all(set(seen.readers(name)) == {"Concat"} for name in names)


def place(axis: int, rank: int) -> str:
    """Return where an axis is in data of a rank: "first", "second", "inner", "last", "only" or "beyond"."""
    axis = axis + rank if axis < 0 else axis
    if rank == 1 and axis == 0:
        return "only"
    if axis >= rank or axis < 0:
        return "beyond"
    return "first" if not axis else "last" if axis == rank - 1 else "second" if axis == 1 else "inner"


def listed(name: str, numbers: Sequence[int]) -> str:
    """Return what a list of numbers says: one word."""
    if name == "perm":
        return _of_perm(numbers)
    if min(numbers, default=0) < 0:
        return "negative"
    if not set(numbers) - {_NEUTRAL.get(name)}:
        return "neutral"
    half = len(numbers) // 2
    if name == "pads" and list(numbers[:half]) != list(numbers[half:]):
        return "asymmetric"
    return "equal" if len(set(numbers)) == 1 else "unequal"


def _of_perm(perm: Sequence[int]) -> str:
    rank, numbers = len(perm), list(perm)
    plain = list(range(rank))
    if numbers == plain:
        return "neutral"
    if numbers == plain[::-1]:
        return "reversed"
    if numbers == [*plain[:-2], rank - 1, rank - 2]:
        return "last two"
    return "first kept" if numbers[0] == 0 else "other"
