"""Converting one node from opset to opset: the guard keeps or edits it, or it climbs with the help of adapters."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace

from splitgraph.conversion.ladder.climb import Climb
from splitgraph.conversion.ladder.conversion_cache import KEPT, ConversionCache, Key, NameLog
from splitgraph.conversion.ladder.graph_context import GraphContext
from splitgraph.conversion.ladder.guard import check_node, is_kept
from splitgraph.conversion.nodes.node import Node, needed
from splitgraph.conversion.nodes.omitted_arguments import blocker, reads_left_out, without_left_out
from splitgraph.conversion.planning.emission import Emission
from splitgraph.conversion.planning.plan import Replacement
from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.onnx_proto import NodeProto

# The most reasons in one message; one is often enough.
_MOST_REASONS = 3


class Blocked(Exception):
    """A node cannot be converted. blockers: every reason."""

    def __init__(self, blockers: Sequence[Diagnostic]) -> None:
        super().__init__()
        self.blockers = blockers


@dataclass(slots=True)
class Ladder:
    """Converts the nodes of one graph to another opset of ai.onnx."""

    graph: GraphContext
    cache: ConversionCache

    def convert(self, node: NodeProto, key: Key | None, location: str, emission: Emission) -> Replacement:
        """Return what becomes of a node of ai.onnx at the target opset. key: that of the cache. Raises Blocked with all
        blockers.
        """
        emission.names = log = NameLog(emission.names)
        self.graph.values.asked.clear()
        climb = Climb(self.graph, location, emission)
        try:
            replacement = self._convert(node, climb)
        except Blocked as refusal:
            raise Blocked(self._in_its_own_name(node, key, climb, refusal.blockers)) from None
        if key is not None and not climb.asked_for_readers:
            self.cache.keep(key, node, replacement, log, emission.prefix, is_sure=not self.graph.assumptions)
        return replacement

    def _convert(self, node: NodeProto, climb: Climb) -> Replacement:
        emission, left_out = climb.emission, self.cache.left_out
        facts = self.graph.facts(Node.of(node), node, self.graph.source, climb.location)
        edited, why, blockers = check_node(facts)
        if reads_left_out(node, left_out) and (edited or blockers or not self._is_kept_without(node, climb.location)):
            raise Blocked([blocker(node, left_out, "SG405", climb.location)])
        if not blockers:
            return KEPT if edited is None else Replacement([edited], (), why)
        nodes = climb.take(Node.of(node), self.graph.source)
        if climb.blockers:
            # The guard has checked every boundary, so that its blockers say more where no adapter was used.
            raise Blocked(climb.blockers if climb.adapted else blockers)
        nodes = needed(nodes, (name for name in node.output if name))
        read = {name for made in nodes for name in made.reads}
        constants = [tensor for tensor in emission.initializers if tensor.name in read]
        return Replacement(nodes, constants, "; ".join(dict.fromkeys(climb.reasons)))

    def _is_kept_without(self, node: NodeProto, location: str) -> bool:
        """True for a node that the guard also keeps in a call that omits its inputs."""
        absent = without_left_out(node, self.cache.left_out)
        return is_kept(self.graph.facts(Node.of(absent), absent, self.graph.source, location))

    def _in_its_own_name(
        self, node: NodeProto, key: Key | None, climb: Climb, blockers: Sequence[Diagnostic]
    ) -> Sequence[Diagnostic]:
        """The blockers, with one in place of those about nodes that conversion wrote, which the user does not know."""
        foreign = [
            found for found in blockers if found in climb.of_written or not found.message.startswith(node.op_type)
        ]
        if not climb.adapted or not foreign:
            return blockers
        stop = self.cache.stop(key, lambda: self._nearest(node, climb))
        # The reasons at that opset come first: they are why the node stops there.
        every = dict.fromkeys(found.message for found in foreign)
        reasons = sorted(every, key=lambda text: f"opset {stop}" not in text)
        more = f"; and {len(reasons) - _MOST_REASONS} more" if len(reasons) > _MOST_REASONS else ""
        side = "beyond" if self.graph.target > self.graph.source else "below"
        text = f"{node.op_type} cannot go {side} opset {stop}, because the nodes that would replace it cannot: "
        text += "; ".join(reasons[:_MOST_REASONS]) + more
        made = diagnostic(foreign[0].code, text, climb.location, help=f"Stop at opset {stop}.")
        return [*(found for found in blockers if found not in foreign), made]

    def _nearest(self, node: NodeProto, climb: Climb) -> int:
        """The opset nearest to the target to which the node can be converted."""

        def is_refused(opset: int) -> bool:
            # With a cache of its own: the other one holds what nodes become at the target.
            graph = replace(self.graph, target=opset, assumptions={})
            trial = Ladder(graph, ConversionCache(graph.values, self.cache.names, self.cache.left_out))
            try:
                trial._convert(node, Climb(graph, climb.location, climb.emission.afresh(opset)))
            except Blocked:
                return True
            return False

        if self.graph.target > self.graph.source:
            way = range(self.graph.target - 1, self.graph.source, -1)
            return next((opset for opset in way if not is_refused(opset)), self.graph.source)
        # A node that is refused at an opset is refused below it, too. Bisection avoids old opsets, which take longest.
        way = range(self.graph.source, self.graph.target, -1)
        return way[bisect_left(way, True, lo=1, key=is_refused) - 1]
