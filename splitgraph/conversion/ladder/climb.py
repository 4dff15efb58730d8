"""The way of one node over the boundaries of its operator, and of all nodes that it becomes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from splitgraph.conversion.ladder.graph_context import GraphContext
from splitgraph.conversion.ladder.guard import Route, blockers_at, misfit_message, route_of, type_advice
from splitgraph.conversion.ladder.wider_types import widen
from splitgraph.conversion.nodes.element_types import Slot, formal_at, misfits, slots_of
from splitgraph.conversion.nodes.node import Node
from splitgraph.conversion.operators import Adapter, adapter_of
from splitgraph.conversion.planning.emission import Emission
from splitgraph.conversion.splits.lower import SplitNode, lower_split
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.conversion.writing.function_bodies import expand, has_body
from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.graph.scopes import Scope, plain_domain
from splitgraph.onnx_proto import AttributeProto, NodeProto
from splitgraph.schemas import OperatorVersion
from splitgraph.schemas.history import version_at
from splitgraph.variants import SPLIT_OPERATORS, variant_at

# Exceptions of arithmetic over shapes and attributes that contradict each other.
_UNFIT = (IndexError, ValueError, ZeroDivisionError, OverflowError)


@dataclass(slots=True)
class Climb:
    """Takes one node of the model, and all nodes that it becomes, from boundary to boundary."""

    graph: GraphContext
    location: str
    emission: Emission
    blockers: list[Diagnostic] = field(default_factory=list)
    # The blockers about nodes that were written on the way; these may have the operator of the node itself.
    of_written: set[Diagnostic] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)
    adapted: bool = False
    asked_for_readers: bool = False
    # Attributes with subgraphs whose nodes are at the target opset already.
    graphs_taken: list[AttributeProto] = field(default_factory=list)
    # The names that the nodes written on the way read.
    read: set[str] = field(default_factory=set)

    def take(self, form: Node, at: int) -> list[Node]:
        """The nodes that a node becomes from opset `at` to the target."""
        if form.op_type in SPLIT_OPERATORS:
            return self._take_split(form, at)
        route = route_of(form.op_type, at, self.graph.target)
        if route is None:
            return [form]
        if isinstance(route, str):
            self.blockers.append(diagnostic("SG404", route, self.location))
            return [form]
        for older, newer in route.crossings:
            context = self._context_at(form.copy(), at, route.upward, older, newer)
            found = blockers_at(context)
            if found:
                return self._cross(form, at, route.upward, (older, newer), found)
            form = context.form
            self.reasons += context.reasons.values()
        if not route.upward and route.exists_from > self.graph.target:
            return self._leave_behind(form, at, route)
        return [form]

    def _take_split(self, form: Node, at: int) -> list[Node]:
        """The nodes that a split in a function body becomes: a split goes to the target in one step."""
        target = variant_at(form.op_type, self.graph.target)
        if target is None:
            text = f"its function body has a {form.op_type}, which does not exist at opset {self.graph.target}"
            self.blockers.append(diagnostic("SG404", text, self.location))
        if target is None or target == variant_at(form.op_type, at) or form.op_type != "Split":
            return [form]
        node = form.message()
        emission = self.emission.afresh(self.emission.opset, initializers=self.emission.initializers)
        found = SplitNode(Scope(None, (), self.location, {}), 0, node, self.graph.values.split_detail(node, at))
        replacement, blockers = lower_split(found, target, emission, f"opset {self.graph.target}")
        self.blockers += blockers
        return [form] if replacement is None else [Node.of_added(made) for made in replacement.messages()]

    def _context_at(
        self, form: Node, at: int, upward: bool, older: OperatorVersion, newer: OperatorVersion
    ) -> AdapterContext:
        facts = self.graph.facts(form, form.message(), at, self.location)
        return AdapterContext(
            facts,
            upward,
            older,
            newer,
            form.attributes,
            {},
            form=form,
            values=self.graph.values,
            emission=self.emission,
            is_read=self._is_read,
        )

    def _is_read(self, name: str) -> bool:
        """Whether a node of the model, or one that was written on the way, reads a value."""
        self.asked_for_readers = True
        return name in self.read or self.graph.is_read(name)

    def _cross(
        self,
        form: Node,
        at: int,
        upward: bool,
        crossing: tuple[OperatorVersion, OperatorVersion],
        found: Sequence[Diagnostic],
    ) -> list[Node]:
        """Take a node over a boundary where the guard cannot keep it: in a wider element type, by its adapter, or as
        its function body.
        """
        older, newer = crossing
        ways: list[Adapter] = []
        # Adapters do not treat element types, so that the guard's blockers about these stand beside theirs.
        blockers: Sequence[Diagnostic] = [each for each in found if each.code == "SG403"]
        if blockers:
            ways.append(partial(widen, fits=newer if upward else older))
        adapter = adapter_of(form.op_type, newer.since_version, going_up=upward)
        # An adapter cannot know whether a type that is unknown would have stood in the way.
        if adapter is not None and not (blockers and self._has_unknown_misfit(form, at, upward, crossing)):
            ways.append(adapter)
        if has_body(form.op_type, (older if upward else newer).since_version):
            ways.append(expand)
        for way in ways:
            context = self._context_at(form.copy(), at, upward, older, newer)
            converted, failed = self._try(way, context, f"{older.op} changes at opset {newer.since_version}")
            if converted is not None:
                return converted
            if isinstance(failed, Inexact):
                failed = [self._refused(older.op, newer.since_version, upward, failed)] if way is adapter else ()
            elif way is not expand:
                # The node crossed this boundary: the blockers are at a later one.
                blockers = failed
            blockers = blockers or failed
        self.blockers += blockers or found
        return [form]

    def _has_unknown_misfit(
        self, form: Node, at: int, upward: bool, crossing: tuple[OperatorVersion, OperatorVersion]
    ) -> bool:
        context = self._context_at(form, at, upward, *crossing)
        return any(
            not slot.found for slot in misfits(slots_of(context.facts, context.old), context.new, skip_renamed=True)
        )

    def _leave_behind(self, form: Node, at: int, route: Route) -> list[Node]:
        """Write a node with other operators below the opset where its own begins."""
        first = version_at(form.op_type, route.exists_from)
        assert first is not None
        adapter = adapter_of(form.op_type, route.exists_from, going_up=False)
        blockers: Sequence[Diagnostic] = ()
        for way in (expand,) if adapter is None else (adapter, expand):
            context = self._context_at(form.copy(), at, False, first, first)
            converted, failed = self._try(way, context, f"{form.op_type} exists from opset {route.exists_from} on")
            if converted is not None:
                return converted
            if isinstance(failed, Inexact):
                message = f"{form.op_type} exists from opset {route.exists_from} on and {failed.reason}"
                help = f"Stop at opset {route.exists_from}{', or ' + failed.help if failed.help else ''}."
                failed = [diagnostic("SG404", message, self.location, help=help)]
            blockers = blockers or failed
        self.blockers += blockers
        return [form]

    def _try(
        self, way: Adapter, context: AdapterContext, why: str
    ) -> tuple[list[Node] | None, Inexact | Sequence[Diagnostic]]:
        """The nodes that a node becomes at the target in one of the ways; None and the reason where it cannot go so."""
        self.adapted = True
        blockers, reasons = len(self.blockers), len(self.reasons)
        try:
            way(context)
        except Inexact as refusal:
            return None, refusal
        except _UNFIT as fault:
            # Usually the inputs and attributes of the node contradict each other in a way that inference has not found.
            return None, Inexact(f"its inputs and attributes do not fit together ({type(fault).__name__}: {fault})")
        self.reasons += list(context.reasons.values()) or [why]
        forms = self._further(context)
        failed = self.blockers[blockers:]
        if not failed:
            return forms, ()
        del self.blockers[blockers:], self.reasons[reasons:]
        return None, failed

    def _refused(self, op: str, boundary: int, upward: bool, refusal: Inexact) -> Diagnostic:
        help = f"Stop at opset {boundary - 1 if upward else boundary}{', or ' + refusal.help if refusal.help else ''}."
        return diagnostic("SG405", f"{op} changes at opset {boundary}: {refusal.reason}", self.location, help=help)

    def _further(self, context: AdapterContext) -> list[Node]:
        opset = context.dialect or context.opset
        made = [*context.before, *([] if context.dropped else [context.form]), *context.after]
        _inherit(context, made)
        self.read.update(name for form in made for name in form.reads)
        self.graph.values.note([form.message() for form in made], opset)
        taken = []
        for form in made:
            blockers, reasons = len(self.blockers), len(self.reasons)
            result = self._take_written(form, opset)
            if form.original is None:
                self.of_written.update(self.blockers[blockers:])
            taken.append((result, self.blockers[blockers:], self.reasons[reasons:]))
            del self.blockers[blockers:], self.reasons[reasons:]
        return self._still_needed(taken, context.facts.node.output)

    def _still_needed(
        self, taken: Sequence[tuple[list[Node], list[Diagnostic], list[str]]], outputs: Iterable[str]
    ) -> list[Node]:
        """The forms that the outputs still depend on. Others are dropped together with their blockers, such as the node
        that computed an input that became an attribute.
        """
        wanted = {name for name in outputs if name}
        kept = []
        for each in reversed(taken):
            if any(not wanted.isdisjoint(form.outputs) for form in each[0]):
                wanted.update(name for form in each[0] for name in form.reads)
                kept.append(each)
        forms: list[Node] = []
        for made, blockers, reasons in reversed(kept):
            forms += made
            self.blockers += blockers
            self.reasons += reasons
        return forms

    def _take_written(self, form: Node, opset: int) -> list[Node]:
        """Take a node that was written for an opset, with its subgraphs, from there to the target."""
        version = version_at(form.op_type, opset)
        problem = _schema_problem(form, version)
        if version is None or problem:
            text = f"{form.op_type} {problem} at opset {opset}, which would have to replace this node"
            self.blockers.append(diagnostic("SG405", text, self.location))
            return [form]
        self._take_graphs(form, opset)
        # A copy: where no wider type helps, the form must still have its outputs, or its blockers are dropped with it.
        context = self._context_at(form.copy(), opset, True, version, version)
        context.dialect = opset
        unfit = [each for each in slots_of(context.facts, version) if each.types.isdisjoint(_types_at(version, each))]
        if not unfit:
            return self.take(form, opset)
        converted, _ = self._try(
            partial(widen, fits=version), context, f"{form.op_type} does not take {unfit[0].found}"
        )
        if converted is None:
            self.blockers.append(self._unfit(form, unfit[0], opset))
        return converted or [form]

    def _unfit(self, form: Node, slot: Slot, opset: int) -> Diagnostic:
        """The blocker for an element type that a node, or one that was written for it, does not take."""
        if form.original is None:
            text = f"{form.op_type} does not take {slot.found} at opset {opset}, which would have to replace this node"
            return diagnostic("SG403", text, self.location)
        upward = self.graph.target > self.graph.source
        side, stop = (f"from opset {opset} on", opset - 1) if upward else (f"below opset {opset + 1}", opset + 1)
        text = misfit_message(form.op_type, slot, side, self.graph.in_function)
        return diagnostic("SG403", text, self.location, help=type_advice(stop, slot))

    def _take_graphs(self, form: Node, opset: int) -> None:
        """Take the nodes of subgraphs that conversion wrote to the target, once."""
        # The subgraphs of a node of the model are scopes, which are planned by themselves.
        theirs = () if form.original is None else form.original.attribute
        for attribute in form.attributes.values():
            if attribute.type != AttributeProto.GRAPH or attribute in theirs:
                continue
            if any(attribute is held for held in self.graphs_taken):
                continue
            self.graphs_taken.append(attribute)
            nodes: list[NodeProto] = []
            for node in attribute.g.node:
                if plain_domain(node.domain) != "":
                    nodes.append(node)
                    continue
                nodes += [made.message() for made in self._take_written(Node.of_added(node), opset)]
            made_nodes = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
            del attribute.g.node[:]
            attribute.g.node.extend(made_nodes)


def _inherit(context: AdapterContext, made: Sequence[Node]) -> None:
    """Where the node itself is dropped, give its name and documentation to the node with its first output."""
    if not context.dropped:
        return
    first = next((name for name in context.outputs if name), None)
    for form in made:
        if first in form.outputs:
            form.original, form.name = context.form.original, context.form.name


def _schema_problem(form: Node, version: OperatorVersion | None) -> str:
    """Why a node that conversion wrote does not fit its schema; "" where it does."""
    if version is None or version.deprecated:
        return "does not exist"
    if unknown := sorted(form.attributes.keys() - version.attributes.keys()):
        return f"has no attribute {unknown[0]}"
    if missing := [n for n, a in version.attributes.items() if a.required and n not in form.attributes]:
        return f"needs the attribute {missing[0]}"
    if len(form.inputs) > version.max_inputs or len(form.outputs) > version.max_outputs:
        return "has fewer inputs or outputs"
    return ""


def _types_at(version: OperatorVersion, slot: Slot) -> frozenset[str]:
    formal = formal_at(version.inputs if slot.is_input else version.outputs, slot.position)
    return slot.types if formal is None else formal.types
