"""Estimates the opsets at which a runtime may read a model, from the table of operators, over all nodes at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache, partial
from typing import NamedTuple

from splitgraph.model.schemas import OperatorVersion, newest_opset
from splitgraph.model.schemas.history import meant_version, versions_between
from splitgraph.model.scopes import plain_domain
from splitgraph.runtimes.check import Examined
from splitgraph.runtimes.target import Target
from splitgraph.runtimes.verdicts import Verdict

# Opsets below this one have other rules for broadcasting; what is older is seldom read better.
_OLDEST = 7
# Opsets at which splits or slices get other forms: newer and older ones, in the order in which they are tried.
_NEWER, _OLDER = (10, 11, 13, 18), (17, 13, 11)
# Conversions that are tried because of the estimate.
_MOST_ESTIMATED = 4


class Estimate(NamedTuple):
    """What is expected at an opset: how many nodes are refused, and how many are not known to be read."""

    refused: int
    unknown: int


def opsets_to_try(examined: Examined, target: Target) -> dict[int, Estimate]:
    """Return the opsets to try, the most promising first: those with the fewest nodes that are not read; of equal ones
    the nearest to the model's own. Then those at which only splits change.
    """
    own = examined.opset
    newest = target.newest_opset or newest_opset(own)
    start = min(own, newest)
    estimates = estimate(examined, target, range(min(_OLDEST, start), newest + 1))
    promising = sorted(estimates, key=lambda opset: (estimates[opset], abs(opset - own)))[:_MOST_ESTIMATED]
    newer = [opset for opset in _NEWER if start < opset <= newest]
    tried = [*promising, start, *newer, *(opset for opset in _OLDER if opset < start)]
    return {opset: estimates[opset] for opset in tried}


def estimate(examined: Examined, target: Target, opsets: Sequence[int]) -> dict[int, Estimate]:
    """Return what is expected of a model at each of these opsets. Splits are left out: they get another form at most
    opsets. So are operators that the target reads in no version: they are written with others.
    """
    refused, unknown = Counter[int](), Counter[int]()
    is_read = cache(partial(_is_read_somewhere, target, examined.opset))
    for positions in examined.kinds:
        node, number = examined.nodes[positions[0]], len(positions)
        op_type = node.node.op_type
        if plain_domain(node.node.domain) or node.gets_other_forms or not is_read(op_type):
            continue
        # Most opsets have the version of the one before.
        version: OperatorVersion | None = None
        verdict: Verdict = "unmeasured"
        for opset in opsets:
            before, version = version, meant_version(op_type, opset)
            if version is None:
                verdict = "unmeasured"
            elif version is not before:
                label = f"{op_type}-{version.since_version}"
                verdict = target.judge_version(label, node.own, node.factors).verdict
            refused[opset] += number * (verdict in ("refuses", "wrong"))
            unknown[opset] += number * (verdict in ("some", "unmeasured"))
    return {opset: Estimate(refused[opset], unknown[opset]) for opset in opsets}


def _is_read_somewhere(target: Target, own: int, op_type: str) -> bool:
    versions = versions_between(op_type, 1, newest_opset(own))
    return any(target.operators.reads(f"{op_type}-{version.since_version}") for version in versions)
