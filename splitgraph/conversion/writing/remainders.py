"""Mod of floating-point numbers: the exact remainder below opset 10, where Mod does not exist."""

from __future__ import annotations

from splitgraph.attributes import make_node
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.conversion.writing.shape_nodes import widened
from splitgraph.deferred import helper, np
from splitgraph.onnx_proto import GraphProto, NodeProto, TensorProto
from splitgraph.value_type import DTYPE_NUMBERS

# The number of times that the smallest number of each type is doubled to exceed the greatest one.
_DOUBLINGS = {"float16": 40, "float32": 277, "float64": 2098}
# The largest power of 2 to multiply by at once.
_MOST = 700


def divide_by_long_division(context: AdapterContext) -> None:
    """Computes the remainder in a Loop. Each step subtracts the divisor, doubled ever fewer times, from what is left of
    the dividend, where that is not less. The doubled divisor is then at least half of it, so that the difference is
    exact.

    float64 holds the doubled divisors of narrower types; those of float64 become infinite, and are never subtracted.
    """
    dtype = context.known_dtype()
    ranks = [context.known_rank(index) for index in range(2)]
    if dtype not in _DOUBLINGS or not context.known_value_or_default("fmod"):
        raise Inexact(f"there is no remainder of {dtype}")
    one, other = (widened(context, name, dtype, "float64") for name in context.inputs)
    size, divisor = (context.emit("Abs", [name], "size") for name in (one, other))
    # This Where gives the dividend the shape of the result.
    left = context.emit("Where", [context.emit("Less", [one, other], "is_less"), size, size], "dividend")
    doublings = range(_DOUBLINGS[dtype], -1, -1)
    trips, going = context.constant(len(doublings), "trips"), context.constant(True, "going", np.bool_)
    powers = [
        context.constant([2.0 ** min(max(count - below, 0), _MOST) for count in doublings], "powers", np.float64)
        for below in range(0, _DOUBLINGS[dtype], _MOST)
    ]
    rest = context.emit("Loop", [trips, going, left], "rest", body=_loop_body(context, divisor, powers, max(ranks)))
    # The sign is a factor: onnxruntime's Where gives 0 for -0.
    inverse = context.emit("Div", [context.constant(1.0, "one", np.float64), one], "inverse")
    zero, infinite, nan = (context.constant(value, "limit", np.float64) for value in (0.0, np.inf, np.nan))
    is_negative = context.emit("Less", [inverse, zero], "is_negative")
    signs = [context.constant(value, "sign", np.float64) for value in (-1.0, 1.0)]
    sign = context.emit("Where", [is_negative, *signs], "sign")
    sign = context.emit("Where", [context.emit("Less", [size, infinite], "is_finite"), sign, nan], "sign_of_finite")
    sign = context.emit("Where", [context.emit("Greater", [divisor, zero], "divides"), sign, nan], "sign_if_divided")
    result = context.emit("Mul", [rest, sign], "result")
    context.replace("Cast", [result], to=DTYPE_NUMBERS[dtype])


def _loop_body(context: AdapterContext, divisor: str, powers: list[str], rank: int) -> GraphProto:
    """Makes the body of the Loop: subtracts the doubled divisor from what is left, where it is not more."""
    count, going, left, kept, found = (context.new_name(hint) for hint in ("count", "going", "left", "kept", "found"))
    nodes: list[NodeProto] = []

    def emit(op_type: str, inputs: list[str], output: str = "") -> str:
        output = output or context.new_name(op_type.lower())
        nodes.append(make_node(op_type, inputs, [output], context.new_name(op_type.lower())))
        return output

    doubled = divisor
    for table in powers:
        doubled = emit("Mul", [doubled, emit("Gather", [table, count])])
    is_more = emit("Less", [left, doubled])
    emit("Where", [is_more, left, emit("Sub", [left, doubled])], found)
    emit("Identity", [going], kept)
    dims = [None] * rank
    inputs = [
        helper.make_tensor_value_info(count, TensorProto.INT64, []),
        helper.make_tensor_value_info(going, TensorProto.BOOL, []),
        helper.make_tensor_value_info(left, TensorProto.DOUBLE, dims),
    ]
    outputs = [
        helper.make_tensor_value_info(kept, TensorProto.BOOL, []),
        helper.make_tensor_value_info(found, TensorProto.DOUBLE, dims),
    ]
    return helper.make_graph(nodes, "division", inputs, outputs)
