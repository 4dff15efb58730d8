"""The sizes that a caller wants for a model's inputs: which dimensions change, and what they were."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from splitgraph.conversion.sizes.baked import Runs, baked_sizes, runs_in_onnx
from splitgraph.dim import Dim, DimLike, Obligation, read_dim_param, substitute_if_defined, symbol, symbols_of
from splitgraph.findings.diagnostics import SplitgraphError
from splitgraph.inference.task import read_sizes
from splitgraph.model.names import FreshNames, dimension_names
from splitgraph.model.onnx_proto import ModelProto, ValueInfoProto
from splitgraph.model.value_type import ValueType
from splitgraph.model.values import value_type, write_dim
from splitgraph.options import NewSizes, Sizes

# Names of the symbols that stand for a size while it goes from one number to another.
_STAND_IN = "size{}"


class SizePlace(NamedTuple):
    """Where a run finds a size: a dimension of an input."""

    input: str
    axis: int


@dataclass(frozen=True, slots=True)
class Wanted:
    """The dimensions of a model's inputs that change.

    shapes: the new dimensions of each input that changes, in symbols that stand for the sizes that were numbers; None
    for one that stays unknown. old: the former number of each of these symbols. new: the number that is wanted for a
    symbol, if one is. places: where a run finds a symbol, also one of the model's own; the dimension there is the
    symbol itself. bound: values for the model's own symbols; for one with a size baked in (`baked.py`), that size.
    axes: the axis of each of the new symbols, by input. unnamed: names for dimensions of inputs that have neither a
    name nor a number in the model, by input and axis. batch: those of the new symbols along which items stay apart, as
    far as is known. batch_of_caller: those that the caller calls a batch (`--batch`). outputs: the outputs that are
    constants, with the number of the node that reads each (`constant_outputs.py`). stand_ins: the symbols that stand
    for a size that was a number and becomes one, also once `named` has taken the number away. followers: those of them
    that are computed from others, and are no dimensions of their own any more.
    """

    shapes: Mapping[str, Sequence[DimLike | None]]
    old: Mapping[str, int]
    new: Mapping[str, int]
    places: Mapping[str, SizePlace]
    bound: Mapping[str, DimLike]
    axes: Mapping[str, Mapping[str, int]]
    batch: frozenset[str]
    batch_of_caller: frozenset[str] = frozenset()
    unnamed: Mapping[str, Mapping[int, str]] = field(default_factory=dict)
    outputs: Mapping[str, int] = field(default_factory=dict)
    stand_ins: tuple[str, ...] = ()
    followers: Mapping[str, DimLike] = field(default_factory=dict)
    # What `before` has returned. It depends on `old` alone, which does not change, so that nothing is forgotten.
    _known: dict[Dim, DimLike] = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def unquestioned(self) -> frozenset[str]:
        """The batches that the caller names, and those of first dimensions. They take the likeliest place without a
        question, because the verification checks their items one by one.
        """
        first = {name for name, axes in self.axes.items() if set(axes.values()) == {0}}
        return self.batch & (self.batch_of_caller | first)

    @property
    def items(self) -> frozenset[str]:
        """The dimensions that may have items: those of a batch, and the first ones that were 1."""
        return self.batch | {
            name for name, axes in self.axes.items() if self.old.get(name) == 1 and set(axes.values()) == {0}
        }

    @property
    def ones(self) -> frozenset[str]:
        """The lengths that were 1, so that other things of size 1 may be these, or not."""
        return frozenset(name for name, old in self.old.items() if old == 1) - self.unquestioned

    def named(self) -> Wanted:
        """Return the same dimensions with names in place of the numbers that are wanted."""
        return replace(self, new={})

    def before(self, dim: DimLike) -> DimLike:
        """Return a dimension at the old sizes."""
        if not isinstance(dim, Dim):
            return dim
        if dim not in self._known:
            self._known[dim] = substitute_if_defined(dim, self.old)
        return self._known[dim]

    def after(self, dim: DimLike) -> DimLike:
        """Return a dimension at the new sizes: numbers where numbers are wanted."""
        return substitute_if_defined(dim, self.new) if isinstance(dim, Dim) else dim

    def others(self) -> Iterator[Mapping[str, int]]:
        """Yield other sizes of the dimensions along which nothing stands apart, one after the other."""
        lengths = {name: size for name, size in self.old.items() if name not in self.batch}
        for times, parts, more in ((2, 1, 0), (3, 1, 0), (1, 2, 0), (1, 1, 1)) if lengths else ():
            yield {name: max(size * times // parts + more, 1) for name, size in lengths.items()}

    def related(self, needed: Iterable[Obligation | None]) -> Wanted | None:
        """Return the same dimensions with one less that goes from a number to another one: it follows from the others,
        as a node needs and the numbers say, such as a mask that is one longer than its data. None where none does.
        """
        for obligation in needed:
            names = frozenset() if obligation is None else obligation.symbols
            if obligation is None or obligation.relation != "==" or not names <= self.new.keys():
                continue
            apart = obligation.lhs - obligation.rhs
            for name in sorted(names, reverse=True):
                for dim in (symbol(name) - apart, symbol(name) + apart):
                    is_so = substitute_if_defined(dim, self.old) == self.old[name] if isinstance(dim, Dim) else False
                    if is_so and name not in symbols_of(dim) and self.after(dim) == self.new[name]:
                        return self._with(name, dim)
        return None

    def with_followers(self, followers: Mapping[str, DimLike]) -> Wanted:
        """Return the same dimensions with what some are in terms of others, as `related` has found it."""
        wanted = self
        for name, dim in followers.items():
            wanted = wanted._with(name, dim)
        return wanted

    def _with(self, name: str, dim: DimLike) -> Wanted:
        shapes = {
            input: [substitute_if_defined(each, {name: dim}) if isinstance(each, Dim) else each for each in shape]
            for input, shape in self.shapes.items()
        }
        tables = {
            table: {key: value for key, value in getattr(self, table).items() if key != name}
            for table in ("old", "new", "places", "axes")
        }
        stand_ins = tuple(each for each in self.stand_ins if each != name)
        return replace(
            self,
            shapes=shapes,
            batch=self.batch - {name},
            batch_of_caller=self.batch_of_caller - {name},
            stand_ins=stand_ins,
            followers={**self.followers, name: dim},
            **tables,
        )

    def spelled(self, text: str) -> str:
        """Return a text with the dimensions of inputs in place of the symbols that stand for numbers."""
        if not self.stand_ins:
            return text
        # A node may be called "resize0", or "size0" behind the name of its graph.
        names = re.compile(rf"(?<![\w.])(?<!\w/)({'|'.join(self.stand_ins)})(?!\w)")
        return names.sub(lambda found: self._spelled_name(found[1]), text)

    def unspelled(self, text: str) -> str:
        """Return a text with the symbols again, where `spelled` has put dimensions of inputs."""
        for name in self.stand_ins:
            text = re.sub(rf"(?<!\w){re.escape(self._spelled_name(name))}", name, text)
        return text

    def _spelled_name(self, name: str) -> str:
        place = self.places[name]
        return f"{place.input}[{place.axis}]"

    def changes(self, dim: object) -> bool:
        """Return True for a dimension that changes with the sizes."""
        return isinstance(dim, Dim) and not symbols_of(dim).isdisjoint(self.old)


def read_wanted(model: ModelProto, sizes: NewSizes, runs: Runs = runs_in_onnx) -> Wanted:
    """Return which dimensions change. runs: says whether the model runs at sizes. Raises SplitgraphError for a name
    that the model does not have, for what is no shape of an input, and for a batch that its inputs do not share.
    """
    asked = _asked_shapes(model, sizes)
    # What is asked for a dimension without a name is known once the sizes are read; they are read again with its name.
    unnamed = _names_for_unnamed(model, read_sizes(model, Sizes(None, asked)).given)
    model = _with_names(model, unnamed)
    renamed, given = read_sizes(model, Sizes(None, asked))
    baked = baked_sizes(model, renamed, runs)
    reader = _SizesReader(set(dimension_names(model)), baked, is_batch=sizes.batch is not None)
    for value, known in zip(model.graph.input, given, strict=True):
        dims = None if known is None else known.shape
        declared = value_type(value.type).shape or ()
        if dims is None and any(str(dim) in baked for dim in declared):
            # No shape is asked for this input, but it has a dimension that another input gives a size.
            dims = tuple(renamed[str(dim)] if str(dim) in baked else dim for dim in declared)
        if dims is not None:
            reader.read(value, dims)
        else:
            reader.note_places(value.name, declared)
    reader.require_known_names()
    return replace(reader.wanted(), unnamed=unnamed)


def _asked_shapes(model: ModelProto, sizes: NewSizes) -> dict[str, Sequence[DimLike | str | None]]:
    """Return the shapes that are asked for, by input; a batch asks for shapes of all inputs that have none."""
    asked: dict[str, Sequence[DimLike | str | None]] = dict(sizes.shapes or {})  # type: ignore[arg-type]
    for name, shape in asked.items():
        if shape is None or isinstance(shape, int):
            raise SplitgraphError(f"the shape of {name!r} is {shape}; give a list of numbers and names")
    if sizes.batch is not None:
        asked = {**_with_batch(model, sizes.batch, asked), **asked}
    if not asked:
        raise SplitgraphError("reshape needs the shape of an input (shapes), or a batch")
    return asked


def _names_for_unnamed(model: ModelProto, given: Sequence[ValueType | None]) -> dict[str, dict[int, str]]:
    """Return new names for dimensions that a caller gives, and of which the model says nothing: it may have a size of
    them baked in.
    """
    dims = [dim for known in given if known is not None for dim in known.shape or () if dim is not None]
    taken = {name for dim in dims for name in symbols_of(dim)} | dimension_names(model)
    names, found = FreshNames(taken), dict[str, dict[int, str]]()
    for value, known in zip(model.graph.input, given, strict=True):
        own, asked = value_type(value.type).shape or (), (known.shape if known is not None else None) or ()
        for axis, (dim, size) in enumerate(zip(own, asked, strict=False)):
            if dim is None and size is not None and len(own) == len(asked):
                made = names.new(f"{re.sub(r'[^A-Za-z0-9_]', '_', value.name)}_{axis}")
                found.setdefault(value.name, {})[axis] = made
    return found


def _with_names(model: ModelProto, unnamed: Mapping[str, Mapping[int, str]]) -> ModelProto:
    """Return the model with names for dimensions of its inputs."""
    if not unnamed:
        return model
    copy = ModelProto()
    copy.CopyFrom(model)
    for value in copy.graph.input:
        for axis, name in unnamed.get(value.name, {}).items():
            value.type.tensor_type.shape.dim[axis].dim_param = name
    return copy


def _with_batch(
    model: ModelProto, batch: int | str, asked: Mapping[str, object]
) -> dict[str, list[DimLike | str | None]]:
    """Return the shapes of all inputs with another first dimension. Inputs of weights and scalars have none."""
    firsts: dict[str, list[DimLike | str | None]] = {}
    weights = {tensor.name for tensor in model.graph.initializer}
    typed = {value.name: value_type(value.type) for value in model.graph.input}
    for name, each in typed.items():
        if name not in weights and name not in asked and each.shape:
            firsts[name] = [batch, *each.shape[1:]]
    found = {name: str(typed[name].shape[0]) for name in firsts}  # type: ignore[index]
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{first} in {name!r}" for name, first in found.items())
        raise SplitgraphError(
            f"a batch is the first dimension of every input, and these differ: {listed}. Give the shape of each input "
            "instead of a batch (shapes, reshape --input-shape)"
        )
    return firsts


class _SizesReader:
    """Collects the dimensions that change, input by input."""

    def __init__(self, names: set[str], baked: Mapping[str, int], *, is_batch: bool) -> None:
        self._names, self._is_batch = names, is_batch
        self._baked = baked
        self._shapes: dict[str, list[DimLike | None]] = {}
        self._old: dict[str, int] = {}
        self._new: dict[str, int] = {}
        self._places: dict[str, SizePlace] = {}
        self._bound: dict[str, DimLike] = {**baked}
        self._axes: dict[str, dict[str, list[int]]] = {}
        self._stand_ins: dict[tuple[int, int], str] = {}
        # Sizes in terms of others, each with the number that it was and where it is.
        self._computed: list[tuple[Dim, int, str]] = []

    def read(self, value: ValueInfoProto, shape: Sequence[DimLike | None]) -> None:
        declared = value_type(value.type).shape
        if declared is not None and len(declared) != len(shape):
            raise SplitgraphError(
                f"the input {value.name!r} has {len(declared)} dimensions; a shape of {len(shape)} does not fit it"
            )
        dims: list[DimLike | None] = []
        for axis, size in enumerate(shape):
            own = None if declared is None else declared[axis]
            if size is None and own is not None:
                raise SplitgraphError(f"dimension {axis} of {value.name!r} needs a number or a name, and not '?'")
            dims.append(None if size is None else self._dim(value.name, axis, own, size))
        self._shapes[value.name] = dims
        self.note_places(value.name, dims)

    def note_places(self, name: str, shape: Sequence[DimLike | None]) -> None:
        """Note where a run finds the symbols of an input."""
        for axis, dim in enumerate(shape):
            if isinstance(dim, Dim) and dim == symbol(str(dim)):
                self._places.setdefault(str(dim), SizePlace(name, axis))

    def _dim(self, name: str, axis: int, own: DimLike | None, size: DimLike) -> DimLike:
        if own is None or own == size:
            return size
        if isinstance(own, Dim):
            # A name that the model runs at one size of only is that number.
            own = self._baked.get(str(own), own)
        if isinstance(own, Dim):
            self._bind(own, size, f"dimension {axis} of {name!r}")
            if isinstance(size, Dim):
                self._axes.setdefault(str(size), {}).setdefault(name, []).append(axis)
            return size
        if isinstance(size, int):
            stand_in = self._stand_in(own, size)
            self._new[stand_in] = size
            size = symbol(stand_in)
        self._note(size, own, name, axis)
        return size

    def _stand_in(self, own: int, size: int) -> str:
        """Return the name for dimensions that go from one number to another: equal ones are taken for the same."""
        if (own, size) not in self._stand_ins:
            numbers = itertools.count(len(self._stand_ins))
            made = (_STAND_IN.format(number) for number in numbers)
            self._stand_ins[own, size] = next(name for name in made if name not in self._names)
        return self._stand_ins[own, size]

    def _bind(self, own: Dim, size: DimLike, what: str) -> None:
        """A symbol of the model gets a number or another name."""
        if own != symbol(str(own)):
            raise SplitgraphError(f"{what} is {own}; give the sizes of the symbols in it")
        if size != own and symbols_of(own) <= symbols_of(size):
            raise SplitgraphError(f"{what} is {own}, and would be {size}; take another name")
        if self._bound.setdefault(str(own), size) != size:
            raise SplitgraphError(f"{what} is {own}, which would be {self._bound[str(own)]} and {size} at once")

    def _note(self, size: DimLike, own: int, name: str, axis: int) -> None:
        """A number becomes a symbol."""
        text = str(size)
        if isinstance(size, Dim) and size != symbol(text):
            self._computed.append((size, own, f"dimension {axis} of {name!r}"))
            return
        if text in self._names:
            raise SplitgraphError(
                f"dimension {axis} of {name!r} is {own}, and {text!r} is the name of another dimension, whose size is "
                f"not known; take another name"
            )
        if self._old.setdefault(text, own) != own:
            raise SplitgraphError(
                f"{text!r} would stand for {self._old[text]} and {own} at once; take two names, as in N and M"
            )
        self._places.setdefault(text, SizePlace(name, axis))
        self._axes.setdefault(text, {}).setdefault(name, []).append(axis)

    def require_known_names(self) -> None:
        """Raise SplitgraphError for a size such as T + 1 that other inputs do not tell, or whose old number is another
        one.
        """
        for size, own, what in self._computed:
            unknown = sorted(symbols_of(size) - self._old.keys())
            if unknown:
                raise SplitgraphError(
                    f"{what} is {own}, and {size} needs {unknown[0]!r}, which no dimension of the inputs becomes; give "
                    f"a number or one name"
                )
            was = substitute_if_defined(size, self._old)
            if was != own:
                raise SplitgraphError(f"{what} is {own}, and {size} would be {was} at the old sizes; take another name")

    def wanted(self) -> Wanted:
        placed = {name: axes for name, axes in self._axes.items() if name in self._old}
        once = {name: axes for name, axes in placed.items() if all(len(each) == 1 for each in axes.values())}
        axes = {name: {input: each[0] for input, each in inputs.items()} for name, inputs in once.items()}
        first = frozenset(name for name, inputs in axes.items() if set(inputs.values()) == {0})
        return Wanted(
            self._shapes,
            self._old,
            self._new,
            self._places,
            self._bound,
            axes,
            frozenset(axes),
            first if self._is_batch else frozenset(),
            stand_ins=tuple(self._new),
        )


def renamed(model: ModelProto, wanted: Wanted) -> ModelProto:
    """Return a copy of the model with the values for its own symbols in the shapes of its inputs."""
    copy = ModelProto()
    copy.CopyFrom(_with_names(model, wanted.unnamed))
    for value in copy.graph.input if wanted.bound else ():
        for entry in value.type.tensor_type.shape.dim:
            dim = read_dim_param(entry.dim_param)
            if isinstance(dim, Dim):
                write_dim(substitute_if_defined(dim, wanted.bound), entry)
    return copy


def relabelled(model: ModelProto, wanted: Wanted) -> ModelProto:
    """Return a copy of the model with the new shapes of its inputs."""
    copy = renamed(model, wanted)
    for value in copy.graph.input:
        for axis, dim in enumerate(wanted.shapes.get(value.name, ())):
            shape = value.type.tensor_type.shape
            while len(shape.dim) <= axis:
                shape.dim.add()
            if dim is not None:
                write_dim(dim, shape.dim[axis])
    return copy
