"""The documents about many models: one of all of them, and a line for each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import fields
from typing import TYPE_CHECKING

import splitgraph
from splitgraph.reports.documents.parts import Document, diagnostics_json

if TYPE_CHECKING:
    from splitgraph.findings.outcome import Outcome


def batch_json(verb: str, outcomes: Sequence[Outcome]) -> Document:
    """Return what a command prints of many models with `--json`: how many ended with each status, and each of them."""
    numbers = Counter(outcome.status for outcome in outcomes)
    return {
        "splitgraph": splitgraph.__version__,
        "verb": verb,
        "ok": all(outcome.ok for outcome in outcomes),
        "counts": dict(sorted(numbers.items())),
        "models": [_outcome(outcome) for outcome in outcomes],
    }


def outcome_json(outcome: Outcome) -> Document:
    """Return one line of a report of many models."""
    return {"splitgraph": splitgraph.__version__, **_outcome(outcome)}


def _outcome(outcome: Outcome) -> Document:
    # In the document of many models, the version stands once, at the top.
    values = {field.name: getattr(outcome, field.name) for field in fields(outcome)}
    return {
        **values,
        "diagnostics": diagnostics_json(outcome.diagnostics),
        "accepted": diagnostics_json(outcome.accepted),
        "assumed_defaults": list(outcome.assumed_defaults),
        "data_files": dict(outcome.data_files),
        "seconds": round(outcome.seconds, 4),
        "files": dict(outcome.files),
    }
