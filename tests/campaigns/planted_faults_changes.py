"""What a conversion changed: the nodes of its result that the source does not have alike, and their constants.

Belongs to `planted_faults.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import onnx
from onnx import AttributeProto, FunctionProto, GraphProto, ModelProto, NodeProto, TensorProto

import splitgraph

OLDER_OPSETS = (18, 13, 11, 7)
FORMS = ("slice", "variadic-split")

# The way from the model to a graph: the number of a function or None, then pairs: the index of a node, and of its
# attribute.
Path = tuple[Any, ...]


def conversions(model: ModelProto) -> dict[str, Callable[[], splitgraph.Rewrite]]:
    """Return the conversions of a model, by name: to the newest opset, to older ones, and to other forms of splits."""
    opset = next((entry.version for entry in model.opset_import if entry.domain in ("", "ai.onnx")), None)
    newest = onnx.defs.onnx_opset_version()
    found: dict[str, Callable[[], splitgraph.Rewrite]] = {}
    if opset is not None and opset < newest:
        found[f"upgrade {newest}"] = lambda: splitgraph.upgrade(model, newest)
    for older in OLDER_OPSETS:
        if opset is not None and older < opset:
            found[f"downgrade {older}"] = lambda older=older: splitgraph.downgrade(model, older)  # type: ignore[misc]
    if any("Split" in node.op_type for scope in scopes(model) for node in scope.graph.node):
        for form in FORMS:
            found[form] = lambda form=form: splitgraph.convert(model, form)  # type: ignore[misc]
    return found


# Graphs -----------------------------------------------------------------------------------------------------------


class Scope(NamedTuple):
    """A graph of a model, or the body of a function. name: for people. outer: the graph around it."""

    path: Path
    name: str
    graph: GraphProto | FunctionProto
    outer: Scope | None


def scopes(model: ModelProto) -> Iterator[Scope]:
    """Every graph of a model: the main one, those of its nodes, and the bodies of its functions."""
    yield from _with_inner(Scope((None,), "main", model.graph, None))
    for number, function in enumerate(model.functions):
        yield from _with_inner(Scope((number,), f"function {function.name}", function, None))


def _with_inner(scope: Scope) -> Iterator[Scope]:
    yield scope
    for index, node in enumerate(scope.graph.node):
        for number, attribute in enumerate(node.attribute):
            if attribute.type == AttributeProto.GRAPH:
                path = (*scope.path, (index, number))
                yield from _with_inner(Scope(path, f"{scope.name}/{index}.{attribute.name}", attribute.g, scope))


def graph_at(model: ModelProto, path: Path) -> GraphProto | FunctionProto:
    """Return the graph of a path."""
    graph = model.graph if path[0] is None else model.functions[path[0]]
    for index, number in path[1:]:
        graph = graph.node[index].attribute[number].g
    return graph


# Changed nodes ----------------------------------------------------------------------------------------------------


class ChangedNode(NamedTuple):
    """A node that a conversion wrote, edited, or took to another version of its operator.

    change: "written", or "renumbered" where only the version differs. before: the node of the source that has the same
    first output and operator; None without one.
    """

    scope: Scope
    index: int
    node: NodeProto
    change: str
    before: NodeProto | None

    @property
    def place(self) -> str:
        """Return graph and index."""
        return f"{self.scope.name}/{self.index}"


def changed_nodes(source: ModelProto, result: ModelProto) -> Iterator[ChangedNode]:
    """The nodes of a result that the source does not have alike."""
    versions = _versions(source), _versions(result)
    alike = {with_version: Counter[Any]() for with_version in (True, False)}
    by_output: dict[tuple[str, str], NodeProto] = {}
    for scope in scopes(source):
        for node in scope.graph.node:
            form = _form(node)
            alike[True][form, _since(node, versions[0])] += 1
            alike[False][form] += 1
            by_output.setdefault((node.op_type, node.output[0] if node.output else ""), node)
    for scope in scopes(result):
        for index, node in enumerate(scope.graph.node):
            form = _form(node)
            key = form, _since(node, versions[1])
            is_known = alike[False][form] > 0
            alike[False][form] -= 1
            alike[True][key] -= 1
            if alike[True][key] < 0:
                before = by_output.get((node.op_type, node.output[0] if node.output else ""))
                yield ChangedNode(scope, index, node, "renumbered" if is_known else "written", before)


def new_initializers(source: ModelProto, result: ModelProto) -> Iterator[tuple[Scope, TensorProto]]:
    """The initializers of a result that the source does not have, by name and content."""
    known = {_content(tensor) for scope in scopes(source) for tensor in initializers(scope)}
    for scope in scopes(result):
        for tensor in initializers(scope):
            if _content(tensor) not in known:
                yield scope, tensor


def initializers(scope: Scope) -> list[TensorProto]:
    """Return the initializers of a graph; the body of a function has none."""
    return list(scope.graph.initializer) if isinstance(scope.graph, GraphProto) else []


def _content(tensor: TensorProto) -> tuple[str, bytes]:
    return tensor.name, onnx.numpy_helper.to_array(tensor).tobytes() if tensor.data_type != TensorProto.STRING else (
        tensor.SerializeToString(deterministic=True)
    )


def _versions(model: ModelProto) -> dict[str, int]:
    return {entry.domain.replace("ai.onnx.", "."): entry.version for entry in model.opset_import}


def _since(node: NodeProto, versions: Mapping[str, int]) -> int:
    """Return the version of a node's operator; 0 for one that has no schema."""
    domain = "" if node.domain == "ai.onnx" else node.domain
    opset = versions.get(domain.replace("ai.onnx.", "."), 1)
    if not onnx.defs.has(node.op_type, domain):
        return 0
    try:
        return int(onnx.defs.get_schema(node.op_type, opset, domain).since_version)
    except onnx.defs.SchemaError:
        return 0


