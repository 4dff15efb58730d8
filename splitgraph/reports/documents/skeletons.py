"""The keys of the document of each command, for results and failures alike."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

import splitgraph
from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.reports.documents.parts import Document, diagnostics_json

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
    return command_document(command, **named, **known, diagnostics=diagnostics_json(diagnostics))


def command_document(command: str, **known: Any) -> Document:
    """Return the document of a command. known: the entries that differ from the skeleton."""
    return {"splitgraph": splitgraph.__version__, **_SKELETONS[command], **known}
