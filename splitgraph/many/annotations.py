"""Findings about models in the formats that services for continuous integration show by themselves.

"github": commands of GitHub's workflows, a line for each finding, which become annotations of the run. "sarif": one
document of SARIF 2.1.0, which code scanning reads. Their keys and levels are those of the two specifications.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

import splitgraph
from splitgraph.findings.codes import CODES
from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.findings.outcome import Outcome
from splitgraph.options import Format

_GITHUB_LEVELS = {"error": "error", "warning": "warning", "info": "notice"}
_SARIF_LEVELS = {"error": "error", "warning": "warning", "info": "note"}
_SARIF_SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
# What a workflow command must not hold as it is; in its properties, also these.
_ESCAPES = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY_ESCAPES = {**_ESCAPES, ":": "%3A", ",": "%2C"}
# The name of a rule for what has no code: the models differ, or could not be compared.
_VERDICT = "verdict"

FORMATS: tuple[Format, ...] = get_args(Format)


def as_annotations(form: Format, outcomes: Sequence[Outcome]) -> str:
    """Return the findings of all outcomes in a format, as text that ends with a line break, or "" for none."""
    if form == "sarif":
        return json.dumps(_sarif(outcomes), indent=2, ensure_ascii=True) + "\n"
    return "".join(f"{text}\n" for outcome in outcomes for text in _workflow_commands(outcome))


def _workflow_commands(outcome: Outcome) -> Iterator[str]:
    for finding in outcome.diagnostics:
        title = " ".join(filter(None, (finding.code, finding.location)))
        told = f"{finding.message}\n{finding.help}" if finding.help else finding.message
        yield _command(_GITHUB_LEVELS[finding.severity], outcome.model, title, told)
    if (text := _verdict_text(outcome)) is not None:
        yield _command("error", outcome.model, f"splitgraph {outcome.verb}", text)


def _command(level: str, model: str, title: str, message: str) -> str:
    properties = f"file={_escaped(model, _PROPERTY_ESCAPES)},title={_escaped(title, _PROPERTY_ESCAPES)}"
    return f"::{level} {properties}::{_escaped(message, _ESCAPES)}"


def _escaped(text: str, escapes: Mapping[str, str]) -> str:
    return "".join(escapes.get(char, char) for char in text)


def _verdict_text(outcome: Outcome) -> str | None:
    """Return what is wrong with a model although no finding of it is an error; None if nothing is."""
    if outcome.ok or any(finding.severity == "error" for finding in outcome.diagnostics):
        return None
    compared = f" and {outcome.after}" if outcome.after is not None else ""
    return f"{outcome.model}{compared}: {outcome.said or outcome.status}"


# SARIF ----------------------------------------------------------------------------------------------------------------


def _sarif(outcomes: Sequence[Outcome]) -> dict[str, Any]:
    results = [result for outcome in outcomes for result in _results(outcome)]
    driver = {
        "name": "splitgraph",
        "version": splitgraph.__version__,
        "rules": [_rule(code) for code in sorted({result["ruleId"] for result in results})],
    }
    runs = [{"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}]
    return {"$schema": _SARIF_SCHEMA, "version": "2.1.0", "runs": runs}


def _rule(code: str) -> dict[str, Any]:
    info = CODES.get(code)
    if info is None:
        return {"id": code, "shortDescription": {"text": "models that differ, or could not be compared"}}
    return {
        "id": code,
        "shortDescription": {"text": info.title},
        "fullDescription": {"text": info.meaning},
        "help": {"text": info.help},
    }


def _results(outcome: Outcome) -> Iterator[dict[str, Any]]:
    for finding in outcome.diagnostics:
        yield _result(
            outcome.model, finding.code, _SARIF_LEVELS[finding.severity], _finding_text(finding), finding.location
        )
    if (text := _verdict_text(outcome)) is not None:
        yield _result(outcome.model, _VERDICT, "error", text, "")


def _finding_text(finding: Diagnostic) -> str:
    target = f"{finding.target}: " if finding.target else ""
    advice = f" {finding.help}" if finding.help else ""
    return f"{target}{finding.message}.{advice}"


def _result(model: str, code: str, level: str, text: str, location: str) -> dict[str, Any]:
    place: dict[str, Any] = {"physicalLocation": {"artifactLocation": {"uri": model.replace("\\", "/")}}}
    if location:
        place["logicalLocations"] = [{"fullyQualifiedName": location, "kind": "element"}]
    return {"ruleId": code, "level": level, "message": {"text": text}, "locations": [place]}
