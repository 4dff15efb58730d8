"""Find out, inside an engine process, which outputs of the first model change when its weights change."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from splitgraph.execution.comparison import Comparison, is_finite
from splitgraph.execution.engine_settings import DEFAULT, EngineSettings
from splitgraph.execution.engines.engine import load_engine, normalise
from splitgraph.execution.engines.moved_weights import MOVES, move_onnx, moved
from splitgraph.execution.values import Run, Value, blocks, read_values

# The files with the inputs and the outputs of the first model on one case.
CaseFiles = tuple[Path, Path]


def find_moving(
    engine: str,
    path: Path,
    folder: Path | None,
    ports: Mapping[str, Any] | None,
    probe: Mapping[str, Any],
    ran: Sequence[CaseFiles],
    settings: EngineSettings = DEFAULT,
) -> Iterator[list[int]]:
    """Yield the positions of the outputs that change with the weights, each time a case adds more of them.

    Cases are tried until every output that should change has changed. folder: of the external data of the model.
    probe: see `engine_process.Probe`.
    """
    wanted = set(probe["movable"])
    integers = wanted & set(_without_fractions(ran[0][1]))
    comparison = Comparison(probe["rtol"], probe["atol"])
    found: set[int] = set()
    is_decided = False
    for move in MOVES:
        sought = integers - found if move.is_for_integers else set() if is_decided else wanted - found
        if not sought:
            continue
        is_ir = path.suffix == ".xml"
        copy = path if is_ir else move_onnx(path, folder, probe["kept"], move)
        try:
            changes = partial(moved, move=move) if is_ir else None
            run = load_engine(engine, copy, ports, changes, folder=folder, settings=settings).run
        except Exception:  # such as a weight that is out of range; the next move changes the weights less
            continue
        for inputs, outputs in ran:
            changed = _find_changed(run, inputs, outputs, comparison)
            is_decided |= changed is not None and all(changed[position] is not None for position in sought)
            more = {position for position in sought - found if changed is not None and changed[position]}
            if more:
                found |= more
                yield sorted(found)
            if sought <= found:
                break


def _without_fractions(outputs: Path) -> Iterator[int]:
    """Yield the positions of the integer and boolean outputs."""
    for position, value in enumerate(read_values(outputs).values()):
        if isinstance(value, np.ndarray) and value.dtype.kind in "iub":
            yield position


def _find_changed(run: Run, inputs: Path, outputs: Path, comparison: Comparison) -> list[bool | None] | None:
    """Return for each output whether it changed (None: undecided); None if the model does not run."""
    try:
        values = normalise(run(read_values(inputs)))
    except Exception:  # engines raise errors of their own types; a run that fails shows no change
        return None
    before = list(read_values(outputs).values())
    return [_has_changed(*pair, comparison) for pair in zip(before, values, strict=True)]


def _has_changed(before: Value, after: Value, comparison: Comparison) -> bool | None:
    """Return whether a value changed; None if no element is finite in both."""
    if isinstance(before, dict) and isinstance(after, dict):
        before, after = list(before.items()), list(after.items())
        return _has_changed([np.asarray(value) for _, value in before], [np.asarray(v) for _, v in after], comparison)
    if isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            return True
        each = [_has_changed(*pair, comparison) for pair in zip(before, after, strict=True)]
        return True if True in each else None if None in each else False
    if not isinstance(before, np.ndarray) or not isinstance(after, np.ndarray):
        return (before is None) != (after is None)
    if before.shape != after.shape:
        return True
    is_decided = False
    for block in blocks(before, after):
        left, right = before[block], after[block]
        finite = is_finite(left) & is_finite(right)
        if (comparison.wrong(left, right) & finite).any():
            return True
        is_decided |= bool(finite.any())
    return False if is_decided else None
