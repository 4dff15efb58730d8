"""Inference of one node's outputs: by its split variant, by its operator's rule, or by onnx's own inference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from splitgraph.diagnostics import diagnostic
from splitgraph.graph.scopes import called_function, subgraphs
from splitgraph.inference.context import RULES, NodeContext, Rule, Unresolved, rule_of
from splitgraph.inference.graph_walk import GraphWalk
from splitgraph.inference.operators import AI_ONNX, Operator, untyped_attributes
from splitgraph.inference.repairs import find_repairs
from splitgraph.inference.split_nodes import keep_split, visit_split
from splitgraph.inference.type_constraints import check_element_types, check_output_types, only_dtype
from splitgraph.inference.walk_results import FunctionCall
from splitgraph.onnx_proto import NodeProto
from splitgraph.schemas import Formal, OperatorVersion
from splitgraph.value_type import UNKNOWN, ValueType, tensor
from splitgraph.variants import Variant, openvino_split_1, variadic_split_1

_HOW_TO_TYPE = "Set AttributeProto.type of the attribute, as onnx.helper.make_attribute does."


def infer_node(walk: GraphWalk, ctx: NodeContext, operator: Operator) -> Sequence[ValueType]:
    """The output types of a node that is no function call. Errors of the node are reported."""
    if walk.state.task.set_aside and (accepted := walk.state.task.set_aside.get(ctx.location)) is not None:
        walk.detail.unread.add(ctx.index)
        _set_aside(walk, ctx, accepted)
        return ()
    if operator.finding is not None:
        walk.detail.unread.add(ctx.index)
        walk.report(diagnostic(operator.finding, operator.message, ctx.location, help=operator.help))
        return ()
    if operator.domain not in walk.imports:
        _warn_of_no_import(walk, operator.domain)
    if not has_sound_attributes(walk, ctx, operator):
        walk.detail.unread.add(ctx.index)
        return ()
    if operator.schema is not None and operator.domain == "":
        _repair(walk, ctx, operator.schema)
    if operator.variant is not None:
        return _infer_split(walk, ctx, operator.variant)
    if operator.function is not None:
        calls = walk.state.record.calls.setdefault(called_function(ctx.node), [])
        calls.append(FunctionCall(tuple(ctx.inputs)))
        return _infer_split(walk, ctx, variadic_split_1.VARIANT)
    return _infer_by_rule(walk, ctx, operator)


def _set_aside(walk: GraphWalk, ctx: NodeContext, accepted: Collection[str]) -> None:
    """Conclude nothing from a node. accepted: the codes of its findings."""
    # A contradicted declaration may be as wrong as what the node says.
    if "SG301" in accepted:
        for name in ctx.outputs:
            walk.declared.pop(name, None)
    # Of no other node like it the same is true.
    walk.state.record.effects += 1


def _warn_of_no_import(walk: GraphWalk, domain: str) -> None:
    """Warn, once for each domain, that nodes of the model have no opset import. onnx's checker refuses such a model."""
    text = f"the model has nodes of {domain}, but imports no version of {domain}; runtimes take one of their choice"
    walk.report(diagnostic("SG110", text, "main", severity="warning"))


def has_sound_attributes(walk: GraphWalk, ctx: NodeContext, operator: Operator) -> bool:
    """True when every attribute has a type, is there once and holds well-formed tensors; otherwise a finding is
    reported.
    """
    is_known = operator.schema is not None or operator.variant is not None or operator.function is not None
    if is_known and (untyped := untyped_attributes(ctx.node)):
        # Runtimes refuse it; to guess the type, or to take the attribute for absent, might change what it means.
        text = f"attribute {untyped[0]!r} of {ctx.node.op_type} has no type; a type is required"
        walk.report(diagnostic("SG212", text, ctx.location, help=_HOW_TO_TYPE))
        return False
    # A graph has its place by the name of its attribute, whatever the operator is.
    if len(ctx.attributes()) < len(ctx.node.attribute) and (is_known or any(subgraphs(ctx.node))):
        # onnxruntime refuses it, the reference evaluator takes the last one, OpenVINO the first one.
        counts = Counter(attribute.name for attribute in ctx.node.attribute)
        text = f"{ctx.node.op_type} has the attribute {counts.most_common(1)[0][0]!r} more than once"
        walk.report(diagnostic("SG212", text, ctx.location, help="Remove all of them but one."))
        return False
    if ctx.node.attribute and (malformed := walk.state.record.tensors.of_node(ctx.node)) is not None:
        walk.report(diagnostic("SG111", malformed, ctx.location))
        return False
    return True


