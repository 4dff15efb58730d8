"""onnx_graphsurgeon graphs in and out.

A graph goes in by graphsurgeon's own export and comes back by its own import, each with its known faults mended, so
that nothing is lost but what a `gs.Graph` has no place for (measured with onnx_graphsurgeon 0.6.1):

- of the model: domain, model version, doc string, metadata, training graphs; of nodes: doc strings, metadata,
  function overloads;
- initializers that nothing reads; quantization annotations; denotations of types and dimensions; the value_info of
  functions;
- the shape of a sequence's or sparse tensor's elements, and what a map or opaque value holds.

Also changed on the way, in form but not in meaning: a constant of a function becomes a Constant node of it; -1 in a
shape (`Tensor.DYNAMIC`) becomes None; loaded values become lazily loaded ones; attributes given as NumPy values
become Python's.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any

from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats.recognition import model_error
from splitgraph.model.deferred import np
from splitgraph.model.onnx_proto import (
    AttributeProto,
    FunctionProto,
    GraphProto,
    ModelProto,
    NodeProto,
    TensorProto,
    TypeProto,
    ValueInfoProto,
)

# Attributes that graphsurgeon's import skips (with a line in its log), and the fields that hold them.
_SKIPPED_FIELDS = {
    AttributeProto.SPARSE_TENSOR: "sparse_tensor",
    AttributeProto.TYPE_PROTO: "tp",
    AttributeProto.TENSORS: "tensors",
    AttributeProto.GRAPHS: "graphs",
    AttributeProto.SPARSE_TENSORS: "sparse_tensors",
    AttributeProto.TYPE_PROTOS: "type_protos",
}


def is_graphsurgeon(value: object) -> bool:
    """Return True for an onnx_graphsurgeon.Graph; does not import the library, since whoever has a graph of it has
    imported it.
    """
    return isinstance(value, getattr(sys.modules.get("onnx_graphsurgeon"), "Graph", ()))


def to_model(graph: Any) -> ModelProto:
    """Return the ModelProto of a gs.Graph; the graph, and the model that it was imported from, are not touched.

    Raises ModelError: SG104 two different tensors of one name, SG111 a graph that ONNX cannot express.
    """
    import onnx_graphsurgeon as gs

    from splitgraph.formats.detached_graph import Detacher

    detacher = Detacher()
    with _quiet_and_guarded("written as an ONNX model"):
        detached = detacher.graph(graph)
        empty_lists = _take_empty_lists(detached)
        model: ModelProto = gs.export_onnx(detached, do_type_check=False)
        for body, proto in _bodies(detached, model):
            opsets = {opset.domain: opset.version for opset in proto.opset_import}
            for node, node_proto in _node_pairs(body, proto.graph if proto is model else proto):
                node_proto.attribute.extend(
                    _empty_list(node_proto, name, opsets) for name in empty_lists.get(id(node), ())
                )
        for value in (*model.graph.input, *model.graph.output):
            _write_type(value, detacher.unwritten, required=True)
        _tidy_subgraphs(model.graph.node, _constants(model.graph.node, model.graph.initializer), detacher.unwritten)
        for function in model.functions:
            _tidy_subgraphs(function.node, _constants(function.node, ()), detacher.unwritten)
    return model


def from_model(model: ModelProto, template: Any = None) -> Any:
    """Return the gs.Graph of a ModelProto, which must not be changed afterwards: the graph reads its weights from it
    when asked.

    template: the graph that the model came from; what a ModelProto has no place for (no fixed IR version, the counter
    behind generated names) is taken over. Raises ModelError (SG111) for a model that graphsurgeon cannot import.
    """
    import onnx_graphsurgeon as gs

    with _quiet_and_guarded("read into a graphsurgeon graph"):
        importable = _without_binary_strings(model)
        graph = gs.import_onnx(importable)
        for body, proto in _bodies(graph, model):
            for node, node_proto in _node_pairs(body, proto.graph if proto is model else proto):
                node.attrs.update(_unimported(node_proto.attribute))
            if proto is not model:
                body.attrs.update(_unimported(proto.attribute_proto))
        _restore_default_inputs(graph, importable.graph)
    if template is not None:
        graph.name_idx = template.name_idx
        graph.ir_version = None if template.ir_version is None else graph.ir_version
    return graph


@contextlib.contextmanager
def _quiet_and_guarded(purpose: str) -> Iterator[None]:
    """Keep graphsurgeon's log off stdout, and turn whatever it raises into a ModelError."""
    from onnx_graphsurgeon.logger import G_LOGGER

    severity = G_LOGGER.severity
    G_LOGGER.severity = G_LOGGER.CRITICAL + 1
    try:
        yield
    except ModelError:
        raise
    except Exception as error:
        # It raises whatever its code runs into: assertions, KeyError, UnboundLocalError.
        reason = " ".join(str(error).split()) or "no reason given"
        message = f"the onnx_graphsurgeon graph cannot be {purpose}: {type(error).__name__}: {reason}"
        raise model_error("SG111", message) from error
    finally:
        G_LOGGER.severity = severity


