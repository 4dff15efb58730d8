"""Noise around operators: as small as rounding, only where it should be, and of every type."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto

from splitgraph.execution.engines import load_engine
from splitgraph.execution.noise import with_noise
from splitgraph.execution.subjects import Subject
from splitgraph.inference import infer_model

from .small_models import constant, model_of, node, value

FLOAT, HALF, BRAIN, DOUBLE = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE


def subject_of(model: onnx.ModelProto) -> Subject:
    return Subject(model, model, infer_model(model, fill=False))


def rounded_to(dtype: int, op_type: str = "Neg") -> onnx.ModelProto:
    """x to a type, one operator, and back to float64."""
    nodes = [node("Cast", ["x"], ["c"], to=dtype), node(op_type, ["c"], ["d"]), node("Cast", ["d"], ["y"], to=DOUBLE)]
    return model_of(nodes, [value("x", ("N",), DOUBLE)], [value("y", ("N",), DOUBLE)])


# The distance from 1 to the next larger number.
STEPS = {"float64": (DOUBLE, 2.0**-52), "float32": (FLOAT, 2.0**-23), "float16": (HALF, 2.0**-10)}
STEPS["bfloat16"] = (BRAIN, 2.0**-7)


@pytest.mark.parametrize("dtype", STEPS)
def test_noise_is_of_a_few_steps_of_the_type(dtype: str, tmp_path: Path) -> None:
    number, step = STEPS[dtype]
    model = rounded_to(number)
    noisy = with_noise(subject_of(model), [1], 0)
    onnx.checker.check_model(noisy)
    x = np.concatenate([np.linspace(-8, 8, 257), [1e-3, 30000.0]])
    still, moved = (run(each, {"x": x}, tmp_path) for each in (model, noisy))
    assert np.all(moved[still == 0] == 0)
    apart = np.abs(moved - still)[still != 0] / np.abs(still[still != 0])
    # Twice two steps, and as much again as each product is rounded.
    assert 0 < apart.max() <= 8 * step
    assert not np.array_equal(run(with_noise(subject_of(model), [1], 1), {"x": x}, tmp_path), moved)


def run(model: onnx.ModelProto, feeds: dict[str, np.ndarray], folder: Path) -> np.ndarray:
    path = folder / "model.onnx"
    onnx.save(model, str(path))
    engine = "reference" if "bfloat16" in str(infer_model(model, fill=False).types) else "onnxruntime"
    return np.asarray(load_engine(engine, path)(feeds)[0])


def test_nodes_and_values_that_get_none() -> None:
    nodes = [
        node("Shape", ["x"], ["size"]),
        node("Mul", ["x", "weight"], ["scaled"]),
        node("Constant", [], ["half"], value=constant("", 0.5, np.float32)),
        node("Add", ["scaled", "half"], ["noise_0"]),
        node("Identity", ["noise_0"], ["y"]),
    ]
    model = model_of(nodes, [value("x")], [value("y")], [constant("weight", 2.0, np.float32)])
    told = model.SerializeToString(deterministic=True)
    for places in ([], [0]):
        assert [n.op_type for n in with_noise(subject_of(model), places, 0).graph.node if "Random" in n.op_type] == (
            ["RandomUniformLike"] * len(places)
        )
    noisy = with_noise(subject_of(model), [1, 3], 0)
    onnx.checker.check_model(noisy, full_check=True)
    # x, scaled, scaled again and noise_0: not the weight, nor the constant.
    drawn = [each for each in noisy.graph.node if each.op_type == "RandomUniformLike"]
    assert len(drawn) == 4
    assert len({onnx.helper.get_node_attr_value(each, "seed") for each in drawn}) == 4
    assert [value.name for value in noisy.graph.output] == ["y"]
    assert model.SerializeToString(deterministic=True) == told
