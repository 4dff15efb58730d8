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

    verdict: "equal", "different" or "not-run", also where results are equal but show nothing (SG506). engine: which
    engine ran the cases, "" for none. cases: how many sets of inputs were compared and showed something. max_abs_diff,
    max_rel_diff: over all floating-point outputs, 0.0 when equal to the bit, None when nothing was compared.
    first_difference: None unless different. proofs: locations of the splits whose bounds are equal symbolically, so for
    every value of every dimension. diagnostics: which engines failed and why, and what limits the verdict.
    """

    verdict: Verdict
    engine: str
    cases: int
    max_abs_diff: float | None
    max_rel_diff: float | None
    first_difference: Difference | None
    proofs: tuple[str, ...]
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def warnings(self) -> tuple[Diagnostic, ...]:
        """What to heed beside a verdict: outputs that show nothing, a result that does not load as it is."""
        return tuple(each for each in self.diagnostics if each.severity == "warning" and each.code != "SG503")
