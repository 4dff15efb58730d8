"""What the campaigns keep in the project: their lists, results and pages, without a run of them."""

import json
from pathlib import Path

import pytest
import real_models

ROOT = Path(__file__).parents[2]


def test_the_list_of_real_models_is_long_and_names_each_file_once():
    entries = real_models.entries()
    assert len(entries) >= 60
    assert len({(entry["package"], entry["file"]) for entry in entries}) == len(entries)
    assert all(len(entry["sha256"]) == 64 and entry["version"] for entry in entries)


def test_the_results_are_of_the_list_and_the_page_is_of_the_results():
    results = json.loads(real_models.RESULTS.read_text())
    assert [found["sha256"] for found in results["models"]] == [entry["sha256"] for entry in real_models.entries()]
    assert real_models.PAGE.read_text() == real_models.page(results)


@pytest.mark.slow
def test_a_model_of_the_project_is_judged_as_the_real_ones_are(tmp_path, monkeypatch):
    monkeypatch.setattr(real_models, "OPSETS", (11, 18))
    found = real_models.run(ROOT / "models" / "gpt2.opset17.onnx", tmp_path, timeout=120)
    assert found["infer"]["status"] == "ok"
    assert found["dims"]["compared"] > 0
    assert found["dims"]["wrong"] == []
    assert set(found["to"]) == {"11", "18"}
    assert {outcome["status"] for outcome in found["to"].values()} <= {"equal", "refused"}
    assert found["to"]["18"]["status"] == "equal"
    assert not real_models.is_bad(found)


@pytest.mark.parametrize("status", ["WRONG", "traceback", "hang"])
def test_what_must_not_be_is_bad_and_on_the_page(status):
    found = {
        "package": "p",
        "version": "1",
        "file": "m.onnx",
        "sha256": "0",
        "infer": {"status": "ok"},
        "dims": {"status": "ok"},
    }
    found["to"] = {"18": {"status": status}}
    assert real_models.is_bad(found)
    assert f"p m.onnx, to opset 18: {status}" in real_models.page({"at": "", "models": [found]})
