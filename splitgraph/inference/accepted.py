"""Says which nodes are set aside by findings that the user accepts, and which acceptances no finding needs.

A node that is set aside is inferred like a node of an unknown operator, so that nothing is concluded from it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from splitgraph.findings.acceptance import REPAIRED, Acceptance, stale
from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.inference.analysis import Analysis
from splitgraph.inference.task import Task
from splitgraph.inference.walk_results import GraphDetail, NodePlace
from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.places import LocatedNode, LocatedNodes
from splitgraph.model.scopes import GraphPath, Scope, function_key, node_label, plain_domain, subgraphs
from splitgraph.options import Leeway
from splitgraph.splits import SPLIT_OPERATORS


@dataclass(slots=True)
class Settled:
    """The result of comparing acceptances with the errors of a model.

    accepted: the findings that the user accepts. refused: errors that cannot be accepted, each with the same error
    saying why. notes: stale acceptances. nodes: the nodes that are set aside, each with a finding. locations: the
    locations of these nodes, as written and as called. consequences: declarations that contradict an inferred type,
    except those of splits; such a contradiction is gone if the type came from a node that is set aside. later: the
    acceptances for the same model after a conversion moved its nodes.
    """

    accepted: list[Diagnostic] = field(default_factory=list)
    refused: dict[Diagnostic, Diagnostic] = field(default_factory=dict)
    notes: list[Diagnostic] = field(default_factory=list)
    nodes: dict[NodePlace, Diagnostic] = field(default_factory=dict)
    locations: dict[str, frozenset[str]] = field(default_factory=dict)
    consequences: frozenset[Diagnostic] = frozenset()
    later: tuple[Acceptance, ...] = ()

    def apply(self, first: Sequence[Diagnostic], again: Sequence[Diagnostic]) -> tuple[Diagnostic, ...]:
        """Return the findings that are left.

        first: all findings. again: the findings with the nodes set aside. Errors that depend on the outputs of these
        nodes are missing in `again`, but they stay: each must be accepted by its own name.
        """
        gone = frozenset(self.accepted)
        kept = dict.fromkeys(finding for finding in again if finding not in gone)
        errors = (finding for finding in first if finding.severity == "error")
        kept.update((finding, None) for finding in errors if finding not in gone and finding not in self.consequences)
        return tuple(self.refused.get(finding, finding) for finding in kept)


def settle(
    accept: Sequence[Acceptance],
    diagnostics: Sequence[Diagnostic],
    scopes: Sequence[Scope],
    graphs: Mapping[GraphPath, GraphDetail],
) -> Settled:
    """Compare acceptances with the findings of a model. scopes, graphs: what its inference knows."""
    settled, nodes = Settled(), _Nodes(scopes)
    errors = [error for error in diagnostics if error.severity == "error"]
    needed: set[Acceptance] = set()
    later = [acceptance for acceptance in accept if acceptance.location is None and not acceptance.node]
    for error in errors:
        matching = [acceptance for acceptance in accept if _reaches(acceptance, error, nodes)]
        if not matching:
            continue
        needed.update(matching)
        places = nodes.at(error.location)
        reason = _why_not(error, places, nodes, graphs)
        if reason is not None:
            settled.refused[error] = replace(error, help=f"It cannot be accepted: {reason}. {error.help}")
            continue
        settled.accepted.append(error)
        if error.code in REPAIRED:
            later.append(matching[0])
            continue
        for place in places:
            settled.nodes.setdefault((place.scope.path, place.position), error)
            for location in (error.location, place.location):
                settled.locations[location] = settled.locations.get(location, frozenset()) | {error.code}
            later.append(Acceptance(error.code, error.location, nodes.steps_to(place)))
    if unneeded := [acceptance for acceptance in accept if acceptance not in needed]:
        locations = [
            f"{scope.location}/{node_label(node, at)}" for scope in scopes for at, node in enumerate(scope.nodes)
        ]
        settled.notes += [stale(acceptance, errors, locations) for acceptance in unneeded]
    contradicted = [error for error in errors if settled.locations and error.code == "SG301"]
    settled.consequences = frozenset(error for error in contradicted if not nodes.has_split(error.location))
    left = _left(settled, errors, nodes)
    settled.later = tuple(
        acceptance for acceptance in dict.fromkeys(later) if (acceptance.code, acceptance.node) not in left
    )
    return settled


def _left(settled: Settled, errors: Sequence[Diagnostic], nodes: _Nodes) -> set[tuple[str, tuple[Hashable, ...]]]:
    """Return the errors that are not accepted, each as its code and its node. A later acceptance must not reach one of
    them: two nodes without outputs cannot be told apart.
    """
    accepted = frozenset(settled.accepted)
    left = [error for error in errors if error not in accepted]
    return {(error.code, nodes.steps_to(place)) for error in left for place in nodes.at(error.location)}


def _reaches(accept: Acceptance, error: Diagnostic, nodes: _Nodes) -> bool:
    if not accept.node:
        return accept.reaches(error)
    if accept.code != error.code:
        return False
    return any(nodes.steps_to(place) == accept.node for place in nodes.at(error.location))


def _why_not(
    error: Diagnostic, places: Sequence[LocatedNode], nodes: _Nodes, graphs: Mapping[GraphPath, GraphDetail]
) -> str | None:
    """Return why a finding cannot be accepted; None if it can be."""
    if not places:
        return "it is about a graph and not about one node"
    for place in places:
        node, index, detail = place.node, place.position, graphs.get(place.scope.path) or GraphDetail()
        repairs = {repair.code for repair in detail.repairs.get(index, ())}
        if error.code in REPAIRED:
            if error.code not in repairs:
                return "the split has no certain reading, so it cannot be read"
        elif index in detail.splits or nodes.is_split(node):
            return "the node is a split, which has to be read"
        elif any(subgraphs(node)):
            return "the node has subgraphs, whose meaning depends on it"
        elif nodes.function_of(node) is not None:
            return "the node calls a function, whose body depends on the call"
    return None


def analyse_accepting(task: Task, leeway: Leeway, analyse: Callable[[Task], Analysis]) -> Analysis:
    """Analyse a model, and again without the nodes whose findings the user accepts."""
    analysis = analyse(task)
    if not leeway.accept:
        return analysis
    first = analysis.diagnostics
    settled = settle(leeway.accept, first, analysis.details.scopes, analysis.details.graphs)
    if settled.locations:
        analysis = analyse(replace(task, set_aside=settled.locations))
    diagnostics = (*settled.apply(first, analysis.diagnostics), *settled.notes)
    return replace(analysis, diagnostics=diagnostics, accepted=tuple(settled.accepted))


class _Nodes(LocatedNodes):
    """Finds nodes by location, and the way to each of them."""

    def steps_to(self, place: LocatedNode) -> tuple[Hashable, ...]:
        """Return the way to a node from the outermost graph: the outputs of each call and of each node around it, the
        functions, and the attributes with the subgraphs. There are no indices, because they change when nodes move.
        """
        steps: list[Hashable] = []
        for scope, position, _ in (*place.calls, place):
            steps += self._steps_into(scope)
            steps.append(tuple(scope.nodes[position].output))
        return tuple(steps)

    def _steps_into(self, scope: Scope) -> list[Hashable]:
        if len(scope.path) < 3:
            return [function_key(scope.proto)] if scope.is_function else []
        *around, index, attribute, position = scope.path
        outer = self.scopes[tuple(around)]
        return [*self._steps_into(outer), tuple(outer.nodes[index].output), attribute, position]

    def has_split(self, location: str) -> bool:
        """Return True if one of the nodes at a location is a split."""
        return any(self.is_split(place.node) for place in self.at(location))

    def is_split(self, node: NodeProto) -> bool:
        """Return True for a node of the split family, even at an opset without that operator."""
        return node.op_type in SPLIT_OPERATORS and plain_domain(node.domain) == ""
