"""Converts a model for a target: opset, forms of splits, functions and IR version, as far as the target needs it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import count
from typing import NamedTuple

from splitgraph.conversion.apply import apply_plan
from splitgraph.conversion.imports import used_domains
from splitgraph.conversion.inlining import inline_functions, inlined_text
from splitgraph.conversion.ir_version import check_ir_version, fit_ir_version
from splitgraph.conversion.operators.standard import standard_form
from splitgraph.conversion.plan import Plan
from splitgraph.conversion.rewrite import Change, Rewrite, step
from splitgraph.conversion.splits.forms import convert_forms
from splitgraph.conversion.targets.opsets import Estimate, opsets_to_try
from splitgraph.conversion.targets.own_constants import with_own_constants
from splitgraph.conversion.targets.prepared import Prepared
from splitgraph.conversion.targets.refusals import (
    TargetRefusal,
    in_the_users_words,
    left_of,
    lies_behind,
    refusal_of,
    stays_blocked,
)
from splitgraph.conversion.targets.write import TargetPlanner
from splitgraph.findings.diagnostics import ConversionError, Diagnostic, diagnostic
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.places import with_nodes
from splitgraph.model.scopes import VERSIONED_DOMAINS, GraphPath, model_imports, plain_domain, scopes
from splitgraph.options import STRICT, IRVersion, Leeway
from splitgraph.runtimes.advice import asked_name
from splitgraph.runtimes.check import Examined, TargetCheck, check_target, examine, unnamed_dimensions
from splitgraph.runtimes.target import Target
from splitgraph.splits.variadic_split_1 import is_variadic_function

# A round can show what the next one mends: a sequence becomes a Split, and that gets its own form.
_MOST_ROUNDS = 6
# Operators that one message names.
_MOST_NAMED = 4


def convert_for_target(
    model: ModelProto,
    target: Target,
    opset: int | None = None,
    ir_version: IRVersion = None,
    leeway: Leeway = STRICT,
) -> Rewrite:
    """Return a copy of the model that the target reads; the model itself is not changed. What the target reads stays as
    it is.

    opset: of the result; None keeps the model's own if the target reads it, and else takes the nearest at which most is
    known to be read. ir_version: of the result; None lowers the model's own only where the target does not read it.
    leeway: what the user permits. Raises ConversionError with every blocker.
    """
    return checked_conversion(Prepared(model, leeway), target, opset, ir_version)[0]


def checked_conversion(
    prepared: Prepared, target: Target, opset: int | None = None, ir_version: IRVersion = None
) -> tuple[Rewrite, TargetCheck]:
    """Return the rewrite of `convert_for_target`, and the check of its model. prepared: the model, which may be
    converted for other targets, too.
    """
    check_ir_version(ir_version)
    # Of what is in nobody's way, nothing changes.
    has_errors = check_target(prepared.source, target).has_errors
    starts = starts_of(prepared, target) if has_errors else [prepared]
    refusals: list[ConversionError] = []
    for start in starts:
        try:
            rewrite, check = in_other_forms(start, target, opset, ir_version, refusals)
            return with_own_constants(rewrite, target) if has_errors else rewrite, check
        except ConversionError as error:
            refusals.append(error)
    # What is in the way of a folded model says most: all that goes by folding is gone.
    raise refusals[0]


def starts_of(prepared: Prepared, target: Target) -> Iterator[Prepared]:
    """Yield what a conversion may begin with: the model folded, as exactly as possible first, and as it is. Before
    that, if the target does not read operators of other domains, or their version: the model at a version that it
    reads, and with these operators in those of ai.onnx.
    """
    for begun in (*_of_other_domains(prepared, target), prepared):
        yield from begun.folded
        yield from begun.rounded
        yield begun


def _of_other_domains(prepared: Prepared, target: Target) -> Iterator[Prepared]:
    versions = _read_versions(prepared.model, target)
    if versions:
        yield from prepared.at_versions(versions)
    failing = {(plain_domain(node.node.domain), node.node.op_type) for node in prepared.source.not_read(target)}
    if versions or any(domain and standard_form(domain, op_type) is not None for domain, op_type in failing):
        yield from prepared.standard


def _read_versions(model: ModelProto, target: Target) -> dict[str, int]:
    """Return the newest version that a target reads of each domain of which it refuses that of a model. An import that
    nothing uses is dropped instead.
    """
    found = {}
    for domain, version in model_imports(model).items():
        if domain not in VERSIONED_DOMAINS or not target.refuses_import(domain, version):
            continue
        older = range(version - 1, 0, -1)
        read = next((each for each in older if not target.refuses_import(domain, each)), None)
        if read is not None and domain in used_domains(model):
            found[domain] = read
    return found


def in_other_forms(
    prepared: Prepared,
    target: Target,
    opset: int | None = None,
    ir_version: IRVersion = None,
    earlier: Sequence[ConversionError] = (),
) -> tuple[Rewrite, TargetCheck]:
    """Return the rewrite of a model, or of a folded one, and the check of the result: with other forms and at another
    opset, as `convert_for_target` says. Blockers have the names of the user's nodes.

    earlier: refusals of the model folded in other ways. An opset at which the target refuses one of their blockers as
    it is here is not tried; if this leaves no opset, the first of them is raised.
    """
    model = prepared.user.model
    own = model_imports(model).get("")
    if opset is not None or own is None:
        rewrite, check = _at_opset(prepared, target, own if opset is None else opset, ir_version)
        return _apart_from(rewrite, model), check
    refusals: list[ConversionError] = []
    best: _Result | None = None
    for tried, expected in opsets_to_try(prepared.source, target).items():
        # Another opset is only worth a trial if more is known to be read there, and if what was in the way may be gone.
        if best is not None and not best.may_be_better_at(expected):
            continue
        if any(lies_behind(refusal, own, tried) for refusal in refusals):
            continue
        source, user = prepared.source, prepared.user_locations
        if any(stays_blocked(refusal, source, user, target, tried) for refusal in (*earlier, *refusals)):
            continue
        try:
            rewrite, check = _at_opset(prepared, target, tried, ir_version)
        except ConversionError as error:
            if tried == own and not _is_about_target(error):
                raise
            refusals.append(error)
            continue
        if best is None or _left(check) < _left(best.check):
            best = _Result(rewrite, check, expected)
        if not _left(best.check):
            break
    if best is None and not refusals:
        raise earlier[0]
    if best is None:
        # What the target does not read says more than why another opset cannot be reached; then the shortest list.
        raise min(refusals, key=lambda refusal: (not _is_about_target(refusal), len(refusal.diagnostics)))
    return _apart_from(best.rewrite, model), best.check


def _refusal(
    left: Sequence[Diagnostic],
    prepared: Prepared,
    target: Target,
    opset: int | None,
    examined: Examined,
    reasons: Mapping[str, str],
) -> TargetRefusal:
    """Return the error for what is left of a converted model, in the names of the user's model."""
    model, user, source = prepared.user.model, prepared.user.names.locations(examined.model), prepared.user.source
    told = left if examined.model is model else in_the_users_words(left, user, source, target)
    why = {own: reason for location, reason in reasons.items() for own in user.get(location, [location])}
    refusal = refusal_of(told, target, why, source)
    refusal.opset, refusal.stuck = opset, _stuck(left, prepared, examined.model)
    return refusal


