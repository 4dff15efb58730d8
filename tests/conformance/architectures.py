"""The architectures that onnx's package carries at opset 9, with the package's own outputs or with random weights."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend import test as backend_tests

from .model_cases import ModelCase

FOLDER = Path(backend_tests.__file__).parent / "data" / "light"
# So many weights at most are made at random: more take long.
MOST_WEIGHTS = 30_000_000


def architectures() -> Iterator[ModelCase]:
    """Each architecture with the input and the output of the package."""
    for path in sorted(FOLDER.glob("*.onnx")):
        model = onnx.load(path)
        output = onnx.TensorProto.FromString(path.with_name(f"{path.stem}_output_0.pb").read_bytes())
        yield ModelCase(path.stem, model, [([_input(model)], [numpy_helper.to_array(output)])], rtol=2e-3)


def with_random_weights(case: ModelCase) -> ModelCase:
    """The architecture with random weights in place of those that ConstantOfShape makes, all of which are equal."""
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    _randomise(model)
    return ModelCase(case.name, model, [(case.data_sets[0][0], [])], rtol=1e-4, atol=1e-6)


def weights_of(model: onnx.ModelProto) -> int:
    """How many weights ConstantOfShape makes."""
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    made = [node.input[0] for node in model.graph.node if node.op_type == "ConstantOfShape"]
    return sum(int(np.prod(shapes[name])) for name in made)


def _input(model: onnx.ModelProto) -> np.ndarray:
    """The input that the package's outputs were computed from: equal steps from 0 to 1."""
    held = {tensor.name for tensor in model.graph.initializer}
    (value,) = [value for value in model.graph.input if value.name not in held]
    shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    return (np.arange(count).reshape(shape) / count).astype(np.float32)


def _randomise(model: onnx.ModelProto) -> None:
    """Give the model random weights in place of those that ConstantOfShape makes, all of which are equal."""
    random = np.random.default_rng(0)
    shapes = {tensor.name: numpy_helper.to_array(tensor) for tensor in model.graph.initializer}
    variances = {node.input[4] for node in model.graph.node if node.op_type == "BatchNormalization"}
    kept = []
    for node in model.graph.node:
        if node.op_type != "ConstantOfShape":
            kept.append(node)
            continue
        shape = tuple(int(size) for size in shapes[node.input[0]])
        fan_in = max(1, int(np.prod(shape[1:])))
        drawn = random.standard_normal(shape, dtype=np.float32) / np.float32(np.sqrt(fan_in))
        if node.output[0] in variances:
            drawn = np.abs(drawn) + np.float32(0.5)
        model.graph.initializer.append(numpy_helper.from_array(drawn.astype(np.float32), node.output[0]))
    del model.graph.node[:]
    model.graph.node.extend(kept)
    # From IR version 4 on, an initializer need not be an input.
    model.ir_version = 4
