"""The results of many models as JUnit XML, which CI systems show."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from pathlib import Path

from splitgraph.diagnostics import Diagnostic
from splitgraph.formats.atomic_write import write_text
from splitgraph.outcome import Outcome


def write_junit(path: Path, verb: str, outcomes: Sequence[Outcome], seconds: float) -> None:
    """Write one test case for each model: a failure for findings, an error where no result was found, skipped for a
    model beyond the opset. An existing file is replaced, all or nothing. Raises ModelError.
    """
    failed = [outcome for outcome in outcomes if _kind(outcome) == "failure"]
    broken = [outcome for outcome in outcomes if _kind(outcome) == "error"]
    skipped = [outcome for outcome in outcomes if _kind(outcome) == "skipped"]
    counts = {
        "tests": str(len(outcomes)),
        "failures": str(len(failed)),
        "errors": str(len(broken)),
        "skipped": str(len(skipped)),
        "time": f"{seconds:.3f}",
    }
    suites = ET.Element("testsuites", counts)
    suite = ET.SubElement(suites, "testsuite", {"name": f"splitgraph {verb}", **counts})
    for outcome in outcomes:
        _add_case(suite, outcome)
    ET.indent(suites)
    text = ET.tostring(suites, encoding="utf-8", xml_declaration=True).decode("utf-8")
    write_text(f"{text}\n", path, overwrite=True)


def _kind(outcome: Outcome) -> str:
    if outcome.ok:
        return "skipped" if outcome.status == "beyond" else ""
    return "error" if outcome.status in ("failed", "not-run", "not-verified") else "failure"


def _add_case(suite: ET.Element, outcome: Outcome) -> None:
    name = _allowed(outcome.model)
    names = {"classname": f"splitgraph.{outcome.verb}", "name": name, "file": name}
    case = ET.SubElement(suite, "testcase", {**names, "time": f"{outcome.seconds:.3f}"})
    premises = [("accepted", _text(found)) for found in outcome.accepted]
    premises += [("assumed_default", name) for name in outcome.assumed_defaults]
    if premises:
        properties = ET.SubElement(case, "properties")
        for name, value in premises:
            ET.SubElement(properties, "property", {"name": name, "value": _allowed(value)})
    kind = _kind(outcome)
    if kind == "skipped":
        ET.SubElement(case, kind, {"message": "beyond the opset"})
    elif kind:
        errors = [found for found in outcome.diagnostics if found.severity == "error"]
        message = _text(errors[0]) if errors else outcome.status
        element = ET.SubElement(case, kind, {"type": outcome.status, "message": _allowed(message)})
        element.text = _allowed("\n".join(f"{_text(found)}\n    {found.help}" for found in errors))


def _text(found: Diagnostic) -> str:
    return " ".join(filter(None, (found.code, found.location, found.message)))


def _allowed(text: str) -> str:
    """The text with each character that XML does not allow as an escape."""
    return "".join(char if _is_allowed(char) else f"\\x{ord(char):02x}" for char in text)


def _is_allowed(char: str) -> bool:
    return char in "\t\n\r" or " " <= char <= "\ud7ff" or "\ue000" <= char <= "\ufffd" or char >= "\U00010000"
