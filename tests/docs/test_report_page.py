"""docs/report.md shows pictures that exist and are small, names the keys that the page has, and its scripts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from splitgraph.reports.html.page import asset

DOCS = Path(__file__).parents[2] / "docs"
TEXT = (DOCS / "report.md").read_text(encoding="utf-8")
IMAGES = re.findall(r"!\[[^\]]+\]\(([^)]+)\)", TEXT)


def test_every_picture_is_shown() -> None:
    kept = {f"images/{path.name}" for path in (DOCS / "images").iterdir()}
    assert kept - set(IMAGES) == set()


@pytest.mark.parametrize("image", IMAGES)
def test_pictures_exist_and_are_small(image: str) -> None:
    assert 0 < (DOCS / image).stat().st_size < 150_000


def test_the_keys_are_those_of_the_page() -> None:
    of_page = re.findall(r'^  \[\s*"([^"]+)",\s*"', asset("controls.js").partition("const KEYS = [")[2], re.MULTILINE)
    keys = {key for each in of_page for key in each.split()}
    rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", TEXT.partition("| key | meaning |")[2].partition("\n\n")[0], re.M)
    documented = {key for row in rows for key in re.findall(r"`([^`]+)`|(Enter|Esc|[↓↑])", row) for key in key if key}
    # = is + without Shift.
    assert keys - {"="} == documented


def test_the_scripts_are_described() -> None:
    folder = Path(__file__).parents[2] / "splitgraph" / "reports" / "html" / "assets"
    unnamed = {path.name for path in folder.glob("*.js") if f"`{path.name}`" not in TEXT}
    assert unnamed == set()
