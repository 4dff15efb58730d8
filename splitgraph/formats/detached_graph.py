"""A copy of a graphsurgeon graph that can be exported without a trace in the graph it was made of.

onnx_graphsurgeon's own export writes into what it exports (names into lazily loaded tensors, which belong to the
model that the graph was imported from; domains into import_domains), and its own `Graph.copy` forgets types (a
sequence becomes a tensor). This copy shares nothing that export writes to, shares the weights, and hands every
constant over as the TensorProto that it should become.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable
from numbers import Integral
from typing import Any

import numpy as np
import onnx
from onnx import numpy_helper
from onnx_graphsurgeon import Constant, Graph, Tensor
from onnx_graphsurgeon.ir.tensor import LazyValues, SparseValues

from splitgraph.formats.recognition import model_error

# The kinds of Variable that onnx_graphsurgeon's export can write down.
_WRITABLE_TYPES = {"tensor_type", "sequence_type", "sparse_tensor_type", None}


class Detacher:
    """Copies a graph with its subgraphs and functions.

    unwritten: the variables, by name, whose type export cannot write (optional, map, opaque), with what the graph
    knows of them: the kind and the TypeProto of its contents.
    """

    def __init__(self) -> None:
        self.unwritten: dict[str, tuple[str, Any]] = {}
        self._copies: dict[int, Any] = {}
        self._functions: list[Any] = []

    def graph(self, original: Any) -> Any:
        """Return the copy of a main graph with its functions. Raises ModelError for two different constants of one
        name.
        """
        self._functions = [self._graph(function) for function in original.functions]
        return self._graph(original)

    def _graph(self, original: Any) -> Any:
        if id(original) in self._copies:
            return self._copies[id(original)]
        duplicate = _bare_copy(original, self._copies)
        duplicate.inputs = [self._tensor(tensor) for tensor in original.inputs]
        duplicate.nodes = [self._node(node) for node in original.nodes]
        duplicate.outputs = [self._tensor(tensor) for tensor in original.outputs]
        duplicate._functions = self._functions
        if original.import_domains is not None:
            duplicate.import_domains = [copy.deepcopy(opset) for opset in original.import_domains]
        _require_one_constant_per_name(duplicate)
        return duplicate

    def _node(self, original: Any) -> Any:
        duplicate = _bare_copy(original, self._copies)
        vars(duplicate)["inputs"] = [self._tensor(tensor) for tensor in original.inputs]
        vars(duplicate)["outputs"] = [self._tensor(tensor) for tensor in original.outputs]
        duplicate.attrs = {name: self._attribute(value) for name, value in original.attrs.items()}
        return duplicate

    def _attribute(self, value: Any) -> Any:
        if isinstance(value, Graph):
            return self._graph(value)
        return self._tensor(value) if isinstance(value, Tensor) else value

    def _tensor(self, original: Any) -> Any:
        if id(original) in self._copies:
            return self._copies[id(original)]
        duplicate = _bare_copy(original, self._copies)
        vars(duplicate).update(inputs=[], outputs=[])
        if isinstance(original, Constant):
            duplicate._values = _exportable_values(original)
            return duplicate
        if duplicate.shape is not None:
            duplicate.shape = [_exportable_dim(dim) for dim in duplicate.shape]
        kind = vars(duplicate).get("type")
        if kind not in _WRITABLE_TYPES:
            self.unwritten[duplicate.name] = (str(kind), duplicate.dtype)
            duplicate.dtype = duplicate.shape = None
        return duplicate


def _bare_copy(original: Any, copies: dict[int, Any]) -> Any:
    # copy.copy recurses without end: Graph answers any missing attribute by reading others.
    duplicate = object.__new__(type(original))
    vars(duplicate).update(vars(original))
    copies[id(original)] = duplicate
    return duplicate


def _exportable_dim(dim: Any) -> Any:
    """graphsurgeon's -1 (Tensor.DYNAMIC) is an unknown dimension; NumPy's integers are integers."""
    if isinstance(dim, Integral):
        return int(dim) if int(dim) >= 0 else None
    return dim


def _exportable_values(constant: Any) -> Any:
    """Return the constant as lazily loaded values of its name, which export copies without looking inside.

    Export would write loaded values by itself, but float8e4m3fnuz as float8e4m3fn, and fails for strings and 4-bit
    types.
    """
    values = constant._values
    if not isinstance(values, LazyValues):
        return values if constant.export_dtype != values.dtype else LazyValues(_tensor_proto(values, constant.name))
    named = values.tensor.values if isinstance(values, SparseValues) else values.tensor
    if named.HasField("name") and named.name == constant.name:
        return values
    renamed = copy.copy(values)
    renamed.tensor = type(values.tensor)()
    renamed.tensor.CopyFrom(values.tensor)
    (renamed.tensor.values if isinstance(values, SparseValues) else renamed.tensor).name = constant.name
    return renamed


def _tensor_proto(values: Any, name: str) -> onnx.TensorProto:
    if not values.dtype.isnative:
        values = values.astype(values.dtype.newbyteorder("="))
    if values.dtype.kind in "US":
        values = values.astype(object)
    try:
        return numpy_helper.from_array(np.asarray(values), name)
    except (ValueError, TypeError, NotImplementedError) as error:
        raise model_error("SG111", f"constant {name!r} of NumPy type {values.dtype} has no ONNX type") from error


def _require_one_constant_per_name(graph: Any) -> None:
    """Refuse two different constants of one name: export would keep the last one and say so only in a log."""
    seen: dict[str, Any] = {}
    for tensor in _attached(graph):
        other = seen.setdefault(tensor.name, tensor)
        if other is tensor or not (isinstance(tensor, Constant) or isinstance(other, Constant)):
            continue
        if not _same_contents(tensor, other):
            raise model_error(
                "SG104", f"two different tensors are called {tensor.name!r}, at least one of them a constant"
            )


def _attached(graph: Any) -> Iterable[Any]:
    for tensors in (graph.inputs, *(node.inputs + node.outputs for node in graph.nodes), graph.outputs):
        yield from (tensor for tensor in tensors if tensor.name)


def _same_contents(one: Any, other: Any) -> bool:
    if not (isinstance(one, Constant) and isinstance(other, Constant)):
        return False
    if not (isinstance(one._values, LazyValues) and isinstance(other._values, LazyValues)):
        return one._values is other._values
    if one._values.tensor is other._values.tensor:
        return True
    return bool(one._values.tensor.SerializeToString() == other._values.tensor.SerializeToString())
