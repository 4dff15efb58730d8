"""The layers of make_layers.py, built with openvino's own operator sets: a group is one model of several results. Those
with bodies are in body_layer_models.py.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import openvino as ov
from openvino import (
    Dimension,
    PartialShape,
    op,
    opset1,
    opset2,
    opset3,
    opset4,
    opset5,
    opset6,
    opset7,
    opset8,
    opset9,
    opset10,
    opset11,
    opset13,
    opset14,
    opset15,
    opset16,
)

Outputs = dict[str, Any]
GROUPS: dict[str, Callable[[], Outputs]] = {}
N = -1
F32, I64 = np.float32, np.int64
_made: list[Any] = []


def start() -> None:
    """Begin a model: its inputs are numbered from 0."""
    _made.clear()


def group(build: Callable[[], dict[str, Any]]) -> Callable[[], Outputs]:
    """Register a model; a node of several outputs becomes as many results."""

    def outputs() -> Outputs:
        found: Outputs = {}
        for key, made in build().items():
            several = made.outputs() if isinstance(made, ov.Node) else [made]
            found |= {key if len(several) == 1 else f"{key}.{index}": each for index, each in enumerate(several)}
        return found

    GROUPS[build.__name__] = outputs
    return outputs


def given(*dims: Any, dtype: Any = F32) -> Any:
    """An input; a pair is an interval."""
    shape = PartialShape([Dimension(*dim) if isinstance(dim, tuple) else dim for dim in dims])
    parameter = opset1.parameter(shape, dtype)
    parameter.set_friendly_name(f"p{len(_made):02}")
    _made.append(parameter)
    return parameter


def ranked_somehow() -> Any:
    """An input of which not even the rank is known."""
    parameter = opset1.parameter(PartialShape.dynamic(), F32)
    parameter.set_friendly_name(f"p{len(_made):02}")
    _made.append(parameter)
    return parameter


def const(value: Any, dtype: Any = I64) -> Any:
    """A constant."""
    return opset1.constant(np.array(value, dtype))


def nothing() -> Any:
    """A constant without elements."""
    return op.Constant(ov.Type.i64, ov.Shape([0]), np.zeros(0, I64))


def used_parameters(output: Any) -> list[Any]:
    """The parameters that a layer's output depends on, by name."""
    found, seen, left = [], set(), [output.get_node()]
    while left:
        node = left.pop()
        if node.get_name() in seen:
            continue
        seen.add(node.get_name())
        if node.get_type_name() == "Parameter":
            found.append(node)
        left += [given.get_source_output().get_node() for given in node.inputs()]
    return sorted(found, key=lambda node: node.get_friendly_name())


def fitting(dim: Any, size: int) -> int:
    """A size that a dimension takes, this one if it can be."""
    most = dim.get_max_length()
    return max(dim.get_min_length(), size if most < 0 else min(size, most))


@group
def arithmetic() -> dict[str, Any]:
    return {
        "add": opset1.add(given(N, 3), given(1, 3)),
        "interval": opset1.add(given((2, 5), 3), given(3)),
        "intervals": opset1.add(given((2, 5), (1, 3)), given((2, 9), (0, 4))),
        "alike": opset1.add(given(N, 3), given(5, N), auto_broadcast="NONE"),
        "pdpd": opset1.add(given(2, N, 4), given(N), auto_broadcast="PDPD"),
        "outer": opset1.multiply(opset1.subtract(given(N, 1), given(1, N)), const(2.0, F32)),
        "mod": opset1.mod(given(N), given(1)),
        "floor_mod": opset1.floor_mod(given(N), given(1)),
        "squared": opset1.squared_difference(given(N), given(1)),
        "power": opset1.power(given(N), given(1)),
        "maximum": opset1.maximum(given(N), given(1)),
        "minimum": opset1.minimum(given(N), given(1)),
        "bits": opset13.bitwise_and(given(N, 3, dtype=np.int32), given(3, dtype=np.int32)),
        "prelu": opset1.prelu(given(N, 3, 4), const([0.1] * 3, F32)),
    }


