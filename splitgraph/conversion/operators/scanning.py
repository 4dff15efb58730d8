"""Scan: the batch axis and sequence_lens disappeared (9), negative axes were allowed (11), and bodies may give bfloat16
(16).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from splitgraph.attributes import UNRESOLVED, make_attribute, make_node
from splitgraph.conversion.operators.control_flow import cast_around_body
from splitgraph.conversion.operators.predicates import MINUS_AXIS
from splitgraph.conversion.operators.registry import always, changed, downward, exact_downward, unchanged, upward
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.deferred import helper, np, numpy_helper
from splitgraph.graph.values import type_proto
from splitgraph.onnx_proto import GraphProto, NodeProto, TensorProto, ValueInfoProto
from splitgraph.value_type import UNKNOWN, ValueType, tensor


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
        has_lengths: bool,
    ) -> None:
        self.number, self.states, self.directions, self.types = number, states, directions, types
        self.inputs, self.outputs, self.kept_states, self.has_lengths = inputs, outputs, kept_states, has_lengths
        self.body, self.scan, self.t, self.zero, self.one, self.next, self.running, self.count = names


unchanged("Scan", 16, 19, 21, 23, 24, 25)
changed("Scan", 9, "the batch axis and sequence_lens were removed")


@upward("Scan", 9)
def scan_batch_by_outer_scan(node: NodeAtBoundary) -> None:
    """Wraps the scan of one sequence in a Scan over the batch: at 8 every input has a batch axis first, and each
    sequence is scanned by itself.

    Where sequences have lengths, the states stay as they are behind the end. The document leaves open what is scanned
    out there.
    """
    number = node.known_value("num_scan_inputs")
    directions = node.known_value("directions")
    states = len(node.inputs) - 1 - number
    has_lengths = node.uses_input(0)
    if has_lengths and directions and any(directions):
        raise Inexact("where a reversed sequence with a length of its own begins is not said")
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
        has_lengths,
    )
    node.wrap = partial(_wrap, inner)


def _without_batch(node: NodeAtBoundary, name: str) -> ValueType:
    """Gives the type of a value without its first dimension."""
    known = node.values.type_of(name)
    return UNKNOWN if known.dtype is None else tensor(known.dtype, None if known.shape is None else known.shape[1:])


def _wrap(inner: _Inner, node: NodeProto) -> None:
    """Puts the body of the node, already at the target opset, into a Scan in the body of another Scan."""
    attribute = next(held for held in node.attribute if held.name == "body")
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
    """Adds a count of the steps to a body, and keeps the old states behind the end of the sequence."""
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
    inputs = [count, *body.input]
    results = [helper.make_tensor_value_info(inner.next, TensorProto.INT64, [])]
    for kept, before in zip(inner.kept_states, states, strict=True):
        results.append(ValueInfoProto(name=kept, type=before.type))
    body.node.extend(nodes)
    del body.input[:], body.output[:]
    body.input.extend(inputs)
    body.output.extend([*results, *scanned])


def _number(name: str, number: int) -> NodeProto:
    """Makes a Constant."""
    value = numpy_helper.from_array(np.array(number, dtype=np.int64))
    return make_node("Constant", [], [name], value=value)


@downward("Scan", 9)
def add_batch_of_one(node: NodeAtBoundary) -> None:
    """Adds a batch of one sequence, with time as the second axis: at 8, every input has a batch axis first."""
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
    """Moves an axis of a value to the front."""
    order = [axis % rank, *(index for index in range(rank) if index != axis % rank)]
    return node.write("Transpose", [name], "time_first", perm=order)


def _remove_batch(node: NodeAtBoundary, index: int, axis: int) -> None:
    """Removes the batch of one from an output and moves time to its axis."""
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
    """Gives the rank of an output; raises Inexact when it is unknown."""
    shape = node.output_type(index).shape
    if shape is None:
        raise Inexact(f"the rank of {node.outputs[index]!r} is unknown", "declare it")
    return len(shape)


changed("Scan", 11, MINUS_AXIS, up=always)


@exact_downward("Scan", 11)
def has_no_negative_axes(node: NodeAtBoundary) -> bool:
    """True when no axis is negative. The rank of what the body scans out is not known here."""
    axes = [node.value(name, ()) for name in ("scan_input_axes", "scan_output_axes")]
    return all(value is not UNRESOLVED and all(axis >= 0 for axis in value) for value in axes)


@downward("Scan", 11)
def count_scan_axes_from_front(node: NodeAtBoundary) -> None:
    """Counts the axes from the front, as below 11. The ranks must be known."""
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
