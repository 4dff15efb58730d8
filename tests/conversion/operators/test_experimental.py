"""The experimental operators of onnx 1.0 to 1.4: the converted model gives what onnxruntime gives at opset 8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import (
    Array,
    assert_same,
    build,
    converted,
    operators,
    random_array,
    refusal,
    run,
    run_reference,
)
from known_opsets import known
from onnx import helper

import splitgraph
from splitgraph.conversion.opset import convert_opset
from splitgraph.model.schemas.experimental import EXPERIMENTAL, UNSPECIFIED

IMAGE = random_array((2, 3, 4, 5))
SPECIAL = np.array([-1e30, -100, -1, -0.0, 0, 1, 50, 90, 1e30, np.inf, -np.inf, np.nan], np.float32)
MATRIX = random_array((4, 6))
TANH = ["Mul", "Tanh", "Mul"]


def experiment(
    op_type: str, feeds: dict[str, Array], opset: int = 8, rank: int | None = None, **attributes: Any
) -> onnx.ModelProto:
    """A model of one experimental operator, whose inputs have the shapes of the feeds."""
    inputs = {name: (str(fed.dtype), fed.shape) for name, fed in feeds.items()}
    dtype = str(next(iter(feeds.values())).dtype) if feeds else "float32"
    node = helper.make_node(op_type, list(feeds), ["y"], "n", **attributes)
    rank = next(iter(feeds.values())).ndim if rank is None else rank
    return build(node, opset, inputs, {"y": (dtype, [None] * rank)})


def bounds(
    starts: Sequence[int], ends: Sequence[int], axes: Sequence[int] = (), dtype: str = "int64"
) -> dict[str, Array]:
    fed = {"x": MATRIX, "starts": np.array(starts, dtype), "ends": np.array(ends, dtype)}
    return {**fed, "axes": np.array(axes, dtype)} if axes else fed


# Operator, feeds, attributes, and the operators at opset 13.
CASES: list[tuple[str, dict[str, Array], dict[str, Any], list[str]]] = [
    ("Affine", {"x": IMAGE}, {"alpha": 2.0, "beta": 0.5}, ["Mul", "Add"]),
    ("Affine", {"x": IMAGE}, {}, ["Mul", "Add"]),
    ("Affine", {"x": SPECIAL}, {"alpha": -1.5}, ["Mul", "Add"]),
    ("Affine", {"x": random_array(())}, {"beta": 0.1}, ["Mul", "Add"]),
    ("Affine", {"x": IMAGE.astype(np.float16)}, {"alpha": 0.1, "beta": 0.7}, ["Cast", "Mul", "Add", "Cast"]),
    ("Scale", {"x": SPECIAL}, {"scale": 0.3}, ["Mul"]),
    ("Scale", {"x": IMAGE[:0]}, {}, ["Mul"]),
    ("ScaledTanh", {"x": SPECIAL}, {"alpha": 2.0, "beta": 0.5}, TANH),
    (
        "ScaledTanh",
        {"x": IMAGE.astype(np.float16)},
        {"alpha": 0.1, "beta": 3.0},
        ["Cast", "Mul", "Tanh", "Mul", "Cast"],
    ),
    ("ParametricSoftplus", {"x": SPECIAL}, {"alpha": 2.0, "beta": 1.0}, ["Mul", "Softplus", "Mul"]),
    ("ParametricSoftplus", {"x": SPECIAL}, {"alpha": 0.5, "beta": -2.0}, ["Mul", "Softplus", "Mul"]),
    ("ImageScaler", {"x": IMAGE}, {"scale": 0.5, "bias": [1.0, 2.0, 3.0]}, ["Mul", "Add"]),
    ("ImageScaler", {"x": IMAGE[:, :1]}, {"bias": [-103.94]}, ["Mul", "Add"]),
    ("ImageScaler", {"x": IMAGE.astype(np.float16)}, {"bias": [0.1, 0.2, 0.3]}, ["Cast", "Mul", "Add", "Cast"]),
    ("Crop", {"x": IMAGE}, {"border": [1, 0, 2, 1]}, ["Slice"]),
    ("Crop", {"x": IMAGE}, {"border": [0, 0, 0, 0]}, ["Slice"]),
    ("Crop", {"x": IMAGE}, {"border": [1, 1, 1, 1], "scale": [2, 3]}, ["Slice"]),
    ("Crop", {"x": IMAGE}, {"border": [0, 2, 0, 0], "scale": [2, 5]}, ["Slice"]),
    ("DynamicSlice", bounds([1, -4], [3, 99]), {}, ["Slice"]),
    ("DynamicSlice", bounds([1], [-1], [-1]), {}, ["Slice"]),
    ("DynamicSlice", bounds([5, 0], [1, 2], [1, 0], "int32"), {}, ["Slice"]),
    ("ThresholdedRelu", {"x": SPECIAL}, {"alpha": 0.3}, ["ThresholdedRelu"]),
    ("ThresholdedRelu", {"x": SPECIAL}, {}, ["ThresholdedRelu"]),
    ("MeanVarianceNormalization", {"x": IMAGE}, {}, ["MeanVarianceNormalization"]),
    ("MeanVarianceNormalization", {"x": IMAGE}, {"across_channels": 1}, ["MeanVarianceNormalization"]),
    ("MeanVarianceNormalization", {"x": IMAGE}, {"normalize_variance": 0}, ["ReduceMean", "Sub"]),
    (
        "MeanVarianceNormalization",
        {"x": IMAGE},
        {"normalize_variance": 0, "across_channels": 1},
        ["ReduceMean", "Sub"],
    ),
    ("MeanVarianceNormalization", {"x": IMAGE[0]}, {}, ["MeanVarianceNormalization"]),
    ("MeanVarianceNormalization", {"x": MATRIX}, {"across_channels": 1}, ["MeanVarianceNormalization"]),
    ("MeanVarianceNormalization", {"x": random_array((2, 3, 4, 2, 3))}, {}, ["MeanVarianceNormalization"]),
]


@pytest.mark.parametrize(("op_type", "feeds", "attributes", "after"), CASES)
def test_gives_what_onnxruntime_gave(
    op_type: str, feeds: dict[str, Array], attributes: dict[str, Any], after: list[str]
) -> None:
    model = experiment(op_type, feeds, **attributes)
    expected, tolerance = run(model, feeds), 1e-5 if feeds["x"].dtype == np.float32 else 2e-3
    for opset, target in ((8, 10), (1, 13), (8, known(range(14, 27))[-1])):
        result = converted(experiment(op_type, feeds, opset, **attributes), target)
        assert_same(expected, run(result, feeds), tolerance)
        assert splitgraph.infer(model).types["y"].shape == splitgraph.infer(result).types["y"].shape
        assert operators(result) == after or target != 13


@pytest.mark.parametrize(("op_type", "feeds", "attributes"), [case[:3] for case in CASES])
def test_is_kept_below_its_end(op_type: str, feeds: dict[str, Array], attributes: dict[str, Any]) -> None:
    model = experiment(op_type, feeds, 7, **attributes)
    for target in (1, 8):
        result = convert_opset(model, target)
        assert [node.SerializeToString() for node in result.model.graph.node] == [
            model.graph.node[0].SerializeToString()
        ]
        assert not result.diagnostics


VALUES = np.array([1.5, -2.0, 0.0, 4.0, 5.0, 6.0], np.float32)
GIVEN_SHAPES: list[tuple[dict[str, Array], dict[str, Any], tuple[int, ...]]] = [
    ({}, {"shape": [2, 3]}, (2, 3)),
    ({}, {"shape": [6]}, (6,)),
    ({"x": np.zeros((3, 2), np.float32)}, {}, (3, 2)),
    ({"x": np.zeros((3,), np.float16)}, {"extra_shape": [2, 1]}, (3, 2, 1)),
    ({"x": np.array([3, 2], np.float32)}, {"input_as_shape": 1}, (3, 2)),
]


@pytest.mark.parametrize(("feeds", "attributes", "shape"), GIVEN_SHAPES)
def test_given_tensor_fill(feeds: dict[str, Array], attributes: dict[str, Any], shape: tuple[int, ...]) -> None:
    """No runtime has a kernel: the elements are those of its attribute."""
    model = experiment("GivenTensorFill", feeds, rank=len(shape), values=VALUES.tolist(), **attributes)
    (found,) = run(converted(model, 13), feeds)
    assert_same([VALUES.reshape(shape).astype(feeds["x"].dtype if feeds else np.float32)], [found])


@pytest.mark.parametrize(
    ("op_type", "feeds", "attributes", "words"),
    [
        ("Crop", {"x": IMAGE}, {"border": [-1, 0, 0, 0]}, "negative border"),
        ("Crop", {"x": IMAGE}, {}, "needs the attribute 'border'"),
        ("ScaledTanh", {"x": IMAGE}, {"alpha": 2.0}, "needs the attribute 'beta'"),
        ("ParametricSoftplus", {"x": IMAGE}, {}, "needs the attribute 'alpha'"),
        ("ImageScaler", {"x": IMAGE}, {"scale": 2.0}, "needs the attribute 'bias'"),
        ("ImageScaler", {"x": IMAGE}, {"scale": 2.0, "bias": [1.0]}, "bias has 1 elements for 3 channels"),
        ("Affine", {"x": IMAGE}, {"gamma": 2.0}, "has no attribute 'gamma'"),
        ("Affine", {"x": np.ones(2, np.int32)}, {}, "int32"),
        (
            "GivenTensorFill",
            {},
            {"rank": 1, "values": [1.0, 2.0], "shape": [3]},
            "2 elements; the shape needs 3",
        ),
        ("GivenTensorFill", {}, {"rank": 1, "values": [1.0, 2.0]}, "must be an attribute"),
        ("MeanVarianceNormalization", {"x": IMAGE}, {"axes": [0, 1]}, "has no attribute 'axes'"),
        *[(op_type, {"x": IMAGE}, {}, f"{op_type} was experimental and is gone") for op_type in sorted(UNSPECIFIED)],
    ],
)
def test_refusals(op_type: str, feeds: dict[str, Array], attributes: dict[str, Any], words: str) -> None:
    assert words in refusal(experiment(op_type, feeds, **attributes), 13)


@pytest.mark.parametrize("op_type", sorted({*EXPERIMENTAL, *UNSPECIFIED} - {"ConstantFill"}))
def test_help_never_names_another_operator(op_type: str) -> None:
    """At an opset without experiments, and of the operators without a specification at any opset."""
    for opset in (8, 13):
        found = splitgraph.infer(experiment(op_type, {"x": IMAGE}, opset))
        assert not any("Did you mean" in finding.help for finding in found.diagnostics)


def test_the_operators_of_today_do_not_become_experiments() -> None:
    """onnx's checker does not know them."""
    model = experiment("ThresholdedRelu", {"x": IMAGE}, 10, alpha=0.3)
    after = converted(model, 8)
    assert "ThresholdedRelu" not in operators(after)
    assert_same(run(model, {"x": IMAGE}), run(after, {"x": IMAGE}))
    model = experiment("MeanVarianceNormalization", {"x": IMAGE}, 9, axes=[0, 2, 3])
    after = converted(model, 8)
    assert "MeanVarianceNormalization" not in operators(after)
    assert_same(run_reference(model, {"x": IMAGE}), run(after, {"x": IMAGE}), 1e-5)


