"""Round weights to float16, inside an engine process, to compare a model with an IR that stores its weights so."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import onnx

from splitgraph.model.tensor_data import is_external
from splitgraph.verification.models.dependence import is_weight
from splitgraph.verification.models.model_files import nodes_within, read_elements, save_model
from splitgraph.verification.values import Array

_HALF = np.finfo(np.float16)
# OpenVINO compresses no array of which float16 cannot hold this share.
_MOSTLY = 0.75


def round_onnx(path: Path, folder: Path | None) -> Path:
    """Write a copy of an ONNX file, with weights rounded to float16, beside it, and return its path."""
    model = onnx.load(str(path), load_external_data=False)
    for name, tensor in _tensors(model):
        if not is_weight(tensor):
            continue
        if is_external(tensor):
            elements = read_elements(tensor, folder or path.parent)
            tensor.CopyFrom(onnx.numpy_helper.from_array(rounded_to_half(elements, name), tensor.name))
            continue
        array = rounded_to_half(onnx.numpy_helper.to_array(tensor), name)
        if tensor.HasField("raw_data"):  # saves a copy of a large tensor
            tensor.raw_data = array.tobytes()
        else:
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    for node in _all_nodes(model):
        if node.op_type == "Constant":
            _change_numbers(node, rounded_to_half)
    return save_model(model, path.with_name(f"rounded_{path.name}"))


def rounded_to_half(array: Array, name: str) -> Array:
    """Return an array with its elements rounded to float16, as OpenVINO compresses it; the name does not matter.

    OpenVINO keeps an array as it is if float16 cannot hold most of its elements, and cuts the others off.
    """
    if array.dtype.kind != "f" or array.dtype.itemsize <= _HALF.bits // 8:
        return array
    with np.errstate(over="ignore", under="ignore"):
        sizes = np.abs(array)
        is_outside = (sizes > float(_HALF.max)) | ((sizes > 0) & (sizes < float(_HALF.smallest_subnormal)))
        if np.count_nonzero(is_outside) >= _MOSTLY * array.size:
            return array
        halves: Array = np.clip(array, float(_HALF.min), float(_HALF.max)).astype(np.float16)
    return halves.astype(array.dtype)


def _all_nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    yield from nodes_within(model.graph.node)
    for function in model.functions:
        yield from nodes_within(function.node)


def _tensors(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Yield initializers and the tensors of Constant nodes, with their names."""
    yield from _initializers(model.graph)
    for node in _all_nodes(model):
        for attribute in node.attribute:
            for graph in [attribute.g, *attribute.graphs] if attribute.HasField("g") else attribute.graphs:
                yield from _initializers(graph)
            if node.op_type == "Constant" and attribute.name == "value":
                yield node.output[0], attribute.t
            elif node.op_type == "Constant" and attribute.name == "sparse_value":
                yield node.output[0], attribute.sparse_tensor.values


def _initializers(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    yield from ((tensor.name, tensor) for tensor in graph.initializer)
    yield from ((sparse.values.name, sparse.values) for sparse in graph.sparse_initializer)


def _change_numbers(node: onnx.NodeProto, change: Callable[[Array, str], Array]) -> None:
    for attribute in node.attribute:
        if attribute.name == "value_float":
            attribute.f = float(change(np.asarray([attribute.f]), node.output[0])[0])
        elif attribute.name == "value_floats":
            attribute.floats[:] = change(np.asarray(attribute.floats), node.output[0]).tolist()
