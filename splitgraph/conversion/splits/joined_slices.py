"""Writing slices that are all parts of a value as one Split."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any, NamedTuple

from splitgraph.conversion.builders import Emission, axes_node, new_emission
from splitgraph.conversion.known_values import KnownValues
from splitgraph.conversion.node import reads_of
from splitgraph.conversion.plan import Plan, Replacement, opset_of
from splitgraph.conversion.splits.lower import SplitNode, lower_split
from splitgraph.conversion.splits.sequences import Place
from splitgraph.dim import Dim, DimLike, Facts
from splitgraph.inference import Walked
from splitgraph.inference.rules.onnx.slicing import clamped_position
from splitgraph.inference.walk_results import SplitDetail
from splitgraph.model.attributes import attribute_value, make_attribute
from splitgraph.model.names import FreshNames
from splitgraph.model.onnx_proto import ModelProto, NodeProto
from splitgraph.model.places import versioned_operator
from splitgraph.model.scopes import Scope, plain_domain
from splitgraph.model.value_type import ValueType
from splitgraph.splits import Variant, variant_at
from splitgraph.splits.canonical import CanonicalSplit
from splitgraph.splits.lowering import lengths_with_rest
from splitgraph.splits.slices import OPEN_END, slice_variant

# From here on, the lengths of a Split may be computed.
_LENGTHS_INPUT_SINCE = 13


def plan_partitions(
    plan: Plan,
    model: ModelProto,
    walked: Walked,
    root: Sequence[Scope],
    names: FreshNames,
    why: str,
    *,
    explicit_lengths: bool = False,
    only: Container[Place] | None = None,
) -> None:
    """Plan a Split in place of the slices of each partition; partitions that no Split can express are left alone. only:
    the partitions with one of these nodes; None for all.
    """
    for scope in root:
        variant = variant_at("Split", opset_of(scope.imports))
        if variant is None:
            continue
        order = _Order(scope)
        for partition in find_partitions(walked, scope):
            places = [(scope.path, part.index) for part in partition.parts]
            if only is not None and not any(place in only for place in places):
                continue
            if any(plan.at(path).changes(index) for path, index in places):
                continue
            if any(place in walked.set_aside for place in places):
                continue
            joined = _join(plan, model, partition, order, variant, names, explicit_lengths)
            if joined is not None:
                _replace(plan, partition, joined, why)


@dataclass(frozen=True, slots=True)
class _Joined:
    """A Split for a partition. place: the index of the node that it replaces; the others are removed."""

    place: int
    emission: Emission
    label: str


@dataclass(slots=True)
class _Order:
    """Where the nodes of a graph define each value, and where they first read it; listed when first asked."""

    scope: Scope
    _made: dict[str, int] | None = None
    _first_read: dict[str, int] = field(default_factory=dict)

    def made(self, name: str) -> int:
        """Return the index of the node that defines a value, -1 where none of this graph does."""
        return self._listed().get(name, -1)

    def is_read_before(self, name: str, place: int) -> bool:
        """Return whether a node before this place, or one in its subgraphs, reads a value."""
        self._listed()
        return self._first_read.get(name, place) < place

    def _listed(self) -> dict[str, int]:
        if self._made is None:
            self._made = {}
            for index, node in enumerate(self.scope.nodes):
                self._made.update(dict.fromkeys(node.output, index))
                for name in reads_of(node):
                    self._first_read.setdefault(name, index)
        return self._made


def _join(
    plan: Plan,
    model: ModelProto,
    partition: Partition,
    order: _Order,
    variant: Variant,
    names: FreshNames,
    explicit_lengths: bool,
) -> _Joined | None:
    scope, nodes, opset = partition.scope, partition.scope.nodes, opset_of(partition.scope.imports)
    split = _canonical(partition)
    if split.form != "equal" and split.static_lengths is None and opset < _LENGTHS_INPUT_SINCE:
        return None
    inner = _inner_bounds(partition) if split.form != "equal" and lengths_with_rest(split) is None else []
    if inner is None:
        return None
    place = _place(partition, order, [bound.name for bound in inner])
    if place is None:
        return None
    emission = new_emission(plan, model, scope, nodes[place], place, names, opset)
    stand_in = _stand_in(partition, names)
    if inner:
        stand_in.input.append(_lengths_between(emission, partition, inner))
    detail = SplitDetail(slice_variant(opset), split, partition.data, split.form == "equal", (), "int64")
    replacement, _ = lower_split(
        SplitNode(scope, place, stand_in, detail), variant, emission, "", explicit_lengths=explicit_lengths
    )
    if replacement is None or {made.op_type for made in emission.mains} != {"Split"}:
        return None
    for part, output in zip(partition.parts, stand_in.output, strict=True):
        if part.squeezed:
            emission.main(_squeeze(emission, nodes[part.index], output, partition.axis))
    return _Joined(place, emission, variant.label)


def _canonical(partition: Partition) -> CanonicalSplit:
    lengths = partition.lengths
    # Runtimes disagree about num_outputs where parts are empty.
    is_equal = len(set(lengths)) == 1 and lengths[0] != 0
    return CanonicalSplit(partition.axis, partition.total, lengths, "equal" if is_equal else "lengths", len(lengths))


def _stand_in(partition: Partition, names: FreshNames) -> NodeProto:
    """Return a Split of the parts, with the name and documentation of the first node whose output it has."""
    nodes = partition.scope.nodes
    outputs = [
        names.new(f"{nodes[part.index].output[0]}_part") if part.squeezed else nodes[part.index].output[0]
        for part in partition.parts
    ]
    made = NodeProto(op_type="Split", input=[partition.name], output=outputs)
    made.attribute.append(make_attribute("axis", partition.axis))
    whole = min((part.index for part in partition.parts if not part.squeezed), default=None)
    if whole is None:
        first = nodes[min(part.index for part in partition.parts)]
        made.name = names.new(f"{first.name}_split") if first.name else ""
    else:
        made.name, made.doc_string = nodes[whole].name, nodes[whole].doc_string
        made.metadata_props.extend(nodes[whole].metadata_props)
    return made


def _squeeze(emission: Emission, gather: NodeProto, part: str, axis: int) -> NodeProto:
    """Return the Squeeze that stands for a Gather of one element, with its name and documentation."""
    made = axes_node(emission, "Squeeze", part, gather.output[0], axis)
    made.name, made.doc_string = gather.name or made.name, gather.doc_string
    made.metadata_props.extend(gather.metadata_props)
    return made


def _place(partition: Partition, order: _Order, read: Sequence[str]) -> int | None:
    """Return the index of the first node of the partition behind everything that the Split reads; None where a node
    before it reads a part already.
    """
    own = sorted(part.index for part in partition.parts)
    last = max((order.made(name) for name in read if name), default=-1)
    place = next((index for index in own if index > last), None)
    if place is None or place == own[0]:
        return place
    parts = (partition.scope.nodes[index].output[0] for index in own)
    return None if any(order.is_read_before(part, place) for part in parts) else place


def _inner_bounds(partition: Partition) -> list[Bound] | None:
    """Return the bound between each two parts that a tensor or a number holds; None where none does."""
    inner: list[Bound] = []
    position: DimLike = 0
    for left, right in pairwise(partition.parts):
        position = left.end.position if not left.is_empty else position
        usable = [
            bound
            for bound in (left.end, right.start)
            if bound.position == position and (isinstance(bound.given, int) or bound.name)
        ]
        if not usable:
            return None
        inner.append(min(usable, key=lambda bound: not isinstance(bound.given, int)))
    return inner


def _lengths_between(emission: Emission, partition: Partition, inner: Sequence[Bound]) -> str:
    """Return the name of a 1-D tensor with the lengths of the parts, given the bounds between them."""
    shape = emission.write("Shape", [partition.name], "shape")
    dim = emission.write("Gather", [shape, emission.constant([partition.axis], "axis")], "dim", axis=0)
    bounds = [emission.constant([0], "first"), *(_position(emission, partition, bound, dim) for bound in inner), dim]
    starts = emission.write("Concat", bounds[:-1], "starts", axis=0)
    ends = emission.write("Concat", bounds[1:], "ends", axis=0)
    return emission.write("Sub", [ends, starts], "lengths")


def _position(emission: Emission, partition: Partition, bound: Bound, dim: str) -> str:
    """Return the name of a 1-D tensor with the position of a bound, which may count from the end and lie outside."""
    given, total = bound.given, partition.total
    if bound.position == total or given == OPEN_END:
        return dim
    if bound.position == 0:
        return emission.constant([0], "first")
    name = emission.constant([given], "bound") if isinstance(given, int) else bound.name
    if bound.position == given:
        return name
    if not bound.counts_from_end:
        return emission.write("Min", [name, dim], "bound")
    from_start = emission.write("Add", [dim, name], "bound")
    if bound.position == total + given:
        return from_start
    return emission.write("Max", [from_start, emission.constant([0], "first")], "bound")


def _replace(plan: Plan, partition: Partition, joined: _Joined, why: str) -> None:
    scope, count = partition.scope, len(partition.parts)
    for number, part in sorted(enumerate(partition.parts, 1), key=lambda entry: entry[1].index):
        node, index = scope.nodes[part.index], part.index
        before = versioned_operator(node, scope.imports)
        told = f"{why}: part {number} of {count} of {partition.name} on axis {partition.axis}"
        if index == joined.place:
            plan.replace(scope, index, joined.emission.replacement(told, before, joined.label))
        else:
            plan.replace(scope, index, Replacement([], (), told, before, joined.label))


# Partitions -----------------------------------------------------------------------------------------------------------


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
    """Return the partitions of one graph, in the order of their first nodes. known: what is known of the symbols, if
    that is more than the graph itself says.

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
        axis_and_part = _part_of(index, node, data.shape, values, facts, opset_of(scope.imports))
        if axis_and_part is not None:
            axis, part = axis_and_part
            groups.setdefault((node.input[0], axis), []).append(part)
    for (name, axis), parts in groups.items():
        partition = _partition(scope, name, values.type_of(name), axis, parts, facts)
        if partition is not None:
            yield partition