@group
def comparison() -> dict[str, Any]:
    compare = ("equal", "not_equal", "less", "less_equal", "greater", "greater_equal")
    logic = ("logical_and", "logical_or", "logical_xor")
    found = {name: getattr(opset1, name)(given(N, 3), given(1)) for name in compare}
    found |= {name: getattr(opset1, name)(given(N, 3, dtype=bool), given(3, dtype=bool)) for name in logic}
    found["logical_not"] = opset1.logical_not(given(N, dtype=bool))
    found["select"] = opset1.select(given(N, 1, dtype=bool), given(1, 4), given(3, 1, 4))
    return found


@group
def activations() -> dict[str, Any]:
    data = given(N, 3, 4)
    names = "abs ceiling cos exp floor log negative relu sigmoid sign sin sqrt tan tanh erf acos asin atan cosh sinh"
    newer = {"mish": opset4, "softplus": opset4, "hswish": opset4, "swish": opset4, "hsigmoid": opset5}
    return {
        **{name: getattr(opset1, name)(data) for name in names.split()},
        **{name: getattr(operators, name)(data) for name, operators in newer.items()},
        "round": opset5.round(data),
        "gelu": opset7.gelu(data, "tanh"),
        "elu": opset1.elu(data, 1.0),
        "clamp": opset1.clamp(data, 0, 6),
        "softmax": opset8.softmax(data, -1),
        "log_softmax": opset5.log_softmax(data, 1),
        "hard_sigmoid": opset1.hard_sigmoid(data, const(0.1, F32), const(0.1, F32)),
        "selu": opset1.selu(data, const(0.1, F32), const(0.1, F32)),
        "normalize": opset1.normalize_l2(given(N, 3, 4, 4), const([1]), 1e-5, "add"),
        "mvn": opset8.mvn(data, const([1]), True, 1e-5, "INSIDE_SQRT"),
        "batch_norm": opset5.batch_norm_inference(data, *(const([1.0] * 3, F32) for _ in range(4)), 1e-5),
        "lrn": opset1.lrn(data, const([1])),
        "quantized": opset1.fake_quantize(data, *(const(value, F32) for value in (0, 1, 0, 1)), 256),
        "cum_sum": opset3.cum_sum(given(N, 3), const(0)),
        "reverse": opset1.reverse_sequence(given(4, 3), const([1, 1, 1, 1]), 0, 1),
        "shuffled": opset3.shuffle_channels(given(N, 4, 2), 1, 2),
        "rolled": opset7.roll(given(N, 3), const([1]), const([0])),
        "bitwise_not": opset13.bitwise_not(given(N, 3, dtype=np.int32)),
        "converted": opset1.convert(given(N, 3), "i64"),
        "converted_like": opset1.convert_like(given(N, 2), given(dtype=np.int8)),
        "buckets": opset3.bucketize(given(N, 3), given(4), "i32"),
        "variable": opset6.read_value(given(N, 3), "v", ov.Type.f32, PartialShape([N, 3])),
    }


