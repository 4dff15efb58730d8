"""The rules of ONNX's operators for new sizes: they read constants as dimensions, and note which sizes a node needs.

Each rule sees one node (`Site`). It may give constants of the node other elements, so that what follows has the right
dimensions, and it says which other values have a size that the node needs to change (`Need`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from splitgraph.conversion.sizes.digits import is_limited
from splitgraph.conversion.sizes.follow import Rule, Site
from splitgraph.conversion.sizes.readings import (
    fit_merged,
    fit_merged_tuples,
    fit_places,
    fit_places_of_tuples,
    read_count,
    read_depth,
    read_indices,
    read_lengths,
    read_lengths_of_sequences,
    read_limit,
    read_output,
    read_sides,
    read_sizes,
    read_slice,
)
from splitgraph.conversion.sizes.reshape_targets import DisplacedError, read_target
from splitgraph.dim import Dim, DimLike, symbol
from splitgraph.model.onnx_proto import GraphProto
from splitgraph.model.schemas import kinds
from splitgraph.model.value_type import ValueType, tensor, vector

# Constants ------------------------------------------------------------------------------------------------------------


def _reshape(site: Site) -> None:
    if site.ctx.since_version < 5:
        _reshape_1(site)
        return
    read_shape(site, zeros_are_sizes=site.ctx.attribute("allowzero", 0) == 1)


def read_shape(site: Site, *, zeros_are_sizes: bool) -> None:
    """The target of a Reshape, in terms of the dimensions of the data."""
    target = site.items(1)
    if target is not None:
        read = _read_target(site, target, zeros_are_sizes=zeros_are_sizes)
        site.restate_if_other(1, target, target if read is None else read)


def _read_target(site: Site, target: Sequence[DimLike], *, zeros_are_sizes: bool) -> list[DimLike] | None:
    dims = site.dims(0)
    if dims is None or not any(map(site.wanted.changes, dims)):
        return None
    decided = site.follower.decided.entries.get(site.place(1), {})
    for entry in decided.values():
        # An entry of 0 would copy a dimension.
        if isinstance(entry, Dim) and entry != symbol(str(entry)):
            site.ctx.require(entry, ">=", 1)
    try:
        return read_target(
            dims,
            target,
            site.wanted,
            site.orders(0, dims, target),
            zeros_are_sizes=zeros_are_sizes,
            decided=decided,
            choose=partial(site.choose, dims, target),
            cut=site.cut,
        )
    except DisplacedError as error:
        there = _spelled(target)
        site.block(f"nothing says where {error.dim}, which was 1, is in {there}; export the model with another length")
        return None


def _reshape_1(site: Site) -> None:
    dims, target = site.dims(0), site.ctx.attribute("shape")
    read = None if target is None else _read_target(site, target, zeros_are_sizes=False)
    if read is not None and dims is not None and list(target) != read:
        site.set_attribute("shape", _in_numbers(site, dims, read))


def _in_numbers(site: Site, dims: Sequence[DimLike], read: Sequence[DimLike]) -> tuple[int, ...]:
    """Return the target of a Reshape-1, which is an attribute: 0 copies a dimension, and -1 is the only other one."""
    plain = [site.wanted.after(entry) for entry in read]
    for axis, entry in enumerate(plain):
        if isinstance(entry, Dim) and axis < len(dims) and dims[axis] == entry:
            plain[axis] = 0
    rest = [axis for axis, entry in enumerate(plain) if isinstance(entry, Dim)]
    if len(rest) + plain.count(-1) > 1:
        site.block(f"the target {_spelled(read)} is an attribute, which holds one dimension; upgrade the model to 5")
    return tuple(-1 if isinstance(entry, Dim) else entry for entry in plain)


def _spelled(dims: Sequence[DimLike]) -> str:
    return f"[{', '.join(map(str, dims))}]"


def _squeeze(site: Site) -> None:
    axes = () if site.ctx.has_attribute("axes") or site.ctx.input_count > 1 else squeezed_axes(site)
    if axes and site.ctx.since_version < 13:
        site.set_attribute("axes", axes)
    elif axes:
        site.restate(1, vector(axes))


def squeezed_axes(site: Site) -> tuple[int, ...]:
    """Return the axes that a Squeeze without axes removes, to be written: those of 1, whatever size another one gets.
    None where another one is 1 or not known.
    """
    dims = site.dims(0) or ()
    ones = tuple(axis for axis, dim in enumerate(dims) if dim == 1)
    others = [site.wanted.before(dim) for axis, dim in enumerate(dims) if axis not in ones]
    is_clear = any(map(site.wanted.changes, dims)) and all(isinstance(dim, int) and dim != 1 for dim in others)
    return ones if is_clear else ()


def _expand(site: Site) -> None:
    """A target of the data's own size is one of 1: the data has that size at any size."""
    dims, target = site.dims(0), site.numbers(1)
    if dims is None or target is None:
        return
    read: list[DimLike] = list(target)
    for back in range(1, len(target) + 1):
        dim, size = dims[-back] if back <= len(dims) else 1, target[-back]
        if site.wanted.changes(dim) and size == site.wanted.before(dim):
            read[-back] = 1
        elif dim == 1:
            read[-back] = site.either(1, len(target) - back, site.alike(size))
    site.restate_numbers(1, read)


