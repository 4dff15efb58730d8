"""The walk over a model with its new sizes: constants are read in terms of dimensions as the walk reaches them.

Each rule sees one node (`RULES`). It may give constants of the node other elements, so that what follows has the right
dimensions, and it says which other values have a size that the node needs to change (`Need`). `origins.py` finds where
such a size comes from; then the model is walked again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from splitgraph.conversion.sizes.readings import Ambiguous, parted, read_slice, read_target
from splitgraph.conversion.sizes.wanted import Wanted
from splitgraph.dim import Dim, DimLike, symbols_of
from splitgraph.inference.context import NodeContext
from splitgraph.inference.walk_results import NodePlace
from splitgraph.model.attributes import make_attribute
from splitgraph.model.onnx_proto import GraphProto
from splitgraph.model.scopes import GraphPath, plain_domain
from splitgraph.model.value_type import Contents, ValueType, tensor, vector


class InputPlace(NamedTuple):
    """An input of a node: its graph, the number of the node there, and of the input."""

    path: GraphPath
    node: int
    position: int


class Need(NamedTuple):
    """A value whose size along an axis has to become a dimension, because a node needs that. name: of the value. entry:
    of indices, which entry along their last axis counts the items.
    """

    place: InputPlace
    name: str
    axis: int
    dim: DimLike
    location: str
    entry: int | None = None


class Repeated(NamedTuple):
    """What weights are along an axis: all the same, or numbers that are counted from `start` in steps."""

    axis: int
    start: int = 0
    step: int = 0


class Counted(NamedTuple):
    """What indices are along an axis: one entry of their last axis counts from 0, and all else is the same."""

    axis: int
    entry: int


class Triangle(NamedTuple):
    """What weights are along their last two axes: one value up to a diagonal, and another above it, as in a causal
    mask. diagonal: the largest column less the row that has the first value.
    """

    diagonal: int
    below: Any
    above: Any


class Doubt(NamedTuple):
    """A number that can mean several things: entry `entry` of a constant input. choices: as people read them."""

    place: InputPlace
    entry: int
    choices: str
    location: str


@dataclass(slots=True)
class Follower:
    """What the walk calls for each node before it is inferred.

    elements: the elements of constant inputs in terms of dimensions, found so far or given by the user. shapes: the
    shapes to which inputs are expanded. repeated: of these, what weights of more than one element are along an axis.
    outer: of inputs along an axis of 24*N, what stands outside of N; None where it is not known. merged: the values of
    which the last walk asked that, by input and axis. needs, doubts: what the last walk found; blocked: what cannot
    follow, by location. edits, attributes: what the last walk read otherwise: elements of constant inputs by position,
    and attributes; None for one that is dropped. own: the nodes about which something is decided.
    """

    wanted: Wanted
    elements: dict[InputPlace, Contents] = field(default_factory=dict)
    shapes: dict[InputPlace, tuple[DimLike, ...]] = field(default_factory=dict)
    repeated: dict[InputPlace, Repeated | Counted | Triangle] = field(default_factory=dict)
    edits: dict[NodePlace, dict[int, Contents]] = field(default_factory=dict)
    attributes: dict[NodePlace, dict[str, tuple[int, ...] | None]] = field(default_factory=dict)
    outer: dict[tuple[InputPlace, int], int | None] = field(default_factory=dict)
    merged: dict[tuple[InputPlace, int], str] = field(default_factory=dict)
    needs: list[Need] = field(default_factory=list)
    doubts: list[Doubt] = field(default_factory=list)
    blocked: dict[str, str] = field(default_factory=dict)
    own: set[NodePlace] = field(default_factory=set)

    def begin(self) -> None:
        """Forget what an earlier walk found."""
        self.edits.clear()
        self.attributes.clear()
        self.merged.clear()
        self.needs.clear()
        self.doubts.clear()
        self.blocked.clear()
        self.own = {place[:2] for place in (*self.elements, *self.shapes, *(place for place, _ in self.outer))}

    def is_own(self, path: GraphPath, index: int) -> bool:
        """Return True for a node that is not like others that look alike: something was decided about it."""
        return (path, index) in self.own

    def __call__(self, ctx: NodeContext) -> None:
        """Give a node the elements and shapes that are decided, and read its constants."""
        site = Site(self, ctx)
        for position in range(ctx.input_count):
            place = site.place(position)
            if place in self.shapes:
                site.expand(position, self.shapes[place])
            if place in self.elements:
                site.restate(position, self.elements[place])
        rule = RULES.get((plain_domain(ctx.node.domain), ctx.node.op_type))
        if rule is not None:
            rule(site)


@dataclass(slots=True)
class Site:
    """One node, as a rule sees it."""

    follower: Follower
    ctx: NodeContext

    @property
    def wanted(self) -> Wanted:
        return self.follower.wanted

    def place(self, position: int) -> InputPlace:
        return InputPlace(self.ctx.walk.path, self.ctx.index, position)

    def dims(self, position: int) -> tuple[DimLike, ...] | None:
        """Return the dimensions of an input; None if one is not known."""
        shape = self.ctx.input(position).shape if self.ctx.has_input(position) else None
        return None if shape is None or None in shape else shape  # type: ignore[return-value]

    def numbers(self, position: int) -> tuple[int, ...] | None:
        """Return the elements of an input that are numbers in any run."""
        known = self.ctx.contents(position) if self.ctx.has_input(position) else None
        return None if known is None else known.integers

    def items(self, position: int) -> tuple[DimLike, ...] | None:
        """Return the elements of an input that are sizes, some of them dimensions."""
        known = self.ctx.contents(position) if self.ctx.has_input(position) else None
        items = () if known is None else known.dims
        return None if known is None or None in items else items  # type: ignore[return-value]

    def is_decided(self, position: int) -> bool:
        return self.place(position) in self.follower.elements

    def restate(self, position: int, contents: Contents) -> None:
        """Read an input as these elements."""
        ctx = self.ctx
        ctx.given[position] = ctx.walk.state.knowledge.of(ctx.input(position), contents)
        self.follower.edits.setdefault((ctx.walk.path, ctx.index), {})[position] = contents

    def set_attribute(self, name: str, numbers: tuple[int, ...] | None) -> None:
        """Read an attribute as these numbers, or as if it were not there."""
        ctx = self.ctx
        ctx.repair((name,), None if numbers is None else make_attribute(name, numbers), 0)
        self.follower.attributes.setdefault((ctx.walk.path, ctx.index), {})[name] = numbers

    def expand(self, position: int, shape: Sequence[DimLike]) -> None:
        """Read an input as one of this shape."""
        ctx = self.ctx
        kind: ValueType = ctx.input(position).with_shape(shape)
        ctx.given[position] = ctx.walk.state.knowledge.of(kind)
        ctx.inputs[position] = kind

    def need(self, position: int, axis: int, dim: DimLike, entry: int | None = None) -> None:
        """An input has to get a dimension along an axis, where it has a number. entry: as in `Need`."""
        ctx = self.ctx
        found = Need(self.place(position), ctx.node.input[position], axis, dim, ctx.location, entry)
        self.follower.needs.append(found)

    def need_if_fixed(self, position: int, axis: int, own: DimLike, dim: DimLike) -> None:
        """The same, if the input has the old size there."""
        if self.wanted.moves(dim) and isinstance(own, int) and own == self.wanted.before(dim):
            self.need(position, axis, dim)

    def outer(self, position: int, dims: Sequence[DimLike]) -> Mapping[int, int]:
        """Return what stands outside of the part of an input that changes, by axis. Asks where that is not known."""
        known: dict[int, int] = {}
        for axis, dim in enumerate(dims):
            if self.wanted.moves(dim) and parted(dim)[0] > 1:
                place = self.place(position), axis
                self.follower.merged[place] = self.ctx.node.input[position]
                number = self.follower.outer.get(place)
                if number is not None:
                    known[axis] = number
        return known

    def block(self, text: str) -> None:
        """The node cannot follow."""
        self.follower.blocked[self.ctx.location] = text

    def doubt(self, position: int, entry: int, choices: str) -> None:
        """An element of an input can mean several things."""
        self.follower.doubts.append(Doubt(self.place(position), entry, choices, self.ctx.location))


Rule = Callable[[Site], None]


# Constants ------------------------------------------------------------------------------------------------------------


def _reshape(site: Site) -> None:
    dims, has_attribute = site.dims(0), site.ctx.since_version < 5
    target = site.ctx.attribute("shape") if has_attribute else site.items(1)
    if dims is None or target is None or site.is_decided(1) or not any(map(site.wanted.moves, dims)):
        return
    numbers = [site.wanted.before(entry) for entry in target]
    if any(isinstance(entry, Dim) for entry in numbers):
        return
    zeros_are_sizes = site.ctx.attribute("allowzero", 0) == 1
    outer = site.outer(0, dims)
    try:
        read = read_target(dims, numbers, site.wanted, outer, zeros_are_sizes=zeros_are_sizes)  # type: ignore[arg-type]
    except Ambiguous as choices:
        site.doubt(1, 0, str(choices))
        return
    if read is None or list(target) == read:
        return
    if has_attribute:
        site.set_attribute("shape", _in_numbers(site, dims, read))
    else:
        site.restate(1, vector(read))


def _in_numbers(site: Site, dims: Sequence[DimLike], read: Sequence[DimLike]) -> tuple[int, ...]:
    """Return the target of a Reshape-1, which is an attribute: 0 copies a dimension, and -1 is the only other one."""
    plain = [site.wanted.after(entry) for entry in read]
    for axis, entry in enumerate(plain):
        if isinstance(entry, Dim) and axis < len(dims) and dims[axis] == entry:
            plain[axis] = 0
    rest = [axis for axis, entry in enumerate(plain) if isinstance(entry, Dim)]
    if len(rest) + plain.count(-1) > 1:
        site.block(f"the target {_spelled(read)} is an attribute, which holds one dimension; upgrade the model to 5")
    return tuple(-1 if isinstance(entry, Dim) else entry for entry in plain)


def _spelled(dims: Sequence[DimLike]) -> str:
    return f"[{', '.join(map(str, dims))}]"


def _gather(site: Site) -> None:
    """An item that is taken by its number is no batch."""
    dims, indices = site.dims(0), site.numbers(1)
    axis = site.ctx.attribute("axis", 0)
    if dims is None or indices is None or not -len(dims) <= axis < len(dims):
        return
    if site.wanted.moves(dims[axis]) and symbols_of(dims[axis]) <= site.wanted.batch:
        site.block(f"takes element {', '.join(map(str, indices))} of {dims[axis]}, whatever the batch")


def _expand(site: Site) -> None:
    """A target of the data's own size is one of 1: the data has that size at any size."""
    dims, target = site.dims(0), site.numbers(1)
    if dims is None or target is None or site.is_decided(1):
        return
    read: list[DimLike] = list(target)
    for back in range(1, min(len(dims), len(target)) + 1):
        dim = dims[-back]
        if site.wanted.moves(dim) and target[-back] == site.wanted.before(dim):
            read[-back] = 1
    if list(target) != read:
        site.restate(1, vector(read))


