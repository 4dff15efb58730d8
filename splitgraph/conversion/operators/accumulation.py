"""Cumulative sums and products, and rounding to even, below the opsets of CumSum, CumProd and Round."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import downward, unchanged
from splitgraph.conversion.writing.adapter_context import Step
from splitgraph.conversion.writing.shape_nodes import as_int64, cut_to, has_no_zero, without_empty
from splitgraph.deferred import helper, np
from splitgraph.node_making import make_node
from splitgraph.onnx_proto import GraphProto
from splitgraph.value_type import DTYPE_NUMBERS

# The operator of one step, and the bits of its neutral element: -0.0 + x is x also for x = -0.0.
_STEPS = {"CumSum": ("Add", -0.0), "CumProd": ("Mul", 1.0)}


unchanged("CumSum", 14)


@downward("CumSum", 11)
@downward("CumProd", 26)
def accumulate_by_scan(step: Step) -> None:
    """A Scan along the axis, which adds or multiplies in the same order. Where the axis is known only at run time, the
    dimensions before it and those behind it are made one each.
    """
    dtype, rank = step.known_dtype(), step.known_rank()
    operator, neutral = _STEPS[step.form.op_type]
    exclusive, reverse = step.known_value("exclusive", 0), step.known_value("reverse", 0)
    if exclusive or dtype.startswith(("int", "uint")):
        neutral = abs(neutral)
    known, given = step.elements(1), step.inputs[0]
    if 0 in (step.input_type(0).shape or ()):
        step.replace("Identity", [given])
        return
    shape = given_shape = step.emit("Shape", [given], "shape")
    data, axis, is_dense = given, 1, has_no_zero(step, given)
    if not is_dense:
        # onnxruntime's Scan fails over a dimension of 0, or divides by it, and the reference evaluator's loses others.
        data, shape = without_empty(step, data, shape, dtype)
    if known is None:
        before, behind = _sizes_around(step, shape, rank)
        folded = step.emit("Concat", [before, step.constant([-1], "rest"), behind], "folded_shape", axis=0)
        data = step.emit("Reshape", [data, folded], "folded")
        state_shape = step.emit("Concat", [before, behind], "state_shape", axis=0)
    else:
        axis = int(known.reshape(-1)[0]) % rank
        others = [index for index in range(rank) if index != axis]
        state_shape = step.emit("Gather", [shape, step.constant(others, "others")], "state_shape", axis=0)
    held = helper.make_tensor("", DTYPE_NUMBERS[dtype], [1], [neutral])
    state = step.emit("ConstantOfShape", [state_shape], "state", value=held)
    directions = [1] if reverse else None
    attributes = {
        "body": _body(step, operator, dtype, rank - 1 if known is not None else 2, bool(exclusive)),
        "num_scan_inputs": 1,
        "scan_input_axes": [axis],
        "scan_output_axes": [axis],
        "scan_input_directions": directions,
        "scan_output_directions": directions,
    }
    _, found = step.emit_many("Scan", [state, data], ["total", "totals"], **attributes)
    if known is None:
        found = step.emit("Reshape", [found, shape], "unfolded")
    step.replace("Identity", [found if is_dense else cut_to(step, found, given_shape, given)])


unchanged("Round", 22)


@downward("Round", 11)
def round_half_to_even(step: Step) -> None:
    """Without their sign, numbers and what is left of them above their floor are exact: up from more than a half, and
    from a half above an odd number. The sign, also that of 0, comes back as a factor, as onnxruntime's Where makes 0 of
    -0.
    """
    dtype = step.known_dtype()
    wide = "float64" if dtype == "float64" else "float32"
    data = step.inputs[0]
    if dtype != wide:
        data = step.emit("Cast", [data], "wide", to=DTYPE_NUMBERS[wide])
    half, zero = step.constant(0.5, "half", wide), step.constant(0.0, "zero", wide)
    size = step.emit("Abs", [data], "size")
    floor = step.emit("Floor", [size], "floor")
    rest = step.emit("Sub", [size, floor], "rest")
    halved = step.emit("Mul", [floor, half], "halved")
    odd = step.emit("Greater", [halved, step.emit("Floor", [halved], "half_floor")], "is_odd")
    tie = step.emit("And", [step.emit("Not", [step.emit("Less", [rest, half], "less")], "not_less"), odd], "ties_up")
    up = step.emit("Or", [step.emit("Greater", [rest, half], "more_than_half"), tie], "is_up")
    rounded = step.emit("Add", [floor, step.emit("Cast", [up], "one_up", to=DTYPE_NUMBERS[wide])], "rounded")
    one, minus_one = step.constant(1.0, "one", wide), step.constant(-1.0, "minus_one", wide)
    inverse = step.emit("Div", [one, data], "inverse")
    sides = [step.emit("Less", [each, zero], "is_less") for each in (data, inverse)]
    sign = step.emit("Where", [step.emit("Or", sides, "is_negative"), minus_one, one], "sign")
    step.replace("Cast", [step.emit("Mul", [rounded, sign], "result")], to=DTYPE_NUMBERS[dtype])


def _sizes_around(step: Step, shape: str, rank: int) -> tuple[str, str]:
    """The products of the dimensions before an axis that is the second input, and of those behind it: int64[1] each."""
    axis = step.emit("Reshape", [as_int64(step, step.inputs[1], "axis"), step.constant([1], "one_axis")], "given_axis")
    zero, one = step.constant([0], "zero"), step.constant([1], "one")
    from_end = step.emit("Add", [axis, step.constant([rank], "rank")], "from_end")
    axis = step.emit("Where", [step.emit("Less", [axis, zero], "is_negative"), from_end, axis], "counted_axis")
    places = step.constant(np.arange(rank), "places")
    sizes = []
    for operator in ("Less", "Greater"):
        side = step.emit(operator, [places, axis], "is_on_side")
        on_side = step.emit("Where", [side, shape, one], "on_side")
        sizes.append(step.emit("ReduceProd", [on_side], "size", keepdims=1))
    return sizes[0], sizes[1]


def _body(step: Step, operator: str, dtype: str, rank: int, exclusive: bool) -> GraphProto:
    """One step of a Scan: the total so far and a slice to the new total, and what is given of it.

    rank: of a slice, declared as onnxruntime wants to know it.
    """
    total, item, new = (step.new_name(hint) for hint in ("total_in", "item", "total_out"))
    given = step.new_name("given")
    nodes = [
        make_node(operator, [total, item], [new], name=step.new_name("accumulate")),
        make_node("Identity", [total if exclusive else new], [given], name=step.new_name("give")),
    ]
    number, dims = DTYPE_NUMBERS[dtype], [None] * rank
    inputs = [helper.make_tensor_value_info(name, number, dims) for name in (total, item)]
    outputs = [helper.make_tensor_value_info(name, number, dims) for name in (new, given)]
    return helper.make_graph(nodes, "accumulation", inputs, outputs)
