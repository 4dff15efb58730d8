"""Converting a whole model to another opset: it is prepared, planned, edited, and finished."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from splitgraph.conversion.apply import apply_plan
from splitgraph.conversion.collecting_loops import LOOPS_CARRY_SEQUENCES_FROM, plan_stacking_loops
from splitgraph.conversion.imports import drop_imports, importing, newest_opset_of, used_domains
from splitgraph.conversion.inlining import inline_functions, inlined_text
from splitgraph.conversion.ir_version import (
    check_ir_version,
    fit_ir_version,
    has_unnamed_parts,
    kept_version_notes,
    name_parts,
    refuse_unknown_versions,
)
from splitgraph.conversion.ladder import nearest_opset
from splitgraph.conversion.operators.registry import load_families
from splitgraph.conversion.plan import Plan, errors_of
from splitgraph.conversion.plan_opset import Goal, gaining_meaning, plan_opset
from splitgraph.conversion.repair import repaired
from splitgraph.conversion.rewrite import Rewrite, step
from splitgraph.conversion.splits.sequences import SEQUENCES_EXIST_FROM, plan_plain_splits
from splitgraph.findings.diagnostics import ConversionError, Diagnostic, SplitgraphError, diagnostic
from splitgraph.inference import Walked, walk_model
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.places import with_nodes
from splitgraph.model.schemas import newest_opset
from splitgraph.model.schemas.table import newest_in_table
from splitgraph.model.scopes import model_imports, named_opset, plain_domain, scopes
from splitgraph.options import STRICT, IRVersion, Leeway, Opset, opsets_of

# By the opset from which on there is nothing to prepare.
_PREPARATIONS = ((LOOPS_CARRY_SEQUENCES_FROM, plan_stacking_loops), (SEQUENCES_EXIST_FROM, plan_plain_splits))


def convert_opset(
    model: ModelProto,
    opset: Opset,
    ir_version: IRVersion = None,
    leeway: Leeway = STRICT,
    *,
    owned: bool = False,
    walked: Walked | None = None,
    standard: bool = False,
) -> Rewrite:
    """Return a copy of the model at another opset, every node exact; the model itself is not changed.

    opset: of ai.onnx; or of several domains, and the model's own of those that are left out. ir_version: of the result.
    None is the model's own, raised to what a newer opset needs or lowered to the one that came with an older opset;
    "keep" lowers nothing. leeway: what the user permits. owned: nobody else has the model, so
    that it is edited itself and not copied. walked: as `repaired`. standard: operators of other domains are written in
    those of ai.onnx. Raises ConversionError with every blocker, and SplitgraphError for an opset that does not exist.
    """
    check_ir_version(ir_version)
    own, imports = model.ir_version, model_imports(model)
    rewrite, walked, plan = _drafted(model, opsets_of(opset), leeway, walked, standard)
    goal = plan.opset
    assert goal is not None
    from_opset = walked.opset.get("", goal)
    what = "be written in operators of ai.onnx alone" if standard else f"go {_way(walked, goal, plan.domains)}"
    plan.raise_blockers(f"the model cannot {what}", rewrite.diagnostics)
    # Asked before the model is edited.
    names_parts = from_opset != goal and has_unnamed_parts(walked)
    rewrite = rewrite.then(apply_plan(plan, rewrite.model, owned=owned or rewrite.model is not model))
    if "" not in imports and "" in walked.opset and "" not in used_domains(rewrite.model):
        drop_imports(rewrite.model, [""])
    to_opset = model_imports(rewrite.model).get("")
    converted, told = fit_ir_version(rewrite.model, ir_version, to_opset, own, lowers=goal < from_opset)
    if from_opset == to_opset and not plan.domains and not standard:
        told = [*told, *kept_version_notes(converted, from_opset, ir_version)]
    changes = name_parts(converted) if names_parts else []
    return replace(rewrite.then(step(converted, changes, told)), from_opset=imports)


def _way(walked: Walked, goal: int, domains: Mapping[str, int]) -> str:
    """Return from which opsets a model goes to which, in words."""
    ways = {"": (walked.opset.get("", goal), goal)}
    ways |= {domain: (walked.opset.get(domain, version), version) for domain, version in domains.items()}
    told = {domain: way for domain, way in ways.items() if way[0] != way[1]} or {"": ways[""]}
    return " and ".join(f"from {named_opset(domain, start)} to {end}" for domain, (start, end) in told.items())


def in_own_form(model: ModelProto, leeway: Leeway, *, may_move: bool = False) -> Rewrite | None:
    """Return a copy of the model whose nodes in the form of another version have that of its opset; None if it has no
    such nodes. leeway: permits to read them. may_move: where that is impossible, the copy may be at the opset of one of
    these forms. Raises ConversionError as `convert_opset`.
    """
    own, forms = _opsets_of_forms(model, leeway)
    if own is None or not forms:
        return None
    return _first_possible(model, [own, *(reversed(forms) if may_move else ())], leeway)


def as_meant(model: ModelProto) -> ModelProto:
    """Return a model as a conversion reads it whose nodes are read by their form: what runtimes can run. The model
    itself where no node has another form, or where nothing means the same.

    A node in a newer form stays as it is at the opset of that form, so that no rewrite is compared with another one.
    """
    leeway = STRICT._replace(read_by_form=True)
    own, forms = _opsets_of_forms(model, leeway)
    if own is None or not forms:
        return model
    newer = [opset for opset in forms if opset > own]
    try:
        return _first_possible(model, [*newer[-1:], own, *reversed(forms)], leeway).model
    except ConversionError:
        return model


def _opsets_of_forms(model: ModelProto, leeway: Leeway) -> tuple[int | None, list[int]]:
    """Return the opset of a model, and those of the versions whose form its nodes have, in ascending order."""
    walked = walk_model(model, leeway)
    return walked.opset.get(""), sorted(
        {form.opset for graph in walked.graphs.values() for form in graph.forms.values()}
    )


def _first_possible(model: ModelProto, opsets: Iterable[int], leeway: Leeway) -> Rewrite[ModelProto]:
    """Return the conversion to the first of some opsets that is possible. Raises the refusal of the first one."""
    refusals = list[ConversionError]()
    for opset in dict.fromkeys(opsets):
        try:
            return convert_opset(model, opset, "keep", leeway)
        except ConversionError as refusal:
            refusals.append(refusal)
    raise refusals[0]


class Blockers(tuple[Diagnostic, ...]):
    """What blocks the conversion of a model to an opset, as `blockers` returns it: empty if nothing does.

    reachable: the opset nearest to the wanted one that the model can be converted to: the lowest for a downgrade, the
    highest for an upgrade; by domain where the wanted ones are. None for a model that cannot be converted at all,
    because it is wrong.
    """

    reachable: Opset | None

    def __new__(cls, findings: Iterable[Diagnostic] = (), reachable: Opset | None = None) -> Blockers:
        """Return the findings, each once."""
        made = super().__new__(cls, dict.fromkeys(findings))
        made.reachable = reachable
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return what a copy is made from."""
        return tuple(self), self.reachable


