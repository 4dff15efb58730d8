"""Models as texts, and what folding makes of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import splitgraph
from splitgraph.conversion.rewrite import Rewrite


def model(body: str, *, opset: int = 17, ir_version: int = 8, functions: str = "") -> onnx.ModelProto:
    """Return the model with this main graph, such as "(float[N] x) => (float[N] y) { y = Relu (x) }"."""
    imports = f'"": {opset}' + (', "f": 1' if functions else "")
    return parser.parse_model(f"<ir_version: {ir_version}, opset_import: [{imports}]> g {body} {functions}")


def fold(made: onnx.ModelProto, **options: Any) -> Rewrite[onnx.ModelProto]:
    """Fold a model. It must be a valid one, and the same the second time."""
    rewrite = splitgraph.convert(made, fold=True, **options)
    onnx.checker.check_model(rewrite.model)
    again = splitgraph.convert(rewrite.model, fold=True, **options)
    assert (again.changes, again.model) == ((), rewrite.model)
    return rewrite


def operators(made: onnx.ModelProto) -> list[str]:
    """Return the operators of the nodes of the main graph, in order."""
    return [node.op_type for node in made.graph.node]


def constants(made: onnx.ModelProto) -> dict[str, Any]:
    """Return the initializers of the main graph, as lists."""
    return {tensor.name: numpy_helper.to_array(tensor).tolist() for tensor in made.graph.initializer}


def why(rewrite: Rewrite[onnx.ModelProto]) -> dict[str, str]:
    """Return why each node changed."""
    return {change.location: change.why for change in rewrite.changes}


def assert_equal_at(
    before: onnx.ModelProto, after: onnx.ModelProto, sizes: Iterable[Mapping[str, int]], *, least: int = 1
) -> None:
    """Run both models with these sizes of the dimensions of their inputs, and compare them bit by bit. What the first
    one fails at says nothing; it runs at so many sizes at least.
    """
    runs = 0
    for named in sizes:
        feeds = _feeds(before, named)
        try:
            expected = ReferenceEvaluator(before).run(None, feeds)
        except (ValueError, IndexError, TypeError, RuntimeError):
            continue
        runs += 1
        assert_same(expected, ReferenceEvaluator(after).run(None, feeds))
    assert runs >= least


def assert_same(expected: Any, found: Any) -> None:
    """Compare results element by element, also those in lists."""
    if isinstance(expected, list):
        assert len(expected) == len(found)
        for one, other in zip(expected, found, strict=True):
            assert_same(one, other)
        return
    np.testing.assert_array_equal(np.asarray(found), np.asarray(expected), strict=True)


def _feeds(made: onnx.ModelProto, sizes: Mapping[str, int]) -> dict[str, Any]:
    given = {tensor.name for tensor in made.graph.initializer}
    feeds = {}
    for value in made.graph.input:
        if value.name in given:
            continue
        dims: Sequence[Any] = value.type.tensor_type.shape.dim
        shape = [sizes[dim.dim_param] if dim.dim_param else dim.dim_value for dim in dims]
        dtype = onnx.helper.tensor_dtype_to_np_dtype(value.type.tensor_type.elem_type)
        feeds[value.name] = (np.arange(np.prod(shape, dtype=int)) % 7 - 3).reshape(shape).astype(dtype)
    return feeds


def plain_session(made: onnx.ModelProto) -> Any:
    """Return a session of onnxruntime that runs the nodes as they are."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    return onnxruntime.InferenceSession(made.SerializeToString(), options, providers=["CPUExecutionProvider"])


def runtime_errors() -> tuple[type[Exception], ...]:
    """Return what a session raises for a model that it cannot run at these sizes."""
    from onnxruntime.capi import onnxruntime_pybind11_state as errors

    return (errors.Fail, errors.InvalidArgument, errors.RuntimeException)
