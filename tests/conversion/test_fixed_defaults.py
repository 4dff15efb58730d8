"""Initializers among the inputs: one option takes them out, where the IR version of the result allows it."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnx_ir
import pytest
from onnx import ModelProto, TensorProto, helper, numpy_helper

import splitgraph
from splitgraph.findings.codes import CODES
from splitgraph.model.value_type import ValueType

FLOAT, INT = TensorProto.FLOAT, TensorProto.INT64


def model(opset: int, ir_version: int, listed: tuple[str, ...] = ("w", "s")) -> ModelProto:
    """A product with `w` in the shape `s`: both are inputs, as IR 3 demands."""
    w = numpy_helper.from_array(np.ones((4, 4), np.float32), "w")
    s = numpy_helper.from_array(np.array([0, 2, 2], np.int64), "s")
    nodes = [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node("Reshape", ["p", "s"], ["y"])]
    info = helper.make_tensor_value_info
    values = {"w": info("w", FLOAT, [4, 4]), "s": info("s", INT, [3])}
    inputs = [info("x", FLOAT, ["N", 4]), *(values[name] for name in listed)]
    graph = helper.make_graph(nodes, "g", inputs, [info("y", FLOAT, ["A", "B", "C"])], [w, s])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)


def inputs_of(made: ModelProto) -> list[str]:
    return [value.name for value in made.graph.input]


# What must not change -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("opset", [9, 13])
def test_without_the_option_inputs_stay(opset: int) -> None:
    rewrite = splitgraph.upgrade(model(8, 3), opset)
    assert inputs_of(rewrite.model) == ["x", "w", "s"]
    [found] = [found for found in rewrite.diagnostics if found.code == "SG305"]
    assert (found.severity, found.message.startswith("2 initializers are inputs")) == ("info", True)
    assert found.help is not None and "--fix-defaults" in found.help


@pytest.mark.parametrize(
    ("before", "options"),
    [(model(13, 8), {"opset": 18}), (model(8, 3), {"opset": 7}), (model(8, 3, ()), {"opset": 13})],
)
def test_what_is_no_new_default_is_not_told(before: ModelProto, options: dict[str, int]) -> None:
    assert not [found for found in splitgraph.convert(before, **options).diagnostics if found.code == "SG305"]


def test_below_ir_4_every_initializer_is_an_input() -> None:
    rewrite = splitgraph.downgrade(model(8, 3), 7, fix_defaults=True)
    assert (inputs_of(rewrite.model), rewrite.model.ir_version) == (["x", "w", "s"], 3)
    assert not [found for found in rewrite.diagnostics if found.code == "SG305"]


def test_a_model_without_defaults_is_the_same() -> None:
    made = model(13, 8, listed=())
    assert splitgraph.convert(made, fix_defaults=True).model == made


def test_an_input_without_an_initializer_stays() -> None:
    assert inputs_of(splitgraph.convert(model(13, 8, listed=("s",)), fix_defaults=True).model) == ["x"]


def test_another_word_is_no_option() -> None:
    with pytest.raises(splitgraph.SplitgraphError, match="fix_defaults is 1"):
        splitgraph.upgrade(model(8, 3), 13, fix_defaults=1)  # type: ignore[arg-type]


def test_the_finding_names_the_option() -> None:
    assert "--fix-defaults" in CODES["SG305"].help


# What goes ------------------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(
    ("before", "options"),
    [
        (model(8, 3), {"opset": 9}),
        (model(8, 3), {"opset": 18}),
        (model(8, 3), {"ir_version": 8}),
        (model(13, 8), {}),
        (model(13, 8), {"opset": 18}),
        (model(13, 8), {"opset": 9}),
        (model(13, 8), {"to": "slice"}),
        (model(13, 8), {"target": "opencv"}),
    ],
)
def test_they_are_constants_then(before: ModelProto, options: dict[str, object]) -> None:
    copy = before.SerializeToString()
    rewrite = splitgraph.convert(before, fix_defaults=True, verify=True, **options)  # type: ignore[call-overload]
    assert before.SerializeToString() == copy
    assert inputs_of(rewrite.model) == ["x"]
    assert rewrite.verified is True
    [found] = [found for found in rewrite.diagnostics if found.code == "SG305"]
    assert (found.severity, "'w', 's'" in found.message) == ("info", True)
    onnx.checker.check_model(rewrite.model)
    shape = splitgraph.infer(rewrite.model).types["y"]
    assert isinstance(shape, ValueType) and str(shape) == "float32[N, 2, 2]"


@pytest.mark.usefixtures("in_process")
def test_ir_3_takes_them_as_constants() -> None:
    rewrite = splitgraph.downgrade(model(13, 8), 8, ir_version=3, fix_defaults=True, verify=True)
    assert (inputs_of(rewrite.model), rewrite.model.ir_version, rewrite.verified) == (["x", "w", "s"], 3, True)


def test_reshape_has_it() -> None:
    assert inputs_of(splitgraph.reshape(model(13, 8), batch=3, fix_defaults=True).model) == ["x"]


def test_a_model_of_onnx_ir() -> None:
    made = splitgraph.upgrade(onnx_ir.serde.deserialize_model(model(13, 8)), 18, fix_defaults=True).model
    assert [value.name for value in made.graph.inputs] == ["x"]


def test_a_file(tmp_path: Path) -> None:
    path = tmp_path / "model.onnx"
    onnx.save(model(8, 3), path)
    rewrite = splitgraph.upgrade(path, 18, fix_defaults=True)
    rewrite.save(path)
    assert inputs_of(onnx.load(path)) == ["x"]
