"""Compares two models by running them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from splitgraph import api
from splitgraph.execution.verification import Verification
from splitgraph.exit_codes import CLEAN, FINDINGS, NOT_CHECKED
from splitgraph.outcome import Verb

# The exit code of each verdict.
CODES = {"equal": CLEAN, "different": FINDINGS, "not-run": NOT_CHECKED}


@dataclass(frozen=True, slots=True)
class VerifyWork:
    """Two models to compare. keywords: of `api.verify`."""

    verb: ClassVar[Verb] = "verify"

    before: Path
    after: Path
    keywords: Mapping[str, Any] = field(default_factory=dict)


def verify_files(work: VerifyWork) -> Verification:
    """Compare two models. Raises SplitgraphError."""
    verification: Verification = api.verify(work.before, work.after, **work.keywords)
    return verification
