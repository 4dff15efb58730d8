"""What the inputs of a model are for: which of them are lengths, axes, indices or sizes, and which numbers make sense
there.

An input is followed forward from the graph's inputs, through operators that pass its elements on, into subgraphs and
functions, to the first operators that give its elements a meaning.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx

from splitgraph.execution.model_edits import is_default_domain

Integers = npt.NDArray[np.int64]
Shape = Sequence[int]
Dims = Callable[[str], "Shape | None"]

_PASSES_ON = frozenset({"Identity", "Cast", "Squeeze", "Unsqueeze", "Reshape", "Flatten"})
# Operators whose first input's dimension along `axis` bounds the indices in their second.
_INDEXING = frozenset({"Gather", "GatherElements", "ScatterElements", "Scatter"})
_REDUCTIONS = frozenset(
    f"Reduce{kind}" for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
)
FUNCTION_DOMAIN = "org.splitgraph"
# The domain under which layers of OpenVINO IR are mirrored, and which of them pass their elements on.
LAYER_DOMAIN = "org.openvinotoolkit"
_LAYERS_PASSING_ON = frozenset({"Convert", "Squeeze", "Unsqueeze", "Reshape"})


@dataclass(frozen=True, slots=True)
class Use:
    """A place where the elements of a graph input get a meaning: a node, and which of its inputs they are."""

    node: onnx.NodeProto
    position: int


@dataclass(frozen=True, slots=True)
class Request:
    """A value that is asked for: its shape (None where the role decides it), the random generator, and what inference
    knows.

    dims: the shape of a value in this case, None when unknown. axes: of splits, by their outputs.
    """

    shape: Shape | None
    rng: np.random.Generator
    dims: Dims
    axes: Mapping[tuple[str, ...], int]

    @property
    def count(self) -> int:
        """Number of elements."""
        return int(np.prod(self.shape or (), dtype=np.int64))

    def full(self, values: Iterable[int]) -> Integers | None:
        """The values in the shape asked for; None when their number does not fit."""
        array = np.array(list(values), dtype=np.int64)
        if self.shape is None:
            return array
        return array.reshape(tuple(self.shape)) if array.size == self.count else None


def find_uses(model: onnx.ModelProto) -> dict[str, list[Use]]:
    """Every use of every graph input, the splits' before others'."""
    functions = {(function.domain, function.name, function.overload): function for function in model.functions}
    uses: dict[str, list[Use]] = {value.name: [] for value in model.graph.input}
    _follow(model.graph.node, {name: name for name in uses}, uses, functions)
    for found in uses.values():
        found.sort(key=lambda use: "Split" not in use.node.op_type)
    return uses


Functions = Mapping[tuple[str, str, str], onnx.FunctionProto]


def _follow(
    nodes: Iterable[onnx.NodeProto], roots: dict[str, str], uses: dict[str, list[Use]], functions: Functions
) -> None:
    for node in nodes:
        for position, name in enumerate(node.input):
            if name in roots:
                uses[roots[name]].append(Use(node, position))
        if _passes_on(node) and node.input and node.input[0] in roots:
            roots[node.output[0]] = roots[node.input[0]]
        function = functions.get((node.domain, node.op_type, node.overload))
        if function is not None:
            _follow(function.node, _renamed(function.input, node.input, roots), uses, functions)
        for attribute in node.attribute:
            if attribute.HasField("g"):
                carried = node.input[2:] if node.op_type == "Loop" else node.input
                names = [value.name for value in attribute.g.input][2 if node.op_type == "Loop" else 0 :]
                inner = {**roots, **_renamed(names, carried, roots)}
                _follow(attribute.g.node, inner, uses, functions)


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
        return _for_layer(use, request)
    if not is_default_domain(node.domain):
        return None
    make = _ROLES.get((node.op_type, use.position))
    if make is None and node.op_type in _INDEXING and use.position == 1:
        make = _indices
    if make is None and node.op_type in _REDUCTIONS and use.position == 1:
        make = _axes
    return None if make is None else make(node, request)


def compose(total: int, parts: int, rng: np.random.Generator) -> list[int]:
    """A random way to write a number as a sum, with every part at least 1 where that is possible."""
    least = 1 if total >= parts else 0
    cuts = np.sort(rng.integers(0, total - least * parts + 1, size=max(parts - 1, 0)))
    edges = [0, *cuts.tolist(), total - least * parts]
    return [high - low + least for low, high in itertools.pairwise(edges)]


def _attribute(node: onnx.NodeProto, name: str, default: int) -> int:
    return next((int(a.i) for a in node.attribute if a.name == name and not a.ref_attr_name), default)


def _split_axis(node: onnx.NodeProto, request: Request) -> int:
    return request.axes.get(tuple(node.output), _attribute(node, "axis", 0))


def _dim_along(node: onnx.NodeProto, request: Request, axis: int) -> int | None:
    shape = request.dims(node.input[0])
    if shape is None or not -len(shape) <= axis < len(shape):
        return None
    return shape[axis]


def _split_lengths(node: onnx.NodeProto, request: Request) -> Integers | None:
    total = _dim_along(node, request, _split_axis(node, request))
    return None if total is None else request.full(compose(total, len(node.output), request.rng))


def _sequence_lengths(node: onnx.NodeProto, request: Request) -> Integers | None:
    total = _dim_along(node, request, _split_axis(node, request))
    if total is None:
        return None
    if not request.shape:  # a scalar, also where the rank is open: the size of a chunk
        return np.array(request.rng.integers(1, max(total, 1) + 1), dtype=np.int64)
    return request.full(compose(total, request.count, request.rng)) if request.count else None


def _for_variadic_split(use: Use, request: Request) -> Integers | None:
    shape = request.dims(use.node.input[0])
    if not shape:
        return None
    axis = request.axes.get(tuple(use.node.output), len(shape) - 1)  # with an axis of our choice: the last
    if use.position == 1:
        return request.full([axis])
    return request.full(compose(shape[axis], len(use.node.output), request.rng)) if use.position == 2 else None


def _for_layer(use: Use, request: Request) -> Integers | None:
    """The axis of a Split, and indices that are within every axis of what a Gather reads."""
    shape = request.dims(use.node.input[0])
    if not shape or use.position != 1:
        return None
    if use.node.op_type == "Split":
        return request.full([request.axes.get(tuple(use.node.output), len(shape) - 1)])
    if use.node.op_type == "Gather" and min(shape) > 0:
        return request.full(request.rng.integers(0, min(shape), size=request.count).tolist())
    return None


def _indices(node: onnx.NodeProto, request: Request) -> Integers | None:
    dim = _dim_along(node, request, _attribute(node, "axis", 0))
    if not dim or request.shape is None:
        return None
    if node.op_type.startswith("Scatter") and request.count <= dim and len(request.shape) <= 1:
        return request.rng.permutation(dim)[: request.count].reshape(request.shape)  # twice the same has no order
    return request.rng.integers(0, dim, size=request.shape)


def _axes(node: onnx.NodeProto, request: Request) -> Integers | None:
    shape = request.dims(node.input[0])
    if shape is None:
        return None
    extra = request.count if node.op_type == "Unsqueeze" else 0
    if node.op_type == "Squeeze":
        return request.full([axis for axis, dim in enumerate(shape) if dim == 1][: request.count])
    if request.count > len(shape) + extra:
        return None
    return request.full(sorted(request.rng.permutation(len(shape) + extra)[: request.count].tolist()))


def _one_axis(node: onnx.NodeProto, request: Request) -> Integers | None:
    shape = request.dims(node.input[0])
    return None if not shape else request.full(request.rng.integers(0, len(shape), size=request.count).tolist())


def _reshape_target(node: onnx.NodeProto, request: Request) -> Integers | None:
    shape = request.dims(node.input[0])
    if request.shape is None or not request.count:
        return None
    if shape is not None and len(shape) == request.count:
        return request.full(shape)
    return request.full([1] * (request.count - 1) + [-1])


def _expand_target(node: onnx.NodeProto, request: Request) -> Integers | None:
    shape = request.dims(node.input[0])
    if request.shape is None or shape is None:
        return None
    padded = [2] * (request.count - len(shape)) + [3 if dim == 1 else dim for dim in shape]
    return request.full(padded[len(padded) - request.count :])


def _slice_starts(node: onnx.NodeProto, request: Request) -> Integers | None:
    return request.full(request.rng.integers(0, 2, size=request.count).tolist())


def _slice_ends(node: onnx.NodeProto, request: Request) -> Integers | None:
    return request.full(request.rng.integers(2, 6, size=request.count).tolist())


def _small(low: int, high: int) -> Callable[[onnx.NodeProto, Request], Integers | None]:
    """Numbers from `low` to `high`, whatever the operator."""
    return lambda _, request: request.full(request.rng.integers(low, high + 1, size=request.count).tolist())


def _top_k(node: onnx.NodeProto, request: Request) -> Integers | None:
    dim = _dim_along(node, request, _attribute(node, "axis", -1))
    return request.full([int(request.rng.integers(1, max(dim or 1, 1) + 1))])


_ROLES: Mapping[tuple[str, int], Callable[[onnx.NodeProto, Request], Integers | None]] = {
    ("Split", 1): _split_lengths,
    ("SplitToSequence", 1): _sequence_lengths,
    ("Loop", 0): _small(2, 4),
    ("Reshape", 1): _reshape_target,
    ("Expand", 1): _expand_target,
    ("Tile", 1): _small(1, 3),
    ("Pad", 1): _small(0, 2),
    ("TopK", 1): _top_k,
    ("ConstantOfShape", 0): _small(2, 5),
    ("Range", 0): _small(0, 1),
    ("Range", 1): _small(4, 8),
    ("Range", 2): _small(1, 2),
    ("OneHot", 1): _small(3, 8),
    ("EyeLike", 0): _small(0, 1),
    ("Trilu", 1): _small(-1, 1),
    ("CumSum", 1): _one_axis,
    ("Squeeze", 1): _axes,
    ("Unsqueeze", 1): _axes,
    ("Slice", 1): _slice_starts,
    ("Slice", 2): _slice_ends,
    ("Slice", 3): _axes,
    ("Slice", 4): _small(1, 1),
    ("SequenceAt", 1): _small(0, 0),
    ("SequenceErase", 1): _small(0, 0),
    ("SequenceInsert", 2): _small(0, 0),
    ("ConcatFromSequence", 1): _small(0, 0),
    ("Resize", 2): _small(1, 2),
    ("Resize", 3): _small(4, 6),
}
