"""What a rewrite gives back: the new model and the list of its changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

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


@dataclass(frozen=True, slots=True)
class Rewrite:
    """What `upgrade`, `downgrade` and `convert` give back.

    model: of the kind that went in, converted; the caller's model is unchanged. changes: every node that was rewritten.
    diagnostics: warnings and notes (a blocker raises ConversionError instead). verification: None unless it was asked
    for. from_opset, to_opset: imported version of each domain, before and after.
    """

    model: Any
    changes: tuple[Change, ...]
    diagnostics: tuple[Diagnostic, ...] = ()
    verification: Verification | None = None
    from_opset: Mapping[str, int] = field(default_factory=dict)
    to_opset: Mapping[str, int] = field(default_factory=dict)
