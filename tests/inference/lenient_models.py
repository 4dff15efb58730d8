"""A minimal model for each entry of `tolerated`, beside the model that the schema allows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx.numpy_helper
from onnx import TensorProto, helper

from splitgraph.inference.repairs import FIRST_OPSET, INT32_INPUTS, NEWER_TYPES
from splitgraph.model.schemas import version_at, versions_of

DATA = np.array([[1, -2, 3, 4], [5, 6, -7, 8]], np.float32)
# What the integers are, by operator and input, and other inputs and attributes.
INTEGERS: dict[str, dict[int, Any]] = {
    "AffineGrid": {1: [1, 1, 2, 2]},
    "NonMaxSuppression": {2: [2]},
    "ReverseSequence": {1: [1, 2, 2, 1]},
    "RoiAlign": {2: [0]},
    "RotaryEmbedding": {3: [[0, 1, 2]]},
    "STFT": {1: 2, 3: 4},
    "Split": {1: [1, 3]},
    "Expand": {1: [3, 1, 4]},
    "GatherND": {1: [[0, 1], [1, 0]]},
    "Loop": {0: 3},
    "Reshape": {1: [4, -1]},
    "Resize": {3: [4, 8]},
    "ScatterND": {1: [[0, 1]]},
    "Slice": {1: [0], 2: [1], 3: [1], 4: [1]},
    "Squeeze": {1: [0]},
    "Tile": {1: [2, 1]},
    "TopK": {1: [2]},
    "Unsqueeze": {1: [0]},
}
REDUCED = {1: [1]}
ATTRIBUTES: dict[str, dict[str, Any]] = {
    "Resize": {"mode": "nearest"},
    "RoiAlign": {"coordinate_transformation_mode": "half_pixel"},
    "Split": {"axis": 1},
}


def numbers(*shape: int) -> np.ndarray:
    """Numbers from 0.1 on, in a shape."""
    return (np.arange(np.prod(shape), dtype=np.float32) / 10 + 0.1).astype(np.float32).reshape(shape)


# Other inputs than these integers and `DATA`, by operator and position.
FLOATS: dict[str, dict[int, np.ndarray]] = {
    "AffineGrid": {0: numbers(1, 2, 3)},
    "NonMaxSuppression": {0: numbers(1, 2, 4), 1: numbers(1, 1, 2), 3: np.array([0.5], np.float32)},
    "RoiAlign": {0: numbers(1, 1, 4, 4), 1: np.array([[0, 0, 3, 3]], np.float32)},
    "RotaryEmbedding": {0: numbers(1, 2, 3, 4), 1: numbers(5, 2), 2: numbers(5, 2)},
    "STFT": {0: numbers(1, 8, 1)},
}
# The first opset at which the input exists; all later versions are tried, too.
SINCE = {"Squeeze": 13, "Unsqueeze": 13, "ReduceSum": 13, "TopK": 10, "Slice": 10, "Resize": 11, "Loop": 13}
SINCE |= {"AffineGrid": 20, "NonMaxSuppression": 10, "ReverseSequence": 10, "RoiAlign": 16}
SINCE |= {"RotaryEmbedding": 23, "Split": 13, "STFT": 17}


class Case(NamedTuple):
    """The name of a case, the model that only its schema forbids, the one that is allowed, and the inputs."""

    name: str
    lenient: onnx.ModelProto
    allowed: onnx.ModelProto
    feeds: Mapping[str, np.ndarray]


def doubled() -> Case:
    """A model with two equal initializers of one name, which all runtimes load."""
    node = helper.make_node("Add", ["x", "w"], ["y"], "n")
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4])]
    held = [onnx.numpy_helper.from_array(DATA[0], "w")]
    return Case("doubled", _model([node], inputs, held * 2, 18), _model([node], inputs, held, 18), {"x": DATA})


def cases() -> Iterator[Case]:
    """Every case of both tables."""
    for op in INT32_INPUTS:
        yield from _of_integers(op)
    for op in NEWER_TYPES:
        yield from _of_newer_types(op)
    yield _mixed_power()


def _of_integers(op: str) -> Iterator[Case]:
    first = SINCE.get(op, 18 if op.startswith("Reduce") else FIRST_OPSET)
    versions = {version_at("", op, opset) for opset in range(first, 25)}
    for version in sorted(filter(None, versions), key=lambda each: each.since_version):
        opset = max(version.since_version, first)
        groups: Sequence[Sequence[int]] = [INT32_INPUTS[op]]
        if op in ("Slice", "STFT"):
            # All of one type are allowed: one of them differs from the others.
            groups = [[index] for index in INT32_INPUTS[op]]
        for group in groups:
            made = [_with_integers(op, opset, dict.fromkeys(group, dtype)) for dtype in (np.int32, np.int64)]
            feeds = {"x": FLOATS.get(op, {}).get(0, DATA)}
            yield Case(f"{op}-{version.since_version} {list(group)} int32", *made, feeds)


def _with_integers(op: str, opset: int, dtypes: Mapping[int, type]) -> onnx.ModelProto:
    written = INTEGERS.get(op, REDUCED)
    floats = FLOATS.get(op, {})
    names = [""] * (max([*written, *floats]) + 1)
    names[0] = "x"
    held = []
    for index, array in floats.items():
        if index:
            names[index] = f"p{index}"
            held.append(onnx.numpy_helper.from_array(array, names[index]))
    for index, items in written.items():
        names[index] = f"p{index}"
        held.append(onnx.numpy_helper.from_array(np.array(items, dtypes.get(index, np.int64)), names[index]))
    attributes: dict[str, Any] = dict(ATTRIBUTES.get(op, {}))
    if op == "ScatterND":
        names.append("u")
        held.append(onnx.numpy_helper.from_array(np.array([9], np.float32), "u"))
    if op == "Loop":
        names += ["t", "x"]
        held.append(onnx.numpy_helper.from_array(np.array(True), "t"))
        attributes["body"] = _body()
    outputs = ["y", "z"] if op in ("Split", "TopK") else ["y"]
    nodes = [helper.make_node(op, names, outputs, "n", **attributes)]
    if op == "Squeeze":
        nodes[0].input[0] = "w"
        held.append(onnx.numpy_helper.from_array(np.array([0]), "q"))
        nodes.insert(0, helper.make_node("Unsqueeze", ["x", "q"], ["w"]))
    shape = floats.get(0, DATA).shape
    return _model(nodes, [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)], held, opset)


def _body() -> onnx.GraphProto:
    nodes = [helper.make_node("Identity", ["c"], ["d"]), helper.make_node("Neg", ["v"], ["u"])]
    inputs = [
        helper.make_tensor_value_info("i", TensorProto.INT64, []),
        helper.make_tensor_value_info("c", TensorProto.BOOL, []),
        helper.make_tensor_value_info("v", TensorProto.FLOAT, [2, 4]),
    ]
    outputs = [
        helper.make_tensor_value_info("d", TensorProto.BOOL, []),
        helper.make_tensor_value_info("u", TensorProto.FLOAT, [2, 4]),
    ]
    return helper.make_graph(nodes, "body", inputs, outputs)


def _of_newer_types(op: str) -> Iterator[Case]:
    newer, dtypes = NEWER_TYPES[op]
    for version in versions_of("", op):
        opset = max(version.since_version, FIRST_OPSET)
        if version.since_version >= newer or version_at("", op, opset) != version:
            continue
        allowed = {text.removeprefix("tensor(").removesuffix(")") for text in version.inputs[0].types}
        for dtype in dtypes:
            if {"float32": "float", "float64": "double"}.get(dtype, dtype) not in allowed:
                yield Case(f"{op}-{version.since_version} {dtype}", *_of_type(op, opset, newer, dtype))


def _mixed_power() -> Case:
    """A power of floats with integers as exponents."""
    exponents = np.array([2, 3, 1, 0])
    inputs = [
        helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 4]),
        helper.make_tensor_value_info("w", TensorProto.INT64, [4]),
    ]
    node = helper.make_node("Pow", ["x", "w"], ["y"], "n")
    made = [_model([node], inputs, [], opset) for opset in (FIRST_OPSET, NEWER_TYPES["Pow"][0])]
    return Case("Pow-7 float32 by int64", *made, {"x": DATA, "w": exponents})


def _of_type(op: str, opset: int, newer: int, dtype: str) -> tuple[onnx.ModelProto, onnx.ModelProto, dict]:
    # Nothing here overflows: runtimes differ in that, also where the type is allowed.
    signed = np.dtype(dtype).kind != "u"
    first = np.array([[7, 2], [3, -5 if signed and dtype != "bool" else 5]]).astype(dtype)
    second = np.array([[2, 1], [3, 2]]).astype(dtype)
    feeds = {"x": first} if op in ("Clip", "Flatten", "Relu") else {"x": first, "w": second}
    if op == "Gemm":
        feeds["c"] = second
    inputs = [
        helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), array.shape)
        for name, array in feeds.items()
    ]
    made = []
    for each in (opset, newer):
        names, attributes, held = list(feeds), {}, []
        if op == "Clip" and each < 11:
            attributes = {"min": 0.0, "max": 4.0}
        elif op == "Clip":
            names += ["low", "high"]
            limits = {"low": 0, "high": 4}
            held = [onnx.numpy_helper.from_array(np.array(limit, dtype), name) for name, limit in limits.items()]
        node = helper.make_node(op, names, ["y"], "n", **attributes)
        made.append(_model([node], inputs, held, each))
    return made[0], made[1], feeds


def _model(nodes: Sequence[Any], inputs: Sequence[Any], held: Sequence[Any], opset: int) -> onnx.ModelProto:
    output = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    # Its type is what the node gives.
    output.type.Clear()
    graph = helper.make_graph(nodes, "g", inputs, [output], held)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)
