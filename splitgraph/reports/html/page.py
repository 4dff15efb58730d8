"""The frame of every page, and the page that lists many models."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any
from urllib.parse import quote

import splitgraph
from splitgraph.reports.text import printable

# Pages in one file ----------------------------------------------------------------------------------------------------


LIBRARY = "vendor/dagre-3.1.3.min.js"
_LICENCE = "vendor/dagre-3.1.3.LICENSE"

_POLICY = (
    "default-src 'none'; script-src '{script}'; style-src '{style}'; img-src data:; "
    "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
_PAGE = """\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="splitgraph">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
{body}
<script type="application/json" id="data">{data}</script>
<script>{script}</script>
</body>
</html>
"""


def html_page(
    title: str, data: Any, *, body: str, scripts: Sequence[str], styles: Sequence[str], library: bool = False
) -> str:
    """Return a page as one text. body, scripts, styles: names of assets, which are joined. library: add the layout
    library.
    """
    parts = [f"(() => {{\n{_joined(scripts)}\n}})();"]
    if library:
        parts = [f"/*\n{asset(_LICENCE)}*/\n{library_code()}", *parts]
    script, style = "\n".join(parts), _joined(styles)
    policy = _POLICY.format(script=_hash(script), style=_hash(style))
    return _PAGE.format(
        policy=html.escape(policy, quote=False),
        title=html.escape(title),
        style=style,
        body=asset(body),
        data=json_in_html(data),
        script=script,
    )


def json_in_html(data: Any) -> str:
    """Return JSON for a script element: ASCII, and without the characters that could end the element or begin a
    comment.
    """
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def asset(name: str) -> str:
    """Return the text of a file in `assets`."""
    return files("splitgraph.reports.html").joinpath("assets", *name.split("/")).read_text(encoding="utf-8")


def library_code() -> str:
    """Return the layout library without the name of its source map, which no page has."""
    lines = asset(LIBRARY).splitlines()
    return "\n".join(line for line in lines if not line.startswith(("//# sourceMappingURL", "/*! For license")))


def _joined(names: Sequence[str]) -> str:
    return "\n".join(asset(name) for name in names)


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"


# The index of many models ---------------------------------------------------------------------------------------------


_INDEX_SCRIPTS = ("elements.js", "table.js", "index.js")
_INDEX_STYLES = ("theme.css", "index.css")
# How each status is coloured; any other status is neutral.
_TONES = {
    "clean": "good",
    "converted": "good",
    "equal": "good",
    "unchanged": "plain",
    "kept": "plain",
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
    return html_page(printable(title), data, body="index.html", scripts=_INDEX_SCRIPTS, styles=_INDEX_STYLES)


def _row(row: IndexRow) -> list[Any]:
    # Every link is a path: no name of a file becomes a scheme such as javascript.
    link = None if row.link is None else f"./{quote(os.fsencode(row.link.replace(chr(92), '/')), safe='/')}"
    seconds = None if row.seconds is None else round(row.seconds, 3)
    opsets = printable(row.before), printable(row.after)
    numbers = row.nodes, row.splits, row.errors, row.warnings, row.notes
    return [printable(row.name), printable(row.status), *opsets, *numbers, seconds, printable(row.message), link]
