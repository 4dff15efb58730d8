"""Integers that fit what a node takes them for: indices, sizes, lengths."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from splitgraph.verification.inputs.operator_roles import compose

from ..drawing import draw
from ..small_models import constant, graph_of, model_of, node, value

BOOL = TensorProto.BOOL


INT64, INT32 = TensorProto.INT64, TensorProto.INT32


ROLES = [
    (node("GatherND", ["x", "i"], ["y"]), ("K", 2), lambda i, x: ((i >= 0) & (i < x.shape)).all()),
    (node("GatherND", ["x", "i"], ["y"], batch_dims=1), ("N", 1), lambda i, x: ((i >= 0) & (i < x.shape[1])).all()),
    (
        node("ScatterND", ["x", "i", "x"], ["y"]),
        (6, 1),
        lambda i, x: ((i >= 0) & (i < x.shape[0])).all() and len(set(i.ravel().tolist())) == 6,
    ),
    (node("Gather", ["x", "i"], ["y"], axis=1), ("K",), lambda i, x: ((i >= 0) & (i < x.shape[1])).all()),
    (node("Reshape", ["x", "i"], ["y"]), (3,), lambda i, x: i.tolist() == [1, 1, -1]),
    (node("Reshape", ["x", "i"], ["y"]), (2,), lambda i, x: tuple(i) == x.shape),
    (node("Expand", ["x", "i"], ["y"]), (3,), lambda i, x: np.broadcast_to(x, i).ndim == 3),
    (node("Tile", ["x", "i"], ["y"]), (2,), lambda i, x: (i >= 1).all()),
    (node("Unsqueeze", ["x", "i"], ["y"]), (1,), lambda i, x: 0 <= i[0] <= 2),
    (node("ReduceSum", ["x", "i"], ["y"]), (1,), lambda i, x: 0 <= i[0] < 2),
    (node("TopK", ["x", "i"], ["y", "z"]), (1,), lambda i, x: 1 <= i[0] <= x.shape[1]),
    (node("CumSum", ["x", "i"], ["y"]), (), lambda i, x: 0 <= i < 2),
    (node("Pad", ["x", "i"], ["y"]), (4,), lambda i, x: ((i >= 0) & (i <= 2)).all()),
]


@pytest.mark.parametrize(("consumer", "dims", "fits"), ROLES)
def test_small_integers_fit_what_they_are_for(consumer: onnx.NodeProto, dims: Any, fits: Any) -> None:
    for case in draw(model_of([consumer], [value("x"), value("i", dims, INT64)], list(consumer.output))):
        assert fits(case["i"], case["x"])


# What reads i, the shape of x, how the result is declared, and what i is then.
DECLARED = [
    (node("Expand", ["x", "i"], ["y"]), (1, 3), (4, 3), [4, 3]),
    (node("Reshape", ["x", "i"], ["y"]), (4, 6), (3, 8), [3, 8]),
    (node("Reshape", ["x", "i"], ["y"]), (4, 6), (5, 8), [4, 6]),  # impossible
    (node("Tile", ["x", "i"], ["y"]), (4, 6), (8, 18), [2, 3]),
    (node("ConstantOfShape", ["i"], ["y"]), (1,), (4, 5), [4, 5]),
    (node("TopK", ["x", "i"], ["y", "z"], axis=0), (9, 2), (4, 2), [4]),
    (node("Resize", ["x", "", "", "i"], ["y"]), (1, 2, 4, 4), (1, 2, 8, 9), [1, 2, 8, 9]),
    (node("Resize", ["x", "", "", "i"], ["y"], axes=[3, 2]), (1, 2, 4, 4), (1, 2, 8, 9), [9, 8]),
]


@pytest.mark.parametrize(("consumer", "dims", "declared", "wanted"), DECLARED)
def test_a_result_has_the_size_that_is_declared(
    consumer: onnx.NodeProto, dims: Any, declared: Any, wanted: Any
) -> None:
    outputs = [value(consumer.output[0], declared), *consumer.output[1:]]
    inputs = [value("x", dims), value("i", (len(wanted),), INT64)]
    for case in draw(model_of([consumer], inputs, outputs)):
        assert case["i"].tolist() == wanted


IMAGES = [
    ("sizes", node("Resize", ["x", "", "", "i"], ["y"], mode="linear"), 18, INT64, [2, 3]),
    ("factors", node("Resize", ["x", "", "i"], ["y"], mode="linear"), 18, TensorProto.FLOAT, [1, 1]),
    ("factors of an Upsample", node("Upsample", ["x", "i"], ["y"], mode="linear"), 9, TensorProto.FLOAT, [1, 1]),
]


@pytest.mark.parametrize(("name", "consumer", "opset", "dtype", "kept"), IMAGES, ids=[each[0] for each in IMAGES])
def test_batch_and_channels_are_not_resized(
    name: str, consumer: onnx.NodeProto, opset: int, dtype: int, kept: Any
) -> None:
    for case in draw(model_of([consumer], [value("x", (2, 3, 4, 4)), value("i", (4,), dtype)], ["y"], opset=opset)):
        assert case["i"][:2].tolist() == kept and min(case["i"][2:]) >= 1


OF_A_BATCH = [
    # what reads b, its other inputs, the shape of b, how far its numbers go
    (node("RoiAlign", ["x", "r", "b"], ["y"]), [value("r", ("R", 4))], ("R",), (0, 0)),
    (node("ReverseSequence", ["x", "b"], ["y"], time_axis=1, batch_axis=0), [], (1,), (1, 2)),
    (node("ReverseSequence", ["x", "b"], ["y"]), [], (2,), (1, 1)),
]


@pytest.mark.parametrize(("consumer", "others", "dims", "bounds"), OF_A_BATCH)
def test_indices_and_lengths_of_a_batch(consumer: onnx.NodeProto, others: Any, dims: Any, bounds: Any) -> None:
    inputs = [value("x", (1, 2, 5, 5)), *others, value("b", dims, INT64)]
    for case in draw(model_of([consumer], inputs, ["y"])):
        assert bounds[0] <= case["b"].min() <= case["b"].max() <= bounds[1]


@pytest.mark.parametrize(("axis", "opset", "least"), [(-1, 9, 0), (0, 10, 0), (-1, 11, None)])
def test_indices_of_one_hot(axis: int, opset: int, least: int | None) -> None:
    """Below opset 11 none is negative, which runtimes do not take as the specification has it; one may be too large."""
    hot = node("OneHot", ["b", "depth", "values"], ["y"], axis=axis)
    held = [constant("depth", 5), constant("values", [0.0, 1.0], np.float32)]
    cases = draw(model_of([hot], [value("b", (40,), INT64)], ["y"], held, opset=opset))
    drawn = np.concatenate([case["b"] for case in cases])
    if least is None:
        assert drawn.min() < 0
    else:
        assert set(drawn.tolist()) == set(range(6))


def test_sizes_of_an_affine_grid() -> None:
    """As many images as matrices, of more than one row and column: of one, runtimes differ under align_corners."""
    grid = node("AffineGrid", ["x", "b"], ["y"], align_corners=1)
    for case in draw(model_of([grid], [value("x", ("N", 3, 4)), value("b", (5,), INT64)], ["y"], opset=20)):
        assert case["b"][0] == len(case["x"])
        assert case["b"][1:].min() > 1


@pytest.mark.parametrize(("layout", "dims"), [(0, (7, 3, 4)), (1, (3, 7, 4))])
def test_lengths_of_recurrent_layers(layout: int, dims: Any) -> None:
    weights = [constant(name, np.ones(shape), np.float32) for name, shape in (("w", (1, 5, 4)), ("r", (1, 5, 5)))]
    layer = node("RNN", ["x", "w", "r", "", "b"], ["y"], hidden_size=5, layout=layout)
    for case in draw(model_of([layer], [value("x", dims), value("b", (3,), INT32)], ["y"], weights)):
        assert 1 <= case["b"].min() <= case["b"].max() <= 7


def test_regions_of_images() -> None:
    pool = node("MaxRoiPool", ["x", "b"], ["y"], pooled_shape=[2, 2])
    for case in draw(model_of([pool], [value("x", ("N", 1, 6, 9)), value("b", ("R", 5))], ["y"])):
        image, *corners = case["b"].T
        assert 0 <= image.min() <= image.max() < len(case["x"])
        assert (corners[0] <= corners[2]).all()
        assert (corners[1] <= corners[3]).all()
        assert (corners[3].max(), corners[2].max()) < (6, 9)


def lengths_model(dims: Any, outputs: str = "ab", opset: int = 13, through: str = "") -> onnx.ModelProto:
    nodes = [node(through, ["lengths"], ["passed"])] if through else []
    nodes.append(node("Split", ["x", "passed" if through else "lengths"], list(outputs), axis=1))
    return model_of(nodes, [value("x", ("N", "T")), value("lengths", dims, INT64)], list(outputs), opset=opset)


@pytest.mark.parametrize("dims", [(2,), ("K",), (None,), None])
@pytest.mark.parametrize("through", ["", "Identity"])
def test_lengths_sum_to_the_dimension(dims: Any, through: str) -> None:
    drawn = draw(lengths_model(dims, through=through))
    for case in drawn:
        assert case["lengths"].shape == (2,)
        assert case["lengths"].sum() == case["x"].shape[1]
        assert case["lengths"].min() > 0


def test_split_1_takes_its_lengths_as_numbers_of_the_datas_type() -> None:
    split = node("Split", ["x", "lengths"], ["a", "b"], axis=1)
    model = model_of([split], [value("x"), value("lengths", (2,))], ["a", "b"], opset=1)
    for case in draw(model):
        assert (case["lengths"].dtype, case["lengths"].sum()) == (np.float32, 4)


@pytest.mark.parametrize(("dims", "shape"), [((), ()), (None, ()), ((3,), (3,))])
def test_lengths_of_a_sequence(dims: Any, shape: tuple[int, ...]) -> None:
    model = model_of(
        [node("SplitToSequence", ["x", "split"], ["s"], axis=0)],
        [value("x", ("N", 4)), value("split", dims, INT32)],
        [helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)],
    )
    for case in draw(model):
        assert (case["split"].shape, case["split"].dtype) == (shape, np.int32)
        assert case["split"].sum() == len(case["x"]) if shape else 1 <= case["split"] <= len(case["x"])


def in_a_loop() -> onnx.ModelProto:
    body = graph_of(
        [node("Identity", ["alive"], ["alive_out"]), node("Split", ["x", "inner"], ["a", "b"], axis=1)],
        [value("i", (), INT64), value("alive", (), BOOL), value("inner", (2,), INT64)],
        [value("alive_out", (), BOOL), value("inner_out", (2,), INT64), value("a"), value("b")],
    )
    body.node.append(node("Identity", ["inner"], ["inner_out"]))
    loop = node("Loop", ["m", "", "lengths"], ["l", "as", "bs"], body=body)
    inputs = [value("m", (), INT64), value("x", ("N", "T")), value("lengths", (2,), INT64)]
    return model_of([loop], inputs, ["as", "bs"])


def in_a_function() -> onnx.ModelProto:
    split = node("Split", ["data", "sizes"], ["a", "b"], axis=1)
    function = helper.make_function(
        "local", "Cut", ["sizes", "data"], ["a", "b"], [split], [helper.make_opsetid("", 13)]
    )
    call = helper.make_node("Cut", ["lengths", "x"], ["a", "b"], domain="local")
    inputs = [value("x", ("N", "T")), value("lengths", (2,), INT64)]
    return model_of([call], inputs, ["a", "b"], functions=[function], domains={"local": 1})


@pytest.mark.parametrize("model", [in_a_loop(), in_a_function()])
def test_lengths_reach_splits_in_subgraphs_and_functions(model: onnx.ModelProto) -> None:
    for case in draw(model):
        assert case["lengths"].sum() == case["x"].shape[1]
        assert case.get("m", 2) in (2, 3, 4)


@pytest.mark.parametrize(("total", "parts"), [(6, 2), (6, 6), (2, 4), (0, 3), (1, 1)])
def test_a_composition_sums(total: int, parts: int) -> None:
    rng = np.random.default_rng(0)
    for _ in range(20):
        lengths = compose(total, parts, rng)
        assert (len(lengths), sum(lengths)) == (parts, total)
        assert min(lengths) >= (1 if total >= parts else 0)
