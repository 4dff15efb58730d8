"""Infer the outputs of one node: by its split variant, by its operator's rule, or by onnx's own inference.

Then the checks that hold for all nodes, and the computation of values that no rule follows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from splitgraph.dim import Dim, DimLike, Obligation, has_huge_number
from splitgraph.findings.diagnostics import diagnostic
from splitgraph.inference.computed_values import Computation, ComputedValue, is_few
from splitgraph.inference.context import NodeContext, Rule, Unresolved
from splitgraph.inference.forms import contradicts, form_of
from splitgraph.inference.graph_walk import GraphWalk
from splitgraph.inference.operators import AI_ONNX, Operator
from splitgraph.inference.reading import Reading, fit
from splitgraph.inference.repairs import find_repairs
from splitgraph.inference.walk_results import Form, FoundSplit, FunctionCall, SplitDetail
from splitgraph.model.onnx_proto import NodeProto, TensorProto
from splitgraph.model.schemas import Formal, OperatorVersion
from splitgraph.model.schemas.fit import only_dtype, unnamed_outputs
from splitgraph.model.scopes import called_function, node_label
from splitgraph.model.tensor_data import is_in_other_file, lacks_data, misfit
from splitgraph.model.value_type import UNKNOWN, Contents, ValueType, tensor
from splitgraph.splits import Variant, infer_split, openvino_split_1, variadic_split_1
from splitgraph.splits.canonical import CanonicalSplit
from splitgraph.splits.variant import read_written

# What runs a node whose output has no name, although its version needs one.
_RUN_UNNAMED = "the reference evaluator, and in OpenVINO where it has the operator"


def infer_node(walk: GraphWalk, ctx: NodeContext, reading: Reading) -> Sequence[ValueType]:
    """Return the output types of a node that is no function call. Report its errors."""
    operator, set_aside = reading.operator, walk.state.task.set_aside
    if set_aside and (accepted := set_aside.get(ctx.location)) is not None:
        walk.detail.unread.add(ctx.index)
        _set_aside(walk, ctx, accepted)
        return ()
    if operator.domain not in walk.imports and operator.finding is None:
        _warn_of_no_import(walk, operator.domain)
    if operator.finding == "SG214" or _is_of_another(ctx, reading):
        ctx.form = form_of(operator.opset, ctx.node, ctx.attributes(), ctx.given, walk.bindings)
        if ctx.form is not None and walk.state.task.reads_by_form:
            return _read_by_form(walk, ctx, ctx.form)
    if (reading.refusal is not None or reading.lacking) and is_refused(walk, ctx, reading):
        return ()
    repaired = reading.may_need_repair and operator.schema is not None and _repair(walk, ctx, operator.schema)
    if (reading.misfit is not None or reading.refers) and operator.domain == "" and operator.schema is not None:
        _, fault = _fit(walk, ctx, reading, repaired)
        if fault is not None and fault[0] == "SG212":
            ctx.form = form_of(operator.opset, ctx.node, ctx.attributes(), ctx.given, walk.bindings)
            if ctx.form is not None and walk.state.task.reads_by_form:
                return _read_by_form(walk, ctx, ctx.form)
    return _infer_as_read(walk, ctx, reading, repaired)


def _is_of_another(ctx: NodeContext, reading: Reading) -> bool:
    version = reading.operator.schema
    if version is None or version.domain or reading.refusal is not None:
        return False
    return contradicts(version, ctx.node, ctx.attributes(), ctx.given)


def _read_by_form(walk: GraphWalk, ctx: NodeContext, form: Form) -> Sequence[ValueType]:
    """Infer a node as the version whose form it has, if nothing else is wrong with it."""
    # Other nodes that look alike are read by their form, too, and each is to be converted.
    walk.state.record.effects += 1
    walk.detail.forms[ctx.index] = form
    reading = Reading(walk.state, {**walk.imports, "": form.opset}, ctx.node, ctx.given)
    ctx.opset, ctx.since_version, ctx.form = form.opset, reading.operator.since_version, None
    if (reading.refusal is not None or reading.lacking) and is_refused(walk, ctx, reading):
        return ()
    return _infer_as_read(walk, ctx, reading, repaired=False)


def _infer_as_read(walk: GraphWalk, ctx: NodeContext, reading: Reading, repaired: bool) -> Sequence[ValueType]:
    operator = reading.operator
    if operator.variant is not None:
        return _infer_split(walk, ctx, operator.variant)
    if operator.function is not None:
        calls = walk.state.record.calls.setdefault(called_function(ctx.node), [])
        calls.append(FunctionCall(tuple(ctx.inputs)))
        return _infer_split(walk, ctx, variadic_split_1.VARIANT)
    return _infer_by_rule(walk, ctx, reading, repaired)


def is_refused(walk: GraphWalk, ctx: NodeContext, reading: Reading) -> bool:
    """Return True if nothing is read of a node: its operator does not exist, or its attributes are not sound. Report
    that.
    """
    walk.state.record.tensors.lacking += reading.lacking
    if reading.refusal is None:
        return False
    code, text, help = reading.refusal
    if ctx.form is not None:
        help = f"{ctx.form.sentence(ctx.opset)}. {ctx.form.help}"
    walk.detail.unread.add(ctx.index)
    walk.report(diagnostic(code, text, ctx.location, help=help))
    return True


def _set_aside(walk: GraphWalk, ctx: NodeContext, accepted: Collection[str]) -> None:
    """Conclude nothing from a node. accepted: the codes of its findings."""
    # The contradicted declaration may be wrong as well.
    if "SG301" in accepted:
        for name in ctx.outputs:
            walk.declared.pop(name, None)
    # The visit must not be repeated for equal nodes, which are not set aside.
    walk.state.record.effects += 1


def _warn_of_no_import(walk: GraphWalk, domain: str) -> None:
    """Warn, once for each domain, that the model does not import the domain of its nodes. onnx's checker refuses such a
    model.
    """
    text = f"the model has nodes of {domain}, but imports no version of {domain}; runtimes take one of their choice"
    walk.report(diagnostic("SG110", text, "main", severity="warning"))


def _infer_split(walk: GraphWalk, ctx: NodeContext, variant: Variant) -> Sequence[ValueType]:
    split, outputs = visit_split(ctx, variant)
    keep_split(walk, ctx.node, ctx.index, split, outputs, tuple(ctx.obligations))
    return outputs


def _infer_by_rule(walk: GraphWalk, ctx: NodeContext, reading: Reading, repaired: bool) -> Sequence[ValueType]:
    """Return the output types of a node that is no split and no call: by the rule of its operator, or else by onnx's
    own inference. Report a node that does not fit its schema.
    """
    operator = reading.operator
    if operator.schema is None:
        return _infer_without_schema(walk, ctx, reading)
    tolerated, fault = _fit(walk, ctx, reading, repaired)
    for text, run_by in tolerated:
        ctx.tolerate("SG302", text, run_by)
    if fault is not None:
        ctx.find(*fault)
        walk.detail.unread.add(ctx.index)
        return ()
    _tell_unnamed(walk, ctx, operator)
    outputs = _by_rule(walk, ctx, reading)
    if not ctx.errors:
        _report_wrong_types(walk, ctx, reading, outputs)
    if outputs is not None or ctx.errors:
        return outputs or ()
    if _is_open(walk, reading):
        # onnx's own inference would take the attribute for 0.
        return [_schema_type(ctx, operator.schema, formal) for formal in operator.schema.outputs]
    # Imported where it is needed, because it imports onnx's C++ library.
    from splitgraph.inference.onnx_inference import infer_with_onnx

    return infer_with_onnx(ctx, operator)


def _infer_without_schema(walk: GraphWalk, ctx: NodeContext, reading: Reading) -> Sequence[ValueType]:
    """Return the output types of a node whose operator has no schema; none without a rule."""
    if reading.rule is not None:
        return _by_rule(walk, ctx, reading) or ()
    domain = reading.operator.domain
    # OpenVINO has inferred its own layers: the dimensions that the IR declares are believed.
    if domain != openvino_split_1.DOMAIN:
        walk.state.record.note_unknown_operator(f"{domain or AI_ONNX}::{ctx.node.op_type}", ctx.location)
    return ()


def _is_open(walk: GraphWalk, reading: Reading) -> bool:
    """Return True if an attribute of the node depends on the call of the function around it, and no call is known."""
    return reading.refers and walk.bindings is None


def _by_rule(walk: GraphWalk, ctx: NodeContext, reading: Reading) -> Sequence[ValueType] | None:
    """Return the output types by the rule of the operator; None without a rule, or if the rule does not know them."""
    if reading.rule is None:
        return None
    return _before_a_reference(ctx, reading.rule) if _is_open(walk, reading) else reading.rule(ctx)


def _report_wrong_types(
    walk: GraphWalk, ctx: NodeContext, reading: Reading, outputs: Sequence[ValueType] | None
) -> None:
    """Report element types of inputs or outputs that the schema does not allow."""
    if reading.mistyped is not None:
        warning = ctx.find("SG302", reading.mistyped, severity="warning" if reading.is_lenient else "error")
        if reading.is_lenient:
            walk.detail.lenient[ctx.index] = warning
    elif outputs is not None and (wrong := reading.fault_of_outputs(ctx.outputs, outputs)) is not None:
        ctx.find("SG302", wrong)


def _fit(
    walk: GraphWalk, ctx: NodeContext, reading: Reading, repaired: bool
) -> tuple[list[tuple[str, str]], tuple[str, str] | None]:
    """Return what of a node fits no schema but is run, and its fault, as `fit` does."""
    if repaired or reading.refers:
        return fit(reading.operator, ctx.attributes(), ctx.node, ctx.given, walk.bindings)
    return reading.tolerated, reading.misfit


def _tell_unnamed(walk: GraphWalk, ctx: NodeContext, operator: Operator) -> None:
    """Warn about an output without a name that is none of those which may be left out."""
    if operator.schema is None or "" not in ctx.outputs:
        return
    for position in unnamed_outputs(operator.schema, ctx.outputs)[:1]:
        name = operator.schema.outputs[position].name
        text = f"output {position} ({name}) of {ctx.node.op_type}-{operator.since_version} has no name"
        ctx.tolerate("SG212", f"{text}; it is not optional", _RUN_UNNAMED)
        walk.detail.unnamed.append(ctx.index)


def _before_a_reference(ctx: NodeContext, rule: Rule) -> Sequence[ValueType] | None:
    """Run a rule on a node in a function body without a call. Return its output types; None if it reads an attribute
    that only a call determines. What the rule does before holds for every call.
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


