"""What a comparison of two models by execution gives back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from splitgraph.diagnostics import Diagnostic

Verdict = Literal["equal", "different", "not-run"]


@dataclass(frozen=True, slots=True)
class Difference:
    """The first value that differs.

    name: of the input or output, "" when the second model failed as a whole. case: index from 0, None for a difference
    of the interface or a second model that is invalid. reason: what differs.
    """

    name: str
    case: int | None
    reason: str


@dataclass(frozen=True, slots=True)
class Verification:
    """What `verify` found.

    verdict: "equal", "different" or "not-run". engine: which engine ran the cases, "" for none. cases: how many sets of
    inputs were compared. max_abs_diff, max_rel_diff: over all floating-point outputs, 0.0 when equal to the bit, None
    when nothing was compared. first_difference: None unless different. proofs: locations of the splits whose bounds are
    equal symbolically, so for every value of every dimension. diagnostics: which engines failed and why, and what
    limits the verdict.
    """

    verdict: Verdict
    engine: str
    cases: int
    max_abs_diff: float | None
    max_rel_diff: float | None
    first_difference: Difference | None
    proofs: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
