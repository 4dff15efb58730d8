"""The page of a model before and after a rewrite, and the data of what differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from splitgraph.inference.analysis import Analysis
from splitgraph.reports.change_groups import change_groups, what_changed
from splitgraph.reports.html.model_data import model_data
from splitgraph.reports.html.model_page import last_part, page_of
from splitgraph.reports.text import count, printable, region_text, regions_text, verification_phrase

if TYPE_CHECKING:
    from splitgraph.conversion.rewrite import Change
    from splitgraph.differences import ModelDifference, NodeDifference, NodeForm, PartDifference, ValueDifference
    from splitgraph.findings.diagnostics import Diagnostic
    from splitgraph.reports.documents.parts import Document
    from splitgraph.verification.verification import Verification


Places = Mapping[str, tuple[int, int]]

# Nodes that take the place of one.
_MOST_OTHERS = 8
# Entries of each list beside the nodes.
_MOST_LISTED = 500


def is_listed(node: NodeDifference) -> bool:
    """Return False for a node that only has another version of its operator or other names, which a new opset and a
    new exporter give to nearly all nodes; splits are always listed.
    """
    return node.is_split or not (node.only_version or node.only_names)


def difference_data(
    difference: ModelDifference,
    places: tuple[Places, Places],
    changes: Sequence[Change] = (),
    verification: Verification | None = None,
) -> Document:
    """Return the data of the differences. places: of the nodes of both models. changes: the reasons, by location.
    verification: of the two models.
    """
    checked: dict[str, str] = {}
    for region in () if verification is None else verification.regions:
        checked |= dict.fromkeys((*region.nodes_before, *region.nodes_after), region_text(region))
    reasons = {change.location: change.why for change in changes}
    listed = [node for node in difference.nodes if is_listed(node)]
    others = len(difference.nodes) - len(listed)
    parts = [_part_text(part) for part in difference.parts]
    if others:
        parts.append(f"{count(others, 'node')} with another version of the operator or other names, otherwise the same")
    if verification is not None:
        told = [verification_phrase(verification), verification.difference_text, *map(_text, verification.diagnostics)]
        regions = [regions_text(verification.regions)] if verification.regions else []
        parts = [*(text for text in (*told[:1], *regions, *told[1:]) if text), *parts]
    place_of = {id(node): place for place, node in enumerate(listed)}
    return {
        "changes": [_change(node, places, reasons, checked) for node in listed],
        "groups": [
            {
                "others": printable(group.others),
                "clusters": [[place_of[id(node)] for node in cluster] for cluster in group.clusters],
            }
            for group in change_groups(listed)
        ],
        "parts": _limited(parts),
        "values": _limited([_value_text(value) for value in difference.values if value.kind == "changed"]),
        "new_findings": [_finding(finding) for finding in difference.new_findings[:_MOST_LISTED]],
        "gone_findings": [_finding(finding) for finding in difference.gone_findings[:_MOST_LISTED]],
    }


def _text(finding: Diagnostic) -> str:
    return f"{finding.code}: {finding.message}"


def _change(
    node: NodeDifference, places: tuple[Places, Places], reasons: Mapping[str, str], checked: Mapping[str, str]
) -> Document:
    forms = node.before, node.after
    shown = node.after or node.before
    at = [None if form is None else known.get(form.location) for form, known in zip(forms, places, strict=True)]
    locations = [form.location for form in forms if form is not None]
    why = next((reasons[location] for location in locations if location in reasons), "")
    verdicts = dict.fromkeys(checked[location] for location in locations if location in checked)
    return {
        "kind": node.kind,
        "loc": printable(node.location),
        "name": printable((shown.name if shown else "") or node.location.rsplit("/", 1)[-1]),
        "before": "" if node.before is None else printable(node.before.operator),
        "after": "" if node.after is None else printable(node.after.operator),
        "nodes": at,
        "others": [printable(location) for location in node.others[:_MOST_OTHERS]],
        "why": printable(why),
        "what": printable(what_changed(node)),
        "details": [printable(text) for text in (*verdicts, *_details(node))],
    }


def _details(node: NodeDifference) -> list[str]:
    """Return what differs in a changed node, in words; which nodes took the place of one that was removed."""
    lines = [_attribute_text(node, name) for name in node.attributes]
    lines += [_input_text(node.before, node.after, position) for position in node.inputs]
    if node.others:
        verb = "is replaced by" if node.kind == "removed" else "replaces" if node.kind == "added" else "goes with"
        more = len(node.others) - _MOST_OTHERS
        lines.append(f"{verb} {', '.join(node.others[:_MOST_OTHERS])}" + (f" and {more} more" if more > 0 else ""))
    return lines


def _attribute_text(node: NodeDifference, name: str) -> str:
    values = [None if form is None else form.attributes.get(name) for form in (node.before, node.after)]
    before, after = ("none" if value is None else value for value in values)
    return f"attribute {name}: {before} → {after}"


def _input_text(before: NodeForm | None, after: NodeForm | None, position: int) -> str:
    names = [form.inputs[position] if form and position < len(form.inputs) else "" for form in (before, after)]
    return f"input {position}: {names[0] or 'none'} → {names[1] or 'none'}"


def _part_text(part: PartDifference) -> str:
    named = " ".join(filter(None, (part.part, part.name)))
    where = f" of {part.location}" if part.location not in ("", "main") else ""
    if part.before is None or part.after is None:
        content = part.after if part.before is None else part.before
        return f"{named}{where} {part.kind}: {content}"
    values = "other elements" if part.before == part.after else f"{part.before} → {part.after}"
    return f"{named}{where}: {values}"


def _value_text(value: ValueDifference) -> str:
    return f"{value.name}: {value.before or 'unknown'} → {value.after or 'unknown'}"


def _limited(texts: Sequence[str]) -> list[str]:
    more = len(texts) - _MOST_LISTED
    shown = [printable(text) for text in texts[:_MOST_LISTED]]
    return [*shown, f"and {more:,} more: splitgraph diff --all lists them"] if more > 0 else shown


def _finding(finding: Diagnostic) -> Document:
    texts = {"message": finding.message, "help": finding.help, "loc": finding.location}
    return {"code": finding.code, "severity": finding.severity, **{key: printable(text) for key, text in texts.items()}}


def changes_page(
    before: Analysis,
    after: Analysis,
    difference: ModelDifference,
    names: tuple[str, str],
    *,
    changes: Sequence[Change] = (),
    verification: Verification | None = None,
    title: str | None = None,
) -> str:
    """Return a self-contained HTML page of two models, with what differs between them.

    before, after: the analyses. difference: of the two models, as `splitgraph.diff` returns it. names: of the models,
    such as their paths. changes: of the rewrite that made the second model, `Rewrite.changes`, which have the reason of
    each change. verification: of the two models. title: of the page; by default the last parts of the names.
    """
    forms = [(node.before, node.after) for node in difference.nodes if is_listed(node)]
    data = [
        model_data(analysis, name, [form.location for pair in forms if (form := pair[side]) is not None])
        for side, (analysis, name) in enumerate(((before, names[0]), (after, names[1])))
    ]
    shown = printable(title or " → ".join(map(last_part, names)))
    differences = difference_data(difference, (data[0].places, data[1].places), changes, verification)
    return page_of({"title": shown, "models": [model.document for model in data], **differences})
