"""Layers that no operator set of OpenVINO has are warnings; layers of extensions are told of by their ports."""

from __future__ import annotations

from pathlib import Path

import pytest
from inference.openvino_ir.one_layer import one_layer

import splitgraph
from splitgraph.inference.openvino_ir.infer import fault_of_layer

IMPOSSIBLE = {
    "a type": ("FooBar", "opset1", "no layer FooBar in opset1"),
    "a version of a split": ("VariadicSplit", "opset99", "no operator set opset99"),
    "a version of another layer": ("ReLU", "opset400", "no operator set opset400"),
    "a version of zero": ("ReLU", "opset0", "no operator set opset0"),
    "a version that is no number": ("ReLU", "opsetx", "no operator set opsetx"),
    "If before it came": ("If", "opset1", "came with opset8"),
    "Swish before it came": ("Swish", "opset3", "came with opset4"),
    "Identity of the set before": ("Identity", "opset15", "no layer Identity in opset15; the layer came with opset16"),
    "Gelu in other letters": ("GELU", "opset1", "came with opset2"),
    "Slice of opset1": ("Slice", "opset1", "came with opset8"),
    "ScatterNDUpdate of opset3": ("ScatterNDUpdate", "opset3", "came with opset4"),
    "ONNX's name": ("SplitToSequence", "opset8", "no layer SplitToSequence in opset8"),
}
POSSIBLE = [
    ("ReLU", "opset1"),
    ("VariadicSplit", "opset1"),
    ("Gelu", "opset7"),
    ("SoftMax", "opset8"),
    ("If", "opset8"),
    ("If", "opset16"),
    ("Swish", "opset4"),
    ("Gelu", "opset2"),
    ("Identity", "opset16"),
    ("MVN", "opset1"),
    ("RNNCell", "opset1"),
    ("ShuffleChannels", "opset1"),
]


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_an_impossible_layer_is_a_warning(tmp_path: Path, name: str) -> None:
    type_, version, words = IMPOSSIBLE[name]
    inputs = ["f32 ?,6", 1, [2, 4]] if type_ == "VariadicSplit" else ["f32 2,3"]
    analysis = splitgraph.infer(one_layer(tmp_path, type_, version, {}, inputs, "2,3"))
    told = [found for found in analysis.diagnostics if found.code == "SG303"]
    assert [(found.severity, found.location) for found in told] == [("warning", "main/tested")]
    assert words in told[0].message


@pytest.mark.parametrize(("type_", "version"), POSSIBLE)
def test_others_are_not(type_: str, version: str) -> None:
    assert fault_of_layer(type_, version) is None
    assert fault_of_layer("FooBar", "extension") is None


def test_advice_about_an_extension_fits_an_ir(tmp_path: Path) -> None:
    analysis = splitgraph.infer(one_layer(tmp_path, "FooBar", "extension", {}, ["f32 2,3"], "2,3"))
    (found,) = analysis.diagnostics
    assert "belongs to an extension" in found.message
    assert "value_info" not in found.help and "function" not in found.help
    assert analysis.types["y"].shape == (2, 3)