def _tile(site: Site) -> None:
    dims = site.dims(0)
    read_sizes(site, 1, () if dims is None else [axis for axis, dim in enumerate(dims) if dim == 1])


def _slice(site: Site) -> None:
    if site.ctx.since_version >= 10:
        read_bounds(site, (1, 2, 4, 3))
        return
    starts, ends, axes = (site.ctx.attribute(name) for name in ("starts", "ends", "axes"))
    dims = site.dims(0)
    if dims is None or starts is None or ends is None:
        return
    first, last = _bounds(site, starts, ends, (1,) * len(starts), tuple(range(len(starts))) if axes is None else axes)
    for name, before, after in (("starts", starts, first), ("ends", ends, last)):
        _set_numbers(site, name, before, after)


def _set_numbers(site: Site, name: str, before: Sequence[int], after: Sequence[DimLike]) -> None:
    """Write numbers into an attribute, which holds no dimensions."""
    plain = [site.wanted.after(each) for each in after]
    if any(isinstance(each, Dim) for each in plain):
        site.block(f"{name} {_spelled(after)} would be an attribute, which holds numbers; upgrade the model first")
    elif list(before) != plain:
        site.set_attribute(name, tuple(each for each in plain if isinstance(each, int)))


def read_bounds(site: Site, positions: tuple[int, int, int, int]) -> None:
    """The bounds of a slice. positions: of starts, ends, steps and axes."""
    starts, ends, steps, axes = (
        site.numbers(position) if site.ctx.has_input(position) else () for position in positions
    )
    if site.dims(0) is None or not starts or ends is None or steps is None or axes is None:
        return
    first, last = _bounds(site, starts, ends, steps or (1,) * len(starts), axes or tuple(range(len(starts))))
    site.restate_if_other(positions[0], starts, first)
    site.restate_if_other(positions[1], ends, last)


def _bounds(
    site: Site, starts: Sequence[int], ends: Sequence[int], steps: Sequence[int], axes: Sequence[int]
) -> tuple[list[DimLike], list[DimLike]]:
    """Return the starts and ends: an end at the end of the data is the end of any data."""
    dims, first, last = site.dims(0) or (), list[DimLike](starts), list[DimLike](ends)
    if len({len(starts), len(ends), len(axes), len(steps)}) > 1:
        return first, last
    for entry, axis in enumerate(axes):
        if -len(dims) <= axis < len(dims):
            written = starts[entry], ends[entry], steps[entry]
            first[entry], last[entry] = read_slice(site, dims[axis], written, entry, len(ends))
    return first, last


def _split(site: Site) -> None:
    has_attribute = site.ctx.since_version < 13
    lengths = site.ctx.attribute("split") if has_attribute else site.numbers(1)
    dim = site.changing_dim(site.ctx.attribute("axis", 0))
    if lengths is None or dim is None:
        return
    if not has_attribute:
        read_lengths(site, 1, lengths, dim)
    elif len(set(lengths)) == 1:
        site.set_attribute("split", None)
    else:
        site.block(f"its lengths {', '.join(map(str, lengths))} are an attribute; upgrade the model to 13 first")


def _resize(site: Site) -> None:
    read_sides(site, 3, site.ctx.attribute("axes"))


def _gather_nd(site: Site) -> None:
    fit_tuples(site, site.ctx.attribute("batch_dims", 0))


def fit_tuples(site: Site, batch_dims: int) -> None:
    """Tuples that count the items of a batch go on counting."""
    dims, indices = site.dims(0), site.dims(1)
    if dims is None or indices is None or len(indices) < 2 or batch_dims or fit_merged_tuples(site):
        return
    for entry, dim in enumerate(dims[: indices[-1]] if isinstance(indices[-1], int) else ()):
        if not site.wanted.changes(dim):
            continue
        if not site.leaves_items_apart(dim):
            fit_places_of_tuples(site, entry, dim)
            continue
        sizes = dim, site.wanted.before(dim)
        axis = next((axis for axis, size in enumerate(indices[:-1]) if size in sizes), None)
        if axis is None:
            site.computes_over(dim, f"takes elements along {dim} by their numbers")
        else:
            site.need(1, axis, dim, entry)