def _repair(walk: GraphWalk, ctx: NodeContext, schema: OperatorVersion) -> bool:
    """Repair a faulty node that can mean only one thing, and report each repair. Return True if there was one."""
    repairs = find_repairs(ctx, schema)
    for repair in repairs:
        # This is no error of the repaired node.
        walk.report(diagnostic(repair.code, repair.what, ctx.location, severity=repair.severity, help=repair.help))
        ctx.repair(repair.dropped, repair.added, repair.more_outputs)
        walk.detail.repairs.setdefault(ctx.index, []).append(repair)
    return bool(repairs)


def _schema_type(ctx: NodeContext, schema: OperatorVersion, output: Formal) -> ValueType:
    """Return a tensor of the only element type that the output can have, or of the type of an input that
    it must match.
    """
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


# Splits ---------------------------------------------------------------------------------------------------------------


def visit_split(ctx: NodeContext, variant: Variant) -> tuple[SplitDetail, Sequence[ValueType]]:
    """Infer a split node. Return the details that conversion needs, and the types of the parts."""
    counted = _tells_count(ctx, variant)
    split, types = infer_split(variant, ctx)
    errors = tuple(ctx.errors)
    named = ctx.node.output
    if "" in named:
        text = f"output {[*named].index('')} has no name: onnxruntime crashes on a split with an omitted output"
        ctx.find("SG220", text, severity="warning")
    outputs = [ctx.complete(value) for value in types]
    data = ctx.input(0)
    divisible = split is not None and _is_divisible(ctx, split)
    written = read_written(variant, ctx) if split is None else None
    ctx.split = SplitDetail(variant, split, data, divisible, errors, *_lengths_input(ctx, variant), counted, written)
    return ctx.split, outputs