def _stuck(left: Sequence[Diagnostic], prepared: Prepared, model: ModelProto) -> dict[str, object]:
    """Return the kinds of the nodes that something is in the way of, or of what was written for them, by the locations
    of the user's nodes that they are. Nodes that folding added are none of the user's.

    left: findings about nodes of the converted model.
    """
    begun = prepared.names.locations(model)
    here = {location for finding in left for location in begun.get(finding.location, ())}
    user = prepared.user.names.own(here, prepared.model)
    return {user[node.location]: node.kind for node in prepared.source.nodes if node.location in user}


class _Result(NamedTuple):
    """What a conversion gave at one opset. expected: what was expected of the opset."""

    rewrite: Rewrite
    check: TargetCheck
    expected: Estimate

    def may_be_better_at(self, expected: Estimate) -> bool:
        """Return True if more may be known to be read at another opset. What is expected tells nothing of splits, which
        have other forms there.
        """
        if sum(expected) >= _left(self.check):
            return False
        return sum(expected) < sum(self.expected) or any(
            operator.startswith("Split") and answer != "reads" for operator, answer in self.check.nodes.by_operator()
        )


def _left(check: TargetCheck) -> int:
    """Return how many nodes are not known to be read."""
    return len(check.nodes) - check.nodes.counts["reads"]


