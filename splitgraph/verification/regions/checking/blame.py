"""Ask the arbiter about everything that differs, and tell what shows a difference of a region."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.model.value_type import UNKNOWN
from splitgraph.options import ATOL_WRITTEN_OUT
from splitgraph.verification.engines.engine_process import Suspect
from splitgraph.verification.regions.checking.alike import has_other_weights
from splitgraph.verification.regions.checking.checked import CheckedKind, CheckedRegion
from splitgraph.verification.regions.checking.question import RegionQuestion
from splitgraph.verification.regions.drawing.amounts import beyond_types
from splitgraph.verification.regions.drawing.draw import PLAIN, is_fully_drawn, overflow_in_float16
from splitgraph.verification.regions.judging.arbiter import Arbiter, Opinion

REFERENCE = "reference"


def settle(
    question: RegionQuestion,
    members: Sequence[CheckedRegion],
    kinds: Sequence[CheckedKind],
    engine: str,
    deadline: float,
) -> None:
    """Give each region the opinions of the arbiter: about values of the first model first, then about drawn ones."""
    for member in members:
        suspects = [suspect for record in member.records for suspect in record.suspects]
        member.opinions = _opinions(question, member.kind, suspects, engine, deadline)
    shared = []
    for kind in kinds:
        asked = REFERENCE if kind.is_by_reference else engine
        drawn = () if kind.drawn is None else kind.drawn.suspects
        shared.append(_opinions(question, kind, drawn, asked, deadline))
    for member in members:
        member.opinions += shared[member.kind.number]


def _opinions(
    question: RegionQuestion, kind: CheckedKind, suspects: Sequence[Suspect], engine: str, deadline: float
) -> list[tuple[Suspect, Opinion]]:
    """Return an opinion of each suspect, up to the first that the models are to blame for."""
    tolerances = (0.0, 0.0) if question.is_strict else question.tolerances
    traits = kind.is_exact, kind.has_same_kernels, kind.regroups
    arbiter = Arbiter(engine, *tolerances, deadline, kind.signed, *traits)
    new = [suspect for suspect in suspects if id(suspect) not in kind.judged]
    judged = arbiter.judge_each(kind.models, question.folders, new)
    opinions: list[tuple[Suspect, Opinion]] = []
    for suspect in suspects:
        known = kind.judged.get(id(suspect))
        opinion = next(judged) if known is None else known[1]
        if opinion.cause != "late":
            kind.judged[id(suspect)] = suspect, opinion
        opinions.append((suspect, _weighed(suspect, opinion, question.tolerances[1])))
        if opinions[-1][1].cause == "models":
            break
    return opinions


def _weighed(suspect: Suspect, opinion: Opinion, atol: float) -> Opinion:
    """Return what an opinion means where operators were written out, which the absolute tolerance tells."""
    if suspect.kind == "captured" or atol < ATOL_WRITTEN_OUT:
        return opinion
    # Formulas of several operators round otherwise than the kernel of one, which does not make the kernel doubtful;
    # and they overflow, saturate and meet NaN at other places.
    if opinion.cause == "engine":
        return opinion._replace(who="")
    is_unusual = suspect.kind not in PLAIN or overflow_in_float16(suspect.inputs)
    return opinion._replace(cause="special") if opinion.cause == "models" and is_unusual else opinion


def differs_at_drawn(question: RegionQuestion, member: CheckedRegion) -> bool:
    """Return True if ordinary drawn numbers show that a region differs, and no values of the first model do."""
    blamed = _blamed(question, member)
    return not {"normal", "together"}.isdisjoint(blamed) and "captured" not in blamed


def differs_at_values(question: RegionQuestion, member: CheckedRegion) -> bool:
    """Return True if values of the first model show that a region differs, other than in constants that sizes meet:
    those are not drawn, and few runs reach them. What is computed of constants alone says no size of any run.
    """
    region = member.region
    if region.inputs and not all(question.is_drawable(border.before) for border in region.outputs):
        return "captured" in _blamed(question, member)
    return any(suspect.kind == "captured" for suspect, _ in member.suspects_by("models"))


def _blamed(question: RegionQuestion, member: CheckedRegion) -> list[str]:
    """Return the kinds of values that show that a region differs; none if only its constants are others."""
    if has_other_weights(question, member.kind.models):
        # Other weights are a difference, whether this model can show it or not.
        return []
    return [suspect.kind for suspect, _ in member.suspects_by("models")]


def is_driven(question: RegionQuestion, member: CheckedRegion) -> bool:
    """Return True if a region was compared on all kinds of drawn values, each of its inputs that may change did so, and
    each condition in its context was true and false.
    """
    kind, region, first = member.kind, member.region, question.found.before
    if kind.drawn is None or not kind.drawn.cases or kind.drawn.is_open or not is_fully_drawn(kind.models):
        return False
    moved = set(kind.fixed).union(*(record.moved for record in member.all_records()))
    if len(moved) < len(region.inputs):
        # A position that is the same in all cases reads one of several values.
        return False
    seen = set[tuple[int, bool]]().union(*(record.seen for record in member.all_records()))
    conditions = (
        place
        for place, border in enumerate(region.outputs)
        if first.makers.get(border.before) in region.context
        and question.is_drawable(border.before)
        and first.types.get(border.before, UNKNOWN).dtype == "bool"
    )
    return all({(place, False), (place, True)} <= seen for place in conditions)


def grows(question: RegionQuestion, member: CheckedRegion) -> bool:
    """Return True for a region that adds up along an open axis, or casts to a type that does not hold all lengths: what
    it shows at some lengths says little of others.
    """
    is_narrow = question.axes.is_any_open and bool(beyond_types(member.kind.models))
    return is_narrow or question.axes.add_up(member.region)