def _bodies(graph: Any, model: ModelProto) -> Iterator[tuple[Any, Any]]:
    """Yield the main graph beside its model, then each function beside its FunctionProto."""
    yield graph, model
    yield from zip(graph.functions, model.functions, strict=True)


def _node_pairs(graph: Any, proto: Any) -> Iterator[tuple[Any, NodeProto]]:
    """Yield every node of a graph beside its NodeProto, subgraphs included; export puts a function's constants before
    its other nodes.
    """
    for node, node_proto in zip(graph.nodes, proto.node[len(proto.node) - len(graph.nodes) :], strict=True):
        yield node, node_proto
        for attribute in node_proto.attribute:
            if attribute.type == AttributeProto.GRAPH and not attribute.ref_attr_name:
                yield from _node_pairs(node.attrs[attribute.name], attribute.g)


def _take_empty_lists(graph: Any) -> dict[int, list[str]]:
    """Take the attributes that are empty lists off every node: export cannot tell what they would be lists of."""
    taken: dict[int, list[str]] = {}
    pending = [*graph.nodes, *(node for function in graph.functions for node in function.nodes)]
    visited: set[int] = set()
    while pending:
        node = pending.pop()
        if id(node) in visited:
            continue
        visited.add(id(node))
        for subgraph in node.subgraphs():
            pending += subgraph.nodes
        lists = (list, tuple, np.ndarray)
        empty = [name for name, value in node.attrs.items() if isinstance(value, lists) and len(value) == 0]
        for name in empty:
            del node.attrs[name]
        if empty:
            taken[id(node)] = empty
    return taken


def _empty_list(node: NodeProto, name: str, opsets: dict[str, int]) -> AttributeProto:
    import onnx

    try:
        schema: Any = onnx.defs.get_schema(node.op_type, opsets.get(node.domain, 1), node.domain)
        kind = schema.attributes[name].type.value
    except (onnx.defs.SchemaError, KeyError):
        message = f"attribute {name!r} of node {node.name!r} ({node.op_type}) is an empty list, so its type is unknown"
        raise model_error("SG111", message) from None
    return onnx.helper.make_attribute(name, [], attr_type=kind)


def _write_type(value: ValueInfoProto, unwritten: dict[str, tuple[str, Any]], *, required: bool) -> None:
    if value.HasField("type") or value.name not in unwritten:
        return
    kind, contents = unwritten[value.name]
    if kind == "optional_type" and isinstance(contents, TypeProto):
        value.type.optional_type.elem_type.CopyFrom(contents)
    elif required:
        message = f"{value.name!r} is of {kind.replace('_', ' ')}, and graphsurgeon does not keep its contents"
        raise model_error("SG111", message)


