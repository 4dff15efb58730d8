"""Batch, instance and group normalization over their boundaries; training is computed with NumPy from the documents."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import (
    assert_same,
    build,
    converted,
    operators,
    random_array,
    refusal,
    run,
    run_reference,
)
from onnx import helper

FIVE = ["x", "scale", "b", "mean", "var"]
IMAGE = (2, 3, 4, 5)


def batch_norm(
    opset: int,
    outputs: Sequence[str],
    shape: Sequence[int] = IMAGE,
    features: Sequence[int] | None = None,
    dtype: str = "float32",
    **attributes: Any,
) -> onnx.ModelProto:
    sizes = list(features or shape[1:2])
    inputs = {"x": (dtype, shape)} | dict.fromkeys(FIVE[1:], (dtype, sizes))
    named = [name for name in outputs if name]
    node = helper.make_node("BatchNormalization", FIVE, list(outputs), **attributes)
    return build(node, opset, inputs, {name: (dtype, sizes if i else shape) for i, name in enumerate(named)})


def feeds_of(model: onnx.ModelProto) -> dict[str, Any]:
    found = {}
    for seed, value in enumerate(model.graph.input):
        shape = [dim.dim_value for dim in value.type.tensor_type.shape.dim]
        dtype = helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        found[value.name] = random_array(shape, str(dtype), seed)
    if "var" in found:
        found["var"] = np.abs(found["var"]) + found["var"].dtype.type(0.1)
    return found


def normalized(feeds: dict[str, Any], mean: Any, var: Any, epsilon: float = 1e-5) -> Any:
    x, scale, bias = feeds["x"], feeds["scale"], feeds["b"]
    column = (-1,) + (1,) * (x.ndim - 2)
    parts = [held if held.ndim > 1 or x.ndim == 2 else held.reshape(column) for held in (mean, var, scale, bias)]
    return (parts[2] * (x - parts[0]) / np.sqrt(parts[1] + np.float32(epsilon)) + parts[3]).astype(x.dtype)


def trained(feeds: dict[str, Any], axes: tuple[int, ...], momentum: float = 0.9) -> list[Any]:
    """Y, running mean, running variance, mean and variance of the batch."""
    x = feeds["x"]
    mean, var = x.mean(axes), x.var(axes)
    running = [
        (old * momentum + new * (1 - momentum)).astype(x.dtype)
        for old, new in ((feeds["mean"], mean), (feeds["var"], var))
    ]
    return [normalized(feeds, mean, var), *running, mean.astype(x.dtype), var.astype(x.dtype)]


@pytest.mark.parametrize(
    ("model", "target", "words"),
    [
        (batch_norm(6, ["y", "m", "v", "", ""], is_test=1), 7, "inference gives one output, and 'm' is read"),
        (batch_norm(9, ["y", "m", "v", "s", "t"]), 14, "training gives no saved_var, and 't' is read"),
        (batch_norm(6, ["y"], is_test=1, spatial=0, features=["c"]), 7, "spatial=0 needs shapes"),
        (batch_norm(7, ["y"], (2, 3, 4, 5, 6)), 5, "the input has four dimensions, and this one 5"),
    ],
)
def test_refused(model: onnx.ModelProto, target: int, words: str) -> None:
    assert words in refusal(model, target)


@pytest.mark.parametrize("opset", [6, 7, 9, 14])
def test_inference_stays_one_node(opset: int) -> None:
    before = batch_norm(opset, ["y"], **({"is_test": 1} if opset < 7 else {}))
    feeds = feeds_of(before)
    expected = [normalized(feeds, feeds["mean"], feeds["var"])]
    for target in (1, 6, 7, 13, 18):
        after = converted(before, target)
        assert operators(after) == ["BatchNormalization"]
        assert_same(expected, run(converted(after, 15), feeds), 1e-5)


@pytest.mark.parametrize("shape", [(2, 3), (2, 3, 4), IMAGE])
def test_any_rank_below_6(shape: tuple[int, ...]) -> None:
    before = batch_norm(7, ["y"], shape)
    after = converted(before, 5)
    assert ("Unsqueeze" in operators(after)) == (len(shape) < 4)
    feeds = feeds_of(before)
    assert_same(run(before, feeds), run(converted(after, 9), feeds), 1e-6)


FIVE_OUTPUTS = ["y", "m", "v", "saved_mean", ""]


@pytest.mark.parametrize(
    ("opset", "outputs"),
    [(6, ["y"]), (6, FIVE_OUTPUTS), (7, FIVE_OUTPUTS), (9, FIVE_OUTPUTS), (9, ["y", "", "v", "", ""])],
)
@pytest.mark.parametrize("target", [9, 14, 18])
def test_training_goes_up(opset: int, outputs: list[str], target: int) -> None:
    before = batch_norm(opset, outputs, epsilon=1e-5)
    feeds = feeds_of(before)
    computed = trained(feeds, (0, 2, 3))
    expected = [held for held, name in zip(computed, [*outputs, *[""] * 4], strict=False) if name]
    assert_same(expected, run(converted(converted(before, target), 18), feeds), 1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 4), IMAGE])
def test_training_goes_down(dtype: str, shape: tuple[int, ...]) -> None:
    before = batch_norm(15, ["y", "m", "v"], shape, dtype=dtype, training_mode=1, momentum=0.7, epsilon=1e-2)
    feeds = feeds_of(before)
    tolerance = 2e-2 if dtype == "float16" else 1e-5
    for target in (13, 9):
        found = run(converted(before, target), feeds)
        assert_same(run_reference(before, feeds), found, tolerance)


@pytest.mark.parametrize("target", [14, 13])
def test_training_of_halves_is_computed_in_float32(target: int) -> None:
    """In float16 nothing would be left of the variance of many numbers that are far from 0."""
    before = batch_norm(15, ["y", "m", "v"], (64, 2, 8, 8), dtype="float16", training_mode=1)
    feeds = feeds_of(before)
    feeds["x"] = feeds["x"] + np.float16(60)
    found = run_reference(converted(before, target), feeds)[0].astype(np.float32)
    expected = trained({name: held.astype(np.float32) for name, held in feeds.items()}, (0, 2, 3))[0]
    np.testing.assert_allclose(found, expected, atol=0.01)


def test_training_of_doubles_with_a_scale_in_float32_stays_in_float64() -> None:
    before = batch_norm(15, ["y", "m", "v"], dtype="float64", training_mode=1)
    feeds = feeds_of(before)
    expected = trained(feeds | {name: feeds[name].astype(np.float32) for name in FIVE[1:3]}, (0, 2, 3))[0]
    for value in before.graph.input[1:3]:
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    feeds |= {name: feeds[name].astype(np.float32) for name in FIVE[1:3]}
    assert_same([expected], run(converted(before, 14), feeds)[:1], 1e-12)


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("target", [6, 9, 18])
def test_one_scale_for_each_activation(training: bool, target: int) -> None:
    before = batch_norm(7, ["y", "m", "v", "", ""][: 5 if training else 1], (2, 3, 4), (3, 4), spatial=0)
    feeds = feeds_of(before)
    expected = trained(feeds, (0,))[:3] if training else [normalized(feeds, feeds["mean"], feeds["var"])]
    assert_same(expected, run(converted(converted(before, target), 15), feeds), 1e-5)


@pytest.mark.parametrize(("shape", "features"), [((2, 3), 3), ((2, 3, 4), 3), ((2, 3, 4), 12)])
def test_one_scale_for_each_activation_below_7(shape: tuple[int, ...], features: int) -> None:
    before = batch_norm(6, ["y"], shape, [features], spatial=0, is_test=1)
    feeds = feeds_of(before)
    flat = {**feeds, "x": feeds["x"].reshape(2, -1) if features == 12 else feeds["x"]}
    expected = normalized(flat, feeds["mean"], feeds["var"]).reshape(shape)
    assert_same([expected], run(converted(before, 15), feeds), 1e-5)


def test_instance_normalization_below_6() -> None:
    node = helper.make_node("InstanceNormalization", FIVE[:3], ["y"])
    inputs = {"x": ("float32", (2, 3, 4)), "scale": ("float32", (3,)), "b": ("float32", (3,))}
    before = build(node, 6, inputs, {"y": ("float32", (2, 3, 4))})
    feeds = feeds_of(before)
    after = converted(before, 5)
    assert operators(after) == ["Unsqueeze", "InstanceNormalization", "Squeeze"]
    assert_same(run(before, feeds), run(converted(after, 9), feeds), 1e-6)


def group_norm(opset: int, dtype: str, shape: Sequence[int | str], groups: int, scales: int) -> onnx.ModelProto:
    node = helper.make_node("GroupNormalization", FIVE[:3], ["y"], num_groups=groups, epsilon=1e-2)
    inputs = {"x": (dtype, shape), "scale": (dtype, (scales,)), "b": (dtype, (scales,))}
    return build(node, opset, inputs, {"y": (dtype, shape)})


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("groups", [1, 2, 4])
def test_scales_of_groups_become_those_of_channels(dtype: str, groups: int) -> None:
    feeds = feeds_of(group_norm(18, dtype, (2, 4, 3, 2), groups, groups))
    x = feeds["x"].reshape(2, groups, -1)
    spread = (x - x.mean(2, keepdims=True)) / np.sqrt(x.var(2, keepdims=True) + np.float32(1e-2).astype(dtype))
    expected = (feeds["scale"][:, None] * spread + feeds["b"][:, None]).reshape(2, 4, 3, 2)
    for shape in ((2, 4, 3, 2), ("n", "c", "h", "w")):
        after = converted(group_norm(18, dtype, shape, groups, groups), 21)
        found = run_reference(after, feeds)
        assert_same([expected.astype(dtype)], found, 1e-2 if dtype == "float16" else 1e-5)
        if dtype == "float64":
            assert_same([expected], found, 1e-12)


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("target", [20, 18, 17, 13, 11])
def test_scales_of_channels_below_21(dtype: str, target: int) -> None:
    before = group_norm(21, dtype, (2, 4, 3, 2), 2, 4)
    feeds = feeds_of(before)
    tolerance = 1e-2 if dtype == "float16" else 1e-5
    assert_same(run_reference(before, feeds), run(converted(before, target), feeds), tolerance)


@pytest.mark.parametrize(("dtype", "tolerance"), [("float32", 1e-4), ("float64", 1e-9), ("float16", 5e-3)])
@pytest.mark.parametrize("axes", [None, [2, 3], [1]])
@pytest.mark.parametrize(("source", "target"), [(13, 8), (9, 7)])
def test_mean_variance_of_every_type(
    source: int, target: int, axes: list[int] | None, dtype: str, tolerance: float
) -> None:
    node = helper.make_node("MeanVarianceNormalization", ["x"], ["y"], axes=axes)
    model = build(node, source, {"x": (dtype, IMAGE)}, {"y": (dtype, IMAGE)})
    x = random_array(IMAGE, dtype)
    # Of a large mean the square cancels that of the squares.
    x[:, 1] += 64
    wide, over = x.astype(np.float64), tuple(axes or [0, 2, 3])
    deviation = wide - wide.mean(over, keepdims=True)
    expected = deviation / (np.sqrt((deviation**2).mean(over, keepdims=True)) + 1e-9)
    after = converted(model, target)
    assert_same([expected.astype(dtype)], run(after, {"x": x}), tolerance)