def _is_about_target(refusal: ConversionError) -> bool:
    """Return True if nothing is in the way but what the target does not read."""
    return all(blocker.code.startswith("SG7") for blocker in refusal.diagnostics)


def _apart_from(rewrite: Rewrite, model: ModelProto) -> Rewrite:
    """Return the rewrite with a model of its own: what nothing changed is the caller's."""
    if rewrite.model is not model:
        return rewrite
    copy = ModelProto()
    copy.CopyFrom(model)
    return replace(rewrite, held=copy)


def _at_opset(
    prepared: Prepared, target: Target, opset: int | None, ir_version: IRVersion
) -> tuple[Rewrite, TargetCheck]:
    """Return the model for the target at one opset, and its check. Raises ConversionError with every blocker."""
    model, leeway = prepared.user.model, prepared.later
    is_own = opset in (None, model_imports(model).get(""))
    rewrite, names = prepared.at(opset), prepared.user.names
    examined, joins, reasons = prepared.examine(rewrite.model), True, dict[str, str]()
    stuck = set[tuple[GraphPath, str]]()
    for _ in range(_MOST_ROUNDS):
        failing = examined.not_read(target)
        further = None
        if any(node.is_call for node in failing):
            try:
                further = _without_functions(rewrite.model, leeway)
            except ValueError as error:
                text = f"onnx cannot inline the local functions: {error}"
                reasons.update((node.location, text) for node in failing if node.is_call)
        if further is None and failing:
            plan = Plan(left_out=prepared.left_out(examined), known=examined.walked)
            TargetPlanner(plan, examined, target, joins, stuck).run()
            further = _applied(plan, examined, target, reasons)
            joins = False
        if further is None:
            break
        # Their changes, with the locations of the user's nodes.
        located = tuple(names.located(further.changes, rewrite.model))
        rewrite = rewrite.then(replace(further, changes=located))
        examined = examine(rewrite.model, leeway)
    rewrite = _with_read_interface(rewrite, target)
    if rewrite.model is not examined.model:
        examined = examine(rewrite.model, leeway)
    rewrite = _with_ir_version(rewrite, target, ir_version)
    # Another IR version changes nothing that inference reads.
    examined = replace(examined, model=rewrite.model)
    left = left_of(examined, target, None if is_own else prepared.user.source)
    if left:
        raise _refusal(left, prepared, target, opset, examined, reasons)
    check = check_target(examined, target)
    notes = [finding for finding in check.findings if finding.severity != "error" and finding.code != "SG705"]
    notes = list(with_nodes([*notes, *_unmeasured(check)], examined.walked.scopes))
    return replace(rewrite, diagnostics=tuple(dict.fromkeys((*rewrite.diagnostics, *notes)))), check


def _unmeasured(check: TargetCheck) -> list[Diagnostic]:
    """Return one note about all nodes of which nothing was measured."""
    if not check.nodes.counts["unmeasured"] or not check.target.measured:
        return []
    nodes = [node for node in check.nodes if node.answer == "unmeasured"]
    operators = list(dict.fromkeys(node.operator for node in nodes))
    named = ", ".join(operators[:_MOST_NAMED]) + (" and others" if len(operators) > _MOST_NAMED else "")
    text = f"it is not known whether {check.target.label} reads {len(nodes)} of {len(check.nodes)} nodes ({named})"
    help = f"splitgraph check RESULT --target {asked_name(check.target)} says what was not measured."
    return [diagnostic("SG705", text, nodes[0].node, severity="info", help=help, target=check.target.key)]


def _applied(plan: Plan, examined: Examined, target: Target, reasons: dict[str, str]) -> Rewrite | None:
    """Return the model after one round; None where nothing is left to do. reasons: this adds why a node stays as it is,
    by location.
    """
    Plan(blockers=plan.needed(examined.walked)).raise_blockers(f"the model cannot be converted for {target.label}")
    reasons.update((note.location, note.message) for note in (*plan.notes, *plan.blockers))
    return apply_plan(plan, examined.model) if plan.changes else None


