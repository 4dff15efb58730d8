"""Draw other amounts for the inputs of a region: of iterations, elements of sequences, n-grams, equal elements, and
boxes that overlap more and less.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np
import onnx

from splitgraph.verification.models.model_files import scoped_nodes
from splitgraph.verification.regions.cut import cast_types
from splitgraph.verification.values import Array, Value

OpenAxes = Mapping[str, Collection[int]]
_COUNTS = (0, 1, 2, 8, 20)
# Larger constants are no limits of iterations, and of the others so many are tried.
_MOST_COUNT, _MOST_LIMITS = 1000, 4
# Sequences have each number of elements up to the first, and those around constants up to the second.
_FEW_ELEMENTS, _MOST_ELEMENTS = 32, 4096
# N-grams are counted in texts of so many items, so many of them.
_LONGEST_PART, _MOST_PARTS = 2**14, 12
# So many equal elements are drawn.
_REPETITIONS = (8, 128)
# So many boxes overlap, each a part of its side away from the next.
_BOXES, _SHIFTS = 16, (0.05, 0.15, 0.4)

# The first lengths that these types do not hold, and one more.
_TYPE_ENDS: Mapping[int, int] = {
    onnx.TensorProto.INT8: 129,
    onnx.TensorProto.UINT8: 257,
    onnx.TensorProto.INT16: 2**15 + 1,
    onnx.TensorProto.UINT16: 2**16 + 1,
    onnx.TensorProto.BFLOAT16: 259,
    onnx.TensorProto.FLOAT16: 2051,
}
# Operators whose results may be larger the longer what they read is.
_GROWING = frozenset(
    {"ArgMax", "ArgMin", "CumSum", "NonZero", "ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceProd"}
    | {"ReduceSum", "ReduceSumSquare", "TopK"}
)
# So many lengths are drawn, none of them longer.
_MOST_LENGTHS, _LONGEST_DRAWN = 6, 2**17


def draw_counts(
    model: onnx.ModelProto, base: Mapping[str, Value], constants: Iterable[float]
) -> Iterator[dict[str, Value]]:
    """Yield numbers of iterations for loops, those beyond the constants of a region among them."""
    limits = sorted(
        {int(number) for number in constants if number.is_integer() and _COUNTS[-1] <= number < _MOST_COUNT}
    )
    for node in model.graph.node:
        count = base.get(node.input[0]) if node.op_type == "Loop" and node.input else None
        if isinstance(count, np.ndarray):
            beyond = (limit + 2 for limit in limits[:_MOST_LIMITS])
            yield from ({node.input[0]: np.full_like(count, number)} for number in (*_COUNTS, *beyond))


def draw_sequences(
    base: Mapping[str, Value], constants: Iterable[float], open_axes: OpenAxes
) -> Iterator[dict[str, Value]]:
    """Yield sequences of few and of many elements, of as many as the constants of a region, and of one more and less;
    each with the positions of its last element and its first one. open_axes: see `draw_longer`.
    """
    limits = [int(number) + more for number in constants if 0 < number <= _MOST_ELEMENTS for more in (0, 1, 2, -1)]
    places = {name: value for name, value in base.items() if name in open_axes and _is_place(value)}
    for name, value in ((name, value) for name, value in base.items() if 0 in open_axes.get(name, ())):
        for count in dict.fromkeys((*range(_FEW_ELEMENTS + 1), *limits)) if isinstance(value, list) and value else ():
            longer = {name: [_element(value, index) for index in range(count)]}
            yield longer
            for end in (count - 1, -count) if places and count else ():
                yield longer | {place: np.full_like(number, end) for place, number in places.items()}


def _element(sequence: Sequence[Value], index: int) -> Value:
    """Return an element of a sequence that goes on with others than it has."""
    again, place = divmod(index, len(sequence))
    element = sequence[place]
    is_number = isinstance(element, np.ndarray) and element.dtype.kind in "fiu"
    return (element + np.asarray(again).astype(element.dtype)).astype(element.dtype) if is_number else element


def _is_place(value: Value) -> bool:
    return isinstance(value, np.ndarray) and value.dtype in (np.int32, np.int64) and value.size == 1


def draw_longer(
    models: Sequence[onnx.ModelProto], free: Mapping[str, Array], open_axes: OpenAxes, lengths: Iterable[int]
) -> Iterator[dict[str, Value]]:
    """Yield n-grams, equal elements and boxes that overlap, more than there were; and what adds up, or is
    searched, at other lengths. open_axes: of the inputs that may get other sizes, the axes along which they may.
    """

    def along(axis: int) -> dict[str, Array]:
        return {name: value for name, value in free.items() if (axis % (value.ndim or 1)) in open_axes.get(name, ())}

    yield from _n_grams(models, along(-1))
    yield from _repeated(models, along(0))
    yield from _boxes(models, along(-2), along(-1))
    if any(adds_up(node) for model in models for node, _ in scoped_nodes(model)):
        yield from _lengthened(free, open_axes, lengths)


def lengths_beyond(models: Sequence[onnx.ModelProto], constants: Iterable[float]) -> list[int]:
    """Return lengths beyond the constants of a region, and beyond the narrow types of one of its models."""
    numbers = (int(number) + 2 for number in constants if 1 < number < _LONGEST_DRAWN)
    return list(dict.fromkeys((*sorted(beyond_types(models)), *numbers)))[:_MOST_LENGTHS]


def _lengthened(free: Mapping[str, Array], open_axes: OpenAxes, lengths: Iterable[int]) -> Iterator[dict[str, Value]]:
    """Yield longer values: of ones, and of zeros with a one at their end. Inputs get the same length along an axis."""
    numbers = {name: value for name, value in free.items() if value.dtype.kind in "biuf" and value.ndim}
    axes = {axis for name in numbers for axis in open_axes.get(name, ())}
    for axis, length in itertools.product(sorted(axes), lengths):
        ones, peaks = dict[str, Value](), dict[str, Value]()
        for name in (name for name in numbers if axis in open_axes.get(name, ())):
            shape = [length if place == axis else size for place, size in enumerate(numbers[name].shape)]
            if math.prod(shape) <= _LONGEST_DRAWN:
                ones[name] = np.ones(shape, numbers[name].dtype)
                peak = np.zeros(shape, numbers[name].dtype)
                peak[(slice(None),) * axis + (-1,)] = 1
                peaks[name] = peak
        yield from (made for made in (ones, peaks) if made)


def _n_grams(models: Iterable[onnx.ModelProto], free: Mapping[str, Array]) -> Iterator[dict[str, Value]]:
    """Yield the n-grams that a model counts, with as many other items between their items as it skips, and one more."""
    for node in (node for model in models for node, _ in scoped_nodes(model) if node.op_type == "TfIdfVectorizer"):
        told = (each for each in node.attribute if not each.ref_attr_name)
        held = {each.name: onnx.helper.get_attribute_value(each) for each in told}
        texts = [text.decode("utf-8", "replace") for text in held.get("pool_strings", ())]
        pool = np.array(texts, dtype=object) if texts else np.array(held.get("pool_int64s", ()))
        value = free.get(node.input[0])
        if value is None or not pool.size or not value.size:
            continue
        other = "" if texts else pool.max() + 1
        for skipped in range(held.get("max_skip_count", 0) + 2):
            spaced = np.full((pool.size, skipped + 1), other, pool.dtype)
            spaced[:, 0] = pool
            # Twice, because some modes do not count.
            flat = np.tile(spaced.ravel(), 2).astype(value.dtype)
            # The counts do not tell how many items there were.
            for start in range(0, flat.size, _LONGEST_PART)[:_MOST_PARTS]:
                some = flat[start : start + _LONGEST_PART]
                yield {node.input[0]: np.broadcast_to(some, (*value.shape[:-1], some.size)).copy()}


def _repeated(models: Iterable[onnx.ModelProto], free: Mapping[str, Array]) -> Iterator[dict[str, Value]]:
    """Yield equal elements, more than there were, for what a Unique counts."""
    uniques = (node for model in models for node, _ in scoped_nodes(model) if node.op_type == "Unique")
    for name in {node.input[0] for node in uniques} & free.keys():
        if free[name].ndim == 1:
            yield from ({name: np.repeat(free[name][:1], count)} for count in _REPETITIONS)


def _boxes(
    models: Iterable[onnx.ModelProto], places: Mapping[str, Array], values: Mapping[str, Array]
) -> Iterator[dict[str, Value]]:
    """Yield boxes for what a NonMaxSuppression selects, each beside the one before: by their corners, and centres."""
    nodes = (node for model in models for node, _ in scoped_nodes(model) if node.op_type == "NonMaxSuppression")
    for boxes, scores in {(node.input[0], node.input[1]) for node in nodes}:
        if boxes not in places or scores not in values:
            continue
        for shift in _SHIFTS:
            start = shift * np.arange(_BOXES)[:, np.newaxis] * np.array([1.0, 0.5])
            falling = np.linspace(1, 0.1, _BOXES).astype(values[scores].dtype)
            told = np.broadcast_to(falling, (*values[scores].shape[:-1], _BOXES)).copy()
            for sides in (start + 1, np.ones_like(start), 1 + start % 1):
                made = np.concatenate([start, sides], axis=1).astype(places[boxes].dtype)
                yield {boxes: np.broadcast_to(made, (*places[boxes].shape[:-2], *made.shape)).copy(), scores: told}


def beyond_types(models: Sequence[onnx.ModelProto]) -> set[int]:
    """Return lengths beyond the ends of narrow types that one of two models casts to."""
    one, other = map(cast_types, models)
    return {_TYPE_ENDS[dtype] for dtype in one ^ other if dtype in _TYPE_ENDS}


def adds_up(node: onnx.NodeProto) -> bool:
    """Return True if a node adds up elements, or says where one of them is: the result grows with a length."""
    return node.op_type in _GROWING
