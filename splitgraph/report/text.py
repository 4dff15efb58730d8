"""Pieces of text that every page uses: names made safe to print, counts, lists of parts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from splitgraph.diagnostics import abridged, with_words_abridged

if TYPE_CHECKING:
    from splitgraph.dim import Dim

# Equal neighbours are written as `12 × 64` from this many on; fewer read better written out.
SHORTEST_RUN = 4
# A terminal shows this many parts (or runs of equal parts) of one split before it abbreviates.
MOST_PARTS = 8

_PLAIN_TERM = re.compile(r"\?|\w+(\(.*\))?")


def printable(text: str) -> str:
    """Return the text with everything that is not printable, terminal control sequences above all, written as an
    escape; of a very long name, its ends and how long it is.
    """
    text = with_words_abridged(text)
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else char.encode("unicode_escape").decode("ascii") for char in text)


def display_width(text: str) -> int:
    """Columns that the text takes on a terminal: 2 for a wide East Asian character, 0 for a combining one."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def folded(text: str, width: int) -> list[str]:
    """Return the text in lines of about so many columns, broken at spaces only: a name stays whole for whoever
    searches it.
    """
    if display_width(text) <= width:
        return [text]
    lines: list[str] = []
    for word in text.split(" "):
        # No line begins with the bar between two parts.
        if lines and (word == "|" or display_width(lines[-1]) + 1 + display_width(word) <= width):
            lines[-1] += f" {word}"
        else:
            lines.append(word)
    return lines


def shortened(text: str, width: int) -> str:
    """Return the text on one line of at most so many characters, cut between words where it is longer."""
    words = " ".join(text.split())
    if len(words) <= width:
        return words
    kept = words[: width - 1].rpartition(" ")[0] or words[: width - 1]
    return f"{kept.rstrip(' :,;(')}…"


def count(number: int, noun: str) -> str:
    """Return a number with its noun: "1 node", "1,204 nodes"."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def dim_text(dim: int | Dim | None) -> str:
    """Return a dimension as the dimension grammar spells it, "?" when unknown."""
    return "?" if dim is None else str(dim)


def parts_text(lengths: Sequence[int | Dim | None], *, brief: bool = False) -> str:
    """Return the lengths of a split's parts: "768 | 768 | 768", "12 × 64", "(N + 1)//2 | N//2", "?" for an unknown
    one.

    Nothing is left out unless `brief`, which keeps the first and last parts of a long list.
    """
    terms: list[str] = []
    for text, run in groupby(dim_text(length) for length in lengths):
        repeats = sum(1 for _ in run)
        if repeats < SHORTEST_RUN:
            terms += [text] * repeats
        else:
            terms.append(f"{repeats:,} × {text if _PLAIN_TERM.fullmatch(text) else f'({text})'}")
    if brief and len(terms) > MOST_PARTS:
        kept = MOST_PARTS - 2
        terms = [*terms[:kept], f"… {len(terms) - kept - 1:,} more …", terms[-1]]
    return " | ".join(terms)


def opset_text(opset: Mapping[str, int]) -> str:
    """Return the imported opsets: "opset 13", "opset 13, com.microsoft 1"; of an IR its version: "OpenVINO IR 11"."""
    # Not above: whoever asks for an opset has an analysis, which pages without one must not pay for.
    from splitgraph.inference.analysis import IR

    if not opset:
        return "no opset"
    if IR in opset:
        return f"OpenVINO IR {opset[IR]}"
    others = [f"{abridged(domain)} {version}" for domain, version in sorted(opset.items()) if domain]
    main = [f"opset {opset['']}"] if "" in opset else []
    return ", ".join(main + others)
