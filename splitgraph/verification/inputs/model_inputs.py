"""Describe the inputs of a model: their types, with a symbol for each unknown dimension, and their roles. An input that
holds lengths, axes, indices or sizes must hold valid ones.

Each input is followed forward, through operators that pass its elements on, and into subgraphs and functions, to the
first operators that give its elements a meaning.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx

from splitgraph.dim import symbol, symbols_of
from splitgraph.inference.analysis import Analysis
from splitgraph.model.schemas import kinds
from splitgraph.model.scopes import Steps, finish
from splitgraph.model.value_type import DTYPE_NUMBERS, UNKNOWN, ValueType
from splitgraph.verification.inputs.operator_roles import (
    Integers,
    Request,
    compose,
    for_layer,
    for_operator,
)
from splitgraph.verification.models.model_files import is_default_domain
from splitgraph.verification.models.model_pair import caller_inputs, default_names
from splitgraph.verification.values import dtype_by_name

# The rank of an input whose rank is unknown.
_GUESSED_RANK = 2
_PASSES_ON = kinds.RESHAPES | {"Cast"}
FUNCTION_DOMAIN = "org.splitgraph"
# The layers that pass their elements on.
_LAYERS_PASSING_ON = frozenset({"Convert", "Squeeze", "Unsqueeze", "Reshape"})


class InputError(Exception):
    """Raised if no inputs can be made for a model; the message says which one fails and why."""


@dataclass(frozen=True, slots=True)
class ModelInput:
    """A graph input. type: with a symbol for each unknown dimension, and with a guessed rank if that is unknown.
    declared: what is known of the type.
    """

    name: str
    type: ValueType
    uses: tuple[Use, ...]
    has_default: bool
    declared: ValueType = UNKNOWN


def describe_inputs(analysis: Analysis) -> list[ModelInput]:
    """Describe the inputs that a caller may give."""
    model = analysis.model
    uses = find_uses(model)
    defaults = default_names(model)
    described = []
    for name in caller_inputs(model):
        uses_of_input = tuple(uses.get(name, ()))
        declared = analysis.types.get(name, UNKNOWN)
        named = _name_dimensions(declared, name, uses_of_input)
        described.append(ModelInput(name, named, uses_of_input, name in defaults, declared))
    return described


def _name_dimensions(value: ValueType, name: str, uses: Sequence[Use]) -> ValueType:
    """Return the type with a rank, and with a new symbol for each unknown dimension."""
    if value.element is not None:
        element = _name_dimensions(value.element, name, uses)
        return ValueType(value.kind, value.dtype, value.shape, element)
    if value.shape is None:
        count = next((n for n in map(required_count, uses) if n is not None), None)
        is_chunk = any(use.node.op_type == "SplitToSequence" and use.position == 1 for use in uses)
        rank = 1 if count is not None else 0 if is_chunk else _GUESSED_RANK
        return value.with_shape([symbol(f"{name}:{axis}") for axis in range(rank)])
    return value.with_shape([symbol(f"{name}:{axis}") if dim is None else dim for axis, dim in enumerate(value.shape)])


def symbols_in_order(inputs: Iterable[ModelInput]) -> list[str]:
    """Return the symbols in the dimensions of the inputs, in the order of the inputs."""
    names: dict[str, None] = {}
    for item in inputs:
        shape = item.type.innermost.shape
        for dim in shape or ():
            names.update(dict.fromkeys(sorted(symbols_of(dim)) if dim is not None else ()))
    return list(names)


def is_float(value: ValueType) -> bool:
    """Return True for a floating-point type."""
    return (value.dtype or "").startswith(("float", "bfloat"))


def numpy_name(dtype: str) -> str:
    """Return the name in NumPy or ml_dtypes of an ONNX element type."""
    return dtype if dtype == "string" else numpy_dtype(dtype).name


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the element type of NumPy or ml_dtypes with an ONNX name."""
    if name == "string":
        return dtype_by_name("object")
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(DTYPE_NUMBERS[name]))


@dataclass(frozen=True, slots=True)
class Use:
    """A node that gives the elements of a graph input a meaning. position: which input of the node they are."""

    node: onnx.NodeProto
    position: int


