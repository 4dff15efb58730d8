"""How far outputs moved when nothing changed but rounding, and which differences that accounts for."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from splitgraph.execution.values import Value

Array = npt.NDArray[Any]

# How many times its movement an element may differ by. Rounding moves it by chance, and among a million elements some
# moved little in every run: right conversions were seen to differ by 7.7 times what four runs had moved an element, and
# by 5.4 times what 16 runs had.
EACH = 8.0
# The same for all elements of an output together (the root of their mean square), of which chance averages out; right
# ones were seen to differ by 1.0.
TOGETHER = 2.0
# Of so many elements, one may have been left quiet in every run by chance (a term that is 0, a sine at its crest), and
# differ by as much as the output moves elsewhere (the root of the mean square).
QUIET_BY_CHANCE = 2000
FLOATS = ("float16", "bfloat16", "float32", "float64")


@dataclass(slots=True)
class Movements:
    """The largest movement of each element so far, by case and by position among the outputs; only tensors of
    floating-point numbers have one.

    excused: by how many times its movement the element is beyond the tolerances that is most so, of those accounted
    for; None where there are none.
    """

    largest: dict[tuple[int, int], Array] = field(default_factory=dict)
    excused: float | None = None

    def add(self, case: int, outputs: Sequence[Value], moved: Sequence[Value]) -> None:
        """Note what the model gives for a case, and what it gives where it rounds otherwise."""
        for position, (still, value) in enumerate(zip(outputs, moved, strict=True)):
            if not _is_comparable(still, value):
                continue
            with np.errstate(invalid="ignore"):
                movement = np.abs(value.astype(np.float64) - still.astype(np.float64))
            # From or to a NaN or an infinity is no distance.
            movement[~np.isfinite(movement)] = 0.0
            before = self.largest.get((case, position))
            self.largest[case, position] = movement if before is None else np.maximum(before, movement)

    def excuse(self, case: int, position: int, gap: Array, allowed: Array) -> npt.NDArray[np.bool_]:
        """Where an output's movement accounts for a difference of `gap`, given that `allowed` is allowed anyway.

        Nowhere when it does not account for the output as a whole.

        Each element is held to its own movement, but for the few that chance left quiet. That alone would let a mistake
        pass which moves every element by as much as chance moves the worst.
        """
        movement = self.largest.get((case, position))
        nowhere = np.zeros(gap.shape, dtype=np.bool_)
        if movement is None or not movement.any():
            return nowhere
        finite = np.isfinite(gap)
        excused = finite & (gap <= allowed + EACH * movement)
        touched = excused & ((gap > 0) | (movement > 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = gap[touched] / (allowed[touched] + TOGETHER * movement[touched])
        if not touched.any() or np.mean(np.square(share)) > 1:
            return nowhere
        quiet = finite & ~excused
        if np.count_nonzero(quiet) * QUIET_BY_CHANCE <= gap.size:
            elsewhere = np.sqrt(np.mean(np.square(movement[movement > 0])))
            excused |= quiet & (gap <= allowed + elsewhere)
        used = excused & (gap > allowed) & ~quiet
        if used.any():
            self.excused = max(self.excused or 0.0, float(((gap - allowed)[used] / movement[used]).max()))
        return np.asarray(excused)


def _is_comparable(still: Value, moved: Value) -> bool:
    return (
        isinstance(still, np.ndarray)
        and isinstance(moved, np.ndarray)
        and still.dtype == moved.dtype
        and still.dtype.name in FLOATS
        and still.shape == moved.shape
    )
