"""Malformed tensors: initializers and attribute tensors whose data does not fit their type and shape.

A tensor without data is malformed too, except in an architecture: a model that was saved without its weights, for
display or to estimate sizes.
"""

from __future__ import annotations

from collections.abc import Iterator

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.graph.scopes import scopes
from splitgraph.onnx_proto import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto
from splitgraph.tensor_data import byte_size, lacks_data, misfit, misfit_of_sparse


class TensorCheck:
    """Checks the tensors of one model. lacking: the number of tensors without data in an architecture."""

    def __init__(self, model: ModelProto) -> None:
        self._model = model
        self._is_architecture: bool | None = None
        self.lacking = 0

    def problem(self, tensor: TensorProto) -> str | None:
        """What is wrong with a tensor; None for a sound one."""
        found = misfit(tensor)
        if found is not None or not lacks_data(tensor):
            return found
        if self._is_architecture is None:
            self._is_architecture = _is_architecture(self._model)
        if not self._is_architecture:
            return f"it has no elements, and its shape is {list(tensor.dims)}"
        self.lacking += 1
        return None

    def of_node(self, node: NodeProto) -> str | None:
        """What is wrong with the first malformed tensor among a node's attributes; None where all are sound."""
        for attribute in node.attribute:
            problem = self._of_attribute(attribute)
            if problem is not None:
                return f"attribute {attribute.name!r} of {node.op_type}: the tensor is malformed: {problem}"
        return None

    def _of_attribute(self, attribute: AttributeProto) -> str | None:
        if attribute.type == AttributeProto.TENSOR:
            return self.problem(attribute.t)
        if attribute.type == AttributeProto.TENSORS:
            return next(filter(None, map(self.problem, attribute.tensors)), None)
        if attribute.type == AttributeProto.SPARSE_TENSOR:
            return misfit_of_sparse(attribute.sparse_tensor)
        if attribute.type == AttributeProto.SPARSE_TENSORS:
            return next(filter(None, map(misfit_of_sparse, attribute.sparse_tensors)), None)
        return None

    def of_initializers(self, graph: GraphProto, location: str) -> Iterator[Diagnostic]:
        """A finding for each malformed initializer of a graph; only a warning if nothing reads the initializer."""
        problems = [(held.name, self.problem(held)) for held in graph.initializer]
        problems += [(sparse.values.name, misfit_of_sparse(sparse)) for sparse in graph.sparse_initializer]
        for name, problem in problems:
            if problem is None:
                continue
            if self._is_read(name):
                yield diagnostic("SG111", f"the initializer {name!r} is malformed: {problem}", location)
                continue
            text = f"the unused initializer {name!r} is malformed: {problem}"
            yield diagnostic("SG111", text, location, severity="warning", help="Remove the initializer.")

    def _is_read(self, name: str) -> bool:
        """True where a graph of the model reads or gives a value of this name."""
        graphs = [scope.proto for scope in scopes(self._model)]
        outputs = (value.name for graph in graphs if isinstance(graph, GraphProto) for value in graph.output)
        return name in outputs or any(name in node.input for graph in graphs for node in graph.node)

    def finding(self) -> Diagnostic | None:
        """The finding that the model is an architecture; None for a model that has its weights."""
        if not self.lacking:
            return None
        tensors = "1 tensor has a shape" if self.lacking == 1 else f"{self.lacking} tensors have shapes"
        return diagnostic("SG113", f"{tensors} but no elements: the weights were removed", "main", severity="warning")


def _is_architecture(model: ModelProto) -> bool:
    """True if more bytes are missing than present. A model that misses less is damaged."""
    given = lacking = 0
    constants = (attribute.t for node in model.graph.node if node.op_type == "Constant" for attribute in node.attribute)
    for tensor in (*model.graph.initializer, *constants):
        size = max(byte_size(tensor) or 0, 0)
        if lacks_data(tensor):
            lacking += size
        else:
            given += size
    return lacking > given
