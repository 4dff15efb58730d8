"""Finding partitions: Slices and Gathers that together are all parts of one value along one axis, as of a Split."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from splitgraph.attributes import attribute_value
from splitgraph.conversion.nodes.known_values import KnownValues
from splitgraph.conversion.planning.plan import opset_of
from splitgraph.dim import Dim, DimLike, Facts
from splitgraph.graph.scopes import Scope, plain_domain
from splitgraph.inference import Walked
from splitgraph.inference.rules.onnx.slicing import clamped_position
from splitgraph.onnx_proto import NodeProto
from splitgraph.value_type import ValueType
from splitgraph.variants.slices import OPEN_END

_INPUTS_SINCE = 10
# Proofs compare each part with each other one; most partitions are found by equal expressions.
_MOST_PROVED = 32


@dataclass(frozen=True, slots=True)
class Bound:
    """A start or end.

    position: from the first element, at most the dimension. given: as the node has it. name: of the int64 tensor with
    what is given; "" where there is none, or where its sign is not known. counts_from_end: what is given is negative.
    """

    position: DimLike
    given: DimLike
    name: str = ""
    counts_from_end: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """A Slice or Gather that reads consecutive elements.

    index: of the node in its graph. squeezed: the result has lost the axis.
    """

    index: int
    start: Bound
    end: Bound
    squeezed: bool = False

    @property
    def is_empty(self) -> bool:
        """True for a part without elements, which fits in anywhere."""
        return self.start.position == self.end.position


class _Cut(NamedTuple):
    """The range of elements that a node reads along one axis, with bounds as given."""

    axis: int
    start: Bound
    end: Bound
    squeezed: bool = False


@dataclass(frozen=True, slots=True)
class Partition:
    """Nodes of one graph that are all parts of a value, in the order of its elements."""

    scope: Scope
    name: str
    data: ValueType
    axis: int
    total: DimLike
    parts: tuple[Part, ...]
    lengths: tuple[DimLike, ...]


def find_partitions(walked: Walked, scope: Scope, known: Facts | None = None) -> Iterator[Partition]:
    """The partitions of one graph, in the order of their first nodes. known: what is known of the symbols, if that is
    more than the graph itself says.

    All slices of a value along one axis count: one that overlaps others prevents a partition. A node with steps, of
    several axes, or of bounds that inference does not know is no part of one. Shapes, and values that are computed from
    them, have none.
    """
    facts = walked.facts.get(scope.path, Facts()) if known is None else known
    values = KnownValues(walked, scope.path)
    groups: dict[tuple[str, int], list[Part]] = {}
    unread = walked.graphs[scope.path].unread if scope.path in walked.graphs else ()
    for index, node in enumerate(scope.nodes):
        if node.op_type not in ("Slice", "Gather") or plain_domain(node.domain) or not any(node.output):
            continue
        if index in unread:
            continue
        data = values.type_of(node.input[0])
        if data.kind != "tensor" or not data.shape or _is_of_shapes(node.input[0], data, values):
            continue
        found = _part_of(index, node, data.shape, values, facts, opset_of(scope.imports))
        if found is not None:
            axis, part = found
            groups.setdefault((node.input[0], axis), []).append(part)
    for (name, axis), parts in groups.items():
        partition = _partition(scope, name, values.type_of(name), axis, parts, facts)
        if partition is not None:
            yield partition


def _is_of_shapes(name: str, data: ValueType, values: KnownValues) -> bool:
    """Whether a value may be a shape or computed from one, and so is read element by element: a Split helps nobody."""
    return values.knows_elements(name) or (data.rank == 1 and data.dtype in ("int64", "int32"))


def _partition(
    scope: Scope, name: str, data: ValueType, axis: int, parts: Sequence[Part], facts: Facts
) -> Partition | None:
    total = data.shape[axis] if data.shape else None
    # A single part is the whole value, so that nothing is split.
    ordered = None if total is None or len(parts) < 2 else _in_order(parts, total, facts)
    if ordered is None or total is None:
        return None
    lengths = tuple(facts.simplify(part.end.position - part.start.position) for part in ordered)
    return Partition(scope, name, data, axis, total, tuple(ordered), lengths)


def _part_of(
    index: int, node: NodeProto, dims: Sequence[DimLike | None], values: KnownValues, facts: Facts, opset: int
) -> tuple[int, Part] | None:
    """The axis along which a node takes consecutive elements, and these; None for any other node."""
    if node.op_type == "Gather":
        cut = _gather_bounds(node, values)
    else:
        cut = _slice_attributes(node) if opset < _INPUTS_SINCE else _slice_inputs(node, values)
    if cut is None or not -len(dims) <= cut.axis < len(dims):
        return None
    axis = cut.axis % len(dims)
    dim = dims[axis]
    if dim is None:
        return None
    start, end = _positioned(cut.start, dim, facts), _positioned(cut.end, dim, facts)
    return None if start is None or end is None else (axis, Part(index, start, end, cut.squeezed))


def _positioned(bound: Bound, dim: DimLike, facts: Facts) -> Bound | None:
    position = clamped_position(facts, dim, bound.given)
    if position is None:
        return None
    is_negative = facts.prove_ge(-1, bound.given)
    name = bound.name if is_negative or facts.prove_ge(bound.given, 0) else ""
    return Bound(position, bound.given, name, is_negative)


def _slice_attributes(node: NodeProto) -> _Cut | None:
    """What a Slice cuts along its only axis."""
    starts, ends, axes = _attribute(node, "starts", ()), _attribute(node, "ends", ()), _attribute(node, "axes", (0,))
    if not (starts and ends and axes and len(starts) == len(ends) == len(axes) == 1):
        return None
    return _Cut(axes[0], Bound(0, starts[0]), Bound(0, ends[0]))


def _slice_inputs(node: NodeProto, values: KnownValues) -> _Cut | None:
    """What a Slice of steps of 1 cuts along its only axis."""
    names = [*node.input, "", "", ""]
    start, end = _only_element(values, names[1]), _only_element(values, names[2])
    axes = values.integers(names[3]) if names[3] else [0]
    steps = values.integers(names[4]) if names[4] else [1]
    if start is None or end is None or axes is None or len(axes) != 1 or steps != [1]:
        return None
    return _Cut(axes[0], start, end)


def _only_element(values: KnownValues, name: str) -> Bound | None:
    """The bound that a 1-D tensor of one element holds."""
    contents = values.contents(name)
    if contents is None or contents.shape != (1,):
        return None
    given = contents.dims[0]
    return None if given is None else Bound(0, given, name if values.type_of(name).dtype == "int64" else "")


def _gather_bounds(node: NodeProto, values: KnownValues) -> _Cut | None:
    """What a Gather of constant, consecutive indices reads; of a scalar index it loses the axis."""
    axis = _attribute(node, "axis", 0)
    contents = values.contents(node.input[1]) if len(node.input) > 1 else None
    indices = None if contents is None else contents.integers
    if contents is None or axis is None or not indices or len(contents.shape) > 1:
        return None
    first, end = indices[0], indices[0] + len(indices)
    if indices != tuple(range(first, end)) or first < 0 < end:
        return None
    return _Cut(axis, Bound(0, first), Bound(0, end if first >= 0 else end or OPEN_END), not contents.shape)


def _in_order(parts: Sequence[Part], total: DimLike, facts: Facts) -> list[Part] | None:
    """The parts in the order of their elements; None unless they cover the dimension without gap or overlap, for every
    value of its symbols.
    """
    empty = [part for part in parts if part.is_empty]
    waiting = {part.start.position: part for part in parts if not part.is_empty}
    if len(waiting) + len(empty) < len(parts):
        return None
    position: DimLike = 0
    ordered: list[Part] = []
    while waiting:
        ordered += (part for part in empty if part.start.position == position)
        key = position if position in waiting else _equal_position(waiting, position, facts)
        part = None if key is None else waiting.pop(key)
        if part is None or not facts.prove_ge(part.end.position, part.start.position):
            return None
        ordered.append(part)
        position = part.end.position
    placed = {part.index for part in ordered}
    ordered += (part for part in empty if part.index not in placed)
    return ordered if position == total or facts.prove_eq(position, total) else None


def _equal_position(waiting: Mapping[DimLike, Part], position: DimLike, facts: Facts) -> DimLike | None:
    if len(waiting) > _MOST_PROVED:
        return None
    symbolic = (key for key in waiting if isinstance(key, Dim) or isinstance(position, Dim))
    return next((key for key in symbolic if facts.prove_eq(key, position)), None)


def _attribute(node: NodeProto, name: str, absent: object) -> Any:
    """The value of an attribute; None for one that refers to an attribute of the enclosing function."""
    for attribute in node.attribute:
        if attribute.name == name:
            return None if attribute.ref_attr_name else attribute_value(attribute)
    return absent
