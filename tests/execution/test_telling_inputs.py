"""Inputs that tell models apart whose difference small or ordinary inputs hide, and the note where there are none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import pytest

from splitgraph.execution import verify_models

from .small_models import parsed

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