@group
def reshaping() -> dict[str, Any]:
    data = given(N, 3, (2, 6))
    sizes, narrow = opset3.shape_of(data), opset3.shape_of(data, "i32")
    outer = opset8.gather(sizes, const([0, 2]), const(0))
    first, last = (opset7.gather(narrow, const([i], np.int32), const(0, np.int32)) for i in (0, 2))
    halves = opset1.concat([first, opset1.multiply(last, const([3], np.int32))], 0)
    return {
        "shape": sizes,
        "narrow_shape": narrow,
        "old_shape": opset1.shape_of(given(N, 2)),
        "gathered_shape": opset1.reshape(given(N), opset1.concat([outer, const([-1])], 0), False),
        "computed": opset1.reshape(data, halves, False),
        "zero": opset1.reshape(given(N, 3, 4), const([0, -1]), True),
        "zero_interval": opset1.reshape(given((2, 8), 3, (1, 4)), const([0, -1]), True),
        "rest_interval": opset1.reshape(given((2, 8), 3, 4), const([-1, 6]), False),
        "no_elements": opset1.reshape(given(0, 3), const([0, 3]), False),
        "no_elements_rest": opset1.reshape(given(0, 3), const([0, -1]), False),
        "any_rank": opset1.reshape(ranked_somehow(), const([2, -1]), False),
        "to_scalar": opset1.reshape(given(1, 1), nothing(), False),
        "squeezed": opset1.squeeze(given(1, N, 1, 3), const([0, 2])),
        "squeezed_all": opset15.squeeze(given(1, 3, 1)),
        "squeezed_all_dynamic": opset15.squeeze(given(1, N, 1)),
        "squeezed_all_interval": opset15.squeeze(given(1, (2, 4), 1)),
        "squeezed_dynamic": opset1.squeeze(given(N, 3), const([0])),
        "squeezed_not_one": opset1.squeeze(given(2, 3), const([0])),
        "squeezed_never_one": opset1.squeeze(given((2, 5), 3), const([0])),
        "squeezed_twice": opset1.squeeze(given(1, 2, 1), const([0, 0])),
        "squeezed_none": opset1.squeeze(given(1, 2, 1), nothing()),
        "squeezed_axis_unknown": opset1.squeeze(given(1, 2, 1), given(1, dtype=I64)),
        "skipped": opset15.squeeze(given(2, 1, 3), const([0, 1]), True),
        "skipped_dynamic": opset15.squeeze(given(N, 1, 3), const([0, 1]), True),
        "skipped_interval": opset15.squeeze(given((2, 5), 1, 3), const([0, 1]), True),
        "unsqueezed": opset1.unsqueeze(given(N, 3), const([0, -1])),
        "unsqueezed_scalar_axis": opset1.unsqueeze(given(2), const(0)),
        "unsqueezed_twice": opset1.unsqueeze(given(N, 3), const([0, 0])),
        "unsqueezed_from_both_ends": opset1.unsqueeze(given(2, 3), const([0, -4])),
        "unsqueezed_somewhere": opset1.unsqueeze(given(N, 3), given(1, dtype=I64)),
        "unsqueezed_twice_somewhere": opset1.unsqueeze(given(N, 3), given(2, dtype=I64)),
        "transposed": opset1.transpose(given(N, 3, 4), const([2, 0, 1])),
        "reversed": opset1.transpose(given(N, 3, 4), nothing()),
        "transposed_somehow": opset1.transpose(given(N, 3), given(2, dtype=I64)),
        "transposed_any": opset1.transpose(ranked_somehow(), const([1, 0])),
    }


@group
def computed_shapes() -> dict[str, Any]:
    sizes = opset3.shape_of(given((4, 20), 6))
    count = opset8.gather(sizes, const([0]), const(0))
    half = opset1.divide(count, const([2]))
    as_float = opset1.multiply(opset1.convert(count, "f32"), const([0.5], F32))
    found = {
        "half": half,
        "remainder": opset1.floor_mod(count, const([3])),
        "truncated_remainder": opset1.mod(count, const([3])),
        "minimum": opset1.minimum(count, const([8])),
        "maximum": opset1.maximum(count, const([8])),
        "product": opset1.reduce_prod(sizes, const([0]), True),
        "sum": opset1.reduce_sum(sizes, const([0]), True),
        "largest": opset1.reduce_max(sizes, const([0]), True),
        "floor": opset1.convert(opset1.floor(as_float), "i64"),
        "select": opset1.select(opset1.greater(count, const([3])), count, const([7])),
        "select_unknown": opset1.select(opset1.equal(count, const([5])), const([1]), const([2])),
        "updated": opset3.scatter_update(sizes, const([1]), const([9]), const(0)),
        "squeezed": opset1.squeeze(opset1.unsqueeze(count, const([0])), const([0])),
        "tiled": opset1.tile(count, const([2])),
        "quotient": opset1.add(opset1.divide(const([-7]), const([2])), const([10])),
        "negative_quotient": opset1.negative(opset1.divide(opset1.negative(count), const([2]))),
        "clamped": opset1.clamp(count, 5, 7),
        "joined": opset1.concat([count, const([2]), half], 0),
        "less": opset1.subtract(count, const([4])),
        "sliced": opset1.strided_slice(sizes, const([-1]), const([0]), const([1]), [0], [1]),
        "element": opset1.unsqueeze(
            opset1.strided_slice(sizes, const([0]), const([0]), const([1]), [0], [0], [], [1]), const([0])
        ),
    }
    found = {name: opset3.broadcast(const(0.0, F32), target) for name, target in found.items()}
    found["counted"] = opset4.range(const(0), opset8.gather(sizes, const(0), const(0)), const(2), "i64")
    return found


