"""Rules of boundaries that are about shapes: broadcasting, axes, windows, masks.

A predicate looks at the node alone: its attributes, which inputs and outputs it has, and what is known of their types
and shapes. It returns True when the node, after the edits that the predicate made to its attributes, provably means
the same.
"""

from __future__ import annotations

from splitgraph.attribute_values import UNRESOLVED
from splitgraph.conversion.boundary_crossing import Crossing, Predicate
from splitgraph.dim import DimLike
from splitgraph.onnx_proto import GraphProto, ValueInfoProto
from splitgraph.value_type import Shape

_UNSIGNED = frozenset({"uint8", "uint16", "uint32", "uint64"})


# Broadcasting: opsets 7 and 8 ------------------------------------------------------------------------------------


def limited_broadcast_is_numpy(c: Crossing) -> bool:
    """Upward: NumPy broadcasts equal shapes, a suffix and one element the same way; `axis` must put B there."""
    broadcast = c.value("broadcast", 0)
    if broadcast is UNRESOLVED:
        return False
    if broadcast and c.has("axis"):
        rank_a, rank_b = c.rank(0), c.rank(1)
        if rank_a is None or rank_b is None or c.value("axis") != rank_a - rank_b:
            return False
    c.drop("broadcast", "axis", why="NumPy broadcasting gives the same from opset 7 on")
    return True


def numpy_broadcast_is_limited(c: Crossing) -> bool:
    """Downward: equal shapes, or a B that is one element or a suffix of A's shape."""
    if c.shapes_are_equal():
        return True
    shape_a, shape_b = c.shape(0), c.shape(1)
    if shape_b != ():
        if shape_a is None or shape_b is None or len(shape_b) > len(shape_a):
            return False
        suffix = shape_a[len(shape_a) - len(shape_b) :]
        is_suffix = all(dim is not None and dim == other for dim, other in zip(shape_b, suffix, strict=True))
        if not is_suffix and any(dim != 1 for dim in shape_b):
            return False
    c.set("broadcast", 1, "below opset 7 broadcasting is off unless it is asked for")
    return True


def shapes_equal(c: Crossing) -> bool:
    """All inputs have the same shape, or there is only one."""
    return len(c.facts.node.input) == 1 or c.shapes_are_equal()


def gemm_broadcasts_suffix(c: Crossing) -> bool:
    """Downward: C has the shape of the result, or is a scalar or a row."""
    shape = c.shape(2)
    if shape is None:
        return False
    if len(shape) > 1:
        return None not in shape and shape == _gemm_shape(c)
    c.set("broadcast", 1, "below opset 7 broadcasting is off unless it is asked for")
    return True


def _gemm_shape(c: Crossing) -> Shape | None:
    """The shape of A times B, None where it is not known."""
    dims: list[DimLike | None] = []
    for index, (name, kept) in enumerate((("transA", 0), ("transB", 1))):
        transposed, shape = c.value(name, 0), c.shape(index)
        if transposed is UNRESOLVED or shape is None or len(shape) != 2:
            return None
        dims.append(shape[1 - kept if transposed else kept])
    return tuple(dims)


def gemm_drops_broadcast(c: Crossing) -> bool:
    """Upward: what C broadcasts as (one element, a suffix) is what NumPy broadcasting makes of it."""
    c.drop("broadcast", why="C always broadcasts from opset 7 on")
    return True


def slope_is_shared_or_last(c: Crossing) -> bool:
    """PRelu's slope is one element, or one for each channel where the channels are the last axis."""
    return c.shape(1) in ((), (1,)) or (c.rank(0) == 2 and c.rank(1) == 1)


# Axes ------------------------------------------------------------------------------------------------------------


def axes_counted_from_front(name: str, *, rank_of_output: bool = False) -> Predicate:
    """Below opset 11, downward: every axis is at least 0, or the rank is known and the axis can be written so.

    rank_of_output: the axes are those of the output, which has one more dimension for each.
    """

    def predicate(c: Crossing) -> bool:
        return _count_from_front(c, name, rank_of_output)

    return predicate


def squeezed_axes_in_order(c: Crossing) -> bool:
    """Squeeze 1|11, downward: the axes are counted from the front, and ascend: onnx's inference of Squeeze-1, by which
    runtimes go, looks at each dimension for the next axis only.
    """
    if not _count_from_front(c, "axes", rank_of_output=False):
        return False
    axes = c.value("axes") or ()
    if list(axes) != sorted(axes):
        c.set("axes", sorted(axes), "onnx infers the shape of a Squeeze below opset 11 from axes in ascending order")
    return True


