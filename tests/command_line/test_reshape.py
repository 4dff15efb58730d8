"""splitgraph reshape, and many models with other sizes."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnx.parser
import pytest

import splitgraph

from .program import Run, files

HEAD = """<ir_version: 8, opset_import: ["": 17]> g (float[1, 4, 4] x) => (float[1, 16] y)
    <int64[2] s = {1, 16}> { y = Reshape (x, s) }"""
SUM = """<ir_version: 8, opset_import: ["": 17]> g (float[1, 4] x) => (float[1, 4] y)
    <float[1, 4] w = {1, 2, 4, 9}> { y = Add (x, w) }"""


@pytest.fixture
def folder(folder: Path) -> Path:
    """The folder with a model of a fixed batch, and one with weights for each position."""
    onnx.save(onnx.parser.parse_model(HEAD), "head.onnx")
    onnx.save(onnx.parser.parse_model(SUM), "sum.onnx")
    return folder


def batch_of(path: str) -> int | str:
    (dim, *_) = onnx.load(path).graph.output[0].type.tensor_type.shape.dim
    return str(dim.dim_param) or int(dim.dim_value)


@pytest.mark.parametrize(("typed", "batch"), [("N", "N"), ("8", 8)])
def test_a_batch(typed: str, batch: int | str, run: Run, folder: Path) -> None:
    code, out, err = run("reshape", "head.onnx", "--batch", typed)
    assert (code, err) == (0, "")
    assert out.startswith("opset 17 · 1 node rewritten · verified equal on ")
    assert out.endswith("wrote head.reshaped.onnx\n")
    assert batch_of("head.reshaped.onnx") == batch


def test_shapes_as_typed(run: Run, folder: Path) -> None:
    assert run("reshape", "head.onnx", "--input-shape", "x=[N, 4, 4]", "-o", "new.onnx")[0] == 0
    assert batch_of("new.onnx") == "N"


def test_sizes_that_it_has(run: Run, folder: Path) -> None:
    code, out, _ = run("reshape", "head.onnx", "--batch", "1")
    assert (code, out) == (0, "head.onnx already has these sizes; nothing was written.\n")
    assert "head.reshaped.onnx" not in files(folder)


def test_a_dry_run_as_json(run: Run, folder: Path) -> None:
    code, out, _ = run("reshape", "head.onnx", "--batch", "N", "--dry-run", "--json")
    document = json.loads(out)
    (change,) = document["changes"]
    assert (code, document["ok"], document["dry_run"], document["verified"]) == (0, True, True, True)
    assert (change["location"], change["why"]) == ("main/Reshape#0", "follows the sizes: target [N, 16]")
    assert "head.reshaped.onnx" not in files(folder)


@pytest.mark.parametrize("models", [["data.onnx"], ["data.onnx", "head.onnx"]])
def test_weights_in_a_data_file_are_read(models: list[str], run: Run, folder: Path) -> None:
    made = onnx.parser.parse_model(SUM.replace("4]", "5000]").replace("{1, 2, 4, 9}", "{0}").replace("1, 4", "1, 5000"))
    made.graph.initializer[0].ClearField("float_data")
    made.graph.initializer[0].raw_data = bytes(4 * 5000)
    onnx.save_model(made, "data.onnx", save_as_external_data=True, location="data", size_threshold=0)
    _, out, err = run("reshape", *models, "--input-shape", "x=1,S", "-o", "out/", "--no-verify")
    assert "data.reshaped.onnx" in files(folder / "out"), out + err


def test_what_is_in_the_way(run: Run, folder: Path) -> None:
    code, out, err = run("reshape", "sum.onnx", "--input-shape", "x=1,S", "--json")
    (found,) = json.loads(out)["diagnostics"]
    assert (code, found["code"], found["location"]) == (1, "SG420", "main/Add#0")
    assert "sum.onnx cannot get these sizes: 1 blocker" in err
    assert "sum.reshaped.onnx" not in files(folder)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([], "Give the shape of an input with --input-shape, or a batch with --batch."),
        (["--input-shape", "z=1,2"], "the model has no input 'z'"),
        (["--batch", "N", "--follow", "main"], "is not of the form NODE[ENTRY]=DIMENSION"),
    ],
)
def test_wrong_usage(arguments: list[str], said: str, run: Run, folder: Path) -> None:
    code, out, err = run("reshape", "head.onnx", *arguments)
    assert (code, out) == (2, "") and said in err


def test_many_models(run: Run, folder: Path) -> None:
    code, out, err = run("reshape", "head.onnx", "sum.onnx", "--batch", "N", "-o", "out/", "--no-verify")
    assert code == 0, out + err
    assert files(folder / "out") == {"head.reshaped.onnx", "sum.reshaped.onnx"}


def test_many_models_from_python(folder: Path) -> None:
    models = ["head.onnx", "sum.onnx"]
    outcomes = splitgraph.map_models("reshape", models, output="out", jobs=1, shapes={"x": [1, "S", 4]})
    assert {outcome.model: outcome.status for outcome in outcomes} == dict(
        zip(models, ("converted", "failed"), strict=True)
    )
