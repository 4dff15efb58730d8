"""Which node and which value of one graph is which of another.

Evidence for nodes is used in this order, the strongest first; each step matches only nodes that no step before it has
matched.

1. The same name and operator, with an input or output in common.
2. The same outputs and operator.
3. Neighbours: what produces, and what alone reads, a value that is known to be the same.
4. The same name and operator.
5. The same outputs, then the same name, with another operator: a rewrite.
6. The longest common subsequence of what remains, by operator and by the operators that read the outputs.

Names count where they are unique on both sides. The time is linear in the number of nodes; only the search of step 6
takes more, and it is limited. Values follow from the matched nodes (`ValueNames`): two models may use other names for
the same value.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from functools import cached_property

from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.scopes import Scope, plain_domain

# Graphs --------------------------------------------------------------------------------------------------------------


# The edits that are looked for; the search takes the square of this number of steps.
_MOST_EDITS = 500

Operator = tuple[str, str, str]
# What reads a value: the index of the node, and the position among its inputs.
Reader = tuple[int, int]
# Pairs of indices.
Pairs = list[tuple[int, int]]


class ComparedGraph:
    """The nodes of a graph, each list by the index of the node. names, operators, inputs, outputs: of the nodes.
    formal_inputs, formal_outputs, constants: names of the graph's inputs, outputs and initializers.
    """

    def __init__(self, scope: Scope, nodes: Sequence[NodeProto] | None = None) -> None:
        """nodes: those to compare, all of the scope if none are given."""
        self.scope = scope
        self.nodes: Sequence[NodeProto] = scope.nodes[:] if nodes is None else nodes
        self.names = [node.name for node in self.nodes]
        self.operators: list[Operator] = [_operator(node) for node in self.nodes]
        self.inputs = [without_omitted_end(node.input[:]) for node in self.nodes]
        self.outputs: list[list[str]] = [node.output[:] for node in self.nodes]
        proto = scope.proto
        if scope.is_function:
            self.formal_inputs, self.formal_outputs = list(proto.input), list(proto.output)
            self.constants: list[str] = []
        else:
            self.formal_inputs = [value.name for value in proto.input]
            self.formal_outputs = [value.name for value in proto.output]
            self.constants = [tensor.name for tensor in proto.initializer]
            self.constants += [tensor.values.name for tensor in proto.sparse_initializer]

    @cached_property
    def producers(self) -> dict[str, int]:
        """The index of the node that produces each value."""
        return {name: index for index, names in enumerate(self.outputs) for name in names if name}

    @cached_property
    def places(self) -> dict[str, int]:
        """The position of each value among the outputs of its node."""
        return {name: place for names in self.outputs for place, name in enumerate(names) if name}

    @cached_property
    def readers(self) -> dict[str, list[Reader]]:
        """The nodes that read each value, in their order."""
        readers = defaultdict(list)
        for index, names in enumerate(self.inputs):
            for position, name in enumerate(names):
                if name:
                    readers[name].append((index, position))
        return dict(readers)

    @cached_property
    def defined(self) -> dict[str, None]:
        """The names that the graph defines, in their order: inputs, initializers, outputs of nodes."""
        return dict.fromkeys([*self.formal_inputs, *self.constants, *self.producers])

    @property
    def sort_key(self) -> tuple[object, ...]:
        """All that matching reads. Of two graphs, the one with the smaller key is matched first, so that the result
        does not depend on which one is the first of a comparison.
        """
        return self.operators, self.names, self.inputs, self.outputs, self.formal_inputs, self.formal_outputs


def _operator(node: NodeProto) -> Operator:
    return plain_domain(node.domain), node.op_type, getattr(node, "overload", "")


def without_omitted_end(names: list[str]) -> list[str]:
    """Return the inputs without omitted ones at the end, which mean the same as no input."""
    while names and not names[-1]:
        names.pop()
    return names


# Values --------------------------------------------------------------------------------------------------------------


class ValueNames:
    """The values of two graphs that are the same.

    pairs: the matched nodes. by_position: see `match_nodes`. outer: the values of the graphs around these two.
    """

    def __init__(
        self,
        before: ComparedGraph,
        after: ComparedGraph,
        pairs: Sequence[tuple[int, int]],
        *,
        by_position: bool,
        outer: ValueNames | None = None,
    ) -> None:
        self._defined = before.defined
        self._defined_after = after.defined
        self._outer = outer
        self.after: dict[str, str] = {}
        self._taken: set[str] = set()
        if by_position:
            self._add(before.formal_inputs, after.formal_inputs)
        else:
            # What a caller names is the same value, whatever produces it.
            named = [{*graph.formal_inputs, *graph.formal_outputs} & graph.defined.keys() for graph in (before, after)]
            shared = named[0] & named[1]
            self._add(sorted(shared), sorted(shared))
        for index, other in pairs:
            names, others = before.outputs[index], after.outputs[other]
            if before.operators[index] == after.operators[other] and len(names) == len(others):
                self._add(names, others)
        # A name that both graphs define means the same value, whatever the nodes are, unless it is matched with another
        # name.
        for name in before.defined:
            if name in after.defined:
                self._add([name], [name])

    def _add(self, names: Sequence[str], others: Sequence[str]) -> None:
        for name, other in zip(names, others, strict=False):
            if name and other and name not in self.after and other not in self._taken:
                self.after[name] = other
                self._taken.add(other)

    def is_same(self, name: str, other: str) -> bool:
        """Return True if two names, each read in its graph, are of the same value; "" is an omitted one."""
        if not name or not other:
            return name == other
        if name in self._defined or other in self._defined_after:
            return self.after.get(name) == other
        return name == other if self._outer is None else self._outer.is_same(name, other)


# Nodes ---------------------------------------------------------------------------------------------------------------


def match_nodes(before: ComparedGraph, after: ComparedGraph, *, by_position: bool) -> Pairs:
    """Return the pairs of nodes, by index, in the order of the first graph; each node is in one pair at most.

    by_position: inputs and outputs of the graphs correspond by their positions, as in bodies and functions; otherwise
    by their names.
    """
    if before.sort_key <= after.sort_key:
        return sorted(_Matching(before, after, by_position).run())
    return sorted((index, other) for other, index in _Matching(after, before, by_position).run())


class _Matching:
    def __init__(self, before: ComparedGraph, after: ComparedGraph, by_position: bool) -> None:
        self._before = before
        self._after = after
        self._matched: dict[int, int] = {}
        self._taken: set[int] = set()
        self._waiting: list[tuple[int, int]] = []
        self._seen: set[tuple[str, str]] = set()
        self._by_position = by_position

    def run(self) -> Iterable[tuple[int, int]]:
        before, after = self._before, self._after
        self._match_names(lambda i, j: self._is_same_operator(i, j) and self._shares_value(i, j))
        self._match_outputs(self._is_same_operator)
        for name, other in self._known_values():
            self._follow(name, other)
        self._match_neighbours()
        self._match_names(self._is_same_operator)
        self._match_neighbours()
        self._match_outputs(lambda i, j: True)
        self._match_names(lambda i, j: True)
        self._match_neighbours()
        rest = [index for index in range(len(before.nodes)) if index not in self._matched]
        others = [index for index in range(len(after.nodes)) if index not in self._taken]
        if rest and others:
            keys, other_keys = [_key(before, index) for index in rest], [_key(after, index) for index in others]
            for place, other_place in common_subsequence(keys, other_keys):
                self._pair(rest[place], others[other_place])
            self._match_neighbours()
        return self._matched.items()

    def _pair(self, index: int, other: int) -> None:
        if index not in self._matched and other not in self._taken:
            self._matched[index] = other
            self._taken.add(other)
            self._waiting.append((index, other))

    def _is_same_operator(self, index: int, other: int) -> bool:
        return self._before.operators[index] == self._after.operators[other]

    def _shares_value(self, index: int, other: int) -> bool:
        one, two = self._before, self._after
        if not one.inputs[index] and not two.inputs[other]:
            return True
        values = {(position, name) for position, name in enumerate(one.inputs[index])}
        return not (
            values.isdisjoint(enumerate(two.inputs[other])) and set(one.outputs[index]).isdisjoint(two.outputs[other])
        )

    def _match_names(self, fits: Callable[[int, int], bool]) -> None:
        """Match nodes of the same name, which is unique among the nodes that are left."""
        names = _unique(self._before.names, self._matched)
        others = _unique(self._after.names, self._taken)
        for name, index in names.items():
            other = others.get(name)
            if other is not None and fits(index, other):
                self._pair(index, other)

    def _match_outputs(self, fits: Callable[[int, int], bool]) -> None:
        """Match nodes that alone produce values of each other's names."""
        for index, names in enumerate(self._before.outputs):
            if index in self._matched:
                continue
            producers = {self._after.producers[name] for name in names if name in self._after.producers}
            if len(producers) != 1:
                continue
            other = producers.pop()
            back = {self._before.producers.get(name, index) for name in self._after.outputs[other] if name}
            if back == {index} and other not in self._taken and fits(index, other):
                self._pair(index, other)

    def _known_values(self) -> Iterable[tuple[str, str]]:
        """Return the values that are the same in both graphs, whatever the nodes are."""
        one, two = self._before, self._after
        constants = set(two.constants)
        yield from ((name, name) for name in one.constants if name in constants)
        if self._by_position:
            yield from zip(one.formal_inputs, two.formal_inputs, strict=False)
            yield from zip(one.formal_outputs, two.formal_outputs, strict=False)
            return
        known = {*two.formal_inputs, *two.formal_outputs}
        yield from ((name, name) for name in (*one.formal_inputs, *one.formal_outputs) if name in known)

    def _match_neighbours(self) -> None:
        """Match along the edges, from every pair that was found since the last time."""
        while self._waiting:
            index, other = self._waiting.pop()
            if not self._is_same_operator(index, other):
                continue
            for values, others in (
                (self._before.inputs[index], self._after.inputs[other]),
                (self._before.outputs[index], self._after.outputs[other]),
            ):
                if len(values) == len(others):
                    for value, name in zip(values, others, strict=True):
                        self._follow(value, name)

    def _follow(self, value: str, name: str) -> None:
        """Match the producers of a value that is the same, and its readers."""
        if (value, name) in self._seen or not value or not name:
            return
        self._seen.add((value, name))
        producer, other = self._before.producers.get(value), self._after.producers.get(name)
        is_same_place = self._before.places.get(value) == self._after.places.get(name)
        if producer is not None and other is not None and is_same_place and self._is_same_operator(producer, other):
            self._pair(producer, other)
        readers = _alone(self._before, self._before.readers.get(value, ()), self._matched)
        others = _alone(self._after, self._after.readers.get(name, ()), self._taken)
        for key, reader in readers.items():
            if key in others:
                self._pair(reader, others[key])


