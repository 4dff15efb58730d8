"""Nodes that compute at run time what an attribute would say: shapes, masks of axes, ranges.

Everything is written for the opset of the context, with operators that are the same on both sides of the opsets where
they are used: Reshape changes a shape, never Squeeze, and Gather takes a part of one, never Slice.
"""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.deferred import helper, np
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NUMBERS

FLOATS = ("float16", "float32", "float64")
# The number of bits of each integer type that old opsets know.
INTEGER_BITS = {f"{kind}{bits}": bits for kind in ("int", "uint") for bits in (8, 16, 32, 64)}
GREATEST_INT64 = 2**63 - 1
# The types that ConstantOfShape makes below opset 20.
_FILLED = {*INTEGER_BITS, "bool", *FLOATS}


def filled(node: NodeAtBoundary, shape: str, value: int, hint: str, dtype: str = "int64") -> str:
    """Makes a tensor of one value; `shape`, int64[rank], holds its shape. Needs opset 9."""
    if dtype not in _FILLED and (node.opset < 20 or dtype != "bfloat16"):
        raise Inexact(f"ConstantOfShape does not make {dtype} {node.side}")
    held = helper.make_tensor("", DTYPE_NUMBERS[dtype], [1], [value])
    return node.write("ConstantOfShape", [shape], hint, value=held)


def flat(node: NodeAtBoundary, value: str, hint: str) -> str:
    """Reshapes a tensor to one dimension."""
    return node.write("Reshape", [value, node.constant([-1], "flat_shape")], hint)


def scalar(node: NodeAtBoundary, value: str, hint: str) -> str:
    """Reshapes a tensor of one element to rank 0."""
    return node.write("Reshape", [value, node.constant(np.zeros(0), "scalar_shape")], hint)


def dimension(node: NodeAtBoundary, shape: str, axis: int, hint: str) -> str:
    """Takes one element of a shape, as a scalar."""
    return node.write("Gather", [shape, node.constant(axis, "axis")], hint, axis=0)


def as_int64(node: NodeAtBoundary, value: str, hint: str) -> str:
    """Casts to int64, unless the value is an input of this type. uint64 keeps its bits."""
    if value in node.inputs and node.values.type_of(value).dtype == "int64":
        return value
    return node.write("Cast", [value], hint, to=TensorProto.INT64)


def wide_float(dtype: str) -> str:
    """Gives the type in which floating-point numbers are computed: float64 for float64, float32 for the others."""
    return "float64" if dtype == "float64" else "float32"


def widened(node: NodeAtBoundary, value: str, dtype: str | None, wide: str) -> str:
    """Casts a value to a wider type, unless the value has this type."""
    return value if dtype == wide else node.write("Cast", [value], "wide", to=DTYPE_NUMBERS[wide])


def replace_by_cast(node: NodeAtBoundary, value: str, dtype: str, wanted: str) -> None:
    """Makes the node a Cast of a value to the wanted type, or an Identity where the value has this type."""
    if dtype == wanted:
        node.replace("Identity", [value])
    else:
        node.replace("Cast", [value], to=DTYPE_NUMBERS[wanted])


def counting(node: NodeAtBoundary, count: str, hint: str) -> str:
    """Counts 0, 1, 2, ... as int64[count]; count is int64[1]. Needs opset 9."""
    return flat(node, node.write("NonZero", [filled(node, count, 1, "ones")], "positions"), hint)


def positions(node: NodeAtBoundary, mask: str, hint: str) -> str:
    """Gives the positions where a 1-D mask is true, as int64[number of true elements]. Needs opset 9."""
    return flat(node, node.write("NonZero", [mask], f"{hint}_row"), hint)


def counted_from_front(node: NodeAtBoundary, indices: str, size: str, hint: str) -> str:
    """Counts negative int64 indices into a dimension of `size` elements from the front. Needs opset 9."""
    is_negative = node.write("Less", [indices, node.constant(0, "zero")], f"{hint}_is_negative")
    return node.write("Where", [is_negative, node.write("Add", [indices, size], f"{hint}_from_end"), indices], hint)


