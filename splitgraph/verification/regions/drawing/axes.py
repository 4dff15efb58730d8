"""Tell along which axes the inputs of a region may get other sizes, and along which ones it adds up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from splitgraph.dim import DimLike, symbol, symbols_of
from splitgraph.model.value_type import UNKNOWN
from splitgraph.verification.regions.drawing.amounts import adds_up
from splitgraph.verification.regions.finding.find import FoundRegion, ModelRegions
from splitgraph.verification.regions.finding.sides import ModelSide


class AxesOfKind(NamedTuple):
    """Along which axes the inputs of a kind of region may get other sizes, by their positions. open: inputs of the
    model, each by itself. named: each group has one size, which is a name of the model's inputs.
    """

    open: Mapping[int, Collection[int]]
    named: Collection[frozenset[tuple[int, int]]]


class RegionAxes:
    """The axes of the regions of two models. inputs: of the first model, which a caller gives."""

    def __init__(self, found: ModelRegions, inputs: Collection[str]) -> None:
        self._found, self._inputs = found, inputs
        self._symbols = {symbol for name in inputs for size in self._shape(name) for symbol in symbols_of(size)}

    @property
    def is_any_open(self) -> bool:
        """Return True if an input of the model has an axis without a number."""
        return any(map(self._without_number, self._inputs))

    def of_kinds(self, are_fixed: Iterable[bool], regions: Iterable[tuple[int, FoundRegion]]) -> list[AxesOfKind]:
        """Return for each kind the axes along which its inputs may get other sizes. In all regions of the kind they are
        those of inputs of the model, or have sizes that these name: of what is computed, the size may be known. Beside
        an input that does not change there are none: it may be a size.

        are_fixed: for each kind, whether some of its inputs do not change. regions: each with the number of its kind.
        """
        found: list[AxesOfKind | None] = [AxesOfKind({}, ()) if is_fixed else None for is_fixed in are_fixed]
        for kind, region in regions:
            names = [border.before for border in region.inputs]
            own = {at: self._without_number(name) for at, name in enumerate(names) if name in self._inputs}
            named = self._named(names)
            known = found[kind]
            if known is None:
                found[kind] = AxesOfKind(own, named)
            else:
                both = {at: {*known.open[at]} & own[at] for at in known.open.keys() & own.keys()}
                found[kind] = AxesOfKind(both, named & {*known.named})
        return [axes or AxesOfKind({}, ()) for axes in found]

    def add_up(self, region: FoundRegion) -> bool:
        """Return True for a region in which something is added up, or searched, along an axis without a number."""
        for side, indices in zip(self._found.sides, (region.before, region.after), strict=True):
            for node in (side.nodes[index] for index in indices if adds_up(side.nodes[index])):
                open_sizes = [size for size in _sizes(side, node.input[0]) if not isinstance(size, int)]
                left = _sizes(side, node.output[0]) if node.op_type != "CumSum" else ()
                if any(size not in left for size in open_sizes):
                    return True
        return False

    def _named(self, names: Sequence[str]) -> set[frozenset[tuple[int, int]]]:
        """Return the axes of values that have one size, for each symbol of the model's inputs. A size that is computed
        from the symbol would have to be another one as well: then there are none.
        """
        sizes = [(at, axis, size) for at, name in enumerate(names) for axis, size in enumerate(self._shape(name))]
        bare = {size: name for name in self._symbols for size in [symbol(name)]}
        computed = {name for _, _, size in sizes if size not in bare for name in symbols_of(size)}
        groups: dict[str, set[tuple[int, int]]] = {}
        for at, axis, size in sizes:
            if size in bare and bare[size] not in computed:
                groups.setdefault(bare[size], set()).add((at, axis))
        return set(map(frozenset, groups.values()))

    def _shape(self, name: str) -> Sequence[DimLike]:
        return [size for size in _sizes(self._found.before, name) if size is not None]

    def _without_number(self, name: str) -> set[int]:
        found = self._found.before.types.get(name, UNKNOWN)
        if found.kind == "sequence":
            return {0}
        return {axis for axis, dim in enumerate(found.shape or ()) if not isinstance(dim, int)}


def _sizes(side: ModelSide, name: str) -> Sequence[DimLike | None]:
    return side.types.get(name, UNKNOWN).shape or ()
