"""The documents of `check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

import splitgraph
from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.reports.documents.parts import Document, diagnostics_json
from splitgraph.reports.documents.skeletons import command_document

if TYPE_CHECKING:
    from splitgraph.runtimes.advice import Converted
    from splitgraph.runtimes.check import TargetCheck
    from splitgraph.runtimes.runners.result import RuntimeRun
    from splitgraph.runtimes.target import Target


def check_json(
    model_name: str,
    opset: Mapping[str, int],
    checks: Iterable[TargetCheck],
    converted: Mapping[str, Converted],
    advice: Callable[[TargetCheck], str],
    accepted: Iterable[Diagnostic] = (),
) -> Document:
    """Return what `check --json` prints: for each target whether it runs the model, and what is in the way.

    converted: what became of the model after its conversion, by target. advice: what to do about a check. accepted:
    errors of the model that the user accepts.
    """
    checked = [
        {
            "target": check.target.key,
            "title": check.target.title,
            "version": check.target.version,
            "asked": check.target.asked or None,
            "measured": check.target.operators.measured or check.target.measured,
            "ok": not check.has_errors,
            "runs": check.runs,
            "after_conversion": converted[check.target.key].runs if check.target.key in converted else None,
            "advice": advice(check),
            "ran": run_json(check.ran),
            "counts": dict(Counter(node.answer for node in check.nodes)),
            "nodes": [
                {"node": node.node, "operator": node.operator, "answer": node.answer, "why": node.why}
                for node in check.nodes
                if node.answer != "reads"
            ],
            "diagnostics": diagnostics_json(check.findings),
        }
        for check in checks
    ]
    return command_document(
        "check",
        model=model_name,
        opset=dict(opset),
        ok=all(result["ok"] for result in checked),
        targets=checked,
        accepted=diagnostics_json(accepted),
    )


def run_json(ran: RuntimeRun | None) -> Document | None:
    """Return what became of a model in a runtime itself; None if it was not to be run."""
    if ran is None:
        return None
    document = {**asdict(ran), "told": ran.told}
    del document["first_difference"]
    return document


def targets_json(targets: Iterable[Target]) -> Document:
    """Return what `check --targets --json` prints: each target, as `--target` takes it."""
    from splitgraph.runtimes.runners.interpreters import KINDS

    known = [
        {
            "target": target.key,
            "title": target.title,
            "version": target.version,
            "measured": target.operators.measured or target.measured,
            "newest_opset": target.newest_opset,
            "newest_ir_version": target.newest_ir_version,
            "has_runner": target.name in KINDS,
        }
        for target in targets
    ]
    return {"splitgraph": splitgraph.__version__, "ok": True, "targets": known}
