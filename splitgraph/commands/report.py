"""`splitgraph report`."""

from __future__ import annotations

from pathlib import Path

import click

from splitgraph.commands.many import run_models
from splitgraph.options import Shown
from splitgraph.reports.printing import print_document, print_result, say_error, working
from splitgraph.reports.text import line
from splitgraph.work.reporting import report_file, sources_of
from splitgraph.work.task import Call, FileTask


def report(call: Call, *, after: Path | None) -> int:
    """Write a page of one model or of two, or a picture of one split; of many models a page each, and an index."""
    before = call.task.before
    if call.models and before is None and after is None:
        return run_models(call, _report)
    if call.models or before is None or after is None:
        raise click.UsageError("Give one MODEL or more, or two models with --before and --after.")
    if call.task.svg is not None:
        raise click.UsageError("--svg draws a split of one model: give MODEL instead of --before and --after.")
    return run_models(call._replace(models=[str(after)]), _report)


def _report(task: FileTask, shown: Shown) -> int:
    from splitgraph.findings.diagnostics import findings_phrase

    reported = report_file(task, working)
    drawn = [(str(source), analysis) for source, analysis in zip(sources_of(task), reported.analyses, strict=True)]
    if shown.as_json:
        from splitgraph.reports.documents.analyses import report_json

        print_document(report_json(drawn, str(reported.written)))
    elif not shown.quiet:
        print_result([line("wrote ", (str(reported.written), "bold"))])
    for source, analysis in drawn:
        if not analysis.ok:
            errors = [finding for finding in analysis.diagnostics if finding.severity == "error"]
            say_error(f"{source}: {findings_phrase(errors)}")
    return reported.code
