"""The names that a model uses, and new names that collide with none of them in any scope."""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator

from splitgraph.dim import marks_unknown
from splitgraph.graph.scopes import GraphPath, Scope, scopes
from splitgraph.graph.types import tensor_types
from splitgraph.onnx_proto import ModelProto, NodeProto, ValueInfoProto


def used_names(
    model: ModelProto, every: Iterable[Scope] | None = None, *, defined: GraphPath | None = None
) -> Iterator[str]:
    """Every value, node, initializer and function name of the model, in every scope; a name may come again.

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
    """Every dimension that the model names, as its dim_params write it, in every scope."""
    return declared_dimensions(scopes(model))


def declared_dimensions(graphs: Iterable[Scope]) -> set[str]:
    """Every dimension that these graphs name; marks of unknown dimensions are no names."""
    names: set[str] = set()
    for scope in graphs:
        for value in declared_values(scope):
            for tensor in tensor_types(value.type):
                names.update(dim.dim_param for dim in tensor.shape.dim)
    return {name for name in names if not marks_unknown(name)}


def declared_values(scope: Scope) -> Iterable[ValueInfoProto]:
    """The values of a graph that have a declared type: inputs, outputs and inner ones."""
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
        """A new name that begins with the hint."""
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
    """The outputs of a split, with a new name for each omitted one."""
    hint = f"{node.name or node.op_type}_part"
    return [name or names.new(f"{hint}{place}") for place, name in enumerate(outputs)]
