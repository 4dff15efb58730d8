"""The operator of a node: a split variant, a model-local function, an operator with a schema, or an unknown one; and
whether the node fits the schema.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache

from splitgraph.attribute_values import attribute_value
from splitgraph.graph.scopes import called_function, plain_domain
from splitgraph.inference.context import NodeContext, rule_of
from splitgraph.inference.knowledge import OMITTED
from splitgraph.inference.walk_state import WalkState
from splitgraph.onnx_proto import FunctionProto, NodeProto
from splitgraph.schemas import OperatorVersion, version_at, versions_of
from splitgraph.schemas.allowed_values import constrained_attributes, fault_of_value
from splitgraph.schemas.of_onnxruntime import meant_opset, removed_at
from splitgraph.schemas.table import newest_in_table, operator_names
from splitgraph.variants import SPLIT_OPERATORS, Variant, openvino_split_1, variadic_split_1, variant_of


@dataclass(frozen=True, slots=True)
class Operator:
    """The meaning of a node's domain and operator type at the imported opset. finding, message: the code and text of an
    error. help: advice other than the code's own. outgrew_rule: the version has other inputs, outputs or attributes
    than those that our rule was written for.
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
    required_attributes: tuple[str, ...] = ()
    constrained_attributes: Collection[str] = ()
    outgrew_rule: bool = False

    def fits(self, ctx: NodeContext) -> bool:
        """True when the numbers of inputs and outputs and the attributes fit the schema; otherwise a finding is
        reported.
        """
        schema = self.schema
        if schema is None:
            return True
        fewest, most, count = schema.min_inputs, schema.max_inputs, ctx.input_count
        if not fewest <= count <= most:
            ctx.find(
                "SG212", f"{ctx.node.op_type}-{self.since_version} takes {_range(fewest, most)} inputs, not {count}"
            )
            return False
        given = len(ctx.node.output)
        if not schema.min_outputs <= given <= schema.max_outputs:
            allowed = _range(schema.min_outputs, schema.max_outputs)
            noun = "output" if allowed == "1" else "outputs"
            ctx.find("SG212", f"{ctx.node.op_type}-{self.since_version} has {allowed} {noun}, not {given}")
            return False
        if OMITTED in ctx.given and (fault := _fault_of_left_out(schema, ctx)) is not None:
            ctx.find("SG212", f"{ctx.node.op_type}-{self.since_version} {fault}")
            return False
        for written, attribute in ctx.attributes().items():
            expected = schema.attributes.get(written)
            if expected is None and not written.startswith(_INTERNAL):
                ctx.find("SG212", _unknown_attribute(schema, written))
                return False
            bound = None if expected is None else ctx.bound(attribute)
            if expected is not None and bound is not None and bound.type != expected.type:
                ctx.find(
                    "SG212",
                    f"attribute {attribute.name!r} of {ctx.node.op_type}-{self.since_version} has the wrong type",
                )
                return False
            if bound is not None and written in self.constrained_attributes:
                value = attribute_value(bound)
                wrong = fault_of_value(schema.domain, schema.op, self.since_version, written, value)
                text = "" if wrong is None else f"{ctx.node.op_type}-{self.since_version}: {wrong.text}"
                if wrong is not None and not wrong.run_by:
                    ctx.find("SG302", text)
                    return False
                if wrong is not None:
                    ctx.tolerate("SG302", text, wrong.run_by)
        for name in self.required_attributes:
            if not ctx.has_attribute(name):
                ctx.find("SG212", f"{ctx.node.op_type}-{self.since_version} needs the attribute {name!r}")
                return False
        return True


def untyped_attributes(node: NodeProto) -> list[str]:
    """Names of attributes without a type, except references to attributes of a function."""
    return [attribute.name for attribute in node.attribute if not attribute.type and not attribute.ref_attr_name]


def operator_of(state: WalkState, imports: Mapping[str, int], node: NodeProto) -> Operator:
    """The operator of a node, at the opset that its graph imports."""
    domain = plain_domain(node.domain)
    function = state.task.functions.get(called_function(node)) if state.task.functions else None
    if domain not in imports and (function is not None or state.record.calling or domain == ""):
        return _of_no_import(domain, node.op_type, in_function=bool(state.record.calling))
    if function is not None:
        return Operator(domain, function=function)
    return _known_operator(domain, node.op_type, imports.get(domain))


def _of_no_import(domain: str, op_type: str, *, in_function: bool) -> Operator:
    """An operator of a domain that is not imported, although nothing loads the node without the import: a call of a
    function, a node in a function, and a node of ai.onnx, whose versions differ too much to take one.
    """
    named, place = domain or AI_ONNX, "function around the node" if in_function else "model"
    text = f"{op_type} belongs to {named}, but the {place} imports no opset of {named}"
    return Operator(domain, finding="SG110", message=text)


# The name of the domain with the empty name, in texts.
AI_ONNX = "ai.onnx"
_HELP_IF_NEWER = "Install a newer splitgraph, or export the model at an older opset."
_OPENVINO_SPLITS = {
    "Split": openvino_split_1.VARIANT,
    "VariadicSplit": replace(variadic_split_1.VARIANT, domain=openvino_split_1.DOMAIN),
}


