"""Converting splits between forms at the model's own opset: to Split, VariadicSplit or Slice, to explicit lengths."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from splitgraph.conversion.apply import apply_plan
from splitgraph.conversion.builders import Emission
from splitgraph.conversion.inlining import inline_functions, inlined_text
from splitgraph.conversion.ir_version import (
    check_ir_version,
    fit_ir_version,
    has_unnamed_parts,
    name_parts,
    refuse_unknown_versions,
)
from splitgraph.conversion.known_values import find_left_out
from splitgraph.conversion.plan import Plan, Replacement, opset_of
from splitgraph.conversion.repair import repaired
from splitgraph.conversion.rewrite import Rewrite, step
from splitgraph.conversion.splits.joined_slices import plan_partitions
from splitgraph.conversion.splits.lower import LENGTHS_INPUT, SplitNode, SplitRewrites, without_rest
from splitgraph.conversion.splits.sequences import TargetAt, plain_split_at, plan_sequences
from splitgraph.dim import ceildiv
from splitgraph.findings.diagnostics import Diagnostic, SplitgraphError, diagnostic
from splitgraph.inference import Walked, walk_model
from splitgraph.inference.walk_results import SplitDetail
from splitgraph.model.attributes import make_attribute
from splitgraph.model.deferred import np, numpy_helper
from splitgraph.model.names import FreshNames, Producers, used_names
from splitgraph.model.onnx_proto import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto
from splitgraph.model.scopes import Scope, plain_domain, roots, scopes
from splitgraph.model.value_type import ValueType
from splitgraph.options import STRICT, IRVersion, Leeway
from splitgraph.splits import variadic_split_1, variant_at
from splitgraph.splits.canonical import CanonicalSplit, SplitForm, clamped_lengths
from splitgraph.splits.lowering import LowerRequest, NotRepresentable, computed_lengths
from splitgraph.splits.slices import slice_variant
from splitgraph.splits.variadic_split_1 import FORM_KEY, is_variadic_function

FORMS = ("split", "variadic-split", "slice")


def convert_forms(
    model: ModelProto,
    to: str | None,
    leeway: Leeway = STRICT,
    *,
    explicit_lengths: bool = False,
    ir_version: IRVersion = None,
) -> Rewrite[ModelProto]:
    """Return a copy of the model with its splits as plain Split, as VariadicSplit functions, or as slices; the model
    itself is not changed.

    to: the form, one of `FORMS`. leeway: what the user permits. explicit_lengths: lengths are written out and local
    functions inlined, for runtimes that read nothing else. ir_version: of the result. Raises ConversionError with every
    blocker, SplitgraphError for another form.
    """
    if to not in FORMS:
        raise SplitgraphError(f"splits cannot be converted to {to!r}; the targets are {', '.join(map(repr, FORMS))}")
    if to == "slice" and explicit_lengths:
        raise SplitgraphError("slices have bounds and no lengths; explicit_lengths is for 'split'")
    check_ir_version(ir_version)
    own = model.ir_version
    rewrite, walked = repaired(model, leeway)
    model, before = rewrite.model, walked.opset
    plan = Plan(left_out=find_left_out(model, walked.scopes))
    plan.refuse_errors(walked)
    if to == "split" and explicit_lengths and not plan.blockers:
        inlined = _with_functions_inlined(plan, model)
        if inlined is not model:
            model, walked = inlined, walk_model(inlined, walked.leeway)
            if leeway.accept:
                # A node that was inlined may have a place where nobody accepted its finding.
                plan.refuse_errors(walked)
            plan.left_out, plan.known = find_left_out(model, walked.scopes), walked
    names = FreshNames(used_names(model, walked.scopes))
    ours = {function.name for function in model.functions if is_variadic_function(function)}
    if not any(blocker.code == "SG103" for blocker in plan.blockers):
        for root in roots(walked.scopes):
            if root[0].is_function and is_variadic_function(root[0].proto):
                continue
            plan.start(root)
            if to == "variadic-split":
                _plan_variadic(plan, model, walked, root, names)
            else:
                _plan_plain(plan, model, walked, root, names, to, explicit_lengths)
    refuse_unknown_versions(plan, walked.scopes)
    plan.blockers += plan.needed(walked)
    plan.raise_blockers(f"the splits cannot be converted to {to}", rewrite.diagnostics)
    if to != "variadic-split":
        plan.gone_functions = ours - _still_called(plan, model)
    rewrite = rewrite.then(apply_plan(plan, model))
    converted, told = fit_ir_version(rewrite.model, ir_version, before.get(""), own, lowers=False)
    changes = name_parts(converted) if has_unnamed_parts(walked) else []
    return replace(rewrite.then(step(converted, changes, told)), from_opset=dict(before))


def _with_functions_inlined(plan: Plan, model: ModelProto) -> ModelProto:
    """Return the model with local functions inlined, except ours; itself where there are none or onnx cannot inline
    them.
    """
    try:
        inlined = inline_functions(model)
    except ValueError as error:
        text = f"the local functions are kept, because onnx cannot inline them: {error}"
        advice = "Export the model so that the model and its functions import the same version of each domain."
        plan.notes.append(diagnostic("SG413", text, "main", severity="warning", help=advice))
        return model
    if inlined is not model:
        plan.notes.append(diagnostic("SG413", inlined_text(model, ours_too=False), "main", severity="info"))
    return inlined


def _plan_variadic(plan: Plan, model: ModelProto, walked: Walked, root: Sequence[Scope], names: FreshNames) -> None:
    rewrites = SplitRewrites(plan, model, root, names, "convert --to variadic-split")
    for split_node in rewrites.find(walked):
        is_plain = split_node.node.op_type == "Split" and not plain_domain(split_node.node.domain)
        if is_plain and variant_at("Split", opset_of(split_node.scope.imports)) is not None:
            replacement = rewrites.write(split_node, variadic_split_1.VARIANT)
            if replacement is not None:
                _keep_form(replacement, split_node.detail)
    rewrites.settle()


def _keep_form(replacement: Replacement, detail: SplitDetail) -> None:
    split = detail.split
    if split is not None and split.form in ("equal", "chunks"):
        for node in replacement.messages():
            if node.domain == variadic_split_1.DOMAIN:
                node.metadata_props.add(key=FORM_KEY, value=split.form)


def _plan_plain(
    plan: Plan,
    model: ModelProto,
    walked: Walked,
    root: Sequence[Scope],
    names: FreshNames,
    to: str,
    explicit_lengths: bool,
) -> None:
    """Plan plain nodes of ai.onnx in place of the splits: Split or Slice."""
    why = f"convert --to {to}"
    target_at: TargetAt = slice_variant if to == "slice" else plain_split_at
    rewrites, producers = SplitRewrites(plan, model, root, names, why), Producers(root)
    uncounted: set[str] = set()
    for split_node in rewrites.find(walked):
        variant = target_at(opset_of(split_node.scope.imports))
        if variant is None or split_node.detail.variant.op_type not in ("Split", "VariadicSplit"):
            continue
        plain = _as_plain(split_node, producers.seen_from(split_node.scope), model, explicit_lengths)
        if plain is None:
            plan.notes.append(_kept(split_node))
            continue
        if to == "slice":
            plain = _of_read_parts(plain, plan)
        counted = not explicit_lengths or _is_counted(plain.node, plain.detail, uncounted)
        replacement = rewrites.write(plain, variant, explicit_lengths=explicit_lengths, counted=counted)
        if replacement is not None:
            _to_plain_domain(replacement)
    rewrites.settle()
    plan_sequences(plan, model, walked, root, names, why, target_at, explicit_lengths=explicit_lengths)
    if to == "split":
        plan_partitions(plan, model, walked, root, names, why, explicit_lengths=explicit_lengths)


def _of_read_parts(split_node: SplitNode, plan: Plan) -> SplitNode:
    """Return the split without the names of outputs that nobody reads, so that no Slice is written for them. If nobody
    reads any, all stay.
    """
    read = [name if plan.is_read(split_node.scope.path, name) else "" for name in split_node.node.output]
    if not any(read) or read == list(split_node.node.output):
        return split_node
    node = NodeProto()
    node.CopyFrom(split_node.node)
    node.output[:] = read
    return replace(split_node, node=node)


def _as_plain(
    split_node: SplitNode, producers: Producers, model: ModelProto, explicit_lengths: bool
) -> SplitNode | None:
    """Return the split with its axis as an attribute and in its former form; None where the axis must stay an input."""
    scope, node, detail = split_node.scope, split_node.node, split_node.detail
    if detail.variant.op_type != "VariadicSplit":
        return split_node
    opset, reference = opset_of(scope.imports), None
    if detail.split is not None and detail.split.axis is None:
        reference = axis_reference(producers, node, opset, _attributes_in(model, scope))
        if reference is None:
            return None
    node = _with_axis(node, detail, reference)
    detail = _with_form(node, detail, producers, opset, explicit_lengths)
    if detail.rest_possible and has_no_rest(producers, node, detail.data, opset):
        detail = replace(detail, rest_possible=False, lengths_dtype="int64")
    return replace(split_node, node=node, detail=detail)


def _is_counted(node: NodeProto, detail: SplitDetail, uncounted: set[str]) -> bool:
    """Return whether the lengths alone show how many there are, and so how many outputs the node has.

    uncounted: the names of lengths that do not; this adds to them.
    """
    position = LENGTHS_INPUT[detail.variant.op_type]
    if len(node.input) <= position or not node.input[position]:
        return True
    if not detail.lengths_counted:
        uncounted.add(node.input[position])
    return node.input[position] not in uncounted


def _attributes_in(model: ModelProto, scope: Scope) -> Sequence[str]:
    """Return the attributes of the function that contains the scope."""
    if not scope.in_function:
        return ()
    function = model.functions[scope.path[1]]
    return (*function.attribute, *(default.name for default in function.attribute_proto))


def _kept(split_node: SplitNode) -> Diagnostic:
    """Return the note that says why a VariadicSplit is kept."""
    text = "the axis is known only at run time, and a plain node needs it as a constant, so the node is kept"
    advice = "Give the axis as a constant."
    if split_node.scope.in_function:
        text += ": it depends on the arguments of each call of the function"
        advice += " Where all calls give the same one, inline the function first (onnx.inliner)."
    return diagnostic("SG408", text, split_node.location, severity="warning", help=advice)


def _with_axis(node: NodeProto, detail: SplitDetail, reference: str | None) -> NodeProto:
    """Return a copy of a VariadicSplit node with its axis as the attribute that Split has.

    reference: the attribute of the enclosing function that the axis is, None for an axis that is known.
    """
    copy = NodeProto()
    copy.CopyFrom(node)
    if reference is not None:
        copy.attribute.append(AttributeProto(name="axis", type=AttributeProto.INT, ref_attr_name=reference))
    elif detail.split is not None and detail.split.axis is not None:
        copy.attribute.append(make_attribute("axis", detail.split.axis))
    return copy


def _with_form(
    node: NodeProto, detail: SplitDetail, producers: Producers, opset: int, explicit_lengths: bool
) -> SplitDetail:
    """Return the split in its former form, if its lengths still have that form."""
    kept = {entry.key: entry.value for entry in node.metadata_props}.get(FORM_KEY)
    split = detail.split
    if split is None or explicit_lengths or kept not in ("equal", "chunks"):
        return detail
    form: SplitForm = "equal" if kept == "equal" else "chunks"
    parts = len(node.output)
    if not (
        parts == 1
        or _has_lengths_of(split, form, parts)
        or lengths_are_computed(producers, node, split, detail.data, opset, form)
    ):
        return detail
    canonical = CanonicalSplit(split.axis, split.total, split.lengths, form, parts)
    return SplitDetail(detail.variant, canonical, detail.data, form == "equal", detail.errors)


def _has_lengths_of(split: CanonicalSplit, form: SplitForm, parts: int) -> bool:
    total = split.total
    if total is None:
        return False
    size = total // parts if form == "equal" else ceildiv(total, parts)
    plain = (*[size] * (parts - 1), total - (parts - 1) * size)
    return split.lengths in (plain, clamped_lengths(total, size, parts))


def _to_plain_domain(replacement: Replacement) -> None:
    for node in replacement.messages():
        node.ClearField("domain")
        for index in range(len(node.metadata_props) - 1, -1, -1):
            if node.metadata_props[index].key == FORM_KEY:
                del node.metadata_props[index]


def _still_called(plan: Plan, model: ModelProto) -> set[str]:
    """Return the names of the VariadicSplit functions that are still called after the rewrite."""
    called = set()
    for scope in scopes(model):
        edits = plan.edits.get(scope.path)
        for index, node in enumerate(scope.nodes):
            if node.domain == variadic_split_1.DOMAIN and not (edits and edits.changes(index)):
                called.add(node.op_type)
    return called


# Lengths that splitgraph computes -------------------------------------------------------------------------------------

# splitgraph writes nodes that compute lengths, or an axis from an attribute of a function. It recognizes them, so that
# the way back is lossless.


def lengths_are_computed(
    producers: Producers, node: NodeProto, split: CanonicalSplit, data: ValueType, opset: int, form: SplitForm
) -> bool:
    """Return True when the lengths of a VariadicSplit call are computed by the nodes that lowering writes for the form.

    Where the lengths of equal parts are valid they sum to the dimension, so chunks are the same.
    """
    forms: tuple[SplitForm, ...] = ("equal",) if form == "equal" else ("chunks", "equal")
    return any(
        _computes(producers, node, replace(split, form=candidate), data, _expected(node, opset, given))
        for candidate in forms
        for given in (False, True)
    )


def has_no_rest(producers: Producers, node: NodeProto, data: ValueType, opset: int) -> bool:
    """Return True when the lengths of a VariadicSplit call come from the nodes that replace a -1 by the rest along the
    axis of the call, so that none of them is -1.
    """
    if len(node.input) < 3:
        return False
    # From the lengths up to the lengths that were given, and to the axis.
    given = _above(producers, node.input[2], ("Where", 2), ("Cast", 0))
    axis = _above(
        producers, node.input[2], ("Where", 1), ("Sub", 0), ("Sub", 0), ("Gather", 1), ("Reshape", 0), ("Cast", 0)
    )
    if given is None or axis is None:
        return False
    along, wanted = (_number(producers.constant(name)) for name in (axis, node.input[1]))
    if along is None or wanted is None:
        return False
    if along != wanted and (not data.rank or (along - wanted) % data.rank):
        return False
    alike, expected = NodeProto(), _expected(node, opset, given=False)
    alike.CopyFrom(node)
    alike.input[1] = axis
    lengths = without_rest(alike, given, expected)
    return _same(producers, {made.output[0]: made for made in expected.helpers}, lengths, node.input[2])


def _number(tensor: TensorProto | None) -> int | None:
    if tensor is None or tensor.data_location == TensorProto.EXTERNAL:
        return None
    array = numpy_helper.to_array(tensor)
    return int(array.item()) if array.size == 1 and array.dtype.kind in "iu" else None


def _above(producers: Producers, name: str, *steps: tuple[str, int]) -> str | None:
    """Return the value at the end of a path upwards: each step names an operator and one of its inputs; None without
    such.
    """
    for op_type, index in steps:
        made = producers.node(name)
        if made is None or made.op_type != op_type or len(made.input) <= index:
            return None
        name = made.input[index]
    return name


def axis_reference(producers: Producers, node: NodeProto, opset: int, attributes: Iterable[str]) -> str | None:
    """Return the attribute of the enclosing function that gives the axis of a VariadicSplit call, None where none does.

    attributes: those of the function.
    """
    made = producers.node(node.input[1])
    if made is not None and (made.op_type, plain_domain(made.domain)) == ("Constant", ""):
        return next((a.ref_attr_name for a in made.attribute if a.name == "value_int" and a.ref_attr_name), None)
    for attribute in attributes:
        for given in (False, True):
            expected = _expected(node, opset, given)
            wanted = expected.reference(attribute, node.input[0], "axis")
            if _same(producers, {made.output[0]: made for made in expected.helpers}, wanted, node.input[1]):
                return attribute
    return None


def _expected(node: NodeProto, opset: int, given: bool) -> Emission:
    return Emission(FreshNames(node.input), opset, True, "expected", lambda attribute: given, GraphProto())


def _computes(
    producers: Producers, node: NodeProto, split: CanonicalSplit, data: ValueType, expected: Emission
) -> bool:
    axis = next((attribute for attribute in node.attribute if attribute.name == "axis"), None)
    unknown = replace(split, lengths=None)
    try:
        request = LowerRequest(node=node, split=unknown, data=data, builder=expected, axis_attribute=axis)
        wanted = computed_lengths(request)
    except NotRepresentable:
        return False
    return _same(producers, {made.output[0]: made for made in expected.helpers}, wanted, node.input[2])


def _same(producers: Producers, expected: Mapping[str, NodeProto], wanted: str, name: str) -> bool:
    node = expected.get(wanted)
    if node is None:
        return wanted == name
    if node.op_type == "Constant" and node.attribute[0].name == "value":
        tensor = producers.constant(name)
        return tensor is not None and _equal(tensor, node.attribute[0].t)
    made = producers.node(name)
    return (
        made is not None
        and (made.op_type, plain_domain(made.domain)) == (node.op_type, "")
        and list(made.output) == [name]
        and len(made.input) == len(node.input)
        and list(made.attribute) == list(node.attribute)
        and all(_same(producers, expected, a, b) for a, b in zip(node.input, made.input, strict=True))
    )


def _equal(first: TensorProto, second: TensorProto) -> bool:
    if first.data_type != second.data_type or list(first.dims) != list(second.dims):
        return False
    if TensorProto.EXTERNAL in (first.data_location, second.data_location):
        return False
    return bool(np.array_equal(numpy_helper.to_array(first), numpy_helper.to_array(second)))
