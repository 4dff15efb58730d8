"""The names of a model: names in use, new names, and what a name stands for.

A new name collides with no name of any scope. A name stands for the value that a graph defines: two branches may use
one name for different values. The value is computed by a node, or is a constant tensor.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from copy import copy
from itertools import chain

from splitgraph.dim import marks_unknown
from splitgraph.model.onnx_proto import ModelProto, NodeProto, TensorProto, ValueInfoProto
from splitgraph.model.scopes import GraphPath, Scope, scopes
from splitgraph.model.values import tensor_types


def used_names(
    model: ModelProto, every: Iterable[Scope] | None = None, *, defined: GraphPath | None = None
) -> Iterator[str]:
    """Yield every value, node, initializer and function name of the model, in every scope; a name may come again.

    every: the scopes of the model, where the caller has them. defined: the one, as a rule the largest, of which the
    caller has the names that inputs, initializers and nodes define; these are left out, and so are its nodes' own.
    """
    for scope in scopes(model) if every is None else every:
        yield from (value.name for value in scope.proto.value_info)
        if not scope.is_function:
            yield from (value.name for value in scope.proto.output)
        if scope.path == defined:
            continue
        for node in scope.nodes:
            yield node.name
            yield from node.input[:]
            yield from node.output[:]
        if scope.is_function:
            yield from scope.proto.input
            yield from scope.proto.output
            continue
        yield from (value.name for value in scope.proto.input)
        yield from (tensor.name for tensor in scope.proto.initializer)
        yield from (tensor.values.name for tensor in scope.proto.sparse_initializer)
    yield from (function.name for function in model.functions)


def dimension_names(model: ModelProto) -> set[str]:
    """Return every dimension that the model names, as its dim_params write it, in every scope."""
    return declared_dimensions(scopes(model))


def declared_dimensions(graphs: Iterable[Scope]) -> set[str]:
    """Return every dimension that these graphs name; marks of unknown dimensions are no names."""
    names: set[str] = set()
    for scope in graphs:
        for value in declared_values(scope):
            for tensor in tensor_types(value.type):
                names.update(dim.dim_param for dim in tensor.shape.dim)
    return {name for name in names if not marks_unknown(name)}


def declared_values(scope: Scope) -> Iterable[ValueInfoProto]:
    """Return the values of a graph that have a declared type: inputs, outputs and inner ones."""
    if scope.is_function:
        values: Iterable[ValueInfoProto] = scope.proto.value_info
        return values
    return (*scope.proto.input, *scope.proto.output, *scope.proto.value_info)


class FreshNames:
    """Names that are new in every scope of a model; each is given out once.

    used: what the model uses, read when the first name is asked for. defined: more of that. `given` holds the new ones.
    """

    def __init__(self, used: Iterable[str], defined: Container[str] = ()) -> None:
        self._unread: Iterable[str] | None = used
        self._used: set[str] = set()
        self._defined = defined
        self.given: set[str] = set()
        self._next: dict[str, int] = {}

    def new(self, hint: str) -> str:
        """Return a new name that begins with the hint."""
        if self._unread is not None:
            self._used.update(self._unread)
            self._unread = None
        name, number = hint, self._next.get(hint, 0)
        while name in self.given or name in self._used or name in self._defined:
            number += 1
            name = f"{hint}_{number}"
        if number:
            self._next[hint] = number
        self.given.add(name)
        return name


def named_outputs(node: NodeProto, outputs: Iterable[str], names: FreshNames) -> list[str]:
    """Return the outputs of a split, with a new name for each omitted one."""
    hint = f"{node.name or node.op_type}_part"
    return [name or names.new(f"{hint}{place}") for place, name in enumerate(outputs)]


# Identifies a value of a root: its name, and the path of the graph that defines it if several graphs define the name.
ValueKey = str | tuple[GraphPath, str]


class Definitions:
    """The names that each graph of a root (main graph or function, with its subgraphs) defines."""

    def __init__(self, root: Sequence[Scope]) -> None:
        self._outermost = root[0].path if root else ()
        # Most models have one graph, so nothing is ambiguous.
        self._defined = {scope.path: _defined(scope) for scope in root} if len(root) > 1 else {}
        times = Counter(chain.from_iterable(self._defined.values()))
        self._ambiguous = frozenset(name for name, count in times.items() if count > 1)

    def home(self, path: GraphPath, name: str) -> GraphPath:
        """Return the path of the graph that defines what a graph reads under a name: its own, or one around it."""
        while path != self._outermost and name not in self._defined[path]:
            path = path[:-3]
        return path

    def key(self, path: GraphPath, name: str) -> ValueKey:
        """Return a key that identifies the value that a graph reads under a name among all values of the root."""
        return (self.home(path, name), name) if name in self._ambiguous else name

    def keys(self, path: GraphPath, names: Sequence[str]) -> Sequence[ValueKey]:
        """Return the keys of several names."""
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


class Producers:
    """The node or constant tensor that defines each value of a root (main graph or function, with its subgraphs)."""

    def __init__(self, root: Sequence[Scope]) -> None:
        self._definitions = Definitions(root)
        self._path = root[0].path
        self._nodes: dict[ValueKey, NodeProto] = {}
        self._initializers: dict[ValueKey, TensorProto] = {}
        for scope in root:
            for node in scope.nodes:
                self._nodes.update(dict.fromkeys(self._definitions.keys(scope.path, node.output[:]), node))
            if not scope.is_function:
                inputs = {value.name for value in scope.proto.input}
                for tensor in scope.proto.initializer:
                    if tensor.name not in inputs:
                        self._initializers[self._definitions.key(scope.path, tensor.name)] = tensor

    def seen_from(self, scope: Scope) -> Producers:
        """Return the same producers, looked up by the names of this graph."""
        seen = copy(self)
        seen._path = scope.path
        return seen

    def at_home(self, name: str) -> Producers:
        """Return the same producers, looked up by the names of the graph that defines a value."""
        home = self._definitions.home(self._path, name)
        if home == self._path:
            return self
        seen = copy(self)
        seen._path = home
        return seen

    def key(self, name: str) -> tuple[GraphPath, str]:
        """Return what identifies a value among all of the root, from a graph that reads it."""
        return self._definitions.home(self._path, name), name

    def node(self, name: str) -> NodeProto | None:
        """Return the node that computes a value, None where no node does."""
        return self._nodes.get(self._definitions.key(self._path, name))

    def constant(self, name: str) -> TensorProto | None:
        """Return the tensor that a value is in every run, None for inputs and computed values."""
        node = self.node(name)
        if node is None:
            return self._initializers.get(self._definitions.key(self._path, name))
        values = [attribute.t for attribute in node.attribute if attribute.name == "value"]
        return values[0] if node.op_type == "Constant" and values else None
