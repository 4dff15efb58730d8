"""Fourier transforms and the windows and filters for them."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.onnx.constants import required_dim
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    dims_of,
    dims_of_rank,
    dtype_attribute,
    expect,
    expect_shapes,
    int_attribute,
    merged_dim,
    normal_axis,
    operator,
    ranked_dims,
    scalar_dim,
)
from splitgraph.value_type import ValueType, tensor

_AXIS_INPUT_SINCE = 20


@operator("BlackmanWindow", "HammingWindow", "HannWindow", gives=(None,))
def window(ctx: NodeContext) -> Sequence[ValueType]:
    """Make a window of as many elements as the input says."""
    expect_shapes(ctx, "size: scalar")
    return [tensor(dtype_attribute(ctx, "output_datatype", "float32"), (required_dim(ctx, scalar_dim(ctx, 0)),))]


@operator("MelWeightMatrix", gives=(None,))
def mel_weight_matrix(ctx: NodeContext) -> Sequence[ValueType]:
    """Make a row for each frequency of a transform of `dft_length`, and a column for each band."""
    names = ("num_mel_bins", "dft_length", "sample_rate", "lower_edge_hertz", "upper_edge_hertz")
    expect_shapes(ctx, *(f"{name}: scalar" for name in names))
    bands, length = scalar_dim(ctx, 0), scalar_dim(ctx, 1)
    rows = None if length is None else required_dim(ctx, length) // 2 + 1
    return [tensor(dtype_attribute(ctx, "output_datatype", "float32"), (rows, required_dim(ctx, bands)))]


@operator("DFT")
def dft(ctx: NodeContext) -> Sequence[ValueType]:
    """Transform along one axis; the last axis holds real and imaginary part."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    expect_shapes(ctx, "", "dft_length: scalar", "axis: scalar")
    inverse, half = bool(int_attribute(ctx, "inverse", 0)), bool(int_attribute(ctx, "onesided", 0))
    if dims is None:
        return [tensor(dtype, None)]
    if len(dims) < 2:
        raise InvalidNode(
            f"the input has rank {len(dims)}; it must have an axis before the one of real and imaginary parts"
        )
    if isinstance(dims[-1], int) and dims[-1] not in (1, 2):
        raise InvalidNode(f"the last dimension is {dims[-1]}; it must be 1 for real and 2 for complex numbers")
    if half and not inverse and dims[-1] == 2:
        raise InvalidNode("the input is complex; onesided requires real input")
    if half and inverse and dims[-1] == 1:
        raise InvalidNode("the input is real; a onesided inverse transform requires complex input")
    parts = 1 if inverse and half else 2
    axis = _dft_axis(ctx, len(dims))
    if axis is None and not half and not ctx.has_input(1):
        # Whichever axis it is, it keeps its length.
        return [tensor(dtype, (*dims[:-1], parts))]
    if axis is None:
        return [tensor(dtype, (*(None,) * (len(dims) - 1), parts))]
    length = _dft_length(ctx, dims[axis], inverse and half)
    result: list[DimLike | None] = [*dims[:-1], parts]
    result[axis] = length // 2 + 1 if half and not inverse and length is not None else length
    return [tensor(dtype, result)]


def _dft_axis(ctx: NodeContext, rank: int) -> int | None:
    if ctx.since_version < _AXIS_INPUT_SINCE:
        axis: DimLike | None = int_attribute(ctx, "axis", 1)
    else:
        axis = scalar_dim(ctx, 2) if ctx.has_input(2) else -2
    if not isinstance(axis, int):
        return None
    normal = normal_axis(axis, rank)
    if normal == rank - 1:
        raise InvalidNode(f"axis {axis} holds the real and imaginary parts and cannot be transformed")
    return normal


def _dft_length(ctx: NodeContext, dim: DimLike, doubled: bool) -> DimLike | None:
    if ctx.has_input(1):
        given = scalar_dim(ctx, 1)
        return None if given is None else required_dim(ctx, given)
    return required_dim(ctx, 2 * (dim - 1)) if doubled else dim


@operator("STFT")
def stft(ctx: NodeContext) -> Sequence[ValueType]:
    """Transform the frames that move along the signal.

    The document has signals of rank 3. onnx's own inference and onnxruntime take rank 2 for real signals, without the
    last dimension, and exported models rely on it.
    """
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    dims_of_rank(ctx, 2, 1)
    expect_shapes(ctx, "", "frame_step: scalar", "", "frame_length: scalar")
    if dims is not None and len(dims) not in (2, 3):
        raise InvalidNode(f"input 0 has rank {len(dims)}; it must have rank 3, or rank 2 for a real signal")
    step, length = scalar_dim(ctx, 1), _frame_length(ctx, dims)
    bins = length // 2 + 1 if length is not None and int_attribute(ctx, "onesided", 1) else length
    batch = None if dims is None else dims[0]
    if dims is None or length is None or not isinstance(step, int):
        return [tensor(dtype, (batch, None, bins, 2))]
    if step < 1:
        raise InvalidNode(f"frame_step is {step}; it must be at least 1")
    room = dims[1] - length
    expect(ctx, room, ">=", 0, partial("a frame of {} does not fit a signal of {}".format, length, dims[1]))
    return [tensor(dtype, (batch, room // step + 1, bins, 2))]


def _frame_length(ctx: NodeContext, dims: Dims | None) -> DimLike | None:
    given = required_dim(ctx, scalar_dim(ctx, 3)) if ctx.has_input(3) and scalar_dim(ctx, 3) is not None else None
    if ctx.has_input(2):
        return merged_dim(ctx, given, ranked_dims(ctx, 2, 1)[0], "frame_length and the length of the window")
    if ctx.has_input(3):
        return given
    return None if dims is None else dims[1]