def test_in_a_body_and_in_a_function() -> None:
    inner = helper.make_node("Affine", ["x"], ["y"], alpha=2.0, beta=0.5)
    function = helper.make_function("local", "F", ["x"], ["y"], [inner], [helper.make_opsetid("", 8)])
    model = experiment("F", {"x": IMAGE})
    model.graph.node[0].domain = "local"
    model.functions.append(function)
    model.opset_import.append(helper.make_opsetid("local", 1))
    assert_same([IMAGE * 2 + np.float32(0.5)], run(convert_opset(model, 13).model, {"x": IMAGE}), 1e-6)
    branch = helper.make_graph([inner], "b", [], [helper.make_tensor_value_info("y", 1, None)])
    node = helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=branch)
    model = build(node, 8, {"x": ("float32", (2, 3, 4, 5)), "c": ("bool", ())}, {"z": ("float32", (2, 3, 4, 5))})
    feeds = {"x": IMAGE, "c": np.array(True)}
    assert_same(run(model, feeds), run(convert_opset(model, 13).model, feeds), 1e-6)


def test_verdicts() -> None:
    for op_type, attributes in (
        ("ParametricSoftplus", {"alpha": 2.0, "beta": 0.5}),
        ("MeanVarianceNormalization", {"across_channels": 1}),
    ):
        result = splitgraph.upgrade(experiment(op_type, {"x": IMAGE}, **attributes), 13, verify=True)
        assert result.verification is not None and result.verification.verdict == "equal"
