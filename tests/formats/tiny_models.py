"""Models of a few nodes for the tests of this folder."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


def float_value(name: str, shape: tuple[int | str | None, ...] = (2, 3)) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)


def model_of(graph: onnx.GraphProto, opset: int = 18, **fields: object) -> onnx.ModelProto:
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=10, **fields)


def add_model(weights: np.ndarray | None = None) -> onnx.ModelProto:
    """y = x + w."""
    weight = numpy_helper.from_array(np.ones((2, 3), np.float32) if weights is None else weights, "w")
    node = helper.make_node("Add", ["x", "w"], ["y"], name="add")
    return model_of(helper.make_graph([node], "g", [float_value("x")], [float_value("y")], [weight]))


def external(tensor: TensorProto, location: str, **entries: object) -> TensorProto:
    """The tensor with its contents said to be in a file; writes nothing."""
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.add(key=key, value=str(value))
    return tensor


def write_external_model(folder: Path, location: str = "w.bin", **entries: object) -> Path:
    """An add_model in `folder` whose weight, 0..5, lies in another file of it."""
    model = add_model()
    data_file = folder / location
    data_file.parent.mkdir(parents=True, exist_ok=True)
    data_file.write_bytes(np.arange(6, dtype=np.float32).tobytes())
    external(model.graph.initializer[0], location, **entries)
    path = folder / "model.onnx"
    path.write_bytes(model.SerializeToString())
    return path


def large(path: Path) -> Path:
    """A model with 1.5 MB of weights in its file, for a Split."""
    weights = np.arange(512 * 768, dtype=np.float32).reshape(512, 768) / 768
    nodes = [helper.make_node("MatMul", ["x", "w"], ["h"]), helper.make_node("Split", ["h"], ["a", "b"], axis=1)]
    inputs = [helper.make_tensor_value_info("x", 1, ["N", 512])]
    outputs = [helper.make_tensor_value_info(name, 1, ["N", 384]) for name in "ab"]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(weights, "w")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8), path)
    return path


def nested_model(levels: int) -> bytes:
    """A file with an If within an If within an If ..., in wire format: protobuf makes none that it could not read."""
    inner = float_value("y").SerializeToString()
    graph = field(12, inner)
    for _ in range(levels):
        attribute = field(1, b"then_branch") + field(6, graph) + b"\xa0\x01\x05"
        node = field(2, b"y") + field(4, b"If") + field(5, attribute)
        graph = field(1, node) + field(12, inner)
    return onnx.ModelProto(ir_version=10).SerializeToString() + field(7, graph)


def field(number: int, content: bytes) -> bytes:
    """A length-delimited field."""
    length = len(content)
    varint = bytearray()
    while length >= 0x80:
        varint.append(length & 0x7F | 0x80)
        length >>= 7
    varint.append(length)
    return bytes([number << 3 | 2]) + bytes(varint) + content
