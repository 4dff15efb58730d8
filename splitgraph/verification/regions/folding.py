"""Write what a region only moves of its constants, or scales, as a constant, and sparse constants as dense ones.

One tool stores a table that another one puts together of two, turned, in another shape, or scaled. As a constant, it is
compared with that of the other model: a run must read the rows that differ, and positions are drawn for these.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import onnx

from splitgraph.model.scopes import reads
from splitgraph.model.tensor_data import byte_size
from splitgraph.verification.models.model_files import elements_of, is_default_domain
from splitgraph.verification.reference.evaluator import load, run
from splitgraph.verification.values import UnsupportedError, Value

_MOVING = frozenset({"Concat", "Flatten", "Identity", "Reshape", "Slice", "Split", "Squeeze", "Transpose", "Unsqueeze"})
# Operators whose result is the nearest number, so that all engines give the same.
_SCALING = frozenset({"Abs", "Add", "DequantizeLinear", "Div", "Mul", "Neg", "Sub"})
# Constants of more bytes are not moved.
_MOST_BYTES = 2**28
# The kinds of elements that NumPy itself has.
_PLAIN = "fiubc"


def folded(model: onnx.ModelProto, folder: Path | None) -> onnx.ModelProto:
    """Return a model of a region in which moved constants are constants. folder: of external data."""
    model = _with_dense(model, folder)
    graph = model.graph
    tensors = dict(_tensors(graph))
    moving = _moving(graph, set(tensors))
    if not moving:
        return model
    made = {name for index in moving for name in graph.node[index].output if name}
    left = [node for index, node in enumerate(graph.node) if index not in moving]
    wanted = dict.fromkeys(name for node in left for name in reads(node) if name in made)
    wanted |= dict.fromkeys(value.name for value in graph.output if value.name in made)
    part = onnx.ModelProto(ir_version=model.ir_version, opset_import=model.opset_import)
    part.graph.name = "moved"
    part.graph.node.extend(graph.node[index] for index in sorted(moving))
    read = {name: tensors[name] for node in part.graph.node for name in node.input if name in tensors}
    part.graph.input.extend(onnx.ValueInfoProto(name=name) for name in read)
    part.graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted)
    if sum(byte_size(tensor) or math.inf for tensor in read.values()) > _MOST_BYTES:
        return model
    arrays = {name: np.asarray(elements_of(tensor, folder)) for name, tensor in read.items()}
    if any(array.dtype.kind not in _PLAIN for array in arrays.values()):
        return model
    try:
        with np.errstate(divide="raise", invalid="raise", over="raise"):
            moved = dict(zip(wanted, run(load(part), arrays), strict=True))
    except (ArithmeticError, UnsupportedError, ValueError, IndexError, RuntimeError):
        # The engine says what is wrong with such a node.
        return model
    return _with_constants(model, left, moved)


def _with_dense(model: onnx.ModelProto, folder: Path | None) -> onnx.ModelProto:
    """Return a model without the sparse initializers that are no larger as dense ones than others may be."""
    dense = {}
    for sparse in model.graph.sparse_initializer:
        values, indices = (np.asarray(elements_of(tensor, folder)) for tensor in (sparse.values, sparse.indices))
        if values.dtype.kind in _PLAIN and math.prod(sparse.dims) * values.itemsize <= _MOST_BYTES:
            array = np.zeros(sparse.dims[:], values.dtype)
            places = indices if indices.ndim == 1 else np.ravel_multi_index(tuple(indices.T), array.shape)
            array.reshape(-1)[places] = values
            dense[sparse.values.name] = onnx.numpy_helper.from_array(array, sparse.values.name)
    if not dense:
        return model
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    left = [sparse for sparse in copy.graph.sparse_initializer if sparse.values.name not in dense]
    del copy.graph.sparse_initializer[:]
    copy.graph.sparse_initializer.extend(left)
    copy.graph.initializer.extend(dense.values())
    return copy


def _tensors(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    yield from ((tensor.name, tensor) for tensor in graph.initializer)
    for node in graph.node:
        if node.op_type == "Constant" and is_default_domain(node.domain):
            yield from ((node.output[0], attribute.t) for attribute in node.attribute if attribute.name == "value")


def _moving(graph: onnx.GraphProto, constants: set[str]) -> set[int]:
    """Return the nodes that move constants, and nothing else. constants: gets what they compute."""
    moving: set[int] = set()
    for index, node in enumerate(graph.node):
        is_moving = (node.op_type in _MOVING or node.op_type in _SCALING) and is_default_domain(node.domain)
        if is_moving and node.input and all(name in constants for name in node.input if name):
            moving.add(index)
            constants.update(filter(None, node.output))
    return moving


def _with_constants(model: onnx.ModelProto, left: list[onnx.NodeProto], moved: dict[str, Value]) -> onnx.ModelProto:
    """Return a model with some of its nodes, and with what the others compute as constants."""
    copy = onnx.ModelProto()
    copy.CopyFrom(model)
    graph = copy.graph
    del graph.node[:], graph.initializer[:]
    read = {name for node in left for name in reads(node)}
    graph.initializer.extend(tensor for tensor in model.graph.initializer if tensor.name in read)
    results = {value.name for value in graph.output}
    for name, array in moved.items():
        own = f"{name}.moved" if name in results else name
        graph.initializer.append(onnx.numpy_helper.from_array(np.asarray(array), own))
        if name in results:
            graph.node.append(onnx.helper.make_node("Identity", [own], [name]))
    graph.node.extend(left)
    return copy
