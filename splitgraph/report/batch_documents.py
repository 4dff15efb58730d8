"""The JSON documents of many models; every name here is part of the contract, as in `documents`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

import splitgraph
from splitgraph.report.documents import Document

if TYPE_CHECKING:
    from splitgraph.outcome import Outcome


def batch_json(verb: str, outcomes: Sequence[Outcome]) -> Document:
    """What a command prints of many models with `--json`: how many ended with each status, and each of them."""
    numbers = Counter(outcome.status for outcome in outcomes)
    return {
        "splitgraph": splitgraph.__version__,
        "verb": verb,
        "ok": all(outcome.ok for outcome in outcomes),
        "counts": dict(sorted(numbers.items())),
        "models": [outcome.document() for outcome in outcomes],
    }


def outcome_json(outcome: Outcome) -> Document:
    """One line of a report of many models."""
    return {"splitgraph": splitgraph.__version__, **outcome.document()}
