"""Which node of one graph is which node of another.

Evidence is used in this order, the strongest first; each step matches only nodes that no step before it has matched.

1. The same name and operator, with an input or output in common.
2. The same outputs and operator.
3. Neighbours: what produces, and what alone reads, a value that is known to be the same.
4. The same name and operator.
5. The same outputs, then the same name, with another operator: a rewrite.
6. The longest common subsequence of what remains, by operator and by the operators that read the outputs.

Names count where they are unique on both sides. The time is linear in the number of nodes; only the search of step 6
takes more, and it is limited.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Container, Hashable, Iterable, Sequence

from splitgraph.differences.graphs import Graph, Reader
from splitgraph.differences.sequences import common_subsequence

Pairs = list[tuple[int, int]]


def match_nodes(before: Graph, after: Graph, *, by_position: bool) -> Pairs:
    """The pairs of nodes, by index, in the order of the first graph; each node is in one pair at most.

    by_position: inputs and outputs of the graphs correspond by their positions, as in bodies and functions; otherwise
    by their names.
    """
    if before.sort_key <= after.sort_key:
        return sorted(_Matching(before, after, by_position).run())
    return sorted((index, other) for other, index in _Matching(after, before, by_position).run())


class _Matching:
    def __init__(self, before: Graph, after: Graph, by_position: bool) -> None:
        self._before = before
        self._after = after
        self._found: dict[int, int] = {}
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
        rest = [index for index in range(len(before.nodes)) if index not in self._found]
        others = [index for index in range(len(after.nodes)) if index not in self._taken]
        if rest and others:
            self._match_sequence(rest, others)
            self._match_neighbours()
        return self._found.items()

    def _pair(self, index: int, other: int) -> None:
        if index not in self._found and other not in self._taken:
            self._found[index] = other
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
        names = _unique(self._before.names, self._found)
        others = _unique(self._after.names, self._taken)
        for name, index in names.items():
            other = others.get(name)
            if other is not None and fits(index, other):
                self._pair(index, other)

    def _match_outputs(self, fits: Callable[[int, int], bool]) -> None:
        """Match nodes that alone produce values of each other's names."""
        for index, names in enumerate(self._before.outputs):
            if index in self._found:
                continue
            found = {self._after.producers[name] for name in names if name in self._after.producers}
            if len(found) != 1:
                continue
            other = found.pop()
            back = {self._before.producers.get(name, index) for name in self._after.outputs[other] if name}
            if back == {index} and other not in self._taken and fits(index, other):
                self._pair(index, other)

    def _known_values(self) -> Iterable[tuple[str, str]]:
        """The values that are the same in both graphs, whatever the nodes are."""
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

    def _match_if_same_operator(self, index: int, other: int) -> None:
        if self._is_same_operator(index, other):
            self._pair(index, other)

    def _follow(self, value: str, name: str) -> None:
        """Match the producers of a value that is the same, and its readers."""
        if (value, name) in self._seen or not value or not name:
            return
        self._seen.add((value, name))
        producer, other = self._before.producers.get(value), self._after.producers.get(name)
        if producer is not None and other is not None and self._before.places[value] == self._after.places[name]:
            self._match_if_same_operator(producer, other)
        readers = _alone(self._before, self._before.readers.get(value, ()), self._found)
        others = _alone(self._after, self._after.readers.get(name, ()), self._taken)
        for key, reader in readers.items():
            if key in others:
                self._pair(reader, others[key])

    def _match_sequence(self, rest: Sequence[int], others: Sequence[int]) -> None:
        keys = [_key(self._before, index) for index in rest]
        other_keys = [_key(self._after, index) for index in others]
        for place, other_place in common_subsequence(keys, other_keys):
            self._pair(rest[place], others[other_place])


def _unique(names: Sequence[str], matched: Container[int]) -> dict[str, int]:
    """The nodes by their names, where these are unique among those that are not matched."""
    left = [(index, name) for index, name in enumerate(names) if name and index not in matched]
    times = Counter(name for _, name in left)
    return {name: index for index, name in left if times[name] == 1}


def _alone(graph: Graph, readers: Iterable[Reader], matched: Container[int]) -> dict[Hashable, int]:
    """The readers that are not matched, each by its operator and its position if no other reader has the same ones."""
    by_key = defaultdict(list)
    for index, position in readers:
        if index not in matched:
            by_key[graph.operators[index], position].append(index)
    return {key: found[0] for key, found in by_key.items() if len(found) == 1}


def _key(graph: Graph, index: int) -> Hashable:
    """What a node is to the search for a common subsequence. Without inputs there are only its attributes."""
    readers = [graph.readers.get(name, ()) for name in graph.outputs[index]]
    read_by = tuple(tuple(sorted({graph.operators[reader] for reader, _ in each})) for each in readers)
    if graph.inputs[index]:
        return graph.operators[index], len(graph.inputs[index]), read_by
    written = sorted(attribute.SerializeToString() for attribute in graph.nodes[index].attribute)
    return graph.operators[index], tuple(written), read_by
