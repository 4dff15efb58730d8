"""Scan: the batch axis and sequence_lens disappeared (9), negative axes were allowed (11), and bodies may give bfloat16
(16). CumSum, CumProd and Round are written as a Scan, or with Floor, below their first opset.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from splitgraph.conversion.notation.formula import Formula, Term, has_no_zero, wide_float
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.operators.control_flow import cast_around_body
from splitgraph.conversion.operators.registry import (
    MINUS_AXIS,
    always,
    changed,
    downward,
    exact_downward,
    unchanged,
    upward,
)
from splitgraph.model.attributes import UNRESOLVED, make_attribute, make_node
from splitgraph.model.deferred import helper, np, numpy_helper
from splitgraph.model.onnx_proto import GraphProto, NodeProto, TensorProto, ValueInfoProto
from splitgraph.model.value_type import DTYPE_NUMBERS, UNKNOWN, Shape, ValueType, tensor
from splitgraph.model.values import type_proto

# The operator of one step, and the bits of its neutral element: -0.0 + x is x also for x = -0.0.
_STEPS = {"CumSum": ("Add", -0.0), "CumProd": ("Mul", 1.0)}


class _Masked(NamedTuple):
    """A scanned output that is 0 behind the end: its new name, that of the 0, and the number of its element type."""

    name: str
    nothing: str
    dtype: int


class _Inner:
    """The Scan of one sequence, as it stands in the body of the outer one."""

    def __init__(
        self,
        number: int,
        states: int,
        directions: Sequence[int] | None,
        types: Sequence[ValueType],
        inputs: Sequence[str],
        outputs: Sequence[str],
        names: Sequence[str],
        kept_states: Sequence[str],
        masked: Sequence[_Masked | None],
        has_lengths: bool,
    ) -> None:
        self.number, self.states, self.directions, self.types = number, states, directions, types
        self.inputs, self.outputs, self.kept_states, self.has_lengths = inputs, outputs, kept_states, has_lengths
        self.masked = masked
        self.body, self.scan, self.t, self.zero, self.one, self.next, self.running, self.count = names


# Scan ---------------------------------------------------------------------------------------------------------------

unchanged("Scan", 16, 19, 21, 23, 24, 25)
changed("Scan", 9, "the batch axis and sequence_lens were removed")


@upward("Scan", 9)
def scan_batch_by_outer_scan(node: NodeAtBoundary) -> None:
    """Wrap the scan of one sequence in a Scan over the batch: at 8 every input has a batch axis first, and each
    sequence is scanned by itself.

    Where sequences have lengths, the states stay as they are behind the end. The document leaves open what is scanned
    out there; onnxruntime, which alone runs Scan-8, gives 0.
    """
    number = node.known_value("num_scan_inputs")
    directions = node.known_value("directions")
    states = len(node.inputs) - 1 - number
    has_lengths = node.uses_input(0)
    if has_lengths and directions and any(directions):
        raise Inexact("it is not specified where a reversed sequence with its own length begins")
    if node.original is None:
        raise Inexact("its body is not the model's")
    lengths = [node.inputs[0]] if has_lengths else []
    node.inputs[:] = lengths + node.inputs[1:]
    node.drop("directions", why="the inner Scan has them")
    node.set("num_scan_inputs", len(node.inputs), "the batch is scanned from opset 9 on")
    inner = _Inner(
        number,
        states,
        list(directions) if directions else None,
        [_without_batch(node, name) for name in node.inputs],
        [node.new_name(f"in{index}") for index in range(len(node.inputs))],
        [node.new_name(f"out{index}") for index in range(len(node.outputs))],
        [node.new_name(hint) for hint in ("body", "scan", "t", "zero", "one", "next", "running", "count")],
        [node.new_name("state") for _ in range(states)],
        [_masked(node, index) for index in range(states, len(node.outputs))] if has_lengths else [],
        has_lengths,
    )
    node.wrap = partial(_wrap, inner)


def _masked(node: NodeAtBoundary, index: int) -> _Masked | None:
    """Return how a scanned output becomes 0 behind the end; None for an output that the node omits."""
    if not node.outputs[index]:
        return None
    dtype = node.output_type(index).dtype
    if dtype not in DTYPE_NUMBERS:
        raise Inexact("the element type of what it scans out is not known, and 0 behind the end", "declare the outputs")
    return _Masked(node.new_name("scanned"), node.new_name("nothing"), DTYPE_NUMBERS[dtype])


def _without_batch(node: NodeAtBoundary, name: str) -> ValueType:
    """Return the type of a value without its first dimension."""
    known = node.values.type_of(name)
    return UNKNOWN if known.dtype is None else tensor(known.dtype, None if known.shape is None else known.shape[1:])


def _wrap(inner: _Inner, node: NodeProto) -> None:
    """Put the body of the node, already at the target opset, into a Scan in the body of another Scan."""
    attribute = next(candidate for candidate in node.attribute if candidate.name == "body")
    body = GraphProto()
    body.CopyFrom(attribute.g)
    nodes = []
    inputs, outputs = list(inner.inputs), list(inner.outputs)
    if inner.has_lengths:
        _keep_states_behind_the_end(inner, body, inputs[0])
        nodes.append(_number(inner.zero, 0))
        inputs[0] = inner.zero
        # The inner scan carries the count of steps; nobody reads its last value.
        outputs.insert(0, inner.count)
    scan = make_node("Scan", inputs, outputs, inner.scan, body=body, num_scan_inputs=inner.number)
    if inner.directions:
        scan.attribute.append(make_attribute("scan_input_directions", list(inner.directions)))
    nodes.append(scan)
    made = [
        ValueInfoProto(name=name, type=type_proto(known)) for name, known in zip(inner.inputs, inner.types, strict=True)
    ]
    results = [ValueInfoProto(name=name) for name in inner.outputs]
    attribute.g.CopyFrom(helper.make_graph(nodes, inner.body, made, results))


def _keep_states_behind_the_end(inner: _Inner, body: GraphProto, length: str) -> None:
    """Add a count of the steps to a body. Behind the end of the sequence, keep the old states and scan out 0."""
    count = helper.make_tensor_value_info(inner.t, TensorProto.INT64, [])
    nodes = [
        _number(inner.one, 1),
        make_node("Add", [inner.t, inner.one], [inner.next]),
        make_node("Less", [inner.t, length], [inner.running]),
    ]
    for index, kept in enumerate(inner.kept_states):
        choice = [inner.running, body.output[index].name, body.input[index].name]
        nodes.append(make_node("Where", choice, [kept]))
    states = list(body.output)[: inner.states]
    scanned = list(body.output)[inner.states :]
    for value, masked in zip(scanned, inner.masked, strict=True):
        if masked is not None:
            elements: list[Any] = [b"" if masked.dtype == TensorProto.STRING else 0]
            nothing = helper.make_tensor("", masked.dtype, [], elements)
            nodes.append(make_node("Constant", [], [masked.nothing], value=nothing))
            nodes.append(make_node("Where", [inner.running, value.name, masked.nothing], [masked.name]))
            value.name = masked.name
    inputs = [count, *body.input]
    results = [helper.make_tensor_value_info(inner.next, TensorProto.INT64, [])]
    for kept, before in zip(inner.kept_states, states, strict=True):
        results.append(ValueInfoProto(name=kept, type=before.type))
    body.node.extend(nodes)
    del body.input[:], body.output[:]
    body.input.extend(inputs)
    body.output.extend([*results, *scanned])


def _number(name: str, number: int) -> NodeProto:
    """Make a Constant."""
    value = numpy_helper.from_array(np.array(number, dtype=np.int64))
    return make_node("Constant", [], [name], value=value)


@downward("Scan", 9)
def add_batch_of_one(node: NodeAtBoundary) -> None:
    """Add a batch of one sequence, with time as the second axis: at 8, every input has a batch axis first."""
    number = node.known_value("num_scan_inputs")
    states = len(node.inputs) - number
    scanned_out = len(node.outputs) - states
    if any(node.known_value("scan_output_directions", ())):
        raise Inexact("at opset 8 nothing is scanned out in reverse")
    input_axes = node.known_value("scan_input_axes", (0,) * number)
    output_axes = node.known_value("scan_output_axes", (0,) * scanned_out)
    for index, name in enumerate(node.inputs):
        axis = input_axes[index - states] if index >= states else 0
        moved = name if axis == 0 else _bring_time_first(node, name, axis, node.known_rank(index))
        node.inputs[index] = node.write("Unsqueeze", [moved], "batch", axes=[0])
    for index, name in enumerate(node.outputs):
        if name:
            axis = output_axes[index - states] if index >= states else 0
            _remove_batch(node, index, axis)
    node.inputs.insert(0, "")
    directions = node.known_value("scan_input_directions")
    node.drop(
        "scan_input_axes",
        "scan_output_axes",
        "scan_output_directions",
        "scan_input_directions",
        why="time is the second axis at opset 8",
    )
    if directions:
        node.set("directions", list(directions), "scan_input_directions is called so at opset 8")


def _bring_time_first(node: NodeAtBoundary, name: str, axis: int, rank: int) -> str:
    """Move an axis of a value to the front."""
    order = [axis % rank, *(index for index in range(rank) if index != axis % rank)]
    return node.write("Transpose", [name], "time_first", perm=order)


def _remove_batch(node: NodeAtBoundary, index: int, axis: int) -> None:
    """Remove the batch of one from an output and move time to its axis."""
    rank = _rank_of_output(node, index) if axis else 0
    given = node.redirect(index, "batch")
    if not axis:
        node.write_after("Squeeze", [node.outputs[index]], given, axes=[0])
        return
    plain = node.new_name("time_first")
    node.write_after("Squeeze", [node.outputs[index]], plain, axes=[0])
    place = axis % rank
    node.write_after("Transpose", [plain], given, perm=[*range(1, place + 1), 0, *range(place + 1, rank)])


def _rank_of_output(node: NodeAtBoundary, index: int) -> int:
    """Return the rank of an output; raise Inexact when it is unknown."""
    shape = node.output_type(index).shape
    if shape is None:
        raise Inexact(f"the rank of {node.outputs[index]!r} is unknown", "declare it")
    return len(shape)


changed("Scan", 11, MINUS_AXIS, up=always)


@exact_downward("Scan", 11)
def has_no_negative_axes(node: NodeAtBoundary) -> bool:
    """Return True when no axis is negative. The rank of what the body scans out is not known here."""
    axes = [node.value(name, ()) for name in ("scan_input_axes", "scan_output_axes")]
    return all(value is not UNRESOLVED and all(axis >= 0 for axis in value) for value in axes)


@downward("Scan", 11)
def count_scan_axes_from_front(node: NodeAtBoundary) -> None:
    """Count the axes from the front, as below 11. The ranks must be known."""
    number = node.known_value("num_scan_inputs")
    states = len(node.inputs) - number
    inputs, outputs = node.known_value("scan_input_axes", ()), node.known_value("scan_output_axes", ())
    why = "below opset 11 axes are counted from the front"
    if any(axis < 0 for axis in inputs):
        axes = [axis if axis >= 0 else axis + node.known_rank(states + i) for i, axis in enumerate(inputs)]
        node.set("scan_input_axes", axes, why)
    if any(axis < 0 for axis in outputs):
        axes = [axis if axis >= 0 else axis + _rank_of_output(node, states + i) for i, axis in enumerate(outputs)]
        node.set("scan_output_axes", axes, why)


downward("Scan", 16)(cast_around_body)

# CumSum, CumProd ----------------------------------------------------------------------------------------------------

unchanged("CumSum", 14)


@downward("CumSum", 11)
@downward("CumProd", 26)
def accumulate_by_scan(node: NodeAtBoundary) -> None:
    """Write a cumulative sum or product as a Scan along the axis, which adds or multiplies in the same order.

    Where the axis is known only at run time, the data is reshaped to three dimensions first: those before the axis, the
    axis, and those behind it.
    """
    node.known_dtype()
    rank, f = node.known_rank(), Formula(node)
    axis, data, known_shape = node.elements(1), f.input(0), node.input_type(0).shape or ()
    if 0 in known_shape:
        f.give(data)
        return
    shape = given_shape = f.shape(data.name)
    is_dense = has_no_zero(node, data.name)
    if not is_dense:
        # Scan of onnxruntime fails at a dimension of 0, or divides by it; Scan of the reference evaluator loses others.
        data, shape = _without_empty(data, shape)
    if axis is None:
        before, behind = _sizes_around(f, f.input(1).cast("int64").reshape(1), shape, rank)
        data = data.shaped(f.joined([before, f.number([-1]), behind]))
        totals = _running_totals(node, f, data, 1, f.joined([before, behind]), 2).shaped(shape)
    else:
        known_axis = int(axis.reshape(-1)[0]) % rank
        others = [place for place in range(rank) if place != known_axis]
        totals = _running_totals(node, f, data, known_axis, shape.take(others), len(others))
    f.give(totals if is_dense else _cut_to(totals, given_shape, known_shape))


def _running_totals(node: NodeAtBoundary, f: Formula, data: Term, axis: int, shape: Term, rank: int) -> Term:
    """Return the sums or products of the data up to each place along an axis, written as a Scan. shape, rank: of a
    slice at one place.
    """
    dtype, (operator, neutral) = node.known_dtype(), _STEPS[node.op_type]
    is_exclusive, is_reverse = (bool(node.known_value_or_default(name)) for name in ("exclusive", "reverse"))
    if is_exclusive or dtype.startswith(("int", "uint")):
        # Exclusive sums begin with the neutral element, which has to be 0 there; integers have no -0.
        neutral = abs(neutral)
    start = helper.make_tensor("", DTYPE_NUMBERS[dtype], [1], [neutral])
    state, directions = f.apply("ConstantOfShape", shape, gives=dtype, value=start), [1] if is_reverse else None
    attributes = {
        "body": _scan_body(node, operator, dtype, rank, is_exclusive),
        "num_scan_inputs": 1,
        "scan_input_axes": [axis],
        "scan_output_axes": [axis],
        "scan_input_directions": directions,
        "scan_output_directions": directions,
    }
    return f.write("Scan", [state, data], dtype, dtype, **attributes)[1]


def _sizes_around(f: Formula, axis: Term, shape: Term, rank: int) -> list[Term]:
    """Return the product of the dimensions before the axis, and the product of those behind it: int64[1] each."""
    axis, places = axis.from_front(rank), f.counting(rank)
    sides = [f.where(side, shape, f.number([1])) for side in (places < axis, places > axis)]
    return [f.apply("ReduceProd", side, keepdims=1) for side in sides]


def _without_empty(data: Term, shape: Term) -> tuple[Term, Term]:
    """Return the data and its shape (int64[rank]). Where a dimension is 0, gives zeros of a shape with 1 for each such
    dimension; `_cut_to` undoes this.
    """
    f, is_zero = data.formula, shape.equals(shape.formula.number([0]))
    is_empty = f.apply("ReduceSum", is_zero.cast("int64"), keepdims=1).cast("bool")
    solid = f.where(is_zero, f.number([1]), shape)
    # As many zeros as the new shape holds make up for empty data.
    count = f.where(is_empty, f.apply("ReduceProd", solid, keepdims=1), f.number([0]))
    elements = f.joined([data.reshape(-1), f.filled(count, 0, data.dtype)])
    return elements.shaped(solid), solid


def _cut_to(data: Term, shape: Term, sizes: Shape) -> Term:
    """Cut data to a shape. The data may be longer along dimensions that may be 0, according to the known sizes.

    Slice is not used: its ends can only be computed from opset 10 on.
    """
    for axis in [axis for axis, size in enumerate(sizes) if not isinstance(size, int) or size <= 0]:
        data = data.take(data.formula.counting(shape.take([axis]), is_row=True), axis)
    return data


def _scan_body(node: NodeAtBoundary, operator: str, dtype: str, rank: int, exclusive: bool) -> GraphProto:
    """Make the body of the Scan: one step takes the total so far and a slice, and gives the new total and the slice of
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
    """Write Round with Floor. Absolute values, and their distances from the floor, are exact: a number goes up when the
    distance is more than a half, or a half above an odd floor.

    The sign comes back as a factor, also the sign of 0: Where of onnxruntime turns -0 into 0.
    """
    dtype, f = node.known_dtype(), Formula(node)
    wide = wide_float(dtype)
    data = f.input(0).cast(wide)
    size = abs(data)
    floor = size.floor()
    rest, halved = size - floor, floor * 0.5
    is_up = (rest > 0.5) | ~(rest < 0.5) & (halved > halved.floor())
    sign = f.where((data < 0) | (1.0 / data < 0), f.number(-1.0, wide), 1.0)
    f.give(((floor + is_up.cast(wide)) * sign).cast(dtype))
