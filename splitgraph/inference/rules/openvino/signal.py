"""OpenVINO's Fourier transforms, whose complex numbers have a last axis of 2, and its recurrent layers."""

from __future__ import annotations

from collections.abc import Sequence

from splitgraph.dim import DimLike
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.onnx.constants import required_dim
from splitgraph.inference.rules.openvino.attributes import flag, layer, listed, listed_axes, number
from splitgraph.inference.rules.operands import (
    Dims,
    InvalidNode,
    dims_of,
    normal_axes,
    scalar_dim,
)
from splitgraph.inference.rules.signatures import shapes
from splitgraph.inference.rules.windows import nonnegative
from splitgraph.model.value_type import ValueType, tensor

_COMPLEX = 2


@layer("DFT", "IDFT")
def transform(ctx: NodeContext) -> Sequence[ValueType]:
    """Transform the axes, to the signal sizes if these are given."""
    dtype, dims = ctx.input(0).dtype, _complex_dims(ctx)
    if dims is None:
        return [tensor(dtype, None)]
    sides = _transformed(ctx, dims[:-1])
    # Without signal sizes, any axis keeps its size.
    kept = dims[:-1] if not ctx.has_input(2) else (None,) * (len(dims) - 1)
    return [tensor(dtype, (*(kept if sides is None else sides[0]), _COMPLEX))]


@layer("RDFT")
def real_transform(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute complex numbers; on the last of the transformed axes only half of them, as the others follow."""
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    if dims is None:
        return [tensor(dtype, None)]
    transformed = _transformed(ctx, dims)
    if transformed is None:
        return [tensor(dtype, (*(None,) * len(dims), _COMPLEX))]
    sides, last = transformed
    size = None if last is None else sides[last]
    if last is not None and size is not None:
        sides[last] = size // 2 + 1
    return [tensor(dtype, (*sides, _COMPLEX))]


@layer("IRDFT")
def real_inverse(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute real numbers from half of the complex ones on the last of the transformed axes."""
    dtype, dims = ctx.input(0).dtype, _complex_dims(ctx)
    if dims is None:
        return [tensor(dtype, None)]
    transformed = _transformed(ctx, dims[:-1])
    if transformed is None:
        return [tensor(dtype, (None,) * (len(dims) - 1))]
    sides, last = transformed
    given = listed(ctx, 2) if ctx.has_input(2) else (-1,)
    if last is not None and given is not None and given[-1] == -1:
        sides[last] = nonnegative(2 * (dims[last] - 1))
    return [tensor(dtype, sides)]


def _complex_dims(ctx: NodeContext) -> Dims | None:
    dims = dims_of(ctx, 0)
    if dims is not None and (len(dims) < 2 or (isinstance(dims[-1], int) and dims[-1] != _COMPLEX)):
        raise InvalidNode(f"the data must have rank 2 or more and a last axis of 2, not {len(dims)} axes")
    return dims


def _transformed(ctx: NodeContext, dims: Dims) -> tuple[list[DimLike | None], int | None] | None:
    """Return the sizes of the signals, and the last of the transformed axes; None if the axes are unknown."""
    axes = listed_axes(ctx, 1)
    if axes is None:
        return None
    where = normal_axes(axes, len(dims))
    sides: list[DimLike | None] = list(dims)
    if ctx.has_input(2):
        given = listed(ctx, 2)
        if given is not None and len(given) != len(where):
            raise InvalidNode(f"{len(given)} signal sizes for {len(where)} axes; one is required for each")
        for axis, size in zip(where, given or (None,) * len(where), strict=True):
            if size != -1:
                sides[axis] = None if size is None else required_dim(ctx, size)
    return sides, where[-1] if where else None


@layer("STFT")
def short_transform(ctx: NodeContext) -> Sequence[ValueType]:
    """Transform each frame of a signal. The output has frames and frequencies, or with `transpose_frames` frequencies
    first.
    """
    dtype, dims = ctx.input(0).dtype, dims_of(ctx, 0)
    if dims is None:
        return [tensor(dtype, None)]
    size, step = scalar_dim(ctx, 2), scalar_dim(ctx, 3)
    frames: DimLike | None = None
    if isinstance(size, int) and isinstance(step, int):
        if size < 1 or step < 1:
            raise InvalidNode(f"frame size {size} and step {step} must be at least 1")
        ctx.require(dims[-1], ">=", size, message="a frame must fit into the signal")
        frames = (dims[-1] - size) // step + 1
    frequencies = None if size is None else size // 2 + 1
    sides = (frequencies, frames) if flag(ctx, "transpose_frames", False) else (frames, frequencies)
    return [tensor(dtype, (*dims[:-1], *sides, _COMPLEX))]


@layer("ISTFT")
def short_inverse(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute the signal of overlapping frames, in the length that the last input holds."""
    dtype, dims = ctx.input(0).dtype, _complex_dims(ctx)
    if dims is None:
        return [tensor(dtype, None)]
    length = required_dim(ctx, scalar_dim(ctx, 4)) if ctx.has_input(4) else None
    size, step = scalar_dim(ctx, 2), scalar_dim(ctx, 3)
    if not ctx.has_input(4) and isinstance(size, int) and step is not None:
        ctx.require(dims[-2], ">=", 1, message="the signal must have a frame")
        cut = size // 2 * 2 if flag(ctx, "center", False) else 0
        length = nonnegative((dims[-2] - 1) * step + size - cut)
    return [tensor(dtype, (*dims[:-3], length))]


# How many states there are besides the data: the hidden one, and the cell of an LSTM.
STATES = {"LSTM": 2, "GRU": 1, "RNN": 1, "AUGRU": 1}


@layer("LSTMCell", "GRUCell", "RNNCell", "AUGRUCell", gives=(0, 0))
def cell(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute the next states, for each batch."""
    states = STATES[ctx.node.op_type.removesuffix("Cell")]
    inputs = ("X: B I", *("initial_state: B H",) * states)
    gives = (f"{_first(1 + states)} B H",) * states
    return shapes(ctx, *inputs, sizes={"H": number(ctx, "hidden_size", 0) or None}, gives=gives)


def _first(count: int) -> str:
    """Return the type that so many inputs share."""
    return ",".join(map(str, range(count)))


@layer("LSTMSequence", "GRUSequence", "RNNSequence", "AUGRUSequence", gives=(0, 0, 0))
def sequence(ctx: NodeContext) -> Sequence[ValueType]:
    """Compute all hidden states for each batch and direction, and the last states."""
    states = STATES[ctx.node.op_type.removesuffix("Sequence")]
    directions = 2 if ctx.attribute("direction", "forward") == "bidirectional" else 1
    dtype = _first(1 + states)
    return shapes(
        ctx,
        *("X: B T I", *("initial_state: B D H",) * states, "sequence_lengths: B"),
        sizes={"D": directions, "H": number(ctx, "hidden_size", 0) or None},
        gives=(f"{dtype} B D T H", *(f"{dtype} B D H",) * states),
    )
