"""`splitgraph check`."""

from __future__ import annotations

from collections import Counter

from splitgraph.commands.many import run_models
from splitgraph.options import Shown
from splitgraph.report.pages import accepted_findings, findings_phrase, findings_table
from splitgraph.report.printing import print_document, print_result
from splitgraph.report.text import BLANK, Block, Cell, line, table
from splitgraph.runtimes.check import Examined
from splitgraph.work.checking import ByTarget, check_file, is_clean
from splitgraph.work.task import Call, FileTask


def check(call: Call) -> int:
    """Check models for targets, none for all, and print the findings for each."""
    return run_models(call, _check)


def _check(task: FileTask, shown: Shown) -> int:
    model, checked = str(task.model), check_file(task)
    if shown.as_json:
        from splitgraph.report.documents import check_json

        walked = checked.examined.walked
        print_document(check_json(model, dict(walked.opset), checked.by_target, walked.accepted))
    elif checked.code or not shown.quiet:
        accepted = accepted_findings(checked.examined.walked.accepted)
        page = _page(model, checked.examined, checked.by_target, is_table=not task.targets)
        print_result([*page, *([BLANK] if accepted else []), *accepted])
    return checked.code


def _page(model: str, examined: Examined, by_target: ByTarget, *, is_table: bool) -> list[Block]:
    if examined.errors:
        told = [*examined.errors, *examined.walked.stale]
        return [line((model, "bold"), f" · {findings_phrase(examined.errors)}"), findings_table(told)]
    if is_table:
        return [line((model, "bold"), f" · opset {examined.opset}"), _table(by_target)]
    blocks: list[Block] = []
    for target, findings in by_target:
        if is_clean(findings):
            blocks.append(line((target.label, "bold"), f" · nothing is known to be in the way of {model}"))
        else:
            blocks.append(line((target.label, "bold"), f" · {findings_phrase(findings)} in {model}"))
        blocks += [findings_table(findings)] if findings else []
        if not is_clean(findings):
            blocks.append(line("try  ", (f"splitgraph convert {model} --target {target.key}", "bold")))
    return blocks


_COLUMNS = {"SG701": "refused", "SG702": "wrong", "SG703": "fatal", "SG704": "too new", "SG705": "not known"}


def _table(by_target: ByTarget) -> Block:
    """Return a table with one row for each target: how many nodes it does not read, and why."""
    rows: list[list[str | Cell]] = []
    for target, findings in by_target:
        counts = Counter(finding.code for finding in findings)
        verdict = Cell(("reads its splits",), "green") if is_clean(findings) else Cell(("does not",), "bold red")
        if not target.measured and is_clean(findings):
            verdict = Cell(("not known",), "yellow")
        rows.append([target.label, verdict, *(str(counts[code] or "") for code in _COLUMNS), target.key])
    headings = ("target", "", *_COLUMNS.values(), "--target")
    return table(headings, ("bold", *("" for _ in headings[1:])), rows)
