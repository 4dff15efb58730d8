"""Reports errors that the caller's sizes cause: one for each requirement that they violate."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from splitgraph.dim import Dim, DimLike, Facts, Obligation, substitute_if_defined
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.inference.record import Requirement
from splitgraph.inference.walk_state import WalkState


def settle_given_sizes(state: WalkState, walk_without_sizes: Callable[[], WalkState]) -> None:
    """Keep one error for each requirement of the model that the given sizes violate: an export for one length has an
    error at each node that says the length, and at nodes behind them.

    walk_without_sizes: walks the model with the sizes that it declares. Its errors are not of the given sizes; what it
    requires tells the causes apart.
    """
    errors = [finding for finding in state.record.diagnostics if finding.severity == "error"]
    if len(errors) < 2 and not any(map(_is_of_nothing, state.record.requirements)):
        return
    plain = walk_without_sizes()
    at_any_size = {(finding.code, finding.location) for finding in plain.record.diagnostics}
    of_sizes = [error for error in errors if (error.code, error.location) not in at_any_size]
    violated = list(_violated(state, plain))
    if not of_sizes:
        for requirement in violated[:1]:
            state.record.report(_finding(state, requirement))
        return
    causes = dict[Diagnostic, Obligation]()
    for error in of_sizes:
        told = [each.obligation for each in violated if each.location == error.location]
        if told and not any(_implies(known, told[0]) or _implies(told[0], known) for known in causes.values()):
            causes[error] = told[0]
    if causes and len(of_sizes) > len(causes):
        _keep(state, list(causes), of_sizes)


def _implies(one: Obligation, other: Obligation) -> bool:
    known = Facts()
    known.require(one)
    return known.require(other) == "proved"


def _is_of_nothing(requirement: Requirement) -> bool:
    """Return True for a requirement that a dimension is 0."""
    difference = requirement.obligation.lhs - requirement.obligation.rhs
    is_one_term = isinstance(difference, Dim) and len(difference.terms) == 1 and difference.const == 0
    return is_one_term and requirement.obligation.relation == "=="


def _violated(state: WalkState, plain: WalkState) -> Iterator[Requirement]:
    """Yield the requirements on the main graph that the given sizes violate."""
    bound = state.task.sizes.bound
    for requirement in plain.record.requirements:
        obligation = requirement.obligation
        if requirement.branch or obligation.symbols.isdisjoint(bound):
            continue
        left, right = (_at(side, bound) for side in (obligation.lhs, obligation.rhs))
        difference = left - right
        if isinstance(difference, int) and (difference < 0 or (difference > 0 and obligation.relation == "==")):
            yield requirement


def _at(side: DimLike, bound: Mapping[str, DimLike]) -> DimLike:
    return substitute_if_defined(side, bound) if isinstance(side, Dim) else side


def _finding(state: WalkState, requirement: Requirement) -> Diagnostic:
    sizes = {name: size for name, size in state.task.sizes.bound.items() if name in requirement.obligation.symbols}
    said = ", ".join(f"{name} = {size}" for name, size in sorted(sizes.items()))
    text = f"requires {requirement.obligation}, and the given sizes are {said}: nothing but an empty tensor fits"
    help = "Give the size that the model requires, or run reshape to let the model have others."
    return diagnostic("SG302", text, requirement.location, help=help)


def _keep(state: WalkState, causes: list[Diagnostic], of_sizes: list[Diagnostic]) -> None:
    """Leave out the errors of the given sizes that are not causes; the last cause says how many there were."""
    more = len(of_sizes) - len(causes)
    nodes = "another node fails" if more == 1 else f"{more} other nodes fail"
    dropped = [error for error in of_sizes if error not in causes]
    text = f"{causes[-1].message}; {nodes} for the same reason"
    last = replace(causes[-1], message=text)
    state.record.diagnostics[:] = [
        last if finding is causes[-1] else finding for finding in state.record.diagnostics if finding not in dropped
    ]
