"""The exact remainder of floating-point numbers, below opset 10, where Mod does not exist."""

from __future__ import annotations

from splitgraph.conversion.writing.adapter_context import Inexact, Step
from splitgraph.deferred import helper, np
from splitgraph.node_making import make_node
from splitgraph.onnx_proto import GraphProto, NodeProto, TensorProto
from splitgraph.value_type import DTYPE_NUMBERS

# How many times the smallest number of each type must be doubled to exceed the greatest one.
_DOUBLINGS = {"float16": 40, "float32": 277, "float64": 2098}
# The largest power of 2 to multiply by at once.
_MOST = 700


def remainder_by_long_division(step: Step) -> None:
    """A Loop takes the divisor, doubled as often as there is room for and then ever less, from what is left of the
    dividend, where it is not less. Then it is not less than half of that either, and the difference is exact.

    float64 holds the doubled divisors of narrower types; its own become infinite, which is never taken.
    """
    dtype = step.known_dtype()
    ranks = [step.known_rank(index) for index in range(2)]
    if dtype not in _DOUBLINGS or not step.known_value("fmod", 0):
        raise Inexact(f"there is no remainder of {dtype}")
    one, other = (_in_float64(step, name, dtype) for name in step.inputs)
    size, divisor = (step.emit("Abs", [name], "size") for name in (one, other))
    # All it does is to give the dividend the shape of the result.
    left = step.emit("Where", [step.emit("Less", [one, other], "is_less"), size, size], "dividend")
    doublings = range(_DOUBLINGS[dtype], -1, -1)
    trips, going = step.constant(len(doublings), "trips"), step.constant(True, "going", np.bool_)
    powers = [
        step.constant([2.0 ** min(max(count - below, 0), _MOST) for count in doublings], "powers", np.float64)
        for below in range(0, _DOUBLINGS[dtype], _MOST)
    ]
    rest = step.emit("Loop", [trips, going, left], "rest", body=_body(step, divisor, powers, max(ranks)))
    # The sign is a factor: onnxruntime's Where gives 0 for -0.
    inverse = step.emit("Div", [step.constant(1.0, "one", np.float64), one], "inverse")
    zero, infinite, nan = (step.constant(value, "limit", np.float64) for value in (0.0, np.inf, np.nan))
    is_negative = step.emit("Less", [inverse, zero], "is_negative")
    signs = [step.constant(value, "sign", np.float64) for value in (-1.0, 1.0)]
    sign = step.emit("Where", [is_negative, *signs], "sign")
    sign = step.emit("Where", [step.emit("Less", [size, infinite], "is_finite"), sign, nan], "sign_of_finite")
    sign = step.emit("Where", [step.emit("Greater", [divisor, zero], "divides"), sign, nan], "sign_if_divided")
    result = step.emit("Mul", [rest, sign], "result")
    step.replace("Cast", [result], to=DTYPE_NUMBERS[dtype])


def _in_float64(step: Step, name: str, dtype: str) -> str:
    return name if dtype == "float64" else step.emit("Cast", [name], "wide", to=TensorProto.DOUBLE)


def _body(step: Step, divisor: str, powers: list[str], rank: int) -> GraphProto:
    """One step of the division: what is left, less the doubled divisor where that is not more."""
    count, going, left, kept, found = (step.new_name(hint) for hint in ("count", "going", "left", "kept", "found"))
    nodes: list[NodeProto] = []

    def emit(op_type: str, inputs: list[str], output: str = "") -> str:
        output = output or step.new_name(op_type.lower())
        nodes.append(make_node(op_type, inputs, [output], step.new_name(op_type.lower())))
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
