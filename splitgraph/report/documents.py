"""JSON documents, as docs and outside programs rely on them: every name here is part of the contract.

Every document begins with `splitgraph`, the version that printed it. docs/reference/schemas/ has a JSON Schema of each.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import splitgraph
from splitgraph.diagnostics import Diagnostic

if TYPE_CHECKING:
    from splitgraph.conversion.rewrite import Rewrite
    from splitgraph.dim import Dim
    from splitgraph.execution.verification import Verification
    from splitgraph.formats import DataFile
    from splitgraph.inference.analysis import Analysis, SplitReport
    from splitgraph.runtimes.target import Target
    from splitgraph.value_type import ValueType

Document = dict[str, Any]


def document_text(document: Document) -> str:
    """The document as text; ASCII only, so that it is valid JSON whatever the encoding of the terminal or pipe."""
    return json.dumps(document, indent=2, ensure_ascii=True, allow_nan=False) + "\n"


def analysis_json(analysis: Analysis, model_name: str, with_values: bool = False) -> Document:
    """What `infer --json` prints; `values` (of the main graph) and `graphs` (of each, by location) only on request."""
    document: Document = {
        "splitgraph": splitgraph.__version__,
        "model": model_name,
        "opset": dict(analysis.opset),
        "ok": analysis.ok,
        "splits": [_split_json(split) for split in analysis.splits],
    }
    if with_values:
        document["values"] = {name: type_json(value) for name, value in analysis.types.items()}
        document["graphs"] = {
            location: {name: type_json(value) for name, value in types.items()}
            for location, types in analysis.graphs.items()
        }
    document["symbols"] = {name: {"min": low, "max": high} for name, (low, high) in analysis.symbols.items()}
    document["obligations"] = [str(each) for each in analysis.obligations if not each.branches]
    document["branch_obligations"] = [
        {"obligation": str(each), "branch": branch} for each in analysis.obligations for branch in each.branches
    ]
    document["assumptions"] = [str(each) for each in analysis.assumptions]
    document["diagnostics"] = diagnostics_json(analysis.diagnostics)
    document["accepted"] = diagnostics_json(analysis.accepted)
    found = analysis.completeness
    origin = found.first_unknown
    document["completeness"] = {
        "dims": found.dims,
        "known": found.known,
        "symbolic": found.symbolic,
        "unknown_rank": found.unknown_rank,
        "nodes": found.nodes,
        "unknown_operators": list(found.unknown_operators),
        "left_open": found.left_open,
        "first_unknown": None if origin is None else {"location": origin.location, "reason": origin.reason},
    }
    return document


def failed_analysis_json(model_name: str, diagnostics: Iterable[Diagnostic]) -> Document:
    """What `infer --json` prints of a file that cannot be read."""
    return {
        "splitgraph": splitgraph.__version__,
        "model": model_name,
        "opset": {},
        "ok": False,
        "splits": [],
        "symbols": {},
        "obligations": [],
        "branch_obligations": [],
        "assumptions": [],
        "diagnostics": diagnostics_json(diagnostics),
        "accepted": [],
        "completeness": None,
    }


def rewrite_json(
    rewrite: Rewrite, model_name: str, *, output: str | None, data_files: Iterable[DataFile] = ()
) -> Document:
    """What a rewriting command prints with `--json`; output: the file that was written, None when it was kept back;
    data_files: those that it depends on.

    `verified`: true when the result was run and is equal, false for any other outcome, null with --no-verify.
    """
    return {
        "splitgraph": splitgraph.__version__,
        "ok": output is not None,
        "model": model_name,
        "output": output,
        "data_files": [{"path": str(each.path), "how": each.how} for each in data_files],
        "from": dict(rewrite.from_opset),
        "to": dict(rewrite.to_opset),
        "changes": [
            {"location": change.location, "before": change.before, "after": change.after, "why": change.why}
            for change in rewrite.changes
        ],
        "diagnostics": diagnostics_json(rewrite.diagnostics),
        "accepted": diagnostics_json(rewrite.accepted),
        "assumed_defaults": list(rewrite.assumed_defaults),
        "verified": rewrite.verified,
        "verification": None if rewrite.verification is None else _comparison_json(rewrite.verification),
    }


def failed_rewrite_json(
    model_name: str, diagnostics: Iterable[Diagnostic], *, before: Mapping[str, int], after: Mapping[str, int]
) -> Document:
    """What a rewriting command prints with `--json` when nothing could be rewritten; before, after: the opsets."""
    return {
        "splitgraph": splitgraph.__version__,
        "ok": False,
        "model": model_name,
        "output": None,
        "data_files": [],
        "from": dict(before),
        "to": dict(after),
        "changes": [],
        "diagnostics": diagnostics_json(diagnostics),
        "accepted": [],
        "assumed_defaults": [],
        "verified": None,
        "verification": None,
    }


def report_json(models: Iterable[tuple[str, Analysis]], output: str) -> Document:
    """What `report --json` prints: the page that was written, and the findings of each model on it."""
    drawn = [
        {"model": name, "ok": analysis.ok, "diagnostics": diagnostics_json(analysis.diagnostics)}
        for name, analysis in models
    ]
    return {
        "splitgraph": splitgraph.__version__,
        "ok": all(each["ok"] for each in drawn),
        "output": output,
        "models": drawn,
        "diagnostics": [],
    }


def failed_report_json(diagnostics: Iterable[Diagnostic]) -> Document:
    """What `report --json` prints when nothing could be drawn."""
    return {
        "splitgraph": splitgraph.__version__,
        "ok": False,
        "output": None,
        "models": [],
        "diagnostics": diagnostics_json(diagnostics),
    }


def verification_json(verification: Verification) -> Document:
    """What `verify --json` prints."""
    return {"splitgraph": splitgraph.__version__, **_comparison_json(verification)}


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
        "diagnostics": diagnostics_json(verification.diagnostics),
    }


def failed_verification_json(diagnostics: Iterable[Diagnostic]) -> Document:
    """What `verify --json` prints when a model cannot be read."""
    return {
        "splitgraph": splitgraph.__version__,
        "verdict": "not-run",
        "engine": "",
        "providers": [],
        "cases": 0,
        "max_abs_diff": None,
        "max_rel_diff": None,
        "first_difference": None,
        "proofs": [],
        "diagnostics": diagnostics_json(diagnostics),
    }


def check_json(
    model_name: str,
    opset: Mapping[str, int],
    found: Iterable[tuple[Target, Sequence[Diagnostic]]],
    accepted: Iterable[Diagnostic] = (),
) -> Document:
    """What `check --json` prints: for each target whether anything is in the way, and what. accepted: errors of the
    model that the user accepts.
    """
    checked = [
        {
            "target": target.key,
            "title": target.title,
            "version": target.version,
            "measured": target.measured,
            "ok": all(each.severity != "error" for each in diagnostics),
            "diagnostics": diagnostics_json(diagnostics),
        }
        for target, diagnostics in found
    ]
    return {
        "splitgraph": splitgraph.__version__,
        "model": model_name,
        "opset": dict(opset),
        "ok": all(each["ok"] for each in checked),
        "targets": checked,
        "diagnostics": [],
        "accepted": diagnostics_json(accepted),
    }


def failed_check_json(model_name: str, diagnostics: Iterable[Diagnostic]) -> Document:
    """What `check --json` prints where a model cannot be read, or a target is not known."""
    return {
        "splitgraph": splitgraph.__version__,
        "model": model_name,
        "opset": {},
        "ok": False,
        "targets": [],
        "diagnostics": diagnostics_json(diagnostics),
        "accepted": [],
    }


def failed_document(command: str, model_name: str, diagnostics: Iterable[Diagnostic]) -> Document:
    """What a command prints with `--json` when it fails before it has anything to tell of the model."""
    match command:
        case "infer":
            return failed_analysis_json(model_name, diagnostics)
        case "report":
            return failed_report_json(diagnostics)
        case "check":
            return failed_check_json(model_name, diagnostics)
        case "diff":
            from splitgraph.report.difference_documents import failed_difference_document

            return failed_difference_document(diagnostics)
        case "verify":
            return failed_verification_json(diagnostics)
        case "doctor":
            from splitgraph.report.doctor_documents import failed_doctor_json

            return failed_doctor_json(diagnostics)
        case _:
            return failed_rewrite_json(model_name, diagnostics, before={}, after={})


def diagnostics_json(diagnostics: Iterable[Diagnostic]) -> list[Document]:
    """Diagnostics, in the order they were found."""
    return [
        {"code": d.code, "severity": d.severity, "message": d.message, "location": d.location, "help": d.help}
        for d in diagnostics
    ]


def type_json(value: ValueType) -> Document:
    """A value's kind, element type and shape; `element` only where tensors of that type and shape do not say it all."""
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
