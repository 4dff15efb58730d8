"""OpenVINO's layers that read or rewrite a shape, or join or enlarge tensors."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike, product
from splitgraph.formats.openvino_ir.notation import parse_shape
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.broadcasting import broadcast_dims
from splitgraph.inference.rules.onnx.constants import required_dim, target_shape
from splitgraph.inference.rules.onnx.joining import counted_out, required_sum, tiled
from splitgraph.inference.rules.onnx.shape import (
    follow_broadcast,
    keep_contents,
    reshaped,
    squeeze_axes,
    squeeze_ones,
    transposed,
    unsqueezed,
)
from splitgraph.inference.rules.openvino.attributes import element_type, flag, layer, listed, listed_axes, text
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    dims_of,
    exact_quotient,
    known_dtype,
    like_input,
    merged_dim,
    normal_axes,
    normal_axis,
    scalar_dim,
)
from splitgraph.inference.rules.signatures import shaped, shapes
from splitgraph.model.value_type import Item, ValueType, tensor, vector
from splitgraph.splits.openvino_split_1 import DOMAIN


@layer("ShapeOf", gives=(None,))
def shape_of(ctx: NodeContext) -> Sequence[ValueType]:
    """Return the dimensions of the input as a value."""
    dtype, dims = element_type(ctx, "output_type", "int64"), dims_of(ctx, 0)
    if dims is None:
        return [tensor(dtype, (None,))]
    ctx.set_contents(0, vector(dims))
    return [tensor(dtype, (len(dims),))]


@layer("Reshape")
def reshape(ctx: NodeContext) -> Sequence[ValueType]:
    """Give the input's elements the shape that the second input holds; with `special_zero`, 0 copies a dimension."""
    dtype, dims, target = ctx.input(0).dtype, dims_of(ctx, 0), listed(ctx, 1)
    if target is None:
        return [tensor(dtype, None)]
    zeros_copy = flag(ctx, "special_zero", False)
    if not zeros_copy and 0 in target:
        # Beside a 0 that is meant, only an input without elements fits, and -1 is 1 or 0.
        target = tuple(None if dim == -1 else dim for dim in target)
    result = reshaped(ctx, dims, target, not zeros_copy)
    keep_contents(ctx, result)
    return [tensor(dtype, result)]


@layer("Squeeze")
def squeeze(ctx: NodeContext) -> Sequence[ValueType]:
    """Remove dimensions of 1: those at the axes that are named, or all of them if none is named.

    A named dimension that is certainly not 1 stays. From version 15 on, `allow_axis_skip` means that a symbolic one may
    turn out to be another number, and then stays, too.
    """
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    given = ctx.has_input(1)
    axes = listed_axes(ctx, 1) if given else ()
    if dims is None or axes is None:
        return [tensor(dtype, None)]
    where = tuple(dict.fromkeys(normal_axis(axis, len(dims)) for axis in axes))
    result: Dims | None
    if not where:
        result = squeeze_ones(ctx, dims)
    else:
        where = tuple(axis for axis in where if not _is_never_one(ctx, dims[axis]))
        skips = flag(ctx, "allow_axis_skip", False) and any(dims[axis] != 1 for axis in where)
        result = None if skips else squeeze_axes(ctx, dims, where)
    if result is None:
        return [tensor(dtype, None)]
    keep_contents(ctx, result)
    return [tensor(dtype, result)]


def _is_never_one(ctx: NodeContext, dim: DimLike) -> bool:
    return dim != 1 and (isinstance(dim, int) or ctx.facts.prove_ne(dim, 1))


@layer("Unsqueeze")
def unsqueeze(ctx: NodeContext) -> Sequence[ValueType]:
    """Insert a dimension of 1 at each axis, counted in the output. A repeated axis counts once."""
    dtype, dims, axes = ctx.input(0).dtype, dims_of(ctx, 0), listed(ctx, 1)
    if dims is None or axes is None:
        return [tensor(dtype, None)]
    known = listed_axes(ctx, 1)
    if known is None:
        return [tensor(dtype, (None,) * (len(dims) + 1) if len(axes) == 1 else None)]
    where = tuple(dict.fromkeys(normal_axis(axis, len(dims) + len(known)) for axis in known))
    result = unsqueezed(dims, normal_axes(where, len(dims) + len(where)))
    keep_contents(ctx, result)
    return [tensor(dtype, result)]


