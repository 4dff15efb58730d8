"""The findings of `check` about a model, as Python gets them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from splitgraph.findings.diagnostics import Diagnostic, findings_phrase
from splitgraph.runtimes.advice import Converted, advice
from splitgraph.runtimes.check import Examined, NodeAnswer, TargetCheck

if TYPE_CHECKING:
    from splitgraph.runtimes.runners.result import FirstNode, RunAnswer, RuntimeRun


class TargetFindings(tuple[Diagnostic, ...]):
    """The findings about a model for one target, or for several: as `check` returns them. `Diagnostic.target` says
    which finding is whose; it is None for what is wrong with the model itself.

    nodes: the answer to each node, in graph order, target by target. runs: True if every target is known to read every
    node, or ran the model here; False if something is in the way; None if neither is known. in_runtimes: what became of
    the model in each runtime, if it was to be run.
    """

    nodes: tuple[NodeAnswer, ...]
    runs: bool | None
    in_runtimes: tuple[RuntimeRun, ...]
    _convert: Callable[[TargetCheck], Converted]
    _checked: tuple[str, Examined, Sequence[TargetCheck]]

    def __new__(
        cls, name: str, examined: Examined, checks: Sequence[TargetCheck], convert: Callable[[TargetCheck], Converted]
    ) -> TargetFindings:
        """Return the findings of checks, each once. name: of the model's file, "" for a model in memory. convert: says
        what became of the model after its conversion for the target of a check.
        """
        made = super().__new__(cls, dict.fromkeys(finding for check in checks for finding in check.findings))
        made.nodes = tuple(node for check in checks for node in check.nodes)
        made.runs = run_all(check.runs for check in checks)
        made.in_runtimes = tuple(check.ran for check in checks if check.ran is not None)
        made._convert = convert
        made._checked = name, examined, checks
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        """Return what another process makes the findings of; it converts the model itself, when that is asked for."""
        return type(self), (*self._checked, self._convert)

    def __repr__(self) -> str:
        """Return what a notebook shows: the runtimes, whether they run the model, and how much was found."""
        targets = ", ".join(check.target.key for check in self._checked[2])
        answer = {True: "run", False: "do not run", None: "not known"}[self.runs]
        return f"<TargetFindings: {targets}: {answer}, {findings_phrase(self)}>"

    @cached_property
    def after_conversion(self) -> bool | None:
        """Whether the model runs after `convert` with the target, as `runs`. It is converted when this is asked for."""
        return run_all(self._convert(check).runs for check in self._checked[2])

    @cached_property
    def advice(self) -> tuple[str, ...]:
        """What to do, in one line for each target that does not run the model or is not known to. The model is
        converted for those with something in the way when this is asked for.
        """
        name, examined, checks = self._checked
        lines = (
            advice(examined, check, self._convert(check) if check.is_to_be_converted else None, name)
            for check in checks
        )
        return tuple(filter(None, lines))

    @property
    def ran(self) -> RunAnswer | None:
        """What became of the model in the runtime itself: "equal" to what ONNX Runtime gives, "different", "refused",
        "not-installed", or "not-run" if nothing could be compared; None if it was not to be run. Of several targets,
        the first one that is not "equal" counts.
        """
        answers = [run.answer for run in self.in_runtimes]
        return next((answer for answer in answers if answer != "equal"), answers[0] if answers else None)

    @property
    def first_node(self) -> FirstNode | None:
        """The first node that a runtime refuses or computes wrong; None if the model ran, or it was not found."""
        return next((run.first_node for run in self.in_runtimes if run.first_node is not None), None)

    def document(self) -> dict[str, Any]:
        """Return what `check --json` prints, as docs/reference/schemas/check.schema.json describes it. The model is
        converted for those targets that have something in its way.
        """
        from splitgraph.reports.documents.targets import check_json

        name, examined, checks = self._checked
        converted = {check.target.key: self._convert(check) for check in checks if check.is_to_be_converted}

        def advised(check: TargetCheck) -> str:
            return advice(examined, check, converted.get(check.target.key), name)

        return check_json(name, examined.walked.opset, checks, converted, advised, examined.walked.accepted)


def run_all(answers: Iterable[bool | None]) -> bool | None:
    """Return False if one of the answers is False, else None if one is None, else True."""
    given = set(answers)
    return False if False in given else None if None in given else True
