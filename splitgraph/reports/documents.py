"""JSON documents, as docs and outside programs rely on them: every name here is part of the contract.

Every document begins with `splitgraph`, the version that printed it. docs/reference/schemas/ has a JSON Schema of each.
A command has one skeleton, with the value of each entry for a command that failed before it knew more.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any

import splitgraph
from splitgraph.findings.diagnostics import Diagnostic

if TYPE_CHECKING:
    from splitgraph.conversion.rewrite import Rewrite
    from splitgraph.differences import ModelDifference, NodeDifference, NodeForm, PartDifference, ValueDifference
    from splitgraph.dim import Dim
    from splitgraph.findings.codes import CodeInfo
    from splitgraph.findings.outcome import Outcome
    from splitgraph.formats import DataFile
    from splitgraph.inference.analysis import Analysis, SplitReport
    from splitgraph.inference.costs import Costs
    from splitgraph.inference.why import Step
    from splitgraph.model.value_type import ValueType
    from splitgraph.runtimes.advice import Converted
    from splitgraph.runtimes.check import TargetCheck
    from splitgraph.runtimes.runners.result import RuntimeRun
    from splitgraph.runtimes.target import Target
    from splitgraph.verification.installation import InstallationReport, PackageReport
    from splitgraph.verification.verification import Verification

Document = dict[str, Any]

_REWRITING: Document = {
    "ok": False,
    "model": "",
    "output": None,
    "data_files": [],
    "from": {},
    "to": {},
    "changes": [],
    "diagnostics": [],
    "accepted": [],
    "assumed_defaults": [],
    "verified": None,
    "ran": None,
    "verification": None,
}
# The entries of each command's document in their order, with their values where nothing is known.
_SKELETONS: Mapping[str, Document] = {
    "infer": {
        "model": "",
        "opset": {},
        "ok": False,
        "inputs": {},
        "outputs": {},
        "splits": [],
        "symbols": {},
        "obligations": [],
        "branch_obligations": [],
        "assumptions": [],
        "diagnostics": [],
        "accepted": [],
        "completeness": None,
        "costs": None,
    },
    "upgrade": _REWRITING,
    "downgrade": _REWRITING,
    "convert": _REWRITING,
    "reshape": _REWRITING,
    "report": {"ok": False, "output": None, "models": [], "diagnostics": []},
    "verify": {
        "verdict": "not-run",
        "engine": "",
        "providers": [],
        "cases": 0,
        "max_abs_diff": None,
        "max_rel_diff": None,
        "first_difference": None,
        "proofs": [],
        "said": "NOT VERIFIED",
        "compared": {},
        "only_ran": [],
        "first_node": None,
        "regions": [],
        "diagnostics": [],
    },
    "check": {"model": "", "opset": {}, "ok": False, "targets": [], "diagnostics": [], "accepted": []},
    "diff": {
        "same": None,
        "before": None,
        "after": None,
        "parts": [],
        "nodes": [],
        "values": [],
        "new_findings": [],
        "gone_findings": [],
        "diagnostics": [],
    },
    "explain": {"ok": False, "codes": [], "diagnostics": []},
    "doctor": {
        "ok": False,
        "python": "",
        "executable": "",
        "system": "",
        "packages": [],
        "extras": {},
        "engines": [],
        "runtimes": [],
        "folders": [],
        "machine": None,
        "diagnostics": [],
    },
}


def document_text(document: Document) -> str:
    """Return the document as text: ASCII only, so that any terminal or pipe can carry it."""
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def failed_document(command: str, model_name: str, diagnostics: Iterable[Diagnostic], **known: Any) -> Document:
    """Return what a command prints with `--json` when it fails. known: entries of the document that are known."""
    named = {"model": model_name} if "model" in _SKELETONS[command] else {}
    return _document(command, **named, **known, diagnostics=diagnostics_json(diagnostics))


def _document(command: str, **known: Any) -> Document:
    """Return the document of a command. known: the entries that differ from the skeleton."""
    return {"splitgraph": splitgraph.__version__, **_SKELETONS[command], **known}


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
        values["values"] = _types_json(analysis.types)
        values["graphs"] = {location: _types_json(types) for location, types in analysis.graphs.items()}
    document = _document(
        "infer",
        model=model_name,
        opset=dict(analysis.opset),
        ok=analysis.ok,
        inputs=_types_json(analysis.inputs),
        outputs=_types_json(analysis.outputs),
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
    return None if costs is None else {**costs._asdict(), "multiply_adds": _dim_json(costs.multiply_adds)}


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
            "elements": [_dim_json(dim) for dim in step.elements],
            "reads": list(step.reads),
            "enters": list(step.enters),
            "reason": step.reason,
        }
        for step in steps
    ]


def rewrite_json(
    rewrite: Rewrite, model_name: str, *, output: str | None, data_files: Iterable[DataFile] = ()
) -> Document:
    """Return what a rewriting command prints with `--json`. output: the file that was written, None when it was kept
    back. data_files: those that it depends on.

    `verified`: true when the result was run and is equal, false for any other outcome, null with --no-verify.
    """
    return _document(
        "convert",
        ok=output is not None,
        model=model_name,
        output=output,
        data_files=data_files_json(data_files),
        **{"from": dict(rewrite.from_opset)},
        to=dict(rewrite.to_opset),
        changes=[
            {"location": change.location, "before": change.before, "after": change.after, "why": change.why}
            for change in rewrite.changes
        ],
        diagnostics=diagnostics_json(rewrite.diagnostics),
        accepted=diagnostics_json(rewrite.accepted),
        assumed_defaults=list(rewrite.assumed_defaults),
        verified=rewrite.verified,
        ran=run_json(rewrite.ran),
        verification=None if rewrite.verification is None else _comparison_json(rewrite.verification),
    )


def data_files_json(data_files: Iterable[DataFile]) -> list[Document]:
    """Return the files that a written model depends on."""
    return [{"path": str(data_file.path), "how": data_file.how} for data_file in data_files]


def report_json(models: Iterable[tuple[str, Analysis]], output: str) -> Document:
    """Return what `report --json` prints: the page that was written, and the findings of each model on it."""
    drawn = [
        {"model": name, "ok": analysis.ok, "diagnostics": diagnostics_json(analysis.diagnostics)}
        for name, analysis in models
    ]
    return _document("report", ok=all(model["ok"] for model in drawn), output=output, models=drawn)


def verification_json(verification: Verification) -> Document:
    """Return what `verify --json` prints."""
    return _document("verify", **_comparison_json(verification))


def _comparison_json(verification: Verification) -> Document:
    # In the document of a rewrite, the version stands once, at the top.
    first = verification.first_difference
    return {
        "verdict": verification.verdict,
        "engine": verification.engine,
        "providers": list(verification.providers),
        "cases": verification.cases,
        "max_abs_diff": _number_json(verification.max_abs_diff),
        "max_rel_diff": _number_json(verification.max_rel_diff),
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
                "max_abs_diff": _number_json(region.max_abs_diff),
                "verdict": region.verdict,
                "reason": region.reason,
                "unread": list(region.unread),
            }
            for region in verification.regions
        ],
        "diagnostics": diagnostics_json(verification.diagnostics),
    }


def check_json(
    model_name: str,
    opset: Mapping[str, int],
    checks: Iterable[TargetCheck],
    converted: Mapping[str, Converted],
    advice: Callable[[TargetCheck], str],
    accepted: Iterable[Diagnostic] = (),
) -> Document:
    """Return what `check --json` prints: for each target whether it runs the model, and what is in the way.

    converted: what became of the model after its conversion, by target. advice: what to do about a check. accepted:
    errors of the model that the user accepts.
    """
    checked = [
        {
            "target": check.target.key,
            "title": check.target.title,
            "version": check.target.version,
            "asked": check.target.asked or None,
            "measured": check.target.operators.measured or check.target.measured,
            "ok": not check.has_errors,
            "runs": check.runs,
            "after_conversion": converted[check.target.key].runs if check.target.key in converted else None,
            "advice": advice(check),
            "ran": run_json(check.ran),
            "counts": dict(Counter(node.answer for node in check.nodes)),
            "nodes": [
                {"node": node.node, "operator": node.operator, "answer": node.answer, "why": node.why}
                for node in check.nodes
                if node.answer != "reads"
            ],
            "diagnostics": diagnostics_json(check.findings),
        }
        for check in checks
    ]
    return _document(
        "check",
        model=model_name,
        opset=dict(opset),
        ok=all(result["ok"] for result in checked),
        targets=checked,
        accepted=diagnostics_json(accepted),
    )


def run_json(ran: RuntimeRun | None) -> Document | None:
    """Return what became of a model in a runtime itself; None if it was not to be run."""
    if ran is None:
        return None
    document = {**asdict(ran), "told": ran.told}
    del document["first_difference"]
    return document


def targets_json(targets: Iterable[Target]) -> Document:
    """Return what `check --targets --json` prints: each target, as `--target` takes it."""
    from splitgraph.runtimes.runners.interpreters import KINDS

    known = [
        {
            "target": target.key,
            "title": target.title,
            "version": target.version,
            "measured": target.operators.measured or target.measured,
            "newest_opset": target.newest_opset,
            "newest_ir_version": target.newest_ir_version,
            "has_runner": target.name in KINDS,
        }
        for target in targets
    ]
    return {"splitgraph": splitgraph.__version__, "ok": True, "targets": known}


def difference_document(difference: ModelDifference, before_name: str, after_name: str) -> Document:
    """Return what `diff --json` prints."""
    return _document(
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


def explain_json(codes: Mapping[str, CodeInfo], acceptable: Mapping[str, str]) -> Document:
    """Return what `explain --json` prints. acceptable: what an acceptance means, for each code that has one."""
    told = [
        {
            "code": code,
            "title": info.title,
            "meaning": info.meaning,
            "help": info.help,
            "acceptance": acceptable.get(code),
        }
        for code, info in codes.items()
    ]
    return _document("explain", ok=True, codes=told)


def doctor_json(report: InstallationReport) -> Document:
    """Return what `doctor --json` prints: the installation, and what is wrong with it."""
    return _document(
        "doctor",
        ok=report.ok,
        python=report.python,
        executable=report.executable,
        system=report.system,
        packages=[_package_json(package) for package in report.packages],
        extras={name: _package_json(package) for name, package in report.extras.items()},
        engines=[{**asdict(engine), "devices": list(engine.devices)} for engine in report.engines],
        runtimes=[asdict(runtime) for runtime in report.runtimes],
        folders=[asdict(folder) for folder in report.folders],
        machine=asdict(report.machine),
        diagnostics=diagnostics_json(report.diagnostics),
    )


def _package_json(package: PackageReport) -> Document:
    return {"name": package.name, "version": package.version, "oldest": package.oldest or None}


def batch_json(verb: str, outcomes: Sequence[Outcome]) -> Document:
    """Return what a command prints of many models with `--json`: how many ended with each status, and each of them."""
    numbers = Counter(outcome.status for outcome in outcomes)
    return {
        "splitgraph": splitgraph.__version__,
        "verb": verb,
        "ok": all(outcome.ok for outcome in outcomes),
        "counts": dict(sorted(numbers.items())),
        "models": [_outcome(outcome) for outcome in outcomes],
    }


def outcome_json(outcome: Outcome) -> Document:
    """Return one line of a report of many models."""
    return {"splitgraph": splitgraph.__version__, **_outcome(outcome)}


def _outcome(outcome: Outcome) -> Document:
    # In the document of many models, the version stands once, at the top.
    values = {field.name: getattr(outcome, field.name) for field in fields(outcome)}
    return {
        **values,
        "diagnostics": diagnostics_json(outcome.diagnostics),
        "accepted": diagnostics_json(outcome.accepted),
        "assumed_defaults": list(outcome.assumed_defaults),
        "data_files": dict(outcome.data_files),
        "seconds": round(outcome.seconds, 4),
        "files": dict(outcome.files),
    }


def diagnostics_json(diagnostics: Iterable[Diagnostic]) -> list[Document]:
    """Return diagnostics, in the order of the findings."""
    return [asdict(finding) for finding in diagnostics]


def _types_json(types: Mapping[str, ValueType]) -> Document:
    return {name: type_json(value) for name, value in types.items()}


def type_json(value: ValueType) -> Document:
    """Return a value's kind, element type and shape; and `element` unless it is a tensor of that type and shape."""
    document: Document = {
        "kind": value.kind,
        "dtype": value.dtype,
        "shape": None if value.shape is None else [_dim_json(dim) for dim in value.shape],
    }
    if value.element is not None:
        document["element"] = type_json(value.element)
    return document


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
        "lengths": [_dim_json(length) for length in split.lengths],
        "obligations": list(split.obligations),
    }


def _dim_json(dim: int | Dim | None) -> int | str | None:
    return dim if dim is None or isinstance(dim, int) else str(dim)


def _number_json(number: float | None) -> float | str | None:
    # JSON has no infinity and no NaN; a string says it, null would say that nothing was compared.
    return number if number is None or math.isfinite(number) else str(number)
