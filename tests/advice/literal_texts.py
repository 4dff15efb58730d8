"""Find the texts in the source of splitgraph that advise to type something."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from .printed_advice import printed_advice

PACKAGE = Path(__file__).parents[2] / "splitgraph"
_GAP = "\0"
# Calls whose texts `--help` shows.
_OF_HELP = ("Option", "click.option", "parameters.model_option", "takes")


class Text(NamedTuple):
    """A text of the source: the file it stands in, and its parts between what is filled in."""

    file: str
    parts: tuple[str, ...]

    def begins_with(self, begins: Iterable[str]) -> bool:
        """Return True if the text begins with one of these; … stands for what is filled in."""
        return "…".join(self.parts).startswith(tuple(begins))

    def is_in(self, printed: str) -> bool:
        """Return True if an output holds the text, whatever was filled in."""
        return re.search(".*?".join(map(re.escape, self.parts)), printed, re.DOTALL) is not None


def texts_with_advice() -> Iterator[Text]:
    """Yield every text of the source with a command or an option. What `--help` and `explain` show is left out, and so
    are docstrings.
    """
    for path in sorted(set(PACKAGE.rglob("*.py")) - {PACKAGE / "findings" / "codes.py"}):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        left_out = {id(inner) for node in ast.walk(tree) for inner in _not_printed(node)}
        for node in ast.walk(tree):
            text = None if id(node) in left_out else _text(node)
            if text is not None and " " in text and printed_advice(text.replace(_GAP, "X")):
                yield Text(path.relative_to(PACKAGE.parent).as_posix(), tuple(text.split(_GAP)))


def _text(node: ast.AST) -> str | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(str(part.value) if isinstance(part, ast.Constant) else _GAP for part in node.values)
    return None


def _not_printed(node: ast.AST) -> Iterator[ast.AST]:
    """Yield docstrings, and what is written before a formatted text or as the help of an option."""
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        yield node.value
    elif isinstance(node, ast.JoinedStr):
        yield from (inner for inner in ast.walk(node) if inner is not node)
    elif isinstance(node, ast.Call) and ast.unparse(node.func) in _OF_HELP:
        yield from ast.walk(node)
