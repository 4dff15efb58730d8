"""Writing a split as slices: Slice nodes, a Gather where Slice takes no computed bounds, an Identity for a whole value.

Slice-1 (opsets 1 to 9): starts, ends and axes are attributes. Slice-10: they are inputs. Slice-11: the axis may be
negative. Slice-13: bfloat16. In all of them, a negative bound counts from the end, and bounds are clamped to the
dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from functools import partial
from itertools import accumulate
from typing import Literal

from splitgraph.model.onnx_proto import NodeProto, TensorProto
from splitgraph.splits.canonical import CanonicalSplit
from splitgraph.splits.lowering import (
    Builder,
    LowerRequest,
    NotRepresentable,
    axis_tensor,
    chunk_size,
    copy_node,
    dimension,
    lengths_with_rest,
    own_lengths,
    pattern_of,
    set_int,
    set_ints,
    written_axis,
)
from splitgraph.splits.variant import ALL_TYPES, ALL_TYPES_IR4, Variant

# How the bounds of the slices are given: "constant", non-negative numbers; "open", numbers as well, but some count from
# the end, or are OPEN_END; "computed", at run time.
BoundsForm = Literal["constant", "open", "computed"]
PLAINEST_FIRST: tuple[BoundsForm, ...] = ("constant", "open", "computed")
# What exporters write for "to the end of the axis".
OPEN_END = 2**63 - 1

_INPUTS_SINCE = 10
_NEGATIVE_AXIS_SINCE = 11


def slice_variant(opset: int, bounds: Sequence[BoundsForm] = PLAINEST_FIRST) -> Variant:
    """Return the target by which a split becomes slices of an opset. It is not among the variants, because a Slice
    alone is no split.

    bounds: the forms that may be written; the first that fits is taken.
    """
    since = max(version for version in (1, 10, 11, 13) if version <= opset)
    return Variant(
        op_type="Slice",
        domain="",
        since_version=since,
        inputs=(1, 1) if since < _INPUTS_SINCE else (3, 5),
        outputs=(1, 1),
        attributes={"axes": "ints", "ends": "ints", "starts": "ints"} if since < _INPUTS_SINCE else {},
        dtypes=ALL_TYPES if since < 13 else ALL_TYPES_IR4,
        lower=partial(write_slices, bounds=bounds),
    )


def write_slices(request: LowerRequest, bounds: Sequence[BoundsForm] = PLAINEST_FIRST) -> None:
    """Write the split as a Slice for each output that has a name; the only part of a split is an Identity.

    bounds: the forms that may be written, the first that fits is taken. Raises NotRepresentable where none does.
    """
    if request.parts == 1:
        request.builder.main(copy_node(request, request.node.input[:1], "Identity", keep=()))
        return
    reason: NotRepresentable | None = None
    for form in bounds:
        numbers = _NUMBERS[form](request.split) if form in _NUMBERS else None
        if numbers is None and form in _NUMBERS:
            continue
        try:
            emit_slices(request) if numbers is None else _write_numbers(request, numbers)
        except NotRepresentable as refusal:
            reason = reason or refusal
        else:
            return
    raise reason or NotRepresentable(
        "SG402",
        "the lengths depend on a dynamic dimension, so the bounds of the slices are not constant",
        "Give the dimension a fixed size before converting.",
    )


def constant_bounds(split: CanonicalSplit) -> list[tuple[int, int]] | None:
    """Return start and end of each part as non-negative numbers; None where a length is not a known number."""
    lengths = split.static_lengths
    if lengths is None:
        return None
    return [(end - length, end) for length, end in zip(lengths, accumulate(lengths), strict=True)]


def open_bounds(split: CanonicalSplit) -> list[tuple[int, int]] | None:
    """Return start and end of each part if at most one length is unknown; bounds behind that part count from the end.
    Return None if several lengths are unknown.
    """
    lengths = lengths_with_rest(split)
    if lengths is None or -1 not in lengths:
        return constant_bounds(split)
    rest = lengths.index(-1)
    bounds, start, behind = [], 0, sum(lengths[rest + 1 :])
    for index, length in enumerate(lengths):
        if index == rest:
            end = -behind or OPEN_END
        elif index < rest:
            end = start + length
        else:
            start, behind = -behind, behind - length
            end = -behind or OPEN_END
        # An empty part at the end would begin at -0.
        bounds.append((start, end) if start or length else (0, 0))
        start = end
    return bounds


_NUMBERS: Mapping[BoundsForm, Callable[[CanonicalSplit], Sequence[tuple[int, int]] | None]] = {
    "constant": constant_bounds,
    "open": open_bounds,
}


def _write_numbers(request: LowerRequest, bounds: Sequence[tuple[int, int]]) -> None:
    builder, axis = request.builder, written_axis(request)
    _refuse_negative_axis(request, axis)
    if builder.opset < _INPUTS_SINCE:
        if axis is None:
            raise NotRepresentable("SG402", "the axis is an attribute of the enclosing function, not a number")

        def with_attributes(index: int, pattern: NodeProto) -> NodeProto:
            node = copy_node(request, request.node.input[:1], "Slice", keep=(), pattern=pattern)
            for name, value in (("axes", axis), ("ends", bounds[index][1]), ("starts", bounds[index][0])):
                set_ints(node, name, [value])
            return node

        _write_parts(request, with_attributes)
        return
    axes = axis_tensor(request)

    def with_inputs(index: int, pattern: NodeProto) -> NodeProto:
        start, end = builder.constant(bounds[index][:1], "start"), builder.constant(bounds[index][1:], "end")
        return copy_node(request, [request.node.input[0], start, end, axes], "Slice", keep=(), pattern=pattern)

    _write_parts(request, with_inputs)


def _refuse_negative_axis(request: LowerRequest, axis: int | None) -> None:
    if axis is not None and axis < 0 and request.builder.opset < _NEGATIVE_AXIS_SINCE:
        since = 1 if request.builder.opset < _INPUTS_SINCE else _INPUTS_SINCE
        raise NotRepresentable(
            "SG402",
            f"the axis is {axis} on a tensor of unknown rank, and Slice-{since} takes no negative axis",
            "Stop at opset 11, or declare the shape of the input.",
            exists_from=11,
        )


def _write_parts(request: LowerRequest, written: Callable[[int, NodeProto], NodeProto]) -> None:
    """Write one node for each output that has a name; the first one keeps the name of the original."""
    kept = [index for index, output in enumerate(request.node.output) if output]
    pattern = pattern_of(request)
    for index in kept:
        node = written(index, pattern)
        node.output.append(request.node.output[index])
        if node.name and index != kept[0]:
            node.name = request.builder.fresh_name(f"{node.name}_part{index}")
        request.builder.main(node)


def emit_slices(request: LowerRequest) -> None:
    """Write the split as a Slice for each output, with starts and ends computed at run time; at opset 9, where Slice
    takes no inputs, as a Gather of the places in between.
    """
    if request.builder.opset < 9:
        raise NotRepresentable(
            "SG402",
            "the lengths are known only at run time, which needs ConstantOfShape to count, from opset 9 on",
            "Stop at opset 9, or give the dimension a fixed size before converting.",
            exists_from=9,
        )
    if request.builder.opset == _INPUTS_SINCE:
        _refuse_negative_axis(request, written_axis(request))
    kept = [index for index, output in enumerate(request.node.output) if output]
    bounds = _run_time_bounds(request, {bound for index in kept for bound in (index, index + 1)})
    data, is_sliced = request.node.input[0], request.builder.opset >= _INPUTS_SINCE
    axis = axis_tensor(request) if is_sliced else ""

    def between(index: int, pattern: NodeProto) -> NodeProto:
        start, end = bounds[index], bounds[index + 1]
        if is_sliced:
            return copy_node(request, [data, start, end, axis], "Slice", keep=(), pattern=pattern)
        return _gathered(request, [data, _places(request.builder, start, end)], pattern)

    _write_parts(request, between)


def _gathered(request: LowerRequest, inputs: Sequence[str], pattern: NodeProto) -> NodeProto:
    axis = written_axis(request)
    if axis is None:
        return copy_node(request, inputs, "Gather", keep=("axis",), pattern=pattern)
    node = copy_node(request, inputs, "Gather", keep=(), pattern=pattern)
    set_int(node, "axis", axis)
    return node


def _places(builder: Builder, start: str, end: str) -> str:
    """Return the name of a 1-D int64 tensor that counts from one bound to the next."""
    count = builder.write("Sub", [end, start], "count")
    one = TensorProto(name="", data_type=TensorProto.INT64, dims=[1], int64_data=[1])
    ones = builder.write("ConstantOfShape", [count], "ones", value=one)
    counted = builder.write(
        "Reshape", [builder.write("NonZero", [ones], "found"), builder.constant([-1], "row")], "counted"
    )
    return builder.write("Add", [counted, start], "places")


def _run_time_bounds(request: LowerRequest, needed: Set[int]) -> dict[int, str]:
    """Write the needed bounds between parts, computed at run time; return the name of each, by its number.

    Bound k is where part k starts and part k - 1 ends: a 1-D int64 tensor of one element. From opset 10 on, the bounds
    of equal parts and chunks may lie beyond the end of the dimension, because Slice stops at the end.
    """
    start = {0: request.builder.constant([0], "start")} if 0 in needed else {}
    lengths = request.lengths
    if lengths is None and request.split.form == "lengths":
        lengths = own_lengths(request)
    if lengths is None:
        return start | _multiples_of_chunk_size(request, needed - {0})
    return start | _sums_of_lengths(request.builder, lengths, max(needed, default=0))


def _multiples_of_chunk_size(request: LowerRequest, needed: Set[int]) -> dict[int, str]:
    """Write the bounds of equal parts or chunks: bound k is k times the size of a part."""
    builder, dim = request.builder, dimension(request)
    size = chunk_size(request, dim)
    bounds = {}
    for index in sorted(needed):
        bound = size
        if index > 1:
            bound = builder.write("Mul", [size, builder.constant([index], "index")], "bound")
        if builder.opset < _INPUTS_SINCE:
            # A Gather reads between the bounds here. It does not stop at the end of the dimension, as Slice does.
            inside = builder.write("Less", [bound, dim], "inside")
            bound = builder.write("Where", [inside, bound, dim], "bound")
        bounds[index] = bound
    return bounds


def _sums_of_lengths(builder: Builder, lengths: str, last: int) -> dict[int, str]:
    """Write the bounds from 1 to `last` of a split by lengths: each adds one length to the bound before it."""
    bounds: dict[int, str] = {}
    for index in range(1, last + 1):
        where = builder.constant([index - 1], "index")
        if builder.opset < _INPUTS_SINCE:
            length = builder.write("Gather", [lengths, where], "length")
        else:
            length = builder.write("Slice", [lengths, where, builder.constant([index], "next")], "length")
        bounds[index] = length if index == 1 else builder.write("Add", [bounds[index - 1], length], "bound")
    return bounds
