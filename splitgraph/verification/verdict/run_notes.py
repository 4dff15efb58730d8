"""Say beside a verdict what an engine ran, and why it cannot be asked."""

from __future__ import annotations

from collections.abc import Iterator

from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.verification.engines.engine_process import EngineRun
from splitgraph.verification.help_texts import version_of
from splitgraph.verification.models.model_files import newer_operators
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.verdict.judge import openvino_fault
from splitgraph.verification.verdict.region_notes import MOST_NAMED


def what_was_run(engine: str, run: EngineRun, *pair: ComparedModel) -> Iterator[Diagnostic]:
    """Yield notes on what was run, where that is not the model as it is written. pair: both models."""
    for model, opset in sorted(run.opsets.items()):
        which, name = ("first", "second")[model], engine.split("+")[-1 if model else 0]
        compared = pair[model]
        lacking = newer_operators(compared.analysis.model, opset)
        more = f" and {len(lacking) - MOST_NAMED} more" if len(lacking) > MOST_NAMED else ""
        lacks = f"has no {', '.join(lacking[:MOST_NAMED])}{more}" if lacking else "does not read its opset"
        text = (
            f"the {which} model as written was not run: {name} {version_of(name)} {lacks}; it ran as opset "
            f"{opset}, at which its operators mean the same"
        )
        yield diagnostic("SG511", text, severity="info")
    if pair[0].has_half_weights != pair[1].has_half_weights:
        halved, exact = ("first", "second") if pair[0].has_half_weights else ("second", "first")
        text = f"the {halved} model stores its weights as float16, so those of the {exact} one were rounded to float16"
        yield diagnostic("SG511", text, severity="info")


def known_fault(engine: str, *pair: ComparedModel) -> str | None:
    """Return a known fault of OpenVINO that affects one of the models; None without one."""
    names = engine.split("+")
    for subject, name in ((pair[0], names[0]), (pair[1], names[-1])):
        fault = openvino_fault(subject.analysis) if name == "openvino" else None
        if fault is not None:
            return fault
    return None


def idle_providers(run: EngineRun) -> Diagnostic | None:
    """Return a warning about providers that were asked for and ran nothing."""
    if not run.idle:
        return None
    names, others = run.idle, [name for name in run.providers if name not in run.idle]
    text = f"{' and '.join(names)} ran no node of a model; {' and '.join(others)} did"
    return diagnostic("SG510", text, severity="warning")
