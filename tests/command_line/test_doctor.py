"""`splitgraph doctor`."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from json_schemas import wrong

from splitgraph.verification import installation
from splitgraph.verification.installation import EngineReport, MachineReport

from .program import ROOT, Run, in_child

ENGINES = {
    "reference": EngineReport("reference", "works", "1.23.2", 28, ("CPU",)),
    "onnxruntime": EngineReport("onnxruntime", "broken", reason="ImportError: DLL \x1b[2J load failed"),
    "openvino": EngineReport("openvino", "not installed"),
}


@pytest.fixture
def engines(monkeypatch: pytest.MonkeyPatch) -> dict[str, EngineReport]:
    """What the engines are found to be; tests change it."""
    found = dict(ENGINES)
    monkeypatch.setattr(installation, "try_engine", lambda name: found[name])
    return found


def test_a_broken_engine_is_a_finding_and_the_rest_is_told(run: Run, engines: dict[str, EngineReport]) -> None:
    code, out, err = run("doctor")
    assert (code, err) == (1, "")
    lines = [line.split() for line in out.splitlines()]
    assert ["onnxruntime", "broken"] in lines
    assert ["reference", "1.23.2", "works", "28", "CPU"] in lines
    assert ["openvino", "not", "installed"] in lines
    assert "1 error." in out
    assert "SG801" in out
    assert "DLL \\x1b[2J load failed" in out


def test_a_broken_engine_is_in_the_document(run: Run, engines: dict[str, EngineReport]) -> None:
    code, out, err = run("doctor", "--json")
    document = json.loads(out)
    assert (code, err, document["ok"]) == (1, "", False)
    assert wrong(document, "doctor") == []
    assert wrong(document, "failure") != []
    assert [each["status"] for each in document["engines"]] == ["works", "broken", "not installed"]
    assert [each["code"] for each in document["diagnostics"]] == ["SG801"]


FAULTS = [
    ("numpy", "raise ImportError('numpy is half installed')", "ImportError: numpy is half installed"),
    ("onnx", "import os; os.abort()", "crashed (SIGABRT)"),
]


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
@pytest.mark.parametrize(("package", "source", "reason"), FAULTS)
def test_a_package_that_every_engine_needs_may_be_broken(
    package: str, source: str, reason: str, tmp_path: Path
) -> None:
    """The program itself must start without them."""
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text(source, encoding="utf-8")
    path = os.pathsep.join((str(tmp_path), str(ROOT)))
    done = in_child("-m", "splitgraph", "doctor", "--json", PYTHONPATH=path)
    document = json.loads(done.stdout)
    assert (done.returncode, done.stderr, wrong(document, "doctor")) == (1, "", [])
    installed = [each for each in document["engines"] if each["status"] != "not installed"]
    assert installed
    assert all(each["status"] == "broken" and reason in each["reason"] for each in installed)


def test_a_wrong_call_is_a_document_too(run: Run) -> None:
    code, out, err = run("doctor", "--json", "--frobnicate")
    assert (code, wrong(json.loads(out), "doctor"), wrong(json.loads(out), "failure")) == (2, [], [])
    assert "--frobnicate" in err


def test_a_machine_that_tells_nothing_is_no_fault(
    run: Run, engines: dict[str, EngineReport], monkeypatch: pytest.MonkeyPatch
) -> None:
    engines["onnxruntime"] = ENGINES["openvino"]
    monkeypatch.setattr(installation, "examine_machine", lambda: MachineReport(None, None, None, None))
    code, out, _ = run("doctor")
    assert code == 0
    assert "processors not known" in out
    code, out, _ = run("doctor", "--json")
    assert (code, wrong(json.loads(out), "doctor")) == (0, [])


def test_this_installation_works(run: Run) -> None:
    code, out, err = run("doctor", "--json")
    document = json.loads(out)
    assert wrong(document, "doctor") == []
    assert (code, err, document["ok"], document["diagnostics"]) == (0, "", True, [])
    code, out, _ = run("doctor")
    assert code == 0
    assert out.endswith("Everything that is installed works.\n")
