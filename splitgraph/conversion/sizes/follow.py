"""The walk over a model with its new sizes: constants are read in terms of dimensions as the walk reaches them.

Each rule sees one node (`RULES`). It may give constants of the node other elements, so that what follows has the right
dimensions, and it says which other values have a size that the node needs to change (`Need`). `origins.py` finds where
such a size comes from; then the model is walked again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from splitgraph.conversion.sizes.digits import Order, is_limited, is_one_factor
from splitgraph.conversion.sizes.needs import (
    Alternative,
    Counted,
    InputPlace,
    Meaning,
    Need,
    Reading,
    Repeated,
    Stays,
    Triangle,
)
from splitgraph.conversion.sizes.reshape_targets import Choice
from splitgraph.conversion.sizes.walk_records import Decided, WalkFindings
from splitgraph.conversion.sizes.wanted import Wanted
from splitgraph.conversion.sizes.weights import WeightReader
from splitgraph.dim import Dim, DimLike, Obligation, product, symbol, symbols_of
from splitgraph.inference.alone import Alone, Given, Source
from splitgraph.inference.context import NodeContext
from splitgraph.inference.record import Requirement
from splitgraph.inference.rules.operands import input_of
from splitgraph.model.attributes import make_attribute
from splitgraph.model.scopes import MAIN, GraphPath, plain_domain
from splitgraph.model.value_type import Contents, ValueType, tensor, vector

# So many dimensions are tried for a number.
_MOST_ALIKE = 3
# Reads a node.
Rule = Callable[["Site"], None]
# Yields the inputs over which a node computes, each with an axis.
Over = Callable[["Site"], Iterable[tuple[int, int]]]


class SizeFlow(NamedTuple):
    """What the operators of a format make of values that say sizes (`items.py`).

    shapes: give the sizes of a value. saying: the inputs that say sizes, axes or positions of what is cut or repeated.
    layout: give their elements in another layout. of_sizes: give sizes again, if they are given sizes. picking: read
    elements by indices, which are the second input; with the attribute, or the number of the input, that says the axis;
    None for tuples along the first axes. finding: give the numbers of places along an axis, which is an attribute:
    the output, and the axis without it.
    """

    shapes: Collection[str]
    saying: Mapping[str, Sequence[int]]
    layout: Collection[str]
    of_sizes: Collection[str]
    picking: Mapping[str, str | int | None]
    finding: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Operators:
    """What the operators of a format say about sizes.

    domain: that of the operators. rules: read a node, by domain and operator. saying: the input that says a size. over:
    the axes along which a node computes, by domain and operator. apart: the operators that compute over none. flow:
    what they make of sizes. every: reads each node first. values: those with numbers that change no dimension
    (`values.py`).
    """

    domain: str
    rules: Mapping[tuple[str, str], Rule]
    saying: Mapping[str, int]
    over: Mapping[tuple[str, str], Over]
    apart: Collection[str]
    flow: SizeFlow
    every: Rule
    values: Collection[str] = ()


@dataclass(slots=True)
class Follower:
    """What the walk calls for each node before it is inferred.

    operators: those of the format. weights: reads those of the model. constants: their names, by graph. placed: the
    names that the user gives. choices: the readings of digits that are not the first; is_first: there are none. alone:
    says what nodes do to sizes. decided: what is kept from walk to walk. seen: what the last walk found.
    """

    wanted: Wanted
    operators: Operators
    weights: WeightReader
    constants: Collection[tuple[GraphPath, str]]
    alone: Alone = field(default_factory=Alone)
    placed: frozenset[str] = frozenset()
    choices: Mapping[Reading, int] = field(default_factory=dict)
    is_first: bool = True
    decided: Decided = field(default_factory=Decided)
    seen: WalkFindings = field(default_factory=WalkFindings)

    def begin(self) -> None:
        """Forget what an earlier walk found."""
        chosen = {key[0][:2] for key in self.choices if isinstance(key[0], InputPlace)}
        results = {(MAIN, index) for index in self.wanted.outputs.values()}
        self.seen = WalkFindings(own=chosen | self.decided.nodes() | results)

    def bounds(self) -> dict[str, tuple[int, None]]:
        """Return the bounds of the names that change: a dimension of which nothing is left is not asked for."""
        return dict.fromkeys(self.wanted.old, (1, None))

    def is_own(self, path: GraphPath, index: int) -> bool:
        """Return True for a node that is not like others that look alike: something was decided about it, or it may
        read one row of a table.
        """
        return bool(self.wanted.ones) or (path, index) in self.seen.own

    def __call__(self, ctx: NodeContext) -> None:
        """Give a node the elements and shapes that are decided, and read its constants."""
        if ctx.walk.path == MAIN:
            self.seen.makers.update(dict.fromkeys(ctx.node.output, ctx))
        site = Site(self, ctx)
        self.operators.every(site)
        for position in range(ctx.input_count):
            place = site.place(position)
            if place in self.decided.expanded:
                site.expand(position, self.decided.expanded[place])
        if self.is_first:
            self._meet(ctx)
        rule = self.operators.rules.get((plain_domain(ctx.node.domain), ctx.node.op_type))
        if rule is not None:
            rule(site)
        site.fit_sizes()
        self._note_over(site)
        for position in range(ctx.input_count):
            if site.place(position) in self.decided.entries and ctx.node.op_type not in self.operators.values:
                site.restate_entries(position, self.decided.entries[site.place(position)])

    def _meet(self, ctx: NodeContext) -> None:
        """Note the dimensions of inputs that change, without those of slices of a fixed length."""
        for known in ctx.inputs:
            for dim in (known.shape if known is not None else None) or ():
                if dim is not None and self.wanted.changes(dim) and not is_limited(dim):
                    self.decided.met[dim] = None

    def _note_over(self, site: Site) -> None:
        """Note over which dimensions a node computes."""
        node, known = site.ctx.node, self.operators
        over = known.over.get((plain_domain(node.domain), node.op_type))
        if over is None and plain_domain(node.domain) == known.domain and node.op_type not in known.apart:
            for position in range(site.ctx.input_count):
                for dim in site.dims(position) or ():
                    site.computes_over(dim, f"what {node.op_type} does along {dim} is not known")
        for position, axis in site.over():
            dims = site.dims(position) or ()
            if 0 <= axis < len(dims) and self.wanted.changes(dims[axis]):
                site.computes_over(dims[axis])


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

    def changing_dim(self, axis: int) -> Dim | None:
        """Return the dimension of the data along an axis, if it changes."""
        dims = self.dims(0) or ()
        dim = dims[axis] if -len(dims) <= axis < len(dims) else None
        return dim if isinstance(dim, Dim) and self.wanted.changes(dim) else None

    def keep_body(self, name: str = "body") -> None:
        """Keep what the last walk over a body found: where a state comes out otherwise than it went in, inference walks
        it again, and knows less of the state.
        """
        path = (*self.ctx.walk.path, self.ctx.index, name, 0)
        self.follower.seen.bodies[path] = self.ctx.walk.state.record.details[path]

    def numbers(self, position: int) -> tuple[int, ...] | None:
        """Return the elements of an input that are numbers in any run."""
        known = self.ctx.contents(position) if self.ctx.has_input(position) else None
        return None if known is None else known.integers

    def items(self, position: int) -> tuple[DimLike, ...] | None:
        """Return the elements of an input that are sizes, some of them dimensions."""
        known = self.ctx.contents(position) if self.ctx.has_input(position) else None
        items = () if known is None else known.dims
        return None if known is None or None in items else items  # type: ignore[return-value]

    def listed(self, name: str) -> tuple[DimLike, ...] | None:
        """Return a list that is an attribute or an input, whichever it is in the version of the node; None if it is not
        given, or not known.
        """
        position = input_of(self.ctx, name)
        return self.ctx.attribute(name) if position is None else self.items(position)

    def is_decided(self, position: int) -> bool:
        return self.place(position) in self.follower.decided.entries

    def restate(self, position: int, contents: Contents) -> None:
        """Read an input as these elements."""
        ctx = self.ctx
        if position == ctx.input_count:
            # An input that the node leaves out.
            kind = tensor("int64", contents.shape)
            ctx.given.append(ctx.walk.state.knowledge.of(kind, contents))
            ctx.inputs.append(kind)
        else:
            ctx.given[position] = ctx.walk.state.knowledge.of(ctx.input(position), contents)
        self.follower.seen.edits.setdefault((ctx.walk.path, ctx.index), {})[position] = contents

    def restate_if_other(self, position: int, before: Sequence[DimLike], after: Sequence[DimLike]) -> None:
        """Read a list as these elements, if they are others than before."""
        if list(before) != list(after):
            self.restate(position, vector(after))

    def restate_numbers(self, position: int, after: Sequence[DimLike]) -> None:
        """Read the numbers of an input of any shape as these, if they are others."""
        known = self.ctx.contents(position)
        if known is not None and known.items != tuple(after):
            self.restate(position, Contents(known.shape, tuple(after)))

    def set_attribute(self, name: str, numbers: tuple[int, ...] | None) -> None:
        """Read an attribute as these numbers, or as if it were not there."""
        ctx = self.ctx
        ctx.repair((name,), None if numbers is None else make_attribute(name, numbers), 0)
        self.follower.seen.attributes.setdefault((ctx.walk.path, ctx.index), {})[name] = numbers

    def restate_entries(self, position: int, entries: Mapping[int, DimLike]) -> None:
        """Read some entries of an input as decided."""
        place, own = (self.ctx.walk.path, self.ctx.index), self.ctx.contents(position)
        known = self.follower.seen.edits.get(place, {}).get(position) or own
        if known is not None:
            items = tuple(entries.get(entry, item) for entry, item in enumerate(known.items))
            if own is None or items != own.items:
                self.restate(position, Contents(known.shape, items))

    def expand(self, position: int, axes: Mapping[int, DimLike]) -> None:
        """Read an input as one that has these dimensions along axes."""
        ctx = self.ctx
        shape = ctx.input(position).shape
        if shape is None:
            return
        kind: ValueType = ctx.input(position).with_shape([axes.get(axis, dim) for axis, dim in enumerate(shape)])
        ctx.given[position] = ctx.walk.state.knowledge.of(kind)
        ctx.inputs[position] = kind
        rows, columns = (kind.shape or ())[-2:] if isinstance(self._pattern(position), Triangle) else (0, 0)
        if rows != columns:
            self.block(f"the triangle {ctx.node.input[position]!r} would have {rows} rows and {columns} columns")

    def count(self, position: int, dim: DimLike) -> None:
        """Read a list with the one number 0 as one that counts a dimension."""
        place = self.place(position)
        self.follower.decided.expanded.setdefault(place, {})[0] = dim
        self.follower.decided.repeated.setdefault(place, {})[0] = Repeated(0, 0, 1)
        self.expand(position, {0: dim})

    def _pattern(self, position: int) -> tuple[Counted, ...] | Triangle | None:
        return self.follower.decided.patterns.get(self.place(position))

    def need(
        self,
        position: int,
        axis: int,
        dim: DimLike,
        entry: int | None = None,
        digits: Sequence[DimLike] = (),
    ) -> None:
        """Note that an input needs a dimension along an axis where it has a number. entry, digits: as in `Need`."""
        ctx = self.ctx
        found = Need(self.place(position), ctx.node.input[position], axis, dim, ctx.location, entry, tuple(digits))
        self.follower.seen.needs.append(found)

    def fit_sizes(self) -> None:
        """Let sizes that the node needs to be equal change together."""
        if not any(map(self.wanted.changes, (dim for known in self.ctx.inputs if known for dim in known.shape or ()))):
            return
        for group in self.equal_sizes(self.given()):
            self._fit(group)

    def over(self) -> Iterable[tuple[int, int]]:
        """Return the inputs over which the node computes, each with an axis, where that is known."""
        node = self.ctx.node
        over = self.follower.operators.over.get((plain_domain(node.domain), node.op_type))
        return () if over is None else over(self)

    def given(self) -> list[Given | None]:
        walk = self.ctx.walk
        return [
            Given(known.type, known.contents or (walk.constant_of(name) if known.unread else None))
            if known.type is not None
            else None
            for name, known in zip(self.ctx.node.input, self.ctx.given, strict=False)
        ]

    def equal_sizes(self, given: Sequence[Given | None]) -> Iterator[list[Source]]:
        """Yield the groups of dimensions of inputs that the node needs to be equal."""
        node, said_by = self.ctx.node, self.follower.operators.saying.get(self.ctx.node.op_type)
        for group in self.follower.alone.equal_sizes(node, self.ctx.walk.imports, given, said_by):
            yield [source for source in group if not source.is_element]

    def _fit(self, group: Sequence[Source]) -> None:
        sizes = {source: (self.dims(source.position) or ())[source.place] for source in group}
        changing = next((size for size in sizes.values() if self.wanted.changes(size)), None)
        if changing is None:
            return
        if self.wanted.before(changing) == 1:
            other = next((size for size in sizes.values() if self.wanted.before(size) != 1), None)
            if other is not None:
                self.block(f"{changing} was 1, and is broadcast to {other}")
                return
        for source, size in sizes.items():
            self.need_if_fixed(source.position, source.place, size, changing)
            is_equal = self.wanted.before(size) == self.wanted.before(changing) != 1
            if is_equal and isinstance(size, Dim) and not self.ctx.facts.prove_eq(size, changing):
                # A rule demands nothing of dimensions that may be broadcast.
                needed = Requirement(Obligation(size, "==", changing), self.ctx.location, self.ctx.facts, "")
                self.follower.seen.conditions.append(needed)

    def need_if_fixed(self, position: int, axis: int, own: DimLike, dim: DimLike) -> None:
        """Let an input get a dimension along an axis, as `need` does, if it has the old size of the dimension there."""
        if self.wanted.changes(dim) and isinstance(own, int) and own == self.wanted.before(dim):
            self.need(position, axis, dim)

    def orders(self, position: int, dims: Sequence[DimLike], target: Sequence[DimLike]) -> Mapping[int, Order]:
        """Return the digits of an input, by axis, where they are known. Asks for those of products that change, and of
        a dimension of 1 that may go back to the axis that it had.
        """
        several = sum(entry in (1, -1) for entry in target) > 1
        for axis, dim in enumerate(dims):
            if self.wanted.changes(dim) and (not is_one_factor(dim) or (several and self.wanted.before(dim) == 1)):
                self.follower.seen.merged[self.place(position), axis] = self.ctx.node.input[position]
        known = {axis: self.follower.decided.orders.get((self.place(position), axis), ()) for axis in range(len(dims))}
        # An earlier walk may have had another dimension there.
        return {
            axis: order
            for axis, order in known.items()
            if order is None or (order and product([digit.dim for digit in order]) == dims[axis])
        }

    def computes_over(self, dim: DimLike, text: str = "") -> None:
        """Note that the node mixes the places along a dimension. text: what it does; "" if its operator says so."""
        told = text or f"{self.ctx.node.op_type} computes over {dim}"
        for name in symbols_of(dim) & self.wanted.old.keys() if isinstance(dim, Dim) else ():
            self.follower.seen.over.setdefault(name, (self.ctx.location, told))
            if dim != symbol(name) and self.wanted.old[name] == 1:
                self.follower.seen.over_merged.setdefault(name, (self.ctx.location, told))

    def choose(self, dims: Sequence[DimLike], target: Sequence[DimLike], choice: Choice) -> int:
        """Return the number of the place that is taken for a digit in the target of a Reshape."""
        reading = tuple(dims), tuple(target), choice.number
        location, others = self.ctx.location, self.follower.seen.alternatives
        others[reading] = others.get(reading, Alternative(choice, self.place(1), location)).repeated_at(location)
        others[reading] = others[reading]._replace(choice=choice)
        return min(self.follower.choices.get(reading, 0), len(choice.readings) - 1)

    def cut(self, dim: DimLike, number: int) -> None:
        """Require that a dimension can be cut into parts of this many elements, one or more."""
        self.ctx.require(dim % number, "==", 0)
        self.ctx.require(dim // number, ">=", 1)

    def either(
        self,
        position: int,
        entry: int,
        meanings: Sequence[Meaning],
        user_entry: int | None = None,
        likely: int = 0,
        *,
        is_value: bool = False,
        stays: Stays | None = None,
    ) -> DimLike:
        """Return the meaning of an entry of a constant: what is decided about it, or else the first meaning, unless the
        search tries another one.

        user_entry: the number of the entry for the user, if it is another one. likely, is_value: as in `Choice`. stays:
        as in `Alternative`.
        """
        decided = self.decided(position, entry)
        if decided is not None:
            return decided
        by_value: dict[DimLike, Meaning] = {}
        for meaning in meanings:
            by_value.setdefault(meaning.value, meaning)
        distinct = [*by_value.values()]
        if len(distinct) == 1:
            return distinct[0].value
        number = entry if user_entry is None else user_entry
        readings = tuple(
            (number if each.entry is None else each.entry, each.value if each.says is None else each.says)
            for each in distinct
        )
        symbols = frozenset().union(*(symbols_of(says) for _, says in readings)) & self.wanted.old.keys()
        key = self.place(position), entry
        asked = len({each.value for each in meanings[:likely]})
        choice = Choice(number, symbols, readings, True, likely=asked, is_value=is_value)
        is_attribute = stays is None and not self.ctx.has_input(position)
        self.follower.seen.alternatives[key] = Alternative(choice, key[0], self.ctx.location, is_attribute, stays)
        return distinct[min(self.follower.choices.get(key, 0), len(distinct) - 1)].value

    def compute_with(self, position: int, entry: int, dim: Dim) -> None:
        """Note that the node computes with a dimension in place of a number."""
        place = self.ctx.walk.path, self.ctx.index
        self.follower.seen.values.setdefault(place, {}).setdefault(position, {})[entry] = dim

    def decided(self, position: int, entry: int) -> DimLike | None:
        """Return what is decided about an entry of a constant."""
        return self.follower.decided.entries.get(self.place(position), {}).get(entry)

    def decide(self, position: int, entry: int, value: DimLike) -> None:
        """Change what is decided about an entry of a constant."""
        self.follower.decided.entries[self.place(position)][entry] = value

    def alike(self, number: int) -> list[Meaning]:
        """Return what a number that says a size can mean: itself first, then dimensions of this old size."""
        wanted = self.wanted
        own = [symbol(name) for name, old in wanted.old.items() if old == number and name not in wanted.batch_of_caller]
        if number == 1:
            return [Meaning(1), *(Meaning(symbol(name)) for name in sorted(wanted.ones)[:_MOST_ALIKE])]
        met = [
            dim
            for dim in self.follower.decided.met
            if wanted.before(dim) == number and not symbols_of(dim) & wanted.batch_of_caller
        ]
        others = sorted(dict.fromkeys([*own, *met]), key=lambda dim: len(str(dim))) if number else []
        return [Meaning(number), *map(Meaning, others[:_MOST_ALIKE])]

    def leaves_items_apart(self, dim: DimLike) -> bool:
        """Return True for a dimension of items alone, of which no part may be taken."""
        return symbols_of(dim) <= self.wanted.batch

    def block(self, text: str) -> None:
        """Note that the node cannot follow, and why."""
        self.follower.seen.blocked[self.ctx.location] = text
