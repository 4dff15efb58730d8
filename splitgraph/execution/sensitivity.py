"""Measuring how far a model's outputs move by rounding, to tell that from a mistake of its rewrite.

This is asked only of a rewrite in which operators were written as arithmetic, and only after its results were found to
differ by more than the tolerances. First what was written otherwise must give the same by itself (`replacements`), as
what drowns rounding would drown a mistake there, too. Then the original is run with noise there (`noise`), and may be
differed from as far as that moves it (`movement`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.execution.child import Attempt
from splitgraph.execution.model_files import weights_of
from splitgraph.execution.movement import Movements
from splitgraph.execution.noise import with_noise
from splitgraph.execution.replacements import Case, agree_alone, find_replacements, run_alone
from splitgraph.execution.subjects import Subject

# How often the model is run with noise on each case, at most, and how often one copy of it with seeds of its own:
# onnxruntime goes on drawing other numbers, the reference evaluator begins anew. A few runs tell most; the others are
# for what chance left quiet.
_RUNS = 16
_REPETITIONS = {"onnxruntime": 4}
# Bytes of weights above which a model is not copied to be run again and again.
_LARGEST_WEIGHTS = 2**30


def measure_movements(
    before: Subject,
    after: Subject,
    cases: Mapping[int, Case],
    engine: str,
    deadline: float,
    tolerances: tuple[float, float],
) -> Iterator[Movements]:
    """How far the outputs of the first model move, after each round of runs with noise where the second one has other
    arithmetic: the same object with more and more in it.

    Nothing comes where the second model has no other arithmetic, or where that gives something else by itself, and
    nothing more once time is up or no run succeeds.
    """
    found = find_replacements(before, after)
    if found is None or weights_of([before.model]) > _LARGEST_WEIGHTS:
        return
    movements, repetitions = Movements(), _REPETITIONS.get(engine, 1)
    attempts = [
        Attempt(case * repetitions + repetition, 0, told.inputs)
        for case, told in cases.items()
        for repetition in range(repetitions)
    ]
    try:
        if not agree_alone(before, found, cases, engine, deadline, tolerances):
            return
        for seed in range(_RUNS // repetitions):
            moved = run_alone(with_noise(before, found.places, seed), before.folder, attempts, engine, deadline)
            if not moved:
                return
            for number, outputs in moved.items():
                case = number // repetitions
                movements.add(case, cases[case].outputs, outputs)
            movements.excused = None
            yield movements
    except OSError:  # no room for one more model
        return


def rounding_note(movements: Movements) -> Diagnostic | None:
    """That a difference beyond the tolerances was accounted for by rounding; None where there was none."""
    if movements.excused is None:
        return None
    times = f"{movements.excused:.2g} times"
    text = f"beyond the tolerances by at most {times} what rounding does to the original's results"
    return diagnostic("SG504", text, severity="info")


__all__ = ["Case", "measure_movements", "rounding_note"]
