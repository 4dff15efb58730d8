"""The IR version alone: what is refused, what is there already, and that nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from command_line.program import split_model
from onnx import TensorProto, helper, numpy_helper

import splitgraph
from splitgraph.cli import main
from splitgraph.findings.diagnostics import ConversionError, SplitgraphError


def changed(model: onnx.ModelProto, **fields: Any) -> onnx.ModelProto:
    for name, value in fields.items():
        setattr(model, name, value)
    return model


def with_weight(ir_version: int, opset: int = 13) -> onnx.ModelProto:
    model = changed(split_model(opset), ir_version=ir_version)
    model.graph.initializer.append(numpy_helper.from_array(np.ones(3, np.float32), "w"))
    return model


def with_function() -> onnx.ModelProto:
    model = split_model(13)
    body = [helper.make_node("Relu", ["a"], ["b"])]
    model.functions.append(helper.make_function("d", "F", ["a"], ["b"], body, [helper.make_opsetid("", 13)]))
    model.opset_import.add(domain="d", version=1)
    model.graph.node.append(helper.make_node("F", ["p0"], ["f"], domain="d", name="call"))
    return model


def with_type(number: int, opset: int = 13) -> onnx.ModelProto:
    model = changed(split_model(opset), ir_version=onnx.IR_VERSION)
    model.graph.value_info.append(helper.make_tensor_value_info("t", number, [2]))
    return model


def with_optional(opset: int = 13) -> onnx.ModelProto:
    model = split_model(opset)
    kind = helper.make_optional_type_proto(helper.make_tensor_type_proto(1, [2]))
    model.graph.value_info.append(helper.make_value_info("o", kind))
    return model


def with_default() -> onnx.ModelProto:
    model = with_weight(8, 8)
    model.graph.input.append(helper.make_tensor_value_info("w", TensorProto.FLOAT, [3]))
    return model


def with_metadata() -> onnx.ModelProto:
    model = changed(split_model(17), ir_version=10)
    model.graph.node[0].metadata_props.add(key="k", value="v")
    return model


def wrong() -> onnx.ModelProto:
    """A model with an error, which is none of the IR version."""
    return changed(split_model(13, parts=4), ir_version=10)


REFUSED: dict[str, tuple[onnx.ModelProto, int, list[str]]] = {
    "the opset": (split_model(13), 6, ["IR version 7, for opset 13; 6 was asked for"]),
    "the newest opset of 8": (changed(split_model(19), ir_version=9), 8, ["IR version 9, for opset 19"]),
    "an element type": (with_type(TensorProto.FLOAT8E5M2), 8, ["IR version 9, for the element type FLOAT8E5M2"]),
    "a kind of value": (with_optional(), 7, ["IR version 8, for optional_type of TypeProto"]),
    "a default": (with_default(), 3, ["IR version 4, for the default of the input 'w'"]),
    "two reasons": (
        with_type(TensorProto.INT4, 19),
        8,
        ["IR version 9, for opset 19", "IR version 10, for the element"],
    ),
}


@pytest.mark.parametrize(("model", "version", "reasons"), REFUSED.values(), ids=REFUSED)
def test_what_the_model_needs(model: onnx.ModelProto, version: int, reasons: list[str]) -> None:
    with pytest.raises(ConversionError) as caught:
        splitgraph.convert(model, ir_version=version)
    assert {found.code for found in caught.value.diagnostics} == {"SG412"}
    for reason, found in zip(reasons, caught.value.diagnostics, strict=True):
        assert reason in found.message
        assert "Ask for IR version" in found.help


def test_the_opset_that_goes_with_the_version_is_named() -> None:
    with pytest.raises(ConversionError) as caught:
        splitgraph.convert(changed(split_model(21), ir_version=10), ir_version=8)
    assert caught.value.diagnostics[0].help.endswith("Opsets up to 18 go with IR version 8 (--opset 18).")


WRONG: list[tuple[Any, dict[str, Any], str]] = [
    (split_model(), {}, "needs a form of the splits .* or an IR version"),
    (split_model(), {"ir_version": 0}, "there is no IR version 0"),
    (split_model(), {"ir_version": onnx.IR_VERSION + 1}, "there is no IR version"),
    (split_model(), {"ir_version": "newest"}, "there is no IR version 'newest'"),
    (split_model(), {"ir_version": True}, "there is no IR version True"),
    (split_model(), {"ir_version": 8, "explicit_lengths": True}, "needs a form of the splits"),
]


@pytest.mark.parametrize(("model", "options", "words"), WRONG)
def test_wrong_arguments(model: onnx.ModelProto, options: dict[str, Any], words: str) -> None:
    with pytest.raises(SplitgraphError, match=words):
        splitgraph.convert(model, **options)


def test_an_ir_of_openvino_has_none() -> None:
    path = Path(__file__).parents[2] / "models" / "interval_split.xml"
    with pytest.raises(SplitgraphError, match="OpenVINO IR has no IR version of ONNX"):
        splitgraph.convert(path, ir_version=8)


@pytest.mark.parametrize("version", [8, "keep"])
def test_the_version_that_it_has(version: Any) -> None:
    rewrite = splitgraph.convert(with_function(), ir_version=version)
    assert (rewrite.model, rewrite.changes, rewrite.diagnostics) == (with_function(), (), ())


DONE = {
    "lower": (changed(split_model(17), ir_version=10), 8),
    "as low as the opset": (changed(split_model(13), ir_version=10), 7),
    "higher": (split_model(13), 13),
    "with weights": (with_weight(10), 7),
    "with metadata that older readers skip": (with_metadata(), 8),
    "with functions": (with_function(), 9),
    "with an error": (wrong(), 8),
}


@pytest.mark.parametrize(("model", "version"), DONE.values(), ids=DONE)
def test_nothing_else_changes(model: onnx.ModelProto, version: int) -> None:
    before = model.SerializeToString()
    rewrite = splitgraph.convert(model, ir_version=version)
    assert rewrite.model.ir_version == version
    rewrite.model.ir_version = model.ir_version
    assert rewrite.model.SerializeToString() == before == model.SerializeToString()
    assert (rewrite.changes, rewrite.from_opset) == ((), rewrite.to_opset)


def test_functions_are_inlined_below_8() -> None:
    rewrite = splitgraph.convert(with_function(), ir_version=7)
    assert (rewrite.model.ir_version, len(rewrite.model.functions)) == (7, 0)
    assert [node.op_type for node in rewrite.model.graph.node] == ["Split", "Relu"]
    assert [found.code for found in rewrite.diagnostics] == ["SG413"]


def test_initializers_become_inputs_below_4() -> None:
    rewrite = splitgraph.convert(with_weight(8, 8), ir_version=3)
    assert [value.name for value in rewrite.model.graph.input] == ["x", "w"]


def test_notes_of_exporters_stay_without_a_finding() -> None:
    model = with_metadata()
    rewrite = splitgraph.convert(model, ir_version=8)
    assert rewrite.diagnostics == ()
    assert rewrite.onnx_model.graph == model.graph


@pytest.mark.parametrize("options", [{"opset": 17}, {"to": "split"}, {"target": "onnxruntime"}])
def test_with_something_else_as_before(options: dict[str, Any]) -> None:
    rewrite = splitgraph.convert(changed(split_model(13), ir_version=10), ir_version=8, **options)
    assert rewrite.model.ir_version == 8


@pytest.mark.usefixtures("in_process")
def test_a_result_is_verified() -> None:
    rewrite = splitgraph.convert(changed(split_model(), ir_version=10), ir_version=8, verify=True, samples=1)
    assert rewrite.verified is True


# The command line ----------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    onnx.save(changed(split_model(), ir_version=10), "m.onnx")
    return tmp_path


CALLS = {
    "to a default name": (["--no-verify"], 0, "opset 13 · IR version 10 → 8 · not verified\nwrote m.ir8.onnx\n"),
    "to a name": (["--no-verify", "-o", "n.onnx"], 0, "wrote n.onnx"),
    "a dry run": (["--no-verify", "--dry-run"], 0, "would write m.ir8.onnx"),
    "in place": (["--no-verify", "--in-place"], 0, "wrote m.onnx"),
}


@pytest.mark.parametrize(("arguments", "code", "words"), CALLS.values(), ids=CALLS)
def test_the_command_line(
    arguments: list[str], code: int, words: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["convert", "m.onnx", "--ir-version", "8", *arguments]) == code
    assert words in capsys.readouterr().out
    written = [path for path in folder.iterdir() if onnx.load(path).ir_version == 8]
    assert len(written) == ("--dry-run" not in arguments)


def test_what_is_there_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "m.onnx", "--ir-version", "10"]) == 0
    assert capsys.readouterr().out == "m.onnx already has IR version 10; nothing was written.\n"
    assert main(["convert", "m.onnx", "--ir-version", "keep", "-o", "n.onnx"]) == 0
    assert capsys.readouterr().out == "m.onnx already has IR version 10; wrote a copy, n.onnx.\n"
    assert main(["convert", "m.onnx", "--ir-version", "10", "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["ok"], document["unchanged"], document["output"]) == (True, True, None)


def test_what_is_refused_is_said(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["convert", "m.onnx", "--ir-version", "6"]) == 1
    assert "m.onnx cannot go to IR version 6: 1 blocker" in capsys.readouterr().err
    assert main(["convert", "m.onnx"]) == 2
    assert "or --ir-version" in capsys.readouterr().err


def test_many_models(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "zoo").mkdir()
    (folder / "m.onnx").rename("zoo/m.onnx")
    onnx.save(split_model(), "zoo/old.onnx")
    code = main(["convert", "zoo", "--ir-version", "8", "--no-verify", "-o", "out", "--json", "--jobs", "1"])
    models = json.loads(capsys.readouterr().out)["models"]
    assert (code, [each["status"] for each in models]) == (0, ["converted", "unchanged"])
    assert onnx.load("out/m.onnx").ir_version == 8
