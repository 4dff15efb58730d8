"""What a layer of an IR says holds; a port that says something else is a warning at most."""

from __future__ import annotations

from pathlib import Path

import pytest
from inference.openvino_ir.one_layer import Input, one_layer

import splitgraph
from splitgraph.formats.openvino_ir import OpenVINOModel, load_ir

_DECOMPRESSION = '<rt_info><attribute name="decompression" version="0" /></rt_info>'

# The layer, its set and attributes, what it reads, the precision of its port, what else it has, and the inferred type.
Layer = tuple[str, str, dict[str, str], list[Input], str, str, str]
SILENT: dict[str, Layer] = {
    "decompression": ("Convert", "opset1", {"destination_type": "f32"}, ["f16 2,3"], "FP16", _DECOMPRESSION, "float32"),
    "decompression to f64": (
        "Convert",
        "opset1",
        {"destination_type": "f64"},
        ["f16 2,3"],
        "FP16",
        _DECOMPRESSION,
        "float64",
    ),
    "decompression of bf16": (
        "Convert",
        "opset1",
        {"destination_type": "f32"},
        ["bf16 2,3"],
        "BF16",
        _DECOMPRESSION,
        "float32",
    ),
    "the right port": ("Convert", "opset1", {"destination_type": "f32"}, ["f16 2,3"], "FP32", "", "float32"),
    "no precision": ("Convert", "opset1", {"destination_type": "f32"}, ["f16 2,3"], "", "", "float32"),
}
TOLD: dict[str, Layer] = {
    "Convert": ("Convert", "opset1", {"destination_type": "f32"}, ["f16 2,3"], "FP16", "", "float32"),
    "Relu": ("ReLU", "opset1", {}, ["f32 2,3"], "I32", "", "float32"),
    "ShapeOf": ("ShapeOf", "opset3", {"output_type": "i64"}, ["f32 2,3"], "I32", "", "int64"),
    "Equal": ("Equal", "opset1", {"auto_broadcast": "numpy"}, ["f32 2,3", "f32 2,3"], "FP32", "", "bool"),
    "Concat": ("Concat", "opset1", {"axis": "0"}, ["f16 2,3", "f16 1,3"], "FP32", "", "float16"),
}


def model_of(folder: Path, layer: Layer) -> OpenVINOModel:
    type_, version, data, inputs, precision, more, _ = layer
    one_layer(folder, type_, version, data, inputs)
    path = folder / "model.xml"
    text = path.read_text()
    head, _, tail = text.partition(f'name="tested" type="{type_}"')
    port = f'<port id="{len(inputs)}" names="y">'
    assert port in tail
    tail = tail.replace(port, port.replace("names", f'precision="{precision}" names')).replace(
        "<input>", f"{more}<input>", 1
    )
    path.write_text(f'{head}name="tested" type="{type_}"{tail}')
    return load_ir(path)


@pytest.mark.parametrize("name", SILENT)
def test_what_openvino_writes_is_no_finding(tmp_path: Path, name: str) -> None:
    analysis = splitgraph.infer(model_of(tmp_path, SILENT[name]))
    assert not analysis.diagnostics
    assert analysis.types["y"].dtype == SILENT[name][-1]


@pytest.mark.parametrize("name", TOLD)
def test_a_port_that_differs_is_a_warning_and_blocks_nothing(tmp_path: Path, name: str) -> None:
    model = model_of(tmp_path, TOLD[name])
    analysis = splitgraph.infer(model)
    assert [(found.code, found.severity) for found in analysis.diagnostics] == [("SG301", "warning")]
    assert analysis.types["y"].dtype == TOLD[name][-1]
    assert not splitgraph.convert(model, "split").changes
