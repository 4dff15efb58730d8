"""Checks one model for runtimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from splitgraph import api
from splitgraph.diagnostics import Diagnostic
from splitgraph.exit_codes import CLEAN, FINDINGS
from splitgraph.outcome import Verb
from splitgraph.runtimes.check import Examined, check_model
from splitgraph.runtimes.target import Target, find_target, targets

Found = Sequence[tuple[Target, Sequence[Diagnostic]]]


@dataclass(frozen=True, slots=True)
class CheckWork:
    """What `check` does with a model. target: names of runtimes; none for all that are known. keywords: others of
    `api.check`.
    """

    verb: ClassVar[Verb] = "check"

    model: Path
    target: Sequence[str] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Checked:
    """What is in the way of each target."""

    examined: Examined
    found: Found

    @property
    def code(self) -> int:
        """The exit code."""
        return CLEAN if all(is_clean(each) for _, each in self.found) else FINDINGS


def check_file(work: CheckWork) -> Checked:
    """Check a model for its targets. Raises SplitgraphError."""
    wanted = [find_target(each) for each in work.target] if work.target else list(targets().values())
    examined = api.examine_source(work.model, **work.keywords)
    return Checked(examined, [(each, list(check_model(examined, each))) for each in wanted])


def is_clean(found: Sequence[Diagnostic]) -> bool:
    """True where nothing is known to be in the way."""
    return all(each.severity != "error" for each in found)
