"""The factors of what a node reads: what its lists of numbers say, broadcasting, and open dimensions.

Open dimensions are told relative to what the node reads: `along` (the axis, the reduced or the moved ones), `before` it
and `behind` it. Where a node reads no axis, `dims` tells of all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from splitgraph.dim import Dim
from splitgraph.model.onnx_proto import NodeProto
from splitgraph.model.schemas import kinds
from splitgraph.model.value_type import UNKNOWN, Contents, ValueType
from splitgraph.runtimes.seen_values import BEFORE_THE_RUN, Seen, are_sizes, attribute, is_joined, listed, place
from splitgraph.splits.slices import OPEN_END

# Data whose spatial dimensions a node reads, behind batch and channels.
_OF_IMAGES = kinds.CONVOLUTIONS | kinds.SPATIAL | kinds.names("AffineGrid Col2Im DepthToSpace RoiAlign SpaceToDepth")
# Operators that read a list of axes, and those that read all if there is no list.
_WITH_AXES = kinds.REDUCES | kinds.names("MeanVarianceNormalization Pad Slice Squeeze Unsqueeze")
# Their other input is a list of lengths or a number.
_OF_LENGTHS = frozenset({"Split", "SplitToSequence"})
# Their inputs say what they say by their values, and are broadcast by no rule of NumPy.
_ELEMENTWISE = kinds.BROADCASTS | {"PRelu"}
Found = Iterator[tuple[str, str]]


def factors_of_lists(node: NodeProto, data: ValueType, seen: Seen) -> Found:
    """Yield what the lists of a node say, how its inputs are broadcast, and which dimensions are open."""
    reader = _READERS.get(node.op_type)
    if reader is not None:
        yield from reader(node, data, seen)
    if node.op_type in _WITH_AXES:
        yield from _of_axes(node, data, seen)
    if node.op_type in _ELEMENTWISE and len(node.input) > 1:
        yield "broadcast", _broadcast(node, seen)
    yield from _of_dims(node, data, seen)


def _integers(node: NodeProto, name: str, position: int, seen: Seen) -> Sequence[int] | None:
    """Return a list that is an attribute or an input, None where it is left out or not known."""
    held = attribute(node, name)
    if held is not None:
        return list(held.ints)
    contents = _contents(node, position, seen)
    return None if contents is None else contents.integers


def _contents(node: NodeProto, position: int, seen: Seen) -> Contents | None:
    name = node.input[position] if 0 <= position < len(node.input) else ""
    return seen.contents(name) if name and seen.how(name) in BEFORE_THE_RUN else None


# Which axes -----------------------------------------------------------------------------------------------------------


def _axes(node: NodeProto, rank: int | None, seen: Seen) -> Sequence[int] | None:
    """Return the axes that a list names; None where nothing names them, or only the run does."""
    position = 3 if node.op_type in ("Slice", "Pad") else 1
    axes = _integers(node, "axes", position, seen)
    if axes is None and node.op_type == "Slice" and len(node.input) < 4:
        starts = _integers(node, "starts", 1, seen)
        axes = None if starts is None else list(range(len(starts)))
    return axes


def _of_axes(node: NodeProto, data: ValueType, seen: Seen) -> Found:
    held = attribute(node, "axes")
    if held is not None:
        yield "axes", "attribute"
    elif node.op_type == "Squeeze" and (len(node.input) < 2 or not node.input[1]):
        yield "axes", "absent"
    axes = _axes(node, data.rank, seen)
    if axes is None or (held is None and node.op_type == "Pad" and len(node.input) < 4):
        return
    yield "axes.count", "none" if not axes else "one" if len(axes) == 1 else "two" if len(axes) == 2 else "more"
    if axes:
        yield "axes.sign", "negative" if min(axes) < 0 else "positive"
    rank = data.rank
    if rank is not None and node.op_type == "Unsqueeze":
        rank += len(axes)
    if rank is not None and axes:
        places = {place(axis, rank) for axis in axes}
        for each in places:
            yield f"axes.{each}", "yes"


def _named_axes(node: NodeProto, data: ValueType, seen: Seen) -> set[int] | None:
    """Return the axes along which a node reads its data; None where it reads no axis, or nobody knows which."""
    rank = data.rank
    if rank is None:
        return None
    kind = node.op_type
    if kind in _OF_IMAGES:
        return set(range(min(2, rank), rank))
    if kind in kinds.RECURRENT:
        return {0}
    if kind in kinds.PRODUCTS:
        turned = attribute(node, "transA") if kind == "Gemm" else None
        return {0} if turned is not None and turned.i else {rank - 1}
    if kind == "LayerNormalization":
        held = attribute(node, "axis")
        first = -1 if held is None else held.i
        return set(range(first % rank if rank else 0, rank))
    if kind in _WITH_AXES:
        axes = _axes(node, rank, seen)
        if axes is None:
            return None
        return {axis % rank for axis in axes if rank} if kind != "Unsqueeze" else set()
    held = attribute(node, "axis")
    if held is not None and rank:
        return {held.i % rank}
    return {0} if kind in ("Gather", "Concat", "Split", "SplitToSequence") and rank else None


def _of_dims(node: NodeProto, data: ValueType, seen: Seen) -> Found:
    """Yield which dimensions are open: of the data relative to what is read, and of all other inputs together."""
    if data.shape is not None and seen.how(node.input[0] if node.input[0] else "") not in BEFORE_THE_RUN:
        read = _named_axes(node, data, seen)
        if read is None or not read:
            yield "dims", _open(data.shape)
            if data.shape:
                yield "dims.first", _open(data.shape[:1])
        else:
            first, last = min(read), max(read)
            yield "along", _open([dim for axis, dim in enumerate(data.shape) if axis in read])
            yield "before", _open(data.shape[:1] if node.op_type in _OF_IMAGES else data.shape[:first])
            if node.op_type in _OF_IMAGES:
                yield "channels", _open(data.shape[1:2])
            yield "behind", _open(data.shape[last + 1 :])
    others = [seen.type_of(name).shape for name in node.input[1:] if name and seen.how(name) not in BEFORE_THE_RUN]
    if others and node.op_type not in _OF_LENGTHS:
        yield "others", "open" if any(shape is None or _open(shape) == "open" for shape in others) else "fixed"


def _open(dims: Sequence[int | Dim | None]) -> str:
    return "fixed" if all(isinstance(dim, int) for dim in dims) else "open"


def _broadcast(node: NodeProto, seen: Seen) -> str:
    shapes = [seen.type_of(name).shape for name in node.input if name]
    if any(shape is None for shape in shapes):
        return "unknown"
    known = [shape for shape in shapes if shape is not None]
    if all(shape == known[0] for shape in known):
        return "no"
    full = max(known, key=len)
    if all(shape == full or all(dim == 1 for dim in shape) for shape in known):
        return "number first" if known[0] != full else "number"
    if known[0] == full and all(_fits(shape, full) for shape in known[1:]):
        return "others" if all(len(shape) == len(full) for shape in known) else "others of lower rank"
    if any(shape == full and all(_fits(each, full) for each in known) for shape in known):
        return "first" if all(len(shape) == len(full) for shape in known) else "first of lower rank"
    return "several"


def _fits(shape: Sequence[object], full: Sequence[object]) -> bool:
    """Return True where each dimension is 1 or that of the full shape, from the last one on."""
    ends = zip(reversed(shape), reversed(full), strict=False)
    return all(dim in (1, other) for dim, other in ends)


# What the lists of single operators say -------------------------------------------------------------------------------


def _of_slice(node: NodeProto, data: ValueType, seen: Seen) -> Found:
    yield "bounds", "attributes" if attribute(node, "starts") is not None else "inputs"
    starts, ends = _integers(node, "starts", 1, seen), _integers(node, "ends", 2, seen)
    steps = _integers(node, "steps", 4, seen)
    if starts:
        for sign in {_sign(start) for start in starts}:
            yield f"starts.{sign}", "yes"
    for end in ends or ():
        yield f"ends.{'open' if end >= OPEN_END else _sign(end)}", "yes"
    for step in steps or ():
        if step < 0 and seen.how(node.input[0]) in BEFORE_THE_RUN:
            # OpenCV 4 reverses constants when it reads the model, and no data.
            yield "steps.negative", "of constants"
        else:
            yield f"steps.{'1' if step == 1 else 'more' if step > 1 else 'negative'}", "yes"
    made = seen.type_of(node.output[0]) if node.output else UNKNOWN
    if 0 in (made.shape or ()) and 0 not in (data.shape or ()):
        # No dimension of a list of sizes is 0, although the list has no element.
        key = "sizes.empty" if are_sizes(node, seen) else "parts.empty"
        yield key, "joined" if is_joined(node.output[:1], seen) else "yes"
    if made.rank == 1 and "" in seen.readers(node.output[0]):
        # To an output of rank 1, some runtimes give another rank.
        yield "rank", "1 returned"


def _sign(number: int) -> str:
    return "negative" if number < 0 else "positive" if number else "zero"


def _of_identity(node: NodeProto, data: ValueType, seen: Seen) -> Found:
    is_vector = data.rank == 1 and data.shape != (1,)
    is_weight = seen.how(node.input[0]) in ("init", "node")
    if is_vector and is_weight and _ELEMENTWISE.intersection(seen.readers(node.output[0])):
        # A vector that is computed is a matrix of one column in some runtimes, which broadcast it in another way.
        yield "use.elementwise", "yes"


def _of_sequence_at(node: NodeProto, data: ValueType, seen: Seen) -> Found:
    position = _contents(node, 1, seen)
    if position is not None and position.integers:
        yield "position.sign", "negative" if position.integers[0] < 0 else "positive"


def _of_reshape(node: NodeProto, data: ValueType, seen: Seen) -> Found:
    held = attribute(node, "shape")
    name = node.input[1] if len(node.input) > 1 else ""
    if held is not None:
        numbers: Sequence[int] | None = list(held.ints)
    else:
        contents = seen.contents(name) if name else None
        numbers = None if contents is None else contents.integers
        length = seen.type_of(name).shape if name else None
        if numbers is None and length and isinstance(length[0], int):
            yield "to", str(length[0])
    if numbers is not None:
        yield "to", str(len(numbers))
        yield "zero", "yes" if 0 in numbers else "no"
        yield "rest", "yes" if -1 in numbers else "no"


def _of_flatten(node: NodeProto, data: ValueType, seen: Seen) -> Found:
    if sum(not isinstance(dim, int) for dim in data.shape or ()) > 1:
        # tract multiplies all dimensions, and no symbol with another one.
        yield "dims.open", "several"


def _of_concat(node: NodeProto, data: ValueType, seen: Seen) -> Found:
    hows = {seen.how(name) for name in node.input if name}
    held = attribute(node, "axis")
    before = None if held is None or data.shape is None else data.shape[: held.i]
    if "input" in hows and hows & BEFORE_THE_RUN and before is not None and not set(before) - {1}:
        # The inputs are parts of the result as it lies in memory. OpenCV makes an input of the graph one, and loses it.
        yield "inputs.input", "beside constants"


def _of_gather(node: NodeProto, data: ValueType, seen: Seen) -> Found:
    name = node.input[1] if len(node.input) > 1 else ""
    known = seen.type_of(name)
    if known.rank is not None:
        yield "indices.rank", str(known.rank)
    numbers = seen.contents(name) if name and seen.how(name) in BEFORE_THE_RUN else None
    if numbers is not None and numbers.integers:
        yield "indices.sign", "negative" if min(numbers.integers) < 0 else "positive"
    if known.rank == 1 and known.shape is not None:
        yield "indices.count", "one" if known.shape[0] == 1 else "more"


def _of_resize(node: NodeProto, data: ValueType, seen: Seen) -> Found:
    if attribute(node, "scales") is not None:
        return
    scales = 2 if len(node.input) > 2 else 1
    sizes = _contents(node, 3, seen)
    factors = _contents(node, scales, seen)
    if sizes is not None and sizes.integers is not None and data.shape is not None:
        ratios = [
            size / dim
            for size, dim in zip(sizes.integers[-2:], data.shape[-2:], strict=False)
            if isinstance(dim, int) and dim
        ]
    elif factors is not None:
        ratios = [float(item) for item in factors.items if isinstance(item, (int, float))]
    else:
        return
    if ratios:
        yield "ratio", "up" if min(ratios) >= 1 else "down" if max(ratios) <= 1 else "mixed"
        yield "whole", "yes" if all(ratio >= 1 and float(ratio).is_integer() for ratio in ratios) else "no"


def _of_pad(node: NodeProto, data: ValueType, seen: Seen) -> Found:
    pads = _integers(node, "pads", 1, seen)
    if pads:
        yield "pads.list", listed("pads", pads)


def _of_tile(node: NodeProto, data: ValueType, seen: Seen) -> Found:
    repeats = _contents(node, 1, seen)
    if repeats is not None and repeats.integers:
        several = sum(number != 1 for number in repeats.integers)
        yield "repeats.axes", "none" if not several else "one" if several == 1 else "several"


def _of_expand(node: NodeProto, data: ValueType, seen: Seen) -> Found:
    name = node.input[1] if len(node.input) > 1 else ""
    length = seen.type_of(name).shape
    if length and isinstance(length[0], int) and data.rank is not None:
        yield "to", "same rank" if length[0] == data.rank else "more" if length[0] > data.rank else "fewer"


def _of_convolution(node: NodeProto, data: ValueType, seen: Seen) -> Found:
    if data.rank == 3 and "" in seen.readers(node.output[0]):
        # MNN computes an image, and gives one.
        yield "returned", "rank 3"
    held = attribute(node, "group")
    weights = seen.type_of(node.input[1]).shape if len(node.input) > 1 else None
    if held is not None and held.i > 1 and weights is not None:
        channels = data.shape[1] if data.shape is not None and len(data.shape) > 1 else None
        yield "group", "depthwise" if held.i == channels else "more"


def _of_dropout(node: NodeProto, data: ValueType, seen: Seen) -> Found:
    mode = _contents(node, 2, seen)
    if mode is not None and mode.integers and mode.integers[0]:
        yield "training", "yes"


def _of_product(node: NodeProto, data: ValueType, seen: Seen) -> Found:
    other = seen.type_of(node.input[1]) if len(node.input) > 1 else UNKNOWN
    if other.rank is not None and data.rank is not None:
        yield "rank.B", "same" if other.rank == data.rank else f"{other.rank}"
        if other.rank == 1 and "Mul" in seen.readers(node.output[0]):
            # OpenVINO takes a vector and what its product is scaled by for one matrix.
            yield "use.Mul", "yes"


def _of_numbers(position: int) -> Callable[[NodeProto, ValueType, Seen], Found]:
    def reader(node: NodeProto, data: ValueType, seen: Seen) -> Found:
        name = node.input[position] if len(node.input) > position else ""
        rank = seen.type_of(name).rank if name else None
        if rank is not None:
            yield f"rank.{position}", str(rank)

    return reader


_READERS: Mapping[str, Callable[[NodeProto, ValueType, Seen], Found]] = {
    "Slice": _of_slice,
    "Identity": _of_identity,
    "SplitToSequence": _of_numbers(1),
    "SequenceAt": _of_sequence_at,
    "Reshape": _of_reshape,
    "Flatten": _of_flatten,
    "Gather": _of_gather,
    "GatherND": _of_numbers(1),
    "Resize": _of_resize,
    "Upsample": _of_resize,
    "Pad": _of_pad,
    "Tile": _of_tile,
    "Expand": _of_expand,
    "Concat": _of_concat,
    "Conv": _of_convolution,
    "ConvTranspose": _of_convolution,
    "Dropout": _of_dropout,
    "MatMul": _of_product,
    "MatMulInteger": _of_product,
    "QuantizeLinear": _of_numbers(1),
    "DequantizeLinear": _of_numbers(1),
    "TopK": _of_numbers(1),
    "OneHot": _of_numbers(1),
    "Gemm": _of_numbers(2),
}