def _form(node: NodeProto) -> bytes:
    """Return a node without name and comments, and without the nodes of its graphs, which are compared on their own."""
    form = NodeProto(op_type=node.op_type, domain=node.domain, input=node.input, output=node.output)
    for attribute in sorted(node.attribute, key=lambda attribute: attribute.name):
        if attribute.type == AttributeProto.GRAPH:
            form.attribute.add(name=attribute.name)
        else:
            form.attribute.add().CopyFrom(attribute)
    return bytes(form.SerializeToString(deterministic=True))


# Constants --------------------------------------------------------------------------------------------------------


class Constant(NamedTuple):
    """A tensor of a model: the initializer of this name, or the attribute of the node at this index.

    path: of its graph. key: name or index. attribute: the name of the node's attribute, "" for an initializer.
    """

    path: Path
    key: str | int
    tensor: TensorProto
    attribute: str = ""

    def in_copy(self, model: ModelProto) -> TensorProto:
        """Return the same tensor of a copy of the model."""
        graph = graph_at(model, self.path)
        if not self.attribute:
            return next(tensor for tensor in graph.initializer if tensor.name == self.key)
        return next(each.t for each in graph.node[self.key].attribute if each.name == self.attribute)


class Values:
    """The constants of a model, and the types of its values."""

    def __init__(self, model: ModelProto) -> None:
        self._model = model
        self._constants: dict[Path, dict[str, Constant]] = {}

    def constant(self, scope: Scope, name: str) -> Constant | None:
        """Return the constant that a name stands for in a graph; None if it stands for none."""
        inner: Scope | None = scope
        while inner is not None and name:
            if inner.path not in self._constants:
                self._constants[inner.path] = _constants(inner)
            if name in self._constants[inner.path]:
                return self._constants[inner.path][name]
            inner = inner.outer
        return None

    @cached_property
    def types(self) -> dict[str, tuple[int, tuple[object, ...] | None]]:
        """Element type and shape of each value by its name; those in functions are not known."""
        found = {}
        for scope in scopes(splitgraph.infer(self._model).model):
            if not isinstance(scope.graph, GraphProto):
                continue
            for tensor in scope.graph.initializer:
                found[tensor.name] = tensor.data_type, tuple(tensor.dims)
            for value in (*scope.graph.input, *scope.graph.value_info, *scope.graph.output):
                of_tensor = value.type.tensor_type
                dims = tuple(dim.dim_param or dim.dim_value for dim in of_tensor.shape.dim)
                if of_tensor.elem_type:
                    found[value.name] = of_tensor.elem_type, dims if of_tensor.HasField("shape") else None
        return found


def _constants(scope: Scope) -> dict[str, Constant]:
    found = {tensor.name: Constant(scope.path, tensor.name, tensor) for tensor in initializers(scope)}
    for index, node in enumerate(scope.graph.node):
        if node.op_type == "Constant" and len(node.attribute) == 1 and node.attribute[0].type == AttributeProto.TENSOR:
            (attribute,) = node.attribute
            found[node.output[0]] = Constant(scope.path, index, attribute.t, attribute.name)
    return found
