"""Kernels of operators that onnxruntime writes, for the arbiter: onnx's evaluator knows none of them.

Each is the formula of its kernel in onnxruntime, computed in the type of the data, so that it says in float64 what
rounding is. They never read the standard forms of `conversion`: one wrong formula must not be on both sides.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx.reference.op_run import OpRun

from splitgraph.verification.values import Array, UnsupportedError

_SQRT_2 = np.sqrt(2.0)


class _Foreign(OpRun):
    """A kernel of an operator without a schema of onnx."""

    def given(self, name: str, default: Any) -> Any:
        """Return an attribute of the node."""
        return getattr(self, name, default)

    def _run(self, *inputs: Any, **_: Any) -> tuple[Any, ...]:
        with np.errstate(all="ignore"):
            results = self.compute(*inputs)
        return tuple(np.asarray(result) for result in results)[: len(self.onnx_node.output)]

    def compute(self, *inputs: Any) -> tuple[Array, ...]:
        """Return all outputs."""
        raise NotImplementedError


def _erf(data: Array) -> Array:
    return np.asarray(np.vectorize(math.erf, otypes=[np.float64])(data), data.dtype) if data.size else data


def _sigmoid(data: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-data)), data.dtype)


def _gelu(data: Array) -> Array:
    return np.asarray(data * (1 + _erf(data / data.dtype.type(_SQRT_2))) / 2, data.dtype)


class _Gelu(_Foreign):
    def compute(self, data: Array, bias: Array | None = None) -> tuple[Array, ...]:
        return (_gelu(data if bias is None else data + bias),)


class _FastGelu(_Foreign):
    def compute(self, data: Array, bias: Array | None = None) -> tuple[Array, ...]:
        moved = data if bias is None else data + bias
        inner = moved * (0.7978845608028654 + 0.035677408136300125 * moved * moved)
        return ((moved * (1 + np.tanh(inner)) / 2).astype(data.dtype),)


class _QuickGelu(_Foreign):
    def compute(self, data: Array) -> tuple[Array, ...]:
        return ((data * _sigmoid(data * data.dtype.type(self.given("alpha", 1.702)))).astype(data.dtype),)


def _normalized(data: Array, axes: tuple[int, ...], epsilon: float, *, centred: bool) -> tuple[Array, Array, Array]:
    """Return data divided by its deviation along axes, the mean, and the inverse of the deviation."""
    mean = data.mean(axes, keepdims=True) if centred else np.zeros_like(data.sum(axes, keepdims=True))
    inverse = 1 / np.sqrt(((data - mean) ** 2).mean(axes, keepdims=True) + data.dtype.type(epsilon))
    return (data - mean) * inverse, mean, inverse


def _axes_from(axis: int, rank: int) -> tuple[int, ...]:
    return tuple(range(axis % rank, rank))


class _SkipNormalization(_Foreign):
    centred: bool

    def compute(self, data: Array, skip: Array, gamma: Array, *others: Array | None) -> tuple[Array, ...]:
        beta, bias = (*others, None, None)[:2] if self.centred else (None, (*others, None)[0])
        total = data + skip if bias is None else data + skip + bias
        result, mean, inverse = _normalized(total, (-1,), self.given("epsilon", 1e-12), centred=self.centred)
        scaled = result * gamma if beta is None else result * gamma + beta
        return scaled.astype(data.dtype), mean, inverse, total


class _SkipLayerNormalization(_SkipNormalization):
    centred = True


class _SkipSimplifiedLayerNormalization(_SkipNormalization):
    centred = False


class _LayerNormalization(_Foreign):
    """LayerNormalization below opset 17, as onnx took it over."""

    def compute(self, data: Array, scale: Array, bias: Array | None = None) -> tuple[Array, ...]:
        axes = _axes_from(self.given("axis", -1), data.ndim)
        result, mean, inverse = _normalized(data, axes, self.given("epsilon", 1e-5), centred=True)
        scaled = result * scale if bias is None else result * scale + bias
        return scaled.astype(data.dtype), mean, inverse


class _SimplifiedLayerNormalization(_Foreign):
    def compute(self, data: Array, scale: Array) -> tuple[Array, ...]:
        axes = _axes_from(self.given("axis", -1), data.ndim)
        result, _, inverse = _normalized(data, axes, self.given("epsilon", 1e-5), centred=False)
        return (result * scale).astype(data.dtype), inverse


class _FusedMatMul(_Foreign):
    def compute(self, left: Array, right: Array) -> tuple[Array, ...]:
        one = _turned(left, self.given("transA", 0), self.given("transBatchA", 0))
        other = _turned(right, self.given("transB", 0), self.given("transBatchB", 0))
        return ((np.matmul(one, other) * left.dtype.type(self.given("alpha", 1.0))).astype(left.dtype),)


def _turned(data: Array, rows: int, batch: int) -> Array:
    """Return an operand with its first dimension behind the batch, and then its last two exchanged."""
    moved = np.moveaxis(data, 0, -2) if batch and data.ndim > 2 else data
    return moved.swapaxes(-1, -2) if rows and moved.ndim > 1 else moved


_ACTIVATIONS: Mapping[str, Any] = {
    "Relu": lambda data: np.maximum(data, 0),
    "Tanh": np.tanh,
    "Sigmoid": _sigmoid,
}


class _FusedGemm(_Foreign):
    def compute(self, left: Array, right: Array, bias: Array | None = None) -> tuple[Array, ...]:
        name = self.given("activation", "")
        activate = _ACTIVATIONS.get(name.decode() if isinstance(name, bytes) else name)
        if activate is None:
            raise UnsupportedError(f"splitgraph has no kernel for FusedGemm with {name}")
        one = left.T if self.given("transA", 0) else left
        other = right.T if self.given("transB", 0) else right
        total = np.matmul(one, other) * left.dtype.type(self.given("alpha", 1.0))
        if bias is not None:
            total = total + bias * left.dtype.type(self.given("beta", 1.0))
        return (activate(total).astype(left.dtype),)


# By operator, those of com.microsoft.
FOREIGN: Mapping[str, type[OpRun]] = {
    "BiasGelu": _Gelu,
    "FastGelu": _FastGelu,
    "FusedGemm": _FusedGemm,
    "FusedMatMul": _FusedMatMul,
    "Gelu": _Gelu,
    "QuickGelu": _QuickGelu,
    "SkipLayerNormalization": _SkipLayerNormalization,
    "SkipSimplifiedLayerNormalization": _SkipSimplifiedLayerNormalization,
    "TransposeMatMul": _FusedMatMul,
}
# Those that it writes into ai.onnx, with the opset from which on ai.onnx has the operator itself.
WRITTEN_INTO_ONNX: Mapping[str, tuple[int, type[OpRun]]] = {
    "LayerNormalization": (17, _LayerNormalization),
    "SimplifiedLayerNormalization": (2**31, _SimplifiedLayerNormalization),
}
