"""The search of the site finds the page about a job first, and options with their dashes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
# What is typed, and the page that comes first.
QUERIES = {
    "--follow": "reshape.html",
    "follow": "reshape.html",
    "downgrade": "opsets.html",
    "upgrade opset": "opsets.html",
    "make the batch dynamic": "reshape.html",
    "GridSample": "target-operators.html",
    "verify": "verification.html",
    "--no-verify": "verification.html",
    "--assume-defaults": "diagnostics.html",
}


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """The pages that each query finds, in order."""
    pytest.importorskip("mkdocs", reason="the site is made by mkdocs: pip install '.[docs]'")
    node = shutil.which("node")
    if node is None:
        pytest.skip("the script of the search runs in node")
    site = tmp_path_factory.mktemp("site")
    build = [sys.executable, "-m", "mkdocs", "build", "-q", "-d", str(site)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    script = Path(__file__).with_name("site_search.js")
    done = subprocess.run([node, script, site, *QUERIES], capture_output=True, check=True, encoding="utf-8")
    pages: dict[str, list[str]] = json.loads(done.stdout)
    return pages


@pytest.mark.slow
@pytest.mark.parametrize("query", QUERIES)
def test_the_page_about_a_job_comes_first(found: dict[str, list[str]], query: str) -> None:
    assert found[query][0].partition("#")[0] == QUERIES[query], found[query][:5]


@pytest.mark.slow
def test_tables_of_operators_come_last(found: dict[str, list[str]]) -> None:
    tables = [page.startswith(("targets/", "project/")) for page in found["GridSample"]]
    assert any(tables) and tables == sorted(tables)


def test_generated_pages_begin_with_what_they_are_about() -> None:
    generated = [page for page in DOCS.rglob("*.md") if "do not edit by hand" in page.read_text(encoding="utf-8")]
    assert len(generated) > 25
    shown = [
        line for page in generated for line in page.read_text(encoding="utf-8").splitlines() if "edit by hand" in line
    ]
    assert all(line.startswith("<!--") for line in shown)
