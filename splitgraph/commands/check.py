"""`splitgraph check`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from splitgraph import api
from splitgraph.diagnostics import Diagnostic
from splitgraph.exit_codes import CLEAN, FINDINGS
from splitgraph.report.layout import BLANK, Block, Cell, line, table
from splitgraph.report.pages import accepted_findings, findings_phrase, findings_table
from splitgraph.report.printing import print_document, print_result
from splitgraph.runtimes.check import Examined, check_model
from splitgraph.runtimes.target import Target, find_target, targets

Checked = list[tuple[Target, list[Diagnostic]]]


def check(
    model: Path,
    *,
    target: Sequence[str],
    all_targets: bool,
    accept: Sequence[str],
    assume_defaults: bool,
    as_json: bool,
) -> int:
    """Check a model for targets and print what is in the way of each."""
    wanted = list(targets().values()) if all_targets else [find_target(each) for each in target]
    examined = api.examine_source(model, accept=accept, assume_defaults=assume_defaults)
    found = [(each, list(check_model(examined, each))) for each in wanted]
    if as_json:
        from splitgraph.report.documents import check_json

        print_document(check_json(str(model), dict(examined.walked.opset), found, examined.walked.accepted))
    else:
        page = _page(str(model), examined, found, is_table=all_targets)
        accepted = accepted_findings(examined.walked.accepted)
        print_result([*page, *([BLANK] if accepted else []), *accepted])
    return CLEAN if all(_is_clean(each) for _, each in found) else FINDINGS


def _is_clean(found: Sequence[Diagnostic]) -> bool:
    return all(each.severity != "error" for each in found)


def _page(model: str, examined: Examined, found: Checked, *, is_table: bool) -> list[Block]:
    if examined.errors:
        told = [*examined.errors, *examined.walked.stale]
        return [line((model, "bold"), f" · {findings_phrase(examined.errors)}"), findings_table(told)]
    if is_table:
        return [line((model, "bold"), f" · opset {examined.opset}"), _table(found)]
    blocks: list[Block] = []
    for target, each in found:
        if _is_clean(each):
            blocks.append(line((target.label, "bold"), f" · nothing is known to be in the way of {model}"))
        else:
            blocks.append(line((target.label, "bold"), f" · {findings_phrase(each)} in {model}"))
        blocks += [findings_table(each)] if each else []
        if not _is_clean(each):
            blocks.append(line("try  ", (f"splitgraph convert {model} --target {target.key}", "bold")))
    return blocks


_COLUMNS = {"SG701": "refused", "SG702": "wrong", "SG703": "fatal", "SG704": "too new", "SG705": "not known"}


def _table(found: Checked) -> Block:
    """One row for each target: how many nodes are in the way, and how."""
    rows: list[list[str | Cell]] = []
    for target, each in found:
        counts = Counter(finding.code for finding in each)
        verdict = Cell(("reads its splits",), "green") if _is_clean(each) else Cell(("does not",), "bold red")
        if not target.measured and _is_clean(each):
            verdict = Cell(("not known",), "yellow")
        rows.append([target.label, verdict, *(str(counts[code] or "") for code in _COLUMNS), target.key])
    headings = ("target", "", *_COLUMNS.values(), "--target")
    return table(headings, ("bold", *("" for _ in headings[1:])), rows)