@layer("Transpose")
def transpose(ctx: NodeContext) -> Sequence[ValueType]:
    """Put the axes into the order of the second input; an empty order reverses them."""
    dtype, dims, order = ctx.input(0).dtype, dims_of(ctx, 0), listed_axes(ctx, 1)
    if order is None:
        return [tensor(dtype, None if dims is None else (None,) * len(dims))]
    if sorted(order) != list(range(len(order))):
        raise InvalidNode(f"the order {list(order)} is not a permutation of the axes")
    if dims is None:
        return [tensor(dtype, (None,) * len(order) if order else None)]
    return [tensor(dtype, transposed(ctx, dims, order or None))]


@layer("Broadcast")
def broadcast(ctx: NodeContext) -> Sequence[ValueType]:
    """Give the input the shape that the second input holds; in the mode `bidirectional` both broadcast together."""
    dtype, dims, mode = ctx.input(0).dtype, dims_of(ctx, 0), text(ctx, "mode", "numpy")
    if mode == "bidirectional":
        result = broadcast_dims(ctx, (dims, _target(ctx)))
    elif mode == "explicit" or dims is None:
        result = _target(ctx)
    else:
        result = _one_way(ctx, dims, mode)
    if mode in ("numpy", "bidirectional"):
        follow_broadcast(ctx, result)
    return [tensor(dtype, result)]


def _target(ctx: NodeContext) -> Dims | None:
    """Return the dimensions that the second input holds; None if they are not known."""
    elements = listed(ctx, 1)
    return None if elements is None else tuple(required_dim(ctx, element) for element in elements)


def _one_way(ctx: NodeContext, dims: Dims, mode: str) -> Dims | None:
    """Return the dimensions of the data that is broadcast to the target; None if the target is not known."""
    elements = listed(ctx, 1)
    if elements is None or mode != "numpy":
        return _target(ctx)
    skipped = len(elements) - len(dims)
    if skipped < 0:
        raise InvalidNode(f"data of rank {len(dims)} cannot be broadcast to {len(elements)} dimensions")
    result = [required_dim(ctx, element) for element in elements[:skipped]]
    for dim, element in zip(dims, elements[skipped:], strict=True):
        if not _is_never_one(ctx, dim):
            result.append(required_dim(ctx, element))
        elif element is None:
            result.append(dim)
        else:
            result.append(
                merged_dim(ctx, dim, required_dim(ctx, element), "a dimension other than 1 and the target dimension")
            )
    return tuple(result)


@layer("BatchToSpace", "SpaceToBatch")
def batches_and_space(ctx: NodeContext) -> Sequence[ValueType]:
    """Lay batches out in space and crop it, or pad space and cut it into batches. The block has a side for each
    axis.
    """
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    lists = [listed(ctx, index) for index in (1, 2, 3)]
    if dims is None:
        return [tensor(dtype, None)]
    for elements in lists:
        if elements is not None and len(elements) != len(dims):
            raise InvalidNode(f"{len(elements)} elements for an input of rank {len(dims)}; one is required for each")
    block, before, after = (_integers(elements) for elements in lists)
    if block is None or before is None or after is None or min(block) < 1:
        return [tensor(dtype, (None,) * len(dims))]
    count = int(product(block))
    result: list[DimLike]
    if ctx.node.op_type == "BatchToSpace":
        spread = [dim * side for dim, side in zip(dims, block, strict=True)]
        result = [required_sum(ctx, dim, -low, -high) for dim, low, high in zip(spread, before, after, strict=True)]
        result[0] = exact_quotient(ctx, dims[0], count, "the batch size by the number of elements in a block")
    else:
        padded = [required_sum(ctx, dim, low, high) for dim, low, high in zip(dims, before, after, strict=True)]
        sides = zip(padded, block, strict=True)
        result = [exact_quotient(ctx, dim, side, "a padded spatial dimension by the block size") for dim, side in sides]
        result[0] = padded[0] * count
    return [tensor(dtype, result)]


def _integers(elements: Sequence[DimLike | None] | None) -> list[int] | None:
    known = [element for element in elements or () if isinstance(element, int)]
    return known if elements is not None and len(known) == len(elements) else None