@group
def slicing() -> dict[str, Any]:
    def strided(data: Any, *bounds: list[int], **masks: list[int]) -> Any:
        keys = ("begin_mask", "end_mask", "new_axis_mask", "shrink_axis_mask", "ellipsis_mask")
        size = max(map(len, (bounds[0], *masks.values())))
        filled = [(masks.get(key, []) + [0] * size)[:size] for key in keys]
        return opset1.strided_slice(data, *map(const, bounds), *filled)

    def sliced(data: Any, *bounds: list[int]) -> Any:
        return opset8.slice(data, *map(const, bounds))

    begins = [given(2, dtype=I64) for _ in range(3)]
    return {
        "basic": strided(given(N, 10, 8), [0, 1, 2], [2, -1, 6], [1, 2, 1]),
        "masks": strided(given(N, 10, 8), [0, 1, 2], [2, -1, 6], [1, 2, 1], begin_mask=[1, 0, 1], end_mask=[1, 0, 1]),
        "shrunk": strided(given(N, 10, 8), [0, 1], [1, 2], [1, 1], begin_mask=[1], shrink_axis_mask=[0, 1]),
        "new": strided(given(N, 10, 8), [0, 1, 0], [1, 2, 0], [1, 1, 1], end_mask=[0, 0, 1], new_axis_mask=[1]),
        "ellipsis": strided(given(N, 10, 8, 5), [0, 1], [0, 3], [1, 1], ellipsis_mask=[1]),
        "ellipsis_new": strided(
            given(N, 10, 8, 5), [0, 0, 1], [0, 0, 3], [1, 1, 1], new_axis_mask=[0, 1], ellipsis_mask=[1]
        ),
        "ellipsis_shrunk": strided(
            given(N, 10, 8),
            [0, 0, -1],
            [0] * 3,
            [1] * 3,
            new_axis_mask=[0, 1],
            shrink_axis_mask=[0, 0, 1],
            ellipsis_mask=[1],
        ),
        "backward": strided(
            given(N, 10, 8), [0, -1, 0], [0, 0, 0], [1, -2, -1], begin_mask=[1, 0, 1], end_mask=[1, 0, 1]
        ),
        "backward_dynamic": strided(given(N, 10), [0, 0], [0, 0], [-1, -3], begin_mask=[1, 1], end_mask=[1, 1]),
        "intervals": strided(given((3, 10), (0, 7)), [1, -3], [5, -1], [1, 1]),
        "new_and_shrunk": strided(given(4, 5), [0, 1], [1, 2], [1, 1], new_axis_mask=[1], shrink_axis_mask=[1]),
        "long_masks": strided(given(4, 5), [0], [2], [1], begin_mask=[0, 0], end_mask=[0, 0], new_axis_mask=[0, 0]),
        "unknown_bounds": opset1.strided_slice(given(5, N, 7), *begins, [1, 0], [1, 0]),
        "to_the_end": sliced(given(N, 10, 8), [1], [2**31 - 1], [2], [0]),
        "first_axes": sliced(given(N, 10, 8), [1, 2], [5, -1], [1, 1]),
        "from_the_end": sliced(given(N, 10), [-1], [-(2**31)], [-2], [1]),
        "interval": sliced(given((4, 9), 10), [1], [-1], [1], [0]),
        "unknown_start": opset8.slice(given(N, 10), given(1, dtype=I64), const([4]), const([1]), const([1])),
    }