def _is_of_shapes(name: str, data: ValueType, values: KnownValues) -> bool:
    """Return whether a value may be a shape or computed from one, and so is read element by element: a Split helps
    nobody.
    """
    return values.knows_elements(name) or (data.rank == 1 and data.dtype in ("int64", "int32"))


def _partition(
    scope: Scope, name: str, data: ValueType, axis: int, parts: Sequence[Part], facts: Facts
) -> Partition | None:
    total = data.shape[axis] if data.shape else None
    # A single part is the whole value: nothing is split.
    ordered = None if total is None or len(parts) < 2 else _in_order(parts, total, facts)
    if ordered is None or total is None:
        return None
    lengths = tuple(facts.simplify(part.end.position - part.start.position) for part in ordered)
    return Partition(scope, name, data, axis, total, tuple(ordered), lengths)


def _part_of(
    index: int, node: NodeProto, dims: Sequence[DimLike | None], values: KnownValues, facts: Facts, opset: int
) -> tuple[int, Part] | None:
    """Return the axis along which a node takes consecutive elements, and these; None for any other node."""
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
    """Return what a Slice cuts along its only axis."""
    starts, ends, axes = _attribute(node, "starts", ()), _attribute(node, "ends", ()), _attribute(node, "axes", (0,))
    if not (starts and ends and axes and len(starts) == len(ends) == len(axes) == 1):
        return None
    return _Cut(axes[0], Bound(0, starts[0]), Bound(0, ends[0]))


