"""The JSON documents of `diff`; every name here is part of the contract, as in `documents`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

import splitgraph
from splitgraph.diagnostics import Diagnostic
from splitgraph.report.documents import Document, diagnostics_json, type_json

if TYPE_CHECKING:
    from splitgraph.differences import ModelDifference, NodeDifference, NodeForm, PartDifference, ValueDifference


def difference_document(difference: ModelDifference, before_name: str, after_name: str) -> Document:
    """What `diff --json` prints."""
    return {
        "splitgraph": splitgraph.__version__,
        "same": difference.is_empty,
        "before": _side(before_name, difference.before_opset, difference.before_nodes),
        "after": _side(after_name, difference.after_opset, difference.after_nodes),
        **difference_json(difference),
        "diagnostics": [],
    }


def failed_difference_document(diagnostics: Iterable[Diagnostic]) -> Document:
    """What `diff --json` prints when the models cannot be compared."""
    return {
        "splitgraph": splitgraph.__version__,
        "same": None,
        "before": None,
        "after": None,
        "parts": [],
        "nodes": [],
        "values": [],
        "new_findings": [],
        "gone_findings": [],
        "diagnostics": diagnostics_json(diagnostics),
    }


def difference_json(difference: ModelDifference) -> Document:
    """The differences alone, for documents of other commands and for the report."""
    return {
        "parts": [_part(each) for each in difference.parts],
        "nodes": [_node(each) for each in difference.nodes],
        "values": [_value(each) for each in difference.values],
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
