"""The documents of `verify` and `diff`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from splitgraph.reports.documents.parts import Document, diagnostics_json, number_json, type_json
from splitgraph.reports.documents.skeletons import command_document

if TYPE_CHECKING:
    from splitgraph.differences import ModelDifference, NodeDifference, NodeForm, PartDifference, ValueDifference
    from splitgraph.verification.verification import Verification


def verification_json(verification: Verification) -> Document:
    """Return what `verify --json` prints."""
    return command_document("verify", **comparison_json(verification))


def comparison_json(verification: Verification) -> Document:
    """Return how two models compare, without the version, which the document of a rewrite has once, at the top."""
    first = verification.first_difference
    return {
        "verdict": verification.verdict,
        "engine": verification.engine,
        "providers": list(verification.providers),
        "cases": verification.cases,
        "max_abs_diff": number_json(verification.max_abs_diff),
        "max_rel_diff": number_json(verification.max_rel_diff),
        "first_difference": None if first is None else {"name": first.name, "case": first.case, "reason": first.reason},
        "proofs": list(verification.proofs),
        "said": verification.said,
        "compared": {name: list(sizes) for name, sizes in verification.compared.items()},
        "only_ran": [dict(sizes) for sizes in verification.only_ran],
        "first_node": None if verification.first_node is None else asdict(verification.first_node),
        "regions": [
            {
                "name": region.name,
                "nodes_before": list(region.nodes_before),
                "nodes_after": list(region.nodes_after),
                "cases": region.cases,
                "max_abs_diff": number_json(region.max_abs_diff),
                "verdict": region.verdict,
                "reason": region.reason,
                "unread": list(region.unread),
            }
            for region in verification.regions
        ],
        "diagnostics": diagnostics_json(verification.diagnostics),
    }


def difference_document(difference: ModelDifference, before_name: str, after_name: str) -> Document:
    """Return what `diff --json` prints."""
    return command_document(
        "diff",
        same=difference.is_empty,
        before=_side(before_name, difference.before_opset, difference.before_nodes),
        after=_side(after_name, difference.after_opset, difference.after_nodes),
        **difference_json(difference),
    )


def difference_json(difference: ModelDifference) -> Document:
    """Return the differences alone, for documents of other commands and for the report."""
    return {
        "parts": [_part(part) for part in difference.parts],
        "nodes": [_node(node) for node in difference.nodes],
        "values": [_value(value) for value in difference.values],
        "new_findings": diagnostics_json(difference.new_findings),
        "gone_findings": diagnostics_json(difference.gone_findings),
    }


def _side(name: str, opset: Mapping[str, int], nodes: int) -> Document:
    return {"model": name, "opset": dict(opset), "nodes": nodes}


def _part(part: PartDifference) -> Document:
    return {
        "part": part.part,
        "location": part.location,
        "name": part.name,
        "kind": part.kind,
        "before": part.before,
        "after": part.after,
    }


def _node(node: NodeDifference) -> Document:
    return {
        "location": node.location,
        "kind": node.kind,
        "is_split": node.is_split,
        "before": None if node.before is None else _form(node.before),
        "after": None if node.after is None else _form(node.after),
        "aspects": list(node.aspects),
        "attributes": list(node.attributes),
        "inputs": list(node.inputs),
        "others": list(node.others),
    }


def _form(form: NodeForm) -> Document:
    return {
        "location": form.location,
        "name": form.name,
        "operator": form.operator,
        "inputs": list(form.inputs),
        "outputs": list(form.outputs),
        "attributes": dict(form.attributes),
    }


def _value(value: ValueDifference) -> Document:
    return {
        "location": value.location,
        "name": value.name,
        "old_name": value.old_name,
        "kind": value.kind,
        "before": None if value.before is None else type_json(value.before),
        "after": None if value.after is None else type_json(value.after),
    }
