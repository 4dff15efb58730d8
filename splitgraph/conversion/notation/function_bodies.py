"""Function bodies: a node is replaced by the body that the specification gives for its operator."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn

from splitgraph.conversion.known_values import INLINE_FIRST
from splitgraph.conversion.node import Node, reads_of
from splitgraph.conversion.notation.formula import FLOATS
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.model.attributes import CONSTANT_DTYPES, attribute_value, make_attribute
from splitgraph.model.deferred import defs, np, numpy_helper
from splitgraph.model.onnx_proto import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto, TypeProto
from splitgraph.model.schemas.history import meant_version
from splitgraph.model.scopes import subgraphs
from splitgraph.model.value_type import DTYPE_NUMBERS
from splitgraph.model.values import type_proto

if TYPE_CHECKING:
    from numpy.typing import NDArray


# Operators whose bodies hold nodes of the model, which are written for the opset of the model.
_HOLDS_NODES_OF_MODEL = frozenset({"SequenceMap"})


def expand(node: NodeAtBoundary) -> None:
    """Replace the node by the function body of its operator, at the version that the node comes from.

    Raises Inexact where there is no body, and where the body depends on something unknown.
    """
    check = _CHECKS.get(node.op_type)
    if check is not None:
        check(node)
    own = _set_apart(node) if node.op_type in _HOLDS_NODES_OF_MODEL else {}
    body, dialect = _body(node)
    node.dialect = dialect
    names = {**_renaming(node, body), **own}
    for index, inner in enumerate(body.node):
        attributes = _attributes(node, body, inner.attribute, names)
        if inner.op_type == "Constant" and (literal := _literal(attributes)) is not None:
            if inner.output[0] not in body.output:
                names[inner.output[0]] = node.tensor(literal, "constant")
                continue
            attributes = {"value": make_attribute("value", literal)}
        outputs = [name and (names.get(name) or names.setdefault(name, node.new_name(name))) for name in inner.output]
        name = node.new_name(f"{inner.op_type}_{index}")
        node.before.append(Node(inner.op_type, [names[name] for name in inner.input], outputs, attributes, None, name))
    node.drop_node()


def has_body(op_type: str, since_version: int) -> bool:
    """Return True when the specification gives a function body for this version of an operator."""
    version = meant_version(op_type, since_version)
    return version is not None and version.has_function


def _schema_with_body(op_type: str, since_version: int) -> Any:
    """Return the schema that holds the body; raise Inexact where there is none, or where the installed onnx is too
    old.
    """
    if not has_body(op_type, since_version):
        raise Inexact("has no function body to expand")
    schema: Any = defs.get_schema(op_type, since_version, "") if defs.has(op_type, since_version, "") else None
    if schema is None or schema.since_version != since_version:
        raise Inexact("the installed onnx does not know its function body", "install a newer onnx")
    return schema


def _body(node: NodeAtBoundary) -> tuple[Any, int]:
    """Return the body and the opset of its nodes: the specification has bodies for several opsets, and this is the one
    nearest to the target.
    """
    op = node.op_type
    schema = _schema_with_body(op, node.old.since_version)
    if schema.has_function:
        nearest = _nearest(schema.function_opset_versions, node.to_opset)
        return _parsed(schema.get_function_with_opset_version(nearest)), nearest
    types = []
    for name in node.inputs:
        proto = type_proto(node.values.type_of(name)) if name else TypeProto()
        if proto is None:
            raise Inexact(f"its function body depends on the element type of {name!r}, which is unknown")
        types.append(proto.SerializeToString())
    if any(attribute.ref_attr_name for attribute in node.attributes.values()):
        raise Inexact("its function body depends on an attribute of the enclosing function", INLINE_FIRST)
    inner = node.message().SerializeToString()
    nearest = _nearest(schema.context_dependent_function_opset_versions, node.to_opset)
    written = schema.get_context_dependent_function_with_opset_version(nearest, inner, types)
    if not written:
        raise Inexact("its function body does not cover this case")
    return _parsed(written), node.from_opset if op in _HOLDS_NODES_OF_MODEL else nearest


def _set_apart(node: NodeAtBoundary) -> dict[str, str]:
    """Rename everything in the subgraphs of a node, so that no name in the function body can clash. Return what each
    new name means: the outer name that the subgraphs read, or the new name itself.
    """
    own: dict[str, str] = {}
    for name, attribute in node.attributes.items():
        if attribute.type != AttributeProto.GRAPH:
            continue
        copy = AttributeProto()
        copy.CopyFrom(attribute)
        if any(candidate.ref_attr_name for inner in copy.g.node for candidate in _all_attributes(inner)):
            raise Inexact("its subgraph refers to attributes of the enclosing function", INLINE_FIRST)
        within = set(_defined(copy.g))
        outside = {read: node.new_name(read) for inner in copy.g.node for read in reads_of(inner) if read not in within}
        outside |= {value.name: node.new_name(value.name) for value in copy.g.output if value.name not in within}
        _rewrite_graph(node, FunctionProto(), copy.g, {"": "", **outside})
        own |= {new: read for read, new in outside.items()} | {new: new for new in _defined(copy.g)}
        node.attributes[name] = copy
    return own


def _defined(graph: GraphProto) -> Iterator[str]:
    """Return every name that a graph and its subgraphs define."""
    yield from (value.name for value in graph.input)
    yield from (tensor.name for tensor in graph.initializer)
    for node in graph.node:
        yield from (name for name in node.output if name)
        for _, _, inner in subgraphs(node):
            yield from _defined(inner)


def _all_attributes(node: NodeProto) -> Iterator[AttributeProto]:
    """Return the attributes of a node and of the nodes in its subgraphs."""
    yield from node.attribute
    for _, _, graph in subgraphs(node):
        for inner in graph.node:
            yield from _all_attributes(inner)


def _nearest(opsets: Sequence[int], to_opset: int) -> int:
    """Return the opset nearest to the target."""
    return min(opsets, key=lambda opset: abs(opset - to_opset))


def _parsed(written: Any) -> Any:
    """Parse a function."""
    body = FunctionProto()
    body.ParseFromString(written if isinstance(written, bytes) else written.SerializeToString())
    return body


def _renaming(node: NodeAtBoundary, body: Any) -> dict[str, str]:
    """Map the formal inputs and outputs of the body to the names of the node."""
    names = {"": ""}
    for position, name in enumerate(body.input):
        names[name] = node.inputs[position] if position < len(node.inputs) else ""
    for position, name in enumerate(body.output):
        if position < len(node.outputs) and node.outputs[position]:
            names[name] = node.outputs[position]
    return names


def _attributes(
    node: NodeAtBoundary, body: Any, attributes: Sequence[AttributeProto], names: Mapping[str, str]
) -> dict[str, AttributeProto]:
    """Return the attributes of a node in the body; references take the node's own values."""
    made: dict[str, AttributeProto] = {}
    for attribute in attributes:
        copy = AttributeProto()
        if not attribute.ref_attr_name:
            copy.CopyFrom(attribute)
            if copy.type == AttributeProto.GRAPH:
                _rewrite_graph(node, body, copy.g, names)
            made[attribute.name] = copy
            continue
        given = node.attributes.get(attribute.ref_attr_name) or _default(node, body, attribute.ref_attr_name)
        if given is None:
            continue
        if given.ref_attr_name and not node.emission.is_given(given.ref_attr_name):
            text = f"{attribute.ref_attr_name} is an attribute of the enclosing function that a call leaves out"
            raise Inexact(text, INLINE_FIRST)
        copy.CopyFrom(given)
        copy.name = attribute.name
        made[attribute.name] = copy
    return made


