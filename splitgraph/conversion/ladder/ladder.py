"""One node on its way from opset to opset: kept by the guard, edited or replaced by adapters, expanded where its
operator does not exist.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import partial

from splitgraph.conversion.boundary_crossing import NodeFacts
from splitgraph.conversion.expansion import expand, has_body
from splitgraph.conversion.ladder.conversion_cache import Carried, Key, NameLog, Repeats
from splitgraph.conversion.ladder.element_types import Slot, formal_at, misfits, slots_of
from splitgraph.conversion.ladder.guard import (
    Route,
    blockers_at,
    check_node,
    misfit_message,
    route_of,
    type_advice,
)
from splitgraph.conversion.ladder.node_form import NodeForm, needed
from splitgraph.conversion.ladder.node_kinds import NodeKinds
from splitgraph.conversion.ladder.schema_history import version_at
from splitgraph.conversion.ladder.values import Values
from splitgraph.conversion.ladder.wider_types import widen
from splitgraph.conversion.left_out import blocker, reads_left_out, without_left_out
from splitgraph.conversion.operators import Adapter, adapter_of
from splitgraph.conversion.planning.emission import Emission
from splitgraph.conversion.splits.lower import SplitNode, lower_split
from splitgraph.conversion.step import Inexact, Step
from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.graph.scopes import Scope, plain_domain
from splitgraph.inference.walk_results import Visit
from splitgraph.onnx_proto import AttributeProto, NodeProto
from splitgraph.schemas import OperatorVersion
from splitgraph.value_type import ValueType
from splitgraph.variants import SPLIT_OPERATORS, variant_at

# What arithmetic raises over shapes and attributes that contradict each other.
_UNFIT = (IndexError, ValueError, ZeroDivisionError, OverflowError)
# Of what a node was written with; one is often enough to know why.
_MOST_REASONS = 3


@dataclass(slots=True)
class Ladder:
    """Takes the nodes of one graph from opset `source` to opset `target` of ai.onnx."""

    source: int
    target: int
    values: Values
    in_function: bool
    is_read: Callable[[str], bool]
    # Inputs of the function that the graph is in which a call leaves out.
    left_out: Collection[str] = ()
    repeats: Repeats = field(init=False)
    kinds: NodeKinds = field(init=False)
    # What was taken for granted of element types that are unknown, in words.
    assumptions: dict[str, None] = field(default_factory=dict)
    _stops: dict[Key, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.repeats = Repeats(self.values)
        self.kinds = NodeKinds(self.values)

    def key_of(self, node: NodeProto, visit: Visit | None) -> Key | None:
        """What makes nodes alike, given what inference says of this one; None for one that is like no other."""
        return None if reads_left_out(node, self.left_out) else self.repeats.key_of(node, visit)

    def again(self, key: Key | None, node: NodeProto) -> Carried | None:
        """A node that is kept, or edited, because one like it was; None where that is not known."""
        carried = None if key is None else self.repeats.again(key, node)
        if carried is None and not reads_left_out(node, self.left_out) and self.kinds.are_kept(node, self._as_written):
            carried = Carried()
        return carried

    def _as_written(self, node: NodeProto) -> NodeFacts:
        return self._facts(NodeForm.of(node), node, self.source, "")

    def carry(self, node: NodeProto, key: Key | None, location: str, emission: Emission) -> Carried:
        """A node of ai.onnx at the target opset, or all that stands in its way; key: as `key_of` gives it."""
        carried = None if key is None else self.repeats.written_again(key, node, emission)
        if carried is not None:
            return carried
        emission.names = log = NameLog(emission.names)
        self.values.asked.clear()
        climb = _Climb(self, location, emission)
        carried = self._carry(node, climb)
        if carried.blockers:
            return Carried(blockers=self._in_its_own_name(node, key, climb, carried.blockers))
        if key is not None and not climb.asked_for_readers:
            self.repeats.learn(key, node, carried, emission, log)
        return carried

    def _carry(self, node: NodeProto, climb: _Climb) -> Carried:
        emission = climb.emission
        facts = self._facts(NodeForm.of(node), node, self.source, climb.location)
        edits, blockers = check_node(facts)
        if reads_left_out(node, self.left_out) and (edits or blockers or not self._stays_without(node, climb.location)):
            return Carried(blockers=[blocker(node, self.left_out, "SG405", climb.location)])
        if not blockers:
            return Carried(edits=edits, why="; ".join(edit.why for edit in edits))
        forms = climb.take(NodeForm.of(node), self.source)
        if climb.blockers:
            # Where no adapter came in, the guard has seen every boundary and says more.
            return Carried(blockers=climb.blockers if climb.adapted else blockers)
        forms = needed(forms, (name for name in node.output if name))
        read = {name for form in forms for name in form.reads}
        emission.initializers[:] = [tensor for tensor in emission.initializers if tensor.name in read]
        return Carried(forms, why="; ".join(dict.fromkeys(climb.reasons)))

    def _stays_without(self, node: NodeProto, location: str) -> bool:
        """Whether a node is kept as it is in a call that leaves out what it reads."""
        absent = without_left_out(node, self.left_out)
        return not any(check_node(self._facts(NodeForm.of(absent), absent, self.source, location)))

    def _in_its_own_name(
        self, node: NodeProto, key: Key | None, climb: _Climb, blockers: Sequence[Diagnostic]
    ) -> Sequence[Diagnostic]:
        """The blockers with those in one that are about what the node was written with, which its author never saw."""
        foreign = [
            found for found in blockers if found in climb.of_written or not found.message.startswith(node.op_type)
        ]
        if not climb.adapted or not foreign:
            return blockers
        stop = self._stops.get(key) if key is not None else None
        if stop is None:
            stop = self._nearest(node, climb)
            if key is not None:
                self._stops[key] = stop
        # Those at that opset first: without them it could go further.
        every = dict.fromkeys(found.message for found in foreign)
        reasons = sorted(every, key=lambda text: f"opset {stop}" not in text)
        more = f"; and {len(reasons) - _MOST_REASONS} more" if len(reasons) > _MOST_REASONS else ""
        side = "beyond" if self.target > self.source else "below"
        text = f"{node.op_type} cannot go {side} opset {stop}, where what it is written with has no equal: "
        text += "; ".join(reasons[:_MOST_REASONS]) + more
        made = diagnostic(foreign[0].code, text, climb.location, help=f"Stop at opset {stop}.")
        return [*(found for found in blockers if found not in foreign), made]

    def _nearest(self, node: NodeProto, climb: _Climb) -> int:
        """The opset nearest to the target that a node can go to."""

        def is_refused(opset: int) -> bool:
            trial = Ladder(self.source, opset, self.values, self.in_function, self.is_read, self.left_out)
            emission = climb.emission.afresh(opset)
            return bool(trial._carry(node, _Climb(trial, climb.location, emission)).blockers)

        if self.target > self.source:
            way = range(self.target - 1, self.source, -1)
            return next((opset for opset in way if not is_refused(opset)), self.source)
        # What is refused at an opset is refused below it, too, and what is written for old opsets takes long to write.
        way = range(self.source, self.target, -1)
        return way[bisect_left(way, True, lo=1, key=is_refused) - 1]

    def _facts(self, form: NodeForm, node: NodeProto, at: int, location: str) -> NodeFacts:
        inputs = [self.values.type_of(name) for name in form.inputs]
        outputs = [self.values.type_of(name) for name in form.outputs]
        return NodeFacts(
            node=node,
            source=at,
            target=self.target,
            input_dtypes=[value.dtype for value in inputs],
            output_dtypes=[value.dtype for value in outputs],
            location=location,
            in_function=self.in_function,
            input_kinds=[_known_kind(value) for value in inputs],
            input_shapes=[value.shape for value in inputs],
            output_kinds=[_known_kind(value) for value in outputs],
            assumptions=self.assumptions,
        )


@dataclass(slots=True)
class _Climb:
    """The way of one node of the model and of all that it becomes."""

    ladder: Ladder
    location: str
    emission: Emission
    blockers: list[Diagnostic] = field(default_factory=list)
    # Those about nodes that were written on the way, which may be of the operator that the node itself is of.
    of_written: set[Diagnostic] = field(default_factory=set)
    reasons: list[str] = field(default_factory=list)
    adapted: bool = False
    asked_for_readers: bool = False
    # Attributes with subgraphs whose nodes are at the target.
    carried: list[AttributeProto] = field(default_factory=list)
    # What the nodes that were written on the way read.
    read: set[str] = field(default_factory=set)

    def take(self, form: NodeForm, at: int) -> list[NodeForm]:
        """What a node becomes on the way from opset `at` to the target."""
        if form.op_type in SPLIT_OPERATORS:
            return self._take_split(form, at)
        route = route_of(form.op_type, at, self.ladder.target)
        if route is None:
            return [form]
        if isinstance(route, str):
            self.blockers.append(diagnostic("SG404", route, self.location))
            return [form]
        for older, newer in route.crossings:
            step = self._step(form.copy(), at, route.upward, older, newer)
            found = blockers_at(step)
            if found:
                return self._cross(form, at, route.upward, (older, newer), found)
            form = step.form
            self.reasons += step.reasons.values()
        if not route.upward and route.exists_from > self.ladder.target:
            return self._leave_behind(form, at, route)
        return [form]

    def _take_split(self, form: NodeForm, at: int) -> list[NodeForm]:
        """A split of a function body, which goes to the target in one step as every split does."""
        target = variant_at(form.op_type, self.ladder.target)
        if target is None:
            text = f"its function body has a {form.op_type}, which does not exist at opset {self.ladder.target}"
            self.blockers.append(diagnostic("SG404", text, self.location))
        if target is None or target == variant_at(form.op_type, at) or form.op_type != "Split":
            return [form]
        node = form.node()
        emission = self.emission.afresh(self.emission.opset, initializers=self.emission.initializers)
        found = SplitNode(Scope(None, (), self.location, {}), 0, node, self.ladder.values.split_detail(node, at))
        lowered = lower_split(found, target, emission, f"opset {self.ladder.target}")
        self.blockers += lowered.blockers
        return [form] if lowered.emission is None else [NodeForm.of_added(made) for made in emission.nodes]

    def _step(self, form: NodeForm, at: int, upward: bool, older: OperatorVersion, newer: OperatorVersion) -> Step:
        facts = self.ladder._facts(form, form.node(), at, self.location)
        return Step(
            facts,
            upward,
            older,
            newer,
            form.attributes,
            {},
            form=form,
            values=self.ladder.values,
            emission=self.emission,
            is_read=self._is_read,
        )

    def _is_read(self, name: str) -> bool:
        """Whether anything reads a value, in the model or of what was written on the way."""
        self.asked_for_readers = True
        return name in self.read or self.ladder.is_read(name)

    def _cross(
        self,
        form: NodeForm,
        at: int,
        upward: bool,
        crossing: tuple[OperatorVersion, OperatorVersion],
        found: Sequence[Diagnostic],
    ) -> list[NodeForm]:
        """Take a node that the guard cannot keep over a boundary: in a wider element type, by its adapter, or as its
        function body.
        """
        older, newer = crossing
        ways: list[Adapter] = []
        # What the guard found of types is not what an adapter is about, and as true as what it says.
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
            step = self._step(form.copy(), at, upward, older, newer)
            carried, failed = self._try(way, step, f"{older.op} changes at opset {newer.since_version}")
            if carried is not None:
                return carried
            if isinstance(failed, Inexact):
                failed = [self._refused(older.op, newer.since_version, upward, failed)] if way is adapter else ()
            elif way is not expand:
                # It crossed this boundary, types and all: what stands in the way is further on.
                blockers = failed
            blockers = blockers or failed
        self.blockers += blockers or found
        return [form]

    def _has_unknown_misfit(
        self, form: NodeForm, at: int, upward: bool, crossing: tuple[OperatorVersion, OperatorVersion]
    ) -> bool:
        step = self._step(form, at, upward, *crossing)
        return any(not slot.found for slot in misfits(slots_of(step.facts, step.old), step.new, skip_renamed=True))

    def _leave_behind(self, form: NodeForm, at: int, route: Route) -> list[NodeForm]:
        """Write a node with other operators where its own does not exist."""
        first = version_at(form.op_type, route.exists_from)
        assert first is not None
        adapter = adapter_of(form.op_type, route.exists_from, going_up=False)
        blockers: Sequence[Diagnostic] = ()
        for way in (expand,) if adapter is None else (adapter, expand):
            step = self._step(form.copy(), at, False, first, first)
            carried, failed = self._try(way, step, f"{form.op_type} exists from opset {route.exists_from} on")
            if carried is not None:
                return carried
            if isinstance(failed, Inexact):
                message = f"{form.op_type} exists from opset {route.exists_from} on and {failed.reason}"
                help = f"Stop at opset {route.exists_from}{', or ' + failed.help if failed.help else ''}."
                failed = [diagnostic("SG404", message, self.location, help=help)]
            blockers = blockers or failed
        self.blockers += blockers
        return [form]

    def _try(self, way: Adapter, step: Step, why: str) -> tuple[list[NodeForm] | None, Inexact | Sequence[Diagnostic]]:
        """What a node becomes in one way, all the way to the target; else why it cannot go this way."""
        self.adapted = True
        blockers, reasons = len(self.blockers), len(self.reasons)
        try:
            way(step)
        except Inexact as refusal:
            return None, refusal
        except _UNFIT as fault:
            # As a rule of a node whose inputs and attributes contradict each other, which inference has not found out.
            return None, Inexact(f"it could not be worked out what the node means ({type(fault).__name__}: {fault})")
        self.reasons += list(step.reasons.values()) or [why]
        forms = self._further(step)
        failed = self.blockers[blockers:]
        if not failed:
            return forms, ()
        del self.blockers[blockers:], self.reasons[reasons:]
        return None, failed

    def _refused(self, op: str, boundary: int, upward: bool, refusal: Inexact) -> Diagnostic:
        help = f"Stop at opset {boundary - 1 if upward else boundary}{', or ' + refusal.help if refusal.help else ''}."
        return diagnostic("SG405", f"{op} changes at opset {boundary}: {refusal.reason}", self.location, help=help)

    def _further(self, step: Step) -> list[NodeForm]:
        opset = step.dialect or step.opset
        made = [*step.before, *([] if step.dropped else [step.form]), *step.after]
        _inherit(step, made)
        self.read.update(name for form in made for name in form.reads)
        self.ladder.values.note([form.node() for form in made], opset)
        taken = []
        for form in made:
            blockers, reasons = len(self.blockers), len(self.reasons)
            result = self._take_written(form, opset)
            if form.original is None:
                self.of_written.update(self.blockers[blockers:])
            taken.append((result, self.blockers[blockers:], self.reasons[reasons:]))
            del self.blockers[blockers:], self.reasons[reasons:]
        return self._still_needed(taken, step.facts.node.output)

    def _still_needed(
        self, taken: Sequence[tuple[list[NodeForm], list[Diagnostic], list[str]]], outputs: Iterable[str]
    ) -> list[NodeForm]:
        """The forms of what was taken further that the outputs still depend on. What only fed a node that needs it no
        longer, as an input that became an attribute, goes, and so does what stood in its way.
        """
        wanted = {name for name in outputs if name}
        kept = []
        for each in reversed(taken):
            if any(not wanted.isdisjoint(form.outputs) for form in each[0]):
                wanted.update(name for form in each[0] for name in form.reads)
                kept.append(each)
        forms: list[NodeForm] = []
        for made, blockers, reasons in reversed(kept):
            forms += made
            self.blockers += blockers
            self.reasons += reasons
        return forms

    def _take_written(self, form: NodeForm, opset: int) -> list[NodeForm]:
        """Take what was written for an opset from there to the target, with its subgraphs."""
        version = version_at(form.op_type, opset)
        problem = _schema_problem(form, version)
        if version is None or problem:
            text = f"{form.op_type} {problem} at opset {opset}, where this node was to be written with it"
            self.blockers.append(diagnostic("SG405", text, self.location))
            return [form]
        self._carry_graphs(form, opset)
        # A copy: where no wider type helps, the form must still give its outputs, or what blocks it is lost with it.
        step = self._step(form.copy(), opset, True, version, version)
        step.dialect = opset
        unfit = [each for each in slots_of(step.facts, version) if each.types.isdisjoint(_types_at(version, each))]
        if not unfit:
            return self.take(form, opset)
        carried, _ = self._try(partial(widen, fits=version), step, f"{form.op_type} does not take {unfit[0].found}")
        if carried is None:
            self.blockers.append(self._unfit(form, unfit[0], opset))
        return carried or [form]

    def _unfit(self, form: NodeForm, slot: Slot, opset: int) -> Diagnostic:
        """That a type does not fit there: the node itself, just over a boundary, or one that was written for it."""
        if form.original is None:
            text = f"{form.op_type} does not take {slot.found} at opset {opset}, where this node needs it"
            return diagnostic("SG403", text, self.location)
        upward = self.ladder.target > self.ladder.source
        side, stop = (f"from opset {opset} on", opset - 1) if upward else (f"below opset {opset + 1}", opset + 1)
        text = misfit_message(form.op_type, slot, side, self.ladder.in_function)
        return diagnostic("SG403", text, self.location, help=type_advice(stop, slot))

    def _carry_graphs(self, form: NodeForm, opset: int) -> None:
        """Take the nodes of the subgraphs that were written with a node to the target; once."""
        # The subgraphs of a node of the model are scopes of their own, and converted in place.
        theirs = () if form.original is None else form.original.attribute
        for attribute in form.attributes.values():
            if attribute.type != AttributeProto.GRAPH or attribute in theirs:
                continue
            if any(attribute is held for held in self.carried):
                continue
            self.carried.append(attribute)
            nodes: list[NodeProto] = []
            for node in attribute.g.node:
                if plain_domain(node.domain) != "":
                    nodes.append(node)
                    continue
                nodes += [made.node() for made in self._take_written(NodeForm.of_added(node), opset)]
            made_nodes = [NodeProto.FromString(node.SerializeToString()) for node in nodes]
            del attribute.g.node[:]
            attribute.g.node.extend(made_nodes)


def _inherit(step: Step, made: Sequence[NodeForm]) -> None:
    """Where the node itself was left out, give its name and documentation to the one that gives its first output."""
    if not step.dropped:
        return
    first = next((name for name in step.outputs if name), None)
    for form in made:
        if first in form.outputs:
            form.original, form.name = step.form.original, step.form.name


def _schema_problem(form: NodeForm, version: OperatorVersion | None) -> str:
    """What does not fit the schema that a node is written for, rather than an invalid model; "" where nothing is."""
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


def _known_kind(value: ValueType) -> str | None:
    return None if value.kind == "unknown" else value.kind
