"""What a rewrite gives back: the new model and the list of its changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from splitgraph.diagnostics import Diagnostic

if TYPE_CHECKING:
    from splitgraph.execution.verification import Verification


@dataclass(frozen=True, slots=True)
class Change:
    """One node that was rewritten: where, what it was, what it became ("Split-13", "Split-18"), and why."""

    location: str
    before: str
    after: str
    why: str


class Tolerance(NamedTuple):
    """How far floating-point results may be apart: relative, and absolute."""

    rtol: float
    atol: float


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What `upgrade`, `downgrade` and `convert` give back.

    model: of the kind that went in, converted; the caller's model is unchanged. changes: every node that was rewritten.
    diagnostics: warnings and notes (a blocker raises ConversionError instead). verification: None unless it was asked
    for. from_opset, to_opset: imported version of each domain, before and after. rounding: an operator was written as
    arithmetic with others, so that floating-point results may differ in their last bits.
    """

    model: Any = field(repr=False)
    changes: tuple[Change, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    verification: Verification | None = None
    from_opset: Mapping[str, int] = field(default_factory=dict)
    to_opset: Mapping[str, int] = field(default_factory=dict)
    rounding: bool = False

    @property
    def tolerance(self) -> Tolerance:
        """How far results may be from the original's: the default, or ten times that where operators were written
        out, whose rounding errors add up over a whole model. Where such a model computes in float16 or bfloat16, the
        verbs themselves allow for these (`api.tolerance_of`).
        """
        return Tolerance(1e-4, 1e-5) if self.rounding else Tolerance(1e-5, 1e-6)
