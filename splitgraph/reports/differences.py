"""The page of the differences between two models."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeVar

from splitgraph.findings.diagnostics import LONGEST_TEXT, Diagnostic, abridged
from splitgraph.reports.change_groups import ChangeGroup, change_groups, what_changed
from splitgraph.reports.pages import findings_table
from splitgraph.reports.text import BLANK, Block, Cell, count, line, opset_text, shortened, table

if TYPE_CHECKING:
    from splitgraph.differences import ModelDifference, NodeDifference, NodeForm, PartDifference, ValueDifference


# Characters of a part's text that a page shows unless everything is asked for.
_PART = 60
_NONE = "–"
# The parts that a caller of the model sees: they come first.
_ENDS = ("input", "output", "order of inputs", "order of outputs")


def difference_page(
    difference: ModelDifference, before_name: str, after_name: str, *, with_all: bool = False
) -> list[Block]:
    """Return what `diff` prints: a line with the two models and what differs in numbers, then the differences.

    with_all: show every difference, also nodes of which only the version of the operator differs.
    """
    opset = opsets_phrase(difference.before_opset, difference.after_opset)
    header = line((before_name, "bold"), " → ", (after_name, "bold"), f" · {opset} · {nodes_phrase(difference)}")
    blocks = difference_blocks(difference, with_all=with_all)
    return [header, BLANK, *blocks] if blocks else [header]


def difference_blocks(
    difference: ModelDifference, *, with_all: bool = False, more: str = "--all shows them"
) -> list[Block]:
    """Return the differences as tables, one for each kind of difference, with a blank line between them; nothing if
    there is no difference.

    more: how to see the rows that are left out, as the end of a sentence.
    """
    extent = Extent(with_all, more)
    ends = [part for part in difference.parts if part.part in _ENDS]
    groups = [
        _parts(ends, extent),
        nodes_blocks(difference, extent),
        _parts([part for part in difference.parts if part.part not in _ENDS], extent),
        _values(difference, extent),
        _findings("new findings", difference.new_findings, extent),
        _findings("findings that are gone", difference.gone_findings, extent),
    ]
    blocks: list[Block] = []
    for group in filter(None, groups):
        blocks += [BLANK, *group] if blocks else group
    return blocks


def opsets_phrase(before: Mapping[str, int], after: Mapping[str, int]) -> str:
    """Return the opsets of both models: "opset 11 → 18"."""
    first, second = opset_text(before), opset_text(after)
    if first == second:
        return first
    others = {name: version for name, version in before.items() if name}
    if "" in before and "" in after and others == {name: version for name, version in after.items() if name}:
        return f"opset {before['']} → {after['']}"
    return f"{first} → {second}"


def nodes_phrase(difference: ModelDifference) -> str:
    """Return how many nodes differ: "2 splits and 1 other node changed, 3 nodes added"."""
    if difference.is_empty:
        return f"no difference in {count(difference.after_nodes, 'node')}"
    if not difference.nodes:
        return f"all {count(difference.after_nodes, 'node')} are the same"
    changed = [node for node in difference.nodes if node.kind == "changed" and not node.only_names]
    splits = sum(node.is_split for node in changed)
    others = len(changed) - splits
    phrases = []
    if changed:
        others_phrase = count(others, "other node" if splits else "node")
        named = [*([count(splits, "split")] if splits else []), *([others_phrase] if others else [])]
        phrases.append(f"{' and '.join(named)} changed")
    for kind in ("added", "removed"):
        number = sum(node.kind == kind for node in difference.nodes)
        if number:
            phrases.append(f"{count(number, 'node')} {kind}")
    versions = sum(node.only_version for node in difference.nodes)
    names = sum(node.only_names for node in difference.nodes) - versions
    if names:
        phrases.append(f"{count(names, 'node')} only with other names or notes")
    if versions:
        phrases.append(f"{count(versions, 'node')} only of another operator version")
    return ", ".join(phrases)


# Parts, values, findings -----------------------------------------------------------------------------------------


def _parts(parts: Sequence[PartDifference], extent: Extent) -> list[Block]:
    rows: list[list[str | Cell]] = [
        [part.part, _part_name(part), *_part_cells(part, extent.with_all)]
        for part in parts
        # The line above the tables says it.
        if extent.with_all or (part.part, part.location, part.name) != ("opset", "", "")
    ]
    if not rows:
        return []
    kept, more = extent.cut(rows)
    return [table(("part", "name", "before", "after"), ("", "bold", "", ""), kept), *more]


def _part_name(part: PartDifference) -> str:
    name = part.name or ("ai.onnx" if part.part == "opset" else "")
    return abridged(name if part.location in ("", "main") else f"{part.location}: {name}")


def _part_cells(part: PartDifference, with_all: bool) -> tuple[Cell, Cell]:
    most = LONGEST_TEXT if with_all else _PART
    old, new = (_NONE if text is None else shortened(text, most) for text in (part.before, part.after))
    return Cell((old,), "red"), Cell(("other elements" if part.before == part.after else new,), "green")


def _values(difference: ModelDifference, extent: Extent) -> list[Block]:
    told = {part.name for part in difference.parts if part.part in ("input", "output") and part.location == "main"}
    shown = [
        value
        for value in difference.values
        if extent.with_all or (value.kind == "changed" and not (value.location == "main" and value.name in told))
    ]
    blocks: list[Block] = []
    if shown:
        rows: list[list[str | Cell]] = [
            [_value_name(value), Cell((_type(value.before),), "red"), Cell((_type(value.after),), "green")]
            for value in shown
        ]
        kept, more = extent.cut(rows)
        blocks += [table(("value", "before", "after"), ("bold", "", ""), kept), *more]
    left = 0 if extent.with_all else sum(value.kind != "changed" for value in difference.values)
    if left:
        text = f"{count(left, 'value')} of added and removed nodes"
        blocks += [*([BLANK] if blocks else []), extent.left_out(text)]
    return blocks


def _value_name(value: ValueDifference) -> str:
    name = f"{value.old_name} → {value.name}" if value.old_name else value.name
    return abridged(name if value.location == "main" else f"{short_location(value.location)}: {name}")


def _type(value: object) -> str:
    return _NONE if value is None else abridged(str(value), LONGEST_TEXT)


def _findings(title: str, findings: Sequence[Diagnostic], extent: Extent) -> list[Block]:
    if not findings:
        return []
    kept, more = extent.cut(findings)
    return [line((title, "dim")), findings_table(kept), *more]


# Nodes ----------------------------------------------------------------------------------------------------------------


# Rows of each table that a page shows unless everything is asked for.
_MOST_ROWS = 20

RowT = TypeVar("RowT")


class Extent(NamedTuple):
    """The extent of a page: everything or not, and how to see more."""

    with_all: bool
    more: str

    def cut(self, rows: Sequence[RowT]) -> tuple[Sequence[RowT], list[Block]]:
        """Return the rows that are shown, and a line that says how many are not."""
        if not self.is_cut(rows):
            return rows, []
        return rows[:_MOST_ROWS], [line((f"  … and {len(rows) - _MOST_ROWS:,} more; {self.more}", "dim"))]

    def is_cut(self, rows: Sequence[object]) -> bool:
        """Return True if not all rows are shown."""
        # One row takes no more place than the line that stands for it.
        return not self.with_all and len(rows) > _MOST_ROWS + 1

    def left_out(self, text: str) -> Block:
        """Return a line about rows that are not shown."""
        return line((f"  {text}; {self.more}", "dim"))


# Lines of each node, and characters of a line, that a page shows unless everything is asked for: a node may have
# thousands of inputs.
_MOST_LINES = 4
_SENTENCE = 300
_STYLES = {"added": "green", "removed": "red", "changed": ""}
_MARKS = {"added": "+ ", "removed": "- ", "changed": ""}

# The elements of small constants as text, by name.
_Elements = Mapping[str, str]


def nodes_blocks(difference: ModelDifference, extent: Extent) -> list[Block]:
    """Return the table, splits first, and how many nodes it leaves out because only the version of the operator
    differs.
    """
    shown = [changed for changed in difference.nodes if extent.with_all or not changed.only_version]
    if not extent.with_all:
        # The most important nodes come first, because the rest may be cut off.
        shown.sort(key=lambda changed: (not changed.is_split, changed.only_names))
    blocks: list[Block] = []
    if shown:
        elements = _elements(difference, "before"), _elements(difference, "after")
        # Many rows of one kind would push out all others.
        groups = [ChangeGroup(((node,),)) for node in shown]
        if extent.is_cut(shown):
            groups = change_groups(shown)
        rows = [_node_row(group, elements, extent.with_all) for group in groups]
        kept, more = extent.cut(rows)
        blocks += [table(("node", "operator", "what"), ("bold", "cyan", ""), kept), *more]
    left = 0 if extent.with_all else sum(changed.only_version for changed in difference.nodes)
    if left:
        text = f"{count(left, 'node')} only of another operator version"
        blocks += [*([BLANK] if blocks else []), extent.left_out(text)]
    return blocks


def _node_row(group: ChangeGroup, elements: tuple[_Elements, _Elements], with_all: bool) -> list[str | Cell]:
    """Return the row of a node, or of a group: how many nodes are like the first one, and what they have in common."""
    node, others = group.first, group.others
    name, what = short_location(node.location), _what(node, elements, with_all)
    if len(group.clusters) > 1:
        name, what = f"{name} and {len(group.clusters) - 1:,} more", Cell((what_changed(node),))
    if others:
        what = Cell((*filter(None, what.lines), f"with {shortened(others, _SENTENCE)}"))
    return [name, Cell((_operators(node),), _STYLES[node.kind]), what]


def _operators(node: NodeDifference) -> str:
    named = dict.fromkeys(abridged(form.operator) for form in (node.before, node.after) if form is not None)
    return _MARKS[node.kind] + " → ".join(named)


def _elements(difference: ModelDifference, side: Literal["before", "after"]) -> _Elements:
    """Return the elements of small constants that only one of the models has, by name: "1, 2, 3"."""
    texts: dict[str, str | None] = {
        part.name: getattr(part, side) for part in difference.parts if part.part == "initializer"
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
    """Return the sentences about a node, a line each. elements: of constants in the two models, by name."""
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
        old, new = _with_elements(before.inputs, elements[0]), _with_elements(after.inputs, elements[1])
        yield from _places("input", old, new, node.inputs)
    if "outputs" in node.aspects:
        pairs = enumerate(zip_longest(before.outputs, after.outputs, fillvalue=""))
        places = [place for place, (old, new) in pairs if old != new]
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
        text_before, text_after = before.attributes.get(name), after.attributes.get(name)
        if text_before is not None and text_after is not None:
            yield f"{name}: other elements" if text_before == text_after else f"{name} {text_before} → {text_after}"
        elif text_before is not None:
            gone.append(f"{name} {text_before}")
        else:
            new.append(f"{name} {text_after}")
    if gone and new:
        yield f"{', '.join(gone)} → {', '.join(new)}"
    elif gone or new:
        yield f"{', '.join(gone or new)} {'removed' if gone else 'added'}"


def _with_elements(names: Sequence[str], elements: _Elements) -> list[str]:
    return [f"{name} = {elements[name]}" if elements.get(name) else name for name in names]


def _places(noun: str, before: Sequence[str], after: Sequence[str], places: Iterable[int]) -> Iterator[str]:
    """Return the inputs or outputs that differ, counted from 0 as the specification does."""
    for place in places:
        old = before[place] if place < len(before) else ""
        new = after[place] if place < len(after) else ""
        if old and new and old == new:
            yield f"{noun} {place}: {new} is another value"
        elif old and new:
            yield f"{noun} {place}: {old} → {new}"
        elif old or new:
            yield f"{noun} {place} {'added' if new else 'removed'}: {new or old}"


def short_location(location: str) -> str:
    """Return a location without the name of the main graph."""
    return abridged(location.removeprefix("main/"))
