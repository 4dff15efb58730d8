"""Lengths of dimensions at which a run may read what no run read so far."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from splitgraph.verification.regions.checking.checked import CheckedKind, CheckedRegion
from splitgraph.verification.regions.drawing.amounts import beyond_types
from splitgraph.verification.regions.finding.constants import held_constants
from splitgraph.verification.regions.finding.find import ModelRegions

# Lengths of dimensions that are tried to read what differs, after those that the models name; none is longer.
_LADDER = (32, 64, 128, 256, 512, 1024)
_LONGEST = 2**22
# So many constants of so many elements may be limits of lengths.
_MOST_LIMITS, _FEW_LIMITS = 12, 4


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
