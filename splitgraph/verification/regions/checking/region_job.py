"""The message that tells the process of an engine which regions to run: `jobs` writes it, `local_check` reads it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from splitgraph.verification.models.model_files import ModelFile
from splitgraph.verification.regions.drawing.ranges import Range


class FileOfModel(NamedTuple):
    """The file of a model, and the folder of its external data."""

    path: str
    folder: str | None

    @classmethod
    def of(cls, file: ModelFile) -> FileOfModel:
        """Return a file as the message names it."""
        return cls(str(file.path), None if file.folder is None else str(file.folder))


class AskedCopies(NamedTuple):
    """Copies of one side with other elements of a constant (see `reading`): what they ask, by its number."""

    number: int
    side: int
    files: Sequence[FileOfModel]


class KindMessage(NamedTuple):
    """A kind of region.

    files: the model before and after. fixed: the positions of inputs that do not change. signed: those of outputs in
    which 0.0 and -0.0 are not the same. ranges: of each input. is_exact: nothing is allowed. regroups: see `Arbiter`.
    has_jumps: drawn values include those at which results jump. open_axes: of inputs that may get other sizes, each
    position with its axes. named_axes: groups of axes that have one size, each as positions with axes. has_changes:
    constants of both sides differ.
    """

    files: Sequence[FileOfModel]
    fixed: Sequence[int]
    signed: Sequence[int]
    ranges: Sequence[Range | None]
    is_exact: bool
    regroups: bool
    has_jumps: bool
    open_axes: Sequence[tuple[int, Sequence[int]]]
    named_axes: Sequence[Sequence[tuple[int, int]]]
    asked: Sequence[AskedCopies]
    has_changes: bool


class MemberMessage(NamedTuple):
    """A region: its kind, and the values of the first model that it reads and gives. types: those of its inputs."""

    kind: int
    inputs: Sequence[str]
    types: Sequence[str]
    outputs: Sequence[str]


class DrawnKind(NamedTuple):
    """A kind to compare on drawn values. base: the file of the values to draw from. seconds: that these took. ending:
    the cases that end the engine.
    """

    kind: int
    base: str
    seconds: float
    ending: Sequence[int]


class RegionJob(NamedTuple):
    """Regions to run.

    outputs: the names of the first model's outputs. captured: those of its inner values that are needed. batches:
    members whose values fit in memory together. drawn: nothing else is done if there are any. seconds: for all drawn
    values. only_asks: nothing is compared, and only what the regions read of their constants is asked. counts: elements
    of the inputs decide sizes, so that a size of 0 is one that the models have to take.
    """

    outputs: Sequence[str]
    captured: Sequence[str]
    kinds: Sequence[KindMessage]
    members: Sequence[MemberMessage]
    batches: Sequence[Sequence[int]]
    drawn: Sequence[DrawnKind]
    seconds: float
    rtol: float
    atol: float
    seed: int
    only_asks: bool
    counts: bool

    @classmethod
    def from_json(cls, document: Sequence[Any]) -> RegionJob:
        """Return the message that `json` read: a list in the order of the fields, as it writes tuples."""
        job = cls(*document)
        return job._replace(
            kinds=[_kind(each) for each in job.kinds],
            members=[MemberMessage(*each) for each in job.members],
            drawn=[DrawnKind(*each) for each in job.drawn],
        )


def _kind(document: Sequence[Any]) -> KindMessage:
    kind = KindMessage(*document)
    asked = [AskedCopies(each[0], each[1], [FileOfModel(*file) for file in each[2]]) for each in kind.asked]
    return kind._replace(files=[FileOfModel(*file) for file in kind.files], asked=asked)
