"""Paths that architecture.md, decisions.md and CONTRIBUTING.md name exist; architecture.md names every package."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ROOT / "splitgraph"
ARCHITECTURE = ROOT / "docs" / "architecture.md"
PAGES = {page.name: page for page in (ARCHITECTURE, ROOT / "docs" / "decisions.md", ROOT / "CONTRIBUTING.md")}
# Packages whose folders architecture.md names one by one.
LARGE = ("conversion", "inference", "verification")

_CODE_SPAN = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
# A path ends as the name of a folder or file does, or starts at the root of the project.
_PATH = re.compile(r"(?:[\w.*-]+/)*[\w.*-]+(?:/|\.(?:py|md|txt|toml|json))|(?:\.ci|tests|docs|splitgraph)/[\w./-]+")
_LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


def named_paths(text: str) -> list[str]:
    """The paths in the code spans and code blocks of a page, in order."""
    words = [word for span in _CODE_SPAN.findall(text) for word in re.split(r"[\s`(),;:│├└─]+", span)]
    return [word for word in words if _PATH.fullmatch(word)]


def missing_paths(text: str) -> list[str]:
    """The named paths that do not exist: at the root, in splitgraph, in tests or beside another named path."""
    starts, wrong = [ROOT, CODE, ROOT / "tests", *(path for path in CODE.rglob("*") if path.is_dir())], []
    for path in named_paths(text):
        found = next((found for start in starts for found in start.glob(path.rstrip("/"))), None)
        if found is None:
            wrong.append(path)
        else:
            starts.append(found.parent)
    return wrong


def packages() -> list[str]:
    """Every package of splitgraph, and every folder with code in the large ones."""
    inner = [path for name in LARGE for path in (CODE / name).iterdir() if any(path.glob("*.py"))]
    found = [*(path.parent for path in CODE.glob("*/__init__.py")), *inner]
    return sorted(path.relative_to(CODE).as_posix() for path in found)


@pytest.mark.parametrize("name", PAGES)
def test_named_paths_exist(name: str) -> None:
    wrong = missing_paths(PAGES[name].read_text(encoding="utf-8"))
    assert not wrong, f"{name} names paths that do not exist: {', '.join(wrong)}"


@pytest.mark.parametrize("name", PAGES)
def test_linked_files_exist(name: str) -> None:
    page = PAGES[name]
    links = [link for link in _LINK.findall(page.read_text(encoding="utf-8")) if "://" not in link]
    wrong = [link for link in links if not (page.parent / link).exists()]
    assert not wrong, f"{name} links to files that do not exist: {', '.join(wrong)}"


def test_the_architecture_names_every_package() -> None:
    text = ARCHITECTURE.read_text(encoding="utf-8")
    unnamed = [package for package in packages() if not re.search(rf"\b{package.rsplit('/')[-1]}/", text)]
    assert not unnamed, f"docs/architecture.md has to say what these packages of splitgraph hold: {', '.join(unnamed)}"


def test_a_path_that_does_not_exist_is_found() -> None:
    text = "`splits/` has `split_13.py`, `split_99.py`, `tests/x`, `rules/onnx/s*.py`, `inference/x/`"
    assert named_paths(text)[:3] == ["splits/", "split_13.py", "split_99.py"]
    assert missing_paths(text) == ["split_99.py", "tests/x", "inference/x/"]
    assert named_paths("`N//4` is `e - k*q`, with `q` for `splitgraph.model.onnx_proto` and `d // k`") == []
