"""The page of one model."""

from __future__ import annotations

from pathlib import PurePath
from typing import Any

from splitgraph.inference.analysis import Analysis
from splitgraph.reports.html.model_data import model_data
from splitgraph.reports.html.page import html_page
from splitgraph.reports.text import printable

_SCRIPTS = (
    "elements.js",
    "model.js",
    "heap.js",
    "folding.js",
    "repeats.js",
    "bars.js",
    "boxes.js",
    "column.js",
    "layout.js",
    "frames.js",
    "draw.js",
    "stage.js",
    "lists.js",
    "searching.js",
    "panel.js",
    "changes.js",
    "page.js",
    "saving.js",
    "controls.js",
    "print.js",
    "main.js",
)
_STYLES = ("theme.css", "page.css", "panel.css", "drawing.css", "narrow.css", "print.css")


def model_page(analysis: Analysis, name: str, *, title: str | None = None) -> str:
    """Return a self-contained HTML page of an analysis. name: of the model, such as its path. title: of the page;
    by default the last part of the name.
    """
    shown = printable(title or last_part(name))
    return page_of({"title": shown, "models": [model_data(analysis, name).document]})


def last_part(name: str) -> str:
    """Return the last part of a path: the name of its file."""
    return PurePath(name).name or name


def page_of(data: dict[str, Any]) -> str:
    """Return the page with this data: of one model, or of two with what differs."""
    return html_page(data["title"], data, body="page.html", scripts=_SCRIPTS, styles=_STYLES, library=True)