def _default(node: NodeAtBoundary, body: Any, name: str) -> AttributeProto | None:
    """Return the default of an attribute that the node omits."""
    own: dict[str, AttributeProto] = {attribute.name: attribute for attribute in body.attribute_proto}
    formal = node.old.attributes.get(name)
    return own.get(name) or (formal.default if formal is not None else None)


def _literal(attributes: Mapping[str, AttributeProto]) -> TensorProto | None:
    """Return the tensor of a Constant with these attributes; None for strings, and where only a call tells."""
    for name, attribute in attributes.items():
        if attribute.ref_attr_name:
            return None
        if name == "value":
            return attribute.t
        dtype = CONSTANT_DTYPES.get(name, "string")
        if dtype != "string":
            elements: NDArray[Any] = np.asarray(attribute_value(attribute), dtype)
            return numpy_helper.from_array(elements)
    return None


def _rewrite_graph(node: NodeAtBoundary, body: Any, graph: GraphProto, outer: Mapping[str, str]) -> None:
    """Rename everything in a subgraph of the body and give every attribute its value."""
    names = dict(outer)

    def define(name: str) -> str:
        if name and names.get(name) != name:
            names[name] = node.new_name(name)
        return names[name]

    del graph.value_info[:]
    declared: list[Any] = [*graph.input, *graph.initializer]
    for value in declared:
        value.name = define(value.name)
    for inner in graph.node:
        attributes = _attributes(node, body, inner.attribute, names)
        if inner.op_type == "Constant" and (literal := _literal(attributes)) is not None:
            attributes = {"value": make_attribute("value", literal)}
        del inner.attribute[:]
        inner.attribute.extend(attributes.values())
        inner.input[:] = [names[name] for name in inner.input]
        inner.output[:] = [define(name) for name in inner.output]
        inner.name = node.new_name(inner.op_type)
    for output in graph.output:
        output.name = names[output.name]


