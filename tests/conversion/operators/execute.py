"""Small models for tests of adapters: built, converted, checked and executed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from splitgraph.conversion.opset import convert_opset
from splitgraph.findings.diagnostics import ConversionError
from splitgraph.model.schemas.table import minimum_ir_version

Array = NDArray[Any]
# An element type and a shape: None is a dimension that is not known, a string a symbol.
Declared = tuple[str, Sequence[int | str | None] | None]

_ONNX_NAMES = {"float32": "FLOAT", "float64": "DOUBLE"}


def number_of(dtype: str) -> int:
    """onnx's number for an element type by its numpy name."""
    return int(TensorProto.DataType.Value(_ONNX_NAMES.get(dtype, dtype.upper())))


def value(name: str, declared: Declared) -> onnx.ValueInfoProto:
    """A graph input or output."""
    dtype, shape = declared
    return helper.make_tensor_value_info(name, number_of(dtype), shape)


def build(
    nodes: onnx.NodeProto | Sequence[onnx.NodeProto],
    opset: int,
    inputs: Mapping[str, Declared],
    outputs: Mapping[str, Declared],
    initializers: Mapping[str, Array] | None = None,
) -> onnx.ModelProto:
    """A model of one graph, whose initializers are no inputs."""
    listed = [nodes] if isinstance(nodes, onnx.NodeProto) else list(nodes)
    graph = helper.make_graph(
        listed,
        "g",
        [value(name, declared) for name, declared in inputs.items()],
        [value(name, declared) for name, declared in outputs.items()],
        [numpy_helper.from_array(np.asarray(held), name) for name, held in (initializers or {}).items()],
    )
    imports = [helper.make_opsetid("", opset)]
    return helper.make_model(graph, opset_imports=imports, ir_version=max(minimum_ir_version(opset), 4))


def converted(model: onnx.ModelProto, target: int) -> onnx.ModelProto:
    """The model at another opset, valid."""
    result = convert_opset(model, target).model
    onnx.checker.check_model(result, full_check=True)
    return result


def refusal(model: onnx.ModelProto, target: int) -> str:
    """All the messages of the refusal to convert, "" when there is none."""
    try:
        convert_opset(model, target)
    except ConversionError as error:
        return "; ".join(found.message for found in error.diagnostics)
    return ""


def operators(model: onnx.ModelProto) -> list[str]:
    """The operators of the main graph, in order."""
    return [node.op_type for node in model.graph.node]


def run(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """The outputs of a model, from onnxruntime."""
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    # What optimization makes of a model is not what is tested.
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    return list(session.run(None, dict(feeds)))


def run_reference(model: onnx.ModelProto, feeds: Mapping[str, Any]) -> list[Any]:
    """The outputs of a model, from onnx's reference evaluator."""
    return list(ReferenceEvaluator(model).run(None, dict(feeds)))


def same(one: Any, other: Any, tolerance: float = 0.0) -> bool:
    """True when two results are of one type and shape and hold the same elements, or nearly the same; any NaN is
    another, and -0 is not 0 where nothing is tolerated.
    """
    if isinstance(one, list) or isinstance(other, list):
        return (
            isinstance(one, list) and isinstance(other, list) and len(one) == len(other) and all(map(same, one, other))
        )
    first, second = np.asarray(one), np.asarray(other)
    if (first.dtype, first.shape) != (second.dtype, second.shape):
        return False
    if first.dtype.kind not in "fV":
        return bool(np.array_equal(first, second))
    left, right = first.astype(np.float64), second.astype(np.float64)
    if not tolerance:
        signs = np.isnan(left) | (np.signbit(left) == np.signbit(right))
        return bool(np.array_equal(left, right, equal_nan=True) and signs.all())
    return bool(np.allclose(left, right, rtol=tolerance, atol=tolerance, equal_nan=True))


def assert_same(expected: Sequence[Any], found: Sequence[Any], tolerance: float = 0.0) -> None:
    """Fail where two lists of results differ."""
    assert len(expected) == len(found)
    for index, (one, other) in enumerate(zip(expected, found, strict=True)):
        assert same(one, other, tolerance), f"output {index}: expected {one!r}, found {other!r}"


def random_array(shape: Sequence[int], dtype: str = "float32", seed: int = 0) -> Array:
    """Small random numbers of an element type, of both signs where it has them."""
    generator = np.random.default_rng(seed)
    if np.dtype(dtype).kind == "b":
        return generator.integers(0, 2, shape).astype(bool)
    if np.dtype(dtype).kind in "iu":
        return generator.integers(0 if np.dtype(dtype).kind == "u" else -9, 10, shape).astype(dtype)
    return np.asarray(generator.standard_normal(shape)).astype(dtype)
