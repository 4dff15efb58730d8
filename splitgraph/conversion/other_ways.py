"""Other ways to write a node at its own opset: with other operators, other attributes, or another element type."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import zip_longest
from typing import Any

from splitgraph.conversion.builders import Emission
from splitgraph.conversion.cache import KEPT, Key, NameLog
from splitgraph.conversion.climb import Climb
from splitgraph.conversion.known_values import KnownValues, reads_left_out
from splitgraph.conversion.ladder import Ladder
from splitgraph.conversion.node import Node, changed_attributes
from splitgraph.conversion.notation.function_bodies import expand
from splitgraph.conversion.notation.node_at_boundary import NodeAtBoundary
from splitgraph.conversion.operators.registry import Step, adapter_of
from splitgraph.conversion.operators.standard import has_standard_form, standard_form
from splitgraph.conversion.plan import Replacement
from splitgraph.conversion.wider_types import widen
from splitgraph.model.attributes import attribute_value
from splitgraph.model.deferred import np
from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.schemas import OperatorVersion
from splitgraph.model.schemas.history import meant_opset, meant_version, versions_between
from splitgraph.model.scopes import plain_domain
from splitgraph.splits import SPLIT_OPERATORS

# Takes one of the ways, or none of them. The ways are made as they are asked for; the values tell the types of all that
# they read and give.
Choose = Callable[[Iterator[Replacement], KnownValues], "Replacement | None"]


@dataclass(slots=True)
class OtherWays:
    """The other ways to write a node of ai.onnx at the opset to which a ladder goes. The nodes mean the same there. A
    node of another domain has one way, its standard form.

    A node is taken down below a version of its operator, as conversion to that opset does, and the nodes that it
    becomes are taken up again. So every adapter and every function body is a way. Ways that give the node back as it
    was, and ways that are blocked, are left out.

    types: the element types that the node may have, by their NumPy names. Where they are given, the first way computes
    the node in one of them, if that is exact. asked_for_readers: a way depends on who reads an output.
    """

    ladder: Ladder
    node: NodeProto
    location: str
    emission: Emission
    types: Collection[str] = ()
    asked_for_readers: bool = field(default=False, init=False)

    def __iter__(self) -> Iterator[Replacement]:
        """Yield each way once. The first computes the node in another element type. Then come those that the adapters
        below each version make, the newest version first, and the function body; an operator without adapters has its
        function body first.
        """
        node = self.node
        if has_standard_form(node):
            yield from self._standard()
            return
        start = meant_opset(node.op_type, self.ladder.to_opset)
        version = None if node.op_type in SPLIT_OPERATORS else meant_version(node.op_type, start)
        if version is None or reads_left_out(node, self.ladder.cache.left_out):
            return
        versions = versions_between(node.op_type, 1, start)[::-1]
        has_adapters = any(adapter_of(node.op_type, older.since_version, going_up=False) for older in versions)
        by_adapters, by_body = (self._below, False), (self._body, True)
        order = (by_adapters, by_body) if has_adapters else (by_body, by_adapters)
        # The node as it is counts as seen: a way that is like it is none.
        seen = [Replacement([Node.of(node)])]
        for make, is_body in ((self._in_types, False), *order):
            # Where an adapter does without the operator, it was written because the function body is less exact.
            if is_body and any(_is_without(node.op_type, way) for way in seen):
                return
            for way in make(versions, start):
                if not any(self._are_alike(way, other) for other in seen):
                    seen.append(way)
                    yield way

    def _standard(self) -> Iterator[Replacement]:
        """Yield the standard form of a node of another domain."""
        form = standard_form(plain_domain(self.node.domain), self.node.op_type)
        assert form is not None
        climb = self._climb(self.ladder.to_opset, self.ladder.to_opset)
        nodes = climb.write_standard(Node.of(self.node), form)
        self.asked_for_readers |= climb.asked_for_readers
        if not climb.blockers:
            yield from self._finished(climb, nodes, "written in operators of ai.onnx")

    def _in_types(self, versions: Sequence[OperatorVersion], at: int) -> Iterator[Replacement]:
        """Yield the node in another element type, between casts."""
        if self.types:
            step = partial(widen, fits=versions[0], among=self.types)
            yield from self._at_once(step, versions[0], at, "computed in another element type")

    def _body(self, versions: Sequence[OperatorVersion], at: int) -> Iterator[Replacement]:
        """Yield the function body."""
        yield from self._at_once(expand, versions[0], at, "written as the function body of its operator")

    def _at_once(self, step: Step, version: OperatorVersion, at: int, why: str) -> Iterator[Replacement]:
        """Yield what a step makes of the node without a boundary."""
        climb = self._climb(self.ladder.from_opset, self.ladder.to_opset)
        attempt = NodeAtBoundary.at(Node.of(self.node), climb, at, False, version, version)
        attempt.dialect = at
        nodes, _ = climb.go(step, attempt, why)
        self.asked_for_readers |= climb.asked_for_readers
        if nodes is not None:
            yield from self._finished(climb, nodes, why)

    def _below(self, versions: Sequence[OperatorVersion], at: int) -> Iterator[Replacement]:
        """Yield what becomes of the node below each version of its operator."""
        for version in versions:
            opset = version.since_version - 1
            if opset < 1:
                return
            down = self._climb(at, opset)
            nodes = down.take(Node.of(self.node), at, is_own=True)
            self.asked_for_readers |= down.asked_for_readers
            if down.blockers:
                # What is blocked at an opset is blocked below it, too.
                return
            if not down.adapted and not changed_attributes(self.node, nodes[0].attributes):
                continue
            up = self._climb(opset, self.ladder.to_opset)
            up.emission.initializers = down.emission.initializers
            up.context.assumptions = down.context.assumptions
            nodes = up.carry(nodes, {"": opset}, self.node.output)
            self.asked_for_readers |= up.asked_for_readers
            if not up.blockers:
                yield from self._finished(up, nodes, f"written as below opset {version.since_version}")

    def _climb(self, from_opset: int, to_opset: int) -> Climb:
        ladder = replace(self.ladder, from_opset=from_opset, to_opset=to_opset, assumptions={})
        return Climb(ladder, self.location, self.emission.afresh(to_opset))

    def _finished(self, climb: Climb, nodes: Sequence[Node], why: str) -> Iterator[Replacement]:
        if any(node.wrap is not None for node in nodes):
            # What edits the subgraphs of the model at the end is written for the opset below.
            return
        self.ladder.assumptions.update(climb.context.assumptions)
        yield climb.replacement(nodes, self.node.output, why)

    # Ways that are no others ---------------------------------------------------------------------------------------

    def _are_alike(self, one: Replacement, other: Replacement) -> bool:
        """Return True for ways that differ only in names, in equal constants, and in defaults that are written out."""
        added = {tensor.name for way in (one, other) for tensor in way.constants}
        left, right = self._apart(one, added), self._apart(other, added)
        if len(left) != len(right):
            return False
        twins = dict[str, str]()
        for node, twin in zip(left, right, strict=True):
            inputs, outputs = (list(zip_longest(*names, fillvalue="")) for names in _slots(node, twin))
            if node.op_type != twin.op_type or self._attributes(node) != self._attributes(twin):
                return False
            if not all(twins.get(name, name) == known or self._are_equal(name, known, added) for name, known in inputs):
                return False
            twins.update(outputs)
        return True

    def _apart(self, way: Replacement, constants: set[str]) -> list[Node]:
        """Return the nodes without those that give a written constant, whose names this adds to the constants."""
        nodes = []
        for node in way.nodes or ():
            assert isinstance(node, Node)
            if node.op_type == "Constant" and node.outputs != self.node.output[:]:
                constants.update(node.outputs)
            else:
                nodes.append(node)
        return nodes

    def _attributes(self, node: Node) -> Mapping[str, Any]:
        """Return the values of a node's attributes, given or by default; references to attributes as they are."""
        version = meant_version(node.op_type, self.ladder.to_opset)
        formals = {} if version is None else version.attributes
        values = {name: formal.default_value for name, formal in formals.items()}
        given = node.attributes.items()
        return values | {name: value if value.ref_attr_name else attribute_value(value) for name, value in given}

    def _are_equal(self, name: str, known: str, added: Collection[str]) -> bool:
        """Return True for two constants of equal elements, of which at least one was written."""
        if not name or not known or (name not in added and known not in added):
            return False
        one, other = map(self.ladder.values.elements, (name, known))
        if one is None or other is None or one.dtype != other.dtype:
            return False
        return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))


def _is_without(op_type: str, way: Replacement) -> bool:
    return all(node.op_type != op_type for node in way.nodes or ())


def _slots(node: Node, twin: Node) -> tuple[tuple[Sequence[str], Sequence[str]], tuple[Sequence[str], Sequence[str]]]:
    return (node.inputs, twin.inputs), (node.outputs, twin.outputs)


def choose_way(ways: OtherWays, key: Key | None, choose: Choose) -> Replacement | None:
    """Return the way that is chosen, None where none is. The cache remembers it for nodes of the same key; a node of
    which no way is chosen is kept.
    """
    ladder, emission = ways.ladder, ways.emission
    emission.names = log = NameLog(emission.names)
    ladder.values.asked.clear()
    chosen = choose(iter(ways), ladder.values)
    if key is not None and not ways.asked_for_readers:
        is_sure = not ladder.assumptions
        ladder.cache.keep(key, ways.node, KEPT if chosen is None else chosen, log, emission.prefix, is_sure=is_sure)
    return chosen
