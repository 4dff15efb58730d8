"""Dropout, in inference and in training."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conversion.operators.crossings import Crossing
from conversion.operators.execute import build, converted, operators, random_array, refusal, run, value
from onnx import helper, numpy_helper

X = random_array((40, 50)) + 3


def dropout(source: int, target: int, outputs: int = 1, **attributes: Any) -> Crossing:
    return Crossing(
        "", "Dropout", source, target, {"x": X}, {}, attributes, outputs=outputs, expected=[X, X != 0][:outputs]
    )


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (dropout(6, 7), "nothing says that a node is in training"),
        (dropout(6, 18, 2, is_test=1), "in test mode it gives no mask"),
        (dropout(10, 12, 2), "what mask a node gives that does not drop"),
        (
            Crossing("seed", "Dropout", 12, 11, {"x": X, "t": np.array(True)}, {}, {"seed": 3}, ("x", "", "t")),
            "the numbers that seed 3 gives",
        ),
    ],
    ids=str,
)
def test_refusals(case: Crossing, words: str) -> None:
    assert words in case.refused()


@pytest.mark.parametrize("target", [7, 10, 12, 13, 18])
def test_test_mode(target: int) -> None:
    dropout(6, target, is_test=1, ratio=0.25).check()
    dropout(1, target, is_test=1, consumed_inputs=[0]).check()


def test_the_ratio_is_kept_for_training() -> None:
    """Inference reads none, but a model may be trained further."""
    after = dropout(10, 12, ratio=0.25).check()
    (node,) = after.graph.node
    (held,) = (tensor for tensor in after.graph.initializer if tensor.name == node.input[1])
    assert numpy_helper.to_array(held) == 0.25


@pytest.mark.parametrize("source", [6, 7, 10])
def test_mask_that_nobody_reads(source: int) -> None:
    attributes: dict[str, Any] = {"is_test": 1} if source == 6 else {}
    node = helper.make_node("Dropout", ["x"], ["y", "mask"], ratio=0.25, **attributes)
    model = build(node, source, {"x": ("float32", X.shape)}, {"y": ("float32", X.shape)})
    for target in (10, 12, 18, 22):
        if target > source:
            assert np.array_equal(run(converted(model, target), {"x": X})[0], X)


def test_what_was_said_of_a_mask_that_goes_goes_with_it() -> None:
    """The name may be that of another value from then on."""
    node = helper.make_node("Dropout", ["x"], ["y", "mask"])
    model = build(node, 12, {"x": ("float32", X.shape)}, {"y": ("float32", X.shape)})
    model.graph.value_info.append(value("mask", ("bool", X.shape)))
    after = converted(model, 11)
    assert "mask" not in after.graph.node[0].output
    assert not after.graph.value_info


@pytest.mark.parametrize(
    ("source", "target", "dtype"), [(7, 10, "float32"), (7, 11, "float32"), (10, 9, "bool"), (11, 7, "bool")]
)
def test_mask_keeps_its_type(source: int, target: int, dtype: str) -> None:
    node = helper.make_node("Dropout", ["x"], ["y", "mask"])
    model = build(node, source, {"x": ("float32", X.shape)}, {"y": ("float32", X.shape), "mask": (dtype, X.shape)})
    after = converted(model, target)
    assert operators(after) == ["Dropout", "Cast"]
    y, mask = run(after, {"x": X})
    assert np.array_equal(y, X) and mask.dtype == dtype


@pytest.mark.parametrize("target", [11, 10, 9, 7, 6])
def test_inference_goes_down(target: int) -> None:
    for held in ({}, {"r": np.float32(0.1)}, {"r": np.float32(0.1), "t": np.array(False)}):
        case = Crossing("", "Dropout", 13, target, {"x": X}, held, expected=[X])
        after = converted(case.model(), target)
        if target > 6:
            assert np.array_equal(run(after, {"x": X})[0], X)
        assert operators(after) == ["Dropout"]


@pytest.mark.parametrize("target", [11, 10])
def test_mask_of_inference(target: int) -> None:
    dropout(12, target, 2).check()


def kept_share(before: np.ndarray, after: np.ndarray, ratio: float) -> float:
    """The share of elements that stay, which must be scaled; all others must be 0."""
    kept = after != 0
    np.testing.assert_allclose(after[kept], before[kept] / (1 - ratio), rtol=1e-5)
    return float(kept.mean())


@pytest.mark.parametrize("source", [1, 6])
@pytest.mark.parametrize("target", [12, 18])
def test_training_goes_up(source: int, target: int) -> None:
    model = Crossing("", "Dropout", source, target, {"x": X}, {}, {"ratio": 0.25}, outputs=2, expected=[X, X]).model()
    y, mask = run(converted(model, target), {"x": X})
    assert mask.dtype == np.float32 and set(np.unique(mask)) == {0, 1}
    assert np.array_equal(mask != 0, y != 0)
    assert abs(kept_share(X, y, 0.25) - 0.75) < 0.05


@pytest.mark.parametrize("target", [11, 10, 9])
def test_training_goes_down(target: int) -> None:
    inputs = {"x": ("float32", X.shape), "r": ("float32", ()), "t": ("bool", ())}
    node = helper.make_node("Dropout", ["x", "r", "t"], ["y", "mask"])
    model = build(node, 12, inputs, {"y": ("float32", X.shape), "mask": ("bool", X.shape)})
    after = converted(model, target)
    for ratio, training in ((0.25, True), (0.25, False), (0.0, True)):
        y, mask = run(after, {"x": X, "r": np.array(ratio, np.float32), "t": np.array(training)})
        effective = ratio if training else 0
        assert np.array_equal(mask, y != 0)
        assert abs(kept_share(X, y, effective) - (1 - effective)) < 0.05
        assert effective or np.array_equal(y, X)


def test_training_of_a_type_that_is_not_known_is_refused() -> None:
    model = Crossing("", "Dropout", 6, 18, {"x": X}, {}, {"ratio": 0.25}, shapes="unknown").model()
    assert refusal(model, 11)
    assert converted(dropout(6, 18).model(), 18)
