"""`splitgraph diff`."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import pytest

from .program import ROOT, Run, files, split_model


def test_models_that_are_the_same(run: Run, folder: Path) -> None:
    assert run("diff", "model.onnx", "model.onnx") == (
        0,
        "model.onnx → model.onnx · opset 13 · no difference in 1 node\n",
        "",
    )
    assert files(folder) == {"model.onnx"}


def test_what_an_upgrade_changed(run: Run, folder: Path) -> None:
    run("upgrade", "model.onnx", "--opset", "18", "--no-verify")
    code, out, err = run("diff", "model.onnx", "model.opset18.onnx")
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        "model.onnx → model.opset18.onnx · opset 13 → 18 · 1 split changed",
        "",
        "  node  operator             what",
        "  s     Split-13 → Split-18  num_outputs 2 added",
    ]


def test_json(run: Run, folder: Path) -> None:
    onnx.save(split_model(axis=-1), "other.onnx")
    code, out, err = run("diff", "model.onnx", "other.onnx", "--json")
    document = json.loads(out)
    assert (code, err, document["same"]) == (1, "", False)
    assert (document["before"]["model"], document["after"]["model"]) == ("model.onnx", "other.onnx")
    assert [(node["location"], node["attributes"]) for node in document["nodes"]] == [("main/s", ["axis"])]


def test_all(run: Run, folder: Path) -> None:
    onnx.save(split_model(opset=11), "older.onnx")
    assert "--all" in run("diff", "older.onnx", "model.onnx")[1]
    code, out, _ = run("diff", "older.onnx", "model.onnx", "--all")
    assert code == 1
    assert "  s     Split-11 → Split-13  only the version" in out.splitlines()


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["model.onnx", "missing.onnx"], "missing.onnx: no such file [SG101]"),
        (["missing.onnx", "model.onnx"], "missing.onnx: no such file [SG101]"),
        (["model.onnx", "."], "is a folder"),
        (["model.onnx"], "Missing argument 'AFTER'"),
        (["model.onnx", ""], "is empty"),
        (
            ["model.onnx", str(ROOT / "models" / "interval_split.xml")],
            "splitgraph convert model.onnx --to variadic-split",
        ),
    ],
)
def test_what_cannot_be_compared(arguments: list[str], told: str, run: Run, folder: Path) -> None:
    code, out, err = run("diff", *arguments)
    assert (code, out) == (2, "")
    assert told in err
