"""Writes operators that a runtime does not read as other operators: one round of a conversion for a target."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from splitgraph.conversion.builders import new_emission
from splitgraph.conversion.cache import ConversionCache
from splitgraph.conversion.keep import CONTRADICTIONS
from splitgraph.conversion.known_values import KnownValues
from splitgraph.conversion.ladder import Ladder
from splitgraph.conversion.node import Node
from splitgraph.conversion.operators.standard import has_standard_form
from splitgraph.conversion.other_ways import Choose, OtherWays, choose_way
from splitgraph.conversion.plan import Plan, Replacement, opset_of
from splitgraph.conversion.plan_opset import assumption_findings, may_round, reads_forbidden
from splitgraph.inference import Walked
from splitgraph.inference.walk_results import GraphDetail
from splitgraph.model.names import FreshNames
from splitgraph.model.onnx_proto import ModelProto, NodeProto
from splitgraph.model.places import operator_label, version_of
from splitgraph.model.scopes import GraphPath, Scope, node_label, plain_domain
from splitgraph.model.value_type import Contents, ValueType
from splitgraph.runtimes.factors import factors
from splitgraph.runtimes.operator_traits import operator_traits
from splitgraph.runtimes.seen_values import How
from splitgraph.runtimes.target import Target
from splitgraph.runtimes.verdicts import Verdict

# The nodes to be written in another way, by graph and index. For each, the element types that the target reads there,
# by their NumPy names; none if the target refuses the node for another reason.
Wanted = Mapping[tuple[GraphPath, int], Collection[str]]


def plan_other_operators(
    plan: Plan,
    model: ModelProto,
    walked: Walked,
    root: Sequence[Scope],
    names: FreshNames,
    why: str,
    *,
    wanted: Wanted,
    choose: Choose,
) -> None:
    """Add replacements for the wanted nodes of a root to the plan: other operators compute the same, at the opset of
    the model.

    The plan must have started with the root. These nodes stay as they are: splits, nodes of other domains without a
    standard form, nodes that are planned already, nodes whose errors the caller accepts, and nodes for which `choose`
    takes none of the ways. why: begins the reason of each change. choose: its choice may depend only on the nodes of
    the ways and the types of their values, because equal nodes get the replacement of the first of them.
    """
    first = len(plan.changes)
    for scope in reversed(root):
        mine = {index: types for (path, index), types in wanted.items() if path == scope.path}
        if mine:
            _GraphPlanner(plan, model, walked, scope, names, why, choose).run(mine)
    plan.changes[first:] = reversed(plan.changes[first:])


def first_read(target: Target, opset: int) -> Choose:
    """Return a function that chooses the first way of which the target reads all nodes. If there is none, it chooses
    the way with the fewest nodes that the target refuses; the next round writes those in another way.
    """

    def choose(ways: Iterator[Replacement], values: KnownValues) -> Replacement | None:
        best: tuple[tuple[int, int], Replacement] | None = None
        for way in ways:
            verdicts = [_verdict(node, target, opset, values) for node in way.nodes or ()]
            refused = sum(verdict in ("refuses", "wrong") for verdict in verdicts)
            open_nodes = len(verdicts) - verdicts.count("reads")
            if not open_nodes:
                return way
            if best is None or (refused, open_nodes) < best[0]:
                best = (refused, open_nodes), way
        return None if best is None else best[1]

    return choose


def _verdict(node: Node | NodeProto, target: Target, opset: int, values: KnownValues) -> Verdict:
    """Return what is known of a node that would be written."""
    message = node.message() if isinstance(node, Node) else node
    version = version_of(message, {"": opset})
    # What a way computes of sizes it computes from Shape.
    traits = operator_traits(message, version, values.type_of, values.knows_elements, lambda name: True)
    kind = tuple(sorted(factors(message, version, _Written(message, values)).items()))
    return target.judge(operator_label(message, version), traits, kind).verdict


@dataclass(frozen=True, slots=True)
class _Written:
    """The values of a node that would be written. A computed value counts as computed from sizes if it looks like a
    list of sizes and is not the first input; otherwise it counts as computed from data.
    """

    node: NodeProto
    values: KnownValues

    def type_of(self, name: str) -> ValueType:
        return self.values.type_of(name)

    def how(self, name: str) -> How:
        if self.values.knows_elements(name):
            return "init"
        kind = self.values.type_of(name)
        is_list = kind.dtype == "int64" and kind.rank in (0, 1)
        return "shape" if is_list and name not in self.node.input[:1] else "computed"

    def contents(self, name: str) -> Contents | None:
        return self.values.contents(name)

    def maker(self, name: str) -> NodeProto | None:
        return None

    def readers(self, name: str) -> Collection[str]:
        return ("Mul",)


@dataclass(slots=True)
class _GraphPlanner:
    """Plans the nodes of one graph."""

    plan: Plan
    model: ModelProto
    walked: Walked
    scope: Scope
    names: FreshNames
    why: str
    choose: Choose

    def run(self, wanted: Mapping[int, Collection[str]]) -> None:
        """Plan the nodes with these indices, the last one first: one that nobody reads afterwards is removed. wanted:
        the element types that each may have.
        """
        scope, plan = self.scope, self.plan
        opset = opset_of(scope.imports)
        cache = ConversionCache(KnownValues(self.walked, scope.path), self.names, plan.left_out.inputs_in(scope))
        is_read = partial(plan.is_read, scope.path)
        ladder = Ladder(opset, opset, cache.values, scope.in_function, is_read, cache=cache)
        lenient = (self.walked.graphs.get(scope.path) or GraphDetail()).lenient
        for index in sorted(wanted, reverse=True):
            node = scope.nodes[index]
            is_aside = (scope.path, index) in self.walked.set_aside
            has_ways = plain_domain(node.domain) == "" or has_standard_form(node)
            if is_aside or not has_ways or plan.at(scope.path).changes(index):
                continue
            replacement = self._replacement(index, wanted[index], ladder)
            if replacement is None or (index in lenient and reads_forbidden(node, replacement)):
                continue
            plan.rounding |= may_round(node, replacement)
            replacement.why = f"{self.why}: {replacement.why}"
            plan.replace(scope, index, replacement)
        plan.notes += assumption_findings(ladder, scope)

    def _replacement(self, index: int, types: Collection[str], ladder: Ladder) -> Replacement | None:
        scope, cache = self.scope, ladder.cache
        node = scope.nodes[index]
        key = cache.key_of(node, self.walked.visits(scope)[index])
        known = cache.find(key, node, index)
        if known is not None:
            return None if known.nodes is None else known
        emission = new_emission(self.plan, self.model, scope, node, index, self.names, ladder.to_opset)
        ways = OtherWays(ladder, node, f"{scope.location}/{node_label(node, index)}", emission, types)
        try:
            return choose_way(ways, key, self.choose)
        except CONTRADICTIONS:
            # Adapters rely on what inference accepts. Errors of nodes that never run are accepted here.
            if not self.walked.never_run:
                raise
            return None