def find_blockers(model: ModelProto, opset: Opset, leeway: Leeway = STRICT) -> Blockers:
    """Return what blocks the conversion of a model, which stays as it is, and the nearest opset that it can reach; of
    several domains, the nearest of each. Raises SplitgraphError for an opset that does not exist.
    """
    goals = opsets_of(opset)
    _, walked, plan = _drafted(model, goals, leeway)
    if not plan.blockers:
        return Blockers((), opset)
    reached = {domain: walked.opset[domain] for domain in goals if domain in walked.opset}
    if not reached or _is_refused(model, reached, leeway):
        return Blockers(plan.blockers)
    for domain, start in list(reached.items()):

        def is_refused(version: int, domain: str = domain) -> bool:
            return _is_refused(model, {**reached, domain: version}, leeway)

        if not is_refused(goals[domain]):
            reached[domain] = goals[domain]
        else:
            reached[domain] = nearest_opset(start, goals[domain], is_refused)
    return Blockers(plan.blockers, reached[""] if isinstance(opset, int) else reached)


def _is_refused(model: ModelProto, opsets: Mapping[str, int], leeway: Leeway) -> bool:
    try:
        return bool(_drafted(model, opsets, leeway).plan.blockers)
    except SplitgraphError:
        # The model has an opset that does not exist.
        return True


