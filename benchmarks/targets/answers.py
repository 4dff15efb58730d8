"""What a runtime makes of a case: right, refused, wrong, dies or hangs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Array = np.ndarray[Any, Any]

# Kinds of answers.
RIGHT, REFUSED, WRONG, DIES, HANGS = KINDS = ("right", "refused", "wrong", "dies", "hangs")
# The tolerance of runtimes that multiply on the way. No form rounds, but a converter may compute in float16.
_TOLERANCE = 1e-4
_TOLERANCE_OF_HALVES = 1e-2


@dataclass(frozen=True, slots=True)
class Answer:
    """What a runtime made of one case.

    kind: one of `KINDS`. differs: for "wrong", "count", "shape", "values" or "dtype"; the worst of all outputs, in this
    order. same_data: whether a shape is wrong and the elements are those that are expected. detail: the first line of
    the reason; which output differs, and how; or the signal.
    """

    kind: str
    differs: str = ""
    same_data: bool = False
    detail: str = ""

    def document(self) -> dict[str, Any]:
        """The answer for a JSON file, without what says nothing."""
        fields = {"differs": self.differs, "same_data": self.same_data, "detail": self.detail}
        return {"answer": self.kind, **{key: value for key, value in fields.items() if value}}


def judge(given: Sequence[Array], expected: Mapping[str, Array]) -> Answer:
    """Whether the outputs of a runtime are the expected ones, in this order."""
    if len(given) != len(expected):
        return Answer(WRONG, "count", detail=f"{len(given)} outputs, not {len(expected)}")
    pairs = zip(expected.items(), given, strict=True)
    found = [_difference(name, array, right) for (name, right), array in pairs]
    worst = [answer for kind in ("shape", "values", "dtype") for answer in found if answer and answer.differs == kind]
    # A shape with the same data is the lesser fault.
    worst.sort(key=lambda answer: answer.same_data + 2 * (answer.differs == "dtype"))
    return worst[0] if worst else Answer(RIGHT)


def _difference(name: str, given: Array, right: Array) -> Answer | None:
    if given.shape != right.shape:
        same = given.size == right.size and _close(given.reshape(right.shape), right)
        text = f"{name} has shape {list(given.shape)}, not {list(right.shape)}{', with the same data' if same else ''}"
        return Answer(WRONG, "shape", same, text)
    if not _close(given, right):
        return Answer(WRONG, "values", detail=f"{name} has other values{_distance(given, right)}")
    if given.dtype != right.dtype:
        return Answer(WRONG, "dtype", detail=f"{name} is {given.dtype}, not {right.dtype}, with the same values")
    return None


def _close(given: Array, right: Array) -> bool:
    if object in (given.dtype, right.dtype):
        return [str(item) for item in given.ravel()] == [str(item) for item in right.ravel()]
    tolerance = _TOLERANCE_OF_HALVES if right.dtype == np.float16 else _TOLERANCE
    return np.allclose(given.astype(float), right.astype(float), tolerance, tolerance)


def _distance(given: Array, right: Array) -> str:
    if object in (given.dtype, right.dtype):
        return ""
    return f"; the greatest difference is {np.abs(given.astype(float) - right.astype(float)).max():.3g}"
