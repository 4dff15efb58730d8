"""The operator of a node: a split variant, a model-local function, an operator with a schema, or an unknown one."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache

from splitgraph.findings.diagnostics import nearest
from splitgraph.inference.context import rule_of
from splitgraph.inference.walk_state import WalkState
from splitgraph.model.onnx_proto import FunctionProto, NodeProto
from splitgraph.model.schemas import OperatorVersion, version_at, versions_of
from splitgraph.model.schemas.allowed_values import constrained_attributes
from splitgraph.model.schemas.experimental import UNSPECIFIED, experimental_at, experiments_end, was_experimental
from splitgraph.model.schemas.history import meant_opset
from splitgraph.model.schemas.table import newest_in_table, operator_names
from splitgraph.model.scopes import MACHINE_LEARNING, called_function, plain_domain
from splitgraph.splits import SPLIT_OPERATORS, Variant, openvino_split_1, variadic_split_1, variant_of


@dataclass(frozen=True, slots=True)
class Operator:
    """The meaning of a node's domain and operator type at the imported opset.

    finding, message: the code and text of an error. help: advice other than the code's own. outgrew_rule: the inputs,
    outputs or attributes of the version differ from those that our rule knows.
    """

    domain: str
    opset: int = 0
    since_version: int = 0
    schema: OperatorVersion | None = None
    variant: Variant | None = None
    function: FunctionProto | None = None
    finding: str | None = None
    message: str = ""
    help: str | None = None
    constrained_attributes: Collection[str] = ()
    outgrew_rule: bool = False


def operator_of(state: WalkState, imports: Mapping[str, int], node: NodeProto) -> Operator:
    """Return the operator of a node, at the opset that its graph imports."""
    domain = plain_domain(node.domain)
    function = state.task.functions.get(called_function(node)) if state.task.functions else None
    if domain not in imports and (function is not None or state.record.calling or domain == ""):
        return _of_no_import(domain, node.op_type, in_function=bool(state.record.calling))
    if function is not None:
        return Operator(domain, function=function)
    return _known_operator(domain, node.op_type, imports.get(domain))


def _of_no_import(domain: str, op_type: str, *, in_function: bool) -> Operator:
    """Return the error that the domain of an operator is not imported. It is an error for calls of functions, for nodes
    in functions, and for nodes of ai.onnx, whose versions differ too much to choose one: no runtime loads such a node.
    """
    named, place = domain or AI_ONNX, "function around the node" if in_function else "model"
    text = f"{op_type} belongs to {named}, but the {place} imports no opset of {named}"
    return Operator(domain, finding="SG110", message=text)


# The name of the domain with the empty name, in texts.
AI_ONNX = "ai.onnx"
# Two names that are as alike as this are one name, misspelled. ImageScaler and ImageDecoder are less alike.
_SPELLED_ALIKE = 0.7
_HELP_IF_NEWER = "Install a newer splitgraph, or export the model at an older opset."
_OPENVINO_SPLITS = {
    "Split": openvino_split_1.VARIANT,
    "VariadicSplit": replace(variadic_split_1.VARIANT, domain=openvino_split_1.DOMAIN),
}


def version_of_ai_onnx(op_type: str, opset: int) -> Operator:
    """Return an operator of ai.onnx at an opset, whatever the graph of its node imports."""
    return _known_operator("", op_type, opset)


@cache
def _known_operator(domain: str, op_type: str, opset: int | None) -> Operator:
    """Return the operator that a domain has at an opset, or the error that it has none. opset: None if the graph
    imports none of the domain.
    """
    if domain == openvino_split_1.DOMAIN:
        return Operator(domain, opset or 1, since_version=1, variant=_OPENVINO_SPLITS.get(op_type))
    if opset is None:
        # onnxruntime and OpenVINO take the newest version that they know.
        return _of_another_version(domain, op_type, 0)
    schema = _schema(domain, op_type, meant_opset(op_type, opset) if domain == "" else opset)
    if schema is None and domain == "":
        schema = experimental_at(op_type, opset)
    if schema is None:
        return _without_schema(domain, op_type, opset)
    if domain == "" and op_type in SPLIT_OPERATORS:
        return _split_operator(schema, opset)
    return Operator(
        domain,
        opset,
        schema.since_version,
        schema,
        constrained_attributes=constrained_attributes(domain, op_type),
        outgrew_rule=_outgrew_rule(schema),
    )


def _split_operator(schema: OperatorVersion, opset: int) -> Operator:
    """Return a split operator of ai.onnx, or the error that its version is newer than its variants."""
    op_type, since_version = schema.op, schema.since_version
    variant = variant_of(op_type, since_version)
    if variant is None:
        message = f"{op_type}-{since_version} is newer than this splitgraph"
        return Operator("", opset, since_version, schema, finding="SG302", message=message, help=_HELP_IF_NEWER)
    return Operator(
        "",
        opset,
        since_version,
        schema,
        variant,
        constrained_attributes=constrained_attributes("", op_type),
        outgrew_rule=_outgrew_rule(schema),
    )


def _without_schema(domain: str, op_type: str, opset: int) -> Operator:
    """Return an operator that its domain does not have at this opset."""
    if domain == "":
        return _missing_in_ai_onnx(op_type, opset)
    deprecated = version_at(domain, op_type, opset) if domain == MACHINE_LEARNING else None
    if deprecated is None:
        return _of_another_version(domain, op_type, opset)
    # No runtime loads such a node.
    text = f"{op_type} is deprecated from {domain} {deprecated.since_version} on, and the model imports {opset}"
    help = f"Use TreeEnsemble, or import {domain} {deprecated.since_version - 1}, if the node was made for that."
    return Operator(domain, opset, finding="SG214", message=text, help=help)


def _missing_in_ai_onnx(op_type: str, opset: int) -> Operator:
    """Return an operator that ai.onnx does not have at this opset: an error if it has it at another opset; else an
    operator of a runtime.
    """
    versions = [version.since_version for version in versions_of("", op_type)]
    if versions:
        message = f"{op_type} exists from opset {min(versions)} on, but the model imports opset {opset}"
        if min(versions) <= opset:
            message = f"{op_type} was removed from ai.onnx before opset {opset}"
        return Operator("", opset, finding="SG214", message=message)
    if rule_of("", op_type) is None:
        # A plugin of a runtime: nodes of plugins are made with onnx_graphsurgeon, which asks for no domain.
        return Operator("", opset)
    # onnxruntime has an operator of its own in ai.onnx, and its optimized models are full of it. An experimental
    # operator of onnx has a rule, too, but at this opset its name is that of a plugin. ConstantFill has a rule that
    # refuses it.
    outgrew_rule = was_experimental(op_type) and op_type != "ConstantFill"
    return Operator("", opset, since_version=1, outgrew_rule=outgrew_rule)


def plugin_advice(op_type: str) -> str:
    """Return what to do about an operator that ai.onnx does not have."""
    if was_experimental(op_type):
        reason = f": {UNSPECIFIED[op_type]}" if op_type in UNSPECIFIED else ""
        ended = f"{op_type} was an experimental operator of onnx below opset {experiments_end(op_type)}{reason}."
        return f"{ended} At this opset, only a runtime that has it as a plugin can run the model."
    close = nearest(op_type, operator_names(), cutoff=_SPELLED_ALIKE)
    advice = f"Did you mean {close[0]}? " if close else ""
    return f"{advice}If it is a plugin of a runtime, only that runtime can run the model."


def _outgrew_rule(schema: OperatorVersion) -> bool:
    """Return True for a version that only the installed onnx knows and that differs in more than its types."""
    newest = newest_in_table(schema.domain)
    if not 0 < newest < schema.since_version:
        return False
    last = version_at(schema.domain, schema.op, newest)
    return last is not None and _form(last) != _form(schema)


def _form(schema: OperatorVersion) -> tuple[object, ...]:
    slots = [[(formal.name, formal.option) for formal in formals] for formals in (schema.inputs, schema.outputs)]
    return schema.attributes, slots, schema.max_inputs, schema.max_outputs


def _of_another_version(domain: str, op_type: str, opset: int) -> Operator:
    """Return the last version of an operator. The imported opset of its domain does not have the operator."""
    versions = [version for version in versions_of(domain, op_type) if not version.deprecated]
    if not versions:
        # onnxruntime's own operators have had one version only.
        return Operator(domain, opset, since_version=1)
    last = max(versions, key=lambda version: version.since_version)
    return Operator(
        domain,
        opset,
        last.since_version,
        last,
        constrained_attributes=constrained_attributes(domain, op_type),
    )


def _schema(domain: str, op_type: str, opset: int) -> OperatorVersion | None:
    """Return the operator version at an opset; None if there is none, or if it was removed."""
    version = version_at(domain, op_type, opset)
    if version is None or not version.deprecated:
        return version
    # GroupNormalization-18 was deprecated for its own later version and not removed.
    later = [candidate for candidate in versions_of(domain, op_type) if candidate.since_version > version.since_version]
    return version if any(not candidate.deprecated for candidate in later) else None
