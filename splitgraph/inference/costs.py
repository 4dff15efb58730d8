"""Counts the parameters of a model, their bytes, and the multiply-adds of a run as an expression of its symbols.

A multiply-add is one product that is added to a sum, as matrix products, convolutions, recurrent layers and attention
make them; element by element, other operators take little. A subgraph counts once, whatever a loop repeats; what is
inside a local function is not counted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from splitgraph.dim import DimLike, product, sum_dims
from splitgraph.model.attributes import attribute_value
from splitgraph.model.onnx_proto import NodeProto, TensorProto
from splitgraph.model.schemas import kinds
from splitgraph.model.scopes import GraphPath, Scope
from splitgraph.model.tensor_data import byte_size
from splitgraph.model.value_type import ValueType


class Costs(NamedTuple):
    """The size of a model.

    parameters: the elements of all initializers and Constant nodes. bytes: what these take. multiply_adds: of one run,
    in the symbols of the model. not_counted: nodes that multiply and add, of which a size is not known or which are
    inside a local function.
    """

    parameters: int
    bytes: int
    multiply_adds: DimLike
    not_counted: int


class _Unknown(Exception):
    """A size that the number needs is not known."""


class _Sized:
    """A node with the sizes of what it reads and gives."""

    def __init__(self, node: NodeProto, types: Mapping[str, ValueType]) -> None:
        self.node, self._types = node, types

    def shape(self, name: str) -> list[DimLike]:
        known = self._types.get(name)
        if known is None or known.shape is None:
            raise _Unknown
        sizes = [dim for dim in known.shape if dim is not None]
        if len(sizes) != len(known.shape):
            raise _Unknown
        return sizes

    def input(self, place: int) -> list[DimLike]:
        """Return the shape of an input. Raises _Unknown."""
        names = self.node.input
        if place >= len(names) or not names[place]:
            raise _Unknown
        return self.shape(names[place])

    def has_input(self, place: int) -> bool:
        """Return True if the node has an input at a place."""
        return place < len(self.node.input) and self.node.input[place] != ""

    @property
    def output(self) -> list[DimLike]:
        """The shape of the first output. Raises _Unknown."""
        return self.shape(self.node.output[0])

    def attribute(self, name: str, default: int) -> int:
        """Return an integer attribute."""
        found = next((each for each in self.node.attribute if each.name == name), None)
        value = default if found is None else attribute_value(found)
        if not isinstance(value, int):
            raise _Unknown
        return value


def _matrix_product(node: _Sized, place: int = 0) -> DimLike:
    return product([*node.output, node.input(place)[-1]])


def _gemm(node: _Sized) -> DimLike:
    left = node.input(0)
    return product([*node.output, left[0] if node.attribute("transA", 0) else left[-1]])


def _convolution(node: _Sized, weights: int = 1) -> DimLike:
    return product([*node.output, *node.input(weights)[1:]])


def _transposed_convolution(node: _Sized) -> DimLike:
    return product([*node.input(0), *node.input(1)[1:]])


def _recurrent(node: _Sized) -> DimLike:
    length, batch, _ = node.input(0)
    weights, again = product(node.input(1)), product(node.input(2))
    return product([length, batch, sum_dims([weights, again])])


def _einsum(node: _Sized) -> DimLike:
    equation = next(each.s.decode() for each in node.node.attribute if each.name == "equation")
    if "..." in equation:
        raise _Unknown
    terms = equation.replace(" ", "").partition("->")[0].split(",")
    sizes = {
        label: size for place, term in enumerate(terms) for label, size in zip(term, node.input(place), strict=True)
    }
    return product(list(sizes.values()))


def _attention(node: _Sized) -> DimLike:
    """Both products of Attention-23 and -24: queries with keys, and the weights of these with values."""
    query, key, value = node.input(0), node.input(1), node.input(2)
    past = node.input(4)[2] if node.has_input(4) else 0
    heads = node.attribute("q_num_heads", 0)
    if len(query) == 3:
        count, kept = node.attribute("kv_num_heads", 0), (key[2], value[2])
        if not heads or not count:
            raise _Unknown
        batch, length, widths, keys = query[0], query[1], [size // count for size in kept], key[1]
    else:
        batch, heads, length, _ = query  # type: ignore[assignment]
        widths, keys = [key[3], value[3]], key[2]
    return product([batch, heads, length, sum_dims([keys, past]), sum_dims(widths)])


_COUNTED: Mapping[str, Callable[[_Sized], DimLike]] = {
    **dict.fromkeys(kinds.CONVOLUTIONS, _convolution),
    **dict.fromkeys(kinds.PRODUCTS, _matrix_product),
    **dict.fromkeys(kinds.RECURRENT, _recurrent),
    "Attention": _attention,
    "ConvTranspose": _transposed_convolution,
    "Einsum": _einsum,
    "Gemm": _gemm,
    "QLinearConv": lambda node: _convolution(node, 3),
}
# Those of onnxruntime that are like them.
_COUNTED_THERE: Mapping[str, Callable[[_Sized], DimLike]] = {
    "DynamicQuantizeMatMul": _matrix_product,
    "FusedConv": _convolution,
    "FusedGemm": _gemm,
    "FusedMatMul": _matrix_product,
    "MatMulIntegerToFloat": _matrix_product,
    "MatMulNBits": _matrix_product,
    "QLinearConv": lambda node: _convolution(node, 3),
}


def costs_of(scopes: Iterable[Scope], types: Mapping[GraphPath, Mapping[str, ValueType]]) -> Costs:
    """Return the size of a model. scopes: its graphs. types: those of each graph, by path."""
    amounts: list[DimLike] = []
    parameters = total = left_out = 0
    for scope in scopes:
        for tensor in _constants(getattr(scope.proto, "initializer", ()), scope.nodes):
            parameters += math.prod(tensor.dims)
            total += byte_size(tensor) or 0
        known = types.get(scope.path, {})
        for node in scope.nodes:
            count_of = (_COUNTED if node.domain in ("", "ai.onnx") else _COUNTED_THERE).get(node.op_type)
            if count_of is None:
                continue
            try:
                if scope.in_function:
                    raise _Unknown
                amounts.append(count_of(_Sized(node, known)))
            except (_Unknown, ValueError, IndexError):
                # Sizes that do not fit together are a finding of inference.
                left_out += 1
    return Costs(parameters, total, sum_dims(amounts), left_out)


def _constants(initializers: Sequence[TensorProto], nodes: Sequence[NodeProto]) -> Iterator[TensorProto]:
    """Yield the tensors that a graph holds."""
    yield from initializers
    for node in nodes:
        if node.op_type == "Constant":
            yield from (attribute.t for attribute in node.attribute if attribute.name == "value")
