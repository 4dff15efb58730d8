"""The records of a walk with new sizes: what a node needs, what weights are along axes, and what a number can mean."""

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
    """The need of a node that the size of a value along an axis becomes a dimension.

    place: the input that reads the value. name: of the value. location: of the node. entry: for indices, which entry
    along their last axis counts the items. digits: for indices, the dimensions that they count together, the last one
    fastest.
    """

    place: InputPlace
    name: str
    axis: int
    dim: DimLike
    location: str
    entry: int | None = None
    digits: tuple[DimLike, ...] = ()


class Repeated(NamedTuple):
    """Weights that are all the same along an axis (step 0), or that count along it.

    step: 1 or -1, or as many places as an item has. They start at `times * size + start`: 4, 3 … 0 of size 5 have the
    step -1, and start at `size - 1`.
    """

    axis: int
    start: int = 0
    step: DimLike = 0
    times: int = 0

    def first(self, size: DimLike) -> DimLike:
        """Return where numbers of a size start."""
        return self.times * size + self.start


class Counted(NamedTuple):
    """Indices or positions of which one entry counts from 0 along an axis, and all others are the same along it.

    entry: its number along the axis `along`, which is the last one for indices.
    """

    axis: int
    entry: int
    along: int = -1


class Cut(NamedTuple):
    """An axis of weights that goes over several dimensions, as over the places of a grid. sizes: their old sizes. dims:
    the dimensions that they become.
    """

    axis: int
    sizes: tuple[int, ...]
    dims: tuple[DimLike, ...]

    def parts(self, shape: Sequence[Any], sizes: Sequence[Any]) -> tuple[Any, ...]:
        """Return a shape with these sizes in place of the axis."""
        return (*shape[: self.axis], *sizes, *shape[self.axis + 1 :])


class Grid(NamedTuple):
    """Weights that go over a grid along an axis. repeated: what they are along each dimension of the grid. counted: the
    dimensions that are counted in one entry.
    """

    cut: Cut
    repeated: Mapping[int, Repeated]
    counted: tuple[Counted, ...]


class Level(NamedTuple):
    """A part of an axis of weights that goes over one grid. start: where the part starts. dim: its new size."""

    start: int
    dim: DimLike
    grid: Grid


class Levels(NamedTuple):
    """An axis of weights that goes over several grids, one after the other."""

    axis: int
    parts: tuple[Level, ...]


class Triangle(NamedTuple):
    """Weights that have one value up to a diagonal of their last two axes, and another above it, as a causal mask has.

    diagonal: `column - row` of the last place in each row that has the value `below`.
    """

    diagonal: int
    below: Any
    above: Any


class Meaning(NamedTuple):
    """A meaning that a number of a constant can have. says: the meaning for the user, if it is spelled differently
    there: T - 2 for -2. entry: the entry that changes, if it is not that of the number.
    """

    value: DimLike
    says: DimLike | None = None
    entry: int | None = None


# The key of a number with several readings: for a digit in the target of a Reshape, the dimensions of its data, the
# target and the number of the digit; else the input and the entry.
Reading = tuple[tuple[DimLike, ...], tuple[DimLike, ...], int] | tuple[InputPlace, int]


class Stays(NamedTuple):
    """The texts of a question about a number that is in no input of its node, but in an attribute, for example.

    form: the text of a reading, with {} for what the number means. otherwise: what to do if the number must not stay,
    for a kind of node that can have nothing but a number; "" if it can follow. unless: what to do then if only this
    model keeps the number from following; the user is asked even so.
    """

    form: str
    otherwise: str = ""
    unless: str = ""


class Alternative(NamedTuple):
    """A number of a node that has several readings.

    place: the input with the number. location: of the node. is_attribute: this version of the operator has the number
    in an attribute, so that no option can say what it means. stays: the texts, for a number that is in no input. also:
    the locations of other Reshapes that are read in the same way.
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
        """True if the user is asked even if only the first reading fits."""
        return self.stays is not None and self.stays.unless != ""

    def only_staying(self) -> Alternative:
        """Return the same number as one that cannot follow."""
        return self if self.stays is None else self._replace(stays=Stays(self.stays.form, self.stays.unless))

    def repeated_at(self, location: str) -> Alternative:
        """Return the same for another Reshape, too."""
        return self if location in self.locations else self._replace(also=(*self.also, location))
