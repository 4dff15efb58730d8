"""The table of the nodes that differ between two models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from splitgraph.diagnostics import LONGEST_TEXT, abridged
from splitgraph.report.layout import BLANK, Block, Cell, line, table
from splitgraph.report.text import count

if TYPE_CHECKING:
    from splitgraph.differences import ModelDifference, NodeDifference, NodeForm


# Rows of each table that a page shows unless everything is asked for.
_MOST_ROWS = 20

Row = TypeVar("Row")


class Extent(NamedTuple):
    """How much is shown: everything or not, and what to do to see more."""

    with_all: bool
    more: str

    def cut(self, rows: Sequence[Row]) -> tuple[Sequence[Row], list[Block]]:
        """Return the rows that are shown, and a line that says how many are not."""
        # One row takes no more place than the line that stands for it.
        if self.with_all or len(rows) <= _MOST_ROWS + 1:
            return rows, []
        return rows[:_MOST_ROWS], [line((f"  … and {len(rows) - _MOST_ROWS:,} more; {self.more}", "dim"))]

    def left_out(self, text: str) -> Block:
        """Return a line about what is not shown."""
        return line((f"  {text}; {self.more}", "dim"))


# Lines of each node, and characters of a line, that a page shows unless everything is asked for: a node may have
# thousands of inputs.
_MOST_LINES = 4
_SENTENCE = 300
_STYLES = {"added": "green", "removed": "red", "changed": ""}
_MARKS = {"added": "+ ", "removed": "- ", "changed": ""}
_NONE = "–"

# The elements of small constants as text, by name.
_Elements = Mapping[str, str]


def nodes_blocks(difference: ModelDifference, extent: Extent) -> list[Block]:
    """Return the table, splits first, and how many nodes of which only the version of the operator differs are not
    in it.
    """
    shown = [each for each in difference.nodes if extent.with_all or not each.only_version]
    if not extent.with_all:
        # What is cut off is not what the reader came for.
        shown.sort(key=lambda each: (not each.is_split, each.only_names))
    blocks: list[Block] = []
    if shown:
        elements = _elements(difference, "before"), _elements(difference, "after")
        rows: list[list[str | Cell]] = [
            [
                short_location(node.location),
                Cell((_operators(node),), _STYLES[node.kind]),
                _what(node, elements, extent.with_all),
            ]
            for node in shown
        ]
        kept, more = extent.cut(rows)
        blocks += [table(("node", "operator", "what"), ("bold", "cyan", ""), kept), *more]
    left = 0 if extent.with_all else sum(each.only_version for each in difference.nodes)
    if left:
        text = f"{count(left, 'node')} only of another operator version"
        blocks += [*([BLANK] if blocks else []), extent.left_out(text)]
    return blocks


def _operators(node: NodeDifference) -> str:
    named = dict.fromkeys(abridged(form.operator) for form in (node.before, node.after) if form is not None)
    return _MARKS[node.kind] + " → ".join(named)


def _elements(difference: ModelDifference, side: Literal["before", "after"]) -> _Elements:
    """Return the elements of small constants that only one of the models has, by name: "1, 2, 3"."""
    texts: dict[str, str | None] = {
        each.name: getattr(each, side) for each in difference.parts if each.part == "initializer"
    }
    for form in (getattr(node, side) for node in difference.nodes):
        if form is not None and form.operator.startswith("Constant-") and form.outputs:
            texts[form.outputs[0]] = form.attributes.get("value")
    return {name: text.partition(" = ")[2] for name, text in texts.items() if text}


def _what(node: NodeDifference, elements: tuple[_Elements, _Elements], with_all: bool) -> Cell:
    lines = [abridged(text, LONGEST_TEXT if with_all else _SENTENCE) for text in _sentences(node, elements)]
    if with_all or len(lines) <= _MOST_LINES:
        return Cell(tuple(lines) or ("",))
    return Cell((*lines[: _MOST_LINES - 1], f"… and {len(lines) - _MOST_LINES + 1:,} more"))


def _sentences(node: NodeDifference, elements: tuple[_Elements, _Elements]) -> Iterator[str]:
    """Return what is to be said of a node, a line each. elements: of constants in the two models, by name."""
    before, after = node.before, node.after
    others = ", ".join(map(short_location, node.others))
    if before is None or after is None:
        form = before or after
        if others:
            yield f"replaces {others}" if before is None else f"replaced by {others}"
        elif form is not None:
            yield _reading(form)
        return
    if "attributes" in node.aspects:
        yield from _attributes(node.attributes, before, after)
    if "inputs" in node.aspects:
        one, two = _with_elements(before.inputs, elements[0]), _with_elements(after.inputs, elements[1])
        yield from _places("input", one, two, node.inputs)
    if "outputs" in node.aspects:
        pairs = enumerate(zip_longest(before.outputs, after.outputs, fillvalue=""))
        places = [place for place, (one, two) in pairs if one != two]
        yield from _places("output", before.outputs, after.outputs, places)
    if others:
        yield f"other outputs come from {others}"
    if "name" in node.aspects:
        yield f"named {before.name!r} before" if before.name else "without a name before"
    if "metadata" in node.aspects:
        yield "other metadata"
    if node.only_version:
        yield "only the version"


def _reading(form: NodeForm) -> str:
    read, given = (", ".join(names) or _NONE for names in (form.inputs, form.outputs))
    return f"{read} → {given}"


def _attributes(names: Sequence[str], before: NodeForm, after: NodeForm) -> Iterator[str]:
    gone, new = [], []
    for name in names:
        one, two = before.attributes.get(name), after.attributes.get(name)
        if one is not None and two is not None:
            yield f"{name}: other elements" if one == two else f"{name} {one} → {two}"
        elif one is not None:
            gone.append(f"{name} {one}")
        else:
            new.append(f"{name} {two}")
    if gone and new:
        yield f"{', '.join(gone)} → {', '.join(new)}"
    elif gone or new:
        yield f"{', '.join(gone or new)} {'removed' if gone else 'added'}"


def _with_elements(names: Sequence[str], elements: _Elements) -> list[str]:
    return [f"{name} = {elements[name]}" if elements.get(name) else name for name in names]


def _places(noun: str, before: Sequence[str], after: Sequence[str], places: Iterable[int]) -> Iterator[str]:
    """Return the inputs or outputs that differ, counted from 0 as the specification does."""
    for place in places:
        one = before[place] if place < len(before) else ""
        two = after[place] if place < len(after) else ""
        if one and two and one == two:
            yield f"{noun} {place}: {two} is another value"
        elif one and two:
            yield f"{noun} {place}: {one} → {two}"
        elif one or two:
            yield f"{noun} {place} {'added' if two else 'removed'}: {two or one}"


def short_location(location: str) -> str:
    """Return a location without the main graph, which goes without saying."""
    return abridged(location.removeprefix("main/"))
