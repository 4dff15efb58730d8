"""`splitgraph report`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from splitgraph.commands.many import run_models
from splitgraph.report.layout import line
from splitgraph.report.printing import print_document, print_result, say_error, working
from splitgraph.work.reporting import Reported, ReportWork, report_file


def report(
    models: Sequence[str],
    *,
    before: Path | None,
    after: Path | None,
    output: str,
    force: bool,
    svg: str | None,
    title: str | None,
    as_json: bool,
    quiet: bool,
    many: Mapping[str, Any],
) -> int:
    """Write a page of one model or of two, or a picture of one split; of many models a page each, and an index."""
    one = partial(_report, as_json=as_json, quiet=quiet)
    work = ReportWork(Path(), output, force, before, svg, title)
    if models and before is None and after is None:
        return run_models(models, work, one, many, as_json=as_json, quiet=quiet)
    if models or before is None or after is None:
        raise click.UsageError("Give one MODEL or more, or two models with --before and --after.")
    if svg is not None:
        raise click.UsageError("--svg draws a split of one model: give MODEL instead of --before and --after.")
    return run_models([str(after)], work, one, many, as_json=as_json, quiet=quiet)


def _report(work: ReportWork, *, as_json: bool, quiet: bool) -> int:
    done = report_file(work, working)
    if as_json:
        from splitgraph.report.documents import report_json

        models = [(str(source), analysis) for source, analysis in zip(work.sources, done.analyses, strict=True)]
        print_document(report_json(models, str(done.written)))
    elif not quiet:
        print_result([line("wrote ", (str(done.written), "bold"))])
    _say_errors(done, work)
    return done.code


def _say_errors(done: Reported, work: ReportWork) -> None:
    from splitgraph.report.pages import findings_phrase

    for source, analysis in zip(work.sources, done.analyses, strict=True):
        if not analysis.ok:
            errors = [each for each in analysis.diagnostics if each.severity == "error"]
            say_error(f"{source}: {findings_phrase(errors)}")
