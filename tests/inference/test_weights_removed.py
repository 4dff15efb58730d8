"""Models that are kept without their weights: shapes are inferred and converted, and nothing is run."""

from __future__ import annotations

import math
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, TensorProto, helper

import splitgraph

MODELS = Path(__file__).parent.parent.parent / "models"
DATA_FIELDS = ("raw_data", "float_data", "int32_data", "int64_data", "double_data", "uint64_data")


def without_weights(name: str, least: int = 2) -> tuple[ModelProto, int]:
    """A model without the elements of its tensors that have as many or more; and how many tensors that are."""
    model, count = onnx.load(MODELS / name), 0
    for held in model.graph.initializer:
        if math.prod(held.dims) >= least and held.data_type == TensorProto.FLOAT:
            for field in DATA_FIELDS:
                held.ClearField(field)
            count += 1
    return model, count


NAMES = [
    "gpt2.opset17",
    "shufflenet.opset13",
    "c2f.opset18",
    "lstm_loop.opset18",
    "segment_means.opset11",
    "glu.opset17",
]


@pytest.mark.parametrize("name", NAMES)
def test_shapes_are_inferred_as_with_weights(name: str) -> None:
    model, count = without_weights(f"{name}.onnx")
    assert count
    found, whole = splitgraph.infer(model), splitgraph.infer(MODELS / f"{name}.onnx")
    assert {key: str(value) for key, value in found.types.items()} == {
        key: str(value) for key, value in whole.types.items()
    }
    (finding,) = [each for each in found.diagnostics if each not in whole.diagnostics]
    assert (finding.code, finding.severity) == ("SG113", "warning")
    assert str(count) in finding.message
    assert found.ok


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("opset", [9, 21])
def test_converted_as_with_weights(name: str, opset: int) -> None:
    model, _ = without_weights(f"{name}.onnx")
    convert = splitgraph.upgrade if opset == 21 else splitgraph.downgrade
    try:
        whole = convert(MODELS / f"{name}.onnx", opset)
    except splitgraph.ConversionError as refused:
        with pytest.raises(splitgraph.ConversionError) as again:
            convert(model, opset)
        assert [each.code for each in again.value.diagnostics] == [each.code for each in refused.diagnostics]
        return
    rewrite = convert(model, opset)
    assert [change.after for change in rewrite.changes] == [change.after for change in whole.changes]
    # What was removed stays removed, and nothing is put in its place.
    kept = {held.name: held for held in rewrite.model.graph.initializer}
    assert all(kept[held.name] == held for held in model.graph.initializer if held.name in kept)


def test_not_run_with_the_reason() -> None:
    model, _ = without_weights("glu.opset17.onnx")
    verification = splitgraph.verify(model, splitgraph.upgrade(model, 21).model)
    assert verification.verdict == "not-run"
    assert "the weights were removed" in verification.diagnostics[0].message


def holding(*held: TensorProto) -> ModelProto:
    nodes = [helper.make_node("Identity", [each.name], [f"y{index}"]) for index, each in enumerate(held)]
    outputs = [helper.make_empty_tensor_value_info(f"y{index}") for index in range(len(held))]
    graph = helper.make_graph(nodes, "g", [], outputs, initializer=held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def empty(name: str, size: int, data_type: int = TensorProto.FLOAT, **data: bytes) -> TensorProto:
    return TensorProto(name=name, data_type=data_type, dims=[size], **data)


def full(name: str, size: int) -> TensorProto:
    return TensorProto(name=name, data_type=TensorProto.FLOAT, dims=[size], raw_data=bytes(4 * size))


@pytest.mark.parametrize(
    ("held", "code"),
    [
        ([empty("w", 8)], "SG113"),
        ([empty("w", 8, raw_data=b"")], "SG113"),
        ([empty("w", 8), full("b", 4)], "SG113"),
        ([empty("w", 8), empty("v", 8), full("b", 4)], "SG113"),
        # A model that has most of its weights is damaged.
        ([empty("b", 4), full("w", 8)], "SG111"),
        ([empty("n", 1, TensorProto.INT64), full("w", 8)], "SG111"),
        ([empty("b", 4, raw_data=b""), full("w", 8)], "SG111"),
        ([full("w", 8)], None),
        ([empty("w", 0)], None),
        ([empty("w", 0), full("b", 4)], None),
    ],
)
def test_removed_or_damaged(held: list[TensorProto], code: str | None) -> None:
    found = splitgraph.infer(holding(*held))
    assert [each.code for each in found.diagnostics] == ([] if code is None else [code])
    assert found.ok == (code != "SG111")


def test_a_shape_whose_elements_were_removed_is_unknown() -> None:
    shape = empty("s", 2, TensorProto.INT64)
    nodes = [helper.make_node("Reshape", ["x", "s"], ["y"])]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [6, 4])]
    graph = helper.make_graph(nodes, "g", inputs, [helper.make_empty_tensor_value_info("y")], [shape])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    found = splitgraph.infer(model)
    assert str(found.types["y"]) == "float32[?, ?]"
    assert [each.code for each in found.diagnostics] == ["SG113"]
