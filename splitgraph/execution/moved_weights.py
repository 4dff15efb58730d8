"""A copy of a model with its weights moved, to see whether its outputs depend on them at all.

Each floating-point number is made larger by about three tenths: not by the same factor, as a model that normalises
would hide that, and all of them in the same direction, as a saturated function could leave saturation in the other.
"""

from __future__ import annotations

import zlib
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from splitgraph.execution.comparison import is_finite
from splitgraph.execution.dependence import is_weight
from splitgraph.execution.model_edits import nodes_within
from splitgraph.execution.model_files import read_elements, save_model
from splitgraph.tensor_bytes import byte_size, is_external

Array = npt.NDArray[Any]


@dataclass(frozen=True, slots=True)
class Move:
    """How the weights are moved: each times a number between `least` and `most`; tensors of fewer than `smallest`
    elements are left alone. is_for_integers: only what it does to outputs without fractions counts.
    """

    least: float = 1.2
    most: float = 1.4
    smallest: int = 1
    is_for_integers: bool = False


# In this order, until the copy runs: a deep model may overflow, and a small tensor may be a ratio or a threshold. The
# index of the largest of a few numbers takes more to change; no integer is in saturation in one direction only.
MOVES = (Move(), Move(1.02, 1.04), Move(smallest=9), Move(0.25, 4.0, is_for_integers=True))

# Bytes of weights in files that are moved.
_MOST_READ = 2**25

_FACTORS = np.random.default_rng(0).uniform(size=1009)


def move_onnx(path: Path, folder: Path | None, kept: Collection[str], move: Move) -> Path:
    """Write a copy of an ONNX file with its weights moved beside it, but for those of the names `kept`. Of weights that
    are in files, which may be large, only so many are moved that it does not take long, small ones first.

    folder: of its external data.
    """
    model = onnx.load(str(path), load_external_data=False)
    movable = [(name, tensor) for name, tensor in _tensors(model) if name not in kept and is_weight(tensor)]
    taken = 0
    for name, tensor in sorted(movable, key=lambda each: byte_size(each[1]) or 0):
        if is_external(tensor):
            taken += byte_size(tensor) or 0
            if taken > _MOST_READ:
                continue
            elements = read_elements(tensor, folder or path.parent)
            tensor.CopyFrom(onnx.numpy_helper.from_array(moved(elements, name, move), tensor.name))
            continue
        array = moved(onnx.numpy_helper.to_array(tensor), name, move)
        if tensor.HasField("raw_data"):  # without one more copy of what may be large
            tensor.raw_data = array.tobytes()
        else:
            tensor.CopyFrom(onnx.numpy_helper.from_array(array, tensor.name))
    for node in _all_nodes(model):
        if node.op_type == "Constant" and node.output[0] not in kept:
            _move_numbers(node, move)
    return save_model(model, path.with_name(f"moved_{path.name}"))


def moved(array: Array, name: str, move: Move) -> Array:
    """The array moved, finite where it was; the same for the same name."""
    if array.size < move.smallest:
        return array
    # Narrow types have no arithmetic of their own, or too coarse a one.
    result = array.astype(array.dtype if array.dtype.kind in "fc" and array.dtype.itemsize > 2 else np.float32).ravel()
    first = zlib.crc32(name.encode("utf-8", "surrogatepass")) % _FACTORS.size
    factors = (move.least + (move.most - move.least) * np.roll(_FACTORS, -first)).astype(result.real.dtype)
    whole = result.size - result.size % factors.size
    with np.errstate(over="ignore", invalid="ignore"):
        result[:whole].reshape(-1, factors.size)[:] *= factors
        result[whole:] *= factors[: result.size - whole]
        narrow = result.astype(array.dtype, copy=False).reshape(array.shape)
    kept = is_finite(narrow)
    return narrow if kept.all() else np.where(kept, narrow, array)


def _all_nodes(model: onnx.ModelProto) -> Iterator[onnx.NodeProto]:
    yield from nodes_within(model.graph.node)
    for function in model.functions:
        yield from nodes_within(function.node)


def _tensors(model: onnx.ModelProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    """Initializers and tensors of Constants, by name."""
    yield from _initializers(model.graph)
    for node in _all_nodes(model):
        for attribute in node.attribute:
            for graph in _graphs(attribute):
                yield from _initializers(graph)
            if node.op_type == "Constant" and attribute.name == "value":
                yield node.output[0], attribute.t
            elif node.op_type == "Constant" and attribute.name == "sparse_value":
                yield node.output[0], attribute.sparse_tensor.values


def _graphs(attribute: onnx.AttributeProto) -> Iterable[onnx.GraphProto]:
    return [attribute.g, *attribute.graphs] if attribute.HasField("g") else attribute.graphs


def _initializers(graph: onnx.GraphProto) -> Iterator[tuple[str, onnx.TensorProto]]:
    yield from ((tensor.name, tensor) for tensor in graph.initializer)
    yield from ((sparse.values.name, sparse.values) for sparse in graph.sparse_initializer)


def _move_numbers(node: onnx.NodeProto, move: Move) -> None:
    for attribute in node.attribute:
        if attribute.name == "value_float" and move.smallest <= 1:
            attribute.f = float(moved(np.asarray([attribute.f]), node.output[0], move)[0])
        elif attribute.name == "value_floats":
            attribute.floats[:] = moved(np.asarray(attribute.floats), node.output[0], move).tolist()
