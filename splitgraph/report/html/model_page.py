"""The page of one model, or of a model before and after a rewrite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from splitgraph.inference.analysis import Analysis
from splitgraph.report.html.difference_data import difference_data, is_listed
from splitgraph.report.html.model_data import model_data
from splitgraph.report.html.page import html_page
from splitgraph.report.text import printable

if TYPE_CHECKING:
    from splitgraph.conversion.rewrite import Change
    from splitgraph.differences import ModelDifference

_SCRIPTS = (
    "elements.js",
    "model.js",
    "heap.js",
    "folding.js",
    "repeats.js",
    "bars.js",
    "layout.js",
    "frames.js",
    "draw.js",
    "stage.js",
    "lists.js",
    "searching.js",
    "panel.js",
    "changes.js",
    "page.js",
    "controls.js",
    "print.js",
    "main.js",
)
_STYLES = ("theme.css", "page.css", "drawing.css", "print.css")


def model_page(analysis: Analysis, name: str, *, title: str | None = None) -> str:
    """A self-contained HTML page of an analysis. name: of the model, such as its path. title: of the page; by default
    the last part of the name.
    """
    shown = printable(title or _last_part(name))
    return _page({"title": shown, "models": [model_data(analysis, name).document]})


def changes_page(
    before: Analysis,
    after: Analysis,
    difference: ModelDifference,
    names: tuple[str, str],
    *,
    changes: Sequence[Change] = (),
    title: str | None = None,
) -> str:
    """A self-contained HTML page of two models, with what differs between them.

    before, after: the analyses. difference: of the two models, as `splitgraph.diff` returns it. names: of the models,
    such as their paths. changes: of the rewrite that made the second model, `Rewrite.changes`, which have the reason of
    each change. title: of the page; by default the last parts of the names.
    """
    forms = [(each.before, each.after) for each in difference.nodes if is_listed(each)]
    data = [
        model_data(analysis, name, [form.location for pair in forms if (form := pair[side]) is not None])
        for side, (analysis, name) in enumerate(((before, names[0]), (after, names[1])))
    ]
    shown = printable(title or " → ".join(map(_last_part, names)))
    found = difference_data(difference, (data[0].places, data[1].places), changes)
    return _page({"title": shown, "models": [each.document for each in data], **found})


def _last_part(name: str) -> str:
    return PurePath(name).name or name


def _page(data: dict[str, Any]) -> str:
    return html_page(data["title"], data, body="page.html", scripts=_SCRIPTS, styles=_STYLES, library=True)
