"""Nodes that adapters write to work out at run time what an attribute would have said: shapes, masks of axes, ranges.

Everything is written for the context's own opset, from operators that are the same on both sides of the opsets where it
is used: a shape is changed by Reshape, never by Squeeze, and a part of one is taken by Gather, never by Slice.
"""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.deferred import helper, np
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NUMBERS

FLOATS = ("float16", "float32", "float64")
# What ConstantOfShape makes below opset 20.
_FILLED = {f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)} | {"bool", *FLOATS}


def filled(context: AdapterContext, shape: str, value: int, hint: str, dtype: str = "int64") -> str:
    """A tensor of one value; its shape is the contents of `shape`, int64[rank]. Needs opset 9."""
    if dtype not in _FILLED and (context.opset < 20 or dtype != "bfloat16"):
        raise Inexact(f"ConstantOfShape does not make {dtype} {context.side}")
    held = helper.make_tensor("", DTYPE_NUMBERS[dtype], [1], [value])
    return context.emit("ConstantOfShape", [shape], hint, value=held)


def flat(context: AdapterContext, value: str, hint: str) -> str:
    """The elements of a tensor in one dimension."""
    return context.emit("Reshape", [value, context.constant([-1], "flat_shape")], hint)


def scalar(context: AdapterContext, value: str, hint: str) -> str:
    """A tensor of one element as a tensor of rank 0."""
    return context.emit("Reshape", [value, context.constant(np.zeros(0), "scalar_shape")], hint)


def dimension(context: AdapterContext, shape: str, axis: int, hint: str) -> str:
    """One element of a shape, as a scalar."""
    return context.emit("Gather", [shape, context.constant(axis, "axis")], hint, axis=0)


def as_int64(context: AdapterContext, value: str, hint: str) -> str:
    """The elements as int64: an input that is of this type as it is. The bits of uint64 stay what they are."""
    if value in context.inputs and context.values.type_of(value).dtype == "int64":
        return value
    return context.emit("Cast", [value], hint, to=TensorProto.INT64)


def counting(context: AdapterContext, count: str, hint: str) -> str:
    """0, 1, 2, ... as int64[count]; count is int64[1]. Needs opset 9."""
    return flat(context, context.emit("NonZero", [filled(context, count, 1, "ones")], "positions"), hint)


def positions(context: AdapterContext, mask: str, hint: str) -> str:
    """Where a mask of one dimension is true, as int64[number of true elements]. Needs opset 9."""
    return flat(context, context.emit("NonZero", [mask], f"{hint}_row"), hint)


def counted_from_front(context: AdapterContext, indices: str, size: str, hint: str) -> str:
    """int64 indices into a dimension of `size` elements, the negative ones counted from its end. Needs opset 9."""
    is_negative = context.emit("Less", [indices, context.constant(0, "zero")], f"{hint}_is_negative")
    return context.emit("Where", [is_negative, context.emit("Add", [indices, size], f"{hint}_from_end"), indices], hint)


def mask_of_axes(context: AdapterContext, axes: str, rank: str, hint: str) -> str:
    """A boolean for each of `rank` (int64[1]) dimensions: is it among the axes? They may be negative, and none.

    Needs opset 11, and any number of axes in one dimension.
    """
    ones = filled(context, context.emit("Shape", [axes], "axes_count"), 1, "axes_ones")
    marked = context.emit(
        "ScatterElements", [filled(context, rank, 0, "no_axes"), axes, ones], f"{hint}_marked", axis=0
    )
    return context.emit("Cast", [marked], hint, to=TensorProto.BOOL)


def has_no_zero(context: AdapterContext, name: str) -> bool:
    """True when every dimension of a value is known and not 0."""
    shape = context.values.type_of(name).shape
    return shape is not None and all(isinstance(dim, int) and dim > 0 for dim in shape)


def without_empty(context: AdapterContext, data: str, shape: str, dtype: str) -> tuple[str, str]:
    """The data and its shape (int64[rank]) as they are; or, where a dimension is 0, zeros of a shape with 1 for each
    such dimension. `cut_to` undoes it. Needs opset 9, and at least one dimension.
    """
    elements, solid = _with_elements(context, data, shape, dtype)
    return context.emit("Reshape", [elements, solid], "not_empty"), solid


def cut_to(context: AdapterContext, data: str, shape: str, like: str) -> str:
    """What `data` has within `shape`, the shape of the value `like`: it may have more along dimensions that may be 0.

    Written without Slice, whose ends can only be computed from opset 10 on.
    """
    sizes = context.values.type_of(like).shape or ()
    for axis in [axis for axis, size in enumerate(sizes) if not isinstance(size, int) or size <= 0]:
        size = context.emit("Gather", [shape, context.constant([axis], "axis")], "size", axis=0)
        data = context.emit("Gather", [data, counting(context, size, "kept")], "cut", axis=axis)
    return data


def _with_elements(context: AdapterContext, data: str, shape: str, dtype: str) -> tuple[str, str]:
    """The elements of data in one dimension, and where there are none as many as `shape` has with 1 for each 0; and
    that shape.
    """
    zero = context.emit("Equal", [shape, context.constant([0], "zero")], "is_zero")
    total = context.emit("ReduceSum", [as_int64(context, zero, "zeros")], "zero_count", keepdims=1)
    hollow = context.emit("Cast", [total], "is_empty", to=TensorProto.BOOL)
    solid = context.emit("Where", [zero, context.constant([1], "one"), shape], "without_zeros")
    # Without a dimension of 0 one of the shape may be -1, and no element is put in.
    product = context.emit("ReduceProd", [solid], "element_count", keepdims=1)
    count = context.emit("Where", [hollow, product, context.constant([0], "none")], "added_count")
    added = filled(context, count, 0, "added", dtype)
    return context.emit("Concat", [flat(context, data, "elements"), added], "padded", axis=0), solid


def static_shape(context: AdapterContext, name: str) -> tuple[int, ...] | None:
    """The shape of a value where every dimension of it is known."""
    shape = context.values.type_of(name).shape
    if shape is None:
        return None
    sizes = [dim for dim in shape if isinstance(dim, int)]
    return tuple(sizes) if len(sizes) == len(shape) else None


def typed(values: Sequence[float], dtype: str) -> TensorProto:
    """A scalar (of one value) of any element type that NumPy or onnx knows."""
    return helper.make_tensor("", DTYPE_NUMBERS[dtype], [], list(values))
