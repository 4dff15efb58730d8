"""CumSum, CumProd and Round: written as a Scan, or with Floor, below their first opset."""

from __future__ import annotations

from splitgraph.attributes import make_node
from splitgraph.conversion.operators.registry import downward, unchanged
from splitgraph.conversion.writing.node_at_boundary import NodeAtBoundary
from splitgraph.conversion.writing.shape_nodes import as_int64, cut_to, has_no_zero, wide_float, widened, without_empty
from splitgraph.deferred import helper, np
from splitgraph.onnx_proto import GraphProto
from splitgraph.value_type import DTYPE_NUMBERS

# The operator of one step, and the bits of its neutral element: -0.0 + x is x also for x = -0.0.
_STEPS = {"CumSum": ("Add", -0.0), "CumProd": ("Mul", 1.0)}

# CumSum, CumProd ----------------------------------------------------------------------------------------------------

unchanged("CumSum", 14)


@downward("CumSum", 11)
@downward("CumProd", 26)
def accumulate_by_scan(node: NodeAtBoundary) -> None:
    """Writes a cumulative sum or product as a Scan along the axis, which adds or multiplies in the same order.

    Where the axis is known only at run time, the data is reshaped to three dimensions first: those before the axis, the
    axis, and those behind it.
    """
    dtype, rank = node.known_dtype(), node.known_rank()
    operator, neutral = _STEPS[node.op_type]
    exclusive, reverse = node.known_value_or_default("exclusive"), node.known_value_or_default("reverse")
    if exclusive or dtype.startswith(("int", "uint")):
        neutral = abs(neutral)
    known, given = node.elements(1), node.inputs[0]
    if 0 in (node.input_type(0).shape or ()):
        node.replace("Identity", [given])
        return
    shape = given_shape = node.write("Shape", [given], "shape")
    data, axis, is_dense = given, 1, has_no_zero(node, given)
    if not is_dense:
        # Scan of onnxruntime fails at a dimension of 0, or divides by it; Scan of the reference evaluator loses others.
        data, shape = without_empty(node, data, shape, dtype)
    if known is None:
        before, behind = _sizes_around(node, shape, rank)
        folded = node.write("Concat", [before, node.constant([-1], "rest"), behind], "folded_shape", axis=0)
        data = node.write("Reshape", [data, folded], "folded")
        state_shape = node.write("Concat", [before, behind], "state_shape", axis=0)
    else:
        axis = int(known.reshape(-1)[0]) % rank
        others = [index for index in range(rank) if index != axis]
        state_shape = node.write("Gather", [shape, node.constant(others, "others")], "state_shape", axis=0)
    held = helper.make_tensor("", DTYPE_NUMBERS[dtype], [1], [neutral])
    state = node.write("ConstantOfShape", [state_shape], "state", value=held)
    directions = [1] if reverse else None
    attributes = {
        "body": _scan_body(node, operator, dtype, rank - 1 if known is not None else 2, bool(exclusive)),
        "num_scan_inputs": 1,
        "scan_input_axes": [axis],
        "scan_output_axes": [axis],
        "scan_input_directions": directions,
        "scan_output_directions": directions,
    }
    _, found = node.write_many("Scan", [state, data], ["total", "totals"], **attributes)
    if known is None:
        found = node.write("Reshape", [found, shape], "unfolded")
    node.replace("Identity", [found if is_dense else cut_to(node, found, given_shape, given)])


def _sizes_around(node: NodeAtBoundary, shape: str, rank: int) -> tuple[str, str]:
    """Gives the product of the dimensions before the axis, which is the second input, and the product of those behind
    it: int64[1] each.
    """
    axis = node.write("Reshape", [as_int64(node, node.inputs[1], "axis"), node.constant([1], "one_axis")], "given_axis")
    zero, one = node.constant([0], "zero"), node.constant([1], "one")
    from_end = node.write("Add", [axis, node.constant([rank], "rank")], "from_end")
    axis = node.write("Where", [node.write("Less", [axis, zero], "is_negative"), from_end, axis], "counted_axis")
    places = node.constant(np.arange(rank), "places")
    sizes = []
    for operator in ("Less", "Greater"):
        side = node.write(operator, [places, axis], "is_on_side")
        on_side = node.write("Where", [side, shape, one], "on_side")
        sizes.append(node.write("ReduceProd", [on_side], "size", keepdims=1))
    return sizes[0], sizes[1]


def _scan_body(node: NodeAtBoundary, operator: str, dtype: str, rank: int, exclusive: bool) -> GraphProto:
    """Makes the body of the Scan: one step takes the total so far and a slice, and gives the new total and the slice of
    the result.

    rank: of a slice; onnxruntime needs the declaration.
    """
    total, item, new = (node.new_name(hint) for hint in ("total_in", "item", "total_out"))
    given = node.new_name("given")
    nodes = [
        make_node(operator, [total, item], [new], name=node.new_name("accumulate")),
        make_node("Identity", [total if exclusive else new], [given], name=node.new_name("give")),
    ]
    number, dims = DTYPE_NUMBERS[dtype], [None] * rank
    inputs = [helper.make_tensor_value_info(name, number, dims) for name in (total, item)]
    outputs = [helper.make_tensor_value_info(name, number, dims) for name in (new, given)]
    return helper.make_graph(nodes, "accumulation", inputs, outputs)


# Round --------------------------------------------------------------------------------------------------------------

unchanged("Round", 22)


@downward("Round", 11)
def round_half_to_even(node: NodeAtBoundary) -> None:
    """Writes Round with Floor. Absolute values, and their distances from the floor, are exact: a number goes up when
    the distance is more than a half, or a half above an odd floor.

    The sign comes back as a factor, also the sign of 0: Where of onnxruntime turns -0 into 0.
    """
    dtype = node.known_dtype()
    wide = wide_float(dtype)
    data = widened(node, node.inputs[0], dtype, wide)
    half, zero = node.constant(0.5, "half", wide), node.constant(0.0, "zero", wide)
    size = node.write("Abs", [data], "size")
    floor = node.write("Floor", [size], "floor")
    rest = node.write("Sub", [size, floor], "rest")
    halved = node.write("Mul", [floor, half], "halved")
    odd = node.write("Greater", [halved, node.write("Floor", [halved], "half_floor")], "is_odd")
    tie = node.write("And", [node.write("Not", [node.write("Less", [rest, half], "less")], "not_less"), odd], "ties_up")
    up = node.write("Or", [node.write("Greater", [rest, half], "more_than_half"), tie], "is_up")
    rounded = node.write("Add", [floor, node.write("Cast", [up], "one_up", to=DTYPE_NUMBERS[wide])], "rounded")
    one, minus_one = node.constant(1.0, "one", wide), node.constant(-1.0, "minus_one", wide)
    inverse = node.write("Div", [one, data], "inverse")
    sides = [node.write("Less", [each, zero], "is_less") for each in (data, inverse)]
    sign = node.write("Where", [node.write("Or", sides, "is_negative"), minus_one, one], "sign")
    node.replace("Cast", [node.write("Mul", [rounded, sign], "result")], to=DTYPE_NUMBERS[dtype])
