"""`splitgraph infer`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from splitgraph.commands.many import run_models
from splitgraph.findings.exit_codes import FINDINGS
from splitgraph.inference.analysis import Analysis
from splitgraph.options import Shown
from splitgraph.reports.printing import print_document, print_result, say_error
from splitgraph.work.inferring import Inferred, infer_file
from splitgraph.work.task import Call, FileTask

if TYPE_CHECKING:
    from splitgraph.inference.why import Step


def infer(call: Call) -> int:
    """Infer models and print a report of each."""
    return run_models(call, _infer)


def _infer(task: FileTask, shown: Shown) -> int:
    inferred = infer_file(task)
    steps = None
    if shown.why is not None:
        from splitgraph.inference.why import dimensions_of

        steps = dimensions_of(inferred.analysis, shown.why)
    if shown.as_json:
        _print_document(inferred.analysis, task.name, shown.values, steps)
    elif steps is not None:
        from splitgraph.reports.pages import why_page

        print_result(why_page(task.name, steps))
    elif not (shown.quiet and inferred.analysis.ok):
        _print_page(inferred, task.name, shown.values)
    return inferred.code if inferred.analysis.ok else _say_errors(inferred.analysis, task.name)


def _print_document(analysis: Analysis, model: str, with_values: bool, steps: Sequence[Step] | None) -> None:
    from splitgraph.reports.documents.analyses import analysis_json, why_json

    document = analysis_json(analysis, model, with_values)
    print_document(document if steps is None else {**document, "why": why_json(steps)})


def _print_page(inferred: Inferred, model: str, with_values: bool) -> None:
    from splitgraph.reports.pages import analysis_page, data_lines
    from splitgraph.reports.text import line

    page = analysis_page(inferred.analysis, model, with_values=with_values, brief=sys.stdout.isatty())
    wrote = [line("wrote ", (str(inferred.written), "bold"))] if inferred.written else []
    print_result([*page, *wrote, *data_lines(inferred.data_files)])


def _say_errors(analysis: Analysis, model: str) -> int:
    from splitgraph.findings.diagnostics import findings_phrase

    errors = [d for d in analysis.diagnostics if d.severity == "error"]
    say_error(f"{model}: {findings_phrase(errors)}")
    return FINDINGS