def find_uses(model: onnx.ModelProto) -> dict[str, list[Use]]:
    """Return every use of every graph input; uses by splits come first."""
    functions = {(function.domain, function.name, function.overload): function for function in model.functions}
    search = _RoleSearch(functions, {value.name: [] for value in model.graph.input})
    finish(search.follow(model.graph.node, {name: name for name in search.uses}))
    for uses in search.uses.values():
        uses.sort(key=lambda use: "Split" not in use.node.op_type)
    return search.uses


_FunctionKey = tuple[str, str, str]


@dataclass(slots=True)
class _RoleSearch:
    """Follows the graph inputs through all graphs.

    followed: the functions that were followed, with the graph inputs that they get. They are not followed again,
    because functions that call each other twice would take exponential time.
    """

    functions: Mapping[_FunctionKey, onnx.FunctionProto]
    uses: dict[str, list[Use]]
    followed: set[tuple[_FunctionKey, frozenset[tuple[str, str]]]] = field(default_factory=set)

    def follow(self, nodes: Iterable[onnx.NodeProto], roots: dict[str, str]) -> Steps:
        """Record the uses in some nodes. roots: the graph input behind each name."""
        for node in nodes:
            for position, name in enumerate(node.input):
                if name in roots:
                    self.uses[roots[name]].append(Use(node, position))
            is_layer = node.domain == kinds.LAYER_DOMAIN
            passes_on = node.op_type in (_LAYERS_PASSING_ON if is_layer else _PASSES_ON)
            if passes_on and (is_layer or is_default_domain(node.domain)) and node.input and node.input[0] in roots:
                roots[node.output[0]] = roots[node.input[0]]
            key = (node.domain, node.op_type, node.overload)
            if key in self.functions:
                yield self._call(key, node, roots)
            for attribute in node.attribute:
                if attribute.HasField("g"):
                    carried = node.input[2:] if node.op_type == "Loop" else node.input
                    names = [value.name for value in attribute.g.input][2 if node.op_type == "Loop" else 0 :]
                    yield self.follow(attribute.g.node, {**roots, **_renamed(names, carried, roots)})

    def _call(self, key: _FunctionKey, node: onnx.NodeProto, roots: Mapping[str, str]) -> Steps:
        function = self.functions[key]
        inner = _renamed(function.input, node.input, roots)
        call = key, frozenset(inner.items())
        if call not in self.followed:
            self.followed.add(call)
            yield self.follow(function.node, inner)


def _is_variadic_split(node: onnx.NodeProto) -> bool:
    return node.domain == FUNCTION_DOMAIN or (node.domain == kinds.LAYER_DOMAIN and node.op_type == "VariadicSplit")


def _renamed(inner: Iterable[str], outer: Iterable[str], roots: Mapping[str, str]) -> dict[str, str]:
    return {name: roots[source] for name, source in zip(inner, outer, strict=False) if source in roots}


def required_count(use: Use) -> int | None:
    """Return how many elements a one-dimensional input must have for a use; None if any number is valid."""
    if use.node.op_type == "Split" and is_default_domain(use.node.domain) and use.position == 1:
        return len(use.node.output)
    if _is_variadic_split(use.node) and use.position == 2:
        return len(use.node.output)
    return None


def value_for(use: Use, request: Request) -> Integers | None:
    """Return valid numbers for a use, as int64; None if any number is valid or the shape does not fit."""
    node = use.node
    if _is_variadic_split(node):
        return _for_variadic_split(use, request)
    if node.domain == kinds.LAYER_DOMAIN:
        return for_layer(node, use.position, request)
    return for_operator(node, use.position, request)


def _for_variadic_split(use: Use, request: Request) -> Integers | None:
    shape = request.dims(use.node.input[0])
    if not shape:
        return None
    axis = request.axes.get(tuple(use.node.output), len(shape) - 1)  # if the axis is an input, too, it is the last one
    if use.position == 1:
        return request.full([axis])
    return request.full(compose(shape[axis], len(use.node.output), request.rng)) if use.position == 2 else None