def _constants(nodes: Iterable[NodeProto], initializers: Iterable[TensorProto]) -> dict[str, TensorProto]:
    constants = {tensor.name: tensor for tensor in initializers}
    for node in nodes:
        if node.op_type == "Constant" and node.attribute and node.attribute[0].type == AttributeProto.TENSOR:
            constants[node.output[0]] = node.attribute[0].t
    return constants


def _tidy_subgraphs(
    nodes: Iterable[NodeProto], outer: dict[str, TensorProto], unwritten: dict[str, tuple[str, Any]]
) -> None:
    """Take out what export repeats in a subgraph of the graphs round it, constants and types of values, and put in the
    types that it could not write.
    """
    for node in nodes:
        for attribute in node.attribute:
            if attribute.type != AttributeProto.GRAPH:
                continue
            graph = attribute.g
            repeated = [tensor for tensor in graph.initializer if _is_same(tensor, outer.get(tensor.name))]
            for tensor in repeated:
                graph.initializer.remove(tensor)
            own = {name for inner in graph.node for name in inner.output}
            for value in [value for value in graph.value_info if value.name not in own]:
                graph.value_info.remove(value)
            for value in (*graph.input, *graph.output):
                # The body of an If or Loop may leave its types open; they follow from its nodes.
                _write_type(value, unwritten, required=False)
            _tidy_subgraphs(graph.node, {**outer, **_constants(graph.node, graph.initializer)}, unwritten)


def _is_same(tensor: TensorProto, other: TensorProto | None) -> bool:
    return other is not None and tensor.dims == other.dims and tensor.SerializeToString() == other.SerializeToString()


def _unimported(attributes: Iterable[AttributeProto]) -> dict[str, Any]:
    """Return the attributes that import leaves out, as export takes them: the protos themselves, or bytes."""
    values: dict[str, Any] = {}
    for attribute in attributes:
        if attribute.ref_attr_name:
            continue
        if attribute.type in _SKIPPED_FIELDS:
            value = getattr(attribute, _SKIPPED_FIELDS[attribute.type])
            values[attribute.name] = value if hasattr(value, "DESCRIPTOR") else list(value)
        elif _is_binary(attribute):
            values[attribute.name] = attribute.s if attribute.type == AttributeProto.STRING else list(attribute.strings)
    return values


def _is_binary(attribute: AttributeProto) -> bool:
    """Return True for a string that is not text, such as the state of a TensorRT plugin, on which import fails."""
    try:
        for text in (attribute.s, *attribute.strings):
            text.decode()
    except UnicodeDecodeError:
        return True
    return False


def _without_binary_strings(model: ModelProto) -> ModelProto:
    if not any(_is_binary(attribute) for owner in _attribute_lists(model) for attribute in owner):
        return model
    importable = ModelProto()
    importable.CopyFrom(model)
    for attributes in _attribute_lists(importable):
        for attribute in [attribute for attribute in attributes if _is_binary(attribute)]:
            attributes.remove(attribute)
    return importable


def _attribute_lists(model: ModelProto) -> Iterator[Any]:
    pending: list[Any] = [model.graph, *model.functions]
    while pending:
        body = pending.pop()
        if isinstance(body, FunctionProto):
            yield body.attribute_proto
        for node in body.node:
            yield node.attribute
            pending += [attribute.g for attribute in node.attribute if attribute.type == AttributeProto.GRAPH]


def _restore_default_inputs(graph: Any, proto: GraphProto) -> None:
    """Make initializers that are inputs too inputs again; import makes plain constants of them, which no caller can
    override.
    """
    if len(graph.inputs) == len(proto.input):
        return
    from onnx_graphsurgeon import Constant
    from onnx_graphsurgeon.ir.tensor import LazyValues

    known = graph.tensors()
    defaults = {tensor.name: tensor for tensor in proto.initializer}
    graph.inputs = [
        known.get(value.name) or Constant(value.name, LazyValues(defaults[value.name])) for value in proto.input
    ]
