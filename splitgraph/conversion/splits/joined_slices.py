"""Writing slices that are all parts of a value as one Split."""

from __future__ import annotations

from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from splitgraph.attributes import make_attribute
from splitgraph.canonical import CanonicalSplit
from splitgraph.conversion.nodes.node import reads_of
from splitgraph.conversion.planning.emission import Emission, axes_node, new_emission
from splitgraph.conversion.planning.plan import Plan, Replacement, opset_of
from splitgraph.conversion.splits.lower import SplitNode, lower_split
from splitgraph.conversion.splits.partitions import Bound, Partition, find_partitions
from splitgraph.conversion.splits.sequences import Place
from splitgraph.dim import DimLike
from splitgraph.graph.names import FreshNames
from splitgraph.graph.scopes import Scope
from splitgraph.inference import Walked
from splitgraph.inference.walk_results import SplitDetail
from splitgraph.onnx_proto import ModelProto, NodeProto
from splitgraph.schemas.history import version_at
from splitgraph.variants import Variant, variant_at
from splitgraph.variants.lowering import lengths_with_rest
from splitgraph.variants.slices import OPEN_END, slice_variant

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
        target = variant_at("Split", opset_of(scope.imports))
        if target is None:
            continue
        order = _Order(scope)
        for found in find_partitions(walked, scope):
            places = [(scope.path, part.index) for part in found.parts]
            if only is not None and not any(place in only for place in places):
                continue
            if any(plan.at(path).changes(index) for path, index in places):
                continue
            if any(place in walked.set_aside for place in places):
                continue
            joined = _join(plan, model, found, order, target, names, explicit_lengths)
            if joined is not None:
                _replace(plan, found, joined, why)


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
        """The index of the node that defines a value, -1 where none of this graph does."""
        return self._listed().get(name, -1)

    def is_read_before(self, name: str, place: int) -> bool:
        """Whether a node before this place, or one in its subgraphs, reads a value."""
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
    found: Partition,
    order: _Order,
    target: Variant,
    names: FreshNames,
    explicit_lengths: bool,
) -> _Joined | None:
    scope, nodes, opset = found.scope, found.scope.nodes, opset_of(found.scope.imports)
    split = _canonical(found)
    if split.form != "equal" and split.static_lengths is None and opset < _LENGTHS_INPUT_SINCE:
        return None
    inner = _inner_bounds(found) if split.form != "equal" and lengths_with_rest(split) is None else []
    if inner is None:
        return None
    place = _place(found, order, [bound.name for bound in inner])
    if place is None:
        return None
    emission = new_emission(plan, model, scope, nodes[place], place, names, opset)
    stand_in = _stand_in(found, names)
    if inner:
        stand_in.input.append(_lengths_between(emission, found, inner))
    detail = SplitDetail(slice_variant(opset), split, found.data, split.form == "equal", (), "int64")
    replacement, _ = lower_split(
        SplitNode(scope, place, stand_in, detail), target, emission, "", explicit_lengths=explicit_lengths
    )
    if replacement is None or {made.op_type for made in emission.mains} != {"Split"}:
        return None
    for part, output in zip(found.parts, stand_in.output, strict=True):
        if part.squeezed:
            emission.main(_squeeze(emission, nodes[part.index], output, found.axis))
    return _Joined(place, emission, target.label)


def _canonical(found: Partition) -> CanonicalSplit:
    lengths = found.lengths
    # Runtimes disagree about num_outputs where parts are empty.
    is_equal = len(set(lengths)) == 1 and lengths[0] != 0
    return CanonicalSplit(found.axis, found.total, lengths, "equal" if is_equal else "lengths", len(lengths))


def _stand_in(found: Partition, names: FreshNames) -> NodeProto:
    """A Split of the parts, with the name and documentation of the first node whose output it has."""
    nodes = found.scope.nodes
    outputs = [
        names.new(f"{nodes[part.index].output[0]}_part") if part.squeezed else nodes[part.index].output[0]
        for part in found.parts
    ]
    made = NodeProto(op_type="Split", input=[found.name], output=outputs)
    made.attribute.append(make_attribute("axis", found.axis))
    whole = min((part.index for part in found.parts if not part.squeezed), default=None)
    if whole is None:
        first = nodes[min(part.index for part in found.parts)]
        made.name = names.new(f"{first.name}_split") if first.name else ""
    else:
        made.name, made.doc_string = nodes[whole].name, nodes[whole].doc_string
        made.metadata_props.extend(nodes[whole].metadata_props)
    return made


def _squeeze(emission: Emission, gather: NodeProto, part: str, axis: int) -> NodeProto:
    """The Squeeze that stands for a Gather of one element, with its name and documentation."""
    made = axes_node(emission, "Squeeze", part, gather.output[0], axis)
    made.name, made.doc_string = gather.name or made.name, gather.doc_string
    made.metadata_props.extend(gather.metadata_props)
    return made


def _place(found: Partition, order: _Order, read: Sequence[str]) -> int | None:
    """The index of the first node of the partition behind everything that the Split reads; None where a node before it
    reads a part already.
    """
    own = sorted(part.index for part in found.parts)
    last = max((order.made(name) for name in read if name), default=-1)
    place = next((index for index in own if index > last), None)
    if place is None or place == own[0]:
        return place
    parts = (found.scope.nodes[index].output[0] for index in own)
    return None if any(order.is_read_before(part, place) for part in parts) else place


def _inner_bounds(found: Partition) -> list[Bound] | None:
    """Between each two parts, the bound that a tensor or a number holds; None where none does."""
    inner: list[Bound] = []
    position: DimLike = 0
    for left, right in pairwise(found.parts):
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


def _lengths_between(emission: Emission, found: Partition, inner: Sequence[Bound]) -> str:
    """The name of a 1-D tensor with the lengths of the parts, given the bounds between them."""
    shape = emission.write("Shape", [found.name], "shape")
    dim = emission.write("Gather", [shape, emission.constant([found.axis], "axis")], "dim", axis=0)
    bounds = [emission.constant([0], "first"), *(_position(emission, found, bound, dim) for bound in inner), dim]
    starts = emission.write("Concat", bounds[:-1], "starts", axis=0)
    ends = emission.write("Concat", bounds[1:], "ends", axis=0)
    return emission.write("Sub", [ends, starts], "lengths")


def _position(emission: Emission, found: Partition, bound: Bound, dim: str) -> str:
    """The name of a 1-D tensor with the position of a bound, which may count from the end and lie outside."""
    given, total = bound.given, found.total
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


def _replace(plan: Plan, found: Partition, joined: _Joined, why: str) -> None:
    scope, count = found.scope, len(found.parts)
    for number, part in sorted(enumerate(found.parts, 1), key=lambda entry: entry[1].index):
        node, index = scope.nodes[part.index], part.index
        version = version_at(node.op_type, opset_of(scope.imports))
        before = node.op_type if version is None else f"{node.op_type}-{version.since_version}"
        told = f"{why}: part {number} of {count} of {found.name} on axis {found.axis}"
        if index == joined.place:
            plan.replace(scope, index, joined.emission.replacement(told, before, joined.label))
        else:
            plan.replace(scope, index, Replacement([], (), told, before, joined.label))
