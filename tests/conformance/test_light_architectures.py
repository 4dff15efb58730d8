"""The architectures that onnx's package carries at opset 9, taken up: they give the package's own outputs, and with
weights that tell channels apart what the original gives.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from known_opsets import known
from onnx import numpy_helper
from onnx.backend import test as backend_tests

import splitgraph

from .engine_runs import assert_close, outputs_of

FOLDER = Path(backend_tests.__file__).parent / "data" / "light"
TARGETS = known([18, 28])
# Small ones, which have between them Dropout, LRN, BatchNormalization, Sum and Softmax.
DEFAULT = ("light_squeezenet", "light_shufflenet", "light_zfnet512")
OTHERS = (
    "light_bvlc_alexnet",
    "light_densenet121",
    "light_inception_v1",
    "light_inception_v2",
    "light_resnet50",
    "light_vgg19",
)
# Those with at most 30 million weights.
RANDOMISED = ("light_densenet121", "light_inception_v1", "light_inception_v2", "light_resnet50")


def load(name: str) -> onnx.ModelProto:
    return onnx.load(FOLDER / f"{name}.onnx")


def input_of(model: onnx.ModelProto) -> dict[str, np.ndarray]:
    """The input that the package's outputs were computed from: equal steps from 0 to 1."""
    held = {tensor.name for tensor in model.graph.initializer}
    (value,) = [value for value in model.graph.input if value.name not in held]
    shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
    count = int(np.prod(shape))
    return {value.name: (np.arange(count).reshape(shape) / count).astype(np.float32)}


def randomise(model: onnx.ModelProto) -> None:
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


def check_outputs_of_the_package(name: str, target: int) -> None:
    model = load(name)
    converted = splitgraph.upgrade(model, target).model
    onnx.checker.check_model(converted, full_check=True)
    expected = onnx.TensorProto.FromString((FOLDER / f"{name}_output_0.pb").read_bytes())
    assert_close([numpy_helper.to_array(expected)], outputs_of(converted, input_of(model)), rtol=2e-3, atol=1e-7)


def check_random_weights(name: str, target: int) -> None:
    model = load(name)
    randomise(model)
    feeds = input_of(model)
    before = outputs_of(model, feeds)
    assert np.ptp(before[0]) > 1e-5
    assert_close(before, outputs_of(splitgraph.upgrade(model, target).model, feeds), rtol=1e-4, atol=1e-6)


def test_every_architecture_is_named() -> None:
    assert {path.stem for path in FOLDER.glob("*.onnx")} == {*DEFAULT, *OTHERS}


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", DEFAULT)
def test_outputs_of_the_package(name: str, target: int) -> None:
    check_outputs_of_the_package(name, target)


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["light_squeezenet", "light_shufflenet"])
def test_random_weights(name: str, target: int) -> None:
    check_random_weights(name, target)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", OTHERS)
def test_outputs_of_the_package_for_all(name: str, target: int) -> None:
    check_outputs_of_the_package(name, target)


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", RANDOMISED)
def test_random_weights_for_all(name: str, target: int) -> None:
    check_random_weights(name, target)