@group
def enlarging() -> dict[str, Any]:
    zero = const(0.0, F32)
    return {
        "joined": opset1.concat([given(N, 3), given(2, N)], 0),
        "joined_intervals": opset1.concat([given((2, 4), 3), given((1, 3), 3)], -2),
        "joined_columns": opset1.concat([given(N, 3), given(2, 4)], 1),
        "numpy": opset3.broadcast(given(N, 1), const([2, 3, 4])),
        "numpy_unknown": opset3.broadcast(given((2, 4), 1), given(3, dtype=I64)),
        "both_ways": opset3.broadcast(given(N, 1), const([4, 1, 5]), broadcast_spec="BIDIRECTIONAL"),
        "both_ways_unknown": opset3.broadcast(given((2, 4), 1), given(2, dtype=I64), broadcast_spec="BIDIRECTIONAL"),
        "explicit": opset3.broadcast(given(3), const([2, 3, 4]), const([1]), "EXPLICIT"),
        "old_broadcast": opset1.broadcast(given(1, 3), const([5, 3])),
        "tiled": opset1.tile(given(N, 3), const([2, 3])),
        "tiled_more": opset1.tile(given(N, 3), const([2, 1, 3])),
        "tiled_fewer": opset1.tile(given(N, 3), const([3])),
        "tiled_unknown": opset1.tile(given((1, 3), 3), given(2, dtype=I64)),
        "range": opset4.range(const(0), const(10), const(3), "i64"),
        "range_unknown": opset4.range(given(dtype=I64), const(10), const(3), "i64"),
        "range_converted": opset4.range(const(1.5, F32), const(9.5, F32), const(2.0, F32), "i32"),
        "range_down": opset4.range(const(10), const(0), const(-3), "f32"),
        "padded": opset1.pad(given(N, 3), const([1, 0]), const([2, 1]), "constant", zero),
        "padded_unknown": opset1.pad(given((3, 9), 5), given(2, dtype=I64), const([2, 1]), "reflect"),
        "cropped": opset15.pad(given(N, 7), const([-1, -1]), const([0, -2]), "constant", zero),
        "random": opset8.random_uniform(const([2, 3]), zero, const(1.0, F32), "f32"),
    }


@group
def indexing() -> dict[str, Any]:
    def positions(*dims: Any) -> Any:
        return given(*dims, dtype=I64)

    return {
        "first_gather": opset1.gather(given(N, 3, 4), positions(2, N), const(1)),
        "batches": opset7.gather(given(2, 3, 4), positions(2, 5), const(1), 1),
        "negative_batch_dims": opset8.gather(given(N, 3, 4), positions(2, 5), const(2), -1),
        "scalar_index": opset8.gather(given(N, 3, 4), positions(), const(0)),
        "unknown_axis": opset8.gather(given(N, 3, 4), positions(5), positions()),
        "batch_intervals": opset8.gather(given((2, 4), 3, 4), positions((3, 9), 5), const(1), 1),
        "elements": opset8.gather_elements(given(N, 3), positions(4, 3), 0),
        "tuples_5": opset5.gather_nd(given(2, 3, 4), positions(2, 3, 1), 2),
        "tuples_5_intervals": opset5.gather_nd(given((2, 4), 3, 4), positions((3, 5), 3, 1), 2),
        "tuples_8": opset8.gather_nd(given(2, 3, 4), positions(2, 3, 1), 2),
        "tuples_8_intervals": opset8.gather_nd(given((2, 4), 3, 4), positions((3, 5), 3, 1), 2),
        "tuples_of_two": opset8.gather_nd(given(N, 3, 4), positions(5, 2), 0),
        "tuples_unknown": opset8.gather_nd(given(N, 3, 4), positions(5, N), 0),
        "update": opset3.scatter_update(given(N, 3), const([0]), given(1, 3), const(0)),
        "elements_update": opset3.scatter_elements_update(given(N, 3), const([[0]]), given(1, 1), const(0)),
        "tuples_update": opset4.scatter_nd_update(given(N, 3), const([[0]]), given(1, 3)),
        "top": opset3.topk(given(N, 9), const(3), 1, "max", "value"),
        "top_unknown": opset3.topk(given((2, 4), 9), positions(), 0, "max", "value"),
        "top_wide": opset15.topk(given(3, 9), const(2), -1, "max", "value", "i64"),
        "top_too_many": opset3.topk(given(3, 9), const(10), 1, "max", "value"),
        "non_zero": opset3.non_zero(given(N, 3)),
        "non_zero_narrow": opset3.non_zero(given(2, 3), "i32"),
        "one_hot": opset1.one_hot(positions(N, 3), const(5), const(1.0, F32), const(0.0, F32), -1),
        "one_hot_unknown": opset1.one_hot(positions(N, 3), positions(), const(1.0, F32), const(0.0, F32), 0),
    }


