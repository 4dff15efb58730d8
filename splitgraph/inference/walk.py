"""The walk over the nodes of one graph: each node's types from its inputs, its contents where they are small, and what
is wrong with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import prod

from splitgraph.contents import Contents, SequenceInfo
from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.dim import Answer, Dim, DimLike, Facts, Obligation
from splitgraph.graph.scopes import (
    GraphPath,
    called_function,
    node_label,
    plain_domain,
    subgraph_location,
    subgraphs,
)
from splitgraph.graph.tensors import tensor_contents, tensor_type
from splitgraph.graph.types import value_type
from splitgraph.inference.context import RULES, NodeContext, rule_of
from splitgraph.inference.declared import reconcile
from splitgraph.inference.known import OMITTED, Known, Visit
from splitgraph.inference.operators import Operator, operator_of
from splitgraph.inference.split_nodes import keep_split, visit_split
from splitgraph.inference.state import FunctionCall, GraphDetail, State
from splitgraph.inference.type_constraints import check_element_types
from splitgraph.onnx_proto import AttributeProto, FunctionProto, GraphProto, NodeProto, TensorProto
from splitgraph.value_type import UNKNOWN, ValueType
from splitgraph.variants import openvino_split_1, variadic_split_1

Bindings = Mapping[str, AttributeProto]

# Operators whose attributes are graphs, too long to compare; and SequenceAt, whose position is noted.
_NEVER_ALIKE = frozenset({"If", "Loop", "Scan", "SequenceMap", "SequenceAt"})
# A longer Constant holds weights: comparing them would cost more than it saves.
_MOST_BYTES = 4096
_WRITTEN = AttributeProto.SerializeToString
# Constants of these types and so few elements are read at once: shapes are made of them.
_SHAPE_DTYPES = frozenset({TensorProto.INT64, TensorProto.INT32})
_FEW = 64


class Walk:
    """One graph, or one call of a function, being inferred.

    parent: the walk of the enclosing graph, whose values a subgraph may read; None for the main graph and for
    functions. bindings: attributes of the call for the body of a function; None for a body that is walked as written,
    apart from any call.
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
        self.state = state
        self.path = path
        self.location = location
        self.imports = imports
        self.facts = facts
        self.parent = parent
        self.bindings = bindings
        self.types: dict[str, ValueType] = {}
        self.constants: dict[str, Contents | TensorProto] = {}
        self.sequences: dict[str, SequenceInfo] = {}
        self.declared: dict[str, ValueType] = {}
        self.detail = GraphDetail(self.types, self.constants)
        # What is known of each value that a node here has read or given.
        self.known: dict[str, Known] = {"": OMITTED}
        self._visits: dict[tuple[object, ...], Visit] = {}
        self._reported_missing: set[str] = set()

    # What rules see ------------------------------------------------------------------------------------------------

    @property
    def broadcast_cache(self) -> dict[frozenset[DimLike], Dim]:
        """The symbol that stands for the broadcast of two dimensions, by the pair."""
        return self.state.broadcast_cache

    def type_of(self, name: str) -> ValueType:
        """The type of a value visible in this graph; UNKNOWN when nothing defines it."""
        scope: Walk | None = self
        while scope is not None:
            found = scope.types.get(name)
            if found is not None:
                return found
            scope = scope.parent
        return UNKNOWN

    def contents_of(self, name: str) -> Contents | None:
        """What is known of the elements of a value."""
        scope: Walk | None = self
        while scope is not None:
            held = scope.constants.get(name)
            if held is not None:
                if isinstance(held, Contents):
                    return held
                read = tensor_contents(held)
                if read is None:
                    del scope.constants[name]
                else:
                    scope.constants[name] = read
                return read
            if name in scope.types:
                return None
            scope = scope.parent
        return None

    def sequence_of(self, name: str) -> SequenceInfo | None:
        """What is known of a sequence."""
        scope: Walk | None = self
        while scope is not None:
            if name in scope.types:
                return scope.sequences.get(name)
            scope = scope.parent
        return None

    def read(self, name: str) -> Known:
        """What is known of a value, with its elements."""
        self.state.effects += 1
        known = self.state.known_values.of(self.type_of(name), self.contents_of(name), self.sequence_of(name))
        self.known[name] = known
        return known

    def refine(self, name: str, contents: Contents) -> Known:
        """Take the elements of a value for granted for the rest of this graph."""
        self.constants[name] = contents
        return self.read(name)

    def _look_up(self, name: str) -> Known:
        """What is known of a value that is first read in this graph; a constant's elements only where they are few
        integers, which shapes are made of.
        """
        scope: Walk | None = self
        while scope is not None and name not in scope.types:
            scope = scope.parent
        held = None if scope is None else scope.constants.get(name)
        if scope is None or not isinstance(held, TensorProto):
            known = self.state.known_values.of(self.type_of(name), self.contents_of(name), self.sequence_of(name))
        elif held.data_type in _SHAPE_DTYPES and prod(held.dims) <= _FEW:
            known = self._read_few(scope, name, held)
        else:
            known = self.state.known_values.of(scope.types[name], None, None, unread=True)
        self.known[name] = known
        return known

    def _read_few(self, scope: Walk, name: str, held: TensorProto) -> Known:
        """What is known of a constant of few integers; many constants of a model hold the same ones."""
        type, raw = scope.types[name], held.raw_data
        # Types of constants are shared objects, which are told apart by identity in a quarter of the time.
        earlier = self.state.read_constants.get((id(type), raw))
        if earlier is not None and earlier[0] is type:
            scope.constants[name] = earlier[2]
            return earlier[1]
        contents = self.contents_of(name)
        known = self.state.known_values.of(type, contents)
        if raw and contents is not None:
            self.state.read_constants[id(type), raw] = type, known, contents
        return known

    def fresh(self) -> Dim:
        """A new generated symbol."""
        return self.state.fresh()

    def report(self, found: Diagnostic) -> None:
        """Keep a finding."""
        self.state.report(found)

    def require(
        self,
        obligation: Obligation,
        location: str,
        code: str,
        message: str | None,
        noted: list[Obligation] | None = None,
    ) -> bool:
        """Record an obligation; report and return False when nothing can satisfy it."""
        if self.assume(obligation, location, noted) == "contradiction":
            earlier = isinstance(obligation.lhs, Dim) or isinstance(obligation.rhs, Dim)
            text = message or f"{obligation} can never hold"
            if earlier and self.facts.obligations:
                text += f" ({obligation} contradicts what is known of the symbols)"
            self.report(diagnostic(code, text, location))
            return False
        return True

    def assume(self, obligation: Obligation, location: str, noted: list[Obligation] | None = None) -> Answer:
        """Record an obligation unless nothing can satisfy it."""
        answer = self.facts.require(obligation)
        if answer == "assumed":
            self.state.note_requirement(obligation, location)
            if noted is not None:
                noted.append(obligation)
        return answer

    # Defining values -----------------------------------------------------------------------------------------------

    def is_defined(self, name: str) -> bool:
        """True when the name is visible here."""
        scope: Walk | None = self
        while scope is not None:
            if name in scope.types:
                return True
            scope = scope.parent
        return False

    def define(self, name: str, value: ValueType, location: str) -> None:
        """Give a value its type, with unknown dimensions as fresh symbols; a name that the graph defines already is a
        finding.
        """
        if name in self.types:
            self.report(diagnostic("SG104", f"the name {name!r} is defined twice in this graph", location))
        self.types[name] = self.complete(value)
        self.known.pop(name, None)

    def complete(self, value: ValueType) -> ValueType:
        """The type with a fresh symbol for each unknown dimension; not so for a sequence, whose elements may differ."""
        if value.shape is None or None not in value.shape or value.kind == "sequence":
            return value
        return value.with_shape([self.fresh() if dim is None else dim for dim in value.shape])

    def define_graph_values(self, graph: GraphProto, given: Sequence[ValueType | None] | None = None) -> None:
        """Define a graph's inputs and initializers. given: types of the inputs as the caller of a subgraph has them."""
        constant_inputs = self.state.model.ir_version < 4
        inputs = {value.name for value in graph.input}
        for position, value in enumerate(graph.input):
            declared = self.state.bind(value_type(value.type))
            passed = given[position] if given is not None and position < len(given) else None
            known = declared
            if passed is not None:
                known = reconcile(self, value.name, passed, declared, self.location, passed_in=True)
            self.define(value.name, known, self.location)
        for held in graph.initializer:
            name = held.name
            if name not in inputs:
                self.define(name, tensor_type(held), self.location)
            # From IR 4 on an initializer that is also an input is a default that a caller may override, so no constant.
            if name not in inputs or constant_inputs:
                self.constants[name] = held
        for sparse in graph.sparse_initializer:
            if sparse.values.name not in inputs:
                dense = ValueType("tensor", tensor_type(sparse.values).dtype, tuple(sparse.dims))
                self.define(sparse.values.name, dense, self.location)
        for value in (*graph.value_info, *graph.output):
            if value.type.WhichOneof("value") is not None:
                self.declared[value.name] = self.state.bind(value_type(value.type))
        # ONNX cannot write every type of other formats.
        for name, given_type in self.state.given_types.get(self.path, {}).items():
            written = self.types.get(name)
            if written is None:
                self.define(name, self.state.bind(given_type), self.location)
            elif written.dtype is None:
                self.types[name] = replace(written, dtype=given_type.dtype)
        self.declared.update(self.state.declared_types.get(self.path, {}))

    # Walking -------------------------------------------------------------------------------------------------------

    def run(self, nodes: Sequence[NodeProto]) -> None:
        """Infer every node in order."""
        known, visits, types, declared = self.known, self._visits, self.types, self.declared
        read, note = known.__getitem__, self.detail.visits.append
        for index, node in enumerate(nodes):
            op_type, outputs = node.op_type, node.output[:]
            is_long = op_type == "Constant" and node.ByteSize() > _MOST_BYTES
            if is_long or op_type in _NEVER_ALIKE or "" in outputs:
                note(self._visit(node, index, outputs, self._given(node, index, nodes), None))
                continue
            # Bytes for the attributes, one object for all that is known of an input: what the visit depends on.
            written = map(_WRITTEN, node.attribute[:])
            try:
                key = (op_type, node.domain, len(outputs), *map(read, node.input[:]), *written)
            except KeyError:
                given = self._given(node, index, nodes)
                key = (op_type, node.domain, len(outputs), *given, *written)
            visit = visits.get(key)
            if visit is None:
                note(self._visit(node, index, outputs, [known[name] for name in node.input], key))
                continue
            found = visit.only
            # What most nodes come to, here rather than in a call.
            if found is not None and (name := outputs[0]) not in types and name not in declared:
                known[name] = found
                types[name] = found.type or UNKNOWN
                note(visit)
            else:
                note(self._repeat(visit, node, index, outputs))
        # Nothing is read here any more, and a large model has as many of these as values.
        known.clear()
        visits.clear()
        self.state.details[self.path] = self.detail

    def _given(self, node: NodeProto, index: int, nodes: Sequence[NodeProto]) -> list[Known]:
        """What is known of a node's inputs, of which some are read for the first time here."""
        given = []
        for name in node.input:
            found = self.known.get(name)
            if found is None:
                if name not in self.types and not self.is_defined(name):
                    self._report_missing(name, f"{self.location}/{node_label(node, index)}", nodes[index:])
                found = self._look_up(name)
            given.append(found)
        return given

    def _repeat(self, visit: Visit, node: NodeProto, index: int, outputs: Sequence[str]) -> Visit | None:
        """Let a node give what an earlier one of the same operator, attributes and inputs gave. None when more is known
        of what it gives.
        """
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
                    self._visits.clear()
            self.define(name, inferred, location)
            found = self.state.known_values.of(self.types[name], found.contents, found.sequence)
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
        key: tuple[object, ...] | None,
    ) -> Visit | None:
        state, version, before = self.state, self.facts.version, self.state.effects
        operator = operator_of(state, self.imports, node)
        ctx = NodeContext(self, node, operator.opset, operator.since_version, index, given)
        outputs = self._infer(ctx, operator)
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
            # More is known of the symbols now, so that nothing may give the same again.
            self._visits.clear()
        elif key is not None and not effects and self._is_repeatable(node, operator):
            alone = len(found) == 1 and ctx.split is None and found[0].contents is None and found[0].sequence is None
            visit = self._visits[key] = Visit(found, outputs, ctx.split, found[0] if alone else None)
            if all(self.known.get(name) is held for name, held in zip(names, found, strict=True)):
                return visit
        return None

    def _is_repeatable(self, node: NodeProto, operator: Operator) -> bool:
        """False for a call and for a node with bodies, which are to be walked each time."""
        return (operator.domain, node.op_type) not in self.state.function_names and not any(subgraphs(node))

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
            self.report(diagnostic(operator.finding, operator.message, ctx.location))
            return ()
        if operator.variant is not None:
            return visit_split(ctx, operator.variant)
        if operator.function is not None:
            key = called_function(ctx.node)
            if key in self.state.variadic:
                self.state.calls.setdefault(key, []).append(FunctionCall(tuple(ctx.inputs)))
                return visit_split(ctx, variadic_split_1.VARIANT)
            return self._call(ctx, operator.function)
        rule = rule_of(operator.domain, ctx.node.op_type)
        if operator.schema is None and rule is None:
            # What OpenVINO itself defines has been inferred by it: the dims that the IR declares are believed.
            if not self.state.quiet and operator.domain != openvino_split_1.DOMAIN:
                label = f"{ctx.node.domain}::{ctx.node.op_type}"
                self.state.effects += 1
                self.state.unknown_operators[label] = self.state.unknown_operators.get(label, 0) + 1
            return ()
        if operator.schema is not None and not operator.fits(ctx):
            return ()
        if self.bindings is None and any(attribute.ref_attr_name for attribute in ctx.node.attribute):
            return ()
        outputs = None if rule is None else rule(ctx)
        if operator.schema is None:
            return outputs or ()
        if not ctx.errors:
            check_element_types(ctx, operator)
        if outputs is not None or ctx.errors:
            return outputs or ()
        # Imported where it is needed, because it imports onnx's C++ library.
        from splitgraph.inference.fallback import infer_with_onnx

        return infer_with_onnx(ctx, operator)

    def _report_missing(self, name: str, location: str, later: Sequence[NodeProto]) -> None:
        if name in self._reported_missing:
            return
        self._reported_missing.add(name)
        if any(name in node.output for node in later):
            text = f"reads {name!r}, which this node or a later one produces: a cycle, or nodes out of order"
            self.report(diagnostic("SG102", text, location))
        else:
            self.report(
                diagnostic("SG105", f"reads {name!r}, which no input, initializer or earlier node defines", location)
            )

    def _call(self, ctx: NodeContext, function: FunctionProto) -> Sequence[ValueType]:
        key = called_function(ctx.node)
        if key in self.state.calling:
            self.report(diagnostic("SG102", f"the function {function.name!r} calls itself", ctx.location))
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
        self.state.calling.pop()
        for position, name in enumerate(function.output):
            ctx.set_contents(position, body.contents_of(name))
            info = body.sequence_of(name)
            if info is not None:
                ctx.set_sequence(position, info)
        return [body.type_of(name) for name in function.output]

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
    return operator.domain == "" and ctx.node.op_type in RULES