class _Draft(NamedTuple):
    """A conversion up to its plan: the rewrite that prepares the model, the inference of its result, and the plan."""

    rewrite: Rewrite[ModelProto]
    walked: Walked
    plan: Plan


def _drafted(
    model: ModelProto,
    opsets: Mapping[str, int],
    leeway: Leeway,
    walked: Walked | None = None,
    standard: bool = False,
) -> _Draft:
    """Return the draft with the fewest blockers. opsets: the wanted ones, by domain. walked: as `repaired`. Raises
    SplitgraphError for an opset that does not exist.
    """
    for domain, opset in opsets.items():
        newest = newest_in_table(domain) if domain else newest_opset(opset)
        if not 1 <= opset <= newest:
            raise SplitgraphError(f"there is no opset {opset} of {domain or 'ai.onnx'}; splitgraph knows 1 to {newest}")
    imports = model_imports(model)
    domains = {domain: opset for domain, opset in opsets.items() if domain and domain in imports}
    goal = Goal(opsets.get("", imports.get("") or newest_opset_of(model)), domains, standard)
    if "" not in imports and (standard or any(imports[domain] != opset for domain, opset in domains.items())):
        # What replaces nodes of other domains may be of ai.onnx.
        own = newest_opset_of(model)
        model, walked = importing(model, own), None
    load_families()
    drafted = _draft(model, goal, leeway, walked)
    if drafted.plan.blockers:
        drafted = _with_functions_inlined(drafted, model, goal)
        # The nodes of the user; and those that the preparation wrote or inlined.
        named = with_nodes(drafted.plan.blockers, scopes(model))
        drafted.plan.blockers = list(with_nodes(named, drafted.walked.scopes))
    return drafted


def _draft(model: ModelProto, goal: Goal, leeway: Leeway, walked: Walked | None = None) -> _Draft:
    rewrite, walked = repaired(model, leeway, walked)
    for exists_from, prepare in _PREPARATIONS:
        first = prepare(rewrite.model, walked) if goal.opset < exists_from else None
        if first is not None and not first.needed(walked):
            rewrite = rewrite.then(apply_plan(first, rewrite.model))
            walked = walk_model(rewrite.model, walked.leeway)
    plan = plan_opset(rewrite.model, walked, goal)
    refuse_unknown_versions(plan, walked.scopes)
    if walked.set_aside:
        plan.blockers += [*plan.needed(walked), *gaining_meaning(walked, goal)]
    return _Draft(rewrite, walked, plan)


def _with_functions_inlined(first: _Draft, model: ModelProto, goal: Goal) -> _Draft:
    """Return the draft of the model with its local functions inlined, where it has fewer blockers; otherwise the first
    draft. In a function body, attributes and types may be unknown that each call gives.
    """
    # Runtimes disagree about a function with the name of an operator of ai.onnx.
    # Inlining would give other names and places to the nodes with accepted findings.
    if (
        errors_of(first.walked)
        or first.rewrite.accepted
        or any(plain_domain(function.domain) == "" for function in model.functions)
    ):
        return first
    try:
        inlined = inline_functions(model)
    except ValueError as error:
        text = f"the local functions cannot be inlined, which might help: {error}"
        note = diagnostic("SG413", text, "main", severity="warning")
        return first._replace(rewrite=first.rewrite.then(step(first.rewrite.model, (), [note])))
    if inlined is model:
        return first
    second = _draft(inlined, goal, first.walked.leeway)
    if len(second.plan.blockers) >= len(first.plan.blockers):
        return first
    text = f"{inlined_text(model, ours_too=False)}; their bodies as written cannot be converted to opset {goal.opset}"
    note = diagnostic("SG413", text, "main", severity="info")
    return second._replace(rewrite=step(inlined, (), [note], accepted=second.rewrite.accepted).then(second.rewrite))
