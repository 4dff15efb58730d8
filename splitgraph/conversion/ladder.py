"""What becomes of each node of a graph at the target opset, and the reasons where nothing can.

Climb takes the node over the boundaries; here stand what is asked before, and what is said of a refusal.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from splitgraph.conversion.builders import Emission
from splitgraph.conversion.cache import KEPT, ConversionCache, Key, NameLog
from splitgraph.conversion.climb import Climb, GraphContext
from splitgraph.conversion.keep import Route, route_of
from splitgraph.conversion.known_values import blocker, reads_left_out, without_left_out
from splitgraph.conversion.node import Node, changed_attributes
from splitgraph.conversion.operators.standard import standard_form
from splitgraph.conversion.plan import Replacement
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.schemas import newest_opset
from splitgraph.model.scopes import MACHINE_LEARNING, named_opset, operator_name, plain_domain

# The most reasons in one message; one is often enough.
_MOST_REASONS = 3


class Blocked(Exception):
    """A node cannot be converted. blockers: every reason."""

    def __init__(self, blockers: Sequence[Diagnostic]) -> None:
        super().__init__()
        self.blockers = blockers


@dataclass(slots=True)
class Ladder(GraphContext):
    """Converts the nodes of one graph.

    cache: of the nodes that were converted. standard: operators of other domains are written in those of ai.onnx.
    notes: about nodes of ONNX that stay, although operators are to be of ai.onnx.
    """

    cache: ConversionCache = field(kw_only=True)
    standard: bool = False
    notes: dict[Diagnostic, None] = field(default_factory=dict)

    def route_of(self, node: NodeProto | Node) -> Route | str | None:
        """Return the route of a node of the model."""
        domain = plain_domain(node.domain)
        from_opset, to_opset = self.way_of(domain)
        return None if domain and from_opset == to_opset else route_of(node.op_type, from_opset, to_opset, domain)

    def convert(self, node: NodeProto, key: Key | None, location: str, emission: Emission) -> Replacement:
        """Return what becomes of a node at the target opset. key: of the cache. Raises Blocked with all
        blockers.
        """
        emission.names = log = NameLog(emission.names)
        self.values.asked.clear()
        climb = Climb(self, location, emission)
        notes = len(self.notes)
        try:
            replacement = self._convert(node, climb)
        except Blocked as refusal:
            raise Blocked(self._in_its_own_name(node, key, climb, refusal.blockers)) from None
        # Each node that stays is told.
        if key is not None and not climb.asked_for_readers and len(self.notes) == notes:
            self.cache.keep(key, node, replacement, log, emission.prefix, is_sure=not self.assumptions)
        return replacement

    def _convert(self, node: NodeProto, climb: Climb) -> Replacement:
        left_out = self.cache.left_out
        if reads_left_out(node, left_out):
            # The node must mean the same in calls that omit the input and in those that give it.
            if self.stays(node, climb.location) and self.stays(without_left_out(node, left_out), climb.location):
                return KEPT
            raise Blocked([blocker(node, left_out, "SG405", climb.location)])
        form = standard_form(plain_domain(node.domain), node.op_type, self.from_opset) if self.standard else None
        if form is not None:
            nodes = climb.write_standard(Node.of(node), form)
            if climb.blockers and plain_domain(node.domain) == MACHINE_LEARNING:
                return self._kept_in_onnx(node, climb)
        else:
            nodes = climb.take(Node.of(node), self.way_of(plain_domain(node.domain))[0], is_own=True)
        if climb.blockers:
            raise Blocked(climb.blockers)
        if not climb.adapted:
            changed = changed_attributes(node, nodes[0].attributes)
            reasons = dict.fromkeys(climb.edited[name] for name in changed)
            return Replacement(nodes, (), "; ".join(reasons)) if changed else KEPT
        return climb.replacement(nodes, node.output, "; ".join(dict.fromkeys(climb.reasons)))

    def _kept_in_onnx(self, node: NodeProto, climb: Climb) -> Replacement:
        """Return what becomes of a node of ONNX that has no standard form: what it is in its own domain, with a note
        that says why.
        """
        for finding in self._in_its_own_name(node, None, climb, climb.blockers):
            self.notes[replace(finding, severity="info")] = None
        return replace(self, standard=False)._convert(node, Climb(self, climb.location, climb.emission))

    def stays(self, node: NodeProto, location: str) -> bool:
        """Return True for a node that means the same at the target opset as it is."""
        climb = Climb(self, location, None)
        nodes = climb.take(Node.of(node), self.way_of(plain_domain(node.domain))[0], is_own=True)
        return not climb.blockers and not changed_attributes(node, nodes[0].attributes)

    def _in_its_own_name(
        self, node: NodeProto, key: Key | None, climb: Climb, blockers: Sequence[Diagnostic]
    ) -> Sequence[Diagnostic]:
        """Return the blockers, with one in place of those about nodes that conversion wrote, which the user does not
        know.
        """
        foreign = [
            blocker
            for blocker in blockers
            if blocker in climb.of_written or not blocker.message.startswith(node.op_type)
        ]
        if not climb.adapted or not foreign:
            return blockers
        if self.standard and standard_form(plain_domain(node.domain), node.op_type, self.from_opset) is not None:
            known = [blocker for blocker in foreign if blocker.code == "SG425"]
            return known or [self._without_form_here(node, climb, foreign)]
        domain = plain_domain(node.domain)
        from_opset, to_opset = self.way_of(domain)
        stop = self.cache.stop(key, lambda: self._nearest(node, climb))
        # The reasons at that opset come first: they are why the node stops there.
        messages = dict.fromkeys(blocker.message for blocker in foreign)
        reasons = sorted(messages, key=lambda text: f"opset {stop}" not in text)
        more = f"; and {len(reasons) - _MOST_REASONS} more" if len(reasons) > _MOST_REASONS else ""
        side, last = "beyond" if to_opset > from_opset else "below", named_opset(domain, stop)
        text = f"{node.op_type} cannot go {side} {last}, because the nodes that would replace it cannot: "
        text += "; ".join(reasons[:_MOST_REASONS]) + more
        blocking = stop + 1 if to_opset > from_opset else stop - 1
        help = f"Stop at {last}."
        made = diagnostic(foreign[0].code, text, climb.location, help=help, blocking_opset=blocking)
        return [*(blocker for blocker in blockers if blocker not in foreign), made]

    def _without_form_here(self, node: NodeProto, climb: Climb, blockers: Sequence[Diagnostic]) -> Diagnostic:
        """Return the blocker of a node of another domain whose standard form does not go to the target."""
        reasons = dict.fromkeys(blocker.message for blocker in blockers)
        text = f"{operator_name(node)} has no standard form at opset {self.to_opset}: "
        text += "; ".join(list(reasons)[:_MOST_REASONS])
        above = range(self.to_opset + 1, newest_opset() + 1)
        first = next((opset for opset in above if not self._is_refused(node, climb, opset)), None)
        help = "Export the node as operators of ai.onnx." if first is None else f"Give opset {first}, which has it."
        return diagnostic("SG425", text, climb.location, help=help)

    def _nearest(self, node: NodeProto, climb: Climb) -> int:
        """Return the opset nearest to the target to which the node can be converted."""
        return nearest_opset(*self.way_of(plain_domain(node.domain)), partial(self._is_refused, node, climb))

    def _is_refused(self, node: NodeProto, climb: Climb, opset: int) -> bool:
        """Return True if a node cannot be converted to an opset, of its domain, or of ai.onnx for a standard form."""
        # With a cache of its own: the other one holds what nodes become at the target.
        cache = ConversionCache(self.values, self.cache.names, self.cache.left_out)
        trial, domain = replace(self, cache=cache, assumptions={}), plain_domain(node.domain)
        if self.standard or domain not in self.domains:
            trial.to_opset = opset
        else:
            trial.domains = {**self.domains, domain: (self.domains[domain][0], opset)}
        try:
            trial._convert(node, Climb(trial, climb.location, climb.emission.afresh(trial.to_opset)))
        except Blocked:
            return True
        return False


def nearest_opset(from_opset: int, to_opset: int, is_refused: Callable[[int], bool]) -> int:
    """Return the opset nearest to `to_opset` that is not refused; `to_opset` itself is, and `from_opset` is not."""
    if to_opset > from_opset:
        way = range(to_opset - 1, from_opset, -1)
        return next((opset for opset in way if not is_refused(opset)), from_opset)
    # What is refused at an opset is refused below it, too. Bisection avoids old opsets, which take longest.
    way = range(from_opset, to_opset, -1)
    return way[bisect_left(way, True, lo=1, key=is_refused) - 1]
