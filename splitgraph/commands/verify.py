"""`splitgraph verify`."""

from __future__ import annotations

import click

from splitgraph import open_models
from splitgraph.checks import verify_in
from splitgraph.commands.many import run_models
from splitgraph.findings.exit_codes import CLEAN
from splitgraph.findings.outcome import CODES
from splitgraph.options import Shown
from splitgraph.reports.printing import print_document, print_result, working
from splitgraph.work.task import Call, FileTask


def verify(call: Call, *, pairs: bool) -> int:
    """Compare two models by running them, one model in two runtimes, or the models of two folders."""
    if not pairs:
        if any(call.many):
            raise click.UsageError("The options for many models need --pairs and two folders.")
        return _verify(call.task, call.shown)
    return run_models(call._replace(models=[str(call.task.model)]), _verify, str(call.task.after))


def _verify(task: FileTask, shown: Shown) -> int:
    with working("running the model in both runtimes" if task.targets else "running both models"):
        if task.targets:
            verification = verify_in(task.model, task.targets, task.running)
        else:
            assert task.after is not None
            verification = open_models.compared(task.model, task.after, task.running)
    code = CODES.get(verification.verdict, CLEAN)
    if shown.as_json:
        from splitgraph.reports.documents.comparisons import verification_json

        print_document(verification_json(verification))
    elif code or not shown.quiet:
        from splitgraph.reports.pages import verification_page

        print_result(verification_page(verification))
    return code
