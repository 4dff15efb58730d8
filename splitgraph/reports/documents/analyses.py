"""The documents of `infer` and `report`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING

from splitgraph.reports.documents.parts import Document, diagnostics_json, dim_json, type_json, types_json
from splitgraph.reports.documents.skeletons import command_document

if TYPE_CHECKING:
    from splitgraph.inference.analysis import Analysis, SplitReport
    from splitgraph.inference.costs import Costs
    from splitgraph.inference.why import Step


def analysis_json(analysis: Analysis, model_name: str, with_values: bool = False) -> Document:
    """Return what `infer --json` prints. with_values: also the nodes of each operator in `operators`,
    the `values` of the main graph, and those of all `graphs`, by location.
    """
    completeness = analysis.completeness
    branches = [obligation for obligation in analysis.obligations if obligation.branches]
    origin = completeness.first_unknown
    values: Document = {}
    if with_values:
        values["operators"] = dict(sorted(analysis.operators.items()))
        values["values"] = types_json(analysis.types)
        values["graphs"] = {location: types_json(types) for location, types in analysis.graphs.items()}
    document = command_document(
        "infer",
        model=model_name,
        opset=dict(analysis.opset),
        ok=analysis.ok,
        inputs=types_json(analysis.inputs),
        outputs=types_json(analysis.outputs),
        splits=[_split_json(split) for split in analysis.splits],
        symbols={name: {"min": low, "max": high} for name, (low, high) in analysis.symbols.items()},
        obligations=[str(obligation) for obligation in analysis.obligations if not obligation.branches],
        branch_obligations=[
            {"obligation": str(obligation), "branch": name} for obligation in branches for name in obligation.branches
        ],
        assumptions=[str(obligation) for obligation in analysis.assumptions],
        diagnostics=diagnostics_json(analysis.diagnostics),
        accepted=diagnostics_json(analysis.accepted),
        completeness={
            "dims": completeness.dims,
            "known": completeness.known,
            "symbolic": completeness.symbolic,
            "unknown_rank": completeness.unknown_rank,
            "nodes": completeness.nodes,
            "unknown_operators": list(completeness.unknown_operators),
            "left_open": completeness.left_open,
            "first_unknown": None if origin is None else asdict(origin),
        },
        costs=_costs_json(analysis.costs),
    )
    # The values stand after the splits.
    before = {name: document[name] for name in ("splitgraph", "model", "opset", "ok", "inputs", "outputs", "splits")}
    return {**before, **values, **document}


def _costs_json(costs: Costs | None) -> Document | None:
    return None if costs is None else {**costs._asdict(), "multiply_adds": dim_json(costs.multiply_adds)}


def why_json(steps: Iterable[Step]) -> list[Document]:
    """Return what `infer --why` adds to the document: the value, and all that its dimensions depend on."""
    return [
        {
            "name": step.value,
            **type_json(step.type),
            "graph": step.graph,
            "source": step.source,
            "location": step.location,
            "operator": step.operator,
            "elements": [dim_json(dim) for dim in step.elements],
            "reads": list(step.reads),
            "enters": list(step.enters),
            "reason": step.reason,
        }
        for step in steps
    ]


def report_json(models: Iterable[tuple[str, Analysis]], output: str) -> Document:
    """Return what `report --json` prints: the page that was written, and the findings of each model on it."""
    drawn = [
        {"model": name, "ok": analysis.ok, "diagnostics": diagnostics_json(analysis.diagnostics)}
        for name, analysis in models
    ]
    return command_document("report", ok=all(model["ok"] for model in drawn), output=output, models=drawn)


def _split_json(split: SplitReport) -> Document:
    return {
        "node": split.name,
        "op": split.op,
        "domain": split.domain,
        "since_version": split.since_version,
        "location": split.location,
        "axis": split.axis,
        "input": {"name": split.input_name, **type_json(split.input)},
        "outputs": [{"name": name, **type_json(value)} for name, value in split.outputs],
        "lengths": [dim_json(length) for length in split.lengths],
        "obligations": list(split.obligations),
    }
