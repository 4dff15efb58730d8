"""The walk over the nodes of one graph.

For each node: look for the visit of an equal node (`memo.py`), and repeat it (`_repeat`). If there is none, find out
how the node is read (`reading.py`), infer its outputs (`node_outputs.py`, `function_calls.py`), and keep the visit.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence

from splitgraph.dim import Facts
from splitgraph.findings.diagnostics import diagnostic, meant
from splitgraph.inference.computed_values import Computation, ComputedValue, is_few
from splitgraph.inference.context import NodeContext
from splitgraph.inference.declared_types import define_graph_values, reconcile
from splitgraph.inference.function_calls import infer_call
from splitgraph.inference.graph_walk import Bindings, GraphWalk
from splitgraph.inference.memo import MOST_BYTES, OMITTED, Key, Knowledge, Memo, constant_key, setting_of
from splitgraph.inference.node_outputs import (
    computation_of,
    infer_node,
    is_refused,
    keep_split,
    without_impossible_dims,
)
from splitgraph.inference.operators import operator_of
from splitgraph.inference.reading import NEVER_ALIKE, Reading, Readings
from splitgraph.inference.walk_results import Visit
from splitgraph.inference.walk_state import WalkState
from splitgraph.model.onnx_proto import AttributeProto, FunctionProto, NodeProto, TensorProto
from splitgraph.model.scopes import (
    GraphPath,
    Steps,
    called_function,
    node_label,
    opset_imports,
    sorted_order,
    subgraph_location,
    subgraphs,
)
from splitgraph.model.tensor_data import lacks_data, misfit
from splitgraph.model.value_type import UNKNOWN, ValueType
from splitgraph.model.values import tensor_type
from splitgraph.splits import SPLIT_OPERATORS

_WRITTEN = AttributeProto.SerializeToString
_WRITTEN_NODE = NodeProto.SerializeToString


class Walk(GraphWalk):
    """The walk over one graph, or over the body of a function for one call."""

    def __init__(
        self,
        state: WalkState,
        path: GraphPath,
        location: str,
        imports: Mapping[str, int],
        facts: Facts,
        *,
        parent: GraphWalk | None = None,
        bindings: Bindings | None = None,
        memo: Memo | None = None,
        depth: int = 0,
    ) -> None:
        super().__init__(
            state, path, location, imports, facts, parent=parent, bindings=bindings, memo=memo, depth=depth
        )
        self._setting = setting_of(imports, (state.record.quiet > 0, state.record.muted > 0))
        # Visits by key, settled or not. The walk looks them up itself, because a call for every node would be slow.
        self._visits: dict[Key, Visit] = {}
        self._readings: Readings
        self._reported_missing: set[str] = set()

    def steps(self, nodes: Sequence[NodeProto]) -> Steps:
        """Do the same as `run`, but leave the bodies of functions to the caller.

        Equal nodes have equal keys. A node whose key is known repeats an earlier visit; any other node is visited.
        The most common cases are written out here, and names that every node needs are local: this loop runs once for
        each node of a model, and calls would slow it down.
        """
        self.nodes = nodes
        self._readings = self._readings_here()
        task = self.state.task
        order = sorted_order(nodes) if task.sorts else None
        functions, variadic, set_aside, follow = task.functions, task.variadic, task.set_aside, task.follow
        known, types, declared, constants = self.known, self.types, self.declared, self.constants
        visits, find_in_memo = self._visits, self._find
        find_here, knowledge_of, record_visit = visits.get, known.__getitem__, self.detail.visits.append
        key: Key | None
        attribute_bytes: Sequence[bytes]
        for index, node in enumerate(nodes) if order is None else [(index, nodes[index]) for index in order]:
            op_type = node.op_type

            # 1. A new Constant of an ordinary tensor is defined at once.
            constant = None
            if op_type == "Constant":
                constant = constant_key(_WRITTEN_NODE(node), visits)
                if constant is None or (constant[1] not in visits and find_in_memo(constant[1]) is None):
                    plain = self._plain_tensor(node)
                    if plain is not None:
                        record_visit(self._define_constant(*plain, None if constant is None else constant[1]))
                        continue

            # 2. Find the key: the operator, what is known of each input, and the attributes. None: no node is equal.
            if constant is not None:
                outputs, key = [constant[0]], constant[1]
            else:
                outputs, attributes = node.output[:], node.attribute
                if attributes and (op_type in NEVER_ALIKE or (op_type == "Constant" and node.ByteSize() > MOST_BYTES)):
                    key = None
                else:
                    attribute_bytes = [*map(_WRITTEN, attributes[:])] if attributes else ()
                    try:
                        key = (op_type, node.domain, len(outputs), *map(knowledge_of, node.input[:]), *attribute_bytes)
                    except KeyError:
                        # This graph has not read an input yet.
                        key = (op_type, node.domain, len(outputs), *self._given(node, index), *attribute_bytes)
            if set_aside and f"{self.location}/{node_label(node, index)}" in set_aside:
                # Nothing is concluded from this node, so it does not repeat the visit of an equal node.
                key = None
            if follow is not None and follow.is_own(self.path, index):
                key = None

            # 3. Without an earlier visit of an equal node, visit this one.
            visit = None if key is None else find_here(key) or find_in_memo(key)
            if visit is None:
                if key is None or constant is not None:
                    given, form = self._given(node, index), None
                else:
                    # The key without the inputs is what nodes that are read alike have in common.
                    end = len(key) - len(attribute_bytes)
                    given, form = [*key[3:end]], (*key[:3], *attribute_bytes)
                if functions and called_function(node) in functions and called_function(node) not in variadic:
                    record_visit((yield from self._visit_call(node, index, outputs, given)))
                else:
                    record_visit(self._visit(node, index, outputs, given, key, form))
                continue

            # 4. Repeat the earlier visit. The common case: the only output has a name, and no type yet.
            only = visit.only
            if only is not None and (name := outputs[0]) and name not in types and name not in declared:
                known[name] = only
                types[name] = only.type or UNKNOWN
                if visit.content is not None:
                    constants[name] = visit.content
                record_visit(visit)
            else:
                record_visit(self._repeat(visit, node, index, outputs))
        self._end(order)

    def _end(self, order: Sequence[int] | None) -> None:
        """Keep the results, with the visits in the order of the file. order: that of the walk, if it is another one."""
        if order is not None:
            visited = dict(zip(order, self.detail.visits, strict=True))
            self.detail.having_bodies.sort()
            self.detail.visits[:] = [visited[index] for index in range(len(order))]
        # Nothing is read here any more, and a large model has one of these for each value.
        self.known.clear()
        self._visits.clear()
        self.state.record.details[self.path] = self.detail
        self.state.record.facts[self.path] = self.facts

    # Repeated nodes ---------------------------------------------------------------------------------------------------

    def _find(self, key: Key) -> Visit | None:
        """Find a settled visit in the memo, and keep it in `_visits`."""
        visit: Visit | None = self.memo.find((self._setting, key))
        if visit is not None:
            self._visits[key] = visit
        return visit

    def _repeat(self, visit: Visit, node: NodeProto, index: int, outputs: Sequence[str]) -> Visit | None:
        """Define the outputs of a node from the visit of an equal earlier node: same operator, attributes and inputs.
        Return that visit, or None if more is known of the outputs of this node than of the earlier one.
        """
        if "" in outputs:
            return self._visit(node, index, outputs, self._given(node, index), None, None)
        alike: Visit | None = visit
        if visit.split is not None:
            keep_split(self, node, index, visit.split, visit.types, ())
        known, types, declared = self.known, self.types, self.declared
        for name, result in zip(outputs, visit.outputs, strict=True):
            if name in types or name in declared:
                self._define_output(name, result, node, index)
                alike = alike if known[name] is result else None
                continue
            known[name] = result
            types[name] = result.type or UNKNOWN
            if result.contents is not None:
                self.constants[name] = result.contents
            if result.sequence is not None:
                self.sequences[name] = result.sequence
        if visit.content is not None:
            self.constants[outputs[0]] = visit.content
        return alike

    def _keep(self, key: Key, visit: Visit, *, settled: bool) -> None:
        """Remember a visit that only inferred outputs. settled: no question about symbols stayed open, and the visit
        depends on no attribute of the call.
        """
        if not self.memo.remembers:
            return
        self._visits[key] = visit
        if settled:
            self.memo.keep((self._setting, key), visit, settled=True)

    # Other nodes ------------------------------------------------------------------------------------------------------

    def _visit(
        self,
        node: NodeProto,
        index: int,
        names: Sequence[str],
        given: list[Knowledge],
        key: Key | None,
        form: tuple[object, ...] | None,
    ) -> Visit | None:
        """Infer a node that repeats no earlier visit. form: what nodes that are read alike have in common."""
        facts, record = self.facts, self.state.record
        version, questions, effects = facts.version, facts.open_questions, record.effects
        reading = self._readings.of(self.state, node, given, form)
        operator = reading.operator
        versions = operator.opset, operator.since_version
        ctx = NodeContext(self, node, index, given, names, *versions, reading.attributes, reading.values)
        if self.state.task.follow is not None:
            self.state.task.follow(ctx)
        outputs = infer_node(self, ctx, reading)
        sound = self.state.knowledge.sound(outputs)
        if sound is None:
            outputs = without_impossible_dims(ctx, outputs)
        if reading.has_bodies or node.op_type == "SequenceAt":
            self._look_into_bodies(ctx, reading, outputs)
        if reading.is_computable and (record.computes or _may_be_known(given)):
            computation = computation_of(self, ctx, outputs)
            if computation is not None:
                outputs, sound = self._compute(ctx, computation), None
        results = self._known_outputs(ctx, outputs, sound)
        is_settled, did_more = questions == facts.open_questions, effects != record.effects
        self._define_outputs(ctx, results)
        if version != facts.version:
            # More is known of the symbols now, so that visits that asked about them may not hold.
            self._visits.clear()
        elif key is not None and not did_more and reading.is_repeatable and "" not in names:
            visit = Visit(results, outputs, ctx.split)
            self._keep(key, visit, settled=is_settled and not reading.refers)
            known = self.known
            for name, result in zip(names, results, strict=True):
                if known.get(name) is not result:
                    return None
            return visit
        return None

    def _visit_call(
        self, node: NodeProto, index: int, names: Sequence[str], given: list[Knowledge]
    ) -> Generator[Steps, None, Visit | None]:
        """Infer a call of a function. The caller of this generator walks the body."""
        version = self.facts.version
        reading = self._readings.of(self.state, node, given, None)
        operator = reading.operator
        versions = operator.opset, operator.since_version
        ctx = NodeContext(self, node, index, given, names, *versions, reading.attributes, reading.values)
        for position, name in enumerate(node.input):
            if self.computed_of(name) is not None:
                ctx.contents(position, needed=True)
        outputs: Sequence[ValueType] = ()
        if operator.finding is not None:
            self.report(diagnostic(operator.finding, operator.message, ctx.location))
        elif operator.function is not None and not is_refused(self, ctx, reading):
            outputs = yield from infer_call(self, ctx, operator.function)
        outputs = without_impossible_dims(ctx, outputs)
        if reading.has_bodies:
            self._look_into_bodies(ctx, reading, outputs)
        self._define_outputs(ctx, self._known_outputs(ctx, outputs, None))
        if version != self.facts.version:
            self._visits.clear()
        return None

    def _compute(self, ctx: NodeContext, computation: Computation) -> Sequence[ValueType]:
        """Leave the outputs of a node to be computed, and return their types. An output of unknown shape is computed
        now.
        """
        self.state.record.effects += 1
        self.state.record.computes = True
        types = list(computation.types)
        for position, name in enumerate(ctx.outputs):
            if not name or position >= len(types):
                continue
            value = ComputedValue(computation, position)
            if types[position].kind == "tensor" and not is_few(types[position]):
                contents = value.contents()
                if contents is None:
                    continue
                types[position] = types[position].with_shape(contents.shape)
            self.computed[name] = value
            ctx.contents_out.pop(position, None)
        return types

    def _look_into_bodies(self, ctx: NodeContext, reading: Reading, outputs: Sequence[ValueType]) -> None:
        """Walk the bodies of an operator without a rule, with the types that the bodies declare. Record the node for
        conversion.
        """
        node, count, domain = ctx.node, len(ctx.outputs), reading.operator.domain
        if node.op_type == "SequenceAt":
            contents = ctx.contents(1)
            if contents is not None and isinstance(contents.scalar, int):
                self.detail.positions[ctx.index] = contents.scalar
        if not reading.has_bodies:
            return
        self.detail.having_bodies.append(ctx.index)
        if reading.walks_bodies:
            if domain == "" and outputs and count > len(outputs):
                ctx.find("SG212", f"{node.op_type} has {count} outputs, but its body has {len(outputs)}")
            elif domain == "" and count < len(outputs):
                text = f"{node.op_type} has {count} outputs, but its body has {len(outputs)}; each must have a place"
                ctx.tolerate("SG212", text, "OpenVINO and the reference evaluator")
            return
        if not self.may_look_into(ctx.location):
            return
        for name, position, graph in subgraphs(node):
            location = subgraph_location(self.location, node_label(node, ctx.index), name, position)
            body = self.inner(ctx.index, name, position, location)
            define_graph_values(body, graph)
            body.run(graph.node)

    # Inputs -----------------------------------------------------------------------------------------------------------

    def _given(self, node: NodeProto, index: int) -> list[Knowledge]:
        """Return what is known of each input of a node. Inputs that this graph has not read yet are looked up."""
        given = []
        for name in node.input:
            known = self.known.get(name)
            if known is None:
                if name not in self.types and not self.is_defined(name):
                    self._report_missing(name, f"{self.location}/{node_label(node, index)}")
                known = self.look_up(name)
            given.append(known)
        return given

    def _report_missing(self, name: str, location: str) -> None:
        if name in self._reported_missing:
            return
        self._reported_missing.add(name)
        if self.produces(name):
            self.state.record.is_disordered = True
            text = f"reads {name!r}, which depends on this node: a cycle"
            self.report(diagnostic("SG102", text, location))
        elif any(graph.produces(name) for graph in self.enclosing()):
            self.state.record.is_disordered = True
            text = f"reads {name!r}, which depends on the node around it: a cycle"
            self.report(diagnostic("SG102", text, location))
        else:
            text = f"reads {name!r}, which no input, initializer or earlier node defines"
            self.report(diagnostic("SG105", f"{text}{meant(name, self.visible_names())}", location))

    # Outputs ----------------------------------------------------------------------------------------------------------

    def _known_outputs(
        self, ctx: NodeContext, outputs: Sequence[ValueType], sound: list[Knowledge] | None
    ) -> list[Knowledge]:
        """Return what is known of each named output. sound: what the types alone say; None if a type may
        need a check.
        """
        contents_out, sequences_out, computed = ctx.contents_out, ctx.sequences_out, self.computed
        is_more = bool(contents_out or sequences_out or computed)
        interned, results = self.state.knowledge, []
        if sound is not None and not is_more and len(sound) == len(ctx.outputs) and "" not in ctx.outputs:
            return sound
        for position, name in enumerate(ctx.outputs):
            if not name:
                continue
            if sound is not None and position < len(sound):
                known = sound[position]
            else:
                known = interned.of(self.complete(outputs[position]) if position < len(outputs) else UNKNOWN)
            if is_more and known.type is not None:
                contents, sequence = contents_out.get(position), sequences_out.get(position)
                unread = contents is None and name in computed
                known = interned.of(known.type, contents, sequence, unread=unread)
            results.append(known)
        return results

    def _define_outputs(self, ctx: NodeContext, results: Sequence[Knowledge]) -> None:
        """Define the outputs of a node."""
        names = ctx.outputs
        types, declared = self.types, self.declared
        for name, result in zip([name for name in names if name] if "" in names else names, results, strict=True):
            if name in types or name in declared:
                self._define_output(name, result, ctx.node, ctx.index)
                continue
            self.known[name] = result
            types[name] = result.type or UNKNOWN
            if result.contents is not None:
                self.constants[name] = result.contents
            if result.sequence is not None:
                self.sequences[name] = result.sequence

    def _define_output(self, name: str, result: Knowledge, node: NodeProto, index: int) -> None:
        """Define an output that has a declared type, or a name that is defined already."""
        declared = self.declared.get(name) if self.declared else None
        if name in self.types or (declared is not None and declared != result.type):
            location = f"{self.location}/{node_label(node, index)}"
            inferred = result.type or UNKNOWN
            if declared is not None:
                version = self.facts.version
                of_split = node.op_type in SPLIT_OPERATORS
                inferred = reconcile(self, name, inferred, declared, location, of_split=of_split)
                if version != self.facts.version:
                    self._visits.clear()
            self.define(name, inferred, location)
            result = self.state.knowledge.of(self.types[name], result.contents, result.sequence, unread=result.unread)
        self.known[name] = result
        self.types[name] = result.type or UNKNOWN
        if result.contents is not None:
            self.constants[name] = result.contents
        if result.sequence is not None:
            self.sequences[name] = result.sequence

    # Constants --------------------------------------------------------------------------------------------------------

    def _plain_tensor(self, node: NodeProto) -> tuple[str, TensorProto] | None:
        """Return the output name and the tensor of a Constant node. Return None unless the node is a plain constant
        tensor whose output has a name of its own.
        """
        attribute = node.attribute[0] if len(node.attribute) == 1 else None
        if attribute is None or (attribute.name, attribute.type) != ("value", AttributeProto.TENSOR):
            return None
        operator = operator_of(self.state, self.imports, node)
        if operator.schema is None or operator.domain or operator.finding or attribute.ref_attr_name or node.input:
            return None
        outputs, tensor = node.output[:], attribute.t
        name = outputs[0] if len(outputs) == 1 else ""
        if not name or name in self.types or misfit(tensor) or lacks_data(tensor):
            return None
        if name in self.declared and self.declared[name] != tensor_type(tensor):
            return None
        return name, tensor

    def _define_constant(self, name: str, tensor: TensorProto, written: bytes | None) -> Visit | None:
        """Define the output of a plain Constant node, like an initializer. Return the visit that equal Constants
        repeat. written: the attribute as bytes; None if it is too long to look for equal ones.
        """
        type = self.types[name] = tensor_type(tensor)
        self.constants[name] = tensor
        known = self.look_up(name)
        if written is None:
            return None
        visit = Visit([known], [type], None, self.constants.get(name))
        self._keep(written, visit, settled=True)
        return visit

    # Around the graph -------------------------------------------------------------------------------------------------

    def inner(self, index: int, attribute: str, position: int, location: str) -> Walk:
        """Return the walk over a graph in an attribute of a node. What it requires of symbols stays within it."""
        path = (*self.path, index, attribute, position)
        facts, depth = self.facts.child(), self.depth + 1
        return Walk(self.state, path, location, self.imports, facts, parent=self, bindings=self.bindings, depth=depth)

    def called(self, function: FunctionProto, location: str, bindings: Bindings | None) -> Walk:
        """Return the walk over the body of a function for a call. What it requires of symbols holds here too."""
        path, imports, depth = ("call", location), opset_imports(function.opset_import), self.depth
        body = Walk(self.state, path, location, imports, self.facts, bindings=bindings, memo=self.memo, depth=depth)
        body.branch = self.branch
        return body

    def _readings_here(self) -> Readings:
        """Return the readings of nodes. Graphs with the same imports share them."""
        # A node of a domain that is not imported is a different fault in a function than in the model.
        key = (bool(self.state.record.calling), *sorted(self.imports.items()))
        readings = self.state.readings.get(key)
        if not isinstance(readings, Readings):
            readings = self.state.readings[key] = Readings(self.imports)
        return readings


def _may_be_known(given: Sequence[Knowledge]) -> bool:
    """Return False if one of these inputs has no known elements, as long as no node has been computed."""
    unknown = [known for known in given if known.contents is None and not known.unread and known is not OMITTED]
    return not unknown
