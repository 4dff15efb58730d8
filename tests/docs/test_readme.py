"""README.md and docs/ show what the program does: every example is run, and every link leads somewhere."""

from __future__ import annotations

import os
import re
from collections import Counter
from pathlib import Path

import pytest
from readme_examples import CONSOLE, DOCS, ROOT, commands_of, pages, present

README = ROOT / "README.md"
# Pages that GitHub and the site show, and that link to each other.
LINKED = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md")),
    *(ROOT / folder / "README.md" for folder in ("benchmarks", "benchmarks/targets", "models", "tests/campaigns")),
    *sorted(DOCS.rglob("*.md")),
]
_LINK = re.compile(r"(?<!`)\]\((?!https?://)([^)\s]*)\)")
_FENCE = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


def anchors(text: str) -> set[str]:
    """Return the anchors of a page as GitHub makes them from its headings."""
    counts: Counter[str] = Counter()
    found = set()
    for heading in re.findall(r"^#+ (.+)$", _FENCE.sub("", text), re.MULTILINE):
        shown = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading)
        anchor = re.sub(r"[^\w\- ]", "", shown.strip().lower()).replace(" ", "-")
        found.add(f"{anchor}-{counts[anchor]}" if counts[anchor] else anchor)
        counts[anchor] += 1
    return found


def broken_links(page: Path, text: str) -> list[str]:
    """Return the links of a page to files, or to headings of pages, that do not exist."""
    wrong = []
    for link in _LINK.findall(_FENCE.sub("", text)):
        file, _, anchor = link.partition("#")
        target = Path(os.path.normpath(page.parent / file)) if file else page
        known = target.exists() and (
            not anchor or anchor in anchors(text if target == page else target.read_text(encoding="utf-8"))
        )
        if not known:
            wrong.append(link)
    return wrong


@pytest.mark.sample(4)
@pytest.mark.parametrize("page", pages(), ids=name_of)
def test_examples_show_the_present_output(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert present(text) == text, "python tests/docs/readme_examples.py writes the present output into the pages"


def test_the_readme_is_short_and_shows_the_main_jobs() -> None:
    text = README.read_text(encoding="utf-8")
    assert text.count("\n") <= 150
    for command in ("infer", "downgrade", "convert", "reshape"):
        assert f"$ splitgraph {command} " in text


def test_examples_leave_the_models_alone_and_write_no_file_twice() -> None:
    """Who tries one page after the other, in one folder, is stopped by no file of an earlier page."""
    written = [
        name for page in pages() for name in re.findall(r"^wrote (\S+)$", page.read_text(encoding="utf-8"), re.M)
    ]
    assert len(written) >= 15
    assert [name for name, times in Counter(written).items() if times > 1 or name.startswith("models/")] == []


def test_every_command_has_an_example() -> None:
    texts = [page.read_text(encoding="utf-8") for page in pages()]
    shown = {line.split()[2] for text in texts for block in CONSOLE.findall(text) for line in commands_of(block)}
    assert shown >= {
        *("infer", "upgrade", "downgrade", "convert", "reshape", "check", "report", "diff", "verify", "explain")
    }


@pytest.mark.parametrize("page", LINKED, ids=name_of)
def test_links_lead_somewhere(page: Path) -> None:
    assert broken_links(page, page.read_text(encoding="utf-8")) == []


def test_a_broken_link_is_found() -> None:
    text = "# A page\n\n[a](infer.md) [b](x.md) [c](#a-page) [d](#b-page) [e](infer.md#errors) [f](infer.md#none)"
    assert broken_links(DOCS / "index.md", text) == ["x.md", "#b-page", "infer.md#none"]


def test_the_index_lists_every_page() -> None:
    text = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = {link.partition("#")[0] for link in _LINK.findall(text)}
    pages_of_docs = {page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")}
    # A runtime's own page is in the table of targets.md.
    assert {page for page in pages_of_docs - listed if not page.startswith("targets/")} == {"index.md"}