@group
def convolution() -> dict[str, Any]:
    one, two, none = [1, 1], [2, 2], [0, 0]
    spread, grouped_spread = opset1.convolution_backprop_data, opset1.group_convolution_backprop_data
    return {
        "padded": opset1.convolution(given(N, 3, 32, N), given(8, 3, 3, 3), two, one, one, one),
        "same": opset1.convolution(given(N, 3, 32, N), given(8, 3, 3, 3), two, one, one, one, "same_upper"),
        "valid": opset1.convolution(given(N, 3, 32, (10, 20)), given(8, 3, 3, 3), two, one, one, [2, 1], "valid"),
        "one_side": opset1.convolution(given(1, N, (7, 9)), given(4, 6, 3), [1], [0], [0], [1]),
        "groups": opset1.group_convolution(given(N, 6, 32, N), given(3, 4, 2, 3, 3), two, one, one, one),
        "any_channels": opset1.group_convolution(given(N, N, 32, N), given(3, 4, 2, 3, 3), one, none, none, two),
        "spread": spread(given(N, 3, 8, N), given(3, 6, 3, 3), two, None, one, one, one, "explicit", one),
        "spread_to": spread(given(N, 3, 8, (2, 4)), given(3, 6, 3, 3), two, const([17, 18])),
        "spread_same": spread(given(N, 3, 8, (2, 4)), given(3, 6, 3, 3), two, None, one, one, one, "same_upper"),
        "spread_valid": spread(given(N, 3, 8, N), given(3, 6, 3, 3), two, None, one, one, one, "valid"),
        "spread_groups": grouped_spread(given(N, 6, 8, N), given(2, 3, 5, 3, 3), two, None, one, one, one),
    }


@group
def pooling() -> dict[str, Any]:
    none, one, two, three = [0, 0], [1, 1], [2, 2], [3, 3]
    found = {
        "largest": opset1.max_pool(given(N, 3, 32, N), two, none, none, two),
        "rounded_up": opset1.max_pool(given(N, 3, 33, (9, 12)), two, none, none, two, "ceil"),
        "mean": opset1.avg_pool(given(N, 3, 33, N), two, one, one, three, True, "ceil"),
        "same": opset1.avg_pool(given(N, 3, 33, N), two, one, one, three, True, "floor", "same_upper"),
        "valid": opset1.avg_pool(given(N, 3, 33, N), two, one, one, three, True, "ceil", "valid"),
        "holes": opset8.max_pool(given(N, 3, 33, N), two, [2, 1], one, one, three),
        "torch": opset14.avg_pool(given(N, 3, 34, N), three, one, one, [4, 4], True, "ceil_torch"),
        "adaptive": opset8.adaptive_avg_pool(given(N, 3, 9, N), const([4, 5])),
        "adaptive_largest": opset8.adaptive_max_pool(given(N, 3, 9), const([4])),
        "to_depth": opset1.space_to_depth(given(N, 2, 4, (2, 9)), "blocks_first", 2),
        "to_space": opset1.depth_to_space(given(N, 8, 4, (2, 3)), "depth_first", 2),
    }
    for side in range(5, 14):
        data = given(1, 1, side)
        found |= {f"up_{side}_{step}": opset1.max_pool(data, [step], [1], [1], [3], "ceil") for step in (2, 3)}
        found |= {
            f"torch_{side}_{step}": opset14.max_pool(data, [step], [1], [1], [1], [3], "ceil_torch").output(0)
            for step in (2, 3, 4)
        }
    return found


@group
def resizing() -> dict[str, Any]:
    axes = const([2, 3])

    def scaled(data: Any, scales: list[float], *pads: list[int]) -> Any:
        return opset11.interpolate(data, const(scales, F32), "nearest", "scales", *pads, axes=axes)

    return {
        "sizes": opset11.interpolate(given(N, 3, 8, 9), const([16, 20]), "nearest", "sizes", axes=axes),
        "all_axes": opset11.interpolate(given(N, 3, 8, 9), const([2, 3, 16, 20]), "nearest", "sizes"),
        "padded_sizes": opset11.interpolate(
            given(N, 3, 8, 9), const([16, 20]), "nearest", "sizes", [0, 0, 1, 1], [0, 0, 1, 2], axes=axes
        ),
        "first": opset1.interpolate(given(N, 3, 8, 9), const([16, 20]), {"axes": [2, 3], "mode": "nearest"}),
        "scales": scaled(given(N, 3, 8, (2, 4)), [2.0, 2.0]),
        "padded_scales": scaled(given(N, 3, 8, 9), [0.5, 0.3], [0, 0, 1, 1], [0, 0, 1, 2]),
    }


