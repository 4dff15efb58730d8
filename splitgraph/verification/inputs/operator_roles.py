"""Choose valid lengths, axes, indices and sizes for the inputs of ONNX operators and of OpenVINO layers.

OpenVINO checks few of them, and reads beyond the data if they are wrong.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import onnx

from splitgraph.model.schemas import kinds
from splitgraph.verification.models.model_files import is_default_domain

Integers = npt.NDArray[np.int64]
Shape = Sequence[int]
ShapeOf = Callable[[str], "Shape | None"]
Make = Callable[[onnx.NodeProto, "Request"], "Integers | None"]

# Operators whose first input's dimension along `axis` bounds the indices in their second.
_INDEXING = (kinds.READS_AT | kinds.WRITES_AT) - {"GatherND", "ScatterND"}
# From this opset on, OneHot counts negative indices from the end. The depth if it is unknown.
_ONE_HOT_FROM_THE_END = 11
_SOME_DEPTH = 4
# The first dimensions of an image: batch and channels.
_NOT_RESIZED = 2


@dataclass(frozen=True, slots=True)
class Request:
    """Asks for the elements of an input.

    shape: None if the role decides it. dims: returns the shape of a value in this case, None if unknown. axes: of the
    splits, by their outputs. opset: of ai.onnx, 0 if the model does not import it.
    """

    shape: Shape | None
    rng: np.random.Generator
    dims: ShapeOf
    axes: Mapping[tuple[str, ...], int]
    opset: int

    @property
    def count(self) -> int:
        """Return the number of elements."""
        return int(np.prod(self.shape or (), dtype=np.int64))

    def full(self, values: Iterable[int]) -> Integers | None:
        """Return the values in the wanted shape; None if their number does not fit."""
        array = np.array(list(values), dtype=np.int64)
        if self.shape is None:
            return array
        return array.reshape(tuple(self.shape)) if array.size == self.count else None


def for_operator(node: onnx.NodeProto, position: int, request: Request) -> Integers | None:
    """Return valid numbers for an input of an operator; None if any number is valid, or the shape does not fit."""
    make = _maker_of(node, position)
    return None if make is None else make(node, request)


def has_operator_role(node: onnx.NodeProto, position: int) -> bool:
    """Return True if only some numbers are valid for an input of an operator."""
    return _maker_of(node, position) is not None


def _maker_of(node: onnx.NodeProto, position: int) -> Make | None:
    if not is_default_domain(node.domain):
        return _ROLES_OF_ONNXRUNTIME.get((node.op_type, position)) if node.domain == "com.microsoft" else None
    make = _ROLES.get((node.op_type, position))
    if make is None and node.op_type in _INDEXING and position == 1:
        make = _indices
    if make is None and node.op_type in kinds.REDUCES and position == 1:
        make = any_axes
    return make


def compose(total: int, parts: int, rng: np.random.Generator) -> list[int]:
    """Split a number into random parts with this sum, each at least 1 if possible."""
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
    if not request.shape:  # a scalar, or an unknown rank: the size of a chunk
        return np.array(request.rng.integers(1, max(total, 1) + 1), dtype=np.int64)
    return request.full(compose(total, request.count, request.rng)) if request.count else None


def _indices(node: onnx.NodeProto, request: Request) -> Integers | None:
    dim = _dim_along(node, request, _attribute(node, "axis", 0))
    if not dim or request.shape is None:
        return None
    if node.op_type.startswith("Scatter") and request.count <= dim and len(request.shape) <= 1:
        return request.rng.permutation(dim)[: request.count].reshape(
            request.shape
        )  # the order of equal indices is undefined
    return request.rng.integers(0, dim, size=request.shape)


def tuples(node: onnx.NodeProto, request: Request, leading: int) -> Integers | None:
    """Return indices whose last dimension is a position in the data of a node, after so many leading dimensions.

    If there are enough positions, none repeats, because the order of two writes to one position is undefined.
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