def keep_split(
    walk: GraphWalk,
    node: NodeProto,
    index: int,
    detail: SplitDetail,
    outputs: Sequence[ValueType],
    obligations: tuple[Obligation, ...],
) -> None:
    """Keep a split node's details for conversion and for the report."""
    walk.detail.splits[index] = detail
    if not walk.state.record.keeps_reports:
        return
    label, inputs = node_label(node, index), node.input[:]
    given, location = inputs[0] if inputs else "", f"{walk.location}/{label}"
    report = FoundSplit(
        label, location, given, tuple(node.output[:]), detail, outputs, obligations, walk.facts, walk.branch
    )
    walk.state.record.keep_report(report)


def _lengths_input(ctx: NodeContext, variant: Variant) -> tuple[str | None, bool]:
    """Return the element type of the lengths input, and whether one length may be -1, which means the rest."""
    if variant.op_type != "VariadicSplit":
        return ctx.input(1).dtype, False
    contents = ctx.contents(2)
    settled = contents is not None and all(
        (isinstance(item, int) and item >= 0) or (isinstance(item, Dim) and ctx.facts.prove_ge(item, 0))
        for item in contents.items
    )
    return ctx.input(2).dtype, not settled


def _tells_count(ctx: NodeContext, variant: Variant) -> bool:
    """Return True if the lengths input has a fixed size, or if there is none. Ask this before the split is inferred,
    because that may fix the size.
    """
    position = 2 if variant.op_type == "VariadicSplit" else 1
    if not ctx.has_input(position) or ctx.contents(position) is not None:
        return True
    shape = ctx.input(position).shape
    return shape is not None and all(isinstance(dim, int) for dim in shape)


