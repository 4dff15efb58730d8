"""NonMaxSuppression below opset 10, where it does not exist."""

from __future__ import annotations

from splitgraph.conversion.operators.registry import downward, unchanged
from splitgraph.conversion.writing.adapter_context import Step
from splitgraph.conversion.writing.formula import Formula
from splitgraph.conversion.writing.shape_nodes import as_int64, filled, flat, scalar
from splitgraph.deferred import helper, np
from splitgraph.node_making import make_attribute, make_node
from splitgraph.onnx_proto import GraphProto, NodeProto, TensorProto, ValueInfoProto

unchanged("NonMaxSuppression", 11)


@downward("NonMaxSuppression", 10)
def suppression_by_loop(step: Step) -> None:
    """A Loop over the boxes of each class in the order of their scores: a box that is left is selected, as long as
    there is room, and those that overlap it are left out. The areas are computed and compared as onnxruntime does.
    """
    step.dialect = 10
    scores, formula = step.inputs[1], Formula(step)
    batches, classes, count = formula.sizes(scores, 3)
    overlap = step.emit("Flatten", [_overlaps(step)], "overlaps", axis=2)
    _, order = step.emit_many("TopK", [scores, count.reshape(1).name], ["ordered", "order"], axis=2)
    if step.uses_input(4):
        left = step.emit("Greater", [scores, scalar(step, step.inputs[4], "score_threshold")], "is_left")
    else:
        left = filled(step, step.emit("Shape", [scores], "shape"), 1, "is_left", "bool")
    selected = filled(step, formula.vector([batches, classes, 1]).name, 0, "selected")
    most = step.constant(0, "most")
    if step.uses_input(2):
        most = scalar(step, as_int64(step, step.inputs[2], "as_integer"), "most")
    first = (formula.counting(batches) * count).reshape(-1, 1)
    body = _body(step, [order, first.name, overlap, formula.counting(count).name, most])
    going = step.constant(True, "going", np.bool_)
    _, _, chosen = step.emit_many("Loop", [count.name, going, left, selected], ["left", "count", "chosen"], body=body)
    # Of each chosen box the batch, the class and the place in the order.
    by_class = step.emit("Transpose", [chosen], "by_class", perm=[1, 2, 0])
    places = step.emit("NonZero", [by_class], "places")
    rows = [
        formula.held(step.emit("Gather", [places, step.constant([row], "row")], "row", axis=0), "int64")
        for row in range(3)
    ]
    place = (rows[0] * classes + rows[1]) * count + rows[2]
    box = step.emit("Gather", [flat(step, order, "flat_order"), place.name], "box", axis=0)
    triples = step.emit("Concat", [rows[0].name, rows[1].name, box], "triples", axis=0)
    step.replace("Transpose", [triples], perm=[1, 0])


def _overlaps(step: Step) -> str:
    """Whether the intersection over the union of each two boxes of a batch is above the threshold."""
    sides = [
        step.emit("Gather", [step.inputs[0], step.constant([place], "place")], "side", axis=2) for place in range(4)
    ]
    bounds = []
    for axis in range(2):
        one, other = sides[axis], sides[axis + 2]
        if step.known_value("center_point_box", 0):
            half = step.emit("Div", [other, step.constant(2.0, "two", np.float32)], "half")
            bounds.append([step.emit(operator, [one, half], "bound") for operator in ("Sub", "Add")])
        else:
            bounds.append([step.emit(operator, [one, other], "bound") for operator in ("Min", "Max")])
    area = step.emit("Mul", [step.emit("Sub", [high, low], "length") for low, high in bounds], "area")
    lengths = []
    for low, high in bounds:
        ends = [[name, step.emit("Transpose", [name], "across", perm=[0, 2, 1])] for name in (low, high)]
        start, end = (step.emit(op, pair, "inner") for op, pair in zip(("Max", "Min"), ends, strict=True))
        lengths.append(step.emit("Sub", [end, start], "inner_length"))
    zero = step.constant(0.0, "none", np.float32)
    inner = step.emit("Mul", lengths, "intersection")
    areas = [area, step.emit("Transpose", [area], "other_area", perm=[0, 2, 1])]
    union = step.emit("Sub", [step.emit("Add", areas, "both_areas"), inner], "union")
    threshold = scalar(step, step.inputs[3], "iou_threshold") if step.uses_input(3) else zero
    result = step.emit("Greater", [step.emit("Div", [inner, union], "share"), threshold], "is_above")
    for size in (*lengths, inner, *areas, union):
        result = step.emit("And", [result, step.emit("Greater", [size, zero], "is_some")], "overlaps")
    return result


def _body(step: Step, outer: list[str]) -> GraphProto:
    """One step for each class: the box that is next in order, what is left, and how many were chosen; whether it was.

    outer: the order of the boxes, the first box of each batch, the rows of overlaps, the numbers of the boxes, and how
    many are to be selected at most.
    """
    order, first, overlaps, numbers, most = outer
    number, going, left, count = (step.new_name(hint) for hint in ("number", "going", "left", "count"))
    nodes: list[NodeProto] = []

    def emit(op_type: str, *inputs: str, **attributes: object) -> str:
        output = step.new_name(op_type.lower())
        node = make_node(op_type, inputs, [output], name=step.new_name(f"{op_type.lower()}_node"))
        node.attribute.extend(make_attribute(name, value) for name, value in attributes.items())
        nodes.append(node)
        return output

    box = emit("Gather", order, number, axis=2)
    is_box = emit("Equal", emit("Unsqueeze", box, axes=[2]), numbers)
    is_left = emit("Cast", emit("And", is_box, left), to=TensorProto.FLOAT)
    open_ = emit("Less", count, most)
    chosen = emit("And", emit("Cast", emit("ReduceMax", is_left, axes=[2]), to=TensorProto.BOOL), open_)
    row = emit("Gather", overlaps, emit("Add", first, box), axis=0)
    still = emit("And", left, emit("Not", emit("And", chosen, row)))
    more = emit("Add", count, emit("Cast", chosen, to=TensorProto.INT64))
    outputs = [
        _declared(emit("Identity", going), TensorProto.BOOL, 0),
        _declared(still, TensorProto.BOOL, 3),
        _declared(more, TensorProto.INT64, 3),
        _declared(emit("Squeeze", chosen, axes=[2]), TensorProto.BOOL, 2),
    ]
    inputs = [
        _declared(number, TensorProto.INT64, 0),
        _declared(going, TensorProto.BOOL, 0),
        _declared(left, TensorProto.BOOL, 3),
        _declared(count, TensorProto.INT64, 3),
    ]
    return helper.make_graph(nodes, "suppression", inputs, outputs)


def _declared(name: str, kind: int, rank: int) -> ValueInfoProto:
    return helper.make_tensor_value_info(name, kind, [None] * rank)