def _count_from_front(c: Crossing, name: str, rank_of_output: bool) -> bool:
    value = c.value(name)
    if value is UNRESOLVED:
        return False
    axes = value if isinstance(value, tuple) else () if value is None else (value,)
    if all(axis >= 0 for axis in axes):
        return True
    rank = c.rank(0)
    if rank is None:
        return False
    rank += len(axes) if rank_of_output else 0
    positive = [axis + rank if axis < 0 else axis for axis in axes]
    c.set(name, positive if isinstance(value, tuple) else positive[0], "below opset 11 axes are counted from the front")
    return True


def scan_axes_counted_from_front(c: Crossing) -> bool:
    """Scan 9|11, downward: no axis is negative (the rank of what is scanned is the body's affair)."""
    axes = [c.value(name, ()) for name in ("scan_input_axes", "scan_output_axes")]
    return all(value is not UNRESOLVED and all(axis >= 0 for axis in value) for value in axes)


def no_axes_input(index: int) -> Predicate:
    """The optional input that holds the axes is absent."""

    def predicate(c: Crossing) -> bool:
        return not c.uses_input(index)

    return predicate


def reduces_all_axes(c: Crossing) -> bool:
    """No axes are given and that means all of them."""
    if c.upward:
        return not c.has("axes")
    return not c.uses_input(1) and c.value("noop_with_empty_axes", 0) == 0


def squeezes_all_ones(c: Crossing) -> bool:
    """No axes are given: every dimension of size 1 goes, on both sides."""
    return not c.has("axes") if c.upward else not c.uses_input(1)


def normalizes_last_axis(c: Crossing) -> bool:
    """Softmax, LogSoftmax, Hardmax at 13: flattening changes nothing when all dimensions after the axis are 1."""
    axis = c.value("axis", 1 if c.upward else -1)
    if axis is UNRESOLVED:
        return False
    if axis == -1:
        return True
    shape = c.shape(0)
    if shape is None or not -len(shape) <= axis < len(shape):
        return False
    return all(dim == 1 for dim in shape[axis % len(shape) + 1 :])


def concat_axis_written(c: Crossing) -> bool:
    """Concat 1|4, upward: the axis, 1 when absent, must be written from opset 4 on."""
    if not c.has("axis"):
        c.set("axis", 1, "the default of Concat-1, which from opset 4 on must be written")
    return True


def dft_axis(c: Crossing) -> bool:
    """DFT 17|20: the axis is the last but one, the default from opset 20 on; needs the rank."""
    rank = c.rank(0)
    if rank is None or rank < 3:
        return False
    if not c.upward:
        if c.uses_input(2):
            return False
        c.set("axis", rank - 2, "below opset 20 the default axis is 1, not the last but one")
        return True
    if c.value("axis", 1) not in (rank - 2, -2):
        return False
    c.drop("axis", why="it is the default axis from opset 20 on")
    return True


def rank_is_4(c: Crossing) -> bool:
    """The older version takes images only."""
    return c.rank(0) == 4


def index_cannot_be_negative(c: Crossing) -> bool:
    """OneHot 9|11: indices of an unsigned type."""
    return c.dtype(0) in _UNSIGNED


def one_hot_downward(c: Crossing) -> bool:
    """OneHot 9|11, downward: unsigned indices, and an axis that the older version knows."""
    # -1 is the default of the older version, so it has a meaning there.
    return index_cannot_be_negative(c) and (c.value("axis", -1) == -1 or _count_from_front(c, "axis", True))


# Windows, masks, branches ----------------------------------------------------------------------------------------


def scale_is_scalar(c: Crossing) -> bool:
    """QuantizeLinear, DequantizeLinear at 13, downward: one scale for the whole tensor, so that no axis matters."""
    if c.rank(1) != 0:
        return False
    c.drop("axis", why="with a scalar scale the axis has no effect")
    return True


