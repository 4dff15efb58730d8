"""Models of one node at an old opset, with what the operator's document of that time says they give.

No released onnx carries tests of these versions, so the expectations are NumPy's, written from the documents.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import helper, numpy_helper

from .model_cases import ModelCase

Array = NDArray[Any]


def floats(*shape: int, seed: int = 0) -> Array:
    """Normally distributed numbers."""
    return np.random.default_rng([seed, *shape]).standard_normal(shape).astype(np.float32)


def positives(*shape: int) -> Array:
    """Numbers from 0.5 to 2."""
    return np.random.default_rng(shape).uniform(0.5, 2.0, shape).astype(np.float32)


def case(
    label: str,
    opset: int,
    op_type: str,
    inputs: Sequence[Array | None],
    *expected: Array | None,
    held: Sequence[int] = (),
    rtol: float = 1e-5,
    **attributes: Any,
) -> ModelCase:
    """One node; None is an input or output that is left out. held: the inputs that are initializers.

    Below IR version 4, that is with the opsets below 9, initializers are inputs as well.
    """
    names = ["" if array is None else f"x{index}" for index, array in enumerate(inputs)]
    given = {name: array for name, array in zip(names, inputs, strict=True) if array is not None}
    kept = {names[index] for index in held}
    ir_version = 3 if opset < 9 else 4
    declared = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in given.items()
        if ir_version < 4 or name not in kept
    ]
    outputs = ["" if array is None else f"y{index}" for index, array in enumerate(expected)]
    found = [array for array in expected if array is not None]
    graph = helper.make_graph(
        [helper.make_node(op_type, names, outputs, "node", **attributes)],
        "old",
        declared,
        [
            helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
            for name, array in zip(filter(None, outputs), found, strict=True)
        ],
        [numpy_helper.from_array(given[name], name) for name in sorted(kept)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=ir_version)
    inputs_given = [array for name, array in given.items() if name not in kept]
    return ModelCase(f"{op_type}-{opset} {label}", model, [(inputs_given, found)], rtol, 1e-6)


def limited_broadcast() -> Iterator[ModelCase]:
    """Below 7, B lies on a run of A's dimensions: at `axis`, or at the end."""
    a = positives(2, 3, 4, 5)
    arithmetic = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}
    for op, compute in arithmetic.items():
        b = positives(3, 4)
        yield case("axis 1", 1, op, [a, b], compute(a, b[:, :, None]), broadcast=1, axis=1, consumed_inputs=[0, 0])
        yield case("axis 1", 6, op, [a, b], compute(a, b[:, :, None]), broadcast=1, axis=1)
        b = positives(2)
        yield case("axis 0", 6, op, [a, b], compute(a, b[:, None, None, None]), broadcast=1, axis=0)
        b = positives(4, 5)
        yield case("suffix", 6, op, [a, b], compute(a, b), broadcast=1, held=[1])
        yield case("none", 1, op, [a, a[::-1].copy()], compute(a, a[::-1]))
        yield case("one", 6, op, [a, positives(1)], compute(a, positives(1)), broadcast=1)
    b = positives(3)
    yield case("axis 1", 1, "Pow", [a, b], a ** b[:, None, None], broadcast=1, axis=1)
    yield case("suffix", 1, "Pow", [a, positives(5)], a ** positives(5), broadcast=1)
    b = floats(3, 4)
    c = floats(2, 3, 4, 5)
    b[0, 0] = c[0, 0, 0, 0]
    yield case("axis 1", 1, "Greater", [c, b], c > b[:, :, None], broadcast=1, axis=1)
    yield case("axis 1", 1, "Less", [c, b], c < b[:, :, None], broadcast=1, axis=1)
    n, m = np.arange(24).reshape(2, 3, 4) % 5, np.arange(3) + 1
    yield case("axis 1", 1, "Equal", [n, m], n == m[:, None], broadcast=1, axis=1)
    p, q = n > 2, np.array([True, False, True])
    for op, compute in {"And": np.logical_and, "Or": np.logical_or, "Xor": np.logical_xor}.items():
        yield case("axis 1", 1, op, [p, q], compute(p, q[:, None]), broadcast=1, axis=1)
        yield case("none", 1, op, [p, ~p], compute(p, ~p))


