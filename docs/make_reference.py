"""Write the generated pages of docs/reference/: `python docs/make_reference.py`.

They are made of click's parameters, the JSON Schemas, and the docstrings of the public names, and are the same with
every version of Python, click and onnx that splitgraph supports.
"""

from __future__ import annotations

from pathlib import Path

import reference_api
import reference_command_line
from reference_json import commands_page, files_page, json_page, parts_page

FOLDER = Path(__file__).with_name("reference")
PAGES = {
    "api-reading.md": reference_api.reading_page,
    "api-results.md": reference_api.results_page,
    "api-rewriting.md": reference_api.rewriting_page,
    "api.md": reference_api.api_page,
    "command-line-reading.md": reference_command_line.reading_page,
    "command-line-rewriting.md": reference_command_line.rewriting_page,
    "command-line.md": reference_command_line.command_line_page,
    "json-commands.md": commands_page,
    "json-files.md": files_page,
    "json-parts.md": parts_page,
    "json.md": json_page,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (FOLDER / name).write_text(page(), encoding="utf-8")
