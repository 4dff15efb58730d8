"""The files that pages are joined from: all are used, the library is the one that is named, and no script makes markup
of a text.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from splitgraph.reports.html import model_page, page, split_svg

ASSETS = Path(page.__file__).parent / "assets"
OWN = sorted(path for path in ASSETS.iterdir() if path.is_file())
VENDORED = ASSETS / "vendor"
# What sets markup, runs text as code, asks a network, or stores something in the browser.
FORBIDDEN = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|\beval\b|new Function|createContextualFragment"
    r"|\bfetch\(|XMLHttpRequest|WebSocket|EventSource|sendBeacon|import\(|localStorage|sessionStorage|indexedDB|cookie"
)


def test_every_file_is_part_of_a_page() -> None:
    used = {*model_page._SCRIPTS, *model_page._STYLES, *page._INDEX_SCRIPTS, *page._INDEX_STYLES}
    assert {path.name for path in OWN} == {*used, "page.html", "index.html", "split.css"}
    assert "split.css" in Path(split_svg.__file__).read_text(encoding="utf-8")


@pytest.mark.parametrize("path", [path for path in OWN if path.suffix == ".js"], ids=lambda path: path.name)
def test_scripts_set_texts_as_text_and_ask_no_network(path: Path) -> None:
    assert FORBIDDEN.findall(path.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("path", OWN, ids=lambda path: path.name)
def test_files_are_readable(path: Path) -> None:
    lines = path.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 350
    assert max(map(len, lines)) <= 180


@pytest.mark.parametrize("path", [path for path in OWN if path.suffix == ".css"], ids=lambda path: path.name)
def test_styles_load_nothing(path: Path) -> None:
    assert not re.search(r"@import|url\(|@font-face|</", path.read_text(encoding="utf-8"))


def test_the_library_is_the_one_that_is_named() -> None:
    table = (VENDORED / "README.md").read_text(encoding="utf-8")
    [(name, version, checksum)] = re.findall(r"^\| `([^`]+)` \|[^|]*\| ([\d.]+) \|.*`([0-9a-f]{64})` \|$", table, re.M)
    assert f"vendor/{name}" == page.LIBRARY
    assert version in name
    assert hashlib.sha256((VENDORED / name).read_bytes()).hexdigest() == checksum
    assert {path.name for path in VENDORED.iterdir()} == {name, name.replace("min.js", "LICENSE"), "README.md"}


def test_pages_have_the_licence_of_the_library() -> None:
    licence = page.asset(page.LIBRARY.replace("min.js", "LICENSE"))
    assert "Permission is hereby granted" in licence
    assert "*/" not in licence


def test_the_library_is_unchanged_but_for_its_comments() -> None:
    code = page.library_code()
    kept = [line for line in page.asset(page.LIBRARY).splitlines() if line.startswith(("//", "/*"))]
    assert len(kept) == 2
    assert code == "\n".join(line for line in page.asset(page.LIBRARY).splitlines() if line not in kept)
