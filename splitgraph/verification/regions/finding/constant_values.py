"""The constants of a main graph, and which of them are equal."""

from __future__ import annotations

from collections.abc import Collection

import onnx

from splitgraph.model.tensor_data import first_elements, is_external
from splitgraph.model.values import tensor_items
from splitgraph.verification.models.model_pair import caller_inputs
from splitgraph.verification.regions.finding.constants import dense_tensor
from splitgraph.verification.regions.finding.sameness import Sameness

# Of a constant, so many bytes are looked at before it is compared as a whole.
_COMPARED_BYTES = 64


class Constants:
    """The constants of a main graph: initializers that no caller replaces, and the results of Constant nodes."""

    def __init__(self, model: onnx.ModelProto, left_out: Collection[str]) -> None:
        """left_out: inputs that are never given."""
        given = caller_inputs(model).keys() - set(left_out)
        graph = model.graph
        self.tensors = {tensor.name: tensor for tensor in graph.initializer if tensor.name not in given}
        self.sparse = {sparse.values.name: sparse for sparse in graph.sparse_initializer}
        self.nodes = {node.output[0]: node for node in graph.node if node.op_type == "Constant" and node.output}
        self._told: dict[str, tuple[object, ...]] = {}

    def __contains__(self, name: str) -> bool:
        return name in self.tensors or name in self.nodes or name in self.sparse

    def tensor(self, name: str) -> onnx.TensorProto | None:
        """Return a dense constant as a tensor, however a Constant writes it; None for a sparse one."""
        node = self.nodes.get(name)
        if node is None or name in self.tensors:
            return self.tensors.get(name)
        tensor = dense_tensor(node)
        if tensor is not None:
            self.tensors[name] = tensor
        return tensor

    def told(self, name: str) -> tuple[object, ...]:
        """Return what equal constants have in common: type, dimensions, and a few elements that are in memory."""
        if name not in self._told:
            tensor = self.tensor(name)
            items = None if tensor is None or is_external(tensor) else _first_items(tensor)
            kind = None if tensor is None else (tensor.data_type, tuple(tensor.dims))
            self._told[name] = kind, repr(items)
        return self._told[name]


class ConstantPairs:
    """Compares constants of two graphs, each pair once."""

    def __init__(self, before: Constants, after: Constants, sameness: Sameness) -> None:
        self._before, self._after, self._sameness = before, after, sameness
        self._known: dict[tuple[str, str], bool] = {}

    def are_same(self, name: str, other: str) -> bool:
        """Return True if two constants have the same type and elements."""
        if (name, other) not in self._known:
            self._known[name, other] = self._compare(name, other)
        return self._known[name, other]

    def _compare(self, name: str, other: str) -> bool:
        one, two = self._before, self._after
        tensors = one.tensor(name), two.tensor(other)
        if tensors[0] is not None and tensors[1] is not None:
            return self._sameness.same_tensors(tensors[0], tensors[1])
        if name in one.sparse and other in two.sparse:
            return self._sameness.same_sparse_tensors(one.sparse[name], two.sparse[other])
        node, new = one.nodes.get(name), two.nodes.get(other)
        return node is not None and new is not None and self._sameness.are_same(node, new, lambda *_: False)


def _first_items(tensor: onnx.TensorProto) -> object:
    """Return the first elements of a tensor, the same for every way to store them."""
    return tensor_items(first_elements(tensor, _COMPARED_BYTES))