def mask_of_axes(node: NodeAtBoundary, axes: str, rank: str, hint: str) -> str:
    """Gives a boolean for each of `rank` (int64[1]) dimensions: whether the axes name it. Axes may be negative, and
    there may be none.

    Needs opset 11, and the axes in one dimension.
    """
    ones = filled(node, node.write("Shape", [axes], "axes_count"), 1, "axes_ones")
    marked = node.write("ScatterElements", [filled(node, rank, 0, "no_axes"), axes, ones], f"{hint}_marked", axis=0)
    return node.write("Cast", [marked], hint, to=TensorProto.BOOL)


def kept_dimensions(node: NodeAtBoundary, shape: str, mask: str) -> str:
    """Gives the dimensions of a shape for which a mask is false."""
    kept = positions(node, node.write("Not", [mask], "is_kept"), "kept_axes")
    return node.write("Gather", [shape, kept], "left")


def has_no_zero(node: NodeAtBoundary, name: str) -> bool:
    """True when every dimension of a value is known and not 0."""
    shape = node.values.type_of(name).shape
    return shape is not None and all(isinstance(dim, int) and dim > 0 for dim in shape)


def without_empty(node: NodeAtBoundary, data: str, shape: str, dtype: str) -> tuple[str, str]:
    """Gives the data and its shape (int64[rank]). Where a dimension is 0, gives zeros of a shape with 1 for each such
    dimension; `cut_to` undoes this. Needs opset 9, and at least one dimension.
    """
    elements, solid = _with_elements(node, data, shape, dtype)
    return node.write("Reshape", [elements, solid], "not_empty"), solid


def cut_to(node: NodeAtBoundary, data: str, shape: str, like: str) -> str:
    """Cuts `data` to `shape`, the shape of the value `like`. The data may be longer along dimensions that may be 0.

    Slice is not used: its ends can only be computed from opset 10 on.
    """
    sizes = node.values.type_of(like).shape or ()
    for axis in [axis for axis, size in enumerate(sizes) if not isinstance(size, int) or size <= 0]:
        size = node.write("Gather", [shape, node.constant([axis], "axis")], "size", axis=0)
        data = node.write("Gather", [data, counting(node, size, "kept")], "cut", axis=axis)
    return data


def _with_elements(node: NodeAtBoundary, data: str, shape: str, dtype: str) -> tuple[str, str]:
    """Gives the elements of data in one dimension, and the shape with 1 for each 0. Empty data gets as many zeros as
    this shape holds.
    """
    zero = node.write("Equal", [shape, node.constant([0], "zero")], "is_zero")
    total = node.write("ReduceSum", [as_int64(node, zero, "zeros")], "zero_count", keepdims=1)
    hollow = node.write("Cast", [total], "is_empty", to=TensorProto.BOOL)
    solid = node.write("Where", [zero, node.constant([1], "one"), shape], "without_zeros")
    # Without a dimension of 0, the shape may have a -1, and no element is added.
    product = node.write("ReduceProd", [solid], "element_count", keepdims=1)
    count = node.write("Where", [hollow, product, node.constant([0], "none")], "added_count")
    added = filled(node, count, 0, "added", dtype)
    return node.write("Concat", [flat(node, data, "elements"), added], "padded", axis=0), solid


def static_shape(node: NodeAtBoundary, name: str) -> tuple[int, ...] | None:
    """Gives the shape of a value, None unless every dimension is known."""
    shape = node.values.type_of(name).shape
    if shape is None:
        return None
    sizes = [dim for dim in shape if isinstance(dim, int)]
    return tuple(sizes) if len(sizes) == len(shape) else None


def typed(values: Sequence[float], dtype: str) -> TensorProto:
    """Makes a scalar (from a list of one value) of any element type that NumPy or onnx knows."""
    return helper.make_tensor("", DTYPE_NUMBERS[dtype], [], list(values))
