"""Decide whether a node of one model does the same as a node of the other one: the same operator in a version of the
same meaning, equal attributes, equal bodies, and the same values as inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import onnx

from splitgraph.differences.matching import without_omitted_end
from splitgraph.formats.constants import Folder, constant, different_attributes, sparse_constant
from splitgraph.model.scopes import called_function, function_key, opset_imports, plain_domain, subgraphs
from splitgraph.verification.regions.finding.equal_versions import means_same

# Whether two names, each read in its model, are of the same value; "" is an omitted one.
SameValue = Callable[[str, str], bool]


class Sameness:
    """Compares nodes of two models. folders: of the external data of each model."""

    def __init__(self, before: onnx.ModelProto, after: onnx.ModelProto, folders: tuple[Folder, Folder]) -> None:
        self._folders = folders
        self._functions = tuple(
            {function_key(function): function for function in model.functions} for model in (before, after)
        )
        self._imports = opset_imports(before.opset_import), opset_imports(after.opset_import)
        self._known_calls: dict[tuple[str, str, str], bool] = {}

    def are_same(self, before: onnx.NodeProto, after: onnx.NodeProto, is_same: SameValue) -> bool:
        """Return True if two nodes of the main graphs compute the same from the same values."""
        return self._are_same(before, after, is_same, self._imports)

    def have_bodies_of_one_kind(self, before: onnx.NodeProto, after: onnx.NodeProto, is_same: SameValue) -> bool:
        """Return True if two nodes of the main graphs are the same but for what is in their bodies, or in the function
        that both call.
        """
        key = called_function(before)
        if key != called_function(after) or len(before.output) != len(after.output):
            return False
        inputs, others = without_omitted_end(before.input[:]), without_omitted_end(after.input[:])
        if len(inputs) != len(others) or not all(map(is_same, inputs, others)):
            return False
        if different_attributes(before, after, self._folders):
            return False
        calls = [key in functions for functions in self._functions]
        if any(calls):
            return all(calls)
        opsets = [imported.get(plain_domain(before.domain)) for imported in self._imports]
        return bool(_bodies(before)) and (opsets[0] == opsets[1] or means_same(before, opsets))

    def same_tensors(self, before: onnx.TensorProto, after: onnx.TensorProto) -> bool:
        """Return True if two tensors have the same type and elements."""
        return constant(before, self._folders[0]).equals(constant(after, self._folders[1]))

    def same_sparse_tensors(self, before: onnx.SparseTensorProto, after: onnx.SparseTensorProto) -> bool:
        """Return True if two sparse tensors have the same type and elements."""
        return sparse_constant(before, self._folders[0]).equals(sparse_constant(after, self._folders[1]))

    def _are_same(
        self,
        before: onnx.NodeProto,
        after: onnx.NodeProto,
        is_same: SameValue,
        imports: tuple[Mapping[str, int], Mapping[str, int]],
    ) -> bool:
        if called_function(before) != called_function(after) or len(before.output) != len(after.output):
            return False
        if not self._means_same(before, imports):
            return False
        inputs, others = without_omitted_end(before.input[:]), without_omitted_end(after.input[:])
        if len(inputs) != len(others) or not all(map(is_same, inputs, others)):
            return False
        if not _bodies(before) and before.SerializeToString() == after.SerializeToString():
            return True
        if (before.attribute or after.attribute) and different_attributes(before, after, self._folders):
            return False
        return all(
            self._same_graphs(one, other, is_same, imports)
            for one, other in zip(_bodies(before), _bodies(after), strict=True)
        )

    def _means_same(self, node: onnx.NodeProto, imports: tuple[Mapping[str, int], Mapping[str, int]]) -> bool:
        """Return True if the operator of a node means the same in both models."""
        key = called_function(node)
        if any(key in functions for functions in self._functions):
            return self._same_functions(key)
        opsets = [imported.get(plain_domain(node.domain)) for imported in imports]
        return opsets[0] == opsets[1] or means_same(node, opsets)

    def _same_functions(self, key: tuple[str, str, str]) -> bool:
        if key not in self._known_calls:
            # A function that calls itself is no valid model.
            self._known_calls[key] = False
            before, after = (functions.get(key) for functions in self._functions)
            self._known_calls[key] = before is not None and after is not None and self._same_bodies(before, after)
        return self._known_calls[key]

    def _same_bodies(self, before: onnx.FunctionProto, after: onnx.FunctionProto) -> bool:
        interfaces = [(len(body.input), len(body.output), _defaults(body)) for body in (before, after)]
        if interfaces[0] != interfaces[1]:
            return False
        names = dict(zip(before.input, after.input, strict=True))
        imports = opset_imports(before.opset_import), opset_imports(after.opset_import)
        results = before.output, after.output
        return self._same_nodes((before.node, after.node), results, names, lambda *_: False, imports)

    def _same_graphs(
        self,
        before: onnx.GraphProto,
        after: onnx.GraphProto,
        outer: SameValue,
        imports: tuple[Mapping[str, int], Mapping[str, int]],
    ) -> bool:
        """Return True if two bodies do the same, node by node in the same order."""
        inputs = [[value.name for value in graph.input] for graph in (before, after)]
        tensors = before.initializer, after.initializer
        sparse = before.sparse_initializer, after.sparse_initializer
        pairs = (inputs, tensors, sparse)
        if any(len(one) != len(other) for one, other in pairs):
            return False
        if not all(map(self.same_tensors, *tensors)) or not all(map(self.same_sparse_tensors, *sparse)):
            return False
        names = dict(zip(*inputs, strict=True))
        names.update((one.name, other.name) for one, other in zip(*tensors, strict=True))
        names.update((one.values.name, other.values.name) for one, other in zip(*sparse, strict=True))
        results = [[value.name for value in graph.output] for graph in (before, after)]
        return self._same_nodes((before.node, after.node), (results[0], results[1]), names, outer, imports)

    def _same_nodes(
        self,
        nodes: tuple[Sequence[onnx.NodeProto], Sequence[onnx.NodeProto]],
        results: tuple[Sequence[str], Sequence[str]],
        names: dict[str, str],
        outer: SameValue,
        imports: tuple[Mapping[str, int], Mapping[str, int]],
    ) -> bool:
        if len(nodes[0]) != len(nodes[1]) or len(results[0]) != len(results[1]):
            return False
        taken = set(names.values())

        def is_same(name: str, other: str) -> bool:
            if name in names or other in taken:
                return names.get(name) == other
            return name == other if not name or not other else outer(name, other)

        for one, other in zip(*nodes, strict=True):
            if not self._are_same(one, other, is_same, imports):
                return False
            names.update((name, new) for name, new in zip(one.output, other.output, strict=True) if name)
            taken.update(other.output)
        return all(map(is_same, *results))


def _bodies(node: onnx.NodeProto) -> list[onnx.GraphProto]:
    """Return the graphs in the attributes of a node, by the names of these."""
    return [graph for _, _, graph in sorted(subgraphs(node), key=lambda part: part[:2])]


def _defaults(function: onnx.FunctionProto) -> list[bytes]:
    given = sorted(function.attribute)
    return [*(name.encode() for name in given), *sorted(a.SerializeToString() for a in function.attribute_proto)]