@layer("Eye", gives=(None,))
def eye(ctx: NodeContext) -> Sequence[ValueType]:
    """Make matrices with ones on a diagonal. Rows, columns and the shape of batches are inputs."""
    rows, columns = (required_dim(ctx, scalar_dim(ctx, index)) for index in (0, 1))
    batches = target_shape(ctx, 3) if ctx.has_input(3) else ()
    return [tensor(element_type(ctx, "output_type", None), None if batches is None else (*batches, rows, columns))]


# Batch and channels of the data, at the points of the grid.
shaped("GridSample", "data: B C ? ?", "grid: B H W 2", gives="0 B C H W", domain=DOMAIN)


@layer("ReadValue")
def read_value(ctx: NodeContext) -> Sequence[ValueType]:
    """Read a variable, of the type and shape that the layer says; before version 6, of those of its first value."""
    if "variable_shape" not in ctx.attributes():
        return [like_input(ctx)]
    try:
        shape = parse_shape(text(ctx, "variable_shape"))
    except ValueError as fault:
        raise InvalidNode(f"attribute 'variable_shape': {fault}") from None
    dims = None if shape is None else [lowest if lowest == most else None for lowest, most in shape]
    return [tensor(element_type(ctx, "variable_type", None), dims)]


@layer("Multinomial", gives=(None,))
def multinomial(ctx: NodeContext) -> Sequence[ValueType]:
    """Draw as many samples for each batch as the second input says."""
    dtype = element_type(ctx, "convert_type", None) or "?"
    return shapes(ctx, "probs: B ?", sizes={"S": required_dim(ctx, scalar_dim(ctx, 1))}, gives=f"{dtype} B S")


# Strings from where they begin and end and their characters, and back.
shaped("StringTensorPack", "begins: ...", "ends: ...", "symbols: C", gives="string ...", domain=DOMAIN)
shaped("StringTensorUnpack", "data: ...", gives=("int32 ...", "int32 ...", "uint8 C"), domain=DOMAIN)


@layer("RandomUniform", gives=(None,))
def random(ctx: NodeContext) -> Sequence[ValueType]:
    """Draw random numbers in the shape that the first input holds."""
    return [tensor(element_type(ctx, "output_type", None), target_shape(ctx, 0))]


@layer("Tile")
def tile(ctx: NodeContext) -> Sequence[ValueType]:
    """Repeat the input along each axis. If there are fewer axes or fewer repeats, 1 is added in front."""
    dtype, dims, repeats = ctx.input(0).dtype, dims_of(ctx, 0), listed(ctx, 1)
    if dims is None or repeats is None:
        return [tensor(dtype, None)]
    rank = max(len(dims), len(repeats))
    ones = (1,) * rank
    return [tensor(dtype, tiled(ctx, ones[len(dims) :] + dims, ones[len(repeats) :] + repeats))]


@layer("Pad")
def pad(ctx: NodeContext) -> Sequence[ValueType]:
    """Add elements at both ends of each axis, or remove elements for negative pads."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    before, after = listed(ctx, 1), listed(ctx, 2)
    if dims is None:
        return [tensor(dtype, None)]
    rank = len(dims)
    for pads in (before, after):
        if pads is not None and len(pads) != rank:
            raise InvalidNode(f"{len(pads)} pads for an input of rank {rank}; one is required for each axis")
    if before is None or after is None:
        return [tensor(dtype, (None,) * rank)]
    result: list[DimLike | None] = [
        None if low is None or high is None else required_sum(ctx, dim, low, high)
        for dim, low, high in zip(dims, before, after, strict=True)
    ]
    return [tensor(dtype, result)]


@layer("Range", gives=(None,))
def range_(ctx: NodeContext) -> Sequence[ValueType]:
    """Count from start up to stop in steps of step. Version 4 names the element type, and first converts to it."""
    if "output_type" not in ctx.attributes():
        return [counted_out(ctx, known_dtype(ctx, range(3)))]
    dtype = element_type(ctx, "output_type", None)
    if dtype is None or not all(_is_kept(ctx, index, dtype) for index in range(3)):
        return [tensor(dtype, (None,))]
    return [counted_out(ctx, dtype)]


def _is_kept(ctx: NodeContext, index: int, dtype: str) -> bool:
    """Return True if a conversion to this type leaves the number as it is."""
    contents = ctx.contents(index)
    item: Item = None if contents is None else contents.scalar
    return ctx.input(index).dtype == dtype or isinstance(item, int) or (isinstance(item, float) and item.is_integer())
