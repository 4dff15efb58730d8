"""Models made for measuring: a decoder like GPT-2 with dynamic sizes, chains of splits, nested halvings, nested Ifs."""

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

    constant("zero", 0)
    constant("one", 1)
    constant("heads", [heads])
    constant("size", [width // heads])
    constant("all", [width])
    constant("lengths", [width] * 3)
    constant("wide", np.zeros((width, 3 * width)), np.float32)
    constant("narrow", np.zeros((width, width)), np.float32)
    constant("scale", np.ones(width), np.float32)
    constant("bias", np.zeros(width), np.float32)
    x = "x"
    for i in range(layers):
        normal = node("LayerNormalization", [x, "scale", "bias"], f"norm_{i}", axis=-1)
        fused = node("MatMul", [normal, "wide"], f"qkv_{i}")
        parts = [f"q_{i}", f"k_{i}", f"v_{i}"]
        nodes.append(helper.make_node("Split", [fused, "lengths"], parts, name=f"Split_{i}", axis=2))
        shape = node("Shape", [fused], f"shape_{i}")
        axes = constant(f"axes_{i}", [0])
        batch = node("Unsqueeze", [node("Gather", [shape, "zero"], f"batch_{i}"), axes], f"batch_1d_{i}")
        length = node("Unsqueeze", [node("Gather", [shape, "one"], f"length_{i}"), axes], f"length_1d_{i}")
        split = node("Concat", [batch, length, "heads", "size"], f"split_shape_{i}", axis=0)
        joined = node("Concat", [batch, length, "all"], f"joined_shape_{i}", axis=0)
        q, k, v = (
            node("Transpose", [node("Reshape", [part, split], f"{part}_heads")], f"{part}_turned", perm=[0, 2, 1, 3])
            for part in parts
        )
        scores = node("MatMul", [q, node("Transpose", [k], f"keys_{i}", perm=[0, 1, 3, 2])], f"scores_{i}")
        mixed = node("MatMul", [node("Softmax", [scores], f"weights_{i}", axis=-1), v], f"mixed_{i}")
        turned = node("Transpose", [mixed], f"mixed_turned_{i}", perm=[0, 2, 1, 3])
        flat = node("Reshape", [turned, joined], f"flat_{i}")
        x = node("Add", [x, node("MatMul", [flat, "narrow"], f"projected_{i}")], f"y_{i}")
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


def nested(depth: int) -> onnx.ModelProto:
    """An If within an If, and so on, with a split in the innermost branches."""
    graph = helper.make_graph(
        [helper.make_node("Split", ["x"], ["a", "out"], name="Split", axis=1, num_outputs=2)],
        "innermost",
        [],
        [helper.make_tensor_value_info("out", TensorProto.FLOAT, None)],
    )
    for level in range(depth):
        other = helper.make_graph(
            [helper.make_node("Relu", ["x"], ["other"])],
            "other",
            [],
            [helper.make_tensor_value_info("other", TensorProto.FLOAT, None)],
        )
        chosen = helper.make_node("If", ["c"], [f"out_{level}"], name="If", then_branch=graph, else_branch=other)
        result = helper.make_tensor_value_info(f"out_{level}", TensorProto.FLOAT, None)
        graph = helper.make_graph([chosen], f"level {level}", [], [result])
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, ["N", "M"]),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
    ]
    return _model(list(graph.node), inputs, f"out_{depth - 1}", [])