# Inexact bodies -------------------------------------------------------------------------------------------------------

# Function bodies that differ from the document of their operator for some nodes. A check raises Inexact for such
# a node. It also drops attributes without effect that would change the result of the body.


_REAL = frozenset({TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16})


def _bernoulli(node: NodeAtBoundary) -> NoReturn:
    raise Inexact("its function body gives 1 with the opposite probability")


def _affine_grid(node: NodeAtBoundary) -> NoReturn:
    raise Inexact("its function body confuses a batch of size 1 with no batch", "declare the shapes of its inputs")


def _attention(node: NodeAtBoundary) -> None:
    """Check that weights and values have one type, as the body needs, and that a mask is boolean or real: the body
    casts -inf to the type of the mask.

    The body recognizes inputs of rank 3 by the numbers of heads, so these are dropped from inputs of rank 4.
    """
    if node.input_type(0).dtype != node.input_type(2).dtype:
        raise Inexact("its function body multiplies values that have another type than Q")
    mask = node.input_type(3).dtype or ""
    if node.uses_input(3) and mask != "bool" and DTYPE_NUMBERS.get(mask) not in _REAL:
        raise Inexact(
            f"its documentation does not define a mask of {mask or 'an unknown type'}", "cast the mask to bool"
        )
    if not drop_heads_of_rank_4(node):
        raise Inexact(f"the rank of {node.inputs[0]!r} is unknown", "declare the shapes of its inputs")


def _rms_normalization(node: NodeAtBoundary) -> None:
    if node.input_type(0).dtype != node.input_type(1).dtype:
        raise Inexact("its function body and onnx's inference do not allow a scale of another type than the data")


def _reduce_l2(node: NodeAtBoundary) -> None:
    if node.known_dtype() != "float32":
        raise Inexact("its function body takes the square root in float32")


def _reduce_log_sum_exp(node: NodeAtBoundary) -> NoReturn:
    raise Inexact("its function body overflows for elements above 709, and runtimes do not")


def _softplus(node: NodeAtBoundary) -> NoReturn:
    raise Inexact("its function body overflows for large elements, and runtimes do not")


def _window(node: NodeAtBoundary) -> None:
    if node.known_value_or_default("output_datatype") not in _REAL:
        raise Inexact("its function body computes in float32, and its final cast to an integer can be off by 1")


def _shrink(node: NodeAtBoundary) -> None:
    """Check that lambd, its negative and bias are exact in the type of the input: the body casts them, runtimes do
    not.
    """
    dtype = node.input_type(0).dtype
    if dtype in FLOATS:
        return
    threshold, bias = node.known_value_or_default("lambd"), node.known_value_or_default("bias")
    has_no_negatives = not (dtype or "").startswith("int")
    if threshold < 0 or not bias.is_integer() or (has_no_negatives and (threshold >= 1 or bias < 0)):
        raise Inexact("its function body rounds lambd and bias to the type of the input, and runtimes do not")


def _range(node: NodeAtBoundary) -> None:
    dtype = node.known_dtype() if node.old.since_version == 11 else "float32"
    if dtype != "float32":
        raise Inexact(f"its function body counts the elements in float32, which does not hold every {dtype}")


_CHECKS: dict[str, Callable[[NodeAtBoundary], None]] = {
    "AffineGrid": _affine_grid,
    "Attention": _attention,
    "Bernoulli": _bernoulli,
    "BlackmanWindow": _window,
    "HammingWindow": _window,
    "HannWindow": _window,
    "Range": _range,
    "ReduceL2": _reduce_l2,
    "ReduceLogSumExp": _reduce_log_sum_exp,
    "RMSNormalization": _rms_normalization,
    "Shrink": _shrink,
    "Softplus": _softplus,
}


def drop_heads_of_rank_4(node: NodeAtBoundary) -> bool:
    """Drop the numbers of heads from an Attention whose inputs have rank 4 and so a dimension for the heads, as from 25
    on; False when the rank is unknown.
    """
    names, rank = ("q_num_heads", "kv_num_heads"), node.rank(0)
    if node.old.since_version >= 25 or rank == 3 or not any(map(node.has, names)):
        return True
    if rank is None:
        return False
    node.drop(*names, why="inputs of rank 4 have their heads on an axis")
    return True
