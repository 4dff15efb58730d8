"""HTML pages in one file: scripts, styles and data are inside, and a policy forbids every request.

The Content-Security-Policy allows the page's own script and style by their hashes, and nothing else. The data is JSON
in a block that no browser executes; scripts set every text as text.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

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
    """JSON for a script element: ASCII, and without the characters that could end the element or begin a comment."""
    text = json.dumps(data, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


@cache
def asset(name: str) -> str:
    """Return the text of a file in `assets`."""
    return files("splitgraph.report.html").joinpath("assets", *name.split("/")).read_text(encoding="utf-8")


def library_code() -> str:
    """Return the layout library without the name of its source map, which no page has."""
    lines = asset(LIBRARY).splitlines()
    return "\n".join(line for line in lines if not line.startswith(("//# sourceMappingURL", "/*! For license")))


def _joined(names: Sequence[str]) -> str:
    return "\n".join(asset(name) for name in names)


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode('ascii')}"
