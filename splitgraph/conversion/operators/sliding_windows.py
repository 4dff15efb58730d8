"""AveragePool, MaxPool, LpPool and ConvTranspose: padding that counts (7), rounding up (10), windows with holes (10,
18, 19), windows in the padding (22), and padding that follows from auto_pad (11).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import product
from math import prod

from splitgraph.conversion.known_values import INLINE_FIRST, Array
from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary, require_few
from splitgraph.conversion.operators.registry import changed, downward, edited, exact, unchanged, upward
from splitgraph.dim import Facts
from splitgraph.model.attributes import UNRESOLVED
from splitgraph.model.deferred import np, numpy_helper
from splitgraph.model.value_type import MAX_ITEMS, MAX_WRITTEN

_NO_WINDOW = "a window is larger than the input with its padding"


@dataclass(slots=True)
class _Window:
    """The windows along one axis: the number of elements that they span, their distance, and the padding."""

    span: int
    stride: int
    begin: int
    end: int

    def count(self, size: int, *, up: bool) -> int:
        """Return the number of windows on so many elements; up: with a last one that reaches beyond the padding."""
        room = size + self.begin + self.end - self.span
        return (-(-room // self.stride) if up else room // self.stride) + 1

    def last_starts_inside(self, size: int, count: int) -> bool:
        """Return True when the last of so many windows does not start in the padding at the end."""
        return (count - 1) * self.stride < size + self.begin


unchanged("GlobalAveragePool GlobalMaxPool MaxRoiPool", 22)
unchanged("Conv MaxUnpool", 11, 22)
unchanged("GlobalLpPool", 2, 22)

# AveragePool, MaxPool, LpPool ---------------------------------------------------------------------------------------

unchanged("AveragePool", 7, 10, 11, 19)
unchanged("LpPool", 2, 11, 18)
unchanged("MaxPool", 8, 10, 11, 12)


@downward("AveragePool", 7)
def pad_with_zeros_that_count(node: NodeAtBoundary) -> None:
    """Pad with zeros, which count, by Pad. Below 7, padding of the node never counts."""
    pads, kernel = node.known_value("pads", ()), node.known_value("kernel_shape")
    if node.value_or_default("auto_pad") not in ("NOTSET", "VALID"):
        raise Inexact("count_include_pad does not exist below it, and here the padding is worked out from auto_pad")
    node.drop("count_include_pad", "pads", why="Pad adds the padding that counts")
    if any(pads):
        axes = len(kernel)
        node.inputs[0] = node.write(
            "Pad", [node.inputs[0]], "padded", pads=[0, 0, *pads[:axes], 0, 0, *pads[axes:]], mode="constant"
        )


@downward("MaxPool", 8)
def drop_indices(node: NodeAtBoundary) -> None:
    """Drop the output Indices, which does not exist below 8, and their order."""
    if node.uses_output(1) and node.is_read(node.outputs[1]):
        raise Inexact("the output Indices does not exist below it")
    del node.outputs[1:]
    node.drop("storage_order", why="it is the order of the indices, and nothing reads the indices")


@downward("AveragePool", 10)
@downward("MaxPool", 10)
def write_ceiling_as_padding(node: NodeAtBoundary) -> None:
    """Write more padding at the end in place of ceil_mode, which does not exist below 10. The maximum and the mean of
    the elements outside the padding do not depend on the padding; a mean that includes padding is corrected.
    """
    _correct_mean(node, _write_ceiling(node))
    if any(dilation != 1 for dilation in node.known_value("dilations", ())):
        _greatest_of_slices(node)
    else:
        node.drop("dilations", why="all are 1, and they do not exist below opset 10")


def _correct_mean(node: NodeAtBoundary, counted: Array | None) -> None:
    """Correct a mean over whole windows to a mean over the elements that count."""
    if counted is None:
        return
    whole = prod(node.known_value("kernel_shape"))
    f = Formula(node)
    f.follow(0, lambda mean: mean * f.number(whole / counted, node.known_dtype(0)))


def _write_ceiling(node: NodeAtBoundary) -> Array | None:
    """Remove ceil_mode. Return the number of elements that count in each window, as `_write_padding` does."""
    if node.value_or_default("ceil_mode") is UNRESOLVED or node.value_or_default("auto_pad") is UNRESOLVED:
        raise Inexact("ceil_mode is an attribute of the enclosing function", INLINE_FIRST)
    if not node.known_is_set("ceil_mode") or node.value_or_default("auto_pad").startswith("SAME"):
        node.drop("ceil_mode", why="both roundings give as many windows")
        return None
    if _fits_every_size(node):
        _write_padding_of_every_size(node)
        return None
    sizes = _spatial_sizes(node)
    if _is_late_window_open(node) and not _windows_start_inside(node, sizes):
        raise Inexact("here a window starts in the padding, and what it gives below 22 is not specified")
    return _write_padding(node, sizes)


def _is_late_window_open(node: NodeAtBoundary) -> bool:
    """Return True where it is open what a window that starts in the padding at the end gives: below 22 the document
    does not say, and OpenVINO keeps those of MaxPool. Every engine leaves those of AveragePool and LpPool out.
    """
    return node.old.since_version < 22 and node.op_type == "MaxPool"


def _fits_every_size(node: NodeAtBoundary) -> bool:
    """Return True where the size of the input is not static, and more padding gives the same windows as ceil_mode for
    every size.

    Padding of one element less than a stride makes as many windows as rounding up does. The last window begins at most
    this far behind the last place where a whole window fits; it begins inside when this distance and the padding at the
    end are less than its span. The number of elements that count must not depend on the padding: so padding that counts
    is excluded.
    """
    shape, pads = node.shape(0), node.known_value("pads", ())
    if shape is None or all(isinstance(size, int) for size in shape[2:]):
        return False
    if node.value_or_default("auto_pad") != "NOTSET" or (node.known_is_set("count_include_pad") and any(pads)):
        return False
    return all(window.end + window.stride - 1 < window.span for window in _windows(node))


def _windows(node: NodeAtBoundary) -> list[_Window]:
    """Return the windows along each axis."""
    kernel = node.known_value("kernel_shape")
    ones, zeros = (1,) * len(kernel), (0,) * 2 * len(kernel)
    strides, dilations = node.known_value("strides", ones), node.known_value("dilations", ones)
    pads = node.known_value("pads", zeros)
    ends = pads[len(kernel) :]
    rows = zip(kernel, strides, dilations, pads, ends, strict=False)
    return [_Window((k - 1) * d + 1, stride, begin, end) for k, stride, d, begin, end in rows]


def _write_padding_of_every_size(node: NodeAtBoundary) -> None:
    """Write padding that replaces ceil_mode for every size of the input."""
    windows, why = _windows(node), "as many windows as with ceil_mode"
    node.drop("ceil_mode", why=why)
    node.drop("count_include_pad", why="there was no padding, and what is beyond the input does not count")
    for window in windows:
        window.end += window.stride - 1
    pads = _pads(windows)
    if any(pads):
        node.set("pads", pads, why)
    _leave_out_windows_that_do_not_fit(node, windows)


def _leave_out_windows_that_do_not_fit(node: NodeAtBoundary, windows: list[_Window]) -> None:
    """Remove windows that do not fit even with the padding. onnxruntime rounds a negative room towards 0, and so has a
    window there without ceil_mode, but not with it.
    """
    # With a stride of 1 nothing is rounded.
    spare = [window.begin + window.end - window.span if window.stride > 1 else 0 for window in windows]
    rooms = [0, 0, *spare]
    sizes = zip(node.shape(0) or (), rooms, strict=True)
    if all(room >= 0 or (size is not None and Facts().prove_ge(size + room, 0)) for size, room in sizes):
        return
    f = Formula(node)
    room = f.input(0).shape() + f.number(rooms)
    is_there = (~(room < f.number([0]))).cast("int64")
    for index in range(len(node.outputs)):
        if node.uses_output(index):
            f.follow(index, lambda windows: f.apply("Tile", windows, is_there))


def _windows_start_inside(node: NodeAtBoundary, sizes: list[int]) -> bool:
    """Return True when no window, counted as ceil_mode does, starts in the padding at the end."""
    pairs = zip(_windows(node), sizes, strict=True)
    return all(window.last_starts_inside(size, window.count(size, up=True)) for window, size in pairs)


def _pads(windows: Sequence[_Window]) -> list[int]:
    """Return the attribute pads of windows."""
    return [window.begin for window in windows] + [window.end for window in windows]


def _write_padding(node: NodeAtBoundary, sizes: list[int]) -> Array | None:
    """Write the padding that gives, without ceil_mode, each window that starts inside.

    Return the number of elements that count in each window, [1, 1, windows along each axis], where padding counts
    (count_include_pad) and the added padding must not; None where no padding is added.
    """
    windows, counted = _windows(node), []
    for window, size, kernel in zip(windows, sizes, node.known_value("kernel_shape"), strict=True):
        count, padded = window.count(size, up=True), size + window.end
        if node.value_or_default("auto_pad") == "VALID" and count > window.count(size, up=False):
            raise Inexact("runtimes and the document disagree about ceil_mode with auto_pad=VALID", "give pads")
        if window.last_starts_inside(size, count) and count > window.count(size, up=False):
            window.end = (count - 1) * window.stride + window.span - size - window.begin
        require_few(count)
        distance = max((window.span - 1) // max(kernel - 1, 1), 1)
        starts = np.arange(window.count(size, up=False)) * window.stride - window.begin
        # The number of places in a window, `distance` apart, that lie before the end.
        counted.append(np.clip(-((starts - padded) // distance), 0, kernel))
    node.drop("ceil_mode", why="as many windows as with ceil_mode")
    pads = _pads(windows)
    if any(pads):
        node.set("pads", pads, "as many windows as with ceil_mode")
    require_few(*map(len, counted))
    counts = reduce(np.multiply.outer, counted)[None, None]
    beyond = node.known_is_set("count_include_pad") and bool((counts < prod(node.known_value("kernel_shape"))).any())
    return counts if beyond else None


def _greatest_of_slices(node: NodeAtBoundary) -> None:
    """Write windows with holes as the maximum of slices, one for each place in the window."""
    _drop_auto_pad(node)
    if node.uses_output(1) and node.is_read(node.outputs[1]):
        raise Inexact("the positions in windows with holes are not given below it")
    kernel: Sequence[int] = node.known_value("kernel_shape")
    sizes, windows = _spatial_sizes(node), _windows(node)
    dilations = node.known_value("dilations")
    places = [range(0, k * d, d) for k, d in zip(kernel, dilations, strict=True)]
    counts = [window.count(size, up=False) for window, size in zip(windows, sizes, strict=True)]
    if min(counts) < 1:
        raise Inexact(_NO_WINDOW)
    if prod(kernel) > MAX_ITEMS:
        raise Inexact(f"a window of {prod(kernel):,} elements takes as many slices")
    _require_elements(windows, sizes, counts, places)
    data = _padded_by_least(node, windows)
    axes, ones, strides = list(range(2, len(kernel) + 2)), [1] * len(kernel), [window.stride for window in windows]
    spans = [(count - 1) * stride + 1 for count, stride in zip(counts, strides, strict=True)]
    slices = []
    for corner in product(*places):
        stops = [place + span for place, span in zip(corner, spans, strict=True)]
        part = node.write("Slice", [data], "slice", starts=list(corner), ends=stops, axes=axes)
        if any(stride > 1 for stride in strides):
            # Below 10, Slice has no steps: a pool with windows of one element strides.
            part = node.write("MaxPool", [part], "kept", kernel_shape=ones, strides=strides)
        slices.append(part)
    del node.outputs[1:]
    node.replace("Max", slices)


def _require_elements(
    windows: Sequence[_Window], sizes: Sequence[int], counts: Sequence[int], places: Sequence[Sequence[int]]
) -> None:
    """Refuse windows of which one holds nothing but padding. Each argument is by axis. sizes: of the input. counts: of
    the windows. places: in a window, from its start.
    """
    if sum(counts) > MAX_WRITTEN:
        raise Inexact(f"whether each of {max(counts):,} windows along an axis holds an element takes long to find out")
    for window, size, count, axis in zip(windows, sizes, counts, places, strict=True):
        starts = [index * window.stride - window.begin for index in range(count)]
        if not all(any(0 <= start + place < size for place in axis) for start in starts):
            raise Inexact("a window holds nothing but padding, and what it gives is not specified")


def _padded_by_least(node: NodeAtBoundary, windows: Sequence[_Window]) -> str:
    """Return the name of the data with its padding, which no maximum takes; of the data itself if there is none."""
    pads = [[window.begin for window in windows], [window.end for window in windows]]
    if not any(pads[0] + pads[1]):
        return node.inputs[0]
    wide = [0, 0, *pads[0], 0, 0, *pads[1]]
    return node.write("Pad", [node.inputs[0]], "padded", pads=wide, mode="constant", value=float("-inf"))


def _drop_auto_pad(node: NodeAtBoundary) -> None:
    """Drop an auto_pad that pads nothing. Runtimes disagree about the others where windows have holes."""
    if node.known_value_or_default("auto_pad") not in ("NOTSET", "VALID"):
        raise Inexact(
            "windows with holes do not exist below it, and runtimes disagree about their auto_pad", "give pads"
        )
    node.drop("auto_pad", why="it pads nothing")


@downward("LpPool", 18)
def write_lp_pool_as_convolution(node: NodeAtBoundary) -> None:
    """Replace ceil_mode by more padding of zeros, and windows with holes by a convolution with ones that sums the
    powers. Below 18, LpPool has neither.
    """
    _write_ceiling(node)
    if all(dilation == 1 for dilation in node.known_value("dilations", ())):
        node.drop("dilations", why="all are 1, and they do not exist below opset 18")
        return
    _drop_auto_pad(node)
    f, p = Formula(node), node.known_value_or_default("p")
    data = f.value(node.inputs[0], node.known_dtype(0))
    powers = f.apply("Pow", abs(data), data.like(p))
    f.give(f.apply("Pow", _sum_windows(node, powers), data.like(1 / p)))


def _sum_windows(node: NodeAtBoundary, data: Term) -> Term:
    """Sum the elements in each window, by a convolution of each channel with ones."""
    shape, kernel = node.shape(0), node.known_value("kernel_shape")
    channels = shape[1] if shape is not None and len(shape) > 1 else None
    if not isinstance(channels, int) or channels == 0:
        number = "0" if channels == 0 else "unknown"
        raise Inexact(f"windows with holes do not exist below it, and the number of channels is {number}")
    spans = zip(_windows(node), (shape or ())[2:], strict=True)
    if any(isinstance(size, int) and window.count(size, up=False) < 1 for window, size in spans):
        raise Inexact(_NO_WINDOW)
    require_few(channels, *kernel)
    ones = data.formula.number(np.ones((channels, 1, *kernel)), node.known_dtype(0))
    kept = {name: node.known_value(name, None) for name in ("strides", "pads", "dilations")}
    return data.formula.apply("Conv", data, ones, group=channels, **kept)


@downward("AveragePool", 19)
def write_mean_as_convolution(node: NodeAtBoundary) -> None:
    """Write a mean over windows with holes, which do not exist below 19: a convolution with ones sums the elements, and
    another one counts them where padding does not count.
    """
    counted = _write_ceiling(node)
    _drop_auto_pad(node)
    f, dtype = Formula(node), node.known_dtype(0)
    sums = _sum_windows(node, f.input(0))
    if counted is not None:
        counts = f.number(counted, dtype)
    elif node.known_is_set("count_include_pad") or not any(node.known_value("pads", ())):
        counts = f.number(prod(node.known_value("kernel_shape")), dtype)
    else:
        one = numpy_helper.from_array(np.ones(1, dtype))
        ones = f.apply("ConstantOfShape", f.input(0).shape(), gives=dtype, value=one)
        counts = _sum_windows(node, ones)
    f.give(sums / counts)


changed(
    "AveragePool LpPool MaxPool",
    22,
    "with ceil_mode=1, windows that start in the padding at the end are left out from then on",
)


@edited("AveragePool LpPool MaxPool", 22)
def windows_start_inside(node: NodeAtBoundary) -> None:
    """Keep a node when no window starts in the padding at the end, which can happen with ceil_mode only; upward, also
    one whose windows there every engine leaves out at all versions.

    The last window starts less than one stride after the last place where a whole window fits, so it starts inside when
    stride + padding at the end <= size of the (dilated) window.
    """
    if node.value_or_default("ceil_mode") == 0 or (node.upward and not _is_late_window_open(node)):
        return
    auto_pad = node.value_or_default("auto_pad")
    if auto_pad in ("SAME_UPPER", "SAME_LOWER", "VALID"):
        if not node.upward and _is_ceiling_idle(node, auto_pad):
            # With ceil_mode, onnx's shape inference below 22 counts one window more.
            node.drop("ceil_mode", why=f"with auto_pad={auto_pad} there are as many windows without it")
        return
    kernel = node.value("kernel_shape", ())
    if kernel is UNRESOLVED or node.value_or_default("auto_pad") is UNRESOLVED:
        raise Inexact
    ones, zeros = (1,) * len(kernel), (0,) * 2 * len(kernel)
    strides, dilations, pads = (
        node.value("strides", ones),
        node.value("dilations", ones),
        node.value("pads", zeros),
    )
    if UNRESOLVED in (strides, dilations, pads) or not len(strides) == len(dilations) == len(pads) // 2 == len(kernel):
        raise Inexact
    ends = pads[len(kernel) :]
    sizes = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    if not (all(stride + end <= size for stride, end, size in zip(strides, ends, sizes, strict=True))):
        raise Inexact


def _is_ceiling_idle(node: NodeAtBoundary, auto_pad: str) -> bool:
    """Return True when a pool with auto_pad has as many windows without ceil_mode. onnxruntime counts windows with
    holes in its own way, and with VALID one more window than the document where it starts inside.
    """
    shape, kernel = node.shape(0), node.value("kernel_shape", ())
    ones = (1,) * len(kernel) if kernel is not UNRESOLVED else ()
    strides, dilations = node.value("strides", ones), node.value("dilations", ones)
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


@upward("MaxPool", 22)
def check_no_window_starts_in_padding(node: NodeAtBoundary) -> None:
    """Keep the node where static sizes show that no window starts in the padding at the end. From 22 on such windows
    are left out; below, the document counts them without saying what they give.
    """
    _check_ceiling(node)
    sizes = _spatial_sizes(node)
    if not _windows_start_inside(node, sizes):
        raise Inexact("here a window starts in the padding, and what it gives below 22 is not specified")


def _check_ceiling(node: NodeAtBoundary) -> None:
    """Raise Inexact unless ceil_mode is known to be set and auto_pad is NOTSET."""
    if not node.known_is_set("ceil_mode") or node.value_or_default("auto_pad") != "NOTSET":
        raise Inexact("ceil_mode or auto_pad is an attribute of the enclosing function", INLINE_FIRST)


@downward("AveragePool LpPool MaxPool", 22)
def leave_out_windows_in_padding(node: NodeAtBoundary) -> None:
    """Write the padding for which ceil_mode is not needed, from static sizes: from 22 on, windows that start in the
    padding at the end are left out.
    """
    _check_ceiling(node)
    sizes = _spatial_sizes(node)
    if not _windows_start_inside(node, sizes):
        _correct_mean(node, _write_padding(node, sizes))


# ConvTranspose ------------------------------------------------------------------------------------------------------

unchanged("ConvTranspose", 22)
changed("ConvTranspose", 11, "padding worked out from auto_pad or output_shape is distributed the other way round")


@exact("ConvTranspose", 11)
def padding_is_explicit(node: NodeAtBoundary) -> bool:
    """Return True when the node gives its padding, and does not leave it to auto_pad or output_shape."""
    return node.value_or_default("auto_pad") in ("NOTSET", "VALID") and not node.has("output_shape")


@downward("ConvTranspose", 11)
@upward("ConvTranspose", 11)
def write_odd_padding(node: NodeAtBoundary) -> None:
    """Keep the node where static sizes give an even padding, and write out an odd one as 11 does: at 11, the document
    exchanged the end that gets the odd element.

    onnxruntime, OpenVINO and onnx's evaluator pad as 11 says at every version, so that a node below 11 means this, too,
    unless they disagree: OpenVINO ignores auto_pad beside output_shape, and they differ where the output is larger than
    what there is to pad. There, releases of onnx before and after 11 test the same node with the same numbers.
    """
    mode = node.known_value_or_default("auto_pad")
    total = _total_padding(node)
    if all(n < 0 or n % 2 == 0 for n in total):
        return
    if node.upward and (min(total) < 0 or (mode == "SAME_UPPER" and node.has("output_shape"))):
        raise Inexact(f"runtimes disagree about where padding of {total} in all goes", "give pads")
    begins = [max(n, 0) // 2 if mode == "SAME_UPPER" else (max(n, 0) + 1) // 2 for n in total]
    ends = [max(n, 0) - begin for n, begin in zip(total, begins, strict=True)]
    extra = node.known_value("output_padding", (0,) * len(total))
    why = "as auto_pad or output_shape have it from opset 11 on"
    if node.upward:
        why += ", and as onnxruntime, OpenVINO and onnx's evaluator read them below it, against its document"
    node.drop("auto_pad", "output_shape", why=why)
    node.set("pads", begins + ends, why)
    if min(total) < 0:
        node.set("output_padding", [more - min(n, 0) for more, n in zip(extra, total, strict=True)], why)


def _total_padding(node: NodeAtBoundary) -> list[int]:
    """Return the padding of each axis, both ends together."""
    weights, spatial = node.shape(1), node.known_rank(0) - 2
    kernel = node.known_value("kernel_shape") or (weights or ())[2:]
    ones = (1,) * spatial
    strides, wanted = node.known_value("strides", ones), node.known_value("output_shape")
    # Without output_shape the output is as large as the input times the stride, so that the padding is one for all
    # sizes.
    sizes = _spatial_sizes(node) if wanted else (0,) * spatial
    dilations, extra = node.known_value("dilations", ones), node.known_value("output_padding", (0,) * spatial)
    wanted = wanted or [n * stride for n, stride in zip(sizes, strides, strict=True)]
    if len(kernel) != spatial or len(wanted) != spatial or not all(isinstance(n, int) for n in kernel):
        raise Inexact("the padding depends on the shape of the weights, which is unknown")
    rows = zip(strides, sizes, extra, kernel, dilations, wanted, strict=True)
    return [stride * (n - 1) + more + (k - 1) * dilation + 1 - out for stride, n, more, k, dilation, out in rows]


# Helpers of several operators ---------------------------------------------------------------------------------------


def _spatial_sizes(node: NodeAtBoundary) -> list[int]:
    """Return the sizes of the axes behind the first two; raise Inexact unless all are numbers."""
    node.known_rank(0)
    shape = node.shape(0) or ()
    sizes = [size for size in shape[2:] if isinstance(size, int)]
    if len(sizes) != len(shape) - 2:
        raise Inexact("how the padding falls depends on the input's size, which is not static", "make it static")
    return sizes
