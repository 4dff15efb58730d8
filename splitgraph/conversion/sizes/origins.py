"""Where a size comes from that is in the way: the constant that says it, or the weights that have it.

A value of size 1 along an axis is the same for every item: it is expanded where it is read. A larger size is followed
back through the nodes that only hand it on, to the number that made it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from splitgraph.conversion.sizes.digits import Digit, Order, is_one_factor, regrouped
from splitgraph.conversion.sizes.follow import Counted, Cut, Follower, InputPlace, Need, Repeated, Triangle
from splitgraph.conversion.sizes.weights import NotRead, WeightReader, constant_tensor, found_along
from splitgraph.dim import Dim, DimLike, symbols_of
from splitgraph.inference.alone import Given, Made, Source
from splitgraph.inference.walk_results import GraphDetail
from splitgraph.model.deferred import np
from splitgraph.model.names import Definitions
from splitgraph.model.onnx_proto import TensorProto
from splitgraph.model.places import LocatedNode
from splitgraph.model.scopes import GraphPath, Scope, plain_domain
from splitgraph.model.value_type import UNKNOWN, Contents

# A dimension of a value: the graph that defines it, its name, and the axis.
_Part = tuple[GraphPath, str, int]


class Stuck(Exception):
    """A size cannot be followed. The argument says why."""


class _Producer(LocatedNode):
    """The node that computes a value."""

    __slots__ = ()

    def place(self, position: int) -> InputPlace:
        return InputPlace(self.scope.path, self.position, position)


class Origins:
    """Follows sizes back in one model, as the last walk saw it."""

    def __init__(
        self,
        root: Sequence[Scope],
        graphs: Mapping[GraphPath, GraphDetail],
        follower: Follower,
        weights: WeightReader,
    ) -> None:
        self._weights = weights
        self._definitions = Definitions(root)
        self._graphs = graphs
        self._scopes = {scope.path: scope for scope in root}
        self.paths = self._scopes.keys()
        self._orders: dict[_Part, Order] = {}
        self._sources: dict[_Part, list[_Part]] = {}
        self._follower = follower
        self._producers: dict[tuple[GraphPath, str], _Producer] = {}
        self._tensors: dict[tuple[GraphPath, str], TensorProto] = {}
        self._defaults = set[str]()
        # The last one that was followed.
        self._need: Need | None = None
        for scope in root:
            for index, node in enumerate(scope.nodes):
                self._producers.update({(scope.path, name): _Producer(scope, index) for name in node.output if name})
            if not scope.is_function:
                inputs = {value.name for value in scope.proto.input}
                self._defaults |= inputs & {each.name for each in scope.proto.initializer}
                self._tensors.update(
                    {(scope.path, each.name): each for each in scope.proto.initializer if each.name not in inputs}
                )

    def follow(self, need: Need) -> None:
        """Decide what gives a value the dimension that a node needs. Raises Stuck where nothing can."""
        self._need = need
        if need.entry is None:
            self._follow(need.place, need.name, need.axis, need.dim)
        else:
            self._count(need.place, need.name, need.axis, need.dim, need.entry)

    def _count(self, place: InputPlace, name: str, axis: int, dim: DimLike, entry: int) -> None:
        """Let indices count the items of a batch of any size. entry: which of their last axis counts."""
        home = self._definitions.home(place.path, name)
        producer = self._producers.get((home, name))
        tensor = self._tensor(home, name, producer)
        if tensor is None and producer is not None and producer.node.op_type == "Concat":
            self._count_in_part(producer, axis, dim, entry)
            return
        if tensor is None:
            # What is computed has the items, or not.
            if self._shape(place.path, name)[axis] != dim:
                raise Stuck(f"takes elements along {dim} by numbers that {name!r} has")
            return
        try:
            array = self._weights.elements(home, tensor)
        except NotRead as reason:
            raise Stuck(f"the indices {name!r} {reason}") from None
        first = array.take([0], axis)
        counted = np.zeros_like(first)
        counted[..., entry] = 1
        steps = np.arange(array.shape[axis]).reshape([-1 if at == axis else 1 for at in range(array.ndim)])
        if first[..., entry].any() or (array != first + counted * steps).any():
            raise Stuck(f"the indices {name!r} do not count all of {dim}")
        self._expand_counted(place, Counted(axis, entry), dim)

    def _expand_counted(self, place: InputPlace, counted: Counted, dim: DimLike) -> None:
        others = self._follower.patterns.get(place, ())
        # Pairs of numbers count along two axes.
        kept = [each for each in others if isinstance(each, Counted) and each.axis != counted.axis]
        if any(each.axis == counted.along or each.along == counted.axis for each in kept):
            raise Stuck("its numbers count along two axes, and each of them counts along the other")
        self._follower.patterns[place] = (*kept, counted)
        # Along this axis, it says what a list that counts says.
        self._follower.repeated.get(place, {}).pop(counted.axis, None)
        self._expand(place, counted.axis, dim)

    def _count_in_part(self, producer: _Producer, axis: int, dim: DimLike, entry: int) -> None:
        """The same for what is put together of parts along the last axis."""
        path = producer.scope.path
        for position, name in enumerate(producer.node.input):
            size = self._shape(path, name)[-1]
            if not isinstance(size, int):
                break
            if entry < size:
                self._count(producer.place(position), name, axis, dim, entry)
                return
            entry -= size

    # Digits ---------------------------------------------------------------------------------------------------------

    def find_orders(self) -> None:
        """Find the digits of the dimensions that the last walk asked for."""
        for (place, axis), name in self._follower.merged.items():
            if place.path in self.paths:
                self._follower.orders[place, axis] = self._order(self._part(place.path, name, axis))

    def _order(self, asked: _Part) -> Order:
        """Return the digits of a dimension, from the nodes that made one dimension of several."""
        waiting = [asked]
        while waiting:
            part = waiting[-1]
            missing = [each for each in self._parts_of(part) if each not in self._orders]
            if part not in self._orders and missing:
                waiting += missing
                continue
            waiting.pop()
            if part not in self._orders:
                self._orders[part] = self._joined(part)
        return self._orders[asked]

    def _part(self, path: GraphPath, name: str, axis: int) -> _Part:
        return self._definitions.home(path, name), name, axis

    def _parts_of(self, part: _Part) -> list[_Part]:
        """Return the dimensions of which the digits of one are known. None are asked for what is no product, unless it
        was 1, and may have been elsewhere.
        """
        if part not in self._sources:
            try:
                self._sources[part] = self._found_parts(*part)
            except Stuck:
                self._sources[part] = []
        return self._sources[part]

    def _found_parts(self, path: GraphPath, name: str, axis: int) -> list[_Part]:
        dim, producer = self._shape(path, name)[axis], self._producers.get((path, name))
        is_whole = is_one_factor(dim) and self._follower.wanted.before(dim) != 1
        if producer is None or is_whole or isinstance(dim, int):
            return []
        inputs = producer.node.input
        if self._regroups(producer):
            return [self._part(path, inputs[0], at) for at in range(len(self._shape(path, inputs[0])))]
        made = self._made(producer, name, axis, at_old_sizes=False)
        if made is None or not made.is_same or any(source.is_element for source in made.sources):
            return []
        return [self._part(path, inputs[source.position], source.place) for source in made.sources]

    def _regroups(self, producer: _Producer) -> bool:
        is_known = plain_domain(producer.node.domain) == self._follower.operators.domain
        return is_known and producer.node.op_type in ("Flatten", "Reshape")

    def _joined(self, part: _Part) -> Order:
        """Return the digits of a dimension, where those of its parts are known."""
        path, name, axis = part
        try:
            shape = self._shape(path, name)
        except Stuck:
            return None
        plain = (Digit(shape[axis]),) if is_one_factor(shape[axis]) else None
        parts = self._parts_of(part)
        orders = [self._orders[each] for each in parts]
        producer = self._producers.get((path, name))
        if None in orders or not orders or producer is None:
            return plain
        if not self._regroups(producer):
            return orders[0] if len(set(orders)) == 1 else plain
        digits: list[Digit] = []
        for at, order in enumerate(orders):
            # What is merged here has a home to return to.
            digits += [Digit(order[0].dim, (at, len(orders)))] if order is not None and len(order) == 1 else order or ()
        return regrouped(digits, shape, axis) or plain

    # Sizes ----------------------------------------------------------------------------------------------------------

    def _follow(self, reader: InputPlace, name: str, axis: int, dim: DimLike) -> None:
        """reader: where the value is read."""
        home = self._definitions.home(reader.path, name)
        shape = self._shape(reader.path, name)
        size = shape[axis]
        if isinstance(size, Dim):
            # An earlier decision changed it.
            return
        producer = self._producers.get((home, name))
        if size == 1:
            if not self._has_batch(shape, dim):
                self._expand(reader, axis, dim)
            elif producer is None or not self._moved(producer, shape, axis, dim):
                raise Stuck(f"it has {dim} along axis {shape.index(dim)} instead")
            return
        tensor = self._tensor(home, name, producer)
        if tensor is not None:
            self._of_weights(reader, home, tensor, name, axis, dim)
            return
        if producer is not None:
            self._through(producer, name, axis, dim)
            return
        outer = self._passed(home, name, axis)
        if outer is None:
            wanted = self._follower.wanted.after(dim)
            told = f"the input {name!r} has {size} along axis {axis}; give it {wanted} there, too"
            fixing = ", or make it a constant: --fix-defaults (Python: fix_defaults)"
            raise Stuck(told + (fixing if name in self._defaults else ""))
        self._follow(*outer, dim)

    def _passed(self, path: GraphPath, name: str, axis: int) -> tuple[InputPlace, str, int] | None:
        """Return what a Loop or a Scan passes to an input of its body, with the axis there; None for other inputs."""
        around = self._scopes.get(path[:-3]) if path else None
        names = [] if around is None else [value.name for value in self._scopes[path].proto.input]
        if around is None or name not in names:
            return None
        node, position = around.nodes[path[-3]], names.index(name)
        is_plain = not plain_domain(node.domain) and node.op_type in ("Loop", "Scan")
        if not is_plain or around.imports.get("", 0) < 9 or position >= len(node.input):
            return None
        outer = node.input[position]
        attributes = {each.name: each for each in node.attribute}
        scanned = position - len(node.input) + attributes["num_scan_inputs"].i if node.op_type == "Scan" else -1
        if scanned >= 0:
            axes = attributes["scan_input_axes"].ints if "scan_input_axes" in attributes else ()
            step = axes[scanned] % len(self._shape(around.path, outer)) if axes else 0
            axis += axis >= step
        return InputPlace(around.path, path[-3], position), outer, axis

    def _through(self, producer: _Producer, name: str, axis: int, dim: DimLike) -> None:
        """Follow a size of what a node gives to its inputs."""
        made = self._made(producer, name, axis)
        inner = None if made is None else made.size_for(dim)
        if made is None or inner is None:
            size = self._shape(producer.scope.path, name)[axis]
            raise Stuck(f"{producer.location} gives {name!r} the size {size} along axis {axis}")
        for position, place, is_element in made.sources:
            if is_element:
                self._follower.entries.setdefault(producer.place(position), {})[place] = inner
            else:
                self._follow(producer.place(position), producer.node.input[position], place, inner)

    def _made(self, producer: _Producer, name: str, axis: int, *, at_old_sizes: bool = True) -> Made | None:
        """Return how a node makes a size; None if it is not made of one size."""
        node, path = producer.node, producer.scope.path
        if node.op_type == "Reshape" and plain_domain(node.domain) == self._follower.operators.domain:
            return self._regrouped(path, node.input[0], self._shape(path, name), axis)
        given = [
            self._given(producer.place(position), each, at_old_sizes=at_old_sizes)
            for position, each in enumerate(node.input)
        ]
        said_by = self._follower.operators.saying.get(node.op_type)
        output = [*node.output].index(name)
        return self._follower.alone.made(node, producer.scope.imports, given, output, axis, said_by)

    def _regrouped(self, path: GraphPath, data: str, shape: tuple[DimLike, ...], axis: int) -> Made | None:
        """The same for a Reshape: the size stands in the data where as many elements are before and after it."""
        dims, out = ([dim for dim in each if isinstance(dim, int)] for each in (self._shape(path, data), shape))
        if len(dims) != len(self._shape(path, data)) or len(out) != len(shape):
            return None
        left, right = prod(out[:axis]), prod(out[axis + 1 :])
        for place, size in enumerate(dims):
            before, after = prod(dims[:place]), prod(dims[place + 1 :])
            if left % before == 0 and right % after == 0 and (left // before) * out[axis] * (right // after) == size:
                return Made((Source(0, place),), 1, (left // before) * (right // after))
        return None

    def _given(self, place: InputPlace, name: str, *, at_old_sizes: bool) -> Given | None:
        """Return what the last walk knew of an input, at the old sizes or as it is."""
        if not name:
            return None
        detail = self._graphs.get(self._definitions.home(place.path, name))
        if detail is None or name not in detail.types:
            return Given(UNKNOWN)
        kind = detail.types[name]
        before: Callable[[DimLike], DimLike] = self._follower.wanted.before if at_old_sizes else lambda dim: dim
        if kind.shape is not None:
            expanded = self._follower.expanded.get(place, {})
            dims = [expanded.get(axis, dim) for axis, dim in enumerate(kind.shape)]
            kind = kind.with_shape([None if dim is None else before(dim) for dim in dims])
        elements = self._follower.edits.get(place[:2], {}).get(place.position, detail.constants.get(name))
        if isinstance(elements, Contents):
            items = tuple(before(item) if isinstance(item, Dim) else item for item in elements.items)
            elements = Contents(elements.shape, items)
        return Given(kind, elements)

    def _shape(self, path: GraphPath, name: str) -> tuple[DimLike, ...]:
        home = self._definitions.home(path, name)
        detail = self._graphs.get(home)
        shape = None if detail is None or name not in detail.types else detail.types[name].shape
        if shape is None or None in shape:
            raise Stuck(f"the shape of {name!r} is not known")
        return shape  # type: ignore[return-value]

    def _tensor(self, home: GraphPath, name: str, producer: _Producer | None) -> TensorProto | None:
        if producer is None:
            return self._tensors.get((home, name))
        return constant_tensor(producer.node) if producer.node.op_type == "Constant" else None

    def _expand(self, reader: InputPlace, axis: int, dim: DimLike) -> None:
        self._follower.expanded.setdefault(reader, {})[axis] = dim

    def _has_batch(self, shape: tuple[DimLike, ...], dim: DimLike) -> bool:
        """Return True for a shape that has a batch: it gets no second axis of items."""
        return dim in shape and isinstance(dim, Dim) and symbols_of(dim) <= self._follower.wanted.batch

    def _moved(self, producer: _Producer, shape: tuple[DimLike, ...], axis: int, dim: DimLike) -> bool:
        """Put a batch of 1 where a later node needs it, if the target of a Reshape has it beside, among dimensions of
        1. Return False if that is not so.
        """
        place = producer.place(1)
        if producer.node.op_type != "Reshape" or self._follower.wanted.before(dim) != 1:
            return False
        decided = self._follower.entries.get(place)
        if decided is not None:
            return decided.get(axis) == dim
        if any(size != 1 for size in _between(shape, axis, shape.index(dim))):
            return False
        others = [1 if size == dim else size for size in shape]
        self._follower.entries[place] = dict(enumerate([*others[:axis], dim, *others[axis + 1 :]]))
        return True

    def _of_weights(
        self, reader: InputPlace, home: GraphPath, tensor: TensorProto, name: str, axis: int, dim: DimLike
    ) -> None:
        """Repeat weights that are the same all along the axis, or go on with what they count."""
        size = self._shape(reader.path, name)[axis]
        has_size = f"the weights {name!r} have {size} along axis {axis}, and"
        try:
            found = self._weights.along(home, name, tensor, axis)
        except NotRead as reason:
            raise Stuck(f"{has_size} {reason}") from None
        if found is None and self._is_grid(reader, self._weights.elements(home, tensor), axis, dim):
            return
        if found is None or reader in self._follower.cuts:
            raise Stuck(f"{has_size} are not the same all along it")
        is_counted = isinstance(found, Counted) or (isinstance(found, Repeated) and found.step != 0)
        if is_counted and not is_one_factor(dim) and self._was_one(dim):
            raise Stuck(f"{has_size} count along it; part of {dim} was 1, so what they count is not known")
        if isinstance(found, Repeated):
            if not self._counts(reader, axis):
                self._follower.repeated.setdefault(reader, {})[axis] = found
            self._expand(reader, axis, dim)
            return
        if isinstance(found, Counted):
            self._expand_counted(reader, found, dim)
            return
        # It stays square, unless the other side is needed to be something else.
        self._follower.patterns[reader] = found
        sides = self._follower.expanded.setdefault(reader, {})
        rank = len(self._shape(reader.path, name))
        sides[axis] = dim
        sides.setdefault(2 * rank - 3 - axis, dim)

    def _is_grid(self, reader: InputPlace, array: Any, axis: int, dim: DimLike) -> bool:
        """Go on with what weights count along the parts of an axis. Return False if they do not, or along items."""
        follower, wanted = self._follower, self._follower.wanted
        dims = tuple(digit.dim for digit in self._digits_needed(dim))
        sizes = tuple(size for size in map(wanted.before, dims) if isinstance(size, int))
        if len(sizes) < max(len(dims), 2) or prod(sizes) != array.shape[axis] or self._was_one(dim):
            return False
        lengths = (size for size, part in zip(sizes, dims, strict=True) if not symbols_of(part) <= wanted.batch)
        if 1 in lengths:
            # Weights of one place say nothing of several: T - 5 of 6.
            return False
        cut = Cut(axis, sizes, dims)
        parts = array.reshape(cut.parts(array.shape, sizes))
        found = {axis + at: found_along(parts, axis + at) for at, part in enumerate(dims) if wanted.moves(part)}
        counting = [dims[at - axis] for at, each in found.items() if not isinstance(each, Repeated) or each.step]
        if any(each is None or isinstance(each, Triangle) for each in found.values()) or any(
            not symbols_of(part).isdisjoint(wanted.batch) for part in counting
        ):
            return False
        if reader in follower.repeated or reader in follower.patterns:
            return follower.cuts.get(reader) == cut
        follower.cuts[reader] = cut
        follower.repeated[reader] = {at: each for at, each in found.items() if isinstance(each, Repeated)}
        counted = tuple(each for each in found.values() if isinstance(each, Counted))
        if counted:
            follower.patterns[reader] = counted
        self._expand(reader, axis, dim)
        return True

    def _counts(self, reader: InputPlace, axis: int) -> bool:
        """Return True if an entry of weights is known to count along an axis."""
        patterns = self._follower.patterns.get(reader, ())
        return not isinstance(patterns, Triangle) and any(each.axis == axis for each in patterns)

    def _was_one(self, dim: DimLike) -> bool:
        """Return True for a dimension with the name of a length, and not of items, that was 1."""
        wanted = self._follower.wanted
        return any(wanted.old.get(name) == 1 for name in symbols_of(dim) - wanted.batch)

    def _digits_needed(self, dim: DimLike) -> tuple[Digit, ...]:
        """Return the digits of a dimension that other inputs of the node have which needs it; () if they differ."""
        need = self._need
        if need is None or need.dim != dim:
            return ()
        path, node = need.place.path, self._scopes[need.place.path].nodes[need.place.node]
        others = [name for at, name in enumerate(node.input) if at != need.place.position and name]
        parts = [self._part(path, name, at) for name in others for at in _places(self._shape(path, name), dim)]
        orders = [*dict.fromkeys(self._order(part) for part in parts)]
        return orders[0] or () if len(orders) == 1 else ()


def _places(shape: tuple[DimLike, ...], dim: DimLike) -> list[int]:
    return [axis for axis, size in enumerate(shape) if size == dim]


def _between(shape: tuple[DimLike, ...], one: int, other: int) -> tuple[DimLike, ...]:
    return shape[min(one, other) + 1 : max(one, other)]
