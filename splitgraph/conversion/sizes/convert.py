"""Writes a model with other sizes: its inputs get them, and the constants that say an old size follow."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from splitgraph.conversion.apply import apply_plan
from splitgraph.conversion.inlining import Called, called_nodes, inline_functions, inlined_text
from splitgraph.conversion.plan import Plan
from splitgraph.conversion.repair import repaired
from splitgraph.conversion.rewrite import GivenSizes, Rewrite, step
from splitgraph.conversion.sizes.alike import ask_about_weights
from splitgraph.conversion.sizes.constant_outputs import (
    constant_output_notes,
    readers_of,
    spelled_outputs,
    with_readers,
    without_idle_readers,
)
from splitgraph.conversion.sizes.follow import Operators
from splitgraph.conversion.sizes.formulas import NotWritable
from splitgraph.conversion.sizes.laws import condition_findings
from splitgraph.conversion.sizes.needs import Reading
from splitgraph.conversion.sizes.over import APART, FLOW, OVER
from splitgraph.conversion.sizes.rules import RULES, SAYING
from splitgraph.conversion.sizes.search import Given, find_reading
from splitgraph.conversion.sizes.user_entries import given_by_the_user
from splitgraph.conversion.sizes.values import RULES as VALUE_RULES
from splitgraph.conversion.sizes.values import VALUES
from splitgraph.conversion.sizes.wanted import Wanted, read_wanted, relabelled, renamed
from splitgraph.conversion.sizes.weights import weights_of
from splitgraph.conversion.sizes.windows import RULES as WINDOW_RULES
from splitgraph.conversion.sizes.write import SizeWriter
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference import infer_model, walk_model
from splitgraph.model.names import FreshNames, used_names
from splitgraph.model.onnx_proto import ModelProto, ValueInfoProto
from splitgraph.model.scopes import MAIN, roots, scopes
from splitgraph.model.value_type import UNKNOWN, Shape
from splitgraph.model.values import write_dim
from splitgraph.options import STRICT, Leeway, NewSizes, Sizes

# An Identity reads what is a constant and an output.
_RULES = {**RULES, **VALUE_RULES, **WINDOW_RULES}
_OPERATORS = Operators("", _RULES, {**SAYING, "Identity": 0}, OVER, APART, FLOW, ask_about_weights, VALUES)


def convert_sizes(model: ModelProto, sizes: NewSizes, leeway: Leeway = STRICT) -> Rewrite[ModelProto]:
    """Return a copy of the model whose inputs have other sizes. Constants that say an old size say it in terms of the
    new dimension. Raises ConversionError with everything that is in the way, SplitgraphError for wrong sizes.
    """
    rewrite, given = convert_to(model, read_wanted(model, sizes), sizes, leeway)
    return replace(rewrite, new_sizes=GivenSizes(sizes, *given))


def convert_to(
    model: ModelProto,
    wanted: Wanted,
    sizes: NewSizes,
    leeway: Leeway = STRICT,
    taken: Mapping[Reading, int] | None = None,
) -> tuple[Rewrite[ModelProto], Given]:
    """Return the rewrite of a model to sizes that were read before, and what `GivenSizes` holds besides these sizes.

    wanted: the sizes as read from `sizes`. taken: the readings of numbers, if they are known (see `find_reading`).
    """
    plan = Plan()
    rewrite, walked = repaired(model, leeway)
    plan.refuse_errors(walked)
    plan.raise_blockers("the model is wrong", rewrite.diagnostics)
    whole, leeway = rewrite.model, walked.leeway
    rewrite = rewrite.then(_without_functions(whole))
    model = rewrite.model
    called = called_nodes(whole, model) if model is not whole else Called({}, {})
    known = walked.graphs[MAIN]
    model, outputs = with_readers(model, known)
    wanted = replace(wanted, outputs=readers_of(model, outputs))
    labelled = relabelled(model, wanted)
    entries = given_by_the_user(lambda: walk_model(labelled), sizes, _OPERATORS, wanted)
    bare = _undeclared(labelled)
    before = walk_model(_undeclared(renamed(model, wanted)), leeway)
    weights = weights_of(sizes.folder)
    found = find_reading(
        wanted, _OPERATORS, entries, before, lambda follower: walk_model(bare, leeway, follower), weights, taken
    )
    related = wanted.related(breach.obligation for breach in found.judgement.breaches)
    if related is not None:
        return convert_to(whole, related, sizes, leeway, taken)
    walked, follower = found.walked, found.follower
    plan.blockers += map(called.told, spelled_outputs(found.in_the_way(), outputs))
    plan.raise_blockers("the sizes cannot change")
    names = FreshNames(used_names(labelled, walked.scopes))
    for root in roots(walked.scopes):
        plan.start(root)
        try:
            SizeWriter(plan, walked, follower, names, root).run()
        except NotWritable as reason:
            plan.blockers.append(diagnostic("SG420", str(reason), root[0].location))
    plan.raise_blockers("the sizes cannot change")
    written = apply_plan(plan, labelled)
    kept = without_idle_readers(written.model, outputs)
    result = _declared_anew(written.model, wanted)
    plan.blockers += map(called.told, _errors_at_sizes(model, result, found.wanted))
    plan.raise_blockers("the sizes cannot change")
    conditions = condition_findings(found.judgement, found.wanted)
    notes = constant_output_notes(kept, known.constants, (*sizes.keep, *sizes.follow))
    findings = (*written.diagnostics, *conditions, *notes)
    return rewrite.then(replace(written, held=result, diagnostics=findings)), found.given


def _errors_at_sizes(before: ModelProto, after: ModelProto, wanted: Wanted) -> Sequence[Diagnostic]:
    """Return the errors that a model has with its new sizes. A model with names has an error at no size, or at all that
    are tried: one size without errors is enough.
    """
    own = infer_model(before, fill=False).diagnostics
    known = {finding.location for finding in own if finding.severity == "error"}

    def errors_at(sizes: Mapping[str, int]) -> list[Diagnostic]:
        at = ", ".join(f"{name} = {size}" for name, size in sizes.items())
        return [
            diagnostic("SG420", f"with {at or 'the new sizes'}: {finding.message}", finding.location)
            for finding in infer_model(after, Sizes(sizes), fill=False).diagnostics
            if finding.severity == "error" and finding.location not in known
        ]

    errors = errors_at({})
    if errors or wanted.new:
        return errors
    for sizes in wanted.others():
        found = errors_at(sizes)
        if not found:
            return ()
        errors = errors or found
    return errors


def _without_functions(model: ModelProto) -> Rewrite[ModelProto]:
    """Return the model with its functions inlined: a call may need other sizes than the next one."""
    if not model.functions:
        return step(model)
    try:
        inlined = inline_functions(model, ours_too=True)
    except ValueError as error:
        plan = Plan(blockers=[diagnostic("SG420", f"onnx cannot inline the local functions: {error}", "main")])
        plan.raise_blockers("the sizes cannot change")
        raise
    note = diagnostic("SG413", inlined_text(model), "main", severity="info")
    return step(model).then(step(inlined, (), [note]))


# Declared types -------------------------------------------------------------------------------------------------------


def _undeclared(model: ModelProto) -> ModelProto:
    """Return a copy of a model that says nothing of the types of its values but those of the inputs: what it says is of
    the old sizes.
    """
    copy = ModelProto()
    copy.CopyFrom(model)
    for scope in scopes(copy):
        if scope.is_function:
            continue
        del scope.proto.value_info[:]
        for value in scope.proto.output:
            if value.type.HasField("tensor_type"):
                value.type.tensor_type.ClearField("shape")
        for value in scope.proto.input if scope.path != MAIN else ():
            # The rank says how a body is called.
            for dim in value.type.tensor_type.shape.dim if value.type.HasField("tensor_type") else ():
                dim.Clear()
    return copy


def _declared_anew(model: ModelProto, wanted: Wanted) -> ModelProto:
    """Return the model with the numbers that are wanted in its inputs, and with the types of outputs and inner values
    as they are now: of those that it declared, and no others. What is not known keeps its name.
    """
    for value in model.graph.input:
        for axis, dim in enumerate(wanted.shapes.get(value.name, ())):
            if dim is not None:
                write_dim(wanted.after(dim), value.type.tensor_type.shape.dim[axis])
    types = infer_model(_undeclared(model), fill=False).details.types
    for scope in scopes(model):
        known = types.get(scope.path, {})
        if not scope.is_function:
            inputs = () if scope.path == MAIN else scope.proto.input
            for value in (*inputs, *scope.proto.value_info, *scope.proto.output):
                _declare(value, known.get(value.name, UNKNOWN).shape)
    return model


def _declare(value: ValueInfoProto, shape: Shape | None) -> None:
    """Write the dimensions of a tensor that are known into its declared shape. One that has another rank was wrong with
    the old sizes (SG301), and stays.
    """
    if not value.type.HasField("tensor_type"):
        return
    is_declared, written = value.type.tensor_type.HasField("shape"), value.type.tensor_type.shape.dim
    if shape is not None and len(written) != len(shape):
        if is_declared:
            return
        for _ in shape:
            written.add()
    for entry, dim in zip(written, shape or [None] * len(written), strict=True):
        if dim is not None:
            write_dim(dim, entry)
        elif not entry.HasField("dim_param"):
            entry.ClearField("dim_value")
