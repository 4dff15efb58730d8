"""What is generated from the code is up to date."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import splitgraph
from splitgraph.findings.diagnostics import CODES
from splitgraph.model.schemas.table import newest_in_table

DOCS = Path(__file__).parents[2] / "docs"


def maker(name: str) -> Any:
    """A script of docs/ as a module."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_page_of_targets_is_up_to_date() -> None:
    written = (DOCS / "targets.md").read_text(encoding="utf-8")
    assert written == maker("make_targets").targets_page(), "run: python docs/make_targets.py"
    assert all(f"`{target.key}`" in written for target in splitgraph.targets().values())


def test_the_page_of_operators_is_up_to_date() -> None:
    written = (DOCS / "target-operators.md").read_text(encoding="utf-8")
    assert written == maker("make_targets").operators_page(), "run: python docs/make_targets.py"


def test_the_pages_of_runtimes_are_up_to_date() -> None:
    pages = maker("make_targets").runtime_pages(splitgraph.targets())
    written = {path.stem: path.read_text(encoding="utf-8") for path in (DOCS / "targets").glob("*.md")}
    assert written == pages, "run: python docs/make_targets.py"


def test_the_page_of_diagnostic_codes_is_up_to_date() -> None:
    module = maker("make_diagnostics")
    written = (DOCS / "diagnostics.md").read_text(encoding="utf-8")
    assert written == module.diagnostics_page(), "run: python docs/make_diagnostics.py"
    assert all(f"### {code}: {info.title}" in written for code, info in CODES.items())


def test_the_readme_says_how_far_conversion_goes() -> None:
    text = (DOCS.parent / "README.md").read_text(encoding="utf-8")
    newest = newest_in_table()
    assert f"between opsets 1 and {newest} of ai.onnx" in text, f"the table of schemas goes to opset {newest}"