@cache
def _known_operator(domain: str, op_type: str, opset: int | None) -> Operator:
    if domain == openvino_split_1.DOMAIN:
        return Operator(domain, opset or 1, since_version=1, variant=_OPENVINO_SPLITS.get(op_type))
    if opset is None:
        # onnxruntime and OpenVINO take the newest version that they know.
        return _of_another_version(domain, op_type, 0)
    schema = _schema(domain, op_type, meant_opset(op_type, opset) if domain == "" else opset)
    if schema is None and domain == "":
        later = [schema.since_version for schema in versions_of(domain, op_type)]
        if not later and rule_of(domain, op_type) is not None:
            # onnxruntime keeps an operator of its own in ai.onnx, and its optimized models are full of it.
            return Operator(domain, opset, since_version=1, outgrew_rule=opset >= removed_at(op_type, opset + 1))
        if not later:
            # A plugin of a runtime: nodes of plugins are made with onnx_graphsurgeon, which asks for no domain.
            return Operator(domain, opset)
        what = f"{op_type} exists from opset {min(later)} on, but the model imports opset {opset}"
        if min(later) <= opset:
            what = f"{op_type} was removed from ai.onnx before opset {opset}"
        return Operator(domain, opset, finding="SG214", message=what)
    if schema is None:
        return _of_another_version(domain, op_type, opset)
    variant = variant_of(op_type, schema.since_version) if domain == "" and op_type in SPLIT_OPERATORS else None
    if variant is None and domain == "" and op_type in SPLIT_OPERATORS:
        what = f"{op_type}-{schema.since_version} is newer than this splitgraph"
        return Operator(domain, opset, schema.since_version, schema, finding="SG302", message=what, help=_HELP_IF_NEWER)
    return Operator(
        domain,
        opset,
        schema.since_version,
        schema,
        variant,
        required_attributes=_required_attributes(schema),
        constrained_attributes=constrained_attributes(domain, op_type),
        outgrew_rule=_outgrew_rule(schema),
    )


def plugin_advice(op_type: str) -> str:
    """What to do about an operator that ai.onnx does not have."""
    from difflib import get_close_matches

    close = get_close_matches(op_type, operator_names(), n=1)
    meant = f"Did you mean {close[0]}? " if close else ""
    return f"{meant}If it is a plugin of a runtime, only that runtime can run the model."


def _outgrew_rule(schema: OperatorVersion) -> bool:
    """True for a version that only the installed onnx knows, and that differs in more than the types it takes."""
    newest = newest_in_table(schema.domain)
    if not 0 < newest < schema.since_version:
        return False
    last = version_at(schema.domain, schema.op, newest)
    return last is not None and _form(last) != _form(schema)


def _form(schema: OperatorVersion) -> tuple[object, ...]:
    slots = [[(held.name, held.option) for held in formals] for formals in (schema.inputs, schema.outputs)]
    return schema.attributes, slots, schema.max_inputs, schema.max_outputs


def _of_another_version(domain: str, op_type: str, opset: int) -> Operator:
    """The last version of an operator that the imported version of its domain does not have."""
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
        required_attributes=_required_attributes(last),
        constrained_attributes=constrained_attributes(domain, op_type),
    )


def _required_attributes(schema: OperatorVersion) -> tuple[str, ...]:
    return tuple([name for name, formal in schema.attributes.items() if formal.required])


def _schema(domain: str, op_type: str, opset: int) -> OperatorVersion | None:
    """The operator version at an opset; None where there is none, or it was removed."""
    found = version_at(domain, op_type, opset)
    if found is None or not found.deprecated:
        return found
    # GroupNormalization-18 was deprecated for its own later version and not removed.
    later = [each for each in versions_of(domain, op_type) if each.since_version > found.since_version]
    return found if any(not each.deprecated for each in later) else None


# How names of attributes begin that tools keep for themselves, which onnx's checker accepts on every operator.
_INTERNAL = "__"
# Required by the schema of Resize-11 only: runtimes took them for the optional inputs that they are from 13 on, and
# exporters leave them out.
_TAKEN_AS_OPTIONAL = {("", "Resize"): ("roi", "scales")}


def _fault_of_left_out(schema: OperatorVersion, ctx: NodeContext) -> str | None:
    """The text of an error about omitted inputs; None where each omitted input is optional."""
    optional = _TAKEN_AS_OPTIONAL.get((schema.domain, schema.op), ())
    formals, last = schema.inputs, len(schema.inputs) - 1
    for index, given in enumerate(ctx.given):
        if given is not OMITTED:
            continue
        formal = formals[min(index, last)]
        if formal.option == "optional" or formal.name in optional:
            continue
        # The body of a function reads by name what the call leaves out.
        called = ", which the function call omits" if ctx.node.input[index] else ""
        if formal.option == "single":
            return f"needs the input {formal.name!r}{called}"
        return f"has an empty name for input {index}{called}; each of {formal.name!r} must be given"
    return None


def _unknown_attribute(schema: OperatorVersion, name: str) -> str:
    """The text of an error about an attribute that the version does not have. Ignoring it might change the node's
    meaning.
    """
    text = f"{schema.op}-{schema.since_version} has no attribute {name!r}"
    those = [each.since_version for each in versions_of(schema.domain, schema.op) if name in each.attributes]
    if not those:
        return text
    return f"{text}; {schema.op}-{(min if min(those) > schema.since_version else max)(those)} has it"


def _range(fewest: int, most: int) -> str:
    if most >= 2**31 - 1:
        return f"{fewest} or more"
    return str(fewest) if fewest == most else f"{fewest} to {most}"
