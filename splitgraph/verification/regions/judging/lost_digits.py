"""Say which of two sides that differ by rounding is nearer to what float64 gives, and how many digits the other loses.

A rewrite may round at other places; one that cancels what the original does not cancel loses digits: (x + 2^17) - 2^17,
or E[x^2] - E[x]^2 for a variance. Errors are measured against the numbers around an element, as differences are (see
`comparison.surroundings`): where both sides cancel, neither loses.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from splitgraph.verification.comparison import surroundings
from splitgraph.verification.values import Array, Value, tensors_of

# Fewer digits are those of another order of the same terms.
_LEAST_DIGITS = 2
# How much a number of a type is rounded by, relative to its size.
_ROUNDING: Mapping[str, float] = {"float64": 2.0**-53, "float32": 2.0**-24, "float16": 2.0**-11, "bfloat16": 2.0**-8}


class Loss(NamedTuple):
    """side: 0 for the first model, 1 for the second one. digits: how many it loses, of those that the other one has.
    place: where. given, exact: what it gives there, and float64.
    """

    side: int
    digits: int
    of: int
    place: tuple[int, ...]
    given: Any
    exact: Any

    def __str__(self) -> str:
        lost = f"the {('first', 'second')[self.side]} model loses {self.digits} of {self.of} digits"
        where = f"at {list(self.place)} " if self.place else ""
        return f"{lost}: {where}it gives {self.given!s}, and float64 {self.exact!s}"


def lost_digits(outputs: Sequence[Sequence[Value]], exact: Sequence[Value]) -> Loss | None:
    """Return the largest loss of a side; None if both have about the same digits. outputs: of both sides. exact: what
    float64 gives for the first one, which is the same for the second one.
    """
    losses = (
        _loss_of(*arrays)
        for values in zip(*outputs, exact, strict=True)
        for arrays in zip(*(tensors_of(value) for value in values), strict=True)
    )
    return max(filter(None, losses), key=lambda loss: loss.digits, default=None)


def _loss_of(before: Array, after: Array, exact: Array) -> Loss | None:
    least = _ROUNDING.get(before.dtype.name)
    if least is None or exact.dtype.kind != "f" or not exact.size or not before.shape == after.shape == exact.shape:
        return None
    sides = before.astype(np.float64), after.astype(np.float64)
    finite = np.isfinite(exact) & np.isfinite(sides[0]) & np.isfinite(sides[1])
    around = np.broadcast_to(surroundings(np.where(finite, np.abs(exact), 0.0)), exact.shape)
    measured = finite & (around > 0)
    if not measured.any():
        return None
    scale = np.where(measured, around, 1.0)
    with np.errstate(invalid="ignore", over="ignore"):
        errors = [np.where(measured, np.abs(side - exact), 0.0) / scale for side in sides]
    worst = [max(float(error.max()), least) for error in errors]
    side = int(worst[1] > worst[0])
    digits = int(math.log10(worst[side] / worst[1 - side]))
    if digits < _LEAST_DIGITS:
        return None
    place = tuple(int(index) for index in np.unravel_index(int(errors[side].argmax()), exact.shape))
    of = max(digits, round(-math.log10(worst[1 - side])))
    given = (before, after)[side][place]
    return Loss(side, digits, of, place, given, exact[place].astype(before.dtype))
