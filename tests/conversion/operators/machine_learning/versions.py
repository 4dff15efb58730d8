"""One node of ai.onnx.ml, taken from version to version, and what onnxruntime's kernels of both give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray
from onnx import helper

import splitgraph

Array = NDArray[Any]
ML = "ai.onnx.ml"


@dataclass(frozen=True)
class OneNode:
    """A node and what it reads. free: the input is declared without sizes; None: it is declared without a rank."""

    operator: str
    version: int
    data: Array
    attributes: Mapping[str, Any] = field(default_factory=dict)
    outputs: int = 1
    opset: int = 17
    free: bool | None = False

    def model(self) -> onnx.ModelProto:
        """The model of the node alone."""
        names = [f"y{place}" for place in range(self.outputs)]
        node = helper.make_node(self.operator, ["x"], names, "node", domain=ML, **self.attributes)
        shape = list(self.data.shape) if self.free is False else [f"d{axis}" for axis in range(self.data.ndim)]
        given = helper.make_tensor_value_info("x", _type_of(self.data), None if self.free is None else shape)
        graph = helper.make_graph([node], "one", [given], [onnx.ValueInfoProto(name=name) for name in names])
        imports = [helper.make_opsetid("", self.opset), helper.make_opsetid(ML, self.version)]
        return helper.make_model(graph, opset_imports=imports, ir_version=8)

    def declared(self) -> onnx.ModelProto:
        """The model, with the types of its outputs, which onnx's checker demands."""
        model = self.model()
        for place, result in enumerate(run(model, self.data)):
            shape = [None] * result.ndim
            model.graph.output[place].CopyFrom(helper.make_tensor_value_info(f"y{place}", _type_of(result), shape))
        return model


def _type_of(array: Array) -> int:
    strings = array.dtype.kind in "OUS"
    return onnx.TensorProto.STRING if strings else helper.np_dtype_to_tensor_dtype(array.dtype)


def run(model: onnx.ModelProto, data: Array) -> list[Array]:
    """Run a model in onnxruntime as it is written, without optimizations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(model.SerializeToString(), options, ["CPUExecutionProvider"])
    return [np.asarray(result) for result in session.run(None, {"x": data})]


def operators(model: onnx.ModelProto) -> list[str]:
    """The operators of a model; those of other domains with their domain."""
    return [f"{node.domain}.{node.op_type}" if node.domain else node.op_type for node in model.graph.node]


def check(
    one: OneNode, version: int, *, exact: bool = True, opset: int | None = None, tolerance: float = 2e-6
) -> onnx.ModelProto:
    """Take a node to a version of its domain, compare the results, and return the model. exact: bit for bit, otherwise
    within the tolerance."""
    model = one.declared()
    opsets = {ML: version} if opset is None else {"": opset, ML: version}
    rewrite = splitgraph.convert(model, opset=opsets)
    result = rewrite.model
    if one.free is not None:
        onnx.checker.check_model(result, full_check=True)
    assert rewrite.to_opset[ML] == version
    for wanted, got in zip(run(model, one.data), run(result, one.data), strict=True):
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape)
        if exact or wanted.dtype.kind != "f":
            np.testing.assert_array_equal(got, wanted)
        else:
            np.testing.assert_allclose(got, wanted, tolerance, tolerance)
    return result


def refusal(one: OneNode, version: int, **more: int) -> str:
    """All messages of the refusal to take a node to a version; "" where there is none."""
    try:
        splitgraph.convert(one.model(), opset={ML: version, **more})
    except splitgraph.ConversionError as error:
        return "; ".join(finding.message for finding in error.diagnostics)
    return ""


def texts(*items: str) -> Array:
    """Strings as onnxruntime takes them."""
    array = np.empty(len(items), object)
    array[:] = items
    return array


def every(values: Sequence[Any], dtype: str) -> Array:
    """Values as an array of a type."""
    return np.array(values, dtype)
