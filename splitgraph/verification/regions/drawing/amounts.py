"""Draw other amounts for the inputs of a region: of iterations, elements of sequences, n-grams, equal elements, boxes
that overlap more and less, and elements along an axis.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import onnx

from splitgraph.model.schemas import kinds
from splitgraph.verification.models.model_files import scoped_nodes
from splitgraph.verification.regions.finding.cut import cast_types
from splitgraph.verification.values import Array, Value

# Of inputs that may get other sizes, the axes along which they may.
OpenAxes = Mapping[str, Collection[int]]
# Axes of inputs that have one size, which is a name of the model's inputs.
NamedAxes = Sequence[OpenAxes]
_COUNTS = (0, 1, 2, 8, 20)
# Larger constants are no limits of iterations, and of the others so many are tried.
_MOST_COUNT, _MOST_LIMITS = 4096, 4
# From so many fractions at most, lengths are computed. They are moved by parts of 1.
_FEW_FRACTIONS, _PARTS = 8, (0.5, -0.5, 0.3, -0.3, 0.8)
# Sequences have each number of elements up to the first, and those around constants up to the second.
_FEW_ELEMENTS, _MOST_ELEMENTS = 32, 4096
# N-grams are counted in texts of so many items, so many of them.
_LONGEST_PART, _MOST_PARTS = 2**14, 12
# So many equal elements are drawn.
_REPETITIONS = (8, 128)
# So many boxes overlap, each a part of its side away from the next.
_BOXES, _SHIFTS = 16, (0.05, 0.15, 0.4)

# The first lengths that these types do not hold, and one more.
_TYPE_ENDS: Mapping[int, Sequence[int]] = {
    onnx.TensorProto.INT8: (129,),
    onnx.TensorProto.UINT8: (257,),
    onnx.TensorProto.INT16: (2**15 + 1,),
    onnx.TensorProto.UINT16: (2**16 + 1,),
    onnx.TensorProto.BFLOAT16: (257, 258),
    onnx.TensorProto.FLOAT16: (2049, 2050),
}
# Operators whose results may be larger the longer what they read is.
_GROWING = kinds.ARG_REDUCES | kinds.REDUCES - kinds.ORDERED - {"ReduceMean"}
_GROWING |= kinds.names("CumSum Einsum Gemm MatMul NonZero TopK")
# So many lengths are drawn, of so many elements, filled with so many constants and words.
_MOST_LENGTHS, _LONGEST_DRAWN, _MOST_FILLS = 8, 2**17, 3


def draw_counts(
    models: Sequence[onnx.ModelProto], base: Mapping[str, Value], constants: Iterable[float]
) -> Iterator[dict[str, Value]]:
    """Yield numbers of iterations for loops, those beyond the constants of a region and beyond narrow types among them.
    models: before and after.
    """
    limits = sorted(
        {int(number) for number in constants if number.is_integer() and _COUNTS[-1] <= number < _MOST_COUNT}
    )
    beyond = [limit + 2 for limit in limits[:_MOST_LIMITS]]
    beyond += sorted(end for end in beyond_types(models) if end < _MOST_COUNT)
    loops = (node for model in models for node in model.graph.node if node.op_type == "Loop" and node.input)
    for name in dict.fromkeys(node.input[0] for node in loops):
        count = base.get(name)
        if isinstance(count, np.ndarray):
            yield from ({name: np.full_like(count, number)} for number in dict.fromkeys((*_COUNTS, *beyond)))


def draw_fractions(said: Mapping[str, Value]) -> Iterator[dict[str, Value]]:
    """Yield fractions near those from which lengths, scales and numbers of iterations are computed."""
    for name, value in said.items():
        if isinstance(value, np.ndarray) and value.dtype.kind == "f" and 0 < value.size <= _FEW_FRACTIONS:
            yield from ({name: (value + part).astype(value.dtype)} for part in _PARTS)
            yield from ({name: (value * part).astype(value.dtype)} for part in (0.5, 1.5))


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
    models: Sequence[onnx.ModelProto], free: Mapping[str, Array], open_axes: OpenAxes
) -> Iterator[dict[str, Value]]:
    """Yield n-grams, equal elements and boxes that overlap, more than there were."""

    def along(axis: int) -> dict[str, Array]:
        return {name: value for name, value in free.items() if (axis % (value.ndim or 1)) in open_axes.get(name, ())}

    yield from _n_grams(models, along(-1))
    yield from _repeated(models, along(0))
    yield from _boxes(models, along(-2), along(-1))


def draw_lengths(
    models: Sequence[onnx.ModelProto],
    free: Mapping[str, Array],
    axes: tuple[OpenAxes, NamedAxes],
    constants: Collection[float],
    words: Sequence[str],
) -> Iterator[dict[str, Value]]:
    """Yield other lengths of what adds up, or is searched. axes: open and named ones; along an open axis, inputs get
    the same length. constants, words: of the region.
    """
    if not any(adds_up(node) for model in models for node, _ in scoped_nodes(model)):
        return
    open_axes, named = axes
    places = sorted({axis for own in open_axes.values() for axis in own})
    alike = ({name: (axis,) for name, own in open_axes.items() if axis in own} for axis in places)
    groups = list[OpenAxes]()
    for group in (*named, *alike):
        known = {name: tuple(sorted(own)) for name, own in group.items()}
        groups += [known] if known not in groups else []
    for group, length in itertools.product(groups, lengths_beyond(models, constants)):
        yield from _lengthened(free, group, length, constants, words)


def lengths_beyond(models: Sequence[onnx.ModelProto], constants: Iterable[float]) -> list[int]:
    """Return lengths beyond the constants of a region, and beyond the narrow types of one of its models."""
    numbers = (int(number) + 2 for number in constants if 1 < number < _LONGEST_DRAWN)
    return list(dict.fromkeys((*sorted(beyond_types(models)), *numbers)))[:_MOST_LENGTHS]


def _lengthened(
    free: Mapping[str, Array], group: OpenAxes, length: int, constants: Iterable[float], words: Sequence[str]
) -> Iterator[dict[str, Value]]:
    """Yield inputs of another length: each filled with one number or word, and with another one at its end."""
    shapes = {
        name: tuple(length if axis in group[name] else size for axis, size in enumerate(value.shape))
        for name, value in free.items()
        if group.get(name)
    }
    if len(shapes) < len(group) or any(math.prod(shape) > _LONGEST_DRAWN for shape in shapes.values()):
        return
    limits = sorted({number for number in constants if 1 < abs(number) < _LONGEST_DRAWN})
    numbers = [1, *(limit + 1 for limit in limits[-1:]), *limits[:_MOST_FILLS]]
    for number, word in itertools.zip_longest(numbers, words[: _MOST_FILLS + 1]):
        pairs = ((name, _element_of(free[name].dtype, number, word)) for name in shapes)
        made = {
            name: np.full(shapes[name], element, free[name].dtype) for name, element in pairs if element is not None
        }
        if made:
            yield dict(made)
    counted = [name for name in shapes if free[name].dtype.kind in "biuf"]
    for common in (0, 1) if counted else ():
        peaks = {name: np.full(shapes[name], common, free[name].dtype) for name in counted}
        for name, peak in peaks.items():
            peak[tuple(-1 if axis in group[name] else slice(None) for axis in range(peak.ndim))] = 1 - common
        yield dict(peaks)


def _element_of(dtype: np.dtype[Any], number: float | None, word: str | None) -> Any:
    """Return a number or a word in a type; None if there is none."""
    if dtype.kind in "OUS":
        return word
    if number is None or dtype.kind == "c":
        return None
    if dtype.kind not in "iu":
        return number
    info = np.iinfo(dtype)
    return int(number) if info.min <= number <= info.max else None


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
    return {end for dtype in one ^ other for end in _TYPE_ENDS.get(dtype, ())}


def adds_up(node: onnx.NodeProto) -> bool:
    """Return True if a node adds up elements, or says where one of them is: the result grows with a length."""
    return node.op_type in _GROWING
