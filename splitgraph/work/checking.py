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

ByTarget = Sequence[tuple[Target, Sequence[Diagnostic]]]


@dataclass(frozen=True, slots=True)
class Checked:
    """The findings for each target."""

    examined: Examined
    by_target: ByTarget

    @property
    def code(self) -> int:
        """Return the exit code."""
        return CLEAN if all(is_clean(findings) for _, findings in self.by_target) else FINDINGS


def check_file(task: FileTask) -> Checked:
    """Check a model for its targets. Raises SplitgraphError."""
    wanted = [find_target(target) for target in task.targets] if task.targets else list(targets().values())
    examined = api.examined_model(task.model, task.leeway)
    return Checked(examined, [(target, list(check_model(examined, target))) for target in wanted])


def is_clean(findings: Sequence[Diagnostic]) -> bool:
    """Return True if nothing is known to be in the way."""
    return all(finding.severity != "error" for finding in findings)
