"""Initializers that are also inputs: their values are unknown, which is told, or taken for constants on request."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

import splitgraph

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def model_of(
    op_type: str, held: TensorProto, *, ir_version: int = 8, listed: bool = True, outputs: int = 1
) -> ModelProto:
    """y = op(x, w) with x of [6, 4], and w an initializer that is also listed as input."""
    names = [f"y{index}" for index in range(outputs)]
    inputs = [helper.make_tensor_value_info("x", FLOAT, [6, 4])]
    if listed:
        inputs.append(helper.make_tensor_value_info(held.name, held.data_type, list(held.dims)))
    node = helper.make_node(op_type, ["x", held.name], names)
    graph = helper.make_graph(
        [node], "g", inputs, [helper.make_empty_tensor_value_info(name) for name in names], [held]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=ir_version)


def integers(*items: int) -> TensorProto:
    return helper.make_tensor("w", INT64, [len(items)], items)


# The last number is of dimensions that are open. Expand keeps what is not 1 whatever the shape is, and TopK counts its
# indices, too.
CASES = [
    ("Reshape", integers(3, 8), 1, "float32[3, 8]", 2),
    ("Reshape", integers(2, 3, 4), 1, "float32[2, 3, 4]", 3),
    ("Expand", integers(2, 6, 4), 1, "float32[2, 6, 4]", 1),
    ("Tile", integers(1, 2), 1, "float32[6, 8]", 2),
    ("Split", integers(2, 4), 2, "float32[2, 4]", 2),
    ("ReduceSum", integers(1), 1, "float32[6, 1]", 2),
    ("TopK", integers(3), 2, "float32[6, 3]", 2),
]


@pytest.mark.parametrize(("op_type", "held", "outputs", "assumed", "dims"), CASES)
def test_what_is_open_is_told_once(op_type: str, held: TensorProto, outputs: int, assumed: str, dims: int) -> None:
    model = model_of(op_type, held, outputs=outputs)
    found = splitgraph.infer(model)
    (note,) = found.diagnostics
    assert (note.code, note.severity) == ("SG305", "info")
    assert f"{dims} dimension" in note.message
    assert "--assume-defaults" in note.help
    assert str(found.types["y0"]) != assumed
    assert found.ok


@pytest.mark.parametrize(("op_type", "held", "outputs", "assumed", "dims"), CASES)
def test_taken_for_constants(op_type: str, held: TensorProto, outputs: int, assumed: str, dims: int) -> None:
    found = splitgraph.infer(model_of(op_type, held, outputs=outputs), assume_defaults=True)
    assert str(found.types["y0"]) == assumed
    (note,) = found.diagnostics
    assert (note.code, note.severity) == ("SG305", "info")
    assert "the default of 1 input is treated as constant" in note.message


def test_two_defaults_of_one_name() -> None:
    """Equal ones are a warning, as for initializers that are no inputs; different ones are an error."""
    equal, different = (model_of("Reshape", integers(3, 8)) for _ in range(2))
    equal.graph.initializer.append(integers(3, 8))
    different.graph.initializer.append(integers(8, 3))
    for model, severity in ((equal, "warning"), (different, "error")):
        found = [each for each in splitgraph.infer(model).diagnostics if each.code == "SG104"]
        assert [each.severity for each in found] == [severity]
    with pytest.raises(splitgraph.ConversionError, match="SG104"):
        splitgraph.upgrade(different, 18, assume_defaults=True)
    rewrite = splitgraph.upgrade(equal, 18, assume_defaults=True)
    assert rewrite.assumed_defaults == ("w",)
    assert "the default of 1 input is" in rewrite.diagnostics[0].message


@pytest.mark.parametrize("assume_defaults", [False, True])
@pytest.mark.parametrize(
    "model",
    [
        model_of("Reshape", integers(3, 8), listed=False),
        # Before IR 4 every initializer is listed, and is a constant.
        model_of("Reshape", integers(3, 8), ir_version=3),
    ],
)
def test_constants_are_no_defaults(model: ModelProto, assume_defaults: bool) -> None:
    found = splitgraph.infer(model, assume_defaults=assume_defaults)
    assert not found.diagnostics
    assert str(found.types["y0"]) == "float32[3, 8]"


def test_weights_leave_nothing_open() -> None:
    weights = helper.make_tensor("w", FLOAT, [4, 5], [0.0] * 20)
    found = splitgraph.infer(model_of("MatMul", weights))
    assert not found.diagnostics
    assert str(found.types["y0"]) == "float32[6, 5]"


def test_a_default_of_integers_on_which_no_dimension_depends() -> None:
    found = splitgraph.infer(model_of("Gather", integers(1, 2)))
    assert not found.diagnostics
    assert str(found.types["y0"]) == "float32[2, 4]"


@pytest.mark.parametrize("options", [[], ["--assume-defaults"]])
def test_on_the_command_line(options: list[str], tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model_of("Reshape", integers(3, 8)), path)
    command = [sys.executable, "-m", "splitgraph", "infer", str(path), "--json", "--all", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    document = json.loads(done.stdout)
    assert done.returncode == 0
    assert [found["code"] for found in document["diagnostics"]] == ["SG305"]
    assert (document["values"]["y0"]["shape"] == [3, 8]) == bool(options)
