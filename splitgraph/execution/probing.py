"""Which outputs of the first model move when its weights do, as the child process of an engine finds out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from splitgraph.execution.comparison import Comparison, is_finite
from splitgraph.execution.engines import Run, load_engine, normalise
from splitgraph.execution.moved_weights import MOVES, move_onnx, moved
from splitgraph.execution.values import Value, read_values

# Files with what the first model was given and what it gave.
Ran = tuple[Path, Path]


def find_moving(
    engine: str,
    path: Path,
    folder: Path | None,
    ports: Mapping[str, Any] | None,
    probe: Mapping[str, Any],
    ran: Sequence[Ran],
) -> Iterator[list[int]]:
    """The positions of the outputs that move with the weights of a model, again with each case by which there are more.

    folder: of its external data. probe: see `child.Probe`. Cases are tried until every output that should move has
    moved.
    """
    wanted = set(probe["movable"])
    integers = wanted & set(_without_fractions(ran[0][1]))
    comparison = Comparison(probe["rtol"], probe["atol"])
    found: set[int] = set()
    is_told = False
    for move in MOVES:
        sought = integers - found if move.is_for_integers else set() if is_told else wanted - found
        if not sought:
            continue
        is_ir = path.suffix == ".xml"
        copy = path if is_ir else move_onnx(path, folder, probe["kept"], move)
        try:
            run = load_engine(engine, copy, ports, partial(moved, move=move) if is_ir else None, folder=folder)
        except Exception:  # a weight out of its range, say; the next move changes less
            continue
        for given, gave in ran:
            told = _moving(run, given, gave, comparison)
            is_told |= told is not None and all(told[position] is not None for position in sought)
            more = {position for position in sought - found if told is not None and told[position]}
            if more:
                found |= more
                yield sorted(found)
            if sought <= found:
                break


def _without_fractions(gave: Path) -> Iterator[int]:
    """The positions of the outputs of integers and conditions."""
    for position, value in enumerate(read_values(gave).values()):
        if isinstance(value, np.ndarray) and value.dtype.kind in "iub":
            yield position


def _moving(run: Run, given: Path, gave: Path, comparison: Comparison) -> list[bool | None] | None:
    """Of each output whether it has moved, None where that cannot be told; None where the model does not run."""
    feeds = read_values(given)
    try:
        values = normalise(run(feeds))
    except Exception:  # as above
        return None
    before = list(read_values(gave).values())
    return [_has_moved(*pair, comparison) for pair in zip(before, values, strict=True)]


def _has_moved(before: Value, after: Value, comparison: Comparison) -> bool | None:
    """Whether a value is another one; None where nothing is finite in both."""
    if isinstance(before, dict) and isinstance(after, dict):
        before, after = list(before.items()), list(after.items())
        return _has_moved([np.asarray(value) for _, value in before], [np.asarray(v) for _, v in after], comparison)
    if isinstance(before, list) and isinstance(after, list):
        if len(before) != len(after):
            return True
        each = [_has_moved(*pair, comparison) for pair in zip(before, after, strict=True)]
        return True if True in each else None if None in each else False
    if not isinstance(before, np.ndarray) or not isinstance(after, np.ndarray):
        return (before is None) != (after is None)
    return moves(before, after, comparison)


def moves(before: np.ndarray[Any, Any], after: np.ndarray[Any, Any], comparison: Comparison) -> bool | None:
    """Whether two arrays differ where both are finite, or in shape; None where nothing is finite in both."""
    if before.shape != after.shape:
        return True
    finite = is_finite(before) & is_finite(after)
    return bool((comparison.wrong(before, after) & finite).any()) if finite.any() else None