def _is_divisible(ctx: NodeContext, split: CanonicalSplit) -> bool:
    if split.total is None or not isinstance(split.count, int) or split.form not in ("equal", "chunks"):
        return False
    if isinstance(split.total, Dim):
        return ctx.facts.prove_divisible(split.total, split.count)
    return split.total % split.count == 0


# Checks of all outputs ------------------------------------------------------------------------------------------------


def without_impossible_dims(ctx: NodeContext, outputs: Sequence[ValueType]) -> Sequence[ValueType]:
    """Return the output types of a node without impossible dimensions. A negative dimension is reported, and the type
    loses its shape. A dimension with a number of more than 64 bits becomes unknown: a multiple of such a number could
    only be 0.
    """
    outputs = [_without_huge_numbers(value) for value in outputs]
    impossible = [_impossible(ctx, value) for value in outputs]
    if not any(dim is not None for dim in impossible):
        return outputs
    # A faulty input has been reported at its own node.
    is_new = not any(known is not None and _impossible(ctx, known) is not None for known in ctx.inputs)
    if is_new and not ctx.errors:
        index = next(index for index, dim in enumerate(impossible) if dim is not None)
        text = f"{ctx.node.op_type}-{ctx.since_version}: output {index} has a dimension of {impossible[index]}"
        ctx.find("SG302", f"{text}; no dimension is below 0")
    pairs = zip(outputs, impossible, strict=True)
    return [value if dim is None else value.with_shape(None) for value, dim in pairs]


def _without_huge_numbers(value: ValueType) -> ValueType:
    shape = value.shape or ()
    if not any(dim is not None and has_huge_number(dim) for dim in shape):
        return value
    return value.with_shape([None if dim is None or has_huge_number(dim) else dim for dim in shape])


def _impossible(ctx: NodeContext, value: ValueType) -> DimLike | None:
    for dim in value.shape or ():
        if isinstance(dim, int):
            if dim < 0:
                return dim
        # A dim without a negative constant is hardly ever negative, and a proof for each would be slow.
        elif isinstance(dim, Dim) and dim.const < 0 and ctx.facts.prove_ge(-1, dim):
            return dim
    return None


# Computed values ------------------------------------------------------------------------------------------------------


def computation_of(walk: GraphWalk, ctx: NodeContext, outputs: Sequence[ValueType]) -> Computation | None:
    """Return the computation of a node; None if there is none. onnx's evaluator must compute the operator, all inputs
    must be known, and the rule must not follow the outputs.
    """
    if ctx.errors:
        return None
    sources: list[ComputedValue | TensorProto | Contents | None] = []
    for position, name in enumerate(ctx.node.input):
        source = _source(walk, ctx, position)
        if source is None and name and ctx.has_input(position):
            return None
        sources.append(source)
    if _is_followed(ctx, outputs):
        return None
    given = [known or UNKNOWN for known in ctx.inputs]
    computation = Computation(ctx.node, ctx.opset, sources, given, outputs)
    return computation if computation.is_short else None


def _is_followed(ctx: NodeContext, outputs: Sequence[ValueType]) -> bool:
    """Return True if everything is known of the outputs, or if they are too large to be computed."""
    for position, known in enumerate(outputs):
        contents = ctx.contents_out.get(position)
        if contents is not None and None not in contents.items:
            continue
        shape = known.shape
        is_unknown = known.kind == "tensor" and (shape is None or not all(isinstance(dim, int) for dim in shape))
        if is_few(known) or is_unknown:
            return False
    return True


def _is_readable(constant: TensorProto) -> bool:
    """Return True for a sound tensor whose elements are in the model or its own file. Inference opens no data file."""
    return not is_in_other_file(constant) and not lacks_data(constant) and misfit(constant) is None


def _source(walk: GraphWalk, ctx: NodeContext, position: int) -> ComputedValue | TensorProto | Contents | None:
    """Return the source of an input of few elements: a computation, a tensor or known elements. Return None if it is
    not known.
    """
    known = ctx.given[position]
    if known.type is None:
        return None
    name = ctx.node.input[position]
    contents = known.contents
    if contents is None or None in contents.items:
        computed = walk.computed_of(name)
        if computed is not None:
            return computed
    if not is_few(known.type):
        return None
    if known.unread:
        constant = walk.constant_of(name)
        return constant if isinstance(constant, TensorProto) and _is_readable(constant) else None
    if contents is None or not all(isinstance(item, (int, float)) for item in contents.items):
        return None
    return contents