@group
def products() -> dict[str, Any]:
    data = given(N, 3, 4)
    return {
        "matrices": opset1.matmul(given(N, 3, 4), given(4, 5), False, False),
        "transposed": opset1.matmul(given(N, 4, 3), given(7, 5, 4), True, True),
        "row": opset1.matmul(given(3), given(2, 3, 4), True, False),
        "column": opset1.matmul(given(N, 3), given(3), False, True),
        "vectors": opset1.matmul(given(3), given(3), False, False),
        "batches": opset1.matmul(given((2, 4), 1, 3, 4), given((1, 3), 4, N), False, False),
        "einsum": opset7.einsum([given(N, 3, 4), given(4, 5)], "bij,jk->bik"),
        "attention": opset13.scaled_dot_product_attention(given(N, 4, (2, 5), 8), given(N, 4, 7, 8), given(N, 4, 7, 9)),
        "sum": opset1.reduce_sum(data, const([1]), True),
        "mean": opset1.reduce_mean(data, const([0, -1]), False),
        "largest_of_none": opset1.reduce_max(data, nothing(), True),
        "scalar_axis": opset1.reduce_min(data, const(1), False),
        "unknown_axis": opset1.reduce_prod(data, given(1, dtype=I64), True),
        "unknown_axis_dropped": opset1.reduce_prod(data, given(1, dtype=I64), False),
        "l1": opset4.reduce_l1(data, const([0]), True),
        "l2": opset4.reduce_l2(data, const([0]), False),
        "all": opset1.reduce_logical_and(given(N, 3, dtype=bool), const([0]), True),
        "any": opset1.reduce_logical_or(given(N, 3, dtype=bool), const([0]), False),
    }


@group
def rarer() -> dict[str, Any]:
    zero, sides = const(0), const([1, 1, 2, 2])
    return {
        "is_nan": opset10.is_nan(given(N, 3)),
        "is_finite": opset10.is_finite(given(N, 3)),
        "shifted": opset15.bitwise_left_shift(given(N, 3, dtype=np.int32), given(3, dtype=np.int32)),
        "found": opset15.search_sorted(given(2, 9), given(2, N)),
        "same": opset16.identity(given(N, (2, 5))),
        "scattered": opset15.slice_scatter(given(9, N), given(2, N), const([1]), const([3]), const([1]), const([0])),
        "inverse": opset14.inverse(given(N, 3, 3)),
        "sampled": opset9.grid_sample(given(N, 3, 8, 9), given(2, (2, 5), N, 2), {}),
        "eye": opset9.eye(const(3), const(4), zero, "f32"),
        "eyes": opset9.eye(given(dtype=I64), const(4), zero, "f32", const([2, 5])),
        "from_batches": opset2.batch_to_space(given(8, 3, (2, 5), N), sides, const([0, 0, 0, 1]), const([0, 0, 1, 0])),
        "to_batches": opset2.space_to_batch(given(N, 3, 4, 6), sides, const([0, 0, 1, 0]), const([0, 0, 1, 2])),
    }


@group
def recurrent() -> dict[str, Any]:
    def weights(*shape: int) -> Any:
        return const(np.zeros(shape), F32)

    def lengths(*dims: Any) -> Any:
        return given(*dims, dtype=np.int32)

    lstm, gru = (weights(1, 28, 5), weights(1, 28, 7), weights(1, 28)), (weights(2, 21, 5), weights(2, 21, 7))
    return {
        "lstm": opset5.lstm_sequence(
            given(N, (3, 9), 5), given(N, 1, 7), given(N, 1, 7), lengths(N), *lstm, 7, "forward"
        ),
        "gru": opset5.gru_sequence(
            given(2, N, 5), given(2, 2, 7), lengths(2), *gru, weights(2, 21), 7, "bidirectional"
        ),
        "rnn": opset5.rnn_sequence(
            given(2, N, 5), given(2, 1, 7), lengths(2), weights(1, 7, 5), weights(1, 7, 7), weights(1, 7), 7, "forward"
        ),
        "lstm_cell": opset4.lstm_cell(
            given(N, 5), given(3, 7), given(N, 7), weights(28, 5), weights(28, 7), weights(28), 7
        ),
        "gru_cell": opset3.gru_cell(given(N, 5), given(N, 7), weights(21, 5), weights(21, 7), weights(21), 7),
    }
