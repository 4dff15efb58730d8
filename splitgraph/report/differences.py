"""What differs between two models, as a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from splitgraph.diagnostics import LONGEST_TEXT, Diagnostic, abridged
from splitgraph.report.layout import BLANK, Block, Cell, line, table
from splitgraph.report.node_differences import Extent, nodes_blocks, short_location
from splitgraph.report.pages import findings_table
from splitgraph.report.text import count, opset_text, shortened

if TYPE_CHECKING:
    from splitgraph.differences import ModelDifference, PartDifference, ValueDifference

# Characters of a part's text that a page shows unless everything is asked for.
_PART = 60
_NONE = "–"


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
    """Return the differences as tables, one for each kind of difference, with a blank line between them; none where
    nothing differs. more: what to do to see what is left out, as the end of a sentence.
    """
    extent = Extent(with_all, more)
    groups = [
        nodes_blocks(difference, extent),
        _parts(difference.parts, extent),
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
    one, two = opset_text(before), opset_text(after)
    if one == two:
        return one
    others = {name: version for name, version in before.items() if name}
    if "" in before and "" in after and others == {name: version for name, version in after.items() if name}:
        return f"opset {before['']} → {after['']}"
    return f"{one} → {two}"


def nodes_phrase(difference: ModelDifference) -> str:
    """Return how many nodes differ: "2 splits and 1 other node changed, 3 nodes added"."""
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


# Parts, values, findings -----------------------------------------------------------------------------------------


def _parts(parts: Sequence[PartDifference], extent: Extent) -> list[Block]:
    rows: list[list[str | Cell]] = [
        [each.part, _part_name(each), *_part_cells(each, extent.with_all)]
        for each in parts
        # The line above the tables says it.
        if extent.with_all or (each.part, each.location, each.name) != ("opset", "", "")
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
    one, two = (_NONE if text is None else shortened(text, most) for text in (part.before, part.after))
    return Cell((one,), "red"), Cell(("other elements" if part.before == part.after else two,), "green")


def _values(difference: ModelDifference, extent: Extent) -> list[Block]:
    told = {each.name for each in difference.parts if each.part in ("input", "output") and each.location == "main"}
    shown = [
        each
        for each in difference.values
        if extent.with_all or (each.kind == "changed" and not (each.location == "main" and each.name in told))
    ]
    blocks: list[Block] = []
    if shown:
        rows: list[list[str | Cell]] = [
            [_value_name(each), Cell((_type(each.before),), "red"), Cell((_type(each.after),), "green")]
            for each in shown
        ]
        kept, more = extent.cut(rows)
        blocks += [table(("value", "before", "after"), ("bold", "", ""), kept), *more]
    left = 0 if extent.with_all else sum(each.kind != "changed" for each in difference.values)
    if left:
        text = f"{count(left, 'value')} of added and removed nodes"
        blocks += [*([BLANK] if blocks else []), extent.left_out(text)]
    return blocks


def _value_name(value: ValueDifference) -> str:
    name = f"{value.old_name} → {value.name}" if value.old_name else value.name
    return abridged(name if value.location == "main" else f"{short_location(value.location)}: {name}")


def _type(value: object) -> str:
    return _NONE if value is None else abridged(str(value), LONGEST_TEXT)


def _findings(title: str, found: Sequence[Diagnostic], extent: Extent) -> list[Block]:
    if not found:
        return []
    kept, more = extent.cut(found)
    return [line((title, "dim")), findings_table(kept), *more]