def _top_k(site: Site) -> None:
    """As many as there are can be all of them, sorted."""
    dim = site.changing_dim(site.ctx.attribute("axis", -1))
    if dim is None:
        return
    if site.ctx.since_version >= 10:
        read_count(site, dim)
    elif len(site.alike(site.ctx.attribute("k", 0))) > 1:
        site.block("its k is an attribute; upgrade the model to 10 first")


def _gather(site: Site) -> None:
    read_indices(site, site.ctx.attribute("axis", 0))


def _conv_transpose(site: Site) -> None:
    """The size of the result may be given, whatever the size of the data."""
    given = site.ctx.attribute("output_shape") or ()
    dims = (site.dims(0) or ())[2:]
    for axis, (size, dim) in enumerate(zip(given[-len(dims) :], dims, strict=False) if dims else (), 2):
        if site.wanted.changes(dim):
            site.block(f"output_shape says {size} along axis {axis} whatever {dim} is; say it by pads instead")


def _affine_grid(site: Site) -> None:
    """As many images as there are matrices; the other sizes say how large they are."""
    items, sizes = (site.dims(0) or (None,))[0], site.items(1)
    if items is not None and sizes and site.wanted.changes(items) and sizes[0] == site.wanted.before(items):
        site.restate_numbers(1, [items, *sizes[1:]])
    read_sizes(site, 1, range(1, len(sizes or ())))


def _sizes_in(position: int) -> Rule:
    return lambda site: read_sizes(site, position)


def _reverse_sequence(site: Site) -> None:
    read_lengths_of_sequences(site, site.ctx.attribute("time_axis", 0))


def _recurrent(site: Site) -> None:
    read_lengths_of_sequences(site, site.ctx.attribute("layout", 0), 4)


# Needs ----------------------------------------------------------------------------------------------------------------


def _matmul(site: Site) -> None:
    fit_product(site, transposed=(False, False))


def fit_product(site: Site, transposed: tuple[bool, bool]) -> None:
    """The inner dimensions of a matrix product are equal, and 1 is not repeated there: that would be another sum."""
    one, other = site.dims(0), site.dims(1)
    if not one or not other:
        return
    inner = (
        one[len(one) - (2 if transposed[0] and len(one) > 1 else 1)],
        other[len(other) - (2 if not transposed[1] and len(other) > 1 else 1)],
    )
    for own, dim in (inner, inner[::-1]):
        if own == 1 and site.wanted.changes(dim) and site.wanted.before(dim) == 1:
            site.block(f"multiplies {dim}, which was 1, with weights for one")


def _gemm(site: Site) -> None:
    one, other = site.dims(0), site.dims(1)
    if one is not None and other is not None and len(one) == len(other) == 2:
        fit_product(site, (bool(site.ctx.attribute("transA", 0)), bool(site.ctx.attribute("transB", 0))))


def _loop(site: Site) -> None:
    """Read the number of iterations, which can be a size, also if it is carried to the condition of the body. States
    that go in get the sizes that iterations carry on.
    """
    ctx = site.ctx
    read_sizes(site, 0)
    for position in range(2, ctx.input_count):
        carried = site.numbers(position)
        if carried is not None and len(carried) == 1:
            site.restate_numbers(position, [site.either(position, 0, site.alike(carried[0]), position)])
    counters = [tensor("int64", ()), tensor("bool", ())]
    _fit_carried(site, counters, range(2, ctx.input_count), [], 1)


def _scan(site: Site) -> None:
    """Let states that go in have the sizes that steps carry on."""
    ctx, count = site.ctx, site.ctx.attribute("num_scan_inputs", 0)
    if ctx.since_version < 9:
        return
    states = range(ctx.input_count - count)
    axes = ctx.attribute("scan_input_axes", (0,) * count)
    scanned = []
    for position, axis in zip(range(len(states), ctx.input_count), axes, strict=False):
        kind = ctx.input(position)
        shape = None if kind.shape is None else list(kind.shape)
        if shape:
            shape.pop(axis)
        scanned.append(kind.with_shape(shape))
    _fit_carried(site, [], states, scanned, 0)


def _fit_carried(
    site: Site, before: Sequence[ValueType], states: Sequence[int], after: Sequence[ValueType], first: int
) -> None:
    """Walk a body once. If it carries on a dimension that changes, the value that goes in needs this dimension.

    before, after: the body's inputs around the states. first: the number of the first state among its outputs.
    """
    ctx = site.ctx
    kinds = [ctx.complete(ctx.input(position)) for position in states]
    graph = ctx.attribute("body")
    if not isinstance(graph, GraphProto) or len(graph.input) != len(before) + len(kinds) + len(after):
        return
    with ctx.quietly():
        body = ctx.walk_body("body", [*before, *kinds, *after])
    if body is None:
        return
    site.keep_body()
    for position, kind, carried in zip(states, kinds, body.types[first:], strict=False):
        fit_state(site, position, kind, carried)


