"""Mod of floating-point numbers: the exact remainder below opset 10, where Mod does not exist."""

from __future__ import annotations

from splitgraph.attributes import make_node
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.writing.shape_nodes import widened
from splitgraph.deferred import helper, np
from splitgraph.onnx_proto import GraphProto, NodeProto, TensorProto
from splitgraph.value_type import DTYPE_NUMBERS

# The number of times that the smallest number of each type is doubled to exceed the greatest one.
_DOUBLINGS = {"float16": 40, "float32": 277, "float64": 2098}
# The largest power of 2 to multiply by at once.
_MOST = 700


def divide_by_long_division(node: NodeAtBoundary) -> None:
    """Computes the remainder in a Loop. Each step subtracts the divisor, doubled ever fewer times, from what is left of
    the dividend, where that is not less. The doubled divisor is then at least half of it, so that the difference is
    exact.

    float64 holds the doubled divisors of narrower types; those of float64 become infinite, and are never subtracted.
    """
    dtype = node.known_dtype()
    ranks = [node.known_rank(index) for index in range(2)]
    if dtype not in _DOUBLINGS or not node.known_value_or_default("fmod"):
        raise Inexact(f"there is no remainder of {dtype}")
    one, other = (widened(node, name, dtype, "float64") for name in node.inputs)
    size, divisor = (node.write("Abs", [name], "size") for name in (one, other))
    # This Where gives the dividend the shape of the result.
    left = node.write("Where", [node.write("Less", [one, other], "is_less"), size, size], "dividend")
    doublings = range(_DOUBLINGS[dtype], -1, -1)
    trips, going = node.constant(len(doublings), "trips"), node.constant(True, "going", np.bool_)
    powers = [
        node.constant([2.0 ** min(max(count - below, 0), _MOST) for count in doublings], "powers", np.float64)
        for below in range(0, _DOUBLINGS[dtype], _MOST)
    ]
    rest = node.write("Loop", [trips, going, left], "rest", body=_loop_body(node, divisor, powers, max(ranks)))
    # The sign is a factor: onnxruntime's Where gives 0 for -0.
    inverse = node.write("Div", [node.constant(1.0, "one", np.float64), one], "inverse")
    zero, infinite, nan = (node.constant(value, "limit", np.float64) for value in (0.0, np.inf, np.nan))
    is_negative = node.write("Less", [inverse, zero], "is_negative")
    signs = [node.constant(value, "sign", np.float64) for value in (-1.0, 1.0)]
    sign = node.write("Where", [is_negative, *signs], "sign")
    sign = node.write("Where", [node.write("Less", [size, infinite], "is_finite"), sign, nan], "sign_of_finite")
    sign = node.write("Where", [node.write("Greater", [divisor, zero], "divides"), sign, nan], "sign_if_divided")
    result = node.write("Mul", [rest, sign], "result")
    node.replace("Cast", [result], to=DTYPE_NUMBERS[dtype])


def _loop_body(node: NodeAtBoundary, divisor: str, powers: list[str], rank: int) -> GraphProto:
    """Makes the body of the Loop: subtracts the doubled divisor from what is left, where it is not more."""
    count, going, left, kept, found = (node.new_name(hint) for hint in ("count", "going", "left", "kept", "found"))
    nodes: list[NodeProto] = []

    def emit(op_type: str, inputs: list[str], output: str = "") -> str:
        output = output or node.new_name(op_type.lower())
        nodes.append(make_node(op_type, inputs, [output], node.new_name(op_type.lower())))
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
