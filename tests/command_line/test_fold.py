"""splitgraph convert --fold."""

from __future__ import annotations

import json
from pathlib import Path

import onnx
import onnx.parser
import pytest

from .program import Run, files

SHAPES = """<ir_version: 8, opset_import: ["": 17]> g (float[N, 24] x) => (float[N, 3, 8] y)
    <int64[1] o = {0}, int64[2] h = {3, 8}> {
    s = Shape (x) n = Gather (s, o) t = Concat <axis = 0> (n, h) i = Identity (x) y = Reshape (i, t) }"""
PLAIN = """<ir_version: 8, opset_import: ["": 17]> g (float[N] x) => (float[N] y) { y = Relu (x) }"""


@pytest.fixture
def folder(folder: Path) -> Path:
    """The folder with a model that computes a shape, and one that does not."""
    onnx.save(onnx.parser.parse_model(SHAPES), "shapes.onnx")
    onnx.save(onnx.parser.parse_model(PLAIN), "plain.onnx")
    return folder


@pytest.mark.parametrize("more", [[], ["--explicit-lengths"]])
def test_nothing_to_convert_to_is_an_error_that_names_it(more: list[str], run: Run, folder: Path) -> None:
    code, _, err = run("convert", "shapes.onnx", *more)
    assert (code, "--fold" in err) == (2, True)


def test_what_has_nothing_to_write_is_left_alone(run: Run, folder: Path) -> None:
    code, out, _ = run("convert", "plain.onnx", "--fold")
    assert (code, out) == (0, "plain.onnx has nothing that is known and not written; nothing was written.\n")
    assert "plain.folded.onnx" not in files(folder)


def test_a_wrong_model_cannot_be_folded(run: Run, folder: Path) -> None:
    onnx.save(onnx.parser.parse_model(PLAIN.replace("Relu (x)", "Relu (z)")), "wrong.onnx")
    code, _, err = run("convert", "wrong.onnx", "--fold")
    assert (code, "wrong.onnx cannot be folded" in err) == (1, True)


def test_an_ir_is_left_to_openvino(run: Run, folder: Path) -> None:
    Path("m.xml").write_text('<net name="m" version="11"><layers/><edges/></net>')
    code, _, err = run("convert", "m.xml", "--fold")
    assert code != 0
    assert "OpenVINO folds an IR itself" in err


def test_a_model_that_computes_a_shape(run: Run, folder: Path) -> None:
    code, out, err = run("convert", "shapes.onnx", "--fold")
    assert (code, err) == (0, "")
    assert out.startswith("opset 17 · 5 → 1 node · verified equal on ")
    assert out.endswith("wrote shapes.folded.onnx\n")
    assert [node.op_type for node in onnx.load("shapes.folded.onnx").graph.node] == ["Reshape"]


def test_with_another_opset_the_nodes_are_counted_as_always(run: Run, folder: Path) -> None:
    code, out, _ = run("convert", "shapes.onnx", "--fold", "--opset", "13")
    assert (code, out.splitlines()[0].startswith("opset 17 → 13 · 2 nodes rewritten")) == (0, True)
    assert "shapes.opset13.folded.onnx" in files(folder)


def test_what_was_done_and_why_as_json(run: Run, folder: Path) -> None:
    code, out, _ = run("convert", "shapes.onnx", "--fold", "--dry-run", "--json")
    document = json.loads(out)
    assert (code, document["ok"], document["verified"]) == (0, True, True)
    assert {(change["before"], change["why"]) for change in document["changes"]} == {
        ("Identity-16", "it gives what it gets"),
        ("Reshape-14", "sizes that it can say itself"),
    }
