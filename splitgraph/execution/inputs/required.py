"""Read the constraints that a model requires of its input sizes, from the results of inference."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from splitgraph.dim import Dim, DimLike, Obligation, substitute, symbols_of
from splitgraph.execution.inputs.constraint import Constraint
from splitgraph.inference.analysis import Analysis


def read_required_by_splits(analysis: Analysis) -> list[Constraint]:
    """Return the constraints that the splits of a model require."""
    obligations = {str(each): each for each in analysis.obligations}
    return [_constraint(obligations[text], split.location) for split in analysis.splits for text in split.obligations]


def read_required(analysis: Analysis, free: Collection[str]) -> list[Constraint]:
    """Return all constraints that a model requires, expressed in the symbols of its inputs (`free`).

    A constraint with an inner symbol is kept if an equation defines that symbol. The location of a constraint is in a
    branch only if no node outside of the branches requires the same.
    """
    required = []
    for obligation, locations in analysis.required_by.items():
        unconditional = (location for location in locations if "_branch" not in location)
        required.append(_constraint(obligation, next(unconditional, "".join(locations[:1]))))
    return _in_free_symbols(required, set(free))


def _constraint(obligation: Obligation, location: str) -> Constraint:
    return Constraint(obligation.lhs, obligation.relation, obligation.rhs, location)


def _in_free_symbols(required: Sequence[Constraint], free: set[str]) -> list[Constraint]:
    """Replace inner symbols by their definitions, and drop the constraints on symbols without a definition."""
    found: list[Constraint] = []
    definitions: dict[str, DimLike] = {}
    left = list(required)
    while left:
        later = []
        for constraint in left:
            inner = constraint.symbols - free - definitions.keys()
            if not inner:
                found.append(_substituted(constraint, definitions))
            elif not _add_definition(constraint, definitions, free):
                later.append(constraint)
        if len(later) == len(left):
            break
        left = later
    return found


def _add_definition(constraint: Constraint, definitions: dict[str, DimLike], free: set[str]) -> bool:
    """Add the definition of an inner symbol if the constraint is such an equation; return True if it is."""
    if constraint.relation != "==" or "_branch" in constraint.location:
        return False
    for side, other in ((constraint.lhs, constraint.rhs), (constraint.rhs, constraint.lhs)):
        names = symbols_of(side)
        if names == {str(side)} and not names & free and symbols_of(other) <= free | definitions.keys():
            definitions[str(side)] = _substitute(other, definitions)
            return True
    return False


def _substituted(constraint: Constraint, definitions: Mapping[str, DimLike]) -> Constraint:
    if not constraint.symbols & definitions.keys():
        return constraint
    left, right = _substitute(constraint.lhs, definitions), _substitute(constraint.rhs, definitions)
    return Constraint(left, constraint.relation, right, constraint.location)


def _substitute(dim: DimLike, definitions: Mapping[str, DimLike]) -> DimLike:
    return substitute(dim, definitions) if isinstance(dim, Dim) else dim