def _unique(names: Sequence[str], matched: Container[int]) -> dict[str, int]:
    """Return the nodes that are not matched by their names, if a name is unique among these nodes."""
    left = [(index, name) for index, name in enumerate(names) if name and index not in matched]
    times = Counter(name for _, name in left)
    return {name: index for index, name in left if times[name] == 1}


def _alone(graph: ComparedGraph, readers: Iterable[Reader], matched: Container[int]) -> dict[Hashable, int]:
    """Return the readers that are not matched, each by its operator and its position if no other reader has the same
    ones.
    """
    by_key = defaultdict(list)
    for index, position in readers:
        if index not in matched:
            by_key[graph.operators[index], position].append(index)
    return {key: indices[0] for key, indices in by_key.items() if len(indices) == 1}


def _key(graph: ComparedGraph, index: int) -> Hashable:
    """Return what identifies a node in the search for a common subsequence. A node without inputs has only its
    attributes.
    """
    readers = [graph.readers.get(name, ()) for name in graph.outputs[index]]
    read_by = tuple(tuple(sorted({graph.operators[index] for index, _ in of_output})) for of_output in readers)
    if graph.inputs[index]:
        return graph.operators[index], len(graph.inputs[index]), read_by
    written = sorted(attribute.SerializeToString() for attribute in graph.nodes[index].attribute)
    return graph.operators[index], tuple(written), read_by


