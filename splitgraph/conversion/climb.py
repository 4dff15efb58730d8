"""The way of a node from opset to opset: over the boundaries of its operator, and on with all nodes that it becomes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from splitgraph.conversion.builders import Emission
from splitgraph.conversion.keep import Route, carry_types, keep, misfit_message, route_of, type_advice
from splitgraph.conversion.known_values import KnownValues
from splitgraph.conversion.node import Node, needed, slots_of
from splitgraph.conversion.notation.function_bodies import expand
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.known_results import KNOWN_RESULTS, write_known_result
from splitgraph.conversion.operators.registry import Step, adapter_of
from splitgraph.conversion.operators.standard import StandardForm
from splitgraph.conversion.plan import Replacement
from splitgraph.conversion.splits.lower import SplitNode, lower_split
from splitgraph.conversion.wider_types import widen
from splitgraph.findings.diagnostics import Diagnostic, diagnostic
from splitgraph.model.onnx_proto import AttributeProto, NodeProto
from splitgraph.model.schemas import OperatorVersion
from splitgraph.model.schemas.experimental import UNSPECIFIED, experiments_end
from splitgraph.model.schemas.fit import Slot, misfits, mistyped
from splitgraph.model.schemas.history import meant_version
from splitgraph.model.scopes import Scope, named_opset, operator_name, plain_domain
from splitgraph.splits import SPLIT_OPERATORS, variant_at

# Exceptions of arithmetic over shapes and attributes that contradict each other.
_UNFIT = (IndexError, ValueError, ZeroDivisionError, OverflowError)


# How a node crosses a boundary where it cannot be kept.
Way = Literal["wider type", "adapter", "known result", "function body"]


@dataclass(slots=True)
class GraphContext:
    """Between which opsets the nodes of one graph go, and what is known of the graph.

    from_opset, to_opset: of ai.onnx. values: what is known of its values. graph_reads: whether a node or an output of
    the model reads a value. assumptions: sentences about element types that are unknown and were assumed. domains: of
    the other domains that may change, the opset that the graph imports and that of the result.
    """

    from_opset: int
    to_opset: int
    values: KnownValues
    in_function: bool
    graph_reads: Callable[[str], bool]
    assumptions: dict[str, None] = field(default_factory=dict)
    domains: Mapping[str, tuple[int, int]] = field(default_factory=dict)

    def way_of(self, domain: str) -> tuple[int, int]:
        """Return the opset of a domain from which nodes come, and the one to which they go; equal for a domain of which
        nothing changes.
        """
        return (self.from_opset, self.to_opset) if domain == "" else self.domains.get(domain, (1, 1))


@dataclass(slots=True)
class Climb:
    """Takes one node of the model, and all nodes that it becomes, from boundary to boundary.

    written_to: None where the node may only be kept or edited. blockers: every refusal. of_written: those about nodes
    that were written on the way; these may have the operator of the node itself. reasons: of all changes. edited: why
    attributes of the node of the model were edited. adapted: the node was taken in another way than by editing it.
    graphs_taken: attributes with subgraphs whose nodes are at the target opset already. read: the names that the nodes
    written on the way read.
    """

    context: GraphContext
    location: str
    written_to: Emission | None
    blockers: list[Diagnostic] = field(default_factory=list)
    of_written: set[Diagnostic] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)
    edited: dict[str, str] = field(default_factory=dict)
    adapted: bool = False
    asked_for_readers: bool = False
    graphs_taken: list[AttributeProto] = field(default_factory=list)
    read: set[str] = field(default_factory=set)

    # What a node at a boundary knows of its graph ------------------------------------------------------------------

    @property
    def values(self) -> KnownValues:
        """The types and constants of all values of the graph."""
        return self.context.values

    @property
    def emission(self) -> Emission:
        """Where constants and names come from."""
        if self.written_to is None:
            raise Inexact("nothing may be written")
        return self.written_to

    @property
    def to_opset(self) -> int:
        """The opset to which the model goes."""
        return self.context.to_opset

    @property
    def in_function(self) -> bool:
        """True in the body of a function."""
        return self.context.in_function

    @property
    def assumptions(self) -> dict[str, None]:
        """Sentences about element types that are unknown and were assumed."""
        return self.context.assumptions

    def is_read(self, name: str) -> bool:
        """Return True when a node of the model, or one that was written on the way, reads a value."""
        self.asked_for_readers = True
        return name in self.read or self.context.graph_reads(name)

    # From another domain -------------------------------------------------------------------------------------------

    def write_standard(self, node: Node, form: StandardForm) -> list[Node]:
        """Return the nodes that a node of another domain becomes at the target."""
        assert node.original is not None
        opset = max(self.to_opset, form.opset)
        at = self.context.domains[node.domain][0] if node.domain in self.context.domains else opset
        node.domain = ""
        attempt = NodeAtBoundary.at(node, self, at, True, form.version, form.version)
        attempt.dialect = opset
        label = operator_name(node.original)
        made, failed = self.go(form.write, attempt, f"{label} is written in operators of ai.onnx")
        if made is not None:
            return made
        if isinstance(failed, Inexact):
            help = f"{failed.help[:1].upper()}{failed.help[1:]}." if failed.help else None
            failed = [
                diagnostic("SG425", f"{label} has no standard form here: {failed.reason}", self.location, help=help)
            ]
        self.blockers += failed
        return [node]

    # Over the boundaries -------------------------------------------------------------------------------------------

    def take(self, node: Node, at: int, *, is_own: bool = False) -> list[Node]:
        """Return the nodes that a node becomes from opset `at` of its domain to the target. is_own: it is the node of
        the model, for which every reason is told where no way leads on.
        """
        if node.op_type in SPLIT_OPERATORS:
            return self._take_split(node, at)
        goal = self.context.way_of(node.domain)[1]
        route = None if node.domain and at == goal else route_of(node.op_type, at, goal, node.domain)
        if route is None:
            return [node]
        if isinstance(route, str):
            help = "Correct the model's opset import first." if is_own else None
            if node.domain == "" and node.op_type in UNSPECIFIED:
                help = f"Stop at opset {experiments_end(node.op_type) - 1}, or export the node as other operators."
            self.blockers.append(diagnostic("SG404", route, self.location, help=help))
            return [node]
        slots = slots_of(node, self.values.type_of, route.start) if route.check_types else ()
        changed, unfit, reported = list[Diagnostic](), list[Diagnostic](), set[str]()
        for older, newer in route.boundaries:
            trial = NodeAtBoundary.at(node, self, at, route.upward, older, newer)
            refused = keep(trial)
            misfitting = carry_types(trial, slots, reported, is_blocked=bool(refused or changed))
            if (refused or misfitting) and not changed and not unfit:
                if not route.check_types and self.written_to is not None:
                    # Every valid type fits. That of this node may be one that its operator does not take on any side.
                    slots_here = slots_of(node, self.values.type_of, trial.old)
                    misfitting = carry_types(trial, slots_here, set(), is_blocked=bool(refused))
                ways = () if self.written_to is None else self._ways(node, at, route.upward, older, newer, misfitting)
                if ways:
                    return self._cross(node, at, trial, ways, [*refused, *misfitting])
                if not is_own:
                    self.blockers += [*refused, *misfitting]
                    return [node]
            changed += refused
            unfit += misfitting
            node = trial.copy()
            self.reasons += trial.reasons.values()
            self.edited.update(trial.reasons if is_own else {})
        if not route.upward and route.exists_from > goal:
            if not changed and not unfit and self.written_to is not None:
                return self._leave_behind(node, at, route)
            text = f"{node.op_type} exists from {named_opset(node.domain, route.exists_from)} on"
            changed.insert(0, self._missing(text, node.domain, route.exists_from))
        self.blockers += [*changed, *unfit]
        return [node]

    def _ways(
        self,
        node: Node,
        at: int,
        upward: bool,
        older: OperatorVersion,
        newer: OperatorVersion,
        misfitting: Sequence[Diagnostic],
    ) -> list[tuple[Way, Step]]:
        """Return the ways over a boundary where a node cannot be kept, and the step of each."""
        ways: list[tuple[Way, Step]] = []
        before, after = (older, newer) if upward else (newer, older)
        if misfitting and node.domain == "":
            ways.append(("wider type", partial(widen, fits=after)))
        adapter = adapter_of(node.op_type, newer.since_version, node.domain, going_up=upward)
        if adapter is not None and misfitting:
            slots = slots_of(node, self.values.type_of, before)
            # An adapter cannot know whether a type that is unknown would have stood in the way.
            if any(not slot.type_text for slot in mistyped(slots, after, skip_renamed=True)):
                adapter = None
        if adapter is not None:
            ways.append(("adapter", adapter))
        if misfitting and node.op_type in KNOWN_RESULTS:
            ways.append(("known result", write_known_result))
        if before.has_function:
            ways.append(("function body", expand))
        return ways

    def _cross(
        self,
        node: Node,
        at: int,
        trial: NodeAtBoundary,
        ways: Sequence[tuple[Way, Step]],
        refused: Sequence[Diagnostic],
    ) -> list[Node]:
        """Take a node over a boundary in the first way that leads to the target."""
        lower, upper, upward = trial.lower, trial.upper, trial.upward
        why = f"{lower.op} changes at {trial.named(upper.since_version)}"
        # Adapters do not treat element types, so that the blockers about these stand beside theirs.
        blockers: Sequence[Diagnostic] = [blocker for blocker in refused if blocker.code == "SG403"]
        for way, step in ways:
            attempt = NodeAtBoundary.at(node, self, at, upward, lower, upper)
            made, failed = self.go(step, attempt, why)
            if made is not None:
                return made
            if isinstance(failed, Inexact):
                help = f"Stop at {trial.named(trial.stop)}{', or ' + failed.help if failed.help else ''}."
                text = f"{why}: {failed.reason}"
                told = diagnostic("SG405", text, self.location, help=help, blocking_opset=trial.opset)
                failed = [told] if way == "adapter" else ()
            elif way != "function body":
                # The node crossed this boundary: the blockers are at a later one.
                blockers = failed
            blockers = blockers or failed
        self.blockers += blockers or refused
        return [node]

    def _leave_behind(self, node: Node, at: int, route: Route) -> list[Node]:
        """Write a node with other operators below the opset where its own begins."""
        first = meant_version(node.op_type, route.exists_from, node.domain)
        assert first is not None
        adapter = adapter_of(node.op_type, route.exists_from, node.domain, going_up=False)
        why = f"{node.op_type} exists from {named_opset(node.domain, route.exists_from)} on"
        blockers: Sequence[Diagnostic] = ()
        for way in (expand,) if adapter is None else (adapter, expand):
            attempt = NodeAtBoundary.at(node, self, at, False, first, first)
            made, failed = self.go(way, attempt, why)
            if made is not None:
                return made
            if isinstance(failed, Inexact):
                message = f"{why} and {failed.reason}"
                failed = [self._missing(message, node.domain, route.exists_from, failed.help)]
            blockers = blockers or failed
        self.blockers += blockers
        return [node]

    def _missing(self, message: str, domain: str, exists_from: int, help: str = "") -> Diagnostic:
        """Return the blocker for an operator that does not exist below an opset. help: what else could be done."""
        help = f"Stop at {named_opset(domain, exists_from)}{', or ' + help if help else ''}."
        return diagnostic("SG404", message, self.location, help=help, blocking_opset=exists_from - 1)

    def _take_split(self, node: Node, at: int) -> list[Node]:
        """Return the nodes that a split in a function body becomes: a split goes to the target in one step."""
        variant = variant_at(node.op_type, self.to_opset)
        if variant is None:
            text = f"its function body has a {node.op_type}, which does not exist at opset {self.to_opset}"
            self.blockers.append(diagnostic("SG404", text, self.location))
        if variant is None or variant == variant_at(node.op_type, at) or node.op_type != "Split":
            return [node]
        message = node.message()
        emission = self.emission.afresh(self.emission.opset, initializers=self.emission.initializers)
        split_node = SplitNode(Scope(None, (), self.location, {}), 0, message, self.values.split_detail(message, at))
        replacement, blockers = lower_split(split_node, variant, emission, f"opset {self.to_opset}")
        self.blockers += blockers
        return [node] if replacement is None else [Node.of_added(made) for made in replacement.messages()]

    # What a node became --------------------------------------------------------------------------------------------

    def go(
        self, way: Step, attempt: NodeAtBoundary, why: str
    ) -> tuple[list[Node] | None, Inexact | Sequence[Diagnostic]]:
        """Return the nodes that a node becomes at the target in one of the ways; None and the reason where it cannot go
        so.
        """
        self.adapted = True
        blockers, reasons = len(self.blockers), len(self.reasons)
        try:
            way(attempt)
        except Inexact as refusal:
            return None, refusal
        except _UNFIT as fault:
            # Usually the inputs and attributes of the node contradict each other in a way that inference has not found.
            return None, Inexact(f"its inputs and attributes do not fit together ({type(fault).__name__}: {fault})")
        self.reasons += list(attempt.reasons.values()) or [why]
        nodes = self._further(attempt)
        failed = self.blockers[blockers:]
        if not failed:
            return nodes, ()
        del self.blockers[blockers:], self.reasons[reasons:]
        return None, failed

    def _further(self, attempt: NodeAtBoundary) -> list[Node]:
        opset = attempt.dialect or attempt.opset
        made = attempt.made
        if attempt.dropped:
            # The node with its first output gets its name and documentation.
            first = next((name for name in attempt.outputs if name), None)
            for node in made:
                if first in node.outputs:
                    node.original, node.name = attempt.original, attempt.name
        domain = attempt.came.domain
        return self.carry(made, {"": opset, **({domain: attempt.opset} if domain else {})}, attempt.came.outputs)

    def carry(self, nodes: Sequence[Node], opsets: Mapping[str, int], outputs: Iterable[str]) -> list[Node]:
        """Take nodes that were written for these opsets, by domain, from there to the target. Return those that the
        outputs depend on.
        """
        self.read.update(name for node in nodes for name in node.reads)
        self.values.note([node.message() for node in nodes], opsets)
        taken = []
        for node in nodes:
            blockers, reasons = len(self.blockers), len(self.reasons)
            result = self._take_written(node, opsets[node.domain])
            if node.original is None:
                self.of_written.update(self.blockers[blockers:])
            taken.append((result, self.blockers[blockers:], self.reasons[reasons:]))
            del self.blockers[blockers:], self.reasons[reasons:]
        return self._still_needed(taken, outputs)

    def replacement(self, nodes: Sequence[Node], outputs: Iterable[str], why: str) -> Replacement:
        """Return the nodes at the target, as far as the outputs depend on them, with the constants that they read."""
        kept = needed(nodes, filter(None, outputs))
        read = {name for made in kept for name in made.reads}
        return Replacement(kept, [tensor for tensor in self.emission.initializers if tensor.name in read], why)

    def _still_needed(
        self, taken: Sequence[tuple[list[Node], list[Diagnostic], list[str]]], outputs: Iterable[str]
    ) -> list[Node]:
        """Return the nodes that the outputs still depend on. Others are dropped together with their blockers, such as
        the node that computed an input that became an attribute.
        """
        wanted = {name for name in outputs if name}
        kept = []
        for became in reversed(taken):
            if any(not wanted.isdisjoint(node.outputs) for node in became[0]):
                wanted.update(name for node in became[0] for name in node.reads)
                kept.append(became)
        nodes: list[Node] = []
        for made, blockers, reasons in reversed(kept):
            nodes += made
            self.blockers += blockers
            self.reasons += reasons
        return nodes

    def _take_written(self, node: Node, opset: int) -> list[Node]:
        """Take a node that was written for an opset of its domain, with its subgraphs, from there to the target."""
        version = meant_version(node.op_type, opset, node.domain)
        problem = "does not exist"
        if version is not None and not version.deprecated:
            problem = next(map(str, misfits(version, node.attributes, node.inputs, node.outputs)), "")
        if version is None or problem:
            at = named_opset(node.domain, opset)
            text = f"{node.op_type} {problem} at {at}, which would have to replace this node"
            self.blockers.append(diagnostic("SG405", text, self.location))
            return [node]
        self._take_graphs(node, opset)
        slots = slots_of(node, self.values.type_of, version)
        unfit = [slot for slot in slots if (formal := slot.formal_in(version)) and slot.types.isdisjoint(formal.types)]
        if not unfit or node.domain:
            self.blockers += [self._unfit(node, unfit[0], opset)] if unfit else []
            return self.take(node, opset)
        # A copy: where no wider type helps, the node must still have its outputs, or its blockers are dropped with it.
        attempt = NodeAtBoundary.at(node, self, opset, True, version, version)
        attempt.dialect = opset
        made, _ = self.go(partial(widen, fits=version), attempt, f"{node.op_type} does not take {unfit[0].type_text}")
        if made is None:
            self.blockers.append(self._unfit(node, unfit[0], opset))
        return made or [node]

    def _unfit(self, node: Node, slot: Slot, opset: int) -> Diagnostic:
        """Return the blocker for an element type that a node, or one that was written for it, does not take."""
        if node.original is None:
            at = named_opset(node.domain, opset)
            text = f"{node.op_type} does not take {slot.type_text} at {at}, which would have to replace this node"
            return diagnostic("SG403", text, self.location)
        from_opset, to_opset = self.context.way_of(node.domain)
        upward = to_opset > from_opset
        stop = named_opset(node.domain, opset - 1 if upward else opset + 1)
        side = f"from {named_opset(node.domain, opset)} on" if upward else f"below {stop}"
        text = misfit_message(node.op_type, slot, side, self.in_function)
        return diagnostic("SG403", text, self.location, help=type_advice(stop, slot), blocking_opset=opset)

    def _take_graphs(self, node: Node, opset: int) -> None:
        """Take the nodes of subgraphs that conversion wrote to the target, once."""
        # The subgraphs of a node of the model are scopes, which are planned by themselves.
        theirs = () if node.original is None else node.original.attribute
        for attribute in node.attributes.values():
            if attribute.type != AttributeProto.GRAPH or attribute in theirs:
                continue
            if any(attribute is taken for taken in self.graphs_taken):
                continue
            self.graphs_taken.append(attribute)
            nodes: list[NodeProto] = []
            for inner in attribute.g.node:
                if plain_domain(inner.domain) != "":
                    nodes.append(inner)
                    continue
                nodes += [made.message() for made in self._take_written(Node.of_added(inner), opset)]
            made_nodes = [NodeProto.FromString(inner.SerializeToString()) for inner in nodes]
            del attribute.g.node[:]
            attribute.g.node.extend(made_nodes)
