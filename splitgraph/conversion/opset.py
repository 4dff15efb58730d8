"""Converting a whole model to another opset: it is prepared, planned, edited, and finished."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

from splitgraph.conversion.apply import apply_plan
from splitgraph.conversion.climb import nearest_opset
from splitgraph.conversion.collecting_loops import LOOPS_CARRY_SEQUENCES_FROM, plan_stacking_loops
from splitgraph.conversion.inlining import inline_functions, told_inlined
from splitgraph.conversion.ir_version import (
    check_ir_version,
    fit_ir_version,
    has_unnamed_parts,
    name_parts,
    refuse_unknown_versions,
    told_kept,
)
from splitgraph.conversion.operators.registry import load_families
from splitgraph.conversion.plan import Plan, errors_of
from splitgraph.conversion.plan_opset import gaining_meaning, plan_opset
from splitgraph.conversion.repair import repaired
from splitgraph.conversion.rewrite import Rewrite, step
from splitgraph.conversion.splits.sequences import SEQUENCES_EXIST_FROM, plan_plain_splits
from splitgraph.findings.diagnostics import ConversionError, Diagnostic, SplitgraphError, diagnostic
from splitgraph.inference import Walked, walk_model
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.places import with_nodes
from splitgraph.model.schemas import newest_opset
from splitgraph.model.scopes import plain_domain, scopes
from splitgraph.options import STRICT, IRVersion, Leeway

# By the opset from which on there is nothing to prepare.
_PREPARATIONS = ((LOOPS_CARRY_SEQUENCES_FROM, plan_stacking_loops), (SEQUENCES_EXIST_FROM, plan_plain_splits))


def convert_opset(
    model: ModelProto,
    to_opset: int,
    ir_version: IRVersion = None,
    leeway: Leeway = STRICT,
    *,
    owned: bool = False,
    walked: Walked | None = None,
    standard: bool = False,
) -> Rewrite:
    """Return a copy of the model at another opset of ai.onnx, every node exact; the model itself is not changed.

    ir_version: of the result. None is the model's own, raised to what a newer opset needs or lowered to the one that
    came with an older opset; "keep" lowers nothing. leeway: what the user permits. owned: nobody else has the model, so
    that it is edited itself and not copied. walked: as `repaired`. standard: operators of other domains are written in
    those of ai.onnx. Raises ConversionError with every blocker, and SplitgraphError for an opset that does not exist.
    """
    check_ir_version(ir_version)
    own = model.ir_version
    rewrite, walked, plan = _drafted(model, to_opset, leeway, walked, standard)
    from_opset = walked.opset.get("", to_opset)
    what = "be written in operators of ai.onnx alone" if standard else f"go from opset {from_opset} to {to_opset}"
    plan.raise_blockers(f"the model cannot {what}", rewrite.diagnostics)
    # Asked before the model is edited.
    names_parts = from_opset != to_opset and has_unnamed_parts(walked)
    rewrite = rewrite.then(apply_plan(plan, rewrite.model, owned=owned or rewrite.model is not model))
    opset = to_opset if "" in walked.opset else None
    converted, told = fit_ir_version(rewrite.model, ir_version, opset, own, lowers=to_opset < from_opset)
    if from_opset == opset:
        told = [*told, *told_kept(converted, from_opset, ir_version)]
    changes = name_parts(converted) if names_parts else []
    return replace(rewrite.then(step(converted, changes, told)), from_opset=dict(walked.opset))


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
    highest for an upgrade. None for a model that cannot be converted at all, because it is wrong.
    """

    reachable: int | None

    def __new__(cls, findings: Iterable[Diagnostic] = (), reachable: int | None = None) -> Blockers:
        """Return the findings, each once."""
        made = super().__new__(cls, dict.fromkeys(findings))
        made.reachable = reachable
        return made

    def __getnewargs__(self) -> tuple[Any, ...]:
        """Return what a copy is made from."""
        return tuple(self), self.reachable


def find_blockers(model: ModelProto, to_opset: int, leeway: Leeway = STRICT) -> Blockers:
    """Return what blocks the conversion of a model, which stays as it is, and the nearest opset that it can reach.
    Raises SplitgraphError for an opset that does not exist.
    """
    _, walked, plan = _drafted(model, to_opset, leeway)
    if not plan.blockers:
        return Blockers((), to_opset)
    from_opset = walked.opset.get("")
    if from_opset is None or _is_refused(model, from_opset, leeway):
        return Blockers(plan.blockers)
    is_refused = partial(_is_refused, model, leeway=leeway)
    return Blockers(plan.blockers, nearest_opset(from_opset, to_opset, is_refused))


def _is_refused(model: ModelProto, opset: int, leeway: Leeway) -> bool:
    try:
        return bool(_drafted(model, opset, leeway).plan.blockers)
    except SplitgraphError:
        # The model has an opset that does not exist.
        return True


class _Draft(NamedTuple):
    """A conversion up to its plan: the rewrite that prepares the model, the inference of its result, and the plan."""

    rewrite: Rewrite[ModelProto]
    walked: Walked
    plan: Plan


def _drafted(
    model: ModelProto, to_opset: int, leeway: Leeway, walked: Walked | None = None, standard: bool = False
) -> _Draft:
    """Return the draft with the fewest blockers. walked: as `repaired`. Raises SplitgraphError for an opset that does
    not exist.
    """
    newest = newest_opset(to_opset)
    if not 1 <= to_opset <= newest:
        raise SplitgraphError(f"there is no opset {to_opset} of ai.onnx; splitgraph knows 1 to {newest}")
    load_families()
    drafted = _draft(model, to_opset, leeway, walked, standard)
    if drafted.plan.blockers:
        drafted = _with_functions_inlined(drafted, model, to_opset, standard)
        # The nodes of the user; and those that the preparation wrote or inlined.
        named = with_nodes(drafted.plan.blockers, scopes(model))
        drafted.plan.blockers = list(with_nodes(named, drafted.walked.scopes))
    return drafted


def _draft(
    model: ModelProto, to_opset: int, leeway: Leeway, walked: Walked | None = None, standard: bool = False
) -> _Draft:
    rewrite, walked = repaired(model, leeway, walked)
    for exists_from, prepare in _PREPARATIONS:
        first = prepare(rewrite.model, walked) if to_opset < exists_from else None
        if first is not None and not first.needed(walked):
            rewrite = rewrite.then(apply_plan(first, rewrite.model))
            walked = walk_model(rewrite.model, walked.leeway)
    plan = plan_opset(rewrite.model, walked, to_opset, standard=standard)
    refuse_unknown_versions(plan, walked.scopes)
    if walked.set_aside:
        plan.blockers += [*plan.needed(walked), *gaining_meaning(walked, to_opset)]
    return _Draft(rewrite, walked, plan)


def _with_functions_inlined(first: _Draft, model: ModelProto, to_opset: int, standard: bool) -> _Draft:
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
    second = _draft(inlined, to_opset, first.walked.leeway, standard=standard)
    if len(second.plan.blockers) >= len(first.plan.blockers):
        return first
    text = f"{told_inlined(model, ours_too=False)}; their bodies as written cannot be converted to opset {to_opset}"
    note = diagnostic("SG413", text, "main", severity="info")
    return second._replace(rewrite=step(inlined, (), [note], accepted=second.rewrite.accepted).then(second.rewrite))
