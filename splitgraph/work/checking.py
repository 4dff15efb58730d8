"""Check one model for runtimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from splitgraph.checks import Converted, after_conversion, examined_model
from splitgraph.findings.exit_codes import CLEAN, FINDINGS
from splitgraph.options import Leeway
from splitgraph.runtimes.check import Examined, TargetCheck, check_target
from splitgraph.runtimes.target import find_target, targets
from splitgraph.work.task import FileTask


@dataclass(frozen=True, slots=True)
class Checked:
    """A model checked for each target. compares_all: for all of them, because none was named."""

    examined: Examined
    checks: Sequence[TargetCheck]
    compares_all: bool

    def converted(self, leeway: Leeway) -> Mapping[str, Converted]:
        """Convert the model for each target if all are compared, and return what became of it, by the key of the
        target.
        """
        if not self.compares_all or self.examined.errors:
            return {}
        return {check.target.key: after_conversion(self.examined, check, leeway) for check in self.checks}

    @property
    def code(self) -> int:
        """Return the exit code."""
        return FINDINGS if any(check.has_errors for check in self.checks) else CLEAN


def check_file(task: FileTask) -> Checked:
    """Check a model for its targets, or for all that read its format if it has none. Raises SplitgraphError."""
    named = [find_target(target) for target in task.targets]
    examined = examined_model(task.model, task.leeway, named)
    wanted = named or [target for target in targets().values() if examined.is_read_by(target)]
    return Checked(examined, [check_target(examined, target) for target in wanted], not task.targets)
