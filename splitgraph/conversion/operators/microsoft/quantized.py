"""Elementwise operators, pools and layers of com.microsoft on quantized tensors, bit for bit.

Most of them round, then add the zero point, as QuantizeLinear does. QLinearAdd, QLinearMul and QLinearAveragePool add
the zero point before they round: where a quotient lies in the middle of two integers and the zero point is odd, they
give another number.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.microsoft.convolution import channels_first, channels_last, given_attributes
from splitgraph.conversion.operators.standard import standard

# The elements of a window up to which they are added one by one.
_MANY_PLACES = 64
# From which opset on AveragePool of onnxruntime adds the elements of a window one by one.
_ORDERED_SINCE = 19

# Scales and zero points ---------------------------------------------------------------------------------------------


def scalar(node: NodeAtBoundary, f: Formula, index: int) -> Term:
    """Return a scale or zero point of one element as a scalar."""
    return f.given(index).reshape()


def as_it_is(node: NodeAtBoundary, f: Formula, index: int) -> Term:
    """Return a scale or zero point of one element as a scalar, under its own name where it is one."""
    return f.input(index) if node.rank(index) == 0 else scalar(node, f, index)


def require_zero_point(node: NodeAtBoundary, index: int) -> None:
    """Raise Inexact without a zero point that onnxruntime requires."""
    if not node.uses_input(index):
        raise Inexact(
            "it has no zero point for its result, without which onnxruntime does not run it", "give one, for example 0"
        )


def zero_point(node: NodeAtBoundary, f: Formula, index: int) -> Term:
    """Return a zero point to compute with; raise Inexact without one."""
    require_zero_point(node, index)
    return scalar(node, f, index)


def dequantized(node: NodeAtBoundary, f: Formula, data: int) -> Term:
    """Return an input in float32; its scale and its zero point, which may be left out, follow it."""
    parts = [f.input(data), as_it_is(node, f, data + 1)]
    if node.uses_input(data + 2):
        parts.append(as_it_is(node, f, data + 2))
    return f.apply("DequantizeLinear", *parts, gives="float32")


def quantized(node: NodeAtBoundary, f: Formula, data: Term, scale: int) -> Term:
    """Divide by the scale, round, add the zero point, which follows the scale, and saturate."""
    require_zero_point(node, scale + 1)
    return shifted(data, as_it_is(node, f, scale), as_it_is(node, f, scale + 1))


def shifted(data: Term, scale: Term, zero: Term) -> Term:
    """Divide by a scale, round, add a zero point, and saturate."""
    return data.formula.apply("QuantizeLinear", data, scale, zero, gives=zero.dtype)


def rounded(data: Term, dtype: str) -> Term:
    """Round, and saturate."""
    f = data.formula
    return shifted(data, f.number(1, "float32"), f.number(0, dtype))


def steps(node: NodeAtBoundary, f: Formula, data: int) -> Term:
    """Return an input less its zero point, in float32, which holds it exactly."""
    return f.input(data).cast("float32") - zero_point(node, f, data + 2).cast("float32")


# Elementwise --------------------------------------------------------------------------------------------------------


@standard("QLinearAdd")
def write_add(node: NodeAtBoundary) -> None:
    """Write A * a + (B * b + c), where a and b are the scales over that of the result, and c takes all zero points in.

    The kernel rounds the product and the sum once. float64 holds the product, and the sum well enough.
    """
    f, dtype = Formula(node), node.known_dtype(0)
    target, zeros = scalar(node, f, 6), [zero_point(node, f, index).cast("float32") for index in (2, 5, 7)]
    left, right = scalar(node, f, 1) / target, scalar(node, f, 4) / target
    constant = zeros[2] - (left * zeros[0] + right * zeros[1])
    part = _fused(f.input(3), right, constant)
    f.give(rounded(_fused(f.input(0), left, part), dtype))


def _fused(data: Term, factor: Term, summand: Term) -> Term:
    """Return data * factor + summand in float32, rounded once."""
    return (data.cast("float64") * factor.cast("float64") + summand.cast("float64")).cast("float32")


@standard("QLinearMul")
def write_mul(node: NodeAtBoundary) -> None:
    """Write the product of both inputs less their zero points, scaled, plus the zero point."""
    f, dtype = Formula(node), node.known_dtype(0)
    scale = scalar(node, f, 1) * scalar(node, f, 4) / scalar(node, f, 6)
    product = steps(node, f, 0) * steps(node, f, 3)
    f.give(rounded(product * scale + zero_point(node, f, 7).cast("float32"), dtype))


@standard("QLinearLeakyRelu", alpha=0.009999999776482582)
def write_leaky_relu(node: NodeAtBoundary) -> None:
    """Write LeakyRelu of the dequantized input."""
    f = Formula(node)
    slope = node.known_value_or_default("alpha")
    active = f.apply("LeakyRelu", dequantized(node, f, 0), alpha=slope)
    f.give(quantized(node, f, active, 3))


@standard("QLinearSigmoid")
def write_sigmoid(node: NodeAtBoundary) -> None:
    """Write Sigmoid of the dequantized input."""
    f = Formula(node)
    active = f.apply("Sigmoid", dequantized(node, f, 0))
    f.give(quantized(node, f, active, 3))


@standard("QLinearSoftmax", axis=-1)
def write_softmax(node: NodeAtBoundary) -> None:
    """Write Softmax, multiplied by the number of whole steps in 1.

    The kernel takes the reciprocal of the scale for an integer. It reads the exponentials from a table of float32 and
    adds them in their order, so that a share next to a half may go to its other side: 1 of 5000 elements in rows of a
    few equal numbers, 1 of 100000 in others. Below opset 13 (attribute opset), the axes from the given one on are one
    row.
    """
    f, axis = Formula(node), node.known_value_or_default("axis")
    data = dequantized(node, f, 0)
    require_zero_point(node, 4)
    if node.known_value("opset") < 13:
        flat = f.apply("Flatten", data, axis=axis)
        shares = f.apply("Softmax", flat, axis=1).shaped(f.shape(node.inputs[0]))
    else:
        shares = f.apply("Softmax", data, axis=axis)
    number = (1.0 / scalar(node, f, 3)).floor()
    f.give(shifted(shares * number, f.number(1, "float32"), as_it_is(node, f, 4)))


@standard("QLinearWhere")
def write_where(node: NodeAtBoundary) -> None:
    """Write Where of the dequantized inputs."""
    f = Formula(node)
    chosen = f.where(f.input(0), dequantized(node, f, 1), dequantized(node, f, 4))
    f.give(quantized(node, f, chosen, 7))


@standard("QLinearConcat")
def write_concat(node: NodeAtBoundary) -> None:
    """Write Concat of the inputs, each quantized as the result is; one that is already, as far as is known, stays."""
    f, axis = Formula(node), node.known_value("axis", 1)
    scale, zero = scalar(node, f, 0), zero_point(node, f, 1)
    parts = []
    for index in range(2, len(node.came.inputs), 3):
        own_scale, own_zero = scalar(node, f, index + 1), zero_point(node, f, index + 2)
        if _are_equal(own_scale, scale) and _are_equal(own_zero, zero):
            parts.append(f.input(index))
        else:
            parts.append(quantized(node, f, dequantized(node, f, index), 0))
    f.give(f.joined(parts, axis))


def _are_equal(one: Term, other: Term) -> bool:
    """Return True where both are the same number in every run."""
    if one.elements is None or other.elements is None:
        return False
    return bool(one.elements == other.elements)


# Pools --------------------------------------------------------------------------------------------------------------


@standard("QLinearGlobalAveragePool", channels_last=0)
def write_global_average_pool(node: NodeAtBoundary) -> None:
    """Write the sum of all steps, scaled by the number of elements and both scales at once."""
    f, rank = Formula(node), node.known_rank(0)
    first = 1 if node.known_value_or_default("channels_last") else 2
    axes = list(range(first, first + rank - 2))
    total = f.input(0).cast("int32") - zero_point(node, f, 2).cast("int32")
    count = f.product([f.size(0, axis) for axis in axes]).cast("float32")
    scale = scalar(node, f, 1) / (scalar(node, f, 3) * count)
    mean = total.reduced("ReduceSum", axes, keepdims=True).cast("float32") * scale
    require_zero_point(node, 4)
    f.give(shifted(mean, f.number(1, "float32"), as_it_is(node, f, 4)))


@standard("QLinearAveragePool", channels_last=0, auto_pad="NOTSET", ceil_mode=0, count_include_pad=0)
def write_average_pool(node: NodeAtBoundary) -> None:
    """Write the mean of each window of the dequantized input; the zero point is added before the mean is rounded."""
    f, rank, dtype = Formula(node), node.known_rank(0), node.known_dtype(0)
    zero = zero_point(node, f, 4)
    zero_point(node, f, 2)
    is_last = node.known_value_or_default("channels_last")
    sides = _sides(node, f, [f.size(0, axis) for axis in range(1 if is_last else 2, rank - 1 if is_last else rank)])
    data = dequantized(node, f, 0)
    data = channels_first(data, rank) if is_last else data
    result = rounded(_means(node, f, data, sides) / scalar(node, f, 3) + zero.cast("float32"), dtype)
    f.give(channels_last(result, rank) if is_last else result)


@dataclass(frozen=True, slots=True)
class _Side:
    """The windows along one axis of an image: int64 scalars. last: where the last one begins, in the padded image."""

    size: Term
    window: int
    stride: int
    before: Term
    last: Term

    @property
    def after(self) -> Term:
        """The padding behind the image into which the last window reaches."""
        return (self.last + self.window - self.size - self.before).at_least(0)

    def counts(self) -> Term:
        """Return how many elements of the image are in each window, or in all of them."""
        f = self.size.formula
        starts = f.counting(self.last / self.stride + 1) * self.stride - self.before
        counts = (starts + self.window).at_most(self.size) - starts.at_least(0)
        known = counts.elements
        return counts if known is None or (known != self.window).any() else f.number([self.window])


def _sides(node: NodeAtBoundary, f: Formula, sizes: Sequence[Term]) -> list[_Side]:
    """Return the windows along each axis. They may reach beyond the padding, but they begin before its end."""
    windows, rank = node.known_value("kernel_shape"), len(sizes)
    strides, pads = node.known_value("strides", [1] * rank), node.known_value("pads", [0] * 2 * rank)
    kind, is_up = node.known_value_or_default("auto_pad"), node.known_is_set("ceil_mode")
    sides = []
    for axis, (size, window, stride) in enumerate(zip(sizes, windows, strides, strict=True)):
        if kind in ("SAME_UPPER", "SAME_LOWER"):
            last = (size - 1) / stride * stride
            # The kernel skips elements before the first window where strides are larger than windows.
            before = (last + window - size + (1 if kind == "SAME_LOWER" else 0)) / 2
        else:
            ends = pads[axis], pads[rank + axis]
            start, end = (0, 0) if kind == "VALID" else ends
            before, room = f.number(start), size + (start + end - window)
            last = (room + (stride - 1 if is_up else 0)) / stride * stride
            # No window begins behind the data.
            last = last.at_most((size + (start - 1)) / stride * stride) if is_up else last
        sides.append(_Side(size, window, stride, before, last))
    return sides


def _means(node: NodeAtBoundary, f: Formula, data: Term, sides: Sequence[_Side]) -> Term:
    """Return the mean of each window.

    The elements are added in the order of the kernel, which AveragePool has in onnxruntime from opset 19 on: in another
    order, some sums are rounded differently, and some means go to the other side of a half.
    """
    windows, axes = [side.window for side in sides], range(2, len(sides) + 2)
    pads = f.vector([0, 0, *(side.before for side in sides), 0, 0, *(side.after for side in sides)])
    if math.prod(windows) > _MANY_PLACES:
        return _means_of_large_windows(node, f, data, sides, pads)
    if pads.elements is None or pads.elements.any():
        data = f.apply("Pad", data, pads)
    last, strides = f.vector([side.last for side in sides]), f.number([side.stride for side in sides])
    parts = [
        f.apply("Slice", data, f.number(place), last + f.number(place) + 1, f.number(list(axes)), strides)
        for place in itertools.product(*map(range, windows))
    ]
    total = functools.reduce(lambda left, right: left + right, parts)
    if node.known_is_set("count_include_pad"):
        return total / math.prod(windows)
    rows = [side.counts().reshape(-1, *[1] * (len(sides) - 1 - axis)) for axis, side in enumerate(sides)]
    return total / f.product(rows).cast("float32")


def _means_of_large_windows(node: NodeAtBoundary, f: Formula, data: Term, sides: Sequence[_Side], pads: Term) -> Term:
    """Return AveragePool with explicit padding."""
    if node.to_opset < _ORDERED_SINCE:
        raise Inexact(
            f"a window has more than {_MANY_PLACES} elements, and AveragePool of onnxruntime adds them in another order"
            f" below opset {_ORDERED_SINCE}, so that some means are rounded differently",
            f"convert to opset {_ORDERED_SINCE} or newer",
        )
    if pads.elements is None or (pads.elements < 0).any():
        raise Inexact(
            f"a window has more than {_MANY_PLACES} elements, and its padding is negative, or depends on sizes that are"
            " not known",
            "fix the sizes of the image, or write the padding as pads",
        )
    return f.apply(
        "AveragePool",
        data,
        kernel_shape=[side.window for side in sides],
        strides=[side.stride for side in sides],
        pads=pads.elements.reshape(2, -1)[:, 2:].reshape(-1).tolist(),
        count_include_pad=int(node.known_is_set("count_include_pad")),
    )


# Layers -------------------------------------------------------------------------------------------------------------


@standard("QLinearConv", channels_last=0)
def write_conv(node: NodeAtBoundary) -> None:
    """Write the QLinearConv of ai.onnx, between two transposes where the channels come last."""
    if not node.known_value_or_default("channels_last"):
        node.drop("channels_last", why="the channels come second in ai.onnx")
        return
    rank, f = node.known_rank(0), Formula(node)
    inputs = [channels_first(f.input(0), rank), *(f.input(index) for index in range(1, len(node.came.inputs)))]
    result = f.apply("QLinearConv", *inputs, gives=node.known_dtype(7), **given_attributes(node, "channels_last"))
    f.give(channels_last(result, rank))


@standard("QuantizeLinear DequantizeLinear", opset=21)
def write_quantize(node: NodeAtBoundary) -> None:
    """Keep the node: the operators of ai.onnx mean the same, and take the same types from opset 21 on."""


@standard("DynamicQuantizeLSTM", opset=14, direction="forward")
def write_dynamic_quantize_lstm(node: NodeAtBoundary) -> None:
    """Write the LSTM of the dequantized weights, which the kernel approximates: it also rounds the data and each hidden
    state, by ranges that depend on its number of threads.
    """
    f = Formula(node)
    weights = [_gates_first(node, f, data, scale) for data, scale in ((1, 8), (2, 10))]
    node.replace(
        "LSTM", [node.inputs[0], *(term.name for term in weights), *node.inputs[3:8]], **given_attributes(node)
    )


def _gates_first(node: NodeAtBoundary, f: Formula, data: int, scale: int) -> Term:
    """Return the weights of all directions as numbers, with the gates before what they are multiplied by."""
    directions = 2 if node.known_value_or_default("direction") == "bidirectional" else 1
    rows = f.input(scale).reshape(directions, 1, -1)
    zeros = f.input(scale + 1).reshape(directions, 1, -1).cast("float32")
    return ((f.input(data).cast("float32") - zeros) * rows).transposed(0, 2, 1)
