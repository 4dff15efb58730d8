"""The index page of many reports."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from splitgraph.diagnostics import SplitgraphError, diagnostic
from splitgraph.outcome import Outcome
from splitgraph.work.reporting import ReportWork

_NAME = "index.html"


def refuse_index(work: ReportWork, *, force: bool) -> None:
    """Raises SplitgraphError for a call that draws one split, and where the folder has an index page already."""
    if work.svg is not None:
        text = "--svg draws a split of one model"
        raise SplitgraphError(text, [diagnostic("SG601", text)])
    path = Path(work.output or "", _NAME)
    if os.path.lexists(path) and not force:
        text = f"{path} exists; give another folder with -o, or pass --force to overwrite it"
        raise SplitgraphError(text, [diagnostic("SG108", text, str(path))])


def write_index(folder: Path, outcomes: Sequence[Outcome], *, title: str | None) -> None:
    """Write a page with a row for each model. Raises ModelError where that fails."""
    from splitgraph.formats.atomic_write import write_text
    from splitgraph.report.html.index_page import IndexRow, index_page

    rows = []
    for outcome in sorted(outcomes, key=lambda each: each.model):
        numbers = Counter(found.severity for found in outcome.diagnostics)
        errors = [found for found in outcome.diagnostics if found.severity == "error"]
        rows.append(
            IndexRow(
                name=outcome.model,
                status=outcome.status,
                link=None if outcome.output is None else os.path.relpath(outcome.output, folder),
                before="" if outcome.opset_before is None else str(outcome.opset_before),
                splits=outcome.splits,
                errors=numbers["error"],
                warnings=numbers["warning"],
                notes=numbers["info"],
                seconds=outcome.seconds,
                message=f"{errors[0].code} {errors[0].message}" if errors else "",
            )
        )
    write_text(index_page(rows, title=title or f"{len(rows):,} models"), folder / _NAME, overwrite=True)
