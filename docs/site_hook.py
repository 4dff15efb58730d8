"""A hook of mkdocs: pages link to files of the repository that are outside of docs/, and the site has these, too.

A link in docs/ is written as GitHub reads it, such as `../benchmarks/README.md#files`. The site gets each linked file,
and what that file links to, under `project/`, and the links lead there. A linked folder becomes a page that lists its
files. Nothing is copied by hand.
"""

from __future__ import annotations

import os
import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).parents[1]
DOCS = "docs/"
# The folder of the site for everything that is outside of docs/.
PROJECT = "project/"

# How much pages count in the search whose path begins so: a page about a job has 1.
_BOOSTS = {
    "targets/": 0.0001,
    PROJECT: 0.0002,
    "reference/schemas/": 0.0002,
    "reference/": 0.01,
    "diagnostics": 0.01,
    "target": 0.1,
    "openvino": 0.5,
    "decisions": 0.01,
    "architecture": 0.01,
}

_LINK = re.compile(r"\]\((?P<file>[^)\s#:]+)(?P<anchor>#[^)\s]*)?\)")
_CELL = re.compile(r"<td>.*?</td>", re.DOTALL)


def site_path(path: str) -> str:
    """Return where a file or folder of the repository is in the site."""
    placed = path.removeprefix(DOCS) if path.startswith(DOCS) else PROJECT + path
    return f"{placed}/index.md" if (ROOT / path).is_dir() else placed


def repository_path(src_uri: str) -> str:
    """Return which file of the repository a page of the site is."""
    return src_uri.removeprefix(PROJECT) if src_uri.startswith(PROJECT) else DOCS + src_uri


def linked_path(folder: str, file: str) -> str | None:
    """Return the file or folder of the repository to which a link in a folder leads; None for any other link."""
    path = posixpath.normpath(posixpath.join(folder, file))
    return path if (ROOT / path).exists() else None


def linked_paths(path: str) -> Iterator[str]:
    """Return the files and folders of the repository to which a page links."""
    for link in _LINK.finditer((ROOT / path).read_text(encoding="utf-8")):
        target = linked_path(posixpath.dirname(path), link["file"])
        if target is not None:
            yield target


def listing(folder: str) -> str:
    """Return a page that lists the files of a folder."""
    names = sorted(path.name for path in (ROOT / folder).iterdir() if path.is_file())
    return f"# {folder.removeprefix(DOCS)}\n\n" + "".join(f"- [{name}]({name})\n" for name in names)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add every file outside of docs/ to which a page leads, and a list for each folder."""
    waiting = [repository_path(file.src_uri) for file in files.documentation_pages()]
    added: set[str] = set()
    while waiting:
        for path in linked_paths(waiting.pop()):
            place = site_path(path)
            if path in added or files.get_file_from_path(place):
                continue
            added.add(path)
            if (ROOT / path).is_dir():
                files.append(File.generated(config, place, content=listing(path)))
                continue
            files.append(File.generated(config, place, abs_src_path=os.fspath(ROOT / path)))
            if path.endswith(".md"):
                waiting.append(path)
    return files


def search_boost(src_uri: str) -> float:
    """Return how much a page counts in the search: tables of operators and what is outside of docs/ come last."""
    return next((boost for begin, boost in _BOOSTS.items() if src_uri.startswith(begin)), 1.0)


def on_page_markdown(markdown: str, page: Page, **_: Any) -> str:
    """Let each link to a file or folder of the repository lead to its place in the site, and weigh the page."""
    page.meta.setdefault("search", {"boost": search_boost(page.file.src_uri)})
    here = posixpath.dirname(page.file.src_uri)
    folder = posixpath.dirname(repository_path(page.file.src_uri))

    def placed(link: re.Match[str]) -> str:
        target = linked_path(folder, link["file"])
        if target is None:
            return link[0]
        return f"]({posixpath.relpath(site_path(target), here or '.')}{link['anchor'] or ''})"

    return _LINK.sub(placed, markdown)


def on_page_content(html: str, **_: Any) -> str:
    r"""Show `|` in the code of a table, where Markdown has to write `\|`, as GitHub does."""
    return _CELL.sub(lambda cell: cell[0].replace(r"\|", "|"), html)
