"""What a check knows of regions, and of the kinds of regions that are alike."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import onnx

from splitgraph.verification.engines.engine_process import RegionRecord, Suspect
from splitgraph.verification.models.model_files import ModelFile
from splitgraph.verification.regions.checking.reading import ConstantChange
from splitgraph.verification.regions.checking.region_job import AskedCopies, FileOfModel, KindMessage
from splitgraph.verification.regions.drawing.axes import AxesOfKind
from splitgraph.verification.regions.drawing.ranges import Range
from splitgraph.verification.regions.finding.find import FoundRegion
from splitgraph.verification.regions.judging.arbiter import Opinion
from splitgraph.verification.verification import Region


@dataclass(slots=True)
class CheckedKind:
    """Regions that are alike.

    number: of the kind. models, files: before and after. fixed: the positions of inputs that do not change. signed:
    those of outputs in which 0.0 and -0.0 are not the same. ranges: of each input, see `ValueRanges`. is_exact,
    has_same_kernels, regroups: see `Arbiter`.

    drawn: what happened on drawn values. crashed: it ended the process of the engine. changes: the constants that have
    other elements in the second model, and asked: what of them a run should read; read: the numbers of what was read.
    judged: what the arbiter said of suspects, by their identity. base: a file of values of the first model that reached
    it, None if none did; base_seconds: what comparing on such values took. inner: what differs inside of its bodies
    (see `inside`).
    """

    number: int
    models: Sequence[onnx.ModelProto]
    files: Sequence[ModelFile]
    fixed: Sequence[int]
    signed: Sequence[int]
    ranges: Sequence[Range | None]
    is_exact: bool
    has_same_kernels: bool
    regroups: bool
    drawn: RegionRecord | None = None
    is_by_reference: bool = False
    crashed: bool = False
    changes: Sequence[ConstantChange] = ()
    asked: list[AskedElements] = field(default_factory=list)
    read: set[int] = field(default_factory=set)
    judged: dict[int, tuple[Suspect, Opinion]] = field(default_factory=dict)
    base: Path | None = None
    base_seconds: float = 0.0
    inner: Region | None = None

    def message(self, axes: AxesOfKind, *, is_strict: bool, has_jumps: bool) -> KindMessage:
        """Return what an engine process reads of the kind. axes: along which inputs may get other sizes."""
        return KindMessage(
            files=list(map(FileOfModel.of, self.files)),
            fixed=self.fixed,
            signed=self.signed,
            ranges=self.ranges,
            is_exact=self.is_exact or is_strict,
            regroups=self.regroups,
            has_jumps=has_jumps,
            open_axes=[(place, sorted(own)) for place, own in axes.open.items()],
            named_axes=sorted(sorted(group) for group in axes.named),
            asked=[
                AskedCopies(number, asked.side, list(map(FileOfModel.of, asked.files)))
                for number, asked in enumerate(self.asked)
                if number not in self.read
            ],
            has_changes=bool(self.changes),
        )

    def unread(self, *, is_needed: bool = True) -> list[ConstantChange]:
        """Return the constants of which no run read what differs. is_needed: only those that a run must read."""
        numbers = {asked.change for number, asked in enumerate(self.asked) if number not in self.read}
        changes = [self.changes[number] for number in sorted(numbers)]
        return [change for change in changes if change.is_needed or not is_needed]


class AskedElements(NamedTuple):
    """Elements that a run should read. files: copies of one side in which they are others."""

    change: int
    side: int
    files: Sequence[ModelFile]


@dataclass(slots=True)
class CheckedRegion:
    """A region and its kind. records: what happened on the values of the first model, run by run. opinions: what the
    arbiter said of these values, and of those that were drawn for the kind.
    """

    region: FoundRegion
    kind: CheckedKind
    records: list[RegionRecord] = field(default_factory=list)
    opinions: list[tuple[Suspect, Opinion]] = field(default_factory=list)

    def all_records(self) -> list[RegionRecord]:
        """Return what happened on the values of the first model, and on drawn ones."""
        return self.records if self.kind.drawn is None else [*self.records, self.kind.drawn]

    def suspects_by(self, cause: str) -> list[tuple[Suspect, Opinion]]:
        """Return the values of which the arbiter named this cause, with all that it said."""
        return [(suspect, opinion) for suspect, opinion in self.opinions if opinion.cause == cause]

    def case(self) -> int:
        """Return the case in which the region differs: the first one for drawn values."""
        return next((suspect.case for suspect, _ in self.suspects_by("models") if suspect.kind == "captured"), 0)

    def has_suspects(self) -> bool:
        """Return True if the region gave two answers on some values, whatever is to blame."""
        return any(record.suspects or record.dropped for record in self.all_records())

    def is_noise(self) -> bool:
        """Return True if the region differs because rounding leaves no digit of one side."""
        return any(opinion.loss is not None for _, opinion in self.suspects_by("models"))

    def differs_at_jumps(self) -> bool:
        """Return True if the region differs where a result jumps, and rounding is not all of it. The evaluator rounds
        otherwise than the engine, and so need not jump there.
        """
        return any(suspect.kind == "jumps" and opinion.cause != "rounding" for suspect, opinion in self.opinions)
