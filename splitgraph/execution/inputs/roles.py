"""What the inputs of a model are for: which of them are lengths, axes, indices or sizes, and which numbers make sense
there.

An input is followed forward from the graph's inputs, through operators that pass its elements on, into subgraphs and
functions, to the first operators that give its elements a meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

import onnx

from splitgraph.execution.inputs.layer_roles import for_layer
from splitgraph.execution.inputs.operator_roles import Integers, Request, compose, for_operator
from splitgraph.execution.models.model_edits import is_default_domain
from splitgraph.inference.calls import Steps, finish

_PASSES_ON = frozenset({"Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape", "Flatten"})
FUNCTION_DOMAIN = "org.splitgraph"
# The domain under which layers of OpenVINO IR are mirrored, and which of them pass their elements on.
LAYER_DOMAIN = "org.openvinotoolkit"
_LAYERS_PASSING_ON = frozenset({"Convert", "Squeeze", "Unsqueeze", "Reshape"})


@dataclass(frozen=True, slots=True)
class Use:
    """A place where the elements of a graph input get a meaning: a node, and which of its inputs they are."""

    node: onnx.NodeProto
    position: int


def find_uses(model: onnx.ModelProto) -> dict[str, list[Use]]:
    """Every use of every graph input, the splits' before others'."""
    functions = {(function.domain, function.name, function.overload): function for function in model.functions}
    search = _Search(functions, {value.name: [] for value in model.graph.input})
    finish(search.follow(model.graph.node, {name: name for name in search.uses}))
    for found in search.uses.values():
        found.sort(key=lambda use: "Split" not in use.node.op_type)
    return search.uses


_Key = tuple[str, str, str]


@dataclass(slots=True)
class _Search:
    """followed: the functions that were followed, with what their inputs are. Once more would give the same uses, and
    functions that call functions twice over would never end.
    """

    functions: Mapping[_Key, onnx.FunctionProto]
    uses: dict[str, list[Use]]
    followed: set[tuple[_Key, frozenset[tuple[str, str]]]] = field(default_factory=set)

    def follow(self, nodes: Iterable[onnx.NodeProto], roots: dict[str, str]) -> Steps:
        """Note what nodes read. roots: the graph inputs that names stand for."""
        for node in nodes:
            for position, name in enumerate(node.input):
                if name in roots:
                    self.uses[roots[name]].append(Use(node, position))
            if _passes_on(node) and node.input and node.input[0] in roots:
                roots[node.output[0]] = roots[node.input[0]]
            key = (node.domain, node.op_type, node.overload)
            if key in self.functions:
                yield self._call(key, node, roots)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    carried = node.input[2:] if node.op_type == "Loop" else node.input
                    names = [value.name for value in attribute.g.input][2 if node.op_type == "Loop" else 0 :]
                    yield self.follow(attribute.g.node, {**roots, **_renamed(names, carried, roots)})

    def _call(self, key: _Key, node: onnx.NodeProto, roots: Mapping[str, str]) -> Steps:
        function = self.functions[key]
        inner = _renamed(function.input, node.input, roots)
        call = key, frozenset(inner.items())
        if call not in self.followed:
            self.followed.add(call)
            yield self.follow(function.node, inner)


def _passes_on(node: onnx.NodeProto) -> bool:
    if node.domain == LAYER_DOMAIN:
        return node.op_type in _LAYERS_PASSING_ON
    return node.op_type in _PASSES_ON and is_default_domain(node.domain)


def _is_variadic_split(node: onnx.NodeProto) -> bool:
    return node.domain == FUNCTION_DOMAIN or (node.domain == LAYER_DOMAIN and node.op_type == "VariadicSplit")


def _renamed(inner: Iterable[str], outer: Iterable[str], roots: Mapping[str, str]) -> dict[str, str]:
    return {name: roots[source] for name, source in zip(inner, outer, strict=False) if source in roots}


def required_count(use: Use) -> int | None:
    """How many elements a use demands of a one-dimensional input; None when any number will do."""
    if use.node.op_type == "Split" and is_default_domain(use.node.domain) and use.position == 1:
        return len(use.node.output)
    if _is_variadic_split(use.node) and use.position == 2:
        return len(use.node.output)
    return None


def value_for(use: Use, request: Request) -> Integers | None:
    """Numbers that make sense for a use, as int64; None when this place says nothing or the shape does not fit."""
    node = use.node
    if _is_variadic_split(node):
        return _for_variadic_split(use, request)
    if node.domain == LAYER_DOMAIN:
        return for_layer(node, use.position, request)
    return for_operator(node, use.position, request) if is_default_domain(node.domain) else None


def _for_variadic_split(use: Use, request: Request) -> Integers | None:
    shape = request.dims(use.node.input[0])
    if not shape:
        return None
    axis = request.axes.get(tuple(use.node.output), len(shape) - 1)  # with an axis of our choice: the last
    if use.position == 1:
        return request.full([axis])
    return request.full(compose(shape[axis], len(use.node.output), request.rng)) if use.position == 2 else None
