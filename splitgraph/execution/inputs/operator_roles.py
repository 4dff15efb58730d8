"""Numbers that make sense as the lengths, axes, indices and sizes that operators of ONNX take as inputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx

Integers = npt.NDArray[np.int64]
Shape = Sequence[int]
Dims = Callable[[str], "Shape | None"]
Make = Callable[[onnx.NodeProto, "Request"], "Integers | None"]

# Operators whose first input's dimension along `axis` bounds the indices in their second.
_INDEXING = frozenset({"Gather", "GatherElements", "ScatterElements", "Scatter"})
# From this opset on OneHot counts negative indices from the end; and how deep it is where nothing says so.
_ONE_HOT_FROM_THE_END = 11
_SOME_DEPTH = 4
REDUCTIONS = frozenset(
    f"Reduce{kind}" for kind in ("L1", "L2", "LogSum", "LogSumExp", "Max", "Mean", "Min", "Prod", "Sum", "SumSquare")
)


@dataclass(frozen=True, slots=True)
class Request:
    """A value that is asked for: its shape (None where the role decides it), the random generator, and what inference
    knows.

    dims: the shape of a value in this case, None when unknown. axes: of splits, by their outputs. opset: of ai.onnx, 0
    where the model imports none.
    """

    shape: Shape | None
    rng: np.random.Generator
    dims: Dims
    axes: Mapping[tuple[str, ...], int]
    opset: int

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


def for_operator(node: onnx.NodeProto, position: int, request: Request) -> Integers | None:
    """Numbers for an input of an operator of ONNX; None when they may be any, or the shape does not fit."""
    make = _ROLES.get((node.op_type, position))
    if make is None and node.op_type in _INDEXING and position == 1:
        make = _indices
    if make is None and node.op_type in REDUCTIONS and position == 1:
        make = any_axes
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
    return _dim_of(node.input[0], request, axis)


def _dim_of(name: str, request: Request, axis: int) -> int | None:
    shape = request.dims(name)
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


def _indices(node: onnx.NodeProto, request: Request) -> Integers | None:
    dim = _dim_along(node, request, _attribute(node, "axis", 0))
    if not dim or request.shape is None:
        return None
    if node.op_type.startswith("Scatter") and request.count <= dim and len(request.shape) <= 1:
        return request.rng.permutation(dim)[: request.count].reshape(request.shape)  # twice the same has no order
    return request.rng.integers(0, dim, size=request.shape)


def tuples(node: onnx.NodeProto, request: Request, leading: int) -> Integers | None:
    """Indices of which the last dimension is a position in what a node reads, after so many leading dimensions; no
    position twice where there are enough, as what is written there twice has no order.
    """
    shape, inner = request.dims(node.input[0]), request.dims(node.input[1])
    if shape is None or not inner or not 0 < inner[-1] <= len(shape) - leading:
        return None
    among = tuple(shape[leading : leading + inner[-1]])
    total, count = int(np.prod(among)), int(np.prod(inner[:-1]))
    if not total:
        return None
    flat = request.rng.permutation(total)[:count] if count <= total else request.rng.integers(0, total, size=count)
    return request.full(np.stack(np.unravel_index(flat, among), axis=-1).ravel().tolist())


def _gathered_tuples(node: onnx.NodeProto, request: Request) -> Integers | None:
    return tuples(node, request, _attribute(node, "batch_dims", 0))


def _scattered_tuples(node: onnx.NodeProto, request: Request) -> Integers | None:
    return tuples(node, request, 0)


def any_axes(node: onnx.NodeProto, request: Request) -> Integers | None:
    """As many different axes as are asked for, those of length 1 for Squeeze."""
    shape = request.dims(node.input[0])
    if shape is None:
        return None
    extra = request.count if node.op_type == "Unsqueeze" else 0
    if node.op_type == "Squeeze":
        return request.full([axis for axis, dim in enumerate(shape) if dim == 1][: request.count])
    if request.count > len(shape) + extra:
        return None
    return request.full(sorted(request.rng.permutation(len(shape) + extra)[: request.count].tolist()))


def one_axis(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Any axis."""
    shape = request.dims(node.input[0])
    return None if not shape else request.full(request.rng.integers(0, len(shape), size=request.count).tolist())


def reshape_target(node: onnx.NodeProto, request: Request) -> Integers | None:
    """The shape as it is where that is of the rank asked for, else all elements in one dimension."""
    shape = request.dims(node.input[0])
    if request.shape is None or not request.count:
        return None
    if shape is not None and len(shape) == request.count:
        return request.full(shape)
    return request.full([1] * (request.count - 1) + [-1])


def expand_target(node: onnx.NodeProto, request: Request) -> Integers | None:
    """A shape that the node's data broadcasts to."""
    shape = request.dims(node.input[0])
    if request.shape is None or shape is None:
        return None
    padded = [2] * (request.count - len(shape)) + [3 if dim == 1 else dim for dim in shape]
    return request.full(padded[len(padded) - request.count :])