def _slice(site: Site) -> None:
    """An end at the end of the data is the end of any data."""
    ctx, dims = site.ctx, site.dims(0)
    has_attributes = ctx.since_version < 10
    if has_attributes:
        starts, ends, axes = (ctx.attribute(name) for name in ("starts", "ends", "axes"))
    else:
        starts, ends, axes = map(site.numbers, (1, 2, 3))
    if dims is None or starts is None or ends is None or site.is_decided(2) or (axes is None and ctx.has_input(3)):
        return
    axes = tuple(range(len(starts))) if axes is None else axes
    steps = site.numbers(4) if ctx.has_input(4) else (1,) * len(starts)
    if steps is None or len({len(starts), len(ends), len(axes), len(steps)}) > 1:
        return
    first, last = list(starts), list(ends)
    for entry, axis in enumerate(axes):
        if not -len(dims) <= axis < len(dims) or not site.wanted.moves(dims[axis]):
            continue
        old = site.wanted.before(dims[axis])
        if not isinstance(old, int):
            continue
        try:
            first[entry], last[entry] = read_slice(starts[entry], ends[entry], steps[entry], old)
        except Ambiguous as choices:
            site.doubt(2, entry, str(choices))
    for position, name, before, after in ((1, "starts", starts, first), (2, "ends", ends, last)):
        if list(before) != after and has_attributes:
            site.set_attribute(name, tuple(after))
        elif list(before) != after:
            site.restate(position, vector(after))


