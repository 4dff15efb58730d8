"""The walk over the nodes of one graph: each node's types from its inputs, its contents where they are small, and what
is wrong with it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from splitgraph.diagnostics import diagnostic
from splitgraph.dim import Facts
from splitgraph.graph.scopes import (
    GraphPath,
    called_function,
    may_have_bodies,
    node_label,
    plain_domain,
    subgraph_location,
    subgraphs,
)
from splitgraph.graph.tensors import tensor_type
from splitgraph.inference.constant_nodes import MOST_BYTES, read_constant
from splitgraph.inference.context import RULES, NodeContext, rule_of
from splitgraph.inference.declared import reconcile
from splitgraph.inference.graph_values import GraphValues
from splitgraph.inference.known import Known, Visit
from splitgraph.inference.operators import Operator, operator_of, untyped_attributes
from splitgraph.inference.split_nodes import keep_split, visit_split
from splitgraph.inference.state import FunctionCall, State
from splitgraph.inference.type_constraints import check_element_types
from splitgraph.inference.unbound import schema_types, without_asking
from splitgraph.onnx_proto import AttributeProto, FunctionProto, NodeProto, TensorProto
from splitgraph.tensor_bytes import misfit
from splitgraph.value_type import UNKNOWN, ValueType
from splitgraph.variants import openvino_split_1, variadic_split_1

Bindings = Mapping[str, AttributeProto]

# Operators whose attributes are graphs, too long to compare; and SequenceAt, whose position is noted.
_NEVER_ALIKE = frozenset({"If", "Loop", "Scan", "SequenceMap", "SequenceAt"})
_HOW_TO_TYPE = "Set AttributeProto.type of the attribute, as onnx.helper.make_attribute does."
_WRITTEN = AttributeProto.SerializeToString
_WRITTEN_NODE = NodeProto.SerializeToString

# What nodes that give the same have in common: the attribute of a Constant; operator, inputs and attributes of others.
Key = bytes | tuple[object, ...]


class Walk(GraphValues):
    """One graph, or one call of a function, being inferred.

    parent: as of the values. bindings: attributes of the call for the body of a function; None for a body that is
    walked as written, apart from any call.
    """

    def __init__(
        self,
        state: State,
        path: GraphPath,
        location: str,
        imports: Mapping[str, int],
        facts: Facts,
        *,
        parent: Walk | None = None,
        bindings: Bindings | None = None,
    ) -> None:
        super().__init__(state, path, location, imports, facts, parent)
        self.bindings = bindings
        # Of what may repeat, and of that what stays as it is when more is known of the symbols.
        self._visits: dict[Key, Visit] = {}
        self._settled: dict[Key, Visit] = {}
        self._reported_missing: set[str] = set()

    def run(self, nodes: Sequence[NodeProto]) -> None:
        """Infer every node in order."""
        self.nodes = nodes
        known, types, declared, constants = self.known, self.types, self.declared, self.constants
        visits, read, note = self._visits, self.known.__getitem__, self.detail.visits.append
        earlier = visits.get
        key: Key
        each: Iterable[bytes]
        for index, node in enumerate(nodes):
            op_type = node.op_type
            constant = None
            if op_type == "Constant":
                constant = read_constant(_WRITTEN_NODE(node), visits)
                if constant is None or constant[1] not in visits:
                    held = self._plain_tensor(node)
                    if held is not None:
                        note(self._hold(*held, index, None if constant is None else constant[1]))
                        continue
            if constant is not None:
                outputs, key = [constant[0]], constant[1]
            else:
                outputs, attributes = node.output[:], node.attribute
                if attributes:
                    if op_type in _NEVER_ALIKE or (op_type == "Constant" and node.ByteSize() > MOST_BYTES):
                        note(self._visit(node, index, outputs, self._given(node, index), None))
                        continue
                    # Bytes for the attributes, one object for all that is known of an input: what the visit depends on.
                    each = map(_WRITTEN, attributes[:])
                else:
                    each = ()
                try:
                    key = (op_type, node.domain, len(outputs), *map(read, node.input[:]), *each)
                except KeyError:
                    key = (op_type, node.domain, len(outputs), *self._given(node, index), *each)
            visit = earlier(key)
            if visit is None:
                note(self._visit(node, index, outputs, [known[name] for name in node.input], key))
                continue
            found = visit.only
            # What most nodes come to, here rather than in a call.
            if found is not None and (name := outputs[0]) and name not in types and name not in declared:
                known[name] = found
                types[name] = found.type or UNKNOWN
                if visit.content is not None:
                    constants[name] = visit.content
                note(visit)
            else:
                note(self._repeat(visit, node, index, outputs))
        # Nothing is read here any more, and a large model has as many of these as values.
        known.clear()
        self._visits.clear()
        self._settled.clear()
        self.state.details[self.path] = self.detail

    def _plain_tensor(self, node: NodeProto) -> tuple[str, TensorProto] | None:
        """What a Constant gives and the tensor that it is; None for a node that is anything but a plain constant tensor
        of a name of its own.
        """
        attribute = node.attribute[0] if len(node.attribute) == 1 else None
        if attribute is None or (attribute.name, attribute.type) != ("value", AttributeProto.TENSOR):
            return None
        operator = operator_of(self.state, self.imports, node)
        if operator.schema is None or operator.domain or operator.finding or attribute.ref_attr_name or node.input:
            return None
        outputs, tensor = node.output[:], attribute.t
        name = outputs[0] if len(outputs) == 1 else ""
        if not name or name in self.types or misfit(tensor):
            return None
        if name in self.declared and self.declared[name] != tensor_type(tensor):
            return None
        return name, tensor

    def _hold(self, name: str, tensor: TensorProto, index: int, written: bytes | None) -> Visit | None:
        """Define what a plain Constant gives as an initializer is defined, and what the others like it give. written:
        its attribute; None where that is too long to look for others.
        """
        type = self.types[name] = tensor_type(tensor)
        self.constants[name] = tensor
        known = self.look_up(name)
        if written is None:
            return None
        visit = Visit(index, [known], [type], None, self.constants.get(name))
        self._visits[written] = self._settled[written] = visit
        return visit

    def _given(self, node: NodeProto, index: int) -> list[Known]:
        """What is known of a node's inputs, of which some are read for the first time here."""
        given = []
        for name in node.input:
            found = self.known.get(name)
            if found is None:
                if name not in self.types and not self.is_defined(name):
                    self._report_missing(name, f"{self.location}/{node_label(node, index)}")
                found = self.look_up(name)
            given.append(found)
        return given

    def _repeat(self, visit: Visit, node: NodeProto, index: int, outputs: Sequence[str]) -> Visit | None:
        """Let a node give what an earlier one of the same operator, attributes and inputs gave. None when more is known
        of what it gives.
        """
        if "" in outputs:
            return self._visit(node, index, outputs, self._given(node, index), None)
        alike: Visit | None = visit
        if visit.split is not None:
            keep_split(self, node, index, visit.split, visit.types, ())
        known, types, declared = self.known, self.types, self.declared
        for name, found in zip(outputs, visit.outputs, strict=True):
            if name in types or name in declared:
                self._give(name, found, node, index)
                alike = alike if known[name] is found else None
                continue
            known[name] = found
            types[name] = found.type or UNKNOWN
            if found.contents is not None:
                self.constants[name] = found.contents
            if found.sequence is not None:
                self.sequences[name] = found.sequence
        if visit.content is not None:
            self.constants[outputs[0]] = visit.content
        return alike

    def _give(self, name: str, found: Known, node: NodeProto, index: int) -> None:
        """Define an output of a node."""
        declared = self.declared.get(name) if self.declared else None
        if name in self.types or (declared is not None and declared != found.type):
            location = f"{self.location}/{node_label(node, index)}"
            inferred = found.type or UNKNOWN
            if declared is not None:
                version = self.facts.version
                inferred = reconcile(self, name, inferred, declared, location)
                if version != self.facts.version:
                    self._forget_unsettled()
            self.define(name, inferred, location)
            found = self.state.known_values.of(self.types[name], found.contents, found.sequence, unread=found.unread)
        self.known[name] = found
        self.types[name] = found.type or UNKNOWN
        if found.contents is not None:
            self.constants[name] = found.contents
        if found.sequence is not None:
            self.sequences[name] = found.sequence

    def _visit(
        self,
        node: NodeProto,
        index: int,
        names: Sequence[str],
        given: list[Known],
        key: Key | None,
    ) -> Visit | None:
        state, version, before = self.state, self.facts.version, self.state.effects
        open_questions = self.facts.open_questions
        operator = operator_of(state, self.imports, node)
        ctx = NodeContext(self, node, operator.opset, operator.since_version, index, given)
        outputs = self._infer(ctx, operator)
        has_bodies = may_have_bodies(node, state.plain_functions) and any(subgraphs(node))
        if has_bodies:
            self.detail.having_bodies.append(index)
            if not _walks_bodies(operator, ctx):
                self._walk_bodies(ctx)
        if node.op_type == "SequenceAt":
            self._note_position(ctx)
        effects, found = state.effects - before, list[Known]()
        for position, name in enumerate(names):
            if not name:
                continue
            before = state.effects
            inferred = self.complete(outputs[position]) if position < len(outputs) else UNKNOWN
            effects += state.effects - before
            known = state.known_values.of(inferred, ctx.contents_out.get(position), ctx.sequences_out.get(position))
            found.append(known)
            self._give(name, known, node, index)
        if version != self.facts.version:
            # More is known of the symbols now, so that what asked about them may not give the same again.
            self._forget_unsettled()
        elif key is not None and not effects and "" not in names and self._is_repeatable(node, operator, has_bodies):
            visit = self._visits[key] = Visit(index, found, outputs, ctx.split)
            if open_questions == self.facts.open_questions:
                self._settled[key] = visit
            if all(self.known.get(name) is held for name, held in zip(names, found, strict=True)):
                return visit
        return None

    def _is_repeatable(self, node: NodeProto, operator: Operator, has_bodies: bool) -> bool:
        """False for a call and for a node with bodies, which are to be walked each time."""
        is_call = (operator.domain, node.op_type) in self.state.function_names
        return not (has_bodies or is_call or node.op_type in _NEVER_ALIKE)

    def _forget_unsettled(self) -> None:
        self._visits.clear()
        self._visits.update(self._settled)

    def _walk_bodies(self, ctx: NodeContext) -> None:
        """Walk the bodies of an operator without a rule, with the types that they declare."""
        for name, position, graph in subgraphs(ctx.node):
            body = Walk(
                self.state,
                (*self.path, ctx.index, name, position),
                subgraph_location(self.location, node_label(ctx.node, ctx.index), name, position),
                self.imports,
                self.facts.child(),
                parent=self,
                bindings=self.bindings,
            )
            body.define_graph_values(graph)
            body.run(graph.node)

    def _note_position(self, ctx: NodeContext) -> None:
        contents = ctx.contents(1)
        if contents is not None and isinstance(contents.scalar, int):
            self.detail.positions[ctx.index] = contents.scalar

    def _infer(self, ctx: NodeContext, operator: Operator) -> Sequence[ValueType]:
        if operator.finding is not None:
            self.report(diagnostic(operator.finding, operator.message, ctx.location, help=operator.help))
            return ()
        is_known = operator.schema is not None or operator.variant is not None or operator.function is not None
        if is_known and (untyped := untyped_attributes(ctx.node)):
            # Runtimes refuse it; to guess the type, or to take the attribute for absent, might change what it means.
            text = f"attribute {untyped[0]!r} of {ctx.node.op_type} has no type, which it must have"
            self.report(diagnostic("SG212", text, ctx.location, help=_HOW_TO_TYPE))
            return ()
        if operator.variant is not None:
            return visit_split(ctx, operator.variant)
        if operator.function is not None:
            key = called_function(ctx.node)
            if key in self.state.variadic:
                self.state.calls.setdefault(key, []).append(FunctionCall(tuple(ctx.inputs)))
                return visit_split(ctx, variadic_split_1.VARIANT)
            return self._call(ctx, operator.function)
        rule = None if operator.outgrew_rule else rule_of(operator.domain, ctx.node.op_type)
        if operator.schema is None and rule is None:
            # What OpenVINO itself defines has been inferred by it: the dims that the IR declares are believed.
            if not self.state.quiet and operator.domain != openvino_split_1.DOMAIN:
                label = f"{ctx.node.domain}::{ctx.node.op_type}"
                self.state.effects += 1
                self.state.unknown_operators[label] = self.state.unknown_operators.get(label, 0) + 1
            return ()
        if operator.schema is not None and not operator.fits(ctx):
            return ()
        is_unbound = self.bindings is None and any(attribute.ref_attr_name for attribute in ctx.node.attribute)
        outputs = None if rule is None else without_asking(ctx, rule) if is_unbound else rule(ctx)
        if operator.schema is None:
            return outputs or ()
        if not ctx.errors:
            check_element_types(ctx, operator)
        if outputs is not None or ctx.errors:
            return outputs or ()
        if is_unbound:
            # onnx's own inference would take the attribute for 0.
            return schema_types(ctx, operator.schema)
        # Imported where it is needed, because it imports onnx's C++ library.
        from splitgraph.inference.fallback import infer_with_onnx

        return infer_with_onnx(ctx, operator)

    def _report_missing(self, name: str, location: str) -> None:
        if name in self._reported_missing:
            return
        self._reported_missing.add(name)
        if self.produces(name):
            text = f"reads {name!r}, which this node or a later one produces: a cycle, or nodes out of order"
            self.report(diagnostic("SG102", text, location))
        elif any(graph.produces(name) for graph in self.enclosing()):
            text = f"reads {name!r}, which the node around it or a later one produces: a cycle, or nodes out of order"
            self.report(diagnostic("SG102", text, location))
        else:
            self.report(
                diagnostic("SG105", f"reads {name!r}, which no input, initializer or earlier node defines", location)
            )

    def _call(self, ctx: NodeContext, function: FunctionProto) -> Sequence[ValueType]:
        key = called_function(ctx.node)
        if key in self.state.calling:
            help = "Write the function without the call of itself; ONNX has no recursion."
            self.report(diagnostic("SG102", f"the function {function.name!r} calls itself", ctx.location, help=help))
            return ()
        if not self.state.may_follow_call(ctx.location):
            return ()
        if not self.state.quiet or key not in self.state.calls:
            self.state.calls.setdefault(key, []).append(FunctionCall(tuple(ctx.inputs)))
        self.state.calling.append(key)
        bindings = self._call_bindings(ctx, function)
        imports = {**self.state.imports, **{plain_domain(e.domain): e.version for e in function.opset_import}}
        body = Walk(self.state, ("call", ctx.location), ctx.location, imports, self.facts, bindings=bindings)
        body.define_call_values(ctx, function)
        body.run(function.node)
        body.check_function_outputs(function)
        self.state.calling.pop()
        for position, name in enumerate(function.output):
            ctx.set_contents(position, body.contents_of(name))
            info = body.sequence_of(name)
            if info is not None:
                ctx.set_sequence(position, info)
        return [body.type_of(name) for name in function.output]

    def check_function_outputs(self, function: FunctionProto) -> None:
        """Report an output that the function's body does not define; called once the body has been walked."""
        for name in function.output:
            if not self.is_defined(name):
                text = f"the output {name!r} of the function {function.name!r} is defined by nothing in its body"
                self.report(diagnostic("SG105", text, self.location))

    def define_call_values(self, ctx: NodeContext, function: FunctionProto) -> None:
        """Define the inputs of a function's body from a call's inputs: types, contents, sequences."""
        for position, name in enumerate(function.input):
            self.define(name, ctx.input(position), self.location)
            contents, info = ctx.contents(position), ctx.sequence(position)
            if contents is not None:
                self.constants[name] = contents
            if info is not None:
                self.sequences[name] = info

    def _call_bindings(self, ctx: NodeContext, function: FunctionProto) -> Bindings | None:
        bound = {attribute.name: attribute for attribute in function.attribute_proto}
        for attribute in ctx.node.attribute:
            if not attribute.ref_attr_name:
                bound[attribute.name] = attribute
            elif self.bindings is None:
                return None
            elif attribute.ref_attr_name in self.bindings:
                bound[attribute.name] = self.bindings[attribute.ref_attr_name]
        return bound


def _walks_bodies(operator: Operator, ctx: NodeContext) -> bool:
    """True for a node whose rule walks its bodies, if it has any."""
    if operator.domain == openvino_split_1.DOMAIN:
        return rule_of(operator.domain, ctx.node.op_type) is not None
    return operator.domain == "" and ctx.node.op_type in RULES and not operator.outgrew_rule
