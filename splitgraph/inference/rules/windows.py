"""The number of positions of a sliding window along a dimension, for convolution and pooling."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from splitgraph.dim import Dim, DimLike, ceildiv, dim_min
from splitgraph.inference.context import NodeContext
from splitgraph.inference.rules.operands import InvalidNode, expect, ints_attribute

AUTO_PADS = ("NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")


@dataclass(frozen=True, slots=True)
class Windows:
    """The attributes of a node whose windows slide over `rank` spatial dimensions."""

    rank: int
    strides: tuple[int, ...]
    dilations: tuple[int, ...]
    pads: tuple[int, ...]
    auto_pad: str

    @property
    def pads_before(self) -> tuple[int, ...]:
        """Return the pads at the start of each dimension."""
        return self.pads[: self.rank]

    @property
    def pads_after(self) -> tuple[int, ...]:
        """Return the pads at the end of each dimension."""
        return self.pads[self.rank :]


def read_windows(ctx: NodeContext, rank: int) -> Windows:
    """Return strides, dilations and pads of a node. Raise InvalidNode if they do not fit its spatial dimensions."""
    strides = one_per_axis(ints_attribute(ctx, "strides"), "strides", rank, 1)
    check_each("strides", strides)
    dilations = one_per_axis(ints_attribute(ctx, "dilations"), "dilations", rank, 1)
    check_each("dilations", dilations)
    pads = ints_attribute(ctx, "pads")
    if pads is None:
        pads = (0,) * (2 * rank)
    if len(pads) != 2 * rank:
        raise InvalidNode(f"{len(pads)} pads for {rank} spatial dimensions; two are required for each")
    check_each("pads", pads, least=0)
    auto_pad = ctx.attribute("auto_pad", "NOTSET") or "NOTSET"
    if auto_pad not in AUTO_PADS:
        raise InvalidNode(f"auto_pad is {auto_pad!r}; it must be one of {', '.join(AUTO_PADS)}")
    # Runtimes take both of them for pooling, and let auto_pad decide.
    if auto_pad != "NOTSET" and ctx.has_attribute("pads") and _convolves(ctx):
        raise InvalidNode(f"both pads and auto_pad {auto_pad} are given; only one is allowed")
    return Windows(rank, strides, dilations, pads, auto_pad)


def one_per_axis(given: tuple[int, ...] | None, name: str, rank: int, default: int) -> tuple[int, ...]:
    """Return the numbers of an attribute, or the default for each spatial dimension if it is absent. Raise InvalidNode
    for another count.
    """
    if given is None:
        return (default,) * rank
    if len(given) != rank:
        raise InvalidNode(f"{len(given)} {name} for {rank} spatial dimensions; one is required for each")
    return given


def check_each(name: str, values: Sequence[int], *, least: int = 1) -> None:
    """Raise InvalidNode if one of the numbers of an attribute is less than `least`."""
    if any(value < least for value in values):
        verb = "are" if name.endswith("s") else "is"
        raise InvalidNode(f"{name} {verb} {list(values)}; each element must be at least {least}")


def window_counts(
    ctx: NodeContext,
    dims: Sequence[DimLike],
    kernel: Sequence[DimLike | None],
    windows: Windows,
    *,
    round_up: bool = False,
) -> list[DimLike | None]:
    """Return the number of windows along each dimension, None if it is unknown.

    round_up: the last window may reach over the end (ceil_mode), if it does not begin in the padding after it. Raise
    InvalidNode if a window is larger than its padded dimension; require a symbolic one not to be.
    """
    return [_count(ctx, dim, kernel[axis], windows, axis, round_up) for axis, dim in enumerate(dims)]


def _count(
    ctx: NodeContext, dim: DimLike, kernel: DimLike | None, windows: Windows, axis: int, round_up: bool
) -> DimLike | None:
    """Return how many windows lie along an axis; None for a kernel of unknown size. Require that one fits.

    dim: the size of the data along the axis. kernel: the number of taps.
    """
    stride = windows.strides[axis]
    if windows.auto_pad in ("SAME_UPPER", "SAME_LOWER"):
        return ceildiv(dim, stride)
    if kernel is None:
        return None
    before, after = (0, 0) if windows.auto_pad == "VALID" else (windows.pads_before[axis], windows.pads_after[axis])
    extent = (kernel - 1) * windows.dilations[axis] + 1
    room = dim + before + after - extent
    if round_up:
        return _count_rounded_up(dim, room, extent, before, after, stride)
    if isinstance(room, Dim) and ctx.facts.prove_ge(room, 0):
        return room // stride + 1

    def fault() -> str:
        return f"a window of {extent} does not fit a dimension of {dim} with pads {before} and {after}"

    fixed = ctx.facts.simplify(room, fixed=True)
    # A number stands for the symbols only where it is too small: elsewhere their names say more.
    if isinstance(fixed, int) and (fixed < 0 or isinstance(room, int)):
        return _static_count(ctx, fixed, stride, fault)
    # Of one position too little, steps of 1 leave nothing, which pooling takes; other steps are rounded in two ways.
    least = -1 if stride == 1 and not _convolves(ctx) else 0
    if not ctx.facts.prove_ge(room, least):
        expect(ctx, room, ">=", least, fault)
    return room // stride + 1


def _convolves(ctx: NodeContext) -> bool:
    return "Conv" in ctx.node.op_type


def _static_count(ctx: NodeContext, room: int, stride: int, fault: Callable[[], str]) -> int | None:
    if room >= 0:
        return room // stride + 1
    if _convolves(ctx) or room <= -2 * stride:
        raise InvalidNode(fault())
    # Pooling over less than a window: onnxruntime rounds the negative quotient up, the specification rounds it down.
    return 0 if room == -stride else None


def _count_rounded_up(
    dim: DimLike, room: DimLike, extent: DimLike, before: int, after: int, stride: int
) -> DimLike | None:
    if isinstance(room, int) and room <= -2 * stride:
        raise InvalidNode(f"a window of {extent} does not fit a dimension of {dim} with pads {before} and {after}")
    count = ceildiv(room, stride)
    if isinstance(extent, Dim):
        return None
    if stride <= extent - after:
        return count + 1
    if after >= extent:
        # A window could lie in the padding altogether; how many of those are dropped, the peers answer differently.
        return None
    return dim_min(count, (dim + before - 1) // stride) + 1


def spread_dim(windows: Windows, axis: int, dim: DimLike, size: DimLike, extra: int = 0) -> DimLike:
    """Return the dimension that windows of `size` elements cover if they stand at `dim` positions, without the pads and
    with `extra` elements. Raise InvalidNode if that is less than nothing.
    """
    extent = (size - 1) * windows.dilations[axis] + 1
    cut = windows.pads_before[axis] + windows.pads_after[axis] if windows.auto_pad == "NOTSET" else 0
    return nonnegative(windows.strides[axis] * (dim - 1) + extra + extent - cut)


def nonnegative(dim: DimLike) -> DimLike:
    """Return a dimension without pads. Raise InvalidNode if it is negative."""
    if isinstance(dim, int) and dim < 0:
        raise InvalidNode(f"the negative pads leave a dimension of {dim}")
    return dim