def elementwise() -> Iterator[ModelCase]:
    """Below 6, consumed_inputs means nothing, and Selu had other defaults; Clip has always clipped infinities."""
    x = floats(2, 3, 4)
    up = positives(2, 3)
    unary = {"Abs": np.abs, "Neg": np.negative, "Floor": np.floor, "Ceil": np.ceil, "Exp": np.exp, "Tanh": np.tanh}
    for op, compute in unary.items():
        yield case("consumed", 1, op, [x], compute(x), consumed_inputs=[0])
    for op, compute in {"Log": np.log, "Sqrt": np.sqrt, "Reciprocal": np.reciprocal}.items():
        yield case("consumed", 1, op, [up], compute(up), consumed_inputs=[0])
    yield case("consumed", 1, "Relu", [x], np.maximum(x, 0), consumed_inputs=[0])
    yield case("consumed", 1, "Sigmoid", [x], 1 / (1 + np.exp(-x)), consumed_inputs=[0])
    yield case("default", 1, "Elu", [x], np.where(x < 0, np.expm1(x), x))
    yield case("alpha", 1, "Elu", [x], np.where(x < 0, 2 * np.expm1(x), x), alpha=2.0, consumed_inputs=[0])
    yield case("default", 1, "LeakyRelu", [x], np.where(x < 0, np.float32(0.01) * x, x), consumed_inputs=[0])
    yield case("default", 1, "HardSigmoid", [x], np.clip(np.float32(0.2) * x + np.float32(0.5), 0, 1))
    selu = np.where(x <= 0, np.float32(1.0507) * (np.float32(1.6732) * np.expm1(x)), np.float32(1.0507) * x)
    # The defaults of version 6 differ from these by 2e-5.
    yield case("default", 1, "Selu", [x], selu.astype(np.float32), rtol=2e-6)
    gamma, alpha = np.float32(1.0507009873554805), np.float32(1.6732632423543772)
    yield case("default", 6, "Selu", [x], np.where(x <= 0, gamma * alpha * np.expm1(x), gamma * x), rtol=2e-6)
    far = np.array([[-3e38, -2.0, -0.5], [0.5, 2.0, 3e38]], np.float32)
    infinite = np.array([-np.inf, -1.0, 1.0, np.inf], np.float32)
    largest = np.finfo(np.float32).max
    yield case("no bounds", 1, "Clip", [infinite], np.clip(infinite, -largest, largest), consumed_inputs=[0])
    yield case("no bounds", 6, "Clip", [far], far)
    for opset in (1, 6):
        yield case("min", opset, "Clip", [far], np.maximum(far, -1), min=-1.0)
        yield case("max", opset, "Clip", [far], np.minimum(far, 1), max=1.0)
        yield case("both", opset, "Clip", [far], np.clip(far, -1, 1), min=-1.0, max=1.0)
    whole = far.astype(np.float64)
    yield case("double", 6, "Clip", [whole], np.clip(whole, -1, 1), min=-1.0, max=1.0)
    for op, compute in {"Sum": sum, "Max": np.maximum.reduce, "Min": np.minimum.reduce}.items():
        arrays = [floats(2, 3, seed=seed) for seed in range(3)]
        yield case("consumed", 1, op, arrays, compute(arrays), consumed_inputs=[0, 0, 0])
    yield case("consumed", 1, "Mean", arrays, np.float32(sum(arrays) / 3), consumed_inputs=[0, 0, 0])


def slopes() -> Iterator[ModelCase]:
    """Below 7, a slope of PRelu belongs to a channel; Gemm's C is broadcast only on request."""
    x = floats(2, 3, 4, 4)
    slope = positives(3)
    for opset in (1, 6):
        yield case("channel", opset, "PRelu", [x, slope], np.where(x < 0, slope[:, None, None] * x, x))
        yield case("shared", opset, "PRelu", [x, positives(1)], np.where(x < 0, positives(1) * x, x))
    # As many channels as the last dimension is long: both readings are valid, and only one is right.
    square = floats(2, 4, 4)
    yield case(
        "square", 6, "PRelu", [square, positives(4)], np.where(square < 0, positives(4)[:, None] * square, square)
    )
    a, b = floats(3, 4), floats(4, 5)
    for opset in (1, 6):
        c = floats(5)
        yield case("row", opset, "Gemm", [a, b, c], a @ b + c, broadcast=1, held=[1, 2])
        yield case("full", opset, "Gemm", [a, b, floats(3, 5)], a @ b + floats(3, 5))
        scaled = np.float32(0.5) * (a @ b) + np.float32(2) * floats(3, 5)
        options = {"alpha": 0.5, "beta": 2.0, "transA": 1, "transB": 1}
        yield case("scaled", opset, "Gemm", [a.T.copy(), b.T.copy(), floats(3, 5)], scaled, **options)
    column = floats(3, 1)
    yield case("column", 7, "Gemm", [a, b, column], a @ b + column)


def casts() -> Iterator[ModelCase]:
    """Below 6, Cast names the type in words."""
    x = np.array([[-1.5, 0.0, 2.5], [3.99, 100.0, 1e4]], np.float32)
    names = {"DOUBLE": np.float64, "INT32": np.int32, "INT64": np.int64, "BOOL": np.bool_, "FLOAT": np.float32}
    for name, dtype in names.items():
        yield case(name, 1, "Cast", [x], x.astype(dtype), to=name)
        yield case(name, 6, "Cast", [x], x.astype(dtype), to=int(helper.np_dtype_to_tensor_dtype(np.dtype(dtype))))
    small = np.array([0, 1, 200], np.uint8)
    yield case("from UINT8", 1, "Cast", [small], small.astype(np.float32), to="FLOAT")


def norms() -> Iterator[ModelCase]:
    """Below 13, Softmax and its like normalize all dimensions from axis on together, and axis is 1 by default."""
    x = floats(2, 3, 4)
    for axis in (None, 0, 1, 2):
        first = 1 if axis is None else axis
        flat = x.reshape(math.prod(x.shape[:first]), -1)
        shifted = np.exp(flat - flat.max(1, keepdims=True))
        soft = shifted / shifted.sum(1, keepdims=True)
        hard = np.eye(flat.shape[1], dtype=np.float32)[flat.argmax(1)]
        given = {} if axis is None else {"axis": axis}
        for opset in (1, 11):
            yield case(f"axis {axis}", opset, "Softmax", [x], soft.reshape(x.shape), **given)
            yield case(f"axis {axis}", opset, "LogSoftmax", [x], np.log(soft).reshape(x.shape), **given)
            yield case(f"axis {axis}", opset, "Hardmax", [x], hard.reshape(x.shape), **given)
    flat = x.reshape(2, 12)
    shifted = np.exp(flat - flat.max(1, keepdims=True))
    yield case("axis -2", 11, "Softmax", [x], (shifted / shifted.sum(1, keepdims=True)).reshape(x.shape), axis=-2)


def math_cases() -> list[ModelCase]:
    """All of the cases here."""
    return [*limited_broadcast(), *elementwise(), *slopes(), *casts(), *norms()]