def _split(site: Site) -> None:
    """Parts of one length stay equal parts."""
    dims, has_attribute = site.dims(0), site.ctx.since_version < 13
    lengths = site.ctx.attribute("split") if has_attribute else site.numbers(1)
    if dims is None or lengths is None or site.is_decided(1):
        return
    axis = site.ctx.attribute("axis", 0)
    if not -len(dims) <= axis < len(dims) or not site.wanted.moves(dims[axis]):
        return
    if len(set(lengths)) == 1 and has_attribute:
        site.set_attribute("split", None)
        return
    if len(set(lengths)) == 1:
        site.restate(1, vector([dims[axis] // len(lengths)] * len(lengths)))
        return
    old = site.wanted.before(dims[axis])
    site.doubt(1, 0, f"lengths {', '.join(map(str, lengths))} of {old}: which of them change with {dims[axis]}")


def _resize(site: Site) -> None:
    """Sizes that are the data's own stay so; another one may be fixed, or a multiple."""
    position = 3
    dims, sizes = site.dims(0), site.items(position)
    if dims is None or not sizes or site.is_decided(position):
        return
    axes = site.ctx.attribute("axes") or tuple(range(len(dims)))
    read: list[DimLike] = list(sizes)
    for entry, (axis, size) in enumerate(zip(axes, sizes, strict=False)):
        dim = dims[axis]
        if not site.wanted.moves(dim) or isinstance(size, Dim):
            continue
        old = site.wanted.before(dim)
        if size == old:
            read[entry] = dim
        elif isinstance(old, int) and old:
            scaled = f", or {dim * (size // old)}" if size % old == 0 else ""
            site.doubt(position, entry, f"{size} whatever the size of the data{scaled}")
    if list(sizes) != read:
        site.restate(position, vector(read))


def _gather_nd(site: Site) -> None:
    """Indices that count the items of a batch go on counting."""
    dims, indices = site.dims(0), site.dims(1)
    if dims is None or indices is None or len(indices) < 2 or site.ctx.attribute("batch_dims", 0):
        return
    for entry, dim in enumerate(dims[: indices[-1]] if isinstance(indices[-1], int) else ()):
        if not site.wanted.moves(dim) or not symbols_of(dim) <= site.wanted.batch or dim in indices:
            continue
        old = site.wanted.before(dim)
        axis = next((axis for axis, size in enumerate(indices[:-1]) if size == old), None)
        if axis is None:
            site.block(f"takes elements along {dim} by their numbers, whatever the batch")
        else:
            site.need(1, axis, dim, entry)


def _top_k(site: Site) -> None:
    """As many as there are can be all of them, sorted."""
    dims, count = site.dims(0), site.numbers(1)
    axis = site.ctx.attribute("axis", -1)
    if dims is None or count is None or site.is_decided(1) or not -len(dims) <= axis < len(dims):
        return
    if site.wanted.moves(dims[axis]) and site.wanted.before(dims[axis]) == count[0]:
        site.doubt(1, 0, f"{count[0]} whatever the size of the data, or all {dims[axis]} of it, sorted")


# Needs ----------------------------------------------------------------------------------------------------------------


def _broadcast(site: Site) -> None:
    """Operands that are not 1 have one size."""
    _fit_broadcast(site, range(site.ctx.input_count), 0)


def _fit_broadcast(site: Site, positions: Sequence[int], skipped: int) -> None:
    """skipped: how many last axes do not broadcast."""
    shapes = {position: site.dims(position) for position in positions}
    known = {position: dims for position, dims in shapes.items() if dims is not None}
    longest = max((len(dims) for dims in known.values()), default=0)
    for back in range(skipped + 1, longest + 1):
        sizes = {position: dims[-back] for position, dims in known.items() if len(dims) >= back}
        moving = next((dim for dim in sizes.values() if site.wanted.moves(dim)), None)
        if moving is not None and site.wanted.before(moving) == 1:
            other = next((size for size in sizes.values() if size not in (1, moving)), moving)
            if isinstance(other, int) or (site.wanted.moves(other) and site.wanted.before(other) != 1):
                site.block(f"{moving} was 1, and is broadcast to {other}")
            continue
        for position, size in sizes.items() if moving is not None else ():
            site.need_if_fixed(position, len(known[position]) - back, size, moving)  # type: ignore[arg-type]


def _matmul(site: Site) -> None:
    one, other = site.dims(0), site.dims(1)
    if one is None or other is None:
        return
    _fit_broadcast(site, (0, 1), 2)
    inner = -2 if len(other) > 1 else -1
    site.need_if_fixed(1, len(other) + inner, other[inner], one[-1])
    site.need_if_fixed(0, len(one) - 1, one[-1], other[inner])


def _gemm(site: Site) -> None:
    one, other = site.dims(0), site.dims(1)
    if one is None or other is None or len(one) != 2 or len(other) != 2:
        return
    inner = 0 if site.ctx.attribute("transA", 0) else 1, 1 if site.ctx.attribute("transB", 0) else 0
    site.need_if_fixed(1, inner[1], other[inner[1]], one[inner[0]])
    site.need_if_fixed(0, inner[0], one[inner[0]], other[inner[1]])


def _concat(site: Site) -> None:
    """All inputs have one size along the other axes."""
    shapes = [site.dims(position) for position in range(site.ctx.input_count)]
    rank = next((len(dims) for dims in shapes if dims is not None), 0)
    axis = site.ctx.attribute("axis", 1)
    for other in range(rank):
        if other == axis % rank:
            continue
        sizes = {position: dims[other] for position, dims in enumerate(shapes) if dims is not None}
        moving = next((dim for dim in sizes.values() if site.wanted.moves(dim)), None)
        if moving is not None:
            for position, size in sizes.items():
                site.need_if_fixed(position, other, size, moving)


def _recurrent(site: Site) -> None:
    """Lengths and states have the batch of the data."""
    dims = site.dims(0)
    if dims is None or len(dims) != 3:
        return
    first = site.ctx.attribute("layout", 0) == 1
    batch = dims[0 if first else 1]
    for position, axis in ((4, 0), (5, 0 if first else 1), (6, 0 if first else 1)):
        own = site.dims(position)
        if own is not None and axis < len(own):
            site.need_if_fixed(position, axis, own[axis], batch)


def _reverse_sequence(site: Site) -> None:
    """There is a length for each item."""
    dims, lengths = site.dims(0), site.dims(1)
    batch = site.ctx.attribute("batch_axis", 1)
    if dims is not None and lengths is not None and -len(dims) <= batch < len(dims) and len(lengths) == 1:
        site.need_if_fixed(1, 0, lengths[0], dims[batch])


def _attention(site: Site) -> None:
    """Queries, keys, values and those of the past have one batch; a mask broadcasts to batch, heads and lengths."""
    queries, keys, past, mask = (site.dims(position) for position in (0, 1, 4, 3))
    _fit_along(site, dict.fromkeys((0, 1, 2, 4, 5), 0))
    if queries is None or keys is None or mask is None or len(queries) < 3 or len(keys) < 3:
        return
    total = keys[-2] if past is None else keys[-2] + past[-2]
    wanted = {4: queries[0], 2: queries[-2], 1: total}
    for back, dim in wanted.items():
        if len(mask) >= back and mask[-back] != 1:
            site.need_if_fixed(3, len(mask) - back, mask[-back], dim)


def _fit_along(site: Site, axes: Mapping[int, int]) -> None:
    """Inputs have one size along an axis each."""
    shapes = {position: site.dims(position) for position in axes}
    sizes = {
        position: dims[axes[position]]
        for position, dims in shapes.items()
        if dims is not None and axes[position] < len(dims)
    }
    moving = next((dim for dim in sizes.values() if site.wanted.moves(dim)), None)
    if moving is not None:
        for position, size in sizes.items():
            site.need_if_fixed(position, axes[position], size, moving)


def _loop(site: Site) -> None:
    """What an iteration carries on has the size that went in."""
    ctx = site.ctx
    counters = [tensor("int64", ()), tensor("bool", ())]
    _fit_carried(site, counters, range(2, ctx.input_count), [], 1)


def _scan(site: Site) -> None:
    """What a step carries on has the size that went in."""
    ctx, count = site.ctx, site.ctx.attribute("num_scan_inputs", 0)
    if ctx.since_version < 9:
        return
    states = range(ctx.input_count - count)
    axes = ctx.attribute("scan_input_axes", (0,) * count)
    scanned = []
    for position, axis in zip(range(len(states), ctx.input_count), axes, strict=False):
        kind = ctx.input(position)
        shape = None if kind.shape is None else list(kind.shape)
        if shape:
            shape.pop(axis)
        scanned.append(kind.with_shape(shape))
    _fit_carried(site, [], states, scanned, 0)


def _fit_carried(
    site: Site, before: Sequence[ValueType], states: Sequence[int], after: Sequence[ValueType], first: int
) -> None:
    """Walk a body once: where it carries on a dimension that changes, the value that goes in needs it. before, after:
    the body's inputs around the states. first: the number of the first state among its outputs.
    """
    ctx = site.ctx
    kinds = [ctx.complete(ctx.input(position)) for position in states]
    graph = ctx.attribute("body")
    if not isinstance(graph, GraphProto) or len(graph.input) != len(before) + len(kinds) + len(after):
        return
    with ctx.quietly():
        body = ctx.walk_body("body", [*before, *kinds, *after])
    if body is None:
        return
    for position, kind, carried in zip(states, kinds, body.types[first:], strict=False):
        if kind.shape is None or carried.shape is None or len(kind.shape) != len(carried.shape):
            continue
        for axis, (own, dim) in enumerate(zip(kind.shape, carried.shape, strict=True)):
            if own is not None and dim is not None:
                site.need_if_fixed(position, axis, own, dim)


def _like_the_first(site: Site) -> None:
    """Indices and updates have the size of the data along the axes that are not theirs."""
    data, indices = site.dims(0), site.dims(1)
    if data is None or indices is None or len(data) != len(indices):
        return
    axis = site.ctx.attribute("axis", 0)
    for other, (one, size) in enumerate(zip(data, indices, strict=True)):
        if other != axis % len(data):
            site.need_if_fixed(1, other, size, one)
            site.need_if_fixed(0, other, one, size)


def _where(site: Site) -> None:
    _fit_broadcast(site, (0, 1, 2), 0)


ELEMENTWISE = [
    "Add",
    "And",
    "BitShift",
    "BitwiseAnd",
    "BitwiseOr",
    "BitwiseXor",
    "Div",
    "Equal",
    "Greater",
    "GreaterOrEqual",
    "Less",
    "LessOrEqual",
    "Max",
    "Mean",
    "Min",
    "Mod",
    "Mul",
    "Or",
    "PRelu",
    "Pow",
    "Sub",
    "Sum",
    "Xor",
]
_ONNX: Mapping[str, Rule] = {
    "Reshape": _reshape,
    "Expand": _expand,
    "Slice": _slice,
    "Split": _split,
    "Resize": _resize,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "Concat": _concat,
    "Gather": _gather,
    "GatherElements": _like_the_first,
    "GatherND": _gather_nd,
    "Where": _where,
    "ReverseSequence": _reverse_sequence,
    "Attention": _attention,
    "Loop": _loop,
    "Scan": _scan,
    "TopK": _top_k,
    **dict.fromkeys(("GRU", "LSTM", "RNN"), _recurrent),
    **dict.fromkeys(ELEMENTWISE, _broadcast),
}
RULES: Mapping[tuple[str, str], Rule] = {
    **{("", name): rule for name, rule in _ONNX.items()},
    ("com.microsoft", "DynamicQuantizeLSTM"): _recurrent,
}
