"""Run regions in the process of an engine, on the values that reach them and on drawn values, and compare what they
compute before and after.

A kind is a pair of models (see `cut`) that stands for all regions with the same bytes: its sessions are loaded once. A
region says which values of the first model reach its kind. `Regions.check` compares on those, while they are in memory;
`check_drawn` draws others of the same shapes and types. What differs is written to files, with the inputs at which it
shows, so that another engine can be asked.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from splitgraph.verification.comparison import Comparison, differing_signs
from splitgraph.verification.engines.error_texts import is_unsupported, reason_of
from splitgraph.verification.regions.checking.region_job import RegionJob
from splitgraph.verification.regions.checking.region_kind import Load, RegionKind
from splitgraph.verification.regions.drawing.draw import Drawn, draw, least_difference, may_overflow
from splitgraph.verification.regions.drawing.jumps import at_jumps
from splitgraph.verification.regions.finding.cut import input_name
from splitgraph.verification.values import Value, tensors_of, write_values

# The values that reach a region are kept for drawing others of their shapes, if they have at most so many bytes.
_LARGEST_BASE = 2**25
# So many elements of an input tell whether it is another one.
_MOST_TOLD = 256
# The values on which a region differs may take so many bytes.
_MOST_SUSPECT_BYTES = 2**26
# A dimension of an empty tensor is so large in other values.
_GROWN = 2


@dataclass(slots=True)
class RegionRun:
    """What happened to a region, or to a kind of region on drawn values.

    cases: on how many values it was compared, without those that are all empty, or make all outputs empty.
    max_abs_diff: the largest difference; None before the first comparison. suspects: where it differs (see `as_event`).
    dropped: where it also differs, for which there was no room; kept_bytes: what the suspects take. unchecked: why it
    could not be compared, "" if it was. broken: the error of splitgraph that ended the drawing, "" without one.
    is_open: not all values were drawn, because the time was over, or the engine ended on too many of them. seen: the
    positions of outputs that hold conditions, with what these were. moved: those of inputs that had different values.
    first: what the inputs were first.
    """

    cases: int = 0
    max_abs_diff: float | None = None
    suspects: list[dict[str, Any]] = field(default_factory=list)
    dropped: int = 0
    kept_bytes: int = 0
    unchecked: str = ""
    broken: str = ""
    is_open: bool = False
    seen: set[tuple[int, bool]] = field(default_factory=set)
    moved: set[int] = field(default_factory=set)
    first: dict[int, str] = field(default_factory=dict)

    def add_inputs(self, inputs: Iterable[Value]) -> None:
        """Note which inputs are not what they were first."""
        for place, value in enumerate(inputs):
            if place in self.moved:
                continue
            told = repr([(array.shape, array.ravel()[:_MOST_TOLD].tolist()) for array in tensors_of(value)])
            if self.first.setdefault(place, told) != told:
                self.moved.add(place)

    def as_event(self) -> dict[str, Any]:
        """Return the form in which the other process reads it. A suspect is {"kind": of values, "case": number,
        "reason": text, "inputs": file, "outputs": [files] of both sides, none for one that failed}.
        """
        return {
            "cases": self.cases,
            "max_abs_diff": self.max_abs_diff,
            "suspects": self.suspects,
            "dropped": self.dropped,
            "unchecked": self.unchecked,
            "broken": self.broken,
            "open": self.is_open,
            "seen": sorted(self.seen),
            "moved": sorted(self.moved),
        }


class Batch(NamedTuple):
    """Regions whose values fit in memory together. names: of the inner values that the first model returns for them."""

    regions: Sequence[int]
    names: Sequence[str]


class Regions:
    """All regions of a job, with what happened to each so far."""

    def __init__(self, job: RegionJob, folder: Path, load: Load) -> None:
        self._folder, self.job = folder, job
        self.kinds = [RegionKind(kind, folder, load, counts=job.counts) for kind in job.kinds]
        captured = set(job.captured)
        self.batches = [
            Batch(batch, [name for name in self._values_needed(batch) if name in captured]) for batch in job.batches
        ]
        self.runs = [RegionRun() for _ in job.members]
        self.bases: dict[int, str] = {}
        self.base_seconds: dict[int, float] = {}
        self._base_ranks: dict[int, tuple[bool, int, int, int]] = {}

    def _values_needed(self, batch: Sequence[int]) -> list[str]:
        needed = (self.job.members[number] for number in batch)
        return list(dict.fromkeys(name for member in needed for name in (*member.inputs, *member.outputs)))

    def check(self, number: int, values: Mapping[str, Value], case: int) -> None:
        """Compare a region on the values of the first model."""
        member, run = self.job.members[number], self.runs[number]
        inputs = {input_name(place): values[name] for place, name in enumerate(member.inputs)}
        self.kinds[member.kind].declared = {input_name(place): text for place, text in enumerate(member.types)}
        before = [values[name] for name in member.outputs]
        self.kinds[member.kind].ask(inputs)
        if self.job.only_asks:
            return
        kind = self.kinds[member.kind]
        self._keep_base(member.kind, inputs, shows=not _shows_nothing(kind, inputs, before))
        files = self._folder / f"region_{number}_{case}"
        began = time.monotonic()
        _compare(kind, inputs, before, run, ("captured", case), self._comparison(kind, "captured"), files)
        # The first time, it was loaded, too.
        seconds = self.base_seconds.get(member.kind, math.inf)
        self.base_seconds[member.kind] = min(seconds, time.monotonic() - began)

    def check_drawn(
        self,
        kind: int,
        base: Mapping[str, Value],
        seconds: float,
        run: RegionRun,
        guard: Callable[[int], AbstractContextManager[None]],
        ending: Collection[int] = (),
    ) -> None:
        """Compare a kind of region on drawn values of the shapes and types of `base`, for at most so many seconds.
        run: gets what happens. guard: gives what a case is compared within. ending: the cases that end the engine.
        """
        region = self.kinds[kind]
        member = next(member for member in self.job.members if member.kind == kind)
        region.declared = {input_name(place): text for place, text in enumerate(member.types)}
        started, seed = time.monotonic(), self.job.seed
        ordinary: list[tuple[Mapping[str, Value], list[Value], list[Value]]] = []
        for case, drawn in enumerate(_cases(region, base, seed, run)):
            if time.monotonic() - started > seconds:
                run.is_open = True
                break
            if case in ending:
                continue
            files = self._folder / f"drawn_{kind}_{case}"
            with guard(case):
                try:
                    before = region.run(0, drawn.values)
                except Exception:  # drawn values may be invalid; engines raise errors of their own types
                    continue
                comparison = self._comparison(region, drawn.kind)
                after = _compare(region, drawn.values, before, run, (drawn.kind, case), comparison, files)
            if drawn.kind == "normal" and after is not None and not _shows_nothing(region, drawn.values, before):
                ordinary.append((drawn.values, before, after))
        self._compare_together(kind, ordinary, run, self._comparison(region, "normal"))
        if region.has_jumps:
            self._check_jumps(kind, [inputs for inputs, _, _ in ordinary], started + seconds, run)

    def _check_jumps(self, kind: int, ordinary: Sequence[Mapping[str, Value]], end: float, run: RegionRun) -> None:
        """Compare a kind of region where its results jump, between ordinary inputs, until this time."""
        region, rng = self.kinds[kind], np.random.default_rng(self.job.seed)

        def results(inputs: Mapping[str, Value]) -> list[Value]:
            run.is_open = run.is_open or time.monotonic() > end
            return [] if run.is_open else region.run(0, inputs)

        for case, inputs in enumerate(at_jumps(results, ordinary, rng)):
            if before := results(inputs):
                files = self._folder / f"jump_{kind}_{case}"
                _compare(region, inputs, before, run, ("jumps", case), self._comparison(region, "jumps"), files)

    def ask_drawn(self, kind: int, base: Mapping[str, Value], end: float) -> None:
        """Ask a kind of region what it reads on `base`, and on drawn values of its shapes and types until this time."""
        region = self.kinds[kind]
        member = next(member for member in self.job.members if member.kind == kind)
        region.declared = {input_name(place): text for place, text in enumerate(member.types)}
        for drawn in _cases(region, base, self.job.seed, RegionRun()):
            if region.is_all_read or (drawn.kind != "captured" and time.monotonic() > end):
                return
            region.ask(drawn.values)

    def _compare_together(
        self,
        kind: int,
        ordinary: Sequence[tuple[Mapping[str, Value], list[Value], list[Value]]],
        run: RegionRun,
        comparison: Comparison,
    ) -> None:
        """Compare several draws as one: together, they tell better how large the numbers around an element are."""
        if any(suspect["kind"] == "normal" for suspect in run.suspects) or len(ordinary) < 2:
            return
        for position in range(len(ordinary[0][1])):
            pairs = [(before[position], after[position]) for _, before, after in ordinary]
            shapes = {np.shape(value) for pair in pairs for value in pair if isinstance(value, np.ndarray)}
            if len(shapes) != 1 or any(not isinstance(value, np.ndarray) for pair in pairs for value in pair):
                continue
            one, other = (np.stack([pair[side] for pair in pairs]) for side in (0, 1))
            wrong = comparison.wrong(one, other) if one.size else np.zeros(one.shape, dtype=bool)
            if wrong.any():
                case = int(np.argmax(wrong.reshape(len(pairs), -1).any(axis=1)))
                inputs, before, after = ordinary[case]
                reason = comparison.first_wrong(*pairs[case], [((...,), wrong[case])])
                files = self._folder / f"together_{kind}"
                _keep_suspect(run, ("together", case), reason, (inputs, before, after), files)
                return

    def _comparison(self, kind: RegionKind, drawn: str) -> Comparison:
        """Return how the results of a kind of region are compared on values that were drawn in this way."""
        rtol, atol = self.job.rtol, self.job.atol
        overflows = may_overflow(drawn, atol, regroups=kind.regroups)
        least = least_difference(drawn, atol)
        return Comparison(rtol, least, is_local=True, is_exact=kind.is_exact, may_overflow=overflows)

    def _keep_base(self, kind: int, inputs: Mapping[str, Value], *, shows: bool) -> None:
        """Keep the values that others are drawn like: along an axis of 1, most operators do the same as none.

        shows: whether outputs of the region have elements that inputs may change.
        """
        arrays = [array for value in inputs.values() for array in tensors_of(value)]
        sizes, axes = [array.nbytes for array in arrays], [length for array in arrays for length in array.shape]
        # The best come first: the smallest ones, and empty ones only if there are no others.
        rank = not shows, sizes.count(0), axes.count(1), sum(sizes)
        if sum(sizes) <= _LARGEST_BASE and (kind not in self._base_ranks or rank < self._base_ranks[kind]):
            name = f"base_{kind}.bin"
            write_values(self._folder / name, inputs)
            self.bases[kind], self._base_ranks[kind] = name, rank


def _cases(region: RegionKind, base: Mapping[str, Value], seed: int, run: RegionRun) -> Iterator[Drawn]:
    """Yield the values that reached a region, and then drawn ones. run: what happened on them so far."""
    yield Drawn("captured", base)
    models, fixed = region.models(base), region.fixed
    yield from draw(models, base, fixed, seed, region.ranges, region.axes)
    grown = {name: value if name in fixed else _grown(value) for name, value in base.items()}
    if not run.cases and any(grown[name] is not value for name, value in base.items()):
        # Nothing was found for it, such as boxes in an image of random numbers.
        yield from draw(models, grown, fixed, seed, region.ranges, region.axes)


def _grown(value: Value) -> Value:
    """Return a tensor with some elements in place of an empty one; all other values as they are."""
    if not isinstance(value, np.ndarray) or not _is_empty(value):
        return value
    shape = [length or _GROWN for length in value.shape]
    return np.full(shape, "", dtype=object) if value.dtype.kind in "OUS" else np.zeros(shape, value.dtype)


def _shows_nothing(region: RegionKind, inputs: Mapping[str, Value], before: Sequence[Value]) -> bool:
    """Return True if all outputs of a region are empty, or all inputs that may change."""
    free = [value for name, value in inputs.items() if name not in region.fixed]
    return all(map(_is_empty, before)) or (bool(free) and all(map(_is_empty, free)))


def _is_empty(value: Value) -> bool:
    return isinstance(value, np.ndarray) and not value.size


def _compare(
    region: RegionKind,
    inputs: Mapping[str, Value],
    before: list[Value],
    run: RegionRun,
    told: tuple[str, int],
    comparison: Comparison,
    files: Path,
) -> list[Value] | None:
    """Run the second side, and compare it with what the first one gave; return its outputs, None if it fails.

    told: the kind and the number of the values.
    """
    after: list[Value] | None = None
    try:
        after = region.run(1, inputs)
    except Exception as error:  # engines raise errors of their own types
        if is_unsupported(error):
            # It lacks something, such as memory, which says nothing about the models.
            run.unchecked = run.unchecked or reason_of(error)
            return None
        is_empty = any(map(_is_empty, inputs.values())) or all(map(_is_empty, before))
        if is_empty and not region.must_take_empty:
            # Models also run with dimensions of size 0, where a failure says nothing, and nothing is to be compared
            # where the first one gives nothing, as a window gives that is larger than its data. Where the size was
            # asked for, the second model as a whole fails, too.
            return None
        reason = f"fails where the first model runs: {reason_of(error)}"
    else:
        run.cases += not _shows_nothing(region, inputs, before)
        run.add_inputs(inputs[input_name(place)] for place in range(len(inputs)))
        for position, value in enumerate(before):
            if isinstance(value, np.ndarray) and value.dtype.kind == "b":
                run.seen |= {(position, bool(truth)) for truth in np.unique(value)}
        names = [str(position) for position in range(len(before))]
        difference = comparison.compare_outputs(names, before, after, told[1])
        run.max_abs_diff = max(run.max_abs_diff or 0.0, comparison.max_abs_diff or 0.0)
        reason = differing_signs(before, after, region.signed) if difference is None else difference.reason
    if reason:
        _keep_suspect(run, told, reason, (inputs, before, after), files)
    return after


def _keep_suspect(
    run: RegionRun,
    told: tuple[str, int],
    reason: str,
    values: tuple[Mapping[str, Value], list[Value], list[Value] | None],
    files: Path,
) -> None:
    """Keep values on which a region differs, to be judged: the first in any case, and the others as far as there is
    room for them.
    """
    inputs, before, after = values
    size = sum(array.nbytes for value in (*inputs.values(), *before, *(after or ())) for array in tensors_of(value))
    if run.suspects and run.kept_bytes + size > _MOST_SUSPECT_BYTES:
        run.dropped += 1
        return
    run.kept_bytes += size
    run.suspects.append(_suspect(told, reason, inputs, before, after, files))


def _suspect(
    told: tuple[str, int],
    reason: str,
    inputs: Mapping[str, Value],
    before: list[Value],
    after: list[Value] | None,
    files: Path,
) -> dict[str, Any]:
    kind, case = told
    write_values(files.with_suffix(".inputs.bin"), inputs)
    written = []
    for number, values in enumerate((before, after)):
        if values is not None:
            path = files.with_suffix(f".{number}.bin")
            write_values(path, {str(position): value for position, value in enumerate(values)})
            written.append(path.name)
    inputs_file = files.with_suffix(".inputs.bin").name
    return {"kind": kind, "case": case, "reason": reason, "inputs": inputs_file, "outputs": written}
