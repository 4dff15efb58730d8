"""Check one model for runtimes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial

from splitgraph.checks import after_conversion, examined_model, prepared_for, run_target, with_folded
from splitgraph.findings.exit_codes import CLEAN, FINDINGS, NOT_CHECKED
from splitgraph.formats import LoadedModel, open_model
from splitgraph.options import Leeway
from splitgraph.runtimes.advice import Converted, advice
from splitgraph.runtimes.check import Examined, TargetCheck, check_target, with_run
from splitgraph.runtimes.target import Target, find_target, targets
from splitgraph.work.task import FileTask


@dataclass(frozen=True, slots=True)
class Checked:
    """A model checked for each target. compares_all: for all of them, because none was named."""

    examined: Examined
    checks: Sequence[TargetCheck]
    compares_all: bool

    def converted(self, leeway: Leeway) -> Mapping[str, Converted]:
        """Convert the model for each target if all are compared, and return what became of it, by the key of the
        target. For a target that was named it is converted only if something is in its way, so that nobody is told to
        convert what is refused.
        """
        if self.examined.errors:
            return {}
        prepare = cache(partial(prepared_for, self.examined, leeway))
        return {
            check.target.key: after_conversion(self.examined, check, leeway, prepare())
            for check in self.checks
            if self.compares_all or check.is_to_be_converted
        }

    def advice(self, check: TargetCheck, converted: Mapping[str, Converted], model: str) -> str:
        """Return what to do about one of the checks, as `advice.advice`."""
        return advice(self.examined, check, converted.get(check.target.key), model)

    @property
    def code(self) -> int:
        """Return the exit code."""
        if any(check.has_errors for check in self.checks):
            return FINDINGS
        is_open = any(check.ran is not None and check.ran.answer != "equal" for check in self.checks)
        return NOT_CHECKED if is_open else CLEAN


def check_file(task: FileTask) -> Checked:
    """Check a model for its targets, or for all that read its format if it has none. Raises SplitgraphError."""
    named = [find_target(target) for target in task.targets]
    opened = open_model(task.model, weights="leave")
    examined = examined_model(opened, task.leeway, named)
    wanted = named or [target for target in targets().values() if examined.is_read_by(target)]
    checks = [_checked(opened, examined, target, task) for target in wanted]
    if named:
        prepare = cache(partial(prepared_for, examined, task.leeway))
        checks = [with_folded(check, examined, prepare) for check in checks]
    return Checked(examined, checks, not task.targets)


def _checked(opened: LoadedModel, examined: Examined, target: Target, task: FileTask) -> TargetCheck:
    """Check a model for one target, and run it there if the task says so. A model with errors is not run."""
    if not task.run or examined.errors:
        return check_target(examined, target)
    target, ran = run_target(opened, target, task.running)
    return with_run(check_target(examined, target), ran)
