"""Compare what a runtime gives with what is expected.

A runtime may give integers as floating-point numbers, or in fewer bits: that is no difference while the numbers are the
same. Floating-point numbers may differ as between two engines, relative to the numbers around them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from splitgraph.verification.comparison import Comparison
from splitgraph.verification.values import Array, Value, is_text

# As between two engines: their rounding errors add up differently over a model.
RTOL, ATOL = 1e-3, 1e-4
# A difference as large as so many times what rounding of the inputs does to the results is rounding, too.
_ROUNDING = 8


@dataclass(frozen=True, slots=True)
class Disagreement:
    """The first value that differs. name: of the output. reason: what differs. only_rank: only the shape, and the
    values are right.
    """

    name: str
    reason: str
    only_rank: bool = False


def new_comparison(reference: str, host: str) -> Comparison:
    """Return what compares values of a runtime with expected ones, and keeps the largest difference."""
    return Comparison(RTOL, ATOL, is_local=True, sides=(f"{reference} gives", host))


def first_disagreement(
    names: Sequence[str],
    expected: Sequence[Value],
    found: Sequence[Value],
    comparison: Comparison,
    moved: Sequence[Value] | None = None,
) -> Disagreement | None:
    """Return the first output in which a runtime disagrees; one with right values of another shape comes last.

    comparison: see `new_comparison`. moved: the expected values for inputs that differ by roundings: what is not
    further away is rounding that the model magnifies.
    """
    if len(expected) != len(found):
        return Disagreement("", f"{comparison.sides[1]} gives {len(found)} outputs for {len(expected)}")
    reshaped = None
    for position, (name, wanted, given) in enumerate(zip(names, expected, found, strict=True)):
        other = None if moved is None else moved[position]
        disagreement = _disagreement(name, wanted, given, comparison, other)
        if disagreement is not None and not disagreement.only_rank:
            return disagreement
        reshaped = reshaped or disagreement
    return reshaped


def _disagreement(
    name: str, expected: Value, found: Value, comparison: Comparison, moved: Value | None
) -> Disagreement | None:
    given_by = comparison.sides[1]
    if not isinstance(expected, np.ndarray) or not isinstance(found, np.ndarray):
        return Disagreement(name, "it is no tensor, and runners give tensors only")
    if expected.shape != found.shape:
        text = f"{given_by} gives the shape {list(found.shape)} for {list(expected.shape)}"
        if expected.size != found.size or not expected.size:
            return Disagreement(name, text)
        if _disagreement(name, expected, found.reshape(expected.shape), comparison, moved) is not None:
            return Disagreement(name, text)
        return Disagreement(name, f"{text}, with the right values", only_rank=True)
    given = _as_type(found, expected)
    if given is None:
        return Disagreement(name, f"{given_by} gives elements of type {found.dtype} for {expected.dtype}")
    difference = comparison.compare_outputs([name], [expected], [given], 0)
    if difference is None or (isinstance(moved, np.ndarray) and _is_rounding(expected, given, moved)):
        return None
    return Disagreement(name, difference.reason)


def _as_type(found: Array, expected: Array) -> Array | None:
    """Return the elements in the expected type; None if they are of another kind."""
    if is_text(expected) or is_text(found):
        return found.astype(object) if is_text(expected) and is_text(found) else None
    if found.dtype == expected.dtype:
        return found
    if expected.dtype.kind in "fc" or "float" in expected.dtype.name:
        return found.astype(expected.dtype)
    with np.errstate(invalid="ignore"):
        cast = found.astype(expected.dtype)
        # A number that the type cannot hold is no such number.
        return cast if np.array_equal(cast.astype(found.dtype), found) else None


def _is_rounding(expected: Array, found: Array, moved: Array) -> bool:
    """Return True if a difference is not larger than what rounding of the inputs explains."""
    if expected.shape != moved.shape or expected.dtype.kind != "f":
        return False
    wanted, given, other = (array.astype(np.float64) for array in (expected, found, moved))
    if not (np.isfinite(wanted).all() and np.isfinite(given).all() and np.isfinite(other).all()):
        return False
    return bool(np.linalg.norm(given - wanted) <= _ROUNDING * np.linalg.norm(other - wanted))