def windows_start_inside(c: Crossing) -> bool:
    """Pools at 22: no window starts in the padding at the end, which ceil_mode might make one do.

    The last window starts less than one stride after the last place where a whole window fits, so it starts inside
    when stride + padding at the end <= size of the (dilated) window.
    """
    if c.value("ceil_mode", 0) == 0:
        return True
    auto_pad = c.value("auto_pad", "NOTSET")
    if auto_pad in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        if not c.upward and _is_ceiling_idle(c, auto_pad):
            # onnx's own inference below 22 takes it for a window more.
            c.drop("ceil_mode", why=f"with auto_pad={auto_pad} there are as many windows without it")
        return True
    kernel = c.value("kernel_shape", ())
    if kernel is UNRESOLVED or c.value("auto_pad", "NOTSET") is UNRESOLVED:
        return False
    ones, zeros = (1,) * len(kernel), (0,) * 2 * len(kernel)
    strides, dilations, pads = c.value("strides", ones), c.value("dilations", ones), c.value("pads", zeros)
    if UNRESOLVED in (strides, dilations, pads) or not len(strides) == len(dilations) == len(pads) // 2 == len(kernel):
        return False
    ends = pads[len(kernel) :]
    sizes = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    return all(stride + end <= size for stride, end, size in zip(strides, ends, sizes, strict=True))


def _is_ceiling_idle(c: Crossing, auto_pad: str) -> bool:
    """True when a pool with auto_pad has as many windows without ceil_mode, also for onnxruntime, which counts those
    with holes in its own way, and one more of VALID than the document where it starts inside.
    """
    shape, kernel = c.shape(0), c.value("kernel_shape", ())
    ones = (1,) * len(kernel) if kernel is not UNRESOLVED else ()
    strides, dilations = c.value("strides", ones), c.value("dilations", ones)
    if UNRESOLVED in (kernel, strides, dilations):
        return False
    if auto_pad != "VALID":
        return all(dilation == 1 for dilation in dilations)
    sizes = (shape or ())[2:]
    if len(sizes) != len(kernel) or not all(isinstance(size, int) for size in sizes):
        return False
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    rests = zip(sizes, spans, strides, strict=True)
    # The next window after the last whole one: it is there when a part of it is, and it starts inside.
    return all((size - span) % stride == 0 or size - span - (size - span) % stride + stride >= size
               for size, span, stride in rests)  # fmt: skip


def mask_covers_all_keys(c: Crossing) -> bool:
    """Attention 23|24: the mask is as long as the keys, so that it is neither broadcast nor padded."""
    if not c.uses_input(3):
        return True
    mask, key = c.shape(3), c.shape(1)
    if not mask or mask[-1] is None:
        return False
    if c.upward and isinstance(mask[-1], int) and mask[-1] > 1:
        return True
    return not c.uses_input(4) and key is not None and len(key) > 2 and key[-2] == mask[-1]


def attention_is_given_whole(c: Crossing) -> bool:
    """Attention 24|25, upward: both of past and present or neither, either the past or the lengths, and heads only of
    inputs of rank 3.
    """
    past, present = c.uses_input(4), c.uses_output(1)
    if past != c.uses_input(5) or present != c.uses_output(2) or (c.uses_input(6) and (past or present)):
        return False
    return drop_heads_of_rank_4(c)


def drop_heads_of_rank_4(c: Crossing) -> bool:
    """Attention: leave out the numbers of heads where the inputs have them on an axis, as 25 requires; False when that
    is not known.
    """
    names, rank = ("q_num_heads", "kv_num_heads"), c.rank(0)
    if c.old.since_version >= 25 or rank == 3 or not any(map(c.has, names)):
        return True
    if rank is None:
        return False
    c.drop(*names, why="inputs of rank 4 have their heads on an axis")
    return True


def branches_give_equal_shapes(c: Crossing) -> bool:
    """If 1|11, downward: both branches declare the same numbers. What is the same name in both, its author may have
    used for two things.
    """
    branches = [c.value("then_branch"), c.value("else_branch")]
    if not all(isinstance(branch, GraphProto) for branch in branches):
        return False
    then_shapes, else_shapes = ([_declared_shape(value) for value in branch.output] for branch in branches)
    return None not in then_shapes and then_shapes == else_shapes


def _declared_shape(value: ValueInfoProto) -> tuple[int, ...] | None:
    shape = value.type.tensor_type.shape
    is_static = value.type.tensor_type.HasField("shape") and all(dim.HasField("dim_value") for dim in shape.dim)
    return tuple(dim.dim_value for dim in shape.dim) if is_static else None
