"""Write what a region makes of constants alone as a constant, and sparse constants as dense ones.

One tool stores a table that another one puts together of two, turned, in another shape, or scaled. As a constant, it is
compared with that of the other model: a run must read the rows that differ, and positions are drawn for these. So is
what one model computes and the other one holds, where every engine computes it alike.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import onnx

from splitgraph.conversion.folding.certainty import is_certain, may_be_certain
from splitgraph.inference.computed_values import NOT_COMPUTED, is_computed_alike
from splitgraph.model.schemas import kinds
from splitgraph.model.schemas.history import meant_version
from splitgraph.model.schemas.kinds import may_draw
from splitgraph.model.scopes import opset_imports, reads, subgraphs
from splitgraph.model.tensor_data import byte_size
from splitgraph.verification.models.model_files import elements_of, is_default_domain
from splitgraph.verification.reference.deferred import evaluator
from splitgraph.verification.values import Array, UnsupportedError, Value

if TYPE_CHECKING:
    pass

# Scatters may write twice to a place, and some engines add what a Where chooses to zeros. Expand and Tile may make much
# more than they read.
_MOVING = kinds.PICKED - {"Expand", "Tile"} | {"Concat"}
# Operators whose result is the nearest number, so that all engines give the same.
_SCALING = frozenset({"Abs", "Add", "DequantizeLinear", "Div", "Mul", "Neg", "Sub"})
# Constants of more bytes are not moved, and not scaled.
_MOST_BYTES = 2**28
# What computes otherwise reads no more than this.
_MOST_COMPUTED = 2**20
# The kinds of elements that NumPy itself has.
_PLAIN = "fiubc"


class KnownWithin(NamedTuple):
    """What is known of the values of a region, by name. elements: of inputs that are the same in every run. shapes: of
    values whose sizes are.
    """

    elements: Mapping[str, Array]
    shapes: Mapping[str, tuple[int, ...]]


def folded(model: onnx.ModelProto, folder: Path | None, given: KnownWithin | None = None) -> onnx.ModelProto:
    """Return a model of a region in which what is the same in every run is a constant. folder: of external data."""
    model = _with_dense(model, folder)
    known = _Known(model, folder, given or KnownWithin({}, {}))
    gone = {index for index, node in enumerate(model.graph.node) if known.add(node)}
    if not gone:
        return model
    graph = model.graph
    left = [node for index, node in enumerate(graph.node) if index not in gone]
    wanted = dict.fromkeys(name for node in left for name in reads(node) if name in known.made)
    wanted |= dict.fromkeys(value.name for value in graph.output if value.name in known.made)
    return _with_constants(model, left, {name: known.made[name] for name in wanted})


def computed_tables(model: onnx.ModelProto, folder: Path | None) -> dict[str, Array]:
    """Return what nodes of the main graph compute of constants alone, by whatever function: other engines may round
    these elements otherwise. By name. folder: of external data.
    """
    known = _Known(model, folder, KnownWithin({}, {}), is_rounded=True)
    for node in model.graph.node:
        known.add(node)
    return known.made


class _Known:
    """The constants of a model, and what nodes move or compute of them. made: by the nodes that were added. is_rounded:
    with what engines round in their own ways.
    """

    def __init__(
        self, model: onnx.ModelProto, folder: Path | None, given: KnownWithin, *, is_rounded: bool = False
    ) -> None:
        self._model, self._folder, self._given, self._is_rounded = model, folder, given, is_rounded
        self._tensors = dict(_tensors(model.graph))
        self._imports = opset_imports(model.opset_import)
        self.made: dict[str, Array] = {}

    def add(self, node: onnx.NodeProto) -> bool:
        """Add what a node makes of constants alone; return True if every engine makes the same."""
        version = meant_version(node.op_type, self._imports.get("", 1)) if is_default_domain(node.domain) else None
        given = [name for name in node.input if name]
        if version is None or not given or not all(self._is_known(node, name) for name in given):
            return False
        is_moving, is_scaling = node.op_type in _MOVING, node.op_type in _SCALING
        if not (is_moving or is_scaling or self._may_compute(node, version.since_version)):
            return False
        bytes_read = sum(self._size(name) for name in given)
        if bytes_read > (_MOST_BYTES if is_moving or is_scaling else _MOST_COMPUTED):
            return False
        arrays = {name: self._array(name) for name in given}
        if any(array.dtype.kind not in _PLAIN for array in arrays.values()):
            return False
        read = [arrays[name] if name else None for name in node.input]
        made = self._run(node, arrays) if is_computed_alike(node, read) else None
        if made is None or not all(isinstance(value, np.ndarray) for value in made):
            return False
        is_known = is_moving or self._is_rounded
        if not is_known and not is_certain(node.op_type, read, [np.asarray(value) for value in made]):
            return False
        names = [name for name in node.output if name]
        self.made.update((name, np.asarray(value)) for name, value in zip(names, made, strict=True))
        return True

    def _may_compute(self, node: onnx.NodeProto, since_version: int) -> bool:
        if not self._is_rounded:
            return may_be_certain(node.op_type, since_version)
        return not may_draw(node) and not any(True for _ in subgraphs(node))

    def _is_known(self, node: onnx.NodeProto, name: str) -> bool:
        if name in self.made or name in self._tensors or name in self._given.elements:
            return True
        return node.op_type in kinds.SIZES and name in self._given.shapes

    def _size(self, name: str) -> float:
        if name in self._tensors and name not in self.made:
            return byte_size(self._tensors[name]) or math.inf
        known = self.made.get(name, self._given.elements.get(name))
        return 0 if known is None else known.nbytes

    def _array(self, name: str) -> Array:
        if name in self.made:
            return self.made[name]
        if name in self._tensors:
            return np.asarray(elements_of(self._tensors[name], self._folder))
        if name in self._given.elements:
            return self._given.elements[name]
        # Only its shape is read.
        return np.broadcast_to(np.float32(0), self._given.shapes[name])

    def _run(self, node: onnx.NodeProto, arrays: Mapping[str, Array]) -> list[Value] | None:
        """Return what a node gives; None for a wrong node, of which an engine says what is wrong."""
        part = onnx.ModelProto(ir_version=self._model.ir_version, opset_import=self._model.opset_import)
        part.graph.name = "known"
        part.graph.node.append(node)
        part.graph.input.extend(onnx.ValueInfoProto(name=name) for name in arrays)
        part.graph.output.extend(onnx.ValueInfoProto(name=name) for name in node.output if name)
        try:
            with np.errstate(divide="raise", invalid="raise", over="raise"):
                return evaluator.run(evaluator.load(part), arrays)
        except (*NOT_COMPUTED, UnsupportedError):
            return None


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


def _with_constants(model: onnx.ModelProto, left: list[onnx.NodeProto], moved: dict[str, Array]) -> onnx.ModelProto:
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
