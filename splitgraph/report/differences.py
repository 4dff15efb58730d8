"""What differs between two models, as a page."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal

from splitgraph.diagnostics import LONGEST_TEXT, abridged
from splitgraph.report.layout import BLANK, Block, Cell, line, table
from splitgraph.report.pages import findings_table
from splitgraph.report.text import count, opset_text, shortened

if TYPE_CHECKING:
    from splitgraph.differences import ModelDifference, NodeDifference, NodeForm, PartDifference, ValueDifference

# Rows of each table, and lines of each node, that a page shows unless everything is asked for.
_MOST_ROWS = 20
_MOST_LINES = 4
_STYLES = {"added": "green", "removed": "red", "changed": ""}
_MARKS = {"added": "+ ", "removed": "- ", "changed": ""}
_NONE = "–"
# Characters of a part's text that a page shows unless everything is asked for.
_PART = 60

# The elements of small constants as text, by name.
_Elements = Mapping[str, str]


def difference_page(
    difference: ModelDifference, before_name: str, after_name: str, *, with_all: bool = False
) -> list[Block]:
    """What `diff` prints: a line with the two models and what differs in numbers, then the differences.

    with_all: show every difference, also nodes of which only the version of the operator differs.
    """
    opset = opsets_phrase(difference.before_opset, difference.after_opset)
    header = line((before_name, "bold"), " → ", (after_name, "bold"), f" · {opset} · {nodes_phrase(difference)}")
    blocks = difference_blocks(difference, with_all=with_all)
    return [header, BLANK, *blocks] if blocks else [header]


def difference_blocks(difference: ModelDifference, *, with_all: bool = False) -> list[Block]:
    """The differences as tables, one for each kind of difference, with a blank line between them."""
    groups = [
        _nodes(difference, with_all),
        _parts(difference.parts, with_all),
        _values(difference, with_all),
        _findings("new findings", difference, with_all),
        _findings("findings that are gone", difference, with_all),
    ]
    blocks: list[Block] = []
    for group in filter(None, groups):
        blocks += [BLANK, *group] if blocks else group
    return blocks


def opsets_phrase(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """The opsets of both models: "opset 11 → 18"."""
    one, two = opset_text(before), opset_text(after)
    if one == two:
        return one
    others = {name: version for name, version in before.items() if name}
    if "" in before and "" in after and others == {name: version for name, version in after.items() if name}:
        return f"opset {before['']} → {after['']}"
    return f"{one} → {two}"


def nodes_phrase(difference: ModelDifference) -> str:
    """How many nodes differ: "2 splits and 1 other node changed, 3 nodes added"."""
    if difference.is_empty:
        return f"no difference in {count(difference.after_nodes, 'node')}"
    if not difference.nodes:
        return f"all {count(difference.after_nodes, 'node')} are the same"
    changed = [each for each in difference.nodes if each.kind == "changed" and not each.only_names]
    splits = sum(each.is_split for each in changed)
    others = len(changed) - splits
    phrases = []
    if changed:
        other = count(others, "other node" if splits else "node")
        named = [*([count(splits, "split")] if splits else []), *([other] if others else [])]
        phrases.append(f"{' and '.join(named)} changed")
    for kind in ("added", "removed"):
        number = sum(each.kind == kind for each in difference.nodes)
        if number:
            phrases.append(f"{count(number, 'node')} {kind}")
    versions = sum(each.only_version for each in difference.nodes)
    names = sum(each.only_names for each in difference.nodes) - versions
    if names:
        phrases.append(f"{count(names, 'node')} only with other names or notes")
    if versions:
        phrases.append(f"{count(versions, 'node')} only of another operator version")
    return ", ".join(phrases)


def _cut(rows: Sequence[Sequence[str | Cell]], with_all: bool) -> tuple[Sequence[Sequence[str | Cell]], list[Block]]:
    """The rows that are shown, and a line that says how many are not."""
    # One row takes no more place than the line that stands for it.
    if with_all or len(rows) <= _MOST_ROWS + 1:
        return rows, []
    return rows[:_MOST_ROWS], [line((f"  … and {len(rows) - _MOST_ROWS:,} more; --all shows them", "dim"))]


# Nodes -----------------------------------------------------------------------------------------------------------


def _nodes(difference: ModelDifference, with_all: bool) -> list[Block]:
    shown = [each for each in difference.nodes if with_all or not each.only_version]
    if not with_all:
        # What is cut off is not what the reader came for.
        shown.sort(key=lambda each: (not each.is_split, each.only_names))
    blocks: list[Block] = []
    if shown:
        elements = _elements(difference, "before"), _elements(difference, "after")
        rows: list[list[str | Cell]] = [
            [_shortened(node.location), Cell((_operators(node),), _STYLES[node.kind]), _what(node, elements, with_all)]
            for node in shown
        ]
        kept, more = _cut(rows, with_all)
        blocks += [table(("node", "operator", "what"), ("bold", "cyan", ""), kept), *more]
    left = 0 if with_all else sum(each.only_version for each in difference.nodes)
    if left:
        text = f"{count(left, 'node')} only of another operator version; --all shows them"
        blocks += [*([BLANK] if blocks else []), line((f"  {text}", "dim"))]
    return blocks


def _operators(node: NodeDifference) -> str:
    named = dict.fromkeys(abridged(form.operator) for form in (node.before, node.after) if form is not None)
    return _MARKS[node.kind] + " → ".join(named)


def _elements(difference: ModelDifference, side: Literal["before", "after"]) -> _Elements:
    """The elements of small constants that only one of the models has, by name: "1, 2, 3"."""
    texts: dict[str, str | None] = {
        each.name: getattr(each, side) for each in difference.parts if each.part == "initializer"
    }
    for form in (getattr(node, side) for node in difference.nodes):
        if form is not None and form.operator.startswith("Constant-") and form.outputs:
            texts[form.outputs[0]] = form.attributes.get("value")
    return {name: text.partition(" = ")[2] for name, text in texts.items() if text}


def _what(node: NodeDifference, elements: tuple[_Elements, _Elements], with_all: bool) -> Cell:
    lines = [abridged(text, LONGEST_TEXT) for text in _sentences(node, elements)]
    if with_all or len(lines) <= _MOST_LINES:
        return Cell(tuple(lines) or ("",))
    return Cell((*lines[: _MOST_LINES - 1], f"… and {len(lines) - _MOST_LINES + 1:,} more"))


def _sentences(node: NodeDifference, elements: tuple[_Elements, _Elements]) -> Iterator[str]:
    """What is to be said of a node, a line each. elements: of constants in the two models, by name."""
    before, after = node.before, node.after
    others = ", ".join(map(_shortened, node.others))
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
    """The inputs or outputs that differ, counted from 0 as the specification does."""
    for place in places:
        one = before[place] if place < len(before) else ""
        two = after[place] if place < len(after) else ""
        if one and two and one == two:
            yield f"{noun} {place}: {two} is another value"
        elif one and two:
            yield f"{noun} {place}: {one} → {two}"
        elif one or two:
            yield f"{noun} {place} {'added' if two else 'removed'}: {two or one}"


def _shortened(location: str) -> str:
    return abridged(location.removeprefix("main/"))


# Parts, values, findings -----------------------------------------------------------------------------------------


def _parts(parts: Sequence[PartDifference], with_all: bool) -> list[Block]:
    rows: list[list[str | Cell]] = [
        [each.part, _part_name(each), *_part_cells(each, with_all)]
        for each in parts
        # The line above the tables says it.
        if with_all or (each.part, each.location, each.name) != ("opset", "", "")
    ]
    if not rows:
        return []
    kept, more = _cut(rows, with_all)
    return [table(("part", "name", "before", "after"), ("", "bold", "", ""), kept), *more]


def _part_name(part: PartDifference) -> str:
    name = part.name or ("ai.onnx" if part.part == "opset" else "")
    return abridged(name if part.location in ("", "main") else f"{part.location}: {name}")


def _part_cells(part: PartDifference, with_all: bool) -> tuple[Cell, Cell]:
    most = LONGEST_TEXT if with_all else _PART
    one, two = (_NONE if text is None else shortened(text, most) for text in (part.before, part.after))
    return Cell((one,), "red"), Cell(("other elements" if part.before == part.after else two,), "green")


def _values(difference: ModelDifference, with_all: bool) -> list[Block]:
    told = {each.name for each in difference.parts if each.part in ("input", "output") and each.location == "main"}
    shown = [
        each
        for each in difference.values
        if with_all or (each.kind == "changed" and not (each.location == "main" and each.name in told))
    ]
    blocks: list[Block] = []
    if shown:
        rows: list[list[str | Cell]] = [
            [_value_name(each), Cell((_type(each.before),), "red"), Cell((_type(each.after),), "green")]
            for each in shown
        ]
        kept, more = _cut(rows, with_all)
        blocks += [table(("value", "before", "after"), ("bold", "", ""), kept), *more]
    left = 0 if with_all else sum(each.kind != "changed" for each in difference.values)
    if left:
        text = f"{count(left, 'value')} of added and removed nodes; --all shows them"
        blocks += [*([BLANK] if blocks else []), line((f"  {text}", "dim"))]
    return blocks


def _value_name(value: ValueDifference) -> str:
    name = f"{value.old_name} → {value.name}" if value.old_name else value.name
    return abridged(name if value.location == "main" else f"{_shortened(value.location)}: {name}")


def _type(value: object) -> str:
    return _NONE if value is None else abridged(str(value), LONGEST_TEXT)


def _findings(title: str, difference: ModelDifference, with_all: bool) -> list[Block]:
    found = difference.new_findings if title.startswith("new") else difference.gone_findings
    if not found:
        return []
    shown = found if with_all or len(found) <= _MOST_ROWS + 1 else found[:_MOST_ROWS]
    left = len(found) - len(shown)
    more: Iterable[Block] = [line((f"  … and {left:,} more; --all shows them", "dim"))] if left else []
    return [line((title, "dim")), findings_table(shown), *more]
