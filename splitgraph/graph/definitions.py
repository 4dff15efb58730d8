"""The graph that defines a name: two branches may use one name for different values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import chain

from splitgraph.graph.scopes import GraphPath, Scope

# A value of a root: its name, with the path of the graph that defines it where several do.
ValueKey = str | tuple[GraphPath, str]


class Definitions:
    """The names that each graph of a root (main graph or function, with its subgraphs) defines."""

    def __init__(self, root: Sequence[Scope]) -> None:
        self._outermost = root[0].path if root else ()
        # With one graph there is nothing to tell apart, which holds for most models.
        self._defined = {scope.path: _defined(scope) for scope in root} if len(root) > 1 else {}
        times = Counter(chain.from_iterable(self._defined.values()))
        self._ambiguous = frozenset(name for name, count in times.items() if count > 1)

    def home(self, path: GraphPath, name: str) -> GraphPath:
        """The path of the graph that defines what a graph reads under a name: its own, or one around it."""
        while path != self._outermost and name not in self._defined[path]:
            path = path[:-3]
        return path

    def key(self, path: GraphPath, name: str) -> ValueKey:
        """A key that identifies the value that a graph reads under a name among all values of the root."""
        return (self.home(path, name), name) if name in self._ambiguous else name

    def keys(self, path: GraphPath, names: Sequence[str]) -> Sequence[ValueKey]:
        """The keys of several names."""
        if self._ambiguous.isdisjoint(names):
            return names
        return [self.key(path, name) for name in names]


def _defined(scope: Scope) -> set[str]:
    proto = scope.proto
    names = {name for node in scope.nodes for name in node.output[:]}
    if scope.is_function:
        return names.union(proto.input)
    names.update(value.name for value in proto.input)
    names.update(tensor.name for tensor in proto.initializer)
    names.update(tensor.values.name for tensor in proto.sparse_initializer)
    return names
