"""Whole models of opsets 1 to 8, written by hand; what they compute is computed with NumPy from the old documents."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import Declared, assert_same, build, converted, random_array, run
from onnx import NodeProto, helper

node = helper.make_node


@dataclass(frozen=True)
class Old:
    """A model, and what it computes of its inputs."""

    opset: int
    nodes: list[NodeProto]
    inputs: dict[str, Declared]
    outputs: dict[str, Declared]
    expected: Callable[..., list[Any]]
    held: dict[str, Any]

    def model(self) -> onnx.ModelProto:
        return build(self.nodes, self.opset, self.inputs, self.outputs, self.held)

    def feeds(self) -> dict[str, Any]:
        found = {}
        for seed, (name, (dtype, shape)) in enumerate(self.inputs.items()):
            assert shape is not None
            found[name] = random_array([2 if isinstance(size, str) else size or 1 for size in shape], dtype, seed)
        return found


def softmax(x: Any) -> Any:
    powers = np.exp(x - x.max(-1, keepdims=True))
    return powers / powers.sum(-1, keepdims=True)


WEIGHTS = {
    "scale": random_array((3,), seed=20),
    "shift": random_array((3,), seed=21),
    "mean": random_array((3,), seed=22),
    "var": np.abs(random_array((3,), seed=23)) + np.float32(0.5),
    "slope": random_array((3,), seed=24),
    "kernel": random_array((2, 3, 2, 2), seed=25),
    "w": random_array((8, 5), seed=26),
    "row": random_array((5,), seed=27),
}


def image_network(x: Any) -> list[Any]:
    """Normalization by channel, slopes by channel, biases by channel, rows of a matrix normalized together."""
    h = WEIGHTS
    column = (3, 1, 1)
    y = h["scale"].reshape(column) * (x - h["mean"].reshape(column)) / np.sqrt(h["var"].reshape(column) + 1e-5)
    y = y + h["shift"].reshape(column)
    y = np.where(y < 0, h["slope"].reshape(column) * y, y)
    y = y * h["shift"].reshape(column)
    windows = np.stack([y[:, :, i : i + 2, j : j + 2] for i in range(2) for j in range(2)])
    y = windows.max(0)
    return [softmax(y.reshape(len(x), -1)).reshape(y.shape).astype(np.float32)]


def image_nodes(opset: int) -> list[NodeProto]:
    legacy: dict[str, Any] = {"consumed_inputs": [0, 0, 0, 1, 1]} if opset < 6 else {}
    slope: dict[str, Any] = {"consumed_inputs": [0, 0]} if opset < 6 else {}
    return [
        node("BatchNormalization", ["x", "scale", "shift", "mean", "var"], ["a"], is_test=1, epsilon=1e-5, **legacy),
        node("PRelu", ["a", "slope"], ["b"], **slope),
        node("Mul", ["b", "shift"], ["c"], broadcast=1, axis=1, **slope),
        node("MaxPool", ["c"], ["d"], kernel_shape=[2, 2]),
        node("Softmax", ["d"], ["y"]),
    ]


def perceptron(x: Any) -> list[Any]:
    """A layer with a row of biases, defaults of activations, a name for the type to cast to."""
    h = WEIGHTS
    y = x @ h["w"] * 0.5 + h["row"]
    selu = np.where(y > 0, 1.0507 * y, 1.0507 * (1.6732 * np.exp(np.minimum(y, 0)) - 1.6732))
    hard = np.clip(0.2 * selu + 0.5, 0, 1)
    return [np.concatenate([selu, hard], 1).astype(np.float64)]


PERCEPTRON = [
    node("Gemm", ["x", "w", "row"], ["a"], alpha=0.5, broadcast=1),
    node("Selu", ["a"], ["b"], consumed_inputs=[0]),
    node("HardSigmoid", ["b"], ["c"]),
    node("Concat", ["b", "c"], ["d"]),
    node("Cast", ["d"], ["y"], to="DOUBLE"),
]


def comparisons(a: Any, b: Any, c: Any) -> list[Any]:
    """Broadcasting of one element, of a run in the middle, of the last dimensions."""
    middle = b.reshape(1, 3, 1)
    less = a < c
    return [np.logical_and(a > middle, less).astype(np.float32) - a ** np.float32(2), np.logical_or(a > middle, less)]


COMPARISONS = [
    node("Greater", ["a", "b"], ["g"], broadcast=1, axis=1),
    node("Less", ["a", "c"], ["l"], broadcast=1),
    node("And", ["g", "l"], ["both"]),
    node("Or", ["g", "l"], ["z"]),
    node("Cast", ["both"], ["number"], to=onnx.TensorProto.FLOAT),
    node("Pow", ["a", "two"], ["square"], broadcast=1),
    node("Sub", ["number", "square"], ["y"]),
]


def powers_of_windows(x: Any) -> list[Any]:
    magnitudes = np.abs(x) ** 3
    sums = magnitudes[:, :, :-1] + magnitudes[:, :, 1:]
    everything = magnitudes.sum(2, keepdims=True)
    return [np.cbrt(sums), np.cbrt(everything)]


def extremes(a: Any, b: Any) -> list[Any]:
    return [np.maximum(a, b), (a + b + a) / 3]


FLOAT_X: dict[str, Declared] = {"x": ("float32", ("n", 3, 3, 3))}
OLD = {
    **{
        f"images at {opset}": Old(
            opset,
            image_nodes(opset),
            FLOAT_X,
            {"y": ("float32", ("n", 3, 2, 2))},
            image_network,
            {name: WEIGHTS[name] for name in ("scale", "shift", "mean", "var", "slope")},
        )
        for opset in (1, 5, 6)
    },
    "perceptron at 1": Old(
        1,
        PERCEPTRON,
        {"x": ("float32", ("n", 8))},
        {"y": ("float64", ("n", 10))},
        perceptron,
        {name: WEIGHTS[name] for name in ("w", "row")},
    ),
    "comparisons at 6": Old(
        6,
        COMPARISONS,
        {"a": ("float32", (2, 3, 4)), "b": ("float32", (3,)), "c": ("float32", (3, 4))},
        {"y": ("float32", (2, 3, 4)), "z": ("bool", (2, 3, 4))},
        comparisons,
        {"two": np.array([2], np.float32)},
    ),
    "powers of windows at 1": Old(
        1,
        [node("LpPool", ["x"], ["y"], kernel_shape=[2], p=3.0), node("GlobalLpPool", ["x"], ["z"], p=3.0)],
        {"x": ("float32", ("n", 2, 5))},
        {"y": ("float32", ("n", 2, 4)), "z": ("float32", ("n", 2, 1))},
        powers_of_windows,
        {},
    ),
    "extremes at 1": Old(
        1,
        [node("Max", ["a", "b"], ["y"], consumed_inputs=[0, 0]), node("Mean", ["a", "b", "a"], ["z"])],
        {"a": ("float32", (2, 3)), "b": ("float32", (2, 3))},
        {"y": ("float32", (2, 3)), "z": ("float32", (2, 3))},
        extremes,
        {},
    ),
}


@pytest.mark.parametrize("name", list(OLD))
@pytest.mark.parametrize("target", [8, 13, 18, 21])
def test_old_model_goes_up(name: str, target: int) -> None:
    old = OLD[name]
    feeds = old.feeds()
    after = converted(old.model(), target)
    assert_same(old.expected(**feeds), run(after, feeds), 1e-5)


@pytest.mark.parametrize("name", list(OLD))
def test_old_model_comes_back(name: str) -> None:
    """What went up comes down to its own opset, or to 5, below which no shape is worked out; and goes up again."""
    old = OLD[name]
    feeds = old.feeds()
    back = converted(converted(old.model(), 13), max(old.opset, 5))
    assert_same(old.expected(**feeds), run(converted(back, 13), feeds), 1e-5)
