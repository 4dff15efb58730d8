"""Measuring how far a model's outputs move by rounding, to tell that from a mistake of its rewrite.

This is asked only of a rewrite in which operators were written as arithmetic, and only after its results were found to
differ by more than the tolerances; see `noise` for what is run, and `movement` for what it accounts for.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import onnx

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.execution.child import Attempt, workplace
from splitgraph.execution.movement import Movements
from splitgraph.execution.noise import with_noise, written_otherwise
from splitgraph.execution.subjects import Subject
from splitgraph.execution.values import Value

# How often the model is run with noise on each case, at most, and how often one copy of it with seeds of its own:
# onnxruntime goes on drawing other numbers, the reference evaluator begins anew. A few runs tell most; the others are for
# what chance left quiet.
_RUNS = 16
_REPETITIONS = {"onnxruntime": 4}
# Bytes of weights above which a model is not copied to be run again and again.
_LARGEST_WEIGHTS = 2**30


@dataclass(frozen=True, slots=True)
class Case:
    """What a model was given, and what it gave."""

    inputs: Mapping[str, Value]
    outputs: Sequence[Value]


def measure_movements(
    before: Subject, after: Subject, cases: Mapping[int, Case], engine: str, deadline: float
) -> Iterator[Movements]:
    """How far the outputs of the first model move, after each round of runs with noise where the second one has other
    arithmetic: the same object with more and more in it.

    Nothing comes where the second model has no other arithmetic, and nothing more once time is up or no run succeeds.
    """
    places = written_otherwise(before, after)
    if not places or _weights(before.model) > _LARGEST_WEIGHTS:
        return
    movements = Movements()
    for seed in range(_RUNS // _repetitions(engine)):
        noisy = with_noise(before, places, seed)
        try:
            moved = list(_run(noisy, cases, engine, deadline))
        except OSError:  # no room for one more model
            return
        if not moved:
            return
        for case, outputs in moved:
            movements.add(case, cases[case].outputs, outputs)
        movements.excused = None
        yield movements


def _run(
    model: onnx.ModelProto, cases: Mapping[int, Case], engine: str, deadline: float
) -> Iterator[tuple[int, list[Value]]]:
    """What a model gives for each case, as often as it is repeated."""
    repetitions = _repetitions(engine)
    left = deadline - time.monotonic()
    if left <= 0:
        return
    attempts = [
        Attempt(case * repetitions + repetition, 0, told.inputs)
        for case, told in cases.items()
        for repetition in range(repetitions)
    ]
    with workplace([model], [None]) as place:
        run = place.run(engine, attempts, left)
    for (number, _), outputs in run.outputs[0].items():
        yield number // repetitions, outputs


def _repetitions(engine: str) -> int:
    return _REPETITIONS.get(engine, 1)


def _weights(model: object) -> int:
    return sum(len(tensor.raw_data) for tensor in model.graph.initializer) if isinstance(model, onnx.ModelProto) else 0


def rounding_note(movements: Movements) -> Diagnostic | None:
    """That a difference beyond the tolerances was accounted for by rounding; None where there was none."""
    if movements.excused is None:
        return None
    times = f"{movements.excused:.2g} times"
    text = f"beyond the tolerances by at most {times} what rounding does to the original's results"
    return diagnostic("SG504", text, severity="info")


__all__ = ["Case", "measure_movements", "rounding_note"]
