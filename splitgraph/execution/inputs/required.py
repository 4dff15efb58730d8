"""What a model demands of the sizes of its inputs, as inference has found it."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from splitgraph.dim import Dim, DimLike, Obligation, substitute, symbols_of
from splitgraph.execution.inputs.solver import Constraint
from splitgraph.inference.analysis import Analysis


def read_required_by_splits(analysis: Analysis) -> list[Constraint]:
    """What the splits of a model demand of its symbols."""
    told = {str(each): each for each in analysis.obligations}
    return [_demand(told[text], split.location) for split in analysis.splits for text in split.obligations]


def read_required(analysis: Analysis, free: Collection[str]) -> list[Constraint]:
    """Everything that a model demands of its symbols, over those of its inputs (`free`) where the others have a
    meaning; the location of a demand is in a branch only where no node outside of all branches says the same.
    """
    read = []
    for obligation, locations in analysis.required_by.items():
        firm = (location for location in locations if "_branch" not in location)
        read.append(_demand(obligation, next(firm, "".join(locations[:1]))))
    return _over(read, set(free))


def _demand(obligation: Obligation, location: str) -> Constraint:
    return Constraint(obligation.lhs, obligation.relation, obligation.rhs, location)


def _over(demands: Sequence[Constraint], free: set[str]) -> list[Constraint]:
    """The demands over free symbols, with what a firm equation says of another put in its place."""
    found: list[Constraint] = []
    meanings: dict[str, DimLike] = {}
    left = list(demands)
    while left:
        later = []
        for demand in left:
            inner = demand.symbols - free - meanings.keys()
            if not inner:
                found.append(_substituted(demand, meanings))
            elif not _note_meaning(demand, meanings, free):
                later.append(demand)
        if len(later) == len(left):
            break
        left = later
    return found


def _note_meaning(demand: Constraint, meanings: dict[str, DimLike], free: set[str]) -> bool:
    """Whether a demand is an equation that says what one symbol stands for, which is then kept."""
    if demand.relation != "==" or "_branch" in demand.location:
        return False
    for side, other in ((demand.lhs, demand.rhs), (demand.rhs, demand.lhs)):
        names = symbols_of(side)
        if names == {str(side)} and not names & free and symbols_of(other) <= free | meanings.keys():
            meanings[str(side)] = _put_in(other, meanings)
            return True
    return False


def _substituted(demand: Constraint, meanings: Mapping[str, DimLike]) -> Constraint:
    if not demand.symbols & meanings.keys():
        return demand
    return Constraint(_put_in(demand.lhs, meanings), demand.relation, _put_in(demand.rhs, meanings), demand.location)


def _put_in(dim: DimLike, meanings: Mapping[str, DimLike]) -> DimLike:
    return substitute(dim, meanings) if isinstance(dim, Dim) else dim
