"""List the nodes of a model, and edit a private copy so that an engine can read it, without changing its meaning."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from functools import cache

import onnx

from splitgraph.dim import marks_unknown
from splitgraph.graph.names import declared_values, used_names
from splitgraph.graph.scopes import scopes
from splitgraph.graph.values import tensor_types

_DEFAULT_DOMAINS = ("", "ai.onnx")

OpsetImports = dict[str, int]


def scoped_nodes(model: onnx.ModelProto) -> Iterator[tuple[onnx.NodeProto, OpsetImports]]:
    """Yield every node of all graphs, subgraphs and functions of a model, with the opset imports that apply to it."""
    imports = _imports(model.opset_import)
    yield from ((node, imports) for node in nodes_within(model.graph.node))
    for function in model.functions:
        imports = _imports(function.opset_import)
        yield from ((node, imports) for node in nodes_within(function.node))


def nodes_within(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    """Yield nodes and, after each, the nodes of its subgraphs."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.HasField("g"):
                yield from nodes_within(attribute.g.node)
            for graph in attribute.graphs:
                yield from nodes_within(graph.node)


def is_default_domain(domain: str) -> bool:
    """Return True for ai.onnx, under either of its names."""
    return domain in _DEFAULT_DOMAINS


def since_version(node: onnx.NodeProto, imports: OpsetImports) -> int | None:
    """Return the version of an ai.onnx operator that the opset import selects; None if the operator does not exist."""
    try:
        return int(onnx.defs.get_schema(node.op_type, imports.get("", 0)).since_version)
    except onnx.defs.SchemaError:
        return None


def name_omitted_outputs(model: onnx.ModelProto, *, of_splits_only: bool = True) -> None:
    """Name the omitted outputs of every Split, or of every node.

    onnxruntime 1.31 crashes on Split(x) -> "a", "". The evaluator of onnx stores an omitted output under the name ""
    and passes it to every later node as an omitted input.
    """
    taken = set(used_names(model))
    fresh = (name for number in itertools.count() if (name := f"omitted_{number}") not in taken)
    for node, _ in scoped_nodes(model):
        if "" not in node.output:
            continue
        if not of_splits_only or (node.op_type == "Split" and is_default_domain(node.domain)):
            node.output[:] = [name or next(fresh) for name in node.output]


def clear_unknown_marks(model: onnx.ModelProto) -> None:
    """Remove the texts that mark dimensions as unknown. onnxruntime takes such a text for the name of one dimension and
    lets values of different sizes share memory ("Shape mismatch attempting to re-use buffer").
    """
    for scope in scopes(model):
        for value in declared_values(scope):
            for tensor in tensor_types(value.type):
                for dim in tensor.shape.dim:
                    if dim.HasField("dim_param") and marks_unknown(dim.dim_param):
                        dim.ClearField("dim_param")


def oldest_equal_opset(model: onnx.ModelProto) -> int:
    """Return the oldest opset at which every ai.onnx operator of a model is the same, except for element types."""
    versions = [1]
    for node, imports in scoped_nodes(model):
        if is_default_domain(node.domain):
            version = since_version(node, imports)
            versions.append(imports.get("", 1) if version is None else _oldest_same(node.op_type, version))
    return max(versions)


@cache
def _oldest_same(op_type: str, version: int) -> int:
    """Return the oldest version of an operator since which each version only added element types."""
    newer = onnx.defs.get_schema(op_type, version)
    if version == 1:
        return version
    try:
        older = onnx.defs.get_schema(op_type, version - 1)
    except onnx.defs.SchemaError:
        return version
    return _oldest_same(op_type, older.since_version) if _only_adds_types(older, newer) else version


def _only_adds_types(older: onnx.defs.OpSchema, newer: onnx.defs.OpSchema) -> bool:
    """Return True if the newer schema differs only in element types, and allows all types of the older one."""
    if older.doc != newer.doc or _signature(older) != _signature(newer):
        return False
    types = [
        {constraint.type_param_str: set(constraint.allowed_type_strs) for constraint in schema.type_constraints}
        for schema in (older, newer)
    ]
    return types[0].keys() == types[1].keys() and all(types[0][name] <= types[1][name] for name in types[0])


def _signature(schema: onnx.defs.OpSchema) -> tuple[object, ...]:
    attributes = {
        item.name: (item.type, item.required, item.default_value.SerializeToString(), item.description)
        for item in schema.attributes.values()
    }
    parameters = [
        [(item.name, item.option, item.is_homogeneous, item.type_str) for item in items]
        for items in (schema.inputs, schema.outputs)
    ]
    return attributes, parameters, schema.min_input, schema.max_input, schema.min_output, schema.max_output


def relabel(model: onnx.ModelProto, opset: int, ir_version: int) -> bool:
    """Lower the opset and the IR version of a model to the given ones, if that changes no operator.

    Returns True if the model was changed.
    """
    changed = False
    if model.ir_version > ir_version:
        model.ir_version = ir_version
        changed = True
    if oldest_equal_opset(model) > opset:
        return changed
    for imported in itertools.chain(model.opset_import, *(function.opset_import for function in model.functions)):
        if is_default_domain(imported.domain) and imported.version > opset:
            imported.version = opset
            changed = True
    return changed


def _imports(opset_import: Iterable[onnx.OperatorSetIdProto]) -> OpsetImports:
    return {"" if is_default_domain(item.domain) else item.domain: item.version for item in opset_import}