def walks_bodies(operator: Operator, node: NodeProto) -> bool:
    """True for a node whose rule walks its bodies, if it has any."""
    if operator.domain == openvino_split_1.DOMAIN:
        return rule_of(operator.domain, node.op_type) is not None
    return operator.domain == "" and node.op_type in RULES and not operator.outgrew_rule


def _infer_split(walk: GraphWalk, ctx: NodeContext, variant: Variant) -> Sequence[ValueType]:
    split, outputs = visit_split(ctx, variant)
    keep_split(walk, ctx.node, ctx.index, split, outputs, tuple(ctx.obligations))
    return outputs


def _infer_by_rule(walk: GraphWalk, ctx: NodeContext, operator: Operator) -> Sequence[ValueType]:
    rule = None if operator.outgrew_rule else rule_of(operator.domain, ctx.node.op_type)
    if operator.schema is None and rule is None:
        # What OpenVINO itself defines has been inferred by it: the dims that the IR declares are believed.
        if operator.domain != openvino_split_1.DOMAIN:
            walk.state.record.note_unknown_operator(f"{operator.domain or AI_ONNX}::{ctx.node.op_type}", ctx.location)
        return ()
    if operator.schema is not None and not operator.fits(ctx):
        walk.detail.unread.add(ctx.index)
        return ()
    refers = walk.bindings is None and any(attribute.ref_attr_name for attribute in ctx.node.attribute)
    outputs = None if rule is None else _before_a_reference(ctx, rule) if refers else rule(ctx)
    if operator.schema is None:
        return outputs or ()
    lenient = check_element_types(ctx, operator) if not ctx.errors else None
    if lenient is not None:
        walk.detail.lenient[ctx.index] = lenient
    elif outputs is not None and not ctx.errors:
        check_output_types(ctx, operator, outputs)
    if outputs is not None or ctx.errors:
        return outputs or ()
    if refers:
        # onnx's own inference would take the attribute for 0.
        return _schema_types(ctx, operator.schema)
    # Imported where it is needed, because it imports onnx's C++ library.
    from splitgraph.inference.onnx_inference import infer_with_onnx

    return infer_with_onnx(ctx, operator)


def _before_a_reference(ctx: NodeContext, rule: Rule) -> Sequence[ValueType] | None:
    """The output types that a rule gives for a node of a function body as written without reading an attribute that
    only a call determines; None when it reads one. What a rule does before holds for every call.
    """
    ctx.stops = True
    try:
        return rule(ctx)
    except Unresolved:
        ctx.contents_out.clear()
        ctx.sequences_out.clear()
        return None
    finally:
        ctx.stops = False


def _repair(walk: GraphWalk, ctx: NodeContext, schema: OperatorVersion) -> None:
    """Repair a faulty node that can mean only one thing, and report the repair."""
    for repair in find_repairs(ctx, schema):
        # Not an error of the node as it is read from here on.
        walk.report(diagnostic(repair.code, repair.what, ctx.location, severity=repair.severity, help=repair.help))
        ctx.repair(repair.dropped, repair.added, repair.more_outputs)
        walk.detail.repairs.setdefault(ctx.index, []).append(repair)


def _schema_types(ctx: NodeContext, schema: OperatorVersion) -> list[ValueType]:
    """The output types that follow from the schema alone: element types, where they do not depend on attributes."""
    return [_schema_type(ctx, schema, formal) for formal in schema.outputs]


def _schema_type(ctx: NodeContext, schema: OperatorVersion, output: Formal) -> ValueType:
    """A tensor of the only element type that the output can have, or of that of an input which must have the same."""
    only = only_dtype(output.types)
    if only is not None:
        return tensor(only, None)
    if output.is_generic and output.homogeneous:
        for index, formal in enumerate(schema.inputs):
            if formal.type_variable == output.type_variable and formal.homogeneous:
                known = ctx.input(index)
                if known.kind == "tensor" and known.dtype is not None:
                    return tensor(known.dtype, None)
    return UNKNOWN
