"""ONNX as OpenVINO IR: `splitgraph.save(model, "x.xml")` and `convert ... -o x.xml`."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest

import splitgraph
from splitgraph import cli
from splitgraph.execution import openvino_import
from splitgraph.formats import OpenVINOModel, load_ir
from splitgraph.formats.openvino_ir import Layer

MODELS = Path(__file__).parents[2] / "models"
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line in this process: exit code, stdout, stderr."""

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = cli.main(arguments)
        return (code, *capsys.readouterr())

    return run


def variadic_layers(model: OpenVINOModel) -> list[Layer]:
    return [layer for layer in model.graph.layers if layer.type == "VariadicSplit"]


def lengths_of(model: OpenVINOModel, layer: Layer) -> list[int]:
    number = model.graph.sources[layer.id, layer.inputs[2].id][0]
    (source,) = (each for each in model.graph.layers if each.id == number)
    return [int(length) for length in np.frombuffer(model.constant(source), np.int64)]


def test_the_rest_stays_a_rest(tmp_path: Path) -> None:
    model = onnx.load(MODELS / "variadic_split_rest.onnx")
    splitgraph.save(model, tmp_path / "rest.xml")
    written = load_ir(tmp_path / "rest.xml")
    (layer,) = variadic_layers(written)
    assert -1 in lengths_of(written, layer)
    assert splitgraph.verify(model, written).verdict == "equal"


def test_other_functions_are_inlined(tmp_path: Path) -> None:
    model = onnx.load(MODELS / "split_in_function.onnx")
    variadic = splitgraph.convert(model, "variadic-split").model
    splitgraph.save(variadic, tmp_path / "model.xml")
    written = load_ir(tmp_path / "model.xml")
    assert variadic_layers(written)
    assert splitgraph.verify(model, written).verdict == "equal"


def test_the_command_line_writes_ir_that_it_verified(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "model.xml"
    arguments = ("convert", str(MODELS / "split18_num_outputs.onnx"), "--to", "variadic-split", "-o", str(target))
    code, out, _ = run(*arguments, "--json")
    document = json.loads(out)
    assert (code, document["ok"], document["output"]) == (0, True, str(target))
    assert (document["verification"]["verdict"], document["verification"]["engine"]) == (
        "equal",
        "onnxruntime+openvino",
    )
    assert len(variadic_layers(load_ir(target))) == 2
    written = target.read_bytes(), target.with_suffix(".bin").read_bytes()
    code, _, err = run(*arguments)
    assert code == 2
    assert "exists" in err
    assert (target.read_bytes(), target.with_suffix(".bin").read_bytes()) == written


def test_what_openvino_refuses_is_told_and_nothing_is_written(run: Run, tmp_path: Path) -> None:
    target = tmp_path / "model.xml"
    code, _, err = run("convert", str(MODELS / "string_split20.onnx"), "--to", "variadic-split", "-o", str(target))
    assert code == 1
    assert "SG411" in err
    assert "StringSplit-20" in err
    assert not list(tmp_path.iterdir())
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.save(onnx.load(MODELS / "string_split20.onnx"), target)
    assert [found.code for found in caught.value.diagnostics] == ["SG411"]
    assert not list(tmp_path.iterdir())


def test_a_crash_of_openvino_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[Sequence[object]] = []

    def crash(*arguments: object) -> str:
        told.append(arguments)
        return "crashed (SIGSEGV)"

    monkeypatch.setattr(openvino_import, "run_module", crash)
    with pytest.raises(splitgraph.ConversionError, match=r"crashed \(SIGSEGV\)"):
        splitgraph.save(onnx.load(MODELS / "split2_equal.onnx"), tmp_path / "model.xml")
    assert len(told) == 1
    assert not list(tmp_path.iterdir())


def test_weights_in_files_of_their_own_are_carried_over(run: Run, tmp_path: Path) -> None:
    model = onnx.load(MODELS / "glu.opset18.onnx")
    onnx.save(model, tmp_path / "glu.onnx", save_as_external_data=True, location="glu.data", size_threshold=0)
    target = tmp_path / "written" / "glu.xml"
    target.parent.mkdir()
    code, _, err = run("convert", str(tmp_path / "glu.onnx"), "--to", "variadic-split", "-o", str(target))
    assert (code, err) == (0, "")
    assert splitgraph.verify(tmp_path / "glu.onnx", target).verdict == "equal"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt2.opset18", "c2f.opset13", "lstm_loop.opset17", "shufflenet.opset18"])
def test_a_model_goes_to_ir_and_is_compared_both_ways(name: str, tmp_path: Path) -> None:
    model = onnx.load(MODELS / f"{name}.onnx")
    splitgraph.save(splitgraph.convert(model, "variadic-split").model, tmp_path / "model.xml")
    found = load_ir(tmp_path / "model.xml")
    assert {split.op for split in splitgraph.infer(found).splits} == {"VariadicSplit"}
    assert splitgraph.verify(model, found, samples=2).verdict == "equal"
    explicit = splitgraph.convert(found, "variadic-split", explicit_lengths=True).model
    assert splitgraph.verify(explicit, model, samples=2).verdict == "equal"
    assert splitgraph.verify(found, explicit, samples=2).verdict == "equal"
