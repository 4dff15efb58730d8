"""Write the generated pages of docs/reference/: `python docs/make_reference.py`.

They are made of click's parameters, the JSON Schemas, and the docstrings of the public names, and are the same with
every version of Python, click and onnx that splitgraph supports.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

import reference_api
import reference_command_line
from reference_json import DOCUMENT_PAGES, documents_page, json_page, parts_page

FOLDER = Path(__file__).with_name("reference")
PAGES: Mapping[str, Callable[[], str]] = {
    "api-analyses.md": reference_api.analyses_page,
    "api-comparisons.md": reference_api.comparisons_page,
    "api-errors.md": reference_api.errors_page,
    "api-reading.md": reference_api.reading_page,
    "api-rewrites.md": reference_api.rewrites_page,
    "api-rewriting.md": reference_api.rewriting_page,
    "api-targets.md": reference_api.targets_page,
    "api.md": reference_api.api_page,
    "command-line-reading.md": reference_command_line.reading_page,
    "command-line-rewriting.md": reference_command_line.rewriting_page,
    "command-line.md": reference_command_line.command_line_page,
    **{page: partial(documents_page, page) for page in DOCUMENT_PAGES},
    "json-parts.md": parts_page,
    "json.md": json_page,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")
