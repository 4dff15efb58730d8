"""AveragePool, MaxPool, LpPool and ConvTranspose: padding that counts (7), rounding up (10), windows with holes (10,
18, 19), windows in the padding (22), and padding that follows from auto_pad (11).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod

from splitgraph.attribute_values import UNRESOLVED
from splitgraph.contents import MAX_ITEMS, MAX_WRITTEN
from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.conversion.nodes.known_values import Array
from splitgraph.conversion.nodes.omitted_arguments import INLINE_FIRST
from splitgraph.conversion.operators.registry import changed, downward, exact, unchanged, upward
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact, require_few
from splitgraph.conversion.writing.formula import Formula, Term
from splitgraph.deferred import np, numpy_helper
from splitgraph.dim import Facts

_NO_WINDOW = "a window is larger than the input with its padding"


@dataclass(slots=True)
class _Window:
    """The windows along one axis: the number of elements that they span, their distance, and the padding."""

    span: int
    stride: int
    begin: int
    end: int

    def count(self, size: int, *, up: bool) -> int:
        """Gives the number of windows on so many elements; up: with a last one that reaches beyond the padding."""
        room = size + self.begin + self.end - self.span
        return (-(-room // self.stride) if up else room // self.stride) + 1

    def last_starts_inside(self, size: int, count: int) -> bool:
        """True when the last of so many windows does not start in the padding at the end."""
        return (count - 1) * self.stride < size + self.begin


unchanged("GlobalAveragePool GlobalMaxPool MaxRoiPool", 22)
unchanged("Conv MaxUnpool", 11, 22)
unchanged("GlobalLpPool", 2, 22)

# AveragePool, MaxPool, LpPool ---------------------------------------------------------------------------------------

unchanged("AveragePool", 7, 10, 11, 19)
unchanged("LpPool", 2, 11, 18)
unchanged("MaxPool", 8, 10, 11, 12)


@downward("AveragePool", 7)
def pad_with_zeros_that_count(context: AdapterContext) -> None:
    """Pads with zeros, which count, by Pad. Below 7, padding of the node never counts."""
    pads, kernel = context.known_value("pads", ()), context.known_value("kernel_shape")
    if context.value_or_default("auto_pad") not in ("NOTSET", "VALID"):
        raise Inexact("count_include_pad does not exist below it, and here the padding is worked out from auto_pad")
    context.drop("count_include_pad", "pads", why="Pad adds the padding that counts")
    if any(pads):
        axes = len(kernel)
        context.inputs[0] = context.emit(
            "Pad", [context.inputs[0]], "padded", pads=[0, 0, *pads[:axes], 0, 0, *pads[axes:]], mode="constant"
        )


@downward("MaxPool", 8)
def drop_indices(context: AdapterContext) -> None:
    """Drops the output Indices, which does not exist below 8, and their order."""
    if context.uses_output(1) and context.is_read(context.outputs[1]):
        raise Inexact("the output Indices does not exist below it")
    del context.outputs[1:]
    context.drop("storage_order", why="it is the order of the indices, which nobody reads")


@downward("AveragePool", 10)
@downward("MaxPool", 10)
def write_ceiling_as_padding(context: AdapterContext) -> None:
    """Writes more padding at the end in place of ceil_mode, which does not exist below 10. The maximum and the mean of
    the elements outside the padding do not depend on the padding; a mean that includes padding is corrected.
    """
    _correct_mean(context, _write_ceiling(context))
    if any(dilation != 1 for dilation in context.known_value("dilations", ())):
        _greatest_of_slices(context)
    else:
        context.drop("dilations", why="all are 1, and they do not exist below opset 10")


def _correct_mean(context: AdapterContext, counted: Array | None) -> None:
    """Corrects a mean over whole windows to a mean over the elements that count."""
    if counted is None:
        return
    whole = prod(context.known_value("kernel_shape"))
    f = Formula(context)
    f.follow(0, lambda mean: mean * f.number(whole / counted, context.known_dtype(0)))


def _write_ceiling(context: AdapterContext) -> Array | None:
    """Removes ceil_mode. Gives the number of elements that count in each window, as `_write_padding` does."""
    if context.value_or_default("ceil_mode") is UNRESOLVED or context.value_or_default("auto_pad") is UNRESOLVED:
        raise Inexact("ceil_mode is an attribute of the enclosing function", INLINE_FIRST)
    if not context.known_is_set("ceil_mode") or context.value_or_default("auto_pad").startswith("SAME"):
        context.drop("ceil_mode", why="both roundings give as many windows")
        return None
    if _fits_every_size(context):
        _write_padding_of_every_size(context)
        return None
    sizes = _spatial_sizes(context)
    if context.old.since_version < 22 and not _windows_start_inside(context, sizes):
        raise Inexact("here a window starts in the padding, and what it gives below 22 is not said")
    return _write_padding(context, sizes)


def _fits_every_size(context: AdapterContext) -> bool:
    """True where the size of the input is not static, and more padding gives the same windows as ceil_mode for every
    size.

    Padding of one element less than a stride makes as many windows as rounding up does. The last window begins at most
    this far behind the last place where a whole window fits; it begins inside when this distance and the padding at the
    end are less than its span. The number of elements that count must not depend on the padding: so padding that counts
    is excluded.
    """
    shape, pads = context.shape(0), context.known_value("pads", ())
    if shape is None or all(isinstance(size, int) for size in shape[2:]):
        return False
    if context.value_or_default("auto_pad") != "NOTSET" or (context.known_is_set("count_include_pad") and any(pads)):
        return False
    return all(window.end + window.stride - 1 < window.span for window in _windows(context))


def _windows(context: AdapterContext) -> list[_Window]:
    """Gives the windows along each axis."""
    kernel = context.known_value("kernel_shape")
    ones, zeros = (1,) * len(kernel), (0,) * 2 * len(kernel)
    strides, dilations = context.known_value("strides", ones), context.known_value("dilations", ones)
    pads = context.known_value("pads", zeros)
    ends = pads[len(kernel) :]
    rows = zip(kernel, strides, dilations, pads, ends, strict=False)
    return [_Window((k - 1) * d + 1, stride, begin, end) for k, stride, d, begin, end in rows]


def _write_padding_of_every_size(context: AdapterContext) -> None:
    """Writes padding that replaces ceil_mode for every size of the input."""
    windows, why = _windows(context), "as many windows as with ceil_mode"
    context.drop("ceil_mode", why=why)
    context.drop("count_include_pad", why="there was no padding, and what is beyond the input does not count")
    for window in windows:
        window.end += window.stride - 1
    pads = _pads(windows)
    if any(pads):
        context.set("pads", pads, why)
    _leave_out_windows_that_do_not_fit(context, windows)


def _leave_out_windows_that_do_not_fit(context: AdapterContext, windows: list[_Window]) -> None:
    """Removes windows that do not fit even with the padding. onnxruntime rounds a negative room towards 0, and so has a
    window there without ceil_mode, but not with it.
    """
    # With a stride of 1 nothing is rounded.
    spare = [window.begin + window.end - window.span if window.stride > 1 else 0 for window in windows]
    rooms = [0, 0, *spare]
    sizes = zip(context.shape(0) or (), rooms, strict=True)
    if all(room >= 0 or (size is not None and Facts().prove_ge(size + room, 0)) for size, room in sizes):
        return
    f = Formula(context)
    room = f.node("Shape", f.input(0), gives="int64") + f.number(rooms)
    is_there = (~(room < f.number([0]))).cast("int64")
    for index in range(len(context.outputs)):
        if context.uses_output(index):
            f.follow(index, lambda windows: f.node("Tile", windows, is_there))


def _windows_start_inside(context: AdapterContext, sizes: list[int]) -> bool:
    """True when no window, counted as ceil_mode does, starts in the padding at the end."""
    pairs = zip(_windows(context), sizes, strict=True)
    return all(window.last_starts_inside(size, window.count(size, up=True)) for window, size in pairs)


def _pads(windows: Sequence[_Window]) -> list[int]:
    """Gives the attribute pads of windows."""
    return [window.begin for window in windows] + [window.end for window in windows]


def _write_padding(context: AdapterContext, sizes: list[int]) -> Array | None:
    """Writes the padding that gives, without ceil_mode, each window that starts inside.

    Gives the number of elements that count in each window, [1, 1, windows along each axis], where padding counts
    (count_include_pad) and the added padding must not; None where no padding is added.
    """
    windows, counted = _windows(context), []
    for window, size, kernel in zip(windows, sizes, context.known_value("kernel_shape"), strict=True):
        count, padded = window.count(size, up=True), size + window.end
        if context.value_or_default("auto_pad") == "VALID" and count > window.count(size, up=False):
            raise Inexact("runtimes and the document disagree about ceil_mode with auto_pad=VALID", "give pads")
        if window.last_starts_inside(size, count) and count > window.count(size, up=False):
            window.end = (count - 1) * window.stride + window.span - size - window.begin
        require_few(count)
        distance = max((window.span - 1) // max(kernel - 1, 1), 1)
        starts = np.arange(window.count(size, up=False)) * window.stride - window.begin
        # The number of places in a window, `distance` apart, that lie before the end.
        counted.append(np.clip(-((starts - padded) // distance), 0, kernel))
    context.drop("ceil_mode", why="as many windows as with ceil_mode")
    pads = _pads(windows)
    if any(pads):
        context.set("pads", pads, "as many windows as with ceil_mode")
    require_few(*map(len, counted))
    counts = reduce(np.multiply.outer, counted)[None, None]
    beyond = context.known_is_set("count_include_pad") and bool(
        (counts < prod(context.known_value("kernel_shape"))).any()
    )
    return counts if beyond else None


def _greatest_of_slices(context: AdapterContext) -> None:
    """Writes windows with holes as the maximum of slices, one for each place in the window."""
    _drop_auto_pad(context)
    if context.uses_output(1) and context.is_read(context.outputs[1]):
        raise Inexact("the positions in windows with holes are not given below it")
    kernel: Sequence[int] = context.known_value("kernel_shape")
    sizes, windows = _spatial_sizes(context), _windows(context)
    dilations = context.known_value("dilations")
    counts = [window.count(size, up=False) for window, size in zip(windows, sizes, strict=True)]
    if min(counts) < 1:
        raise Inexact(_NO_WINDOW)
    if prod(kernel) > MAX_ITEMS:
        raise Inexact(f"a window of {prod(kernel):,} elements takes as many slices")
    if sum(counts) > MAX_WRITTEN:
        raise Inexact(f"whether each of {max(counts):,} windows along an axis holds an element takes long to find out")
    places = [list(range(0, k * d, d)) for k, d in zip(kernel, dilations, strict=True)]
    for window, size, count, axis in zip(windows, sizes, counts, places, strict=True):
        starts = [index * window.stride - window.begin for index in range(count)]
        if not all(any(0 <= start + place < size for place in axis) for start in starts):
            raise Inexact("a window holds nothing but padding, and what it gives is not said")
    begins, ends = ([getattr(window, side) for window in windows] for side in ("begin", "end"))
    data = context.inputs[0]
    if any(begins + ends):
        pads = [0, 0, *begins, 0, 0, *ends]
        data = context.emit("Pad", [data], "padded", pads=pads, mode="constant", value=float("-inf"))
    axes, ones, strides = list(range(2, len(kernel) + 2)), [1] * len(kernel), [window.stride for window in windows]
    spans = [(count - 1) * stride + 1 for count, stride in zip(counts, strides, strict=True)]
    slices = []
    for corner in product(*places):
        stops = [place + span for place, span in zip(corner, spans, strict=True)]
        part = context.emit("Slice", [data], "slice", starts=list(corner), ends=stops, axes=axes)
        if any(stride > 1 for stride in strides):
            part = context.emit("MaxPool", [part], "kept", kernel_shape=ones, strides=strides)
        slices.append(part)
    del context.outputs[1:]
    context.replace("Max", slices)


def _drop_auto_pad(context: AdapterContext) -> None:
    """Drops an auto_pad that pads nothing. Runtimes disagree about the others where windows have holes."""
    if context.known_value_or_default("auto_pad") not in ("NOTSET", "VALID"):
        raise Inexact(
            "windows with holes do not exist below it, and runtimes disagree about their auto_pad", "give pads"
        )
    context.drop("auto_pad", why="it pads nothing")


@downward("LpPool", 18)
def write_lp_pool_as_convolution(context: AdapterContext) -> None:
    """Replaces ceil_mode by more padding of zeros, and windows with holes by a convolution with ones that sums the
    powers. Below 18, LpPool has neither.
    """
    _write_ceiling(context)
    if all(dilation == 1 for dilation in context.known_value("dilations", ())):
        context.drop("dilations", why="all are 1, and they do not exist below opset 18")
        return
    _drop_auto_pad(context)
    f, p = Formula(context), context.known_value_or_default("p")
    data = f.value(context.inputs[0], context.known_dtype(0))
    powers = f.node("Pow", abs(data), data.like(p))
    f.give(f.node("Pow", _sum_windows(context, powers), data.like(1 / p)))


def _sum_windows(context: AdapterContext, data: Term) -> Term:
    """Sums the elements in each window, by a convolution of each channel with ones."""
    shape, kernel = context.shape(0), context.known_value("kernel_shape")
    channels = shape[1] if shape is not None and len(shape) > 1 else None
    if not isinstance(channels, int) or channels == 0:
        found = "0" if channels == 0 else "unknown"
        raise Inexact(f"windows with holes do not exist below it, and the number of channels is {found}")
    spans = zip(_windows(context), (shape or ())[2:], strict=True)
    if any(isinstance(size, int) and window.count(size, up=False) < 1 for window, size in spans):
        raise Inexact(_NO_WINDOW)
    require_few(channels, *kernel)
    ones = data.formula.number(np.ones((channels, 1, *kernel)), context.known_dtype(0))
    kept = {name: context.known_value(name, None) for name in ("strides", "pads", "dilations")}
    return data.formula.node("Conv", data, ones, group=channels, **kept)


@downward("AveragePool", 19)
def write_mean_as_convolution(context: AdapterContext) -> None:
    """Writes a mean over windows with holes, which do not exist below 19: a convolution with ones sums the elements,
    and another one counts them where padding does not count.
    """
    counted = _write_ceiling(context)
    _drop_auto_pad(context)
    f, dtype = Formula(context), context.known_dtype(0)
    sums = _sum_windows(context, f.input(0))
    if counted is not None:
        counts = f.number(counted, dtype)
    elif context.known_is_set("count_include_pad") or not any(context.known_value("pads", ())):
        counts = f.number(prod(context.known_value("kernel_shape")), dtype)
    else:
        one = numpy_helper.from_array(np.ones(1, dtype))
        ones = f.node("ConstantOfShape", f.node("Shape", f.input(0), gives="int64"), gives=dtype, value=one)
        counts = _sum_windows(context, ones)
    f.give(sums / counts)


changed(
    "AveragePool LpPool MaxPool",
    22,
    "with ceil_mode=1, windows that start in the padding at the end are left out from then on",
)


@exact("AveragePool LpPool MaxPool", 22)
def windows_start_inside(crossing: Crossing) -> bool:
    """True when no window starts in the padding at the end, which can happen with ceil_mode only.

    The last window starts less than one stride after the last place where a whole window fits, so it starts inside when
    stride + padding at the end <= size of the (dilated) window.
    """
    if crossing.value_or_default("ceil_mode") == 0:
        return True
    auto_pad = crossing.value_or_default("auto_pad")
    if auto_pad in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        if not crossing.upward and _is_ceiling_idle(crossing, auto_pad):
            # With ceil_mode, onnx's shape inference below 22 counts one window more.
            crossing.drop("ceil_mode", why=f"with auto_pad={auto_pad} there are as many windows without it")
        return True
    kernel = crossing.value("kernel_shape", ())
    if kernel is UNRESOLVED or crossing.value_or_default("auto_pad") is UNRESOLVED:
        return False
    ones, zeros = (1,) * len(kernel), (0,) * 2 * len(kernel)
    strides, dilations, pads = (
        crossing.value("strides", ones),
        crossing.value("dilations", ones),
        crossing.value("pads", zeros),
    )
    if UNRESOLVED in (strides, dilations, pads) or not len(strides) == len(dilations) == len(pads) // 2 == len(kernel):
        return False
    ends = pads[len(kernel) :]
    sizes = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    return all(stride + end <= size for stride, end, size in zip(strides, ends, sizes, strict=True))


def _is_ceiling_idle(crossing: Crossing, auto_pad: str) -> bool:
    """True when a pool with auto_pad has as many windows without ceil_mode. onnxruntime counts windows with holes in
    its own way, and with VALID one more window than the document where it starts inside.
    """
    shape, kernel = crossing.shape(0), crossing.value("kernel_shape", ())
    ones = (1,) * len(kernel) if kernel is not UNRESOLVED else ()
    strides, dilations = crossing.value("strides", ones), crossing.value("dilations", ones)
    if UNRESOLVED in (kernel, strides, dilations):
        return False
    if auto_pad != "VALID":
        return all(dilation == 1 for dilation in dilations)
    sizes = (shape or ())[2:]
    if len(sizes) != len(kernel) or not all(isinstance(size, int) for size in sizes):
        return False
    spans = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    rests = zip(sizes, spans, strides, strict=True)
    # The window after the last whole one exists when a part of it lies inside and it starts inside.
    return all((size - span) % stride == 0 or size - span - (size - span) % stride + stride >= size
               for size, span, stride in rests)  # fmt: skip


@upward("AveragePool LpPool MaxPool", 22)
def check_no_window_starts_in_padding(context: AdapterContext) -> None:
    """Keeps the node where static sizes show that no window starts in the padding at the end. From 22 on such windows
    are left out; below, the document counts them without saying what they give.
    """
    _check_ceiling(context)
    sizes = _spatial_sizes(context)
    if not _windows_start_inside(context, sizes):
        raise Inexact("here a window starts in the padding, and what it gives below 22 is not said")


def _check_ceiling(context: AdapterContext) -> None:
    """Raises Inexact unless ceil_mode is known to be set and auto_pad is NOTSET."""
    if not context.known_is_set("ceil_mode") or context.value_or_default("auto_pad") != "NOTSET":
        raise Inexact("ceil_mode or auto_pad is an attribute of the enclosing function", INLINE_FIRST)


@downward("AveragePool LpPool MaxPool", 22)
def leave_out_windows_in_padding(context: AdapterContext) -> None:
    """Writes the padding for which ceil_mode is not needed, from static sizes: from 22 on, windows that start in the
    padding at the end are left out.
    """
    _check_ceiling(context)
    sizes = _spatial_sizes(context)
    if not _windows_start_inside(context, sizes):
        _correct_mean(context, _write_padding(context, sizes))


# ConvTranspose ------------------------------------------------------------------------------------------------------

unchanged("ConvTranspose", 22)
changed("ConvTranspose", 11, "padding worked out from auto_pad or output_shape is distributed the other way round")


@exact("ConvTranspose", 11)
def padding_is_explicit(crossing: Crossing) -> bool:
    """True when the node gives its padding, and does not leave it to auto_pad or output_shape."""
    return crossing.value_or_default("auto_pad") in ("NOTSET", "VALID") and not crossing.has("output_shape")


@downward("ConvTranspose", 11)
@upward("ConvTranspose", 11)
def write_odd_padding(context: AdapterContext) -> None:
    """Keeps the node where static sizes give an even padding, and writes out an odd one as 11 does: at 11, the document
    exchanged the end that gets the odd element.

    Where the output is larger than what there is to pad, releases of onnx before and after 11 test the same node with
    the same numbers.
    """
    mode = context.known_value_or_default("auto_pad")
    total = _total_padding(context)
    if all(n < 0 or n % 2 == 0 for n in total):
        return
    if context.upward:
        raise Inexact(f"padding of {total} in all is distributed the other way round", "give pads")
    begins = [max(n, 0) // 2 if mode == "SAME_UPPER" else (max(n, 0) + 1) // 2 for n in total]
    ends = [max(n, 0) - begin for n, begin in zip(total, begins, strict=True)]
    extra = context.known_value("output_padding", (0,) * len(total))
    why = "as auto_pad or output_shape have it from opset 11 on"
    context.drop("auto_pad", "output_shape", why=why)
    context.set("pads", begins + ends, why)
    if min(total) < 0:
        context.set("output_padding", [more - min(n, 0) for more, n in zip(extra, total, strict=True)], why)


def _total_padding(context: AdapterContext) -> list[int]:
    """Gives the padding of each axis, both ends together."""
    weights, spatial = context.shape(1), context.known_rank(0) - 2
    kernel = context.known_value("kernel_shape") or (weights or ())[2:]
    ones = (1,) * spatial
    strides, wanted = context.known_value("strides", ones), context.known_value("output_shape")
    # Without output_shape the output is as large as the input times the stride, so that the padding is one for all
    # sizes.
    sizes = _spatial_sizes(context) if wanted else (0,) * spatial
    dilations, extra = context.known_value("dilations", ones), context.known_value("output_padding", (0,) * spatial)
    wanted = wanted or [n * stride for n, stride in zip(sizes, strides, strict=True)]
    if len(kernel) != spatial or len(wanted) != spatial or not all(isinstance(n, int) for n in kernel):
        raise Inexact("the padding depends on the shape of the weights, which is unknown")
    rows = zip(strides, sizes, extra, kernel, dilations, wanted, strict=True)
    return [stride * (n - 1) + more + (k - 1) * dilation + 1 - out for stride, n, more, k, dilation, out in rows]


# Helpers of several operators ---------------------------------------------------------------------------------------


def _spatial_sizes(context: AdapterContext) -> list[int]:
    """Gives the sizes of the axes behind the first two; raises Inexact unless all are numbers."""
    context.known_rank(0)
    shape = context.shape(0) or ()
    sizes = [size for size in shape[2:] if isinstance(size, int)]
    if len(sizes) != len(shape) - 2:
        raise Inexact("how the padding falls depends on the input's size, which is not static", "make it static")
    return sizes
