"""Layers of transformers as onnxruntime's optimizer leaves them, with symbolic sizes, in operators of ai.onnx."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import onnx
import pytest
from conversion.operators.standard.one_node import Array, run
from onnx import TensorProto, helper, numpy_helper

import splitgraph

_RNG = np.random.default_rng(8)
_WIDTH, _HEADS = 16, 2
_LOWEST = float(np.finfo(np.float32).min)


def _data(*shape: int) -> Array:
    return (_RNG.standard_normal(shape) * 0.3).astype(np.float32)


def _ones(*shape: int) -> Array:
    return np.ones(shape, np.int32)


def _fused(operator: str, inputs: str, outputs: Sequence[str], **attributes: object) -> onnx.NodeProto:
    """A node of com.microsoft. A dash stands for an input that is left out."""
    names = ["" if name == "-" else name for name in inputs.split()]
    return helper.make_node(operator, names, outputs, domain="com.microsoft", **attributes)


def _model(
    nodes: Sequence[onnx.NodeProto],
    inputs: dict[str, tuple[int, Sequence[int | str]]],
    outputs: Sequence[str],
    constants: dict[str, Array],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "layer",
        [helper.make_tensor_value_info(name, *known) for name, known in inputs.items()],
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in outputs],
        [numpy_helper.from_array(value, name) for name, value in constants.items()],
    )
    imports = [helper.make_opsetid("", 14), helper.make_opsetid("com.microsoft", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def _encoder() -> onnx.ModelProto:
    """Embeddings, attention over what is no padding, and a feed-forward layer."""
    nodes = [
        _fused("EmbedLayerNormalization", "ids segments words places kinds scale shift mask", ["embedded", ""]),
        _fused("Attention", "embedded qkv qkv_bias mask", ["seen"], num_heads=_HEADS, mask_filter_value=_LOWEST),
        helper.make_node("MatMul", ["seen", "out"], ["projected"]),
        _fused("SkipLayerNormalization", "projected embedded scale shift bias", ["first"]),
        _fused("FusedMatMul", "first wide", ["widened"]),
        _fused("BiasGelu", "widened wide_bias", ["active"]),
        helper.make_node("MatMul", ["active", "narrow"], ["narrowed"]),
        _fused("SkipLayerNormalization", "narrowed first scale shift bias", ["y"]),
    ]
    constants = {
        "words": _data(20, _WIDTH),
        "places": _data(12, _WIDTH),
        "kinds": _data(2, _WIDTH),
        "qkv": _data(_WIDTH, 3 * _WIDTH),
        "qkv_bias": _data(3 * _WIDTH),
        "out": _data(_WIDTH, _WIDTH),
        "wide": _data(_WIDTH, 32),
        "wide_bias": _data(32),
        "narrow": _data(32, _WIDTH),
        **{name: _data(_WIDTH) for name in ("scale", "shift", "bias")},
    }
    inputs = {name: (TensorProto.INT32, ["batch", "length"]) for name in ("ids", "segments", "mask")}
    return _model(nodes, inputs, ["y"], constants)


def _decoder() -> onnx.ModelProto:
    """Attention over the past and what came before."""
    nodes = [
        _fused("Attention", "x qkv qkv_bias mask past", ["seen", "present"], num_heads=_HEADS, unidirectional=1),
        _fused("SkipLayerNormalization", "seen x scale shift", ["y", "", "", "sum"]),
    ]
    constants = {"qkv": _data(_WIDTH, 3 * _WIDTH), "qkv_bias": _data(3 * _WIDTH)}
    constants |= {name: _data(_WIDTH) for name in ("scale", "shift")}
    inputs: dict[str, tuple[int, Sequence[int | str]]] = {
        "x": (TensorProto.FLOAT, ["batch", "length", _WIDTH]),
        "mask": (TensorProto.INT32, ["batch", "total"]),
        "past": (TensorProto.FLOAT, [2, "batch", _HEADS, "before", _WIDTH // _HEADS]),
    }
    return _model(nodes, inputs, ["y", "sum", "present"], constants)


def _grouped_decoder() -> onnx.ModelProto:
    """Attention with a cache, whose lengths come from the mask, as exporters write it."""
    nodes = [
        helper.make_node("SimplifiedLayerNormalization", ["x", "scale"], ["normal"], axis=-1, epsilon=1e-6),
        helper.make_node("MatMul", ["normal", "qkv"], ["packed"]),
        helper.make_node("ReduceSum", ["mask", "last"], ["counts"], keepdims=1),
        helper.make_node("Sub", ["counts", "one"], ["places"]),
        helper.make_node("Shape", ["mask"], ["sizes"]),
        helper.make_node("Gather", ["sizes", "last"], ["size"]),
        helper.make_node("Cast", ["size"], ["total"], to=TensorProto.INT32),
        _fused(
            *("GroupQueryAttention", "packed - - keys values places total cos sin", ["seen", "k", "v"]),
            num_heads=2,
            kv_num_heads=1,
            do_rotary=1,
        ),
        helper.make_node("MatMul", ["seen", "out"], ["projected"]),
        _fused("SkipSimplifiedLayerNormalization", "projected x scale", ["y", "", "", "sum"]),
    ]
    constants = {
        "qkv": _data(_WIDTH, 64),
        "out": _data(32, _WIDTH),
        "cos": _data(32, 8),
        "sin": _data(32, 8),
        "scale": _data(_WIDTH),
        "last": np.array([1]),
        "one": np.array(1, np.int32),
    }
    inputs: dict[str, tuple[int, Sequence[int | str]]] = {
        "x": (TensorProto.FLOAT, ["batch", "length", _WIDTH]),
        "mask": (TensorProto.INT32, ["batch", "total_length"]),
        "keys": (TensorProto.FLOAT, ["batch", 1, "before", 16]),
        "values": (TensorProto.FLOAT, ["batch", 1, "before", 16]),
    }
    return _model(nodes, inputs, ["y", "sum", "k", "v"], constants)


def _sentences(batch: int, length: int) -> dict[str, Array]:
    mask = _ones(batch, length)
    mask[0, length // 2 + 1 :] = 0
    kinds = _RNG.integers(0, 2, (batch, length)).astype(np.int32)
    return {"ids": _RNG.integers(0, 20, (batch, length)).astype(np.int32), "segments": kinds, "mask": mask}


def _tokens(batch: int, length: int, before: int) -> dict[str, Array]:
    mask = _ones(batch, before + length)
    mask[0, : before // 2] = 0
    past = _data(2, batch, _HEADS, before, _WIDTH // _HEADS)
    return {"x": _data(batch, length, _WIDTH), "mask": mask, "past": past}


def _cached(batch: int, length: int, before: int) -> dict[str, Array]:
    mask = _ones(batch, before + length)
    if batch > 1 and not before:
        mask[0, length // 2 + 1 :] = 0
    caches = {name: _data(batch, 1, before, 16) for name in ("keys", "values")}
    return {"x": _data(batch, length, _WIDTH), "mask": mask, **caches}


@pytest.mark.parametrize("opset", [24, 17, 13])
@pytest.mark.parametrize(
    ("make", "feeds"),
    [
        (_encoder, [_sentences(2, 5), _sentences(1, 1), _sentences(3, 8)]),
        (_decoder, [_tokens(2, 3, 4), _tokens(1, 1, 6), _tokens(3, 5, 1)]),
        (_grouped_decoder, [_cached(2, 4, 0), _cached(1, 1, 4), _cached(2, 1, 6), _cached(1, 3, 5)]),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_layers(make: Callable[[], onnx.ModelProto], feeds: Sequence[dict[str, Array]], opset: int) -> None:
    model = make()
    result = splitgraph.convert(model, standard=True, opset=opset).model
    assert {node.domain for node in result.graph.node} == {""}
    for sizes in feeds:
        for one, other in zip(run(model, sizes), run(result, sizes), strict=True):
            np.testing.assert_allclose(other, one, rtol=2e-5, atol=2e-5)


def test_a_layer_is_verified() -> None:
    rewrite = splitgraph.convert(_encoder(), standard=True, opset=17, verify=True)
    assert rewrite.verification is not None
    assert rewrite.verification.verdict == "equal"
