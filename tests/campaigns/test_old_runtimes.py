"""The campaign on old runtimes: what it keeps in the project, and how it judges, without an old runtime."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import old_runtimes
import onnx
import pytest
from click.testing import CliRunner
from old_runtimes_environments import RUNTIMES, Runtime, first_fitting
from old_runtimes_page import FAILURES, STATUSES, is_failure, page
from old_runtimes_trial import Finding, try_export

from splitgraph.conversion.rewrite import Rewrite

# The runtime that is installed stands for an old one: what is run, and how it is judged, is the same.
HERE = Path(sys.executable)
AT_17 = Runtime("installed", 17)


@pytest.fixture(scope="module")
def results():
    return json.loads(old_runtimes.RESULTS.read_text())


def test_the_page_is_of_the_results(results) -> None:
    assert old_runtimes.PAGE.read_text() == page(results)


def test_every_model_of_the_project_is_in_the_results_for_every_runtime(results) -> None:
    assert [found["file"] for found in results["models"]] == [path.name for path in old_runtimes.models()]
    assert [(each["version"], each["opset"]) for each in results["runtimes"]] == [
        (runtime.version, runtime.opset) for runtime in RUNTIMES
    ]
    assert all(list(found["in"]) == [runtime.version for runtime in RUNTIMES] for found in results["models"])


def test_no_outcome_is_a_failure(results) -> None:
    failed = [(found["file"], each) for found in results["models"] for each in found["in"].values() if is_failure(each)]
    assert failed == []


@pytest.mark.parametrize("status", [*FAILURES, "a word that nobody knows"])
def test_what_must_not_be_is_a_failure_and_on_the_page(results, status: str) -> None:
    outcome = {"status": status, "reason": "why"}
    assert is_failure(outcome)
    model = {"file": "m.onnx", "in": {runtime.version: outcome for runtime in RUNTIMES}}
    assert f"- 2 × `m.onnx`: {status}: why" in page({**results, "models": [model]})


def test_every_failure_is_a_status() -> None:
    assert set(FAILURES) < set(STATUSES)


def test_a_model_of_the_project_is_run_and_compared() -> None:
    found = old_runtimes.judge(old_runtimes.MODELS / "glu.opset18.onnx", AT_17, HERE, timeout=120)
    assert found == {"status": "equal", "cases": 3}


@pytest.mark.parametrize(("file", "reason"), [("string_split20.onnx", "SG404"), ("interval_split.xml", "OpenVINO IR")])
def test_a_refusal_has_its_first_reason(file: str, reason: str) -> None:
    found = old_runtimes.judge(old_runtimes.MODELS / file, AT_17, HERE, timeout=120)
    assert found["status"] == "refused"
    assert reason in found["reason"]


def made(text: str, ir_version: int = 8) -> onnx.ModelProto:
    head = f'<ir_version: {ir_version}, opset_import: ["" : 17]>'
    return onnx.parser.parse_model(f"{head} g (float[N, 4] x) => (float[A, B] y) {{ {text} }}")


PLAIN = "y = Relu (x)"


@pytest.mark.parametrize(
    ("text", "ir_version", "status", "reason"),
    [
        (PLAIN, 8, "equal", ""),
        ("y = Abs (x)", 8, "different", "y: "),
        ("c = Constant <value_float = 1.0001> () z = Relu (x) y = Mul (z, c)", 8, "close", "y: "),
        ("to = Constant <value_ints = [1, 3]> () y = Reshape (x, to)", 8, "not run", "reshape"),
        (PLAIN, 99, "not loaded", "IR version"),
    ],
)
def test_an_export_is_told_from_its_original(
    tmp_path: Path, text: str, ir_version: int, status: str, reason: str
) -> None:
    export = tmp_path / "model.onnx"
    rewrite = Rewrite(made(text, ir_version), ())
    onnx.save(rewrite.model, export)
    found = try_export(made(PLAIN), rewrite, export, HERE, timeout=120)
    assert found.status == status
    assert reason in found.reason


@pytest.fixture
def too_new(tmp_path: Path) -> Path:
    """A model at opset 17, of an IR version that the runtimes of that time do not read."""
    path = tmp_path / "model.onnx"
    onnx.save(made(PLAIN, ir_version=10), path)
    return path


def reads_up_to(most: int):
    """A trial in a runtime that loads no newer IR version."""

    def tried(original, rewrite, *rest) -> Finding:
        is_read = rewrite.model.ir_version <= most
        return Finding("equal", cases=3) if is_read else Finding("not loaded", f"IR version {rewrite.model.ir_version}")

    return tried


def test_an_export_that_needs_an_older_ir_version_is_given_one(too_new: Path, monkeypatch) -> None:
    monkeypatch.setattr(old_runtimes, "try_export", reads_up_to(9))
    found = old_runtimes.judge(too_new, AT_17, HERE, timeout=120)
    told = {"cases": 3, "ir_version": 8, "without": "IR version 10"}
    assert found == {"status": "equal with --ir-version", **told}
    assert not is_failure(found)


def test_what_the_old_runtime_says_of_the_original_too_is_no_failure(too_new: Path, monkeypatch) -> None:
    monkeypatch.setattr(old_runtimes, "try_export", reads_up_to(3))
    found = old_runtimes.judge(too_new, AT_17, HERE, timeout=120)
    assert found == {"status": "original too", "of": "not loaded", "reason": "IR version 10"}
    assert not is_failure(found)


@pytest.mark.parametrize(("operator", "status"), [("Relu", "no kernel"), ("Abs", "not loaded")])
def test_only_an_operator_of_the_original_may_lack_a_kernel(tmp_path: Path, operator: str, status: str) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(made(PLAIN), path)
    reason = f"Could not find an implementation for {operator}(14) node with name ''"
    outcome = {"status": "not loaded", "reason": reason}
    assert old_runtimes.explained(outcome, made(PLAIN), path, HERE, timeout=120)["status"] == status


def test_random_numbers_are_not_compared(tmp_path: Path) -> None:
    model = made("z = RandomNormalLike (x) y = Add (x, z)")
    assert try_export(model, Rewrite(model, ()), tmp_path / "none", HERE, timeout=120) == Finding("random")


def test_the_first_python_that_runs_and_is_old_enough_is_taken(tmp_path: Path) -> None:
    scripts = {"newer": "echo 3.12", "broken": "exit 127", "fitting": "echo 3.9", "late": "echo 3.8"}
    for name, text in scripts.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / name).chmod(0o755)
    paths = [tmp_path / name for name in ("missing", *scripts)]
    assert first_fitting(paths) == tmp_path / "fitting"
    assert first_fitting(paths[:3]) is None


@pytest.mark.parametrize(("options", "code", "text"), [(["--skip-without-python"], 0, "SKIPPED"), ([], 1, "--python")])
def test_without_a_python_the_campaign_says_so(monkeypatch, tmp_path: Path, options, code: int, text: str) -> None:
    monkeypatch.setattr(old_runtimes, "find_python", lambda given: None)
    done = CliRunner().invoke(old_runtimes.main, ["--cache", str(tmp_path), *options])
    assert done.exit_code == code
    assert "No Python from 3.8 to 3.11 was found" in done.output
    assert text in done.output
