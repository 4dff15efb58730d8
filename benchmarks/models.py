"""Models made for measuring: a decoder like GPT-2 with dynamic sizes, chains of splits, nested halvings."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

OPSET = 18


def _model(
    nodes: list[onnx.NodeProto], inputs: list[onnx.ValueInfoProto], output: str, initializers: list[onnx.TensorProto]
) -> onnx.ModelProto:
    result = helper.make_tensor_value_info(output, TensorProto.FLOAT, None)
    graph = helper.make_graph(nodes, "benchmark", inputs, [result], initializers)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)


def decoder(layers: int, width: int = 64, heads: int = 4) -> onnx.ModelProto:
    """A GPT-2-like stack: fused qkv, Split, reshapes by computed shapes, attention, residuals."""
    nodes: list[onnx.NodeProto] = []
    constants: list[onnx.TensorProto] = []

    def constant(name: str, values: object, dtype: type = np.int64) -> str:
        constants.append(numpy_helper.from_array(np.asarray(values, dtype=dtype), name))
        return name

    def node(op_type: str, inputs: list[str], output: str, **attributes: object) -> str:
        nodes.append(helper.make_node(op_type, inputs, [output], name=f"{op_type}_{len(nodes)}", **attributes))
        return output

    (
        constant("zero", 0),
        constant("one", 1),
        constant("heads", [heads]),
        constant("size", [width // heads]),
        constant("all", [width]),
    )
    constant("lengths", [width] * 3)
    constant("wide", np.zeros((width, 3 * width)), np.float32), constant("narrow", np.zeros((width, width)), np.float32)
    constant("scale", np.ones(width), np.float32), constant("bias", np.zeros(width), np.float32)
    x = "x"
    for i in range(layers):
        normal = node("LayerNormalization", [x, "scale", "bias"], f"norm{i}", axis=-1)
        fused = node("MatMul", [normal, "wide"], f"qkv{i}")
        nodes.append(
            helper.make_node("Split", [fused, "lengths"], [f"q{i}", f"k{i}", f"v{i}"], name=f"Split_{i}", axis=2)
        )
        shape = node("Shape", [fused], f"shape{i}")
        batch = node("Unsqueeze", [node("Gather", [shape, "zero"], f"b{i}"), constant(f"axes{i}", [0])], f"b1{i}")
        length = node("Unsqueeze", [node("Gather", [shape, "one"], f"t{i}"), f"axes{i}"], f"t1{i}")
        split = node("Concat", [batch, length, "heads", "size"], f"split{i}", axis=0)
        joined = node("Concat", [batch, length, "all"], f"joined{i}", axis=0)
        q, k, v = (
            node("Transpose", [node("Reshape", [f"{p}{i}", split], f"{p}r{i}")], f"{p}t{i}", perm=[0, 2, 1, 3])
            for p in "qkv"
        )
        scores = node("MatMul", [q, node("Transpose", [k], f"ktt{i}", perm=[0, 1, 3, 2])], f"scores{i}")
        mixed = node("MatMul", [node("Softmax", [scores], f"soft{i}", axis=-1), v], f"mixed{i}")
        flat = node("Reshape", [node("Transpose", [mixed], f"mt{i}", perm=[0, 2, 1, 3]), joined], f"flat{i}")
        x = node("Add", [x, node("MatMul", [flat, "narrow"], f"proj{i}")], f"y{i}")
    value = helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "seq", width])
    return _model(nodes, [value], x, constants)


def splits(nodes: int) -> onnx.ModelProto:
    """A chain of Split, Concat and Relu on a symbolic dimension: a third of the nodes are splits."""
    made, value = [], "x"
    for i in range(nodes // 3):
        made.append(helper.make_node("Split", [value], [f"a{i}", f"b{i}"], name=f"Split_{i}", axis=1, num_outputs=2))
        made.append(helper.make_node("Concat", [f"b{i}", f"a{i}"], [f"c{i}"], name=f"Concat_{i}", axis=1))
        made.append(helper.make_node("Relu", [f"c{i}"], [f"r{i}"], name=f"Relu_{i}"))
        value = f"r{i}"
    return _model(made, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", "seq", 8])], value, [])


def halvings(depth: int) -> onnx.ModelProto:
    """Each part of a split is split again, `depth` times: nested symbolic expressions."""
    made, value = [], "x"
    for i in range(depth):
        made.append(helper.make_node("Split", [value], [f"a{i}", f"b{i}"], name=f"Split_{i}", axis=0, num_outputs=2))
        value = f"a{i}"
    return _model(made, [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", 8])], value, [])
