"""Findings in the formats that services for continuous integration show by themselves."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest
from command_line.program import Run

from splitgraph.findings.diagnostics import diagnostic
from splitgraph.findings.outcome import Outcome
from splitgraph.many.annotations import as_annotations
from splitgraph.many.reports import write_junit

WRONG = Outcome(
    "infer",
    "a,b:1.onnx",
    "findings",
    diagnostics=(
        diagnostic("SG206", "50 %\nof it", "main/Split#0", help="Do this."),
        diagnostic("SG303", "unknown", "main", severity="warning", help=""),
        diagnostic("SG401", "read so", "main", severity="info", help=""),
    ),
)
CLEAN = Outcome("infer", "c.onnx", "clean")
APART = Outcome("verify", "d.onnx", "different", after="e.onnx", said="different")


def test_nothing_found_is_nothing_printed() -> None:
    assert as_annotations("github", [CLEAN]) == ""
    assert json.loads(as_annotations("sarif", [CLEAN]))["runs"][0]["results"] == []


def test_a_workflow_command_for_each_finding() -> None:
    assert as_annotations("github", [WRONG, CLEAN, APART]).splitlines() == [
        "::error file=a%2Cb%3A1.onnx,title=SG206 main/Split#0::50 %25%0Aof it%0ADo this.",
        "::warning file=a%2Cb%3A1.onnx,title=SG303 main::unknown",
        "::notice file=a%2Cb%3A1.onnx,title=SG401 main::read so",
        "::error file=d.onnx,title=splitgraph verify::d.onnx and e.onnx: different",
    ]


def test_sarif_has_a_rule_for_each_code_and_a_place_for_each_result() -> None:
    document = json.loads(as_annotations("sarif", [WRONG, APART]))
    assert document["version"] == "2.1.0"
    (run,) = document["runs"]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["SG206", "SG303", "SG401", "verdict"]
    levels = [(result["ruleId"], result["level"]) for result in run["results"]]
    assert levels == [("SG206", "error"), ("SG303", "warning"), ("SG401", "note"), ("verdict", "error")]
    place = run["results"][0]["locations"][0]
    assert place["physicalLocation"]["artifactLocation"]["uri"] == "a,b:1.onnx"
    assert place["logicalLocations"][0]["fullyQualifiedName"] == "main/Split#0"
    assert "logicalLocations" not in run["results"][3]["locations"][0]


@pytest.mark.parametrize("form", ["github", "sarif"])
def test_the_command_prints_nothing_else_on_stdout(run: Run, zoo: Path, form: str) -> None:
    code, out, _ = run("infer", str(zoo / "a.onnx"), "--format", form)
    assert code == 0
    assert out == "" if form == "github" else json.loads(out)


def test_json_and_a_format_are_two_documents(run: Run, zoo: Path) -> None:
    code, _, err = run("infer", str(zoo / "a.onnx"), "--format", "sarif", "--json")
    assert code == 2
    assert "--json prints one document" in err


def test_a_junit_case_for_each_model_and_target(tmp_path: Path) -> None:
    found = (
        diagnostic("SG701", "it is refused", "main/a", help="", target="mnn@3.6.1"),
        diagnostic("SG705", "not known", "main/b", severity="warning", help="", target="tract@0.23.9"),
    )
    outcomes = [
        Outcome("check", "a.onnx", "findings", diagnostics=found),
        Outcome("check", "b.onnx", "failed", diagnostics=(diagnostic("SG101", "it is broken", "b.onnx", help=""),)),
    ]
    path = tmp_path / "r.xml"
    write_junit(path, "check", outcomes, 1.0, ["mnn", "tract"])
    root = ET.parse(path).getroot()
    assert dict(root.attrib) == {"tests": "3", "failures": "1", "errors": "1", "skipped": "0", "time": "1.000"}
    cases = {case.attrib["name"]: [child.tag for child in case] for case in root.iter("testcase")}
    assert cases == {"a.onnx [mnn]": ["failure"], "a.onnx [tract]": [], "b.onnx": ["error"]}
    assert {case.attrib["file"] for case in root.iter("testcase")} == {"a.onnx", "b.onnx"}
