"""Text for the terminal: lines, tables and their layout."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, TextIO

from splitgraph.findings.diagnostics import abridged, with_words_abridged

if TYPE_CHECKING:
    from rich.padding import Padding

    from splitgraph.dim import Dim
    from splitgraph.runtimes.runners.result import RuntimeRun
    from splitgraph.verification.verification import Region, Verification


# Pages ----------------------------------------------------------------------------------------------------------------


INDENT = "  "
GAP = "  "
# The widest column without a terminal; only a column of sentences may be wider.
_WIDEST = 100

SEVERITY_STYLES = {"error": "bold red", "warning": "yellow", "info": "blue"}


class Line(NamedTuple):
    """One line: pieces of text, each with the name of a rich style ("" for none)."""

    spans: tuple[tuple[str, str], ...]


class Cell(NamedTuple):
    """One cell of a table: its lines, and a rich style that goes before its column's ("" for none)."""

    lines: tuple[str, ...]
    style: str = ""


class Table(NamedTuple):
    """Rows of cells. headings: of the columns, "" for none. styles: a rich style for each column. is_prose: the last
    column holds sentences, which are one line each where nothing limits the width.
    """

    headings: tuple[str, ...]
    styles: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    is_prose: bool = False


Block = Line | Table
BLANK = Line(())


def line(*spans: str | tuple[str, str]) -> Line:
    """Return a line of pieces; a piece without a style may be given as plain text."""
    return Line(tuple((span, "") if isinstance(span, str) else span for span in spans))


def table(
    headings: Sequence[str], styles: Sequence[str], rows: Iterable[Sequence[str | Cell]], *, is_prose: bool = False
) -> Table:
    """Return a table; a cell of one line without a style may be given as plain text."""
    cells = tuple(tuple(Cell((cell,)) if isinstance(cell, str) else cell for cell in row) for row in rows)
    return Table(tuple(headings), tuple(styles), cells, is_prose)


def print_page(blocks: Iterable[Block], stream: TextIO) -> None:
    """Print a page, styled when the stream is a terminal, otherwise as plain text."""
    if stream.isatty():
        _print_on_terminal(blocks, stream)
    else:
        stream.write(plain_text(blocks))
    stream.flush()


def plain_text(blocks: Iterable[Block]) -> str:
    """Return the page as plain text, nothing cut; what is too long for a column is folded."""
    lines: list[str] = []
    for block in blocks:
        if isinstance(block, Line):
            lines.append("".join(printable(text) for text, _ in block.spans))
        else:
            lines += _table_lines(block)
    return "".join(text.rstrip() + "\n" for text in lines)


def _table_lines(block: Table) -> list[str]:
    limits = [_WIDEST] * len(block.headings)
    if block.is_prose:
        limits[-1] = sys.maxsize
    rows = [tuple(tuple(_folded(cell, limit)) for cell, limit in zip(row, limits, strict=True)) for row in block.rows]
    if any(block.headings):
        rows.insert(0, tuple((heading,) for heading in block.headings))
    columns = zip(*rows, strict=True)
    widths = [max((display_width(text) for cell in column for text in cell), default=0) for column in columns]
    return [text for row in rows for text in _row_lines(row, widths)]


def _folded(cell: Cell, width: int) -> list[str]:
    """Return the lines of a cell, those that are wider than a column may be continued on others."""
    return [part for text in cell.lines for part in folded(printable(text), width)]


def _row_lines(row: Sequence[tuple[str, ...]], widths: Sequence[int]) -> list[str]:
    lines: list[str] = []
    for index in range(max(map(len, row))):
        texts = [cell[index] if index < len(cell) else "" for cell in row]
        padded = [text + " " * (width - display_width(text)) for text, width in zip(texts, widths, strict=True)]
        lines.append(INDENT + GAP.join(padded))
    return lines


def _print_on_terminal(blocks: Iterable[Block], stream: TextIO) -> None:
    from rich.console import Console
    from rich.text import Text

    # Every text goes in as Text, never as markup: names in a model may well contain "[bold]".
    console = Console(file=stream, highlight=False, markup=False, emoji=False)
    for block in blocks:
        if isinstance(block, Line):
            console.print(Text.assemble(*((printable(text), style) for text, style in block.spans)))
        else:
            console.print(_grid(block))


def _grid(block: Table) -> Padding:
    """Return the table as a table of rich. Most notices and errors are lines and need no rich."""
    from rich.padding import Padding
    from rich.table import Table as Grid
    from rich.text import Text

    grid = Grid(box=None, show_header=any(block.headings), header_style="dim", padding=(0, len(GAP), 0, 0))
    for heading, style in zip(block.headings, block.styles, strict=True):
        grid.add_column(Text(heading), style=style, overflow="fold")
    for row in block.rows:
        grid.add_row(*(Text("\n".join(map(printable, cell.lines)), style=cell.style) for cell in row))
    return Padding(grid, (0, 0, 0, len(INDENT)))


# Texts ----------------------------------------------------------------------------------------------------------------


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
    """Return the width of a text in columns of a terminal: 2 for a wide East Asian character, 0 for a combining one."""
    if text.isascii():
        return len(text)
    return sum(0 if unicodedata.combining(c) else 2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def folded(text: str, width: int) -> list[str]:
    """Return the text in lines of about so many columns, broken at spaces only, so that names can be searched."""
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


# Verification ---------------------------------------------------------------------------------------------------------


def verification_phrase(verification: Verification, ran: RuntimeRun | None = None) -> str:
    """Return the verdict in a few words: "verified equal on 3 inputs (onnxruntime)". ran: what became of the model in
    the runtime that it is for: "verified equal in onnxruntime and in OpenCV 4.14.0, on 3 inputs".
    """
    said = verification.said
    if verification.verdict == "equal" and ran is not None and ran.answer == "equal" and ";" not in said:
        on = count(min(verification.cases, ran.cases), "input")
        return f"{said} in {engine_of(verification)} and in {ran.label}, on {on}"
    if verification.verdict == "not-run" or not verification.cases:
        return said
    on = f"{count(verification.cases, 'input')} ({engine_of(verification)})"
    return f"{said} · {on}" if ";" in said else f"{said} on {on}"


def engine_of(verification: Verification) -> str:
    """Return the engine, and what it ran the models on if that is not the CPU alone."""
    special = [name for name in verification.providers if not name.startswith("CPU")]
    return ", ".join([verification.engine, *special])


def regions_text(regions: Sequence[Region]) -> str:
    """Return what became of the parts that differ: "37 changed nodes equal on their own inputs"."""
    counts = Counter[str]()
    for region in regions:
        counts[region.verdict] += max(len(region.nodes_before), len(region.nodes_after))
    own = "its" if counts["equal"] == 1 else "their"
    verdicts = (("equal", f"equal on {own} own inputs"), ("different", "different"), ("not-run", "not checked alone"))
    told = [(counts[verdict], words) for verdict, words in verdicts if counts[verdict]]
    rest = "".join(f", {number:,} {words}" for number, words in told[1:])
    return f"{count(told[0][0], 'changed node')} {told[0][1]}{rest}" if told else ""


def region_text(region: Region) -> str:
    """Return what became of a part that differs: "equal on 31 sets of its own values"."""
    match region.verdict:
        case "equal":
            return f"equal on {count(region.cases, 'set')} of its own values"
        case "different":
            return f"different: {region.reason}"
        case "not-run":
            return f"not checked alone: {region.reason}"