# Common subsequences -------------------------------------------------------------------------------------------------


def common_subsequence(before: Sequence[Hashable], after: Sequence[Hashable]) -> Pairs:
    """Return the positions of a common subsequence: the longest one, unless the lists differ by very many edits. Beyond
    the limit, equal items are paired in their order, the first with the first.
    """
    shared = set(before) & set(after)
    one = [index for index, item in enumerate(before) if item in shared]
    other = [index for index, item in enumerate(after) if item in shared]
    items, others = [before[index] for index in one], [after[index] for index in other]
    start, end = 0, min(len(items), len(others))
    while start < end and items[start] == others[start]:
        start += 1
    tail = 0
    while tail < end - start and items[-1 - tail] == others[-1 - tail]:
        tail += 1
    middle, other_middle = items[start : len(items) - tail], others[start : len(others) - tail]
    inner = _shortest_edits(middle, other_middle)
    if inner is None:
        inner = _paired_in_order(middle, other_middle)
    pairs = [(index, index) for index in range(start)]
    pairs += [(start + index, start + place) for index, place in inner]
    pairs += [(len(items) - back, len(others) - back) for back in range(tail, 0, -1)]
    return [(one[index], other[place]) for index, place in pairs]


def _shortest_edits(before: Sequence[Hashable], after: Sequence[Hashable]) -> Pairs | None:
    """Return the pairs that the fewest edits keep; None where there are too many edits."""
    furthest, trace = {1: 0}, list[dict[int, int]]()
    for edits in range(min(len(before) + len(after), _MOST_EDITS) + 1):
        trace.append(dict(furthest))
        for diagonal in range(-edits, edits + 1, 2):
            down = diagonal == -edits or (
                diagonal != edits and furthest.get(diagonal - 1, -1) < furthest.get(diagonal + 1, -1)
            )
            x = furthest[diagonal + 1] if down else furthest[diagonal - 1] + 1
            y = x - diagonal
            while x < len(before) and y < len(after) and before[x] == after[y]:
                x, y = x + 1, y + 1
            furthest[diagonal] = x
            if x >= len(before) and y >= len(after):
                return _walked_back(trace, len(before), len(after))
    return None


def _walked_back(trace: Sequence[dict[int, int]], x: int, y: int) -> Pairs:
    pairs: Pairs = []
    for edits in range(len(trace) - 1, -1, -1):
        furthest, diagonal = trace[edits], x - y
        down = diagonal == -edits or (
            diagonal != edits and furthest.get(diagonal - 1, -1) < furthest.get(diagonal + 1, -1)
        )
        earlier = diagonal + 1 if down else diagonal - 1
        before_x = furthest[earlier] if edits else 0
        before_y = before_x - earlier if edits else 0
        while x > before_x and y > before_y and (x, y) != (0, 0):
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = before_x, before_y
    pairs.reverse()
    return pairs


def _paired_in_order(before: Sequence[Hashable], after: Sequence[Hashable]) -> Pairs:
    places = defaultdict(list)
    for place, item in enumerate(after):
        places[item].append(place)
    taken = {item: iter(positions) for item, positions in places.items()}
    pairs = [(index, next(taken.get(item, iter(())), None)) for index, item in enumerate(before)]
    return [(index, place) for index, place in pairs if place is not None]