def _slice_inputs(node: NodeProto, values: KnownValues) -> _Cut | None:
    """Return what a Slice of steps of 1 cuts along its only axis."""
    names = [*node.input, "", "", ""]
    start, end = _only_element(values, names[1]), _only_element(values, names[2])
    axes = values.integers(names[3]) if names[3] else [0]
    steps = values.integers(names[4]) if names[4] else [1]
    if start is None or end is None or axes is None or len(axes) != 1 or steps != [1]:
        return None
    return _Cut(axes[0], start, end)


def _only_element(values: KnownValues, name: str) -> Bound | None:
    """Return the bound that a 1-D tensor of one element holds."""
    contents = values.contents(name)
    if contents is None or contents.shape != (1,):
        return None
    given = contents.dims[0]
    return None if given is None else Bound(0, given, name if values.type_of(name).dtype == "int64" else "")


def _gather_bounds(node: NodeProto, values: KnownValues) -> _Cut | None:
    """Return what a Gather of constant, consecutive indices reads; of a scalar index it loses the axis."""
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
    """Return the parts in the order of their elements; None unless they cover the dimension without gap or overlap, for
    every value of its symbols.
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
    """Return the value of an attribute; None for one that refers to an attribute of the enclosing function."""
    for attribute in node.attribute:
        if attribute.name == name:
            return None if attribute.ref_attr_name else attribute_value(attribute)
    return absent
