"""One node on its way from opset to opset: kept by the guard, edited or replaced by adapters, expanded where its
operator does not exist.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import onnx

from splitgraph.conversion.adapters import Adapter, adapter_of
from splitgraph.conversion.boundary_crossing import AttributeEdit, NodeFacts
from splitgraph.conversion.emission import Emission
from splitgraph.conversion.expansion import expand
from splitgraph.conversion.form import Form
from splitgraph.conversion.guard import Route, blockers_at, check_node, route_of
from splitgraph.conversion.schema_history import OperatorVersion, version_at
from splitgraph.conversion.splits import lower_split
from splitgraph.conversion.step import Inexact, Step
from splitgraph.conversion.values import Values
from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.graph.scopes import Scope
from splitgraph.value_type import ValueType
from splitgraph.variants import SPLIT_OPERATORS, variant_at


@dataclass(frozen=True, slots=True)
class Carried:
    """A node at the target opset.

    forms: the nodes that it became, in order; None when edits of its attributes are enough. blockers: why it cannot
    go; then nothing else is given. why: of the change, in words.
    """

    forms: Sequence[Form] | None = None
    edits: Sequence[AttributeEdit] = ()
    blockers: Sequence[Diagnostic] = ()
    why: str = ""


@dataclass(slots=True)
class Ladder:
    """Takes the nodes of one graph from opset `source` to opset `target` of ai.onnx."""

    source: int
    target: int
    values: Values
    in_function: bool
    is_read: Callable[[str], bool]

    def needs(self, op_type: str) -> bool:
        """False when every node of the operator can be kept without a look at it."""
        return route_of(op_type, self.source, self.target) is not None

    def carry(self, node: onnx.NodeProto, location: str, emission: Emission) -> Carried:
        """A node of ai.onnx at the target opset, or all that stands in its way."""
        facts = self._facts(Form.of(node), node, self.source, location)
        edits, blockers = check_node(facts)
        if not blockers:
            return Carried(edits=edits, why="; ".join(edit.why for edit in edits))
        climb = _Climb(self, location, emission)
        forms = climb.take(Form.of(node), self.source)
        if climb.blockers:
            # Where no adapter came in, the guard has seen every boundary and says more.
            return Carried(blockers=climb.blockers if climb.adapted else blockers)
        return Carried(forms, why="; ".join(dict.fromkeys(climb.reasons)))

    def _facts(self, form: Form, node: onnx.NodeProto, at: int, location: str) -> NodeFacts:
        inputs = [self.values.type_of(name) for name in form.inputs]
        outputs = [self.values.type_of(name) for name in form.outputs]
        shapes = [value.shape for value in inputs]
        known = all(shape is not None and None not in shape for shape in shapes)
        return NodeFacts(
            node=node,
            source=at,
            target=self.target,
            input_dtypes=[value.dtype for value in inputs],
            output_dtypes=[value.dtype for value in outputs],
            location=location,
            in_function=self.in_function,
            input_kinds=[_known_kind(value) for value in inputs],
            shapes_equal=True if known and len(set(shapes)) == 1 else None,
            input_shapes=shapes,
            output_kinds=[_known_kind(value) for value in outputs],
        )


@dataclass(slots=True)
class _Climb:
    """The way of one node of the model and of all that it becomes."""

    ladder: Ladder
    location: str
    emission: Emission
    blockers: list[Diagnostic] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)
    adapted: bool = False

    def take(self, form: Form, at: int) -> list[Form]:
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
            step = self._step(form, at, route.upward, older, newer)
            before = dict(form.attributes)
            found = blockers_at(step)
            if not found:
                self.reasons += [step.reasons[name] for name in step.reasons]
                continue
            form.attributes.clear()
            form.attributes |= before
            step.reasons.clear()
            adapter = adapter_of(form.op_type, newer.since_version, going_up=route.upward)
            if adapter is None:
                self.blockers += found
                return [form]
            return self._adapt(adapter, step, found)
        if not route.upward and route.exists_from > self.ladder.target:
            return self._leave_behind(form, route)
        return [form]

    def _take_split(self, form: Form, at: int) -> list[Form]:
        """A split of a function body, which goes to the target in one step as every split does."""
        target = variant_at(form.op_type, self.ladder.target)
        if target is None:
            text = f"its function body has a {form.op_type}, which does not exist at opset {self.ladder.target}"
            self.blockers.append(diagnostic("SG404", text, self.location))
        if target is None or target == variant_at(form.op_type, at) or form.op_type != "Split":
            return [form]
        node = form.node()
        emission = replace(self.emission, helpers=[], mains=[], _constants={}, _references={})
        scope = Scope(None, (), self.location, {})
        found = self.ladder.values.split_detail(node, at)
        lowered = lower_split(node, 0, scope, found, target, emission, f"opset {self.ladder.target}")
        self.blockers += lowered.blockers
        return [form] if lowered.emission is None else [Form.of_added(made) for made in emission.nodes]

    def _step(self, form: Form, at: int, upward: bool, older: OperatorVersion, newer: OperatorVersion) -> Step:
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
            is_read=self.ladder.is_read,
        )

    def _adapt(self, adapter: Adapter, step: Step, found: Sequence[Diagnostic]) -> list[Form]:
        """Let an adapter take a node over a boundary, and take what it made of it further."""
        self.adapted = True
        boundary = step.upper.since_version
        try:
            adapter(step)
        except Inexact as refusal:
            # What the guard found of types is not what the adapter is about, and as true as what it says.
            about_types = [each for each in found if each.code == "SG403"]
            self.blockers += about_types or [self._refused(step.lower.op, boundary, step.upward, refusal)]
            return [step.form]
        self.reasons += list(step.reasons.values()) or [f"{step.lower.op} changes at opset {boundary}"]
        return self._further(step)

    def _leave_behind(self, form: Form, route: Route) -> list[Form]:
        """Write a node with other operators where its own does not exist."""
        first = version_at(form.op_type, route.exists_from)
        assert first is not None
        step = self._step(form, route.exists_from, False, first, first)
        adapter = adapter_of(form.op_type, route.exists_from, going_up=False)
        self.adapted = True
        try:
            if adapter is not None:
                adapter(step)
            else:
                expand(step)
        except Inexact as refusal:
            message = f"{form.op_type} exists from opset {route.exists_from} on and {refusal.reason}"
            help = f"Stop at opset {route.exists_from}{', or ' + refusal.help if refusal.help else ''}."
            self.blockers.append(diagnostic("SG404", message, self.location, help=help))
            return [form]
        self.reasons.append(f"{form.op_type} exists from opset {route.exists_from} on")
        return self._further(step)

    def _refused(self, op: str, boundary: int, upward: bool, refusal: Inexact) -> Diagnostic:
        help = f"Stop at opset {boundary - 1 if upward else boundary}{', or ' + refusal.help if refusal.help else ''}."
        return diagnostic("SG405", f"{op} changes at opset {boundary}: {refusal.reason}", self.location, help=help)

    def _further(self, step: Step) -> list[Form]:
        opset = step.dialect or step.opset
        made = [*step.before, *([] if step.dropped else [step.form]), *step.after]
        self.ladder.values.note([form.node() for form in made], opset)
        result = []
        for form in made:
            self._check_written(form, opset)
            result += self.take(form, opset)
        return result

    def _check_written(self, form: Form, opset: int) -> None:
        """Refuse what does not fit the schema it is written for, rather than give an invalid model."""
        version = version_at(form.op_type, opset)
        if version is None or version.deprecated:
            problem = "does not exist"
        elif unknown := sorted(form.attributes.keys() - version.attributes.keys()):
            problem = f"has no attribute {unknown[0]}"
        elif missing := [n for n, a in version.attributes.items() if a.required and n not in form.attributes]:
            problem = f"needs the attribute {missing[0]}"
        elif len(form.inputs) > version.max_inputs or len(form.outputs) > version.max_outputs:
            problem = "has fewer inputs or outputs"
        else:
            return
        text = f"{form.op_type} {problem} at opset {opset}, where this node was to be written with it"
        self.blockers.append(diagnostic("SG405", text, self.location))


def _known_kind(value: ValueType) -> str | None:
    return None if value.kind == "unknown" else value.kind
