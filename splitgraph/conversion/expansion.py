"""Writing a node as the body of the function that the specification gives for its operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import onnx
from onnx import defs

from splitgraph.conversion.form import Form
from splitgraph.conversion.step import Inexact, Step
from splitgraph.graph.types import type_proto


def expand(step: Step) -> None:
    """Put the function body of the node's operator, at the version that it comes from, in the node's place.

    Raises Inexact without a body, and where the body depends on what is not known.
    """
    body, dialect = _body(step)
    step.dialect = dialect
    names = _renaming(step, body)
    for index, node in enumerate(body.node):
        for attribute in node.attribute:
            if attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
                raise Inexact("its function body has subgraphs, which splitgraph does not expand")
        form = Form(
            node.op_type,
            [names[name] for name in node.input],
            [names.get(name) or names.setdefault(name, step.new_name(name)) for name in node.output],
            _attributes(step, body, node),
            None,
            step.new_name(f"{node.op_type}_{index}"),
        )
        step.before.append(form)
    step.before[:] = _needed(step.before, set(step.outputs))
    step.drop_node()


def _needed(forms: Sequence[Form], wanted: set[str]) -> list[Form]:
    """The nodes that the wanted values depend on: a body gives every output of its operator, a node often names one."""
    kept = []
    for form in reversed(forms):
        if not wanted.isdisjoint(form.outputs):
            kept.append(form)
            wanted |= set(form.inputs)
    return kept[::-1]


def _body(step: Step) -> tuple[Any, int]:
    """The body, and the opset that its nodes are written for."""
    op, version = step.form.op_type, step.old.since_version
    schema: Any = defs.get_schema(op, version, "")
    if schema.has_function:
        lowest = min(schema.function_opset_versions)
        return schema.get_function_with_opset_version(lowest), lowest
    if not schema.has_context_dependent_function:
        raise Inexact("has no function body to expand")
    types = []
    for name in step.inputs:
        proto = type_proto(step.values.type_of(name)) if name else onnx.TypeProto()
        if proto is None:
            raise Inexact(f"its function body depends on the element type of {name!r}, which is unknown")
        types.append(proto.SerializeToString())
    if any(attribute.ref_attr_name for attribute in step.attributes.values()):
        raise Inexact(
            "its function body depends on an attribute of the enclosing function", "inline the function first"
        )
    node = step.form.node().SerializeToString()
    lowest = min(schema.context_dependent_function_opset_versions)
    written = schema.get_context_dependent_function_with_opset_version(lowest, node, types)
    if not written:
        raise Inexact("its function body does not cover this case")
    body = onnx.FunctionProto()
    body.ParseFromString(written)
    return body, lowest


def _renaming(step: Step, body: Any) -> dict[str, str]:
    """The names of the node for the formal inputs and outputs of the body."""
    names = {"": ""}
    for position, name in enumerate(body.input):
        names[name] = step.inputs[position] if position < len(step.inputs) else ""
    for position, name in enumerate(body.output):
        if position < len(step.outputs) and step.outputs[position]:
            names[name] = step.outputs[position]
    return names


def _attributes(step: Step, body: Any, node: onnx.NodeProto) -> dict[str, onnx.AttributeProto]:
    """The attributes of a node of the body, with the node's own values where they refer to them."""
    defaults = {name: formal.default for name, formal in step.old.attributes.items()}
    made: dict[str, onnx.AttributeProto] = {}
    for attribute in node.attribute:
        if not attribute.ref_attr_name:
            made[attribute.name] = attribute
            continue
        given = step.attributes.get(attribute.ref_attr_name) or _default(defaults, body, attribute.ref_attr_name)
        if given is None:
            continue
        held = onnx.AttributeProto()
        held.CopyFrom(given)
        held.name = attribute.name
        made[attribute.name] = held
    return made


def _default(defaults: Mapping[str, onnx.AttributeProto | None], body: Any, name: str) -> onnx.AttributeProto | None:
    own = {attribute.name: attribute for attribute in body.attribute_proto}
    return own.get(name) or defaults.get(name)
