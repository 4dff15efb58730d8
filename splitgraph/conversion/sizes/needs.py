"""What a walk with new sizes says: what a node needs, what weights are, and what a number can mean."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from splitgraph.conversion.sizes.reshape_targets import Choice
from splitgraph.dim import DimLike
from splitgraph.model.scopes import GraphPath


class InputPlace(NamedTuple):
    """An input of a node: its graph, the number of the node there, and of the input."""

    path: GraphPath
    node: int
    position: int


class Need(NamedTuple):
    """A value whose size along an axis has to become a dimension, because a node needs that. name: of the value. entry:
    of indices, which entry along their last axis counts the items. digits: of indices, the dimensions that they count
    together, the last one fastest.
    """

    place: InputPlace
    name: str
    axis: int
    dim: DimLike
    location: str
    entry: int | None = None
    digits: tuple[DimLike, ...] = ()


class Repeated(NamedTuple):
    """What weights are along an axis: all the same, or numbers that are counted in steps: of 1 or -1, or of as many
    places as an item has. times: where they start is so many times the size, and `start`: 4, 3 … 0 of 5 start at the
    size and -1.
    """

    axis: int
    start: int = 0
    step: DimLike = 0
    times: int = 0

    def first(self, size: DimLike) -> DimLike:
        """Return where numbers of a size start."""
        return self.times * size + self.start


class Counted(NamedTuple):
    """What indices or positions are along an axis: one entry along another axis, the last one of indices, counts from
    0, and all else is the same.
    """

    axis: int
    entry: int
    along: int = -1


class Cut(NamedTuple):
    """An axis of weights that goes over several dimensions, as over the places of a grid: their old sizes, and the
    dimensions that they become.
    """

    axis: int
    sizes: tuple[int, ...]
    dims: tuple[DimLike, ...]

    def parts(self, shape: Sequence[Any], sizes: Sequence[Any]) -> tuple[Any, ...]:
        """Return a shape with these sizes in place of the axis."""
        return (*shape[: self.axis], *sizes, *shape[self.axis + 1 :])


class Grid(NamedTuple):
    """What weights are along the dimensions of an axis: the same, or counted, by axis; or counted in an entry."""

    cut: Cut
    repeated: Mapping[int, Repeated]
    counted: tuple[Counted, ...]


class Level(NamedTuple):
    """A part of an axis of weights: where it starts, what it becomes, and the grid that it counts."""

    start: int
    dim: DimLike
    grid: Grid


class Levels(NamedTuple):
    """An axis of weights that goes over several grids, one after the other."""

    axis: int
    parts: tuple[Level, ...]


class Triangle(NamedTuple):
    """What weights are along their last two axes: one value up to a diagonal, and another above it, as in a causal
    mask. diagonal: the largest column less the row that has the first value.
    """

    diagonal: int
    below: Any
    above: Any


class Meaning(NamedTuple):
    """What a number of a constant can mean. says: the same as a user says it, where that is another one: T - 2 for -2.
    entry: the one that changes, if it is not that of the number.
    """

    value: DimLike
    says: DimLike | None = None
    entry: int | None = None


# What has several readings: a Reshape, by the dimensions of its data, the target, and the number of the digit; or an
# entry of a constant input.
Reading = tuple[tuple[DimLike, ...], tuple[DimLike, ...], int] | tuple[InputPlace, int]


class Stays(NamedTuple):
    """How to tell the user of a number that is not in an input of its node, such as one in an attribute.

    form: the text of a reading, with {} for what the number means. otherwise: advice if the number should not stay,
    where this kind of node can hold nothing but a number; "" if it can follow. unless: advice where only this model
    keeps it from following; the user is asked even then.
    """

    form: str
    otherwise: str = ""
    unless: str = ""


class Alternative(NamedTuple):
    """A number of a node that has several readings.

    place: the input with the number. location: of the node. is_attribute: this version of the operator has the number
    in an attribute instead, so that no option can say what it means. stays: for a number that is in no input. also: the
    locations of other Reshapes that are read alike.
    """

    choice: Choice
    place: InputPlace
    location: str
    is_attribute: bool = False
    stays: Stays | None = None
    also: tuple[str, ...] = ()

    @property
    def can_only_stay(self) -> bool:
        return self.stays is not None and self.stays.otherwise != ""

    @property
    def locations(self) -> tuple[str, ...]:
        return self.location, *self.also

    @property
    def is_asked_alone(self) -> bool:
        """True if it is asked about where no other reading than the first one fits."""
        return self.stays is not None and self.stays.unless != ""

    def only_staying(self) -> Alternative:
        """Return the same where it cannot follow."""
        return self if self.stays is None else self._replace(stays=Stays(self.stays.form, self.stays.unless))

    def repeated_at(self, location: str) -> Alternative:
        """Return the same for another Reshape, too."""
        return self if location in self.locations else self._replace(also=(*self.also, location))
