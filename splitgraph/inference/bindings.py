"""What the caller says of dimensions: values of symbols, and shapes of inputs in place of the declared ones."""

from __future__ import annotations

import operator
from collections.abc import Container, Mapping, Sequence
from typing import Any

from splitgraph.diagnostics import SplitgraphError, diagnostic
from splitgraph.dim import Dim, DimLike, parse_dim, parse_given_dim, symbols_of
from splitgraph.graph.names import dimension_names
from splitgraph.graph.types import LARGEST_DIM, value_type
from splitgraph.onnx_proto import ModelProto, ValueInfoProto
from splitgraph.value_type import ValueType

InputShapes = Mapping[str, Sequence["int | str | Dim | None"]]


def read_bindings(model: ModelProto, bind: Mapping[str, int] | None) -> Mapping[str, DimLike]:
    """The values by symbol. Raises SplitgraphError for what is no mapping, no symbol of the model, or no dimension."""
    if bind is None:
        return {}
    if not isinstance(bind, Mapping):
        raise SplitgraphError(f"bind is {bind!r}; it must give a number for each name, such as {{'N': 4}}")
    declared = {symbol for written in dimension_names(model) for symbol in symbols_of(parse_dim(written))}
    for name in bind:
        if name not in declared:
            known = ", ".join(sorted(declared)) or "none"
            raise SplitgraphError(
                f"no dimension of the model is named {name!r}; it has: {known}",
                [diagnostic("SG304", f"no dimension {name!r}")],
            )
    return {name: _number(value, f"the dimension {name!r}") for name, value in bind.items()}


def read_input_shapes(model: ModelProto, input_shapes: InputShapes | None) -> list[ValueType | None] | None:
    """For each input of the model its type with the shape given, None for one without; None when no shapes are given.

    Raises SplitgraphError for what is no mapping, no input of the model, or no shape.
    """
    if input_shapes is None:
        return None
    if not isinstance(input_shapes, Mapping):
        raise SplitgraphError(
            f"input_shapes is {input_shapes!r}; it must give a shape for each name, such as {{'x': [1, 'N']}}"
        )
    names = [value.name for value in model.graph.input]
    for name in input_shapes:
        if name not in names:
            raise SplitgraphError(f"the model has no input {name!r}; it has: {', '.join(names) or 'none'}")
    dims = dimension_names(model)
    return [_given_type(value, input_shapes.get(value.name), dims) for value in model.graph.input]


def implied_bindings(model: ModelProto, given: Sequence[ValueType | None] | None) -> dict[str, DimLike]:
    """The values that the shapes given for inputs say of the symbols that these declare, the first for each: a second
    one then contradicts the declaration.
    """
    found: dict[str, DimLike] = {}
    for value, known in zip(model.graph.input, given or (), strict=False):
        declared = value_type(value.type).shape
        if known is None or known.shape is None or declared is None or len(declared) != len(known.shape):
            continue
        for symbol, number in zip(declared, known.shape, strict=True):
            if isinstance(symbol, Dim) and isinstance(number, int) and symbols_of(symbol) == {str(symbol)}:
                found.setdefault(str(symbol), number)
    return found


def _given_type(value: ValueInfoProto, shape: Any, names: Container[str]) -> ValueType | None:
    if shape is None:
        return None
    if not isinstance(shape, Sequence) or isinstance(shape, (str, bytes)):
        raise SplitgraphError(f"the shape of {value.name!r} is {shape!r}; it must be a list such as [1, 3, 'H', None]")
    kind = value.type.WhichOneof("value")
    dims = tuple(_given_dim(dim, f"a dimension of {value.name!r}", names) for dim in shape)
    return ValueType("tensor" if kind is None else kind.removesuffix("_type"), None, dims)


def _given_dim(dim: Any, what: str, names: Container[str]) -> DimLike | None:
    if dim is None or isinstance(dim, Dim):
        return dim
    if not isinstance(dim, str):
        return _number(dim, what)
    try:
        parsed = parse_given_dim(dim, names)
    except ValueError as error:
        raise SplitgraphError(f"{dim!r} is no dimension: {error}") from None
    return _number(parsed, what) if isinstance(parsed, int) else parsed


def _number(value: Any, what: str) -> int:
    """The value as a dimension; numpy's integers are integers, True and False are not."""
    number = None
    if not isinstance(value, bool) and hasattr(value, "__index__"):
        number = operator.index(value)
    if number is None or not 0 <= number <= LARGEST_DIM:
        raise SplitgraphError(f"{what} cannot be {value!r}; it is an integer of at least 0 and at most 2**63 - 1")
    return number