def _without_functions(model: ModelProto, leeway: Leeway) -> Rewrite | None:
    """Return the model with its functions inlined, VariadicSplit as a plain Split; None where that changes nothing.
    Raises ValueError where functions that are not ours cannot be inlined, and no function is ours.
    """
    has_ours = any(map(is_variadic_function, model.functions))
    plain = convert_forms(model, "split", leeway) if has_ours else step(model)
    try:
        inlined = inline_functions(plain.model, ours_too=True)
    except ValueError as error:
        text = f"onnx cannot inline the local functions: {error}"
        note = diagnostic("SG413", text, "main", severity="warning")
        if not plain.changes:
            raise
        return plain.then(step(plain.model, (), [note]))
    if inlined is plain.model:
        return plain if plain.changes else None
    note = diagnostic("SG413", inlined_text(plain.model), "main", severity="info")
    return plain.then(step(inlined, (), [note]))


def with_same_nodes(rewrite: Rewrite, target: Target) -> Rewrite:
    """Return the rewrite without what the target refuses of a model whatever its nodes are: imports that nothing uses,
    dimensions without a name, constants that nodes share, and a newer IR version. Raises ConversionError for what an
    older one cannot express.
    """
    return _with_ir_version(with_own_constants(_with_read_interface(rewrite, target), target), target, None)


def _with_read_interface(rewrite: Rewrite, target: Target) -> Rewrite:
    return _with_named_dimensions(_without_unused_imports(rewrite, target), target)


def _without_unused_imports(rewrite: Rewrite, target: Target) -> Rewrite:
    """Return the rewrite without imports of other domains that nothing uses, if the target refuses a model for them."""
    refused = {
        domain for domain, version in model_imports(rewrite.model).items() if target.refuses_import(domain, version)
    }
    used = {plain_domain(node.domain) for scope in scopes(rewrite.model) for node in scope.nodes}
    unused = refused - used - {plain_domain(function.domain) for function in rewrite.model.functions}
    if not unused:
        return rewrite
    copy = ModelProto()
    copy.CopyFrom(rewrite.model)
    kept = [entry for entry in copy.opset_import if plain_domain(entry.domain) not in unused]
    del copy.opset_import[:]
    copy.opset_import.extend(kept)
    why = f"nothing uses it, and {target.label} refuses a model that imports it"
    changes = [Change("main", f"import of {domain}", "", why) for domain in sorted(unused)]
    return replace(rewrite.then(step(copy, changes)), to_opset=rewrite.to_opset)


def _with_named_dimensions(rewrite: Rewrite, target: Target) -> Rewrite:
    """Return the rewrite with a name of its own for each dimension of an input that has neither a size nor a name, if
    the target refuses such an input.
    """
    if not target.refuses_unnamed or not any(unnamed_dimensions(rewrite.model)):
        return rewrite
    copy = ModelProto()
    copy.CopyFrom(rewrite.model)
    values = (*copy.graph.input, *copy.graph.output, *copy.graph.value_info)
    taken = {dim.dim_param for value in values for dim in value.type.tensor_type.shape.dim}
    free = (name for number in count() if (name := f"dim_{number}") not in taken)
    changes = []
    for value, dim in unnamed_dimensions(copy):
        dim.dim_param = next(free)
        why = f"{target.label} refuses a dimension that has neither a size nor a name"
        changes.append(Change("main", f"input {value.name}", f"dimension {dim.dim_param}", why))
    return replace(rewrite.then(step(copy, changes)), to_opset=rewrite.to_opset)


def _with_ir_version(rewrite: Rewrite, target: Target, version: IRVersion) -> Rewrite:
    newest, model = target.newest_ir_version, rewrite.model
    wanted = newest if version is None and newest is not None and model.ir_version > newest else version
    if wanted is None:
        return rewrite
    copy = ModelProto()
    copy.CopyFrom(model)
    fitted, told = fit_ir_version(copy, wanted, rewrite.to_opset.get(""), model.ir_version, lowers=False)
    return replace(rewrite.then(step(fitted, (), told)), to_opset=rewrite.to_opset)
