"""The outputs of a function call as one object, which an equal call can use again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from splitgraph.contents import Contents, Item, Ratio, SequenceInfo
from splitgraph.dim import Dim, DimLike, substitute, symbols_of
from splitgraph.inference.knowledge import with_dims
from splitgraph.value_type import ValueType

Change = Callable[[Dim], DimLike]


@dataclass(frozen=True, slots=True)
class CallOutputs:
    """The types of the outputs in order; what is known of elements and sequences by position."""

    types: Sequence[ValueType]
    contents: Mapping[int, Contents]
    sequences: Mapping[int, SequenceInfo]

    def symbols(self) -> frozenset[str]:
        """Every symbol in the outputs."""
        found = set[str]()

        def note(dim: Dim) -> DimLike:
            found.update(symbols_of(dim))
            return dim

        self._with_dims(note)
        return frozenset(found)

    def renamed(self, names: Mapping[str, DimLike]) -> CallOutputs:
        """The same outputs with symbols replaced."""
        return self._with_dims(lambda dim: substitute(dim, names)) if names else self

    def _with_dims(self, change: Change) -> CallOutputs:
        types = [with_dims(value, change) for value in self.types]
        contents = {position: _contents(known, change) for position, known in self.contents.items()}
        sequences = {position: _sequence(known, change) for position, known in self.sequences.items()}
        return CallOutputs(types, contents, sequences)


def _contents(known: Contents, change: Change) -> Contents:
    # One object where nothing changes: longer contents are told apart by identity.
    if not any(isinstance(item, (Dim, Ratio)) for item in known.items):
        return known
    return Contents(known.shape, tuple([_item(item, change) for item in known.items]))


def _item(item: Item, change: Change) -> Item:
    if isinstance(item, Dim):
        return change(item)
    if isinstance(item, Ratio):
        numerator = change(item.numerator)
        return Ratio(numerator, item.denominator) if isinstance(numerator, Dim) else item
    return item


def _sequence(known: SequenceInfo, change: Change) -> SequenceInfo:
    length, total, size = (change(d) if isinstance(d, Dim) else d for d in (known.length, known.total, known.size))
    elements = None if known.elements is None else tuple([with_dims(each, change) for each in known.elements])
    return replace(known, length=length, elements=elements, total=total, size=size)