def fit_state(site: Site, position: int, kind: ValueType, carried: ValueType) -> None:
    """Let a state that goes into a body have the size that the body carries on. position: of the node's input."""
    if kind.shape is None or carried.shape is None or len(kind.shape) != len(carried.shape):
        return
    for axis, (own, dim) in enumerate(zip(kind.shape, carried.shape, strict=True)):
        if own is None or dim is None:
            continue
        site.need_if_fixed(position, axis, own, dim)
        if site.wanted.changes(own) and own != dim and site.wanted.before(own) == site.wanted.before(dim):
            if is_limited(own):
                # The first 240 of T, or all of fewer: the laws say whether T can be told to be large enough.
                site.ctx.require(own, "==", dim)
            else:
                site.block(f"carries on {dim} along axis {axis} of a value that goes in with {own}")


def _like_the_first(site: Site) -> None:
    fit_gathered(site, site.ctx.attribute("axis", 0))


def fit_gathered(site: Site, axis: int) -> None:
    """Indices and updates have the size of the data along the axes that are not theirs."""
    if not fit_merged(site, axis):
        fit_places(site, axis)
    data, indices = site.dims(0), site.dims(1)
    if not data or indices is None or len(data) != len(indices):
        return
    for other, (one, size) in enumerate(zip(data, indices, strict=True)):
        if other != axis % len(data):
            site.need_if_fixed(1, other, size, one)
            site.need_if_fixed(0, other, one, size)


def _scatter_nd(site: Site) -> None:
    fit_written(site)


def fit_written(site: Site) -> None:
    """Tuples that say where updates of items are written. Data that was made for so many items has as many as these."""
    data, updates, depth = site.dims(0) or (), site.dims(2) or (), (site.dims(1) or (0,))[-1]
    for dim in updates:
        if site.wanted.changes(dim) and site.leaves_items_apart(dim) and dim not in data and isinstance(depth, int):
            axis = next((axis for axis, size in enumerate(data[:depth]) if size == site.wanted.before(dim)), None)
            if axis is not None:
                site.need(0, axis, dim)
    fit_tuples(site, 0)


def _columns_in_attribute(site: Site) -> None:
    """The columns of each input of a FeatureVectorizer are a number in an attribute; runtimes cut what is beyond."""
    for position, columns in enumerate(site.ctx.attribute("inputdimensions") or ()):
        dim = (site.dims(position) or (None,))[-1]
        if site.wanted.changes(dim):
            site.block(f"inputdimensions says that input {position} has {columns} columns, and not {dim}")


_ONNX: Mapping[str, Rule] = {
    "Reshape": _reshape,
    "Expand": _expand,
    "AffineGrid": _affine_grid,
    "BlackmanWindow": _sizes_in(0),
    "Col2Im": _sizes_in(1),
    "ConstantOfShape": _sizes_in(0),
    "ConvTranspose": _conv_transpose,
    "DFT": _sizes_in(1),
    "HammingWindow": _sizes_in(0),
    "HannWindow": _sizes_in(0),
    "MaxUnpool": _sizes_in(2),
    "Range": read_limit,
    "Tile": _tile,
    "OneHot": read_depth,
    "CenterCropPad": _sizes_in(1),
    **dict.fromkeys(kinds.RECURRENT, _recurrent),
    "ReverseSequence": _reverse_sequence,
    "Gather": _gather,
    "Identity": read_output,
    "Slice": _slice,
    "Squeeze": _squeeze,
    "Split": _split,
    "Resize": _resize,
    "MatMul": _matmul,
    "Gemm": _gemm,
    "GatherElements": _like_the_first,
    "GatherND": _gather_nd,
    "Scatter": _like_the_first,
    "ScatterElements": _like_the_first,
    "ScatterND": _scatter_nd,
    "Loop": _loop,
    "Scan": _scan,
    "TopK": _top_k,
}
RULES: Mapping[tuple[str, str], Rule] = {
    **{("", name): rule for name, rule in _ONNX.items()},
    ("ai.onnx.ml", "FeatureVectorizer"): _columns_in_attribute,
}
# The input that says a size, by operator.
SAYING = {
    **{name: kinds.SHAPE_INPUTS[name][0] for name in _ONNX if name in kinds.SHAPE_INPUTS},
    # The end, not the start; sizes, not scales; and lengths.
    "Range": 1,
    "Resize": 3,
    "Slice": 2,
    "Gather": 1,
    "ReverseSequence": 1,
    **dict.fromkeys(kinds.RECURRENT, 4),
}
