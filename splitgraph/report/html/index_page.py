"""The index page of many models: one row for each, with sortable columns, a search, and counts by status."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

import splitgraph
from splitgraph.report.html.page import html_page
from splitgraph.report.text import printable

_SCRIPTS = ("elements.js", "table.js", "index.js")
_STYLES = ("theme.css", "index.css")
# How each status is coloured; any other status is neutral.
_TONES = {
    "clean": "good",
    "converted": "good",
    "equal": "good",
    "there": "plain",
    "beyond": "plain",
    "findings": "warning",
    "refused": "warning",
    "not-verified": "warning",
    "not-run": "warning",
    "different": "bad",
    "failed": "bad",
}


@dataclass(frozen=True, slots=True)
class IndexRow:
    """One model on the index page.

    name: of the model, such as its path. status: one word, such as "converted", "refused" or "failed". link: the path
    of its own page, relative to the index page; None without one. before, after: the opsets, as text; "" where there is
    none. nodes, splits: their numbers, None if unknown. errors, warnings, notes: the number of findings of each
    severity. seconds: how long the model took, None if unknown. message: why, in a sentence; "" for none.
    """

    name: str
    status: str
    link: str | None = None
    before: str = ""
    after: str = ""
    nodes: int | None = None
    splits: int | None = None
    errors: int = 0
    warnings: int = 0
    notes: int = 0
    seconds: float | None = None
    message: str = ""


def index_page(rows: Iterable[IndexRow], *, title: str) -> str:
    """Return a self-contained HTML page that lists models."""
    data = {
        "title": printable(title),
        "splitgraph": splitgraph.__version__,
        "tones": _TONES,
        "rows": [_row(row) for row in rows],
    }
    return html_page(printable(title), data, body="index.html", scripts=_SCRIPTS, styles=_STYLES)


def _row(row: IndexRow) -> list[Any]:
    # Every link is a path: no name of a file becomes a scheme such as javascript.
    link = None if row.link is None else f"./{quote(os.fsencode(row.link.replace(chr(92), '/')), safe='/')}"
    seconds = None if row.seconds is None else round(row.seconds, 3)
    opsets = printable(row.before), printable(row.after)
    numbers = row.nodes, row.splits, row.errors, row.warnings, row.notes
    return [printable(row.name), printable(row.status), *opsets, *numbers, seconds, printable(row.message), link]
