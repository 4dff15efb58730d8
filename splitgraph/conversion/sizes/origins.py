"""Finds what makes a size that has to change: the constant that says it, or the weights that have it.

A value of size 1 along an axis is the same for every place: it is expanded where it is read. A larger size is followed
back through the nodes that only hand it on, to the number that made it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

from splitgraph.conversion.sizes.bodies import ports_of_body
from splitgraph.conversion.sizes.counting import Counting
from splitgraph.conversion.sizes.digits import Digit, Order, is_one_factor, regrouped
from splitgraph.conversion.sizes.grids import grid_along, levels_along
from splitgraph.conversion.sizes.last_walk import LastWalk, Producer, Stuck
from splitgraph.conversion.sizes.needs import Counted, InputPlace, Need, Repeated, Triangle
from splitgraph.conversion.sizes.weights import NotRead, WeightReader
from splitgraph.dim import Dim, DimLike, product, symbol, symbols_of
from splitgraph.inference.alone import Made, Source
from splitgraph.model.attributes import attribute_value
from splitgraph.model.onnx_proto import TensorProto
from splitgraph.model.scopes import GraphPath, plain_domain

# A dimension of a value: the graph that defines it, its name, and the axis.
_Part = tuple[GraphPath, str, int]
_OTHER_WEIGHTS = (
    "The model has no other weights, as for a table of positions or a dense layer behind a Flatten. Export it with the "
    "new size, or with a dynamic one."
)
# Scan has its inputs in this order from this opset on.
_SCAN = 9


class Origins:
    """Follows sizes back in one model, as the last walk saw it."""

    def __init__(self, last: LastWalk, weights: WeightReader) -> None:
        self._last, self._follower, self._weights = last, last.follower, weights
        self._counting = Counting(last, weights)
        self.paths = last.scopes.keys()
        self._orders: dict[_Part, Order] = {}
        self._sources: dict[_Part, list[_Part]] = {}
        # The last one that was followed.
        self._need: Need | None = None

    def follow(self, need: Need) -> None:
        """Change what makes the size of a value, so that it is the dimension that a node needs. Raises Stuck if that is
        impossible.
        """
        self._need = need
        home = self._last.home(need.place.path, need.name)
        if need.entry is not None:
            self._counting.count(need.place, need.name, need.axis, need.dim, need.entry)
        elif need.digits and (need.axis < 0 or self._last.tensor(home, need.name) is None):
            self._counting.count_digits(need.place, need.name, need.digits)
        else:
            self._follow(need.place, need.name, need.axis, need.dim)

    # Digits ---------------------------------------------------------------------------------------------------------

    def find_orders(self) -> None:
        """Find the digits of the dimensions that the last walk asked for."""
        for (place, axis), name in self._follower.seen.merged.items():
            if place.path in self.paths:
                self._follower.decided.orders[place, axis] = self._order(self._part(place.path, name, axis))

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
        return self._last.home(path, name), name, axis

    def _parts_of(self, part: _Part) -> list[_Part]:
        """Return the dimensions that have to be read as digits before one can be. A dimension that is no product has
        none, unless it was 1: then it may have been on another axis before.
        """
        if part not in self._sources:
            try:
                self._sources[part] = self._found_parts(*part)
            except Stuck:
                self._sources[part] = []
        return self._sources[part]

    def _found_parts(self, path: GraphPath, name: str, axis: int) -> list[_Part]:
        dim, producer = self._last.shape(path, name)[axis], self._last.producer(path, name)
        is_whole = is_one_factor(dim) and self._follower.wanted.before(dim) != 1
        if producer is None or is_whole or isinstance(dim, int):
            return []
        inputs = producer.node.input
        if self._regroups(producer):
            return [self._part(path, inputs[0], at) for at in range(len(self._last.shape(path, inputs[0])))]
        made = self._made(producer, name, axis, at_old_sizes=False)
        if made is None or not made.is_same or any(source.is_element for source in made.sources):
            return []
        return [self._part(path, inputs[source.position], source.place) for source in made.sources]

    def _regroups(self, producer: Producer) -> bool:
        is_known = plain_domain(producer.node.domain) == self._follower.operators.domain
        return is_known and producer.node.op_type in ("Flatten", "Reshape")

    def _joined(self, part: _Part) -> Order:
        """Return the digits of a dimension whose parts have been read as digits; None if they are not known."""
        path, name, axis = part
        try:
            shape = self._last.shape(path, name)
        except Stuck:
            return None
        plain = (Digit(shape[axis]),) if is_one_factor(shape[axis]) else None
        parts = self._parts_of(part)
        orders = [self._orders[each] for each in parts]
        producer = self._last.producer(path, name)
        if not orders or producer is None:
            return plain
        if not self._regroups(producer):
            return orders[0] if len(set(orders)) == 1 and orders[0] is not None else plain
        digits: list[Digit] = []
        # What is repeated for this node alone has other sizes here.
        repeated = self._follower.decided.expanded.get(producer.place(0), {})
        for at, (order, part) in enumerate(zip(orders, parts, strict=True)):
            dim = repeated.get(at, self._last.shape(*part[:2])[part[2]])
            if at in repeated and is_one_factor(dim):
                order = (Digit(dim),)
            if order is None and self._has_items(dim):
                # Nothing shows the order. Items are taken to be the outermost digit.
                return plain
            # A digit that is merged here may return to its axis. A product of unknown order stays whole.
            whole = dim if order is None else order[0].dim if len(order) == 1 else None
            digits += order or () if whole is None else [Digit(whole, (at, len(orders)))]
        return regrouped(digits, shape, axis) or plain

    def _has_items(self, dim: DimLike) -> bool:
        return not symbols_of(dim).isdisjoint(self._follower.wanted.batch)

    # Sizes ----------------------------------------------------------------------------------------------------------

    def _follow(self, reader: InputPlace, name: str, axis: int, dim: DimLike) -> None:
        """Follow a size of a value back to what makes it, and change that. Raise Stuck where nothing can be changed.

        reader: where the value is read. dim: what its size along the axis has to become.
        """
        home = self._last.home(reader.path, name)
        shape = self._last.shape(reader.path, name)
        size = shape[axis]
        if isinstance(size, Dim):
            # An earlier decision changed it.
            return
        producer = self._last.producer(home, name)
        if size == 1:
            if not self._has_batch(shape, dim):
                self._expand(reader, axis, dim)
            elif producer is None or not self._moved(producer, shape, axis, dim):
                raise Stuck(f"it has {dim} along axis {shape.index(dim)} instead")
            return
        tensor = self._last.tensor(home, name)
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
            raise Stuck(told + (fixing if name in self._last.defaults else ""))
        self._follow(*outer, dim)

    def _passed(self, path: GraphPath, name: str, axis: int) -> tuple[InputPlace, str, int] | None:
        """Return what a node passes to an input of its body, with the axis there; None for other inputs."""
        around = self._last.scopes.get(path[:-3]) if path else None
        graph = self._last.scopes[path].proto
        names = [] if around is None else [value.name for value in graph.input]
        if around is None or name not in names or around.imports.get("", _SCAN) < _SCAN:
            return None
        node, inside = around.nodes[path[-3]], names.index(name)
        ports = ports_of_body(node, path[-2], graph)
        position = next((outer for outer, inner in ports.inputs if inner == inside), len(node.input))
        if position >= len(node.input) or ports.sliced.get(inside) == axis:
            return None
        outer = node.input[position]
        attributes = {each.name: each for each in node.attribute}
        scanned = position - len(node.input) + attributes["num_scan_inputs"].i if node.op_type == "Scan" else -1
        if scanned >= 0:
            axes = attributes["scan_input_axes"].ints if "scan_input_axes" in attributes else ()
            step = axes[scanned] % len(self._last.shape(around.path, outer)) if axes else 0
            axis += axis >= step
        return InputPlace(around.path, path[-3], position), outer, axis

    def _through(self, producer: Producer, name: str, axis: int, dim: DimLike) -> None:
        """Follow a size of what a node gives to its inputs."""
        outer = self._outer(producer, name, axis, dim)
        if outer is not None:
            self._follow(producer.place(0), producer.node.input[0], *outer)
            return
        made = self._made(producer, name, axis)
        inner = None if made is None else made.size_for(dim)
        if made is None or inner is None:
            size = self._last.shape(producer.scope.path, name)[axis]
            raise Stuck(f"{producer.location} gives {name!r} the size {size} along axis {axis}")
        for position, place, is_element in made.sources:
            if is_element:
                self._follower.decided.entries.setdefault(producer.place(position), {})[place] = inner
            else:
                self._follow(producer.place(position), producer.node.input[position], place, inner)

    def _made(self, producer: Producer, name: str, axis: int, *, at_old_sizes: bool = True) -> Made | None:
        """Return how a node makes a size; None if it is not made of one size."""
        node, path = producer.node, producer.scope.path
        if node.op_type == "Reshape" and plain_domain(node.domain) == self._follower.operators.domain:
            return self._regrouped(path, node.input[0], self._last.shape(path, name), axis)
        given = [
            self._last.given(producer.place(position), each, at_old_sizes=at_old_sizes)
            for position, each in enumerate(node.input)
        ]
        said_by = self._follower.operators.saying.get(node.op_type)
        output = [*node.output].index(name)
        return self._follower.alone.made(node, producer.scope.imports, given, output, axis, said_by)

    def _regrouped(self, path: GraphPath, data: str, shape: tuple[DimLike, ...], axis: int) -> Made | None:
        """Return how a Reshape makes a size: from the size in the data with as many elements before and after it."""
        dims, out = ([dim for dim in each if isinstance(dim, int)] for each in (self._last.shape(path, data), shape))
        if len(dims) != len(self._last.shape(path, data)) or len(out) != len(shape):
            return None
        left, right = prod(out[:axis]), prod(out[axis + 1 :])
        for place, size in enumerate(dims):
            before, after = prod(dims[:place]), prod(dims[place + 1 :])
            if left % before == 0 and right % after == 0 and (left // before) * out[axis] * (right // after) == size:
                return Made((Source(0, place),), 1, (left // before) * (right // after))
        return None

    def _outer(self, producer: Producer, name: str, axis: int, dim: DimLike) -> tuple[int, DimLike] | None:
        """Return the axis and the dimension of the items that a Reshape merges with a factor behind them, such as the
        heads of each item: (4, N, 8) to [4, 2*N, 4]. Return None if it merges none.
        """
        symbols, path = symbols_of(dim), producer.scope.path
        if not self._regroups(producer) or len(symbols) > 1 or not symbols <= self._follower.wanted.batch:
            return None
        items = symbol(min(symbols))
        dims, out = (self._last.shape(path, each) for each in (producer.node.input[0], name))
        old, left = self._follower.wanted.before(items), product(out[:axis])
        if dim == items or dim != product([out[axis], items]) // old:
            return None
        places = [place for place, size in enumerate(dims) if size == old and product(dims[:place]) == left]
        return (places[0], items) if len(places) == 1 else None

    def _expand(self, reader: InputPlace, axis: int, dim: DimLike) -> None:
        self._follower.decided.expanded.setdefault(reader, {})[axis] = dim

    def _has_batch(self, shape: tuple[DimLike, ...], dim: DimLike) -> bool:
        """Return True for a shape that has a batch: it gets no second axis of items."""
        return dim in shape and isinstance(dim, Dim) and symbols_of(dim) <= self._follower.wanted.batch

    def _moved(self, producer: Producer, shape: tuple[DimLike, ...], axis: int, dim: DimLike) -> bool:
        """Move a batch of 1 to the axis where a later node needs it. Return False if no Reshape makes the value, or if
        its target has other dimensions than 1 between the two axes.
        """
        place = producer.place(1)
        if producer.node.op_type != "Reshape" or self._follower.wanted.before(dim) != 1:
            return False
        decided = self._follower.decided.entries.get(place)
        if decided is not None:
            return decided.get(axis) == dim
        if any(size != 1 for size in _between(shape, axis, shape.index(dim))):
            return False
        others = [1 if size == dim else size for size in shape]
        self._follower.decided.entries[place] = dict(enumerate([*others[:axis], dim, *others[axis + 1 :]]))
        return True

    def _of_weights(
        self, reader: InputPlace, home: GraphPath, tensor: TensorProto, name: str, axis: int, dim: DimLike
    ) -> None:
        """Give weights another size along an axis: they are the same all along it, or count along it. Raises Stuck for
        any other weights, which the model does not have for another size.
        """
        shape = self._last.shape(reader.path, name)
        has_size = f"the weights {name!r} have {shape[axis]} along axis {axis}, and"
        try:
            found = self._weights.along(home, name, tensor, axis)
        except NotRead as reason:
            raise Stuck(f"{has_size} {reason}") from None
        if found is None:
            array = self._weights.elements(home, tensor)
            if self._is_grid(reader, array, axis, dim) or self._are_levels(reader, array, axis, dim):
                return
        if found is None or reader in self._follower.decided.cuts or reader in self._follower.decided.levels:
            raise Stuck(f"{has_size} are not the same all along it", _OTHER_WEIGHTS)
        counts = isinstance(found, Counted) or (isinstance(found, Repeated) and found.step != 0)
        if counts and not is_one_factor(dim) and self._was_one(dim):
            raise Stuck(f"{has_size} count along it; part of {dim} was 1, so what they count is not known")
        if isinstance(found, Triangle):
            self._expand_triangle(reader, found, len(shape), axis, dim)
        elif isinstance(found, Counted):
            self._counting.expand(reader, found, dim)
        else:
            if not self._counts(reader, axis):
                self._follower.decided.repeated.setdefault(reader, {})[axis] = found
            self._expand(reader, axis, dim)

    def _expand_triangle(self, reader: InputPlace, found: Triangle, rank: int, axis: int, dim: DimLike) -> None:
        """Give a triangle another size along an axis, and along its other axis, too, unless that has got a size."""
        self._follower.decided.patterns[reader] = found
        sides = self._follower.decided.expanded.setdefault(reader, {})
        sides[axis] = dim
        # The two last axes: their numbers add up to this.
        sides.setdefault(2 * rank - 3 - axis, dim)

    def _is_grid(self, reader: InputPlace, array: Any, axis: int, dim: DimLike) -> bool:
        """Give weights that go over a grid along an axis the new sizes of the grid. Return False for other weights."""
        follower = self._follower
        dims = tuple(digit.dim for digit in self._digits_needed(dim))
        found = None if len(dims) < 2 or self._was_one(dim) else grid_along(array, axis, dims, follower.wanted)
        if found is None:
            return False
        if reader in follower.decided.repeated or reader in follower.decided.patterns:
            return follower.decided.cuts.get(reader) == found.cut
        follower.decided.cuts[reader] = found.cut
        follower.decided.repeated[reader] = dict(found.repeated)
        if found.counted:
            follower.decided.patterns[reader] = found.counted
        self._expand(reader, axis, dim)
        return True

    def _are_levels(self, reader: InputPlace, array: Any, axis: int, dim: DimLike) -> bool:
        """Give weights that go over several grids along an axis, one after the other, the new sizes of these. Return
        False for other weights.
        """
        follower = self._follower
        if (
            self._was_one(dim)
            or reader in follower.decided.repeated
            or reader in follower.decided.patterns
            or reader in follower.decided.cuts
        ):
            return False
        found = levels_along(array, axis, self._grids_needed(dim), follower.wanted)
        if found is None or sum((level.dim for level in found.parts), start=0) != dim:
            return False
        follower.decided.levels[reader] = found
        self._expand(reader, axis, dim)
        return True

    def _counts(self, reader: InputPlace, axis: int) -> bool:
        """Return True if an entry of weights is known to count along an axis."""
        patterns = self._follower.decided.patterns.get(reader, ())
        return not isinstance(patterns, Triangle) and any(each.axis == axis for each in patterns)

    def _was_one(self, dim: DimLike) -> bool:
        """Return True for a dimension with the name of a length, and not of items, that was 1."""
        wanted = self._follower.wanted
        return any(wanted.old.get(name) == 1 for name in symbols_of(dim) - wanted.batch)

    def _digits_needed(self, dim: DimLike) -> tuple[Digit, ...]:
        """Return the digits of a dimension that other inputs of the node have which needs it; () if they differ."""
        orders = [*dict.fromkeys(self._order(part) for part in self._parts_with(dim))]
        return orders[0] or () if len(orders) == 1 else ()

    def _parts_with(self, dim: DimLike) -> list[_Part]:
        """Return where other inputs of the node that needs a dimension have it."""
        need = self._need
        if need is None or need.dim != dim:
            return []
        path, node = need.place.path, self._last.scopes[need.place.path].nodes[need.place.node]
        others = [name for at, name in enumerate(node.input) if at != need.place.position and name]
        return [self._part(path, name, at) for name in others for at in _places(self._last.shape(path, name), dim)]

    def _grids_needed(self, dim: DimLike) -> list[tuple[DimLike, ...]]:
        """Return the dimensions of each grid of which other inputs of the node are joined; none if they differ."""
        found = dict.fromkeys(map(self._grids_of, self._joined_in(self._parts_with(dim))))
        return [*next(iter(found))] if len(found) == 1 else []

    def _grids_of(self, joined: Sequence[_Part]) -> tuple[tuple[DimLike, ...], ...]:
        orders = [(self._order(part), self._last.shape(*part[:2])[part[2]]) for part in joined]
        return tuple((dim,) if order is None else tuple(digit.dim for digit in order) for order, dim in orders)

    def _joined_in(self, parts: Sequence[_Part]) -> Iterator[list[_Part]]:
        """Yield the inputs of each Concat that makes one of some dimensions, which other nodes hand on."""
        waiting, seen = [*parts], {*parts}
        while waiting:
            path, name, axis = waiting.pop()
            producer = self._last.producer(path, name)
            if producer is not None and self._joins_along(producer, axis):
                yield [self._part(path, each, axis) for each in producer.node.input]
            elif producer is not None:
                handed = [each for each in self._handed_on(producer, name, axis) if each not in seen]
                seen.update(handed)
                waiting += handed

    def _joins_along(self, producer: Producer, axis: int) -> bool:
        if producer.node.op_type != "Concat" or plain_domain(producer.node.domain) != self._follower.operators.domain:
            return False
        rank = len(self._last.shape(producer.scope.path, producer.node.output[0]))
        # An IR has its numbers as texts.
        along = (int(attribute_value(each)) for each in producer.node.attribute if each.name == "axis")
        return any(each % rank == axis for each in along)

    def _handed_on(self, producer: Producer, name: str, axis: int) -> list[_Part]:
        """Return the dimensions of inputs that a node hands on as this one."""
        path, inputs = producer.scope.path, producer.node.input
        try:
            shape = self._last.shape(path, name)
            if self._regroups(producer):
                data = self._last.shape(path, inputs[0])
                before = product(shape[:axis])
                places = (at for at in _places(data, shape[axis]) if product(data[:at]) == before)
                return [self._part(path, inputs[0], at) for at in places]
            made = self._made(producer, name, axis, at_old_sizes=False)
            sources = () if made is None or not made.is_same else made.sources
            own = (each for each in sources if not each.is_element)
            parts = [self._part(path, inputs[each.position], each.place) for each in own]
            return [part for part in parts if self._last.shape(*part[:2])[part[2]] == shape[axis]]
        except Stuck:
            return []


def _places(shape: tuple[DimLike, ...], dim: DimLike) -> list[int]:
    return [axis for axis, size in enumerate(shape) if size == dim]


def _between(shape: tuple[DimLike, ...], one: int, other: int) -> tuple[DimLike, ...]:
    return shape[min(one, other) + 1 : max(one, other)]
