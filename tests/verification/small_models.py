"""Models of a few nodes for the tests of this folder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper, parser

FLOAT = TensorProto.FLOAT
Dims = Sequence["int | str | None"]


def value(name: str, dims: Dims | None = ("N", 4), dtype: int = FLOAT) -> onnx.ValueInfoProto:
    """A tensor's declaration; dims None: of unknown rank."""
    return helper.make_tensor_value_info(name, dtype, dims)


def node(op_type: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs, outputs, **attributes)


def constant(name: str, array: Any, dtype: Any = np.int64) -> onnx.TensorProto:
    return numpy_helper.from_array(np.asarray(array, dtype=dtype), name)


def graph_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[str | onnx.ValueInfoProto],
    initializers: Sequence[onnx.TensorProto] = (),
    name: str = "g",
) -> onnx.GraphProto:
    declared = [value(output, None) if isinstance(output, str) else output for output in outputs]
    return helper.make_graph(list(nodes), name, list(inputs), declared, initializer=list(initializers))


def model_of(
    nodes: Sequence[onnx.NodeProto],
    inputs: Sequence[onnx.ValueInfoProto],
    outputs: Sequence[str | onnx.ValueInfoProto],
    initializers: Sequence[onnx.TensorProto] = (),
    *,
    opset: int = 18,
    functions: Sequence[onnx.FunctionProto] = (),
    domains: Mapping[str, int] | None = None,
    ir_version: int = 8,
) -> onnx.ModelProto:
    imports = [helper.make_opsetid("", opset)]
    imports += [helper.make_opsetid(domain, version) for domain, version in (domains or {}).items()]
    graph = graph_of(nodes, inputs, outputs, initializers)
    return helper.make_model(graph, opset_imports=imports, functions=list(functions), ir_version=ir_version)


def parsed(signature: str, body: str, functions: str = "", opset: int = 18, **initializers: Any) -> onnx.ModelProto:
    """A model in onnx's textual syntax; signature: "inputs => outputs"."""
    inputs, outputs = signature.split(" => ")
    header = f'<ir_version: 8, opset_import: ["": {opset}, "local": 1]>'
    model = parser.parse_model(f"{header} g ({inputs}) => ({outputs}) {{ {body} }} {functions}")
    found = {name: np.asarray(array) for name, array in initializers.items()}
    model.graph.initializer.extend(constant(name, array, array.dtype) for name, array in found.items())
    return model


def split_model(
    opset: int,
    *,
    lengths: Sequence[int] | None = None,
    outputs: Sequence[str] = ("a", "b"),
    dims: Dims | None = ("N", 4),
    dtype: int = FLOAT,
    **attributes: Any,
) -> onnx.ModelProto:
    """One Split; lengths go where the opset has them."""
    inputs, initializers = ["x"], []
    if lengths is not None and opset >= 13:
        inputs.append("lengths")
        initializers.append(constant("lengths", lengths))
    elif lengths is not None:
        attributes["split"] = list(lengths)
    declared = [value(name, None, dtype) for name in outputs if name]
    split = node("Split", inputs, outputs, **attributes)
    return model_of([split], [value("x", dims, dtype)], declared, initializers, opset=opset)


def endless_model() -> onnx.ModelProto:
    """y = x after a Loop that does not end; "finished" on no engine."""
    body = graph_of(
        [node("Identity", ["alive"], ["alive_out"]), node("Neg", ["state"], ["state_out"])],
        [value("i", (), TensorProto.INT64), value("alive", (), TensorProto.BOOL), value("state", None)],
        [value("alive_out", (), TensorProto.BOOL), "state_out"],
        name="body",
    )
    loop = node("Loop", ["", "", "x"], ["y"], body=body)
    return model_of([loop], [value("x")], ["y"])


def halves(first: str = "ceil", *, scale: float = 1.0, order: str = "ab", dtype: int = FLOAT) -> onnx.ModelProto:
    """Two parts of x along its sequence dimension, times `scale`; first: how the first length is rounded."""
    nodes = [
        node("Shape", ["x"], ["length"], start=1, end=2),
        node("Add", ["length", "one" if first == "ceil" else "zero"], ["padded"]),
        node("Div", ["padded", "two"], ["left"]),
        node("Sub", ["length", "left"], ["right"]),
        node("Concat", ["left", "right"], ["lengths"], axis=0),
        node("Split", ["x", "lengths"], list(order), axis=1),
        node("Mul", ["a", "scale"], ["p"]),
        node("Mul", ["b", "scale"], ["q"]),
    ]
    names = [constant("zero", [0]), constant("one", [1]), constant("two", [2]), constant("scale", scale, np.float32)]
    outputs = [value("p", None, dtype), value("q", None, dtype)]
    return model_of(nodes, [value("x", ("B", "T", 4))], outputs, names)
