"""Check one model for runtimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from splitgraph import api
from splitgraph.findings.exit_codes import CLEAN, FINDINGS
from splitgraph.runtimes.check import Examined, TargetCheck, check_target
from splitgraph.runtimes.target import find_target, targets
from splitgraph.work.task import FileTask


@dataclass(frozen=True, slots=True)
class Checked:
    """A model checked for each target. converted: what became of the model after its conversion for a target, by the
    key of the target, where all targets are compared.
    """

    examined: Examined
    checks: Sequence[TargetCheck]
    converted: Mapping[str, api.Converted]

    @property
    def code(self) -> int:
        """Return the exit code."""
        return FINDINGS if any(check.has_errors for check in self.checks) else CLEAN


def check_file(task: FileTask) -> Checked:
    """Check a model for its targets; for all that read its format, it is also converted for each. Raises
    SplitgraphError.
    """
    named = [find_target(target) for target in task.targets]
    examined = api.examined_model(task.model, task.leeway, named)
    wanted = named or [target for target in targets().values() if examined.is_read_by(target)]
    checks = [check_target(examined, target) for target in wanted]
    converted = {}
    if not task.targets and not examined.errors:
        converted = {check.target.key: api.after_conversion(examined, check, task.leeway) for check in checks}
    return Checked(examined, checks, converted)
