"""Sizes that the model accepts, and that show differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto
from verifying import verify_models

from ..drawing import draw, maker
from ..small_models import constant, graph_of, model_of, node, parsed, split_model, value

BOOL = TensorProto.BOOL


def identity(dims: Any, dtype: int = TensorProto.FLOAT) -> onnx.ModelProto:
    return model_of([node("Identity", ["x"], ["y"])], [value("x", dims, dtype)], [value("y", None, dtype)])


OBLIGED = [
    # model, what must hold of the shape of x
    (split_model(13, outputs="abc"), lambda n: n % 3 == 0),
    (split_model(13, lengths=[2, 4]), lambda n: n == 6),
    (split_model(11, lengths=[2, 4]), lambda n: n == 6),
    (split_model(18, outputs="ab", num_outputs=2), lambda n: n >= 0),
    (split_model(13, outputs="ab", dims=("batch-size", 4)), lambda n: n % 2 == 0),
    (split_model(13, outputs="ab", dims=(None, 4)), lambda n: n % 2 == 0),
]


@pytest.mark.parametrize(("model", "holds"), OBLIGED)
def test_sizes_meet_the_obligations(model: onnx.ModelProto, holds: Any) -> None:
    sizes = [case["x"].shape[0] for case in draw(model)]
    assert all(holds(size) and size > 1 for size in sizes)
    assert len(set(sizes)) == 3 or set(sizes) == {6}


def upsampled(*later: onnx.NodeProto, **options: Any) -> onnx.ModelProto:
    """x beside what it is when halved and doubled again, and later nodes that read "half"."""
    nodes = [
        node("MaxPool", ["x"], ["half"], kernel_shape=[2, 2], strides=[2, 2], ceil_mode=1),
        node("Resize", ["half", "", "scales"], ["doubled"]),
        node("Concat", ["x", "doubled"], ["y"], axis=1),
        *later,
    ]
    scales = constant("scales", [1, 1, 2, 2], np.float32)
    wide = constant("wide", np.ones((1, 1, 5, 1)), np.float32)
    outputs = [later[-1].output[0]] if later else []
    model = model_of(nodes, [value("x", ("b", 1, "h", "w"))], ["y", *outputs], [scales, wide])
    model.graph.value_info.extend(options.get("declared", ()))
    return model


DEMANDED = [
    # model, what must hold of the shape of x
    (upsampled(), lambda b, c, h, w: h % 2 == w % 2 == 0),
    (upsampled(node("Concat", ["half", "wide"], ["z"], axis=3)), lambda b, c, h, w: (b, h) == (1, 10) and w % 2 == 0),
    (
        upsampled(
            node("Concat", ["half", "wide"], ["z"], axis=3), declared=[value("half", ("b", 1, "rows", "columns"))]
        ),
        lambda b, c, h, w: (b, h) == (1, 10) and w % 2 == 0,
    ),
]


@pytest.mark.parametrize(("model", "holds"), DEMANDED)
def test_sizes_meet_what_other_nodes_than_splits_demand(model: onnx.ModelProto, holds: Any) -> None:
    assert all(holds(*case["x"].shape) for case in draw(model))


def test_a_binding_against_a_demand_of_no_split_is_tried() -> None:
    """Inference may be stricter than an engine, which has the last word."""
    assert [case["x"].shape[2] for case in draw(upsampled(), bind={"h": 3})] == [3, 3, 3]


def test_later_attempts_meet_what_splits_demand_alone() -> None:
    made = maker(upsampled())
    shapes = [made.draw(0, attempt)[0]["x"].shape for attempt in range(6)]
    assert [shape[2] % 2 == shape[3] % 2 == 0 for shape in shapes] == [True] * 5 + [False]


def test_large_images_come_in_small_batches() -> None:
    made = maker(identity(("b", 3, "h", "w")))
    shapes = [made.draw(0, attempt)[0]["x"].shape for attempt in range(1, 5)]
    assert max(min(shape[2:]) for shape in shapes) >= 224
    assert all(np.prod(shape) * 4 <= 8 << 20 for shape in shapes)


def test_dimensions_that_sum() -> None:
    nodes = [
        node("Shape", ["p"], ["ps"], end=1),
        node("Shape", ["q"], ["qs"], end=1),
        node("Concat", ["ps", "qs"], ["lengths"], axis=0),
        node("Split", ["x", "lengths"], ["a", "b"]),
    ]
    inputs = [value("x", ("N", 4)), value("p", ("A", 3)), value("q", ("B", 2))]
    drawn = draw(model_of(nodes, inputs, ["a", "b"]))
    totals = [(len(case["x"]), len(case["p"]), len(case["q"])) for case in drawn]
    assert all(n == a + b and min(a, b) > 1 for n, a, b in totals)
    assert len(set(totals)) == 3


def test_shared_and_unknown_dimensions_and_ranks() -> None:
    model = model_of(
        [node("Add", ["x", "y"], ["s"]), node("Relu", ["z"], ["r"])],
        [value("x", ("N", None)), value("y", ("N", 1)), value("z", None)],
        ["s", "r"],
    )
    for case in draw(model):
        assert case["x"].shape[0] == case["y"].shape[0]
        assert case["x"].shape[0] != case["x"].shape[1]
        assert case["z"].ndim > 0


def test_expressions_over_symbols() -> None:
    model = identity(("past_len + 1", "past_len"))
    for case in draw(model):
        assert case["x"].shape[0] == case["x"].shape[1] + 1 > 2


def split_branch(lengths: list[int], name: str) -> onnx.GraphProto:
    split = node("Split", ["x", f"{name}l"], [f"{name}a", f"{name}b"])
    return graph_of([split], [], [f"{name}a"], [constant(f"{name}l", lengths)], name)


def concat_branch(lengths: list[int], name: str) -> onnx.GraphProto:
    beside = constant(f"{name}b", np.ones((sum(lengths), 1)), np.float32)
    return graph_of([node("Concat", ["x", f"{name}b"], [f"{name}a"], axis=1)], [], [f"{name}a"], [beside], name)


@pytest.mark.parametrize("branch", [split_branch, concat_branch])
def test_what_only_a_branch_demands_may_be_left_unmet(branch: Any) -> None:
    choice = node("If", ["c"], ["y"], then_branch=branch([2, 3], "t"), else_branch=branch([2, 4], "e"))
    halves = node("Concat", ["x", "beside"], ["z"], axis=1)
    inputs = [value("c", (), BOOL), value("x")]
    model = model_of([choice, halves], inputs, ["y", "z"], [constant("beside", np.ones((4, 1)), np.float32)])
    assert all(len(case["x"]) == 4 for case in draw(model))


Make = Callable[..., onnx.ModelProto]


def backbone(last: str = "pads = [1, 1, 1, 1]", corner: float = 1.0) -> onnx.ModelProto:
    """Five convolutions of stride 2 and one more."""
    rng = np.random.default_rng(0)
    body, name = "", "x"
    for index in range(5):
        body += f"c{index} = Conv<strides = [2, 2], pads = [1, 1, 1, 1]>({name}, w) r{index} = Relu(c{index}) "
        name = f"r{index}"
    weights = rng.standard_normal((3, 3, 3, 3)).astype(np.float32)
    final = rng.standard_normal((3, 3, 3, 3)).astype(np.float32)
    final[:, :, 0, 0] *= corner
    body += f"y = Conv<{last}>({name}, f)"
    return parsed("float[N, 3, H, W] x => float[N, 3, A, B] y", body, w=abs(weights), f=final)


def spectrum(step: int = 16) -> onnx.ModelProto:
    body = "y = STFT<onesided = 1>(x, step, window, length)"
    window = np.hanning(32).astype(np.float32)
    signature = "float[B, L, 1] x => float[B, F, 17, 2] y"
    return parsed(signature, body, step=np.array(step), window=window, length=np.array(32))


def pool(stride: int = 4) -> onnx.ModelProto:
    body = f"y = MaxPool<kernel_shape = [8], strides = [{stride}]>(x)"
    return parsed("float[N, 3, L] x => float[N, 3, K] y", body)


def cached(axis: int = -1) -> onnx.ModelProto:
    """Attention to what was before, with a mask as long as all of it."""
    rng = np.random.default_rng(0)
    body = f"""
        e = Gather(table, ids)
        n = LayerNormalization<axis = {axis}>(e, one)
        k = Concat<axis = 1>(past, n)
        t = Transpose<perm = [0, 2, 1]>(k)
        s = MatMul(n, t)
        m = Unsqueeze(mask, at)
        a = Add(s, m)
        p = Softmax<axis = -1>(a)
        y = MatMul(p, k)
    """
    table = rng.standard_normal((20, 8)).astype(np.float32)
    signature = "int64[B, S] ids, float[B, P, 8] past, float[B, L] mask => float[B, S, 8] y"
    return parsed(signature, body, table=table, one=np.ones(8, np.float32), at=np.array([1]))


def masked(factor: float = 1.0, *, name: str = "mask", kind: str = "int64") -> onnx.ModelProto:
    """Attention in which a mask takes away what does not count, as exporters write it."""
    body = f"""
        q = MatMul(x, wq)
        t = Transpose<perm = [0, 2, 1]>(x)
        s = MatMul(q, t)
        c = Cast<to = 1>({name})
        u = Unsqueeze(c, at)
        i = Sub(one, u)
        m = Mul(i, least)
        a = Add(s, m)
        p = Softmax<axis = -1>(a)
        y = MatMul(p, x)
    """
    weights = np.random.default_rng(0).standard_normal((8, 8)).astype(np.float32)
    weights[3, 5] *= factor
    one, least = np.array(1, np.float32), np.array(-1e4, np.float32)
    signature = f"float[B, S, 8] x, {kind}[B, S] {name} => float[B, S, 8] y"
    return parsed(signature, body, wq=weights, one=one, least=least, at=np.array([1]))


def regions(ratio: int = 2) -> onnx.ModelProto:
    body = f"y = RoiAlign<output_height = 2, output_width = 3, sampling_ratio = {ratio}>(x, r, b)"
    return parsed("float[1, 2, 6, 6] x, float[R, 4] r, int64[R] b => float[R, 2, 2, 3] y", body)


def clipped(high: float = 6) -> onnx.ModelProto:
    low, most = np.array(0, np.float32), np.array(high, np.float32)
    return parsed("float[N, 8] x => float[N, 8] y", "y = Clip(x, low, high)", low=low, high=most)


def quantized(zero: int = 128, scale: float = 0.03) -> onnx.ModelProto:
    body = "q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z)"
    scales, zeros = np.array(scale, np.float32), np.array(zero, np.uint8)
    return parsed("float[N, 8] x => float[N, 8] y", body, s=scales, z=zeros)


TOLD_APART: list[tuple[Make, dict[str, Any], dict[str, Any]]] = [
    (backbone, {}, {"corner": 100.0}),
    (backbone, {}, {"last": "pads = [1, 1, 1, 1], strides = [2, 2]"}),
    (backbone, {}, {"last": "pads = [2, 2, 2, 2], dilations = [2, 2]"}),
    (spectrum, {}, {"step": 15}),
    (pool, {}, {"stride": 5}),
    (cached, {}, {"axis": -2}),
    (regions, {}, {"ratio": 1}),
    (masked, {}, {"factor": 2.0}),
    (masked, {"name": "padding"}, {"factor": 2.0}),
    (masked, {"kind": "int32"}, {"factor": 2.0}),
    (masked, {"kind": "float"}, {"factor": 2.0}),
    (masked, {"kind": "bool"}, {"factor": 2.0}),
    (clipped, {}, {"high": 6.06}),
    (quantized, {}, {"zero": 127}),
    (quantized, {"scale": 0.1}, {"zero": 127}),
    (quantized, {"scale": 1.0}, {"zero": 127}),
    (clipped, {"high": 100}, {"high": 101}),
    (clipped, {"high": 3e38}, {"high": 6}),
]


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(("make", "options", "change"), TOLD_APART)
@pytest.mark.sample(6)
def test_a_difference_shows(make: Make, options: dict[str, Any], change: dict[str, Any]) -> None:
    model = make(**options)
    found = verify_models(model, make(**options))
    assert (found.verdict, found.cases, found.diagnostics) == ("equal", 3, ())
    assert verify_models(model, make(**{**options, **change})).verdict == "different"


def of_one_element() -> onnx.ModelProto:
    """Only a vector of one element has the shape that is computed from its elements."""
    body = """
        zero = Sub(x, x)
        sum = ReduceSum(zero)
        one = Cos(sum)
        shape = Cast<to = 7>(one)
        y = Reshape(x, shape)
    """
    return parsed("float[N] x => float[K] y", body)


NOTED = [
    (clipped(), {}, []),
    (of_one_element(), {"bind": {"N": 1}}, []),
    (of_one_element(), {"inputs": {"x": np.ones(1, np.float32)}}, []),
    (of_one_element(), {}, ["SG505"]),
]


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize(("model", "options", "codes"), NOTED)
def test_sizes_of_1_are_noted(model: onnx.ModelProto, options: dict[str, Any], codes: list[str]) -> None:
    found = verify_models(model, model, **options)
    assert (found.verdict, [each.code for each in found.diagnostics]) == ("equal", codes)
    assert all((each.severity, "--bind" in each.help) == ("info", True) for each in found.diagnostics)