def scattered_tuples(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Return positions in the data of a scatter."""
    return tuples(node, request, 0)


def any_axes(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Return as many different axes as the request has elements; for Squeeze, axes of length 1."""
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
    """Return any axis."""
    shape = request.dims(node.input[0])
    return None if not shape else request.full(request.rng.integers(0, len(shape), size=request.count).tolist())


def _declared(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Return the shape that the result of a node is declared to have; None if that is not known, or does not fit."""
    wanted = request.dims(node.output[0])
    return None if wanted is None or request.shape is None else request.full(wanted)


def _as_declared(otherwise: Make) -> Make:
    """Return the declared shape of the result, or else what another function returns."""

    def make(node: onnx.NodeProto, request: Request) -> Integers | None:
        wanted = _declared(node, request)
        return otherwise(node, request) if wanted is None else wanted

    return make


def _declared_reshape(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Return the declared shape of the result if the data has as many elements."""
    shape, wanted = request.dims(node.input[0]), _declared(node, request)
    fits = shape is not None and wanted is not None and math.prod(shape) == math.prod(wanted.tolist())
    return wanted if fits else reshape_target(node, request)


def _repeats(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Return how often a Tile repeats its data: as its result is declared, or up to three times."""
    shape, wanted = request.dims(node.input[0]), _declared(node, request)
    if shape is None or wanted is None or not all(shape) or len(shape) != len(wanted):
        return small(1, 3)(node, request)
    return request.full([most // least for most, least in zip(wanted.tolist(), shape, strict=True)])


def _resized(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Return the sizes that a Resize gives: as declared, or other ones than those of the data but for batch and
    channels, which few runtimes resize.
    """
    axes = next((list(a.ints) for a in node.attribute if a.name == "axes"), None)
    known = [request.dims(name) for name in (node.output[0], node.input[0])]
    wanted, given = ([dims[axis] for axis in axes] if axes and dims else dims for dims in known)
    if wanted is not None and len(wanted) == request.count:
        return request.full(wanted)
    sizes = request.rng.integers(4, 7, size=request.count).tolist()
    is_image = given is not None and len(given) == request.count > _NOT_RESIZED and not axes
    return request.full([*given[:_NOT_RESIZED], *sizes[_NOT_RESIZED:]] if given is not None and is_image else sizes)


def _factors(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Return by how much an image grows: not at all along batch and channels."""
    factors = request.rng.integers(1, 3, size=request.count).tolist()
    kept = _NOT_RESIZED if request.count > _NOT_RESIZED else 0
    return request.full([1] * kept + factors[kept:])


def reshape_target(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Return the same shape if its rank fits, else a shape with all elements in the last dimension."""
    shape = request.dims(node.input[0])
    if request.shape is None or not request.count:
        return None
    if shape is not None and len(shape) == request.count:
        return request.full(shape)
    return request.full([1] * (request.count - 1) + [-1])


def expand_target(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Return a shape that the data of the node broadcasts to."""
    shape = request.dims(node.input[0])
    if request.shape is None or shape is None:
        return None
    padded = [2] * (request.count - len(shape)) + [3 if dim == 1 else dim for dim in shape]
    return request.full(padded[len(padded) - request.count :])


def small(low: int, high: int) -> Callable[[onnx.NodeProto, Request], Integers | None]:
    """Return numbers from `low` to `high`, for any operator."""
    return lambda _, request: request.full(request.rng.integers(low, high + 1, size=request.count).tolist())


def _top_k(node: onnx.NodeProto, request: Request) -> Integers | None:
    axis = _attribute(node, "axis", -1)
    dim, wanted = _dim_along(node, request, axis), _dim_of(node.output[0], request, axis)
    return request.full([int(request.rng.integers(1, max(dim or 1, 1) + 1)) if wanted is None else wanted])


def _hot_indices(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Return indices for OneHot below opset 11: not negative, because onnxruntime counts those from the end. One index
    may be too large, which gives no hot value. From opset 11 on, any index is valid.
    """
    if request.opset >= _ONE_HOT_FROM_THE_END:
        return None
    depth = _dim_of(node.output[0], request, _attribute(node, "axis", -1))
    last = _SOME_DEPTH if depth is None else depth
    return request.full(request.rng.integers(0, last + 1, size=request.count).tolist())


def _batch_indices(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Return the index of an image in the batch for each region."""
    count = _dim_along(node, request, 0)
    return request.full(request.rng.integers(0, count, size=request.count).tolist()) if count else None


def _grid_sizes(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Return the sizes of the images: one image for each matrix, with at least two rows and columns, because runtimes
    disagree about align_corners in a single row or column.
    """
    batch = _dim_along(node, request, 0)
    if batch is None or request.count < 2:
        return None
    return request.full([batch, *request.rng.integers(2, 6, size=request.count - 1).tolist()])


def regions(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Return rows with the index of an image and the corners of a region in it: x1, y1, x2, y2."""
    images = request.dims(node.input[0])
    if images is None or len(images) != 4 or not min(images) or not request.shape or request.shape[-1] != 5:
        return None
    (batch, _, height, width), rows = images, request.count // 5
    high, wide = (np.sort(request.rng.integers(0, size, size=(rows, 2))) for size in (height, width))
    index = request.rng.integers(0, batch, size=rows)
    return request.full(np.stack([index, wide[:, 0], high[:, 0], wide[:, 1], high[:, 1]], axis=1).ravel().tolist())


def _lengths_along(axis: int, node: onnx.NodeProto, request: Request) -> Integers | None:
    """Return the used length of each sequence."""
    total = _dim_along(node, request, axis)
    return request.full(request.rng.integers(1, total + 1, size=request.count).tolist()) if total else None


def _lengths_of_recurrent(node: onnx.NodeProto, request: Request) -> Integers | None:
    return _lengths_along(_attribute(node, "layout", 0), node, request)


def _all_of_cache(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Return how many positions attention sees with its cache: those of it, and the new ones."""
    new = next((size for name in node.input[:3] if (size := _dim_of(name, request, 1)) is not None), None)
    past = _dim_of(node.input[3], request, 2) if node.input[3] else 0
    return None if new is None or past is None else request.full([new + past] * request.count)


def _last_of_cache(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Return the last position that counts of each item. With a cache it is one before the end: a cache of a fixed
    length, whose new positions overwrite old ones, has no more.
    """
    total = _all_of_cache(node, request)
    return None if total is None else np.maximum(total - (2 if node.input[3] else 1), 0)


_ROLES: Mapping[tuple[str, int], Make] = {
    ("Split", 1): _split_lengths,
    ("SplitToSequence", 1): _sequence_lengths,
    ("Loop", 0): small(2, 4),
    ("Reshape", 1): _declared_reshape,
    ("Expand", 1): _as_declared(expand_target),
    ("Tile", 1): _repeats,
    ("Pad", 1): small(0, 2),
    ("TopK", 1): _top_k,
    ("ConstantOfShape", 0): _as_declared(small(2, 5)),
    ("Range", 0): small(0, 1),
    ("Range", 1): small(4, 8),
    ("Range", 2): small(1, 2),
    ("OneHot", 0): _hot_indices,
    ("OneHot", 1): small(3, 8),
    ("EyeLike", 0): small(0, 1),
    ("Trilu", 1): small(-1, 1),
    ("CumSum", 1): one_axis,
    ("GatherND", 1): lambda node, request: tuples(node, request, _attribute(node, "batch_dims", 0)),
    ("ScatterND", 1): scattered_tuples,
    ("AffineGrid", 1): _grid_sizes,
    ("RoiAlign", 2): _batch_indices,
    ("MaxRoiPool", 1): regions,
    ("ReverseSequence", 1): lambda node, request: _lengths_along(_attribute(node, "time_axis", 0), node, request),
    **{(name, 4): _lengths_of_recurrent for name in sorted(kinds.RECURRENT)},
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
    ("Resize", 2): _factors,
    ("Resize", 3): _resized,
    ("Upsample", 1): _factors,
}
_ROLES_OF_ONNXRUNTIME: Mapping[tuple[str, int], Make] = {
    ("GroupQueryAttention", 5): _last_of_cache,
    ("GroupQueryAttention", 6): _all_of_cache,
}


def for_layer(node: onnx.NodeProto, position: int, request: Request) -> Integers | None:
    """Return valid numbers for an input of a layer; None if any number is valid, or the shape does not fit."""
    make = _LAYER_ROLES.get((node.op_type, position))
    if make is None and node.op_type in kinds.REDUCES and position == 1:
        make = any_axes
    return None if make is None else make(node, request)


def has_layer_role(node: onnx.NodeProto, position: int) -> bool:
    """Return True if only some numbers are valid for an input of a layer."""
    return (node.op_type, position) in _LAYER_ROLES or (node.op_type in kinds.REDUCES and position == 1)


def _number(node: onnx.NodeProto, name: str, default: int = 0) -> int:
    """Read an integer attribute of a layer, which the mirror of an IR holds as text."""
    text = next((a.s for a in node.attribute if a.name == name), b"").decode("ascii", "replace").strip()
    return int(text) if text.removeprefix("-").isdecimal() else default


def _layer_split_axis(node: onnx.NodeProto, request: Request) -> Integers | None:
    shape = request.dims(node.input[0])
    return request.full([request.axes.get(tuple(node.output), len(shape) - 1)]) if shape else None


def _below(node: onnx.NodeProto, request: Request, axis: int | None, least: int = 0) -> Integers | None:
    """Return numbers from `least` on that are positions along an axis of the data, or along every axis (None)."""
    shape = request.dims(node.input[0])
    if not shape or (axis is not None and not -len(shape) <= axis < len(shape)):
        return None
    bound = min(shape) if axis is None else shape[axis]
    return request.full(request.rng.integers(least, bound + least, size=request.count).tolist()) if bound else None


def _along_the_first_axis(node: onnx.NodeProto, request: Request) -> Integers | None:
    return _below(node, request, 0)


def _written_places(node: onnx.NodeProto, request: Request) -> Integers | None:
    """Return positions along an unknown axis. If there are enough positions, none repeats along any axis, because the
    order of two writes to one position is undefined.
    """
    shape = request.dims(node.input[0])
    if not shape or not min(shape) or request.shape is None:
        return None
    places = np.indices(tuple(request.shape)).sum(axis=0) + int(request.rng.integers(min(shape)))
    return request.full((places % min(shape)).ravel().tolist())


def _layer_lengths_along(name: str, default: int) -> Make:
    """Return lengths of sequences along an axis that an attribute names."""
    return lambda node, request: _below(node, request, _number(node, name, default), least=1)


_LAYER_ROLES: Mapping[tuple[str, int], Make] = {
    ("Split", 1): _layer_split_axis,
    ("Gather", 1): lambda node, request: _below(node, request, None),
    ("GatherElements", 1): lambda node, request: _below(node, request, _number(node, "axis")),
    ("GatherND", 1): lambda node, request: tuples(node, request, _number(node, "batch_dims")),
    ("ScatterUpdate", 1): _written_places,
    ("ScatterElementsUpdate", 1): _written_places,
    ("ScatterNDUpdate", 1): scattered_tuples,
    ("EmbeddingBagOffsetsSum", 1): _along_the_first_axis,
    ("EmbeddingBagPackedSum", 1): _along_the_first_axis,
    ("EmbeddingSegmentsSum", 1): _along_the_first_axis,
    ("ROIAlign", 2): _along_the_first_axis,
    ("ROIPooling", 1): regions,
    ("ReverseSequence", 1): _layer_lengths_along("seq_axis", 1),
    ("GRUSequence", 2): _layer_lengths_along("sequence_axis", 1),
    ("RNNSequence", 2): _layer_lengths_along("sequence_axis", 1),
    ("LSTMSequence", 3): _layer_lengths_along("sequence_axis", 1),
    ("TopK", 1): lambda node, request: _below(node, request, _number(node, "axis", -1), least=1),
    ("Reshape", 1): reshape_target,
    ("Broadcast", 1): expand_target,
    ("Transpose", 1): lambda node, request: request.full(request.rng.permutation(request.count).tolist()),
    ("Squeeze", 1): any_axes,
    ("Unsqueeze", 1): any_axes,
    ("CumSum", 1): one_axis,
    ("Tile", 1): small(1, 3),
    ("Pad", 1): small(0, 1),
    ("Pad", 2): small(0, 1),
    ("OneHot", 1): small(3, 8),
    ("Slice", 1): small(0, 1),
    ("Slice", 2): small(2, 5),
    ("Slice", 3): small(1, 1),
    ("Slice", 4): any_axes,
    ("StridedSlice", 1): small(0, 1),
    ("StridedSlice", 2): small(2, 5),
    ("StridedSlice", 3): small(1, 1),
    ("Range", 0): small(0, 1),
    ("Range", 1): small(4, 8),
    ("Range", 2): small(1, 2),
}
