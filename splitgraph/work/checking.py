"""Check one model for runtimes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from splitgraph import api
from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.findings.exit_codes import CLEAN, FINDINGS
from splitgraph.runtimes.check import Examined, check_model
from splitgraph.runtimes.target import Target, find_target, targets
from splitgraph.work.task import FileTask

Found = Sequence[tuple[Target, Sequence[Diagnostic]]]


@dataclass(frozen=True, slots=True)
class Checked:
    """What is in the way of each target."""

    examined: Examined
    found: Found

    @property
    def code(self) -> int:
        """The exit code."""
        return CLEAN if all(is_clean(each) for _, each in self.found) else FINDINGS


def check_file(task: FileTask) -> Checked:
    """Check a model for its targets. Raises SplitgraphError."""
    wanted = [find_target(each) for each in task.targets] if task.targets else list(targets().values())
    examined = api.examined_model(task.model, task.leeway)
    return Checked(examined, [(each, list(check_model(examined, each))) for each in wanted])


def is_clean(found: Sequence[Diagnostic]) -> bool:
    """Return True if nothing is known to be in the way."""
    return all(each.severity != "error" for each in found)