def small(low: int, high: int) -> Callable[[onnx.NodeProto, Request], Integers | None]:
    """Numbers from `low` to `high`, whatever the operator."""
    return lambda _, request: request.full(request.rng.integers(low, high + 1, size=request.count).tolist())


def _top_k(node: onnx.NodeProto, request: Request) -> Integers | None:
    dim = _dim_along(node, request, _attribute(node, "axis", -1))
    return request.full([int(request.rng.integers(1, max(dim or 1, 1) + 1))])


def _hot_indices(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Indices of a OneHot that must not be negative, as below opset 11, where onnxruntime counts such from the end; one
    more than there are, which gives no hot value. From there on all may be.
    """
    if request.opset >= _ONE_HOT_FROM_THE_END:
        return None
    depth = _dim_of(node.output[0], request, _attribute(node, "axis", -1))
    last = _SOME_DEPTH if depth is None else depth
    return request.full(request.rng.integers(0, last + 1, size=request.count).tolist())


def _batch_indices(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Which image of the batch each region is of."""
    count = _dim_along(node, request, 0)
    return request.full(request.rng.integers(0, count, size=request.count).tolist()) if count else None


def _grid_sizes(node: onnx.NodeProto, request: Request) -> Integers | None:
    """The size of the images: as many as there are matrices, and none of one row or column, at whose only place
    align_corners has no meaning that runtimes agree on.
    """
    batch = _dim_along(node, request, 0)
    if batch is None or request.count < 2:
        return None
    return request.full([batch, *request.rng.integers(2, 6, size=request.count - 1).tolist()])


def regions(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Rows of the index of an image and the corners of a region in it: x1, y1, x2, y2."""
    images = request.dims(node.input[0])
    if images is None or len(images) != 4 or not min(images) or not request.shape or request.shape[-1] != 5:
        return None
    (batch, _, height, width), rows = images, request.count // 5
    high, wide = (np.sort(request.rng.integers(0, size, size=(rows, 2))) for size in (height, width))
    index = request.rng.integers(0, batch, size=rows)
    return request.full(np.stack([index, wide[:, 0], high[:, 0], wide[:, 1], high[:, 1]], axis=1).ravel().tolist())


def _lengths_along(axis: int, node: onnx.NodeProto, request: Request) -> Integers | None:
    """How much of each sequence counts."""
    total = _dim_along(node, request, axis)
    return request.full(request.rng.integers(1, total + 1, size=request.count).tolist()) if total else None


def _lengths_of_reversed(node: onnx.NodeProto, request: Request) -> Integers | None:
    return _lengths_along(_attribute(node, "time_axis", 0), node, request)


def _lengths_of_recurrent(node: onnx.NodeProto, request: Request) -> Integers | None:
    return _lengths_along(_attribute(node, "layout", 0), node, request)


_ROLES: Mapping[tuple[str, int], Make] = {
    ("Split", 1): _split_lengths,
    ("SplitToSequence", 1): _sequence_lengths,
    ("Loop", 0): small(2, 4),
    ("Reshape", 1): reshape_target,
    ("Expand", 1): expand_target,
    ("Tile", 1): small(1, 3),
    ("Pad", 1): small(0, 2),
    ("TopK", 1): _top_k,
    ("ConstantOfShape", 0): small(2, 5),
    ("Range", 0): small(0, 1),
    ("Range", 1): small(4, 8),
    ("Range", 2): small(1, 2),
    ("OneHot", 0): _hot_indices,
    ("OneHot", 1): small(3, 8),
    ("EyeLike", 0): small(0, 1),
    ("Trilu", 1): small(-1, 1),
    ("CumSum", 1): one_axis,
    ("GatherND", 1): _gathered_tuples,
    ("ScatterND", 1): _scattered_tuples,
    ("AffineGrid", 1): _grid_sizes,
    ("RoiAlign", 2): _batch_indices,
    ("MaxRoiPool", 1): regions,
    ("ReverseSequence", 1): _lengths_of_reversed,
    ("LSTM", 4): _lengths_of_recurrent,
    ("GRU", 4): _lengths_of_recurrent,
    ("RNN", 4): _lengths_of_recurrent,
    ("Squeeze", 1): any_axes,
    ("Unsqueeze", 1): any_axes,
    ("Slice", 1): small(0, 1),
    ("Slice", 2): small(2, 5),
    ("Slice", 3): any_axes,
    ("Slice", 4): small(1, 1),
    ("SequenceAt", 1): small(0, 0),
    ("SequenceErase", 1): small(0, 0),
    ("SequenceInsert", 2): small(0, 0),
    ("ConcatFromSequence", 1): small(0, 0),
    ("Resize", 2): small(1, 2),
    ("Resize", 3): small(4, 6),
}
