"""What a check asks about constants that differ: which elements a run should read, and at which lengths it may do so.

Two models with other constants that give equal outputs have shown nothing if no run reads what differs (see `reading`).
Where two models differ in rows of a table beyond the range of its positions, no run has to read these.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import onnx

from splitgraph.model.schemas import kinds
from splitgraph.verification.models.model_files import is_default_domain, write_model
from splitgraph.verification.regions.checking.checked import AskedElements, CheckedKind, CheckedRegion
from splitgraph.verification.regions.checking.question import RegionQuestion
from splitgraph.verification.regions.checking.reading import ConstantChange, find_changes, questions
from splitgraph.verification.regions.drawing.amounts import beyond_types
from splitgraph.verification.regions.drawing.ranges import ValueRanges
from splitgraph.verification.regions.finding.constants import held_constants
from splitgraph.verification.regions.finding.cut import constants_read
from splitgraph.verification.regions.finding.find import FoundRegion, ModelRegions
from splitgraph.verification.values import Array

# Lengths of dimensions that are tried to read what differs, after those that the models name; none is longer.
_LADDER = (32, 64, 128, 256, 512, 1024)
_LONGEST = 2**22
# So many constants of so many elements may be limits of lengths.
_MOST_LIMITS, _FEW_LIMITS = 12, 4


def ask_kind(question: RegionQuestion, kind: CheckedKind, regions: Sequence[FoundRegion], folder: Path) -> None:
    """Give a kind what is asked about its constants. regions: of the kind. folder: where copies of its models are
    written.
    """
    ranges = question.ranges, question.ranges_of_second
    changes = find_changes(kind.models, question.folders, question.tolerances[0])
    kind.changes = [*_reachable(changes, kind.models, regions, question.found, ranges)]
    for asked in questions(kind.models, question.folders, kind.changes):
        name = f"kind_{kind.number}_asked_{len(kind.asked)}"
        files = [
            write_model(model, folder / f"{name}_{copy}", question.folders[asked.side])
            for copy, model in enumerate(asked.models)
        ]
        kind.asked.append(AskedElements(asked.change, asked.side, files))


def _reachable(
    changes: Sequence[ConstantChange],
    models: Sequence[onnx.ModelProto],
    regions: Sequence[FoundRegion],
    found: ModelRegions,
    ranges: Sequence[ValueRanges],
) -> Iterator[ConstantChange]:
    """Yield the changes without the elements that no position reaches, in any of the regions. models: that stand for
    the regions. ranges: of the values of both models.
    """
    for change in changes:
        places = []
        for side, model in enumerate(models):
            own = change.places[side]
            if own.size:
                name = held_constants(model, has_all_attributes=True)[change.positions[side]].name
                shape = change.arrays[side].shape
                kept = [_is_reached(name, region, side, found, ranges[side], shape) for region in regions]
                own = own[np.any([flags.reshape(-1)[own] for flags in kept], axis=0)]
            places.append(own)
        if any(each.size for each in places):
            yield change._replace(places=(places[0], places[1]))


def _is_reached(
    name: str, region: FoundRegion, number: int, found: ModelRegions, ranges: ValueRanges, shape: tuple[int, ...]
) -> Array:
    """Return which elements of a constant the nodes of a region may read. name: in the model of the region."""
    side, every = found.sides[number], np.ones(shape, bool)
    constant = constants_read(region, side, number).get(name)
    if constant is None or any(border[number] == constant for border in region.outputs):
        return every
    reached = np.zeros(shape, bool)
    for node in (side.nodes[index] for index in (region.before, region.after)[number] if constant in side.reads[index]):
        axis = next((attribute.i for attribute in node.attribute if attribute.name == "axis"), 0)
        is_table = (
            node.op_type in kinds.READS_AT - {"GatherND"}
            and is_default_domain(node.domain)
            and node.input[0] == constant
        )
        known = ranges.of(node.input[1]) if is_table and node.input[1] != constant else None
        if known is None or not -len(shape) <= axis < len(shape):
            return every
        rows = np.arange(shape[axis])
        flags = [(known[0] <= row) & (row <= known[1]) for row in (rows, rows - shape[axis])]
        reached |= (flags[0] | flags[1]).reshape([-1 if each == axis % len(shape) else 1 for each in range(len(shape))])
    return reached


class Lengths(NamedTuple):
    """The lengths that the regions of a check name. folders: of the external data of both models."""

    found: ModelRegions
    kinds: Sequence[CheckedKind]
    members: Sequence[CheckedRegion]
    folders: Sequence[Path | None]

    def near(self) -> list[int]:
        """Return lengths of dimensions that constants which no run read name themselves, the likeliest ones first."""
        changes = [change for kind in self.kinds for change in kind.unread(is_needed=False)]
        return _possible([*(length for change in changes for length in change.lengths()), *self.type_ends()])

    def far(self) -> list[int]:
        """Return other lengths at which a run may read what it must read, and no run read so far."""
        upstream = [
            length
            for member in self.members
            if member.kind.unread()
            for number in self.found.whole_numbers_behind(member.region)
            for length in (number + 1, number)
        ]
        return _possible([*upstream, *(_LADDER if any(kind.unread() for kind in self.kinds) else ())])

    def type_ends(self) -> set[int]:
        """Return lengths beyond the ends of narrow types that one of the models casts sizes to, or positions: these are
        no larger than the sizes.
        """
        return set[int]().union(*(beyond_types(kind.models) for kind in self.kinds if not kind.crashed))

    def limits(self) -> list[float]:
        """Return the numbers of small constants of the regions."""
        found = [
            constant.elements(folder)
            for kind in self.kinds
            for model, folder in zip(kind.models, self.folders, strict=True)
            for constant in held_constants(model, has_all_attributes=True)
            if constant.size <= _FEW_LIMITS
        ]
        numbers = [number for array in found if array.dtype.kind in "iuf" for number in array.ravel().tolist()]
        return [number for number in dict.fromkeys(numbers) if abs(number) <= _LONGEST][:_MOST_LIMITS]


def _possible(lengths: Iterable[int]) -> list[int]:
    return [length for length in dict.fromkeys(lengths) if 1 < length <= _LONGEST]
