"""NonMaxSuppression: below its first opset, written as a Loop."""

from __future__ import annotations

from splitgraph.attributes import make_attribute, make_node
from splitgraph.conversion.operators.registry import downward, unchanged
from splitgraph.conversion.writing.formula import Formula
from splitgraph.conversion.writing.node_at_boundary import NodeAtBoundary
from splitgraph.conversion.writing.shape_nodes import as_int64, filled, flat, scalar
from splitgraph.deferred import helper, np
from splitgraph.onnx_proto import GraphProto, NodeProto, TensorProto, ValueInfoProto

unchanged("NonMaxSuppression", 11)


@downward("NonMaxSuppression", 10)
def suppress_by_loop(node: NodeAtBoundary) -> None:
    """Writes a Loop over the boxes of each class in the order of their scores: selects a box that is left, as long as
    there is room, and leaves out those that overlap it. Computes and compares areas as onnxruntime does.
    """
    node.dialect = 10
    scores, formula = node.inputs[1], Formula(node)
    batches, classes, count = formula.sizes(scores, 3)
    overlap = node.write("Flatten", [_overlaps(node)], "overlaps", axis=2)
    _, order = node.write_many("TopK", [scores, count.reshape(1).name], ["ordered", "order"], axis=2)
    if node.uses_input(4):
        left = node.write("Greater", [scores, scalar(node, node.inputs[4], "score_threshold")], "is_left")
    else:
        left = filled(node, node.write("Shape", [scores], "shape"), 1, "is_left", "bool")
    selected = filled(node, formula.vector([batches, classes, 1]).name, 0, "selected")
    most = node.constant(0, "most")
    if node.uses_input(2):
        most = scalar(node, as_int64(node, node.inputs[2], "as_integer"), "most")
    first = (formula.counting(batches) * count).reshape(-1, 1)
    body = _loop_body(node, [order, first.name, overlap, formula.counting(count).name, most])
    going = node.constant(True, "going", np.bool_)
    _, _, chosen = node.write_many("Loop", [count.name, going, left, selected], ["left", "count", "chosen"], body=body)
    # Each chosen box has a batch, a class and a place in the order.
    by_class = node.write("Transpose", [chosen], "by_class", perm=[1, 2, 0])
    places = node.write("NonZero", [by_class], "places")
    rows = [
        formula.held(node.write("Gather", [places, node.constant([row], "row")], "row", axis=0), "int64")
        for row in range(3)
    ]
    place = (rows[0] * classes + rows[1]) * count + rows[2]
    box = node.write("Gather", [flat(node, order, "flat_order"), place.name], "box", axis=0)
    triples = node.write("Concat", [rows[0].name, rows[1].name, box], "triples", axis=0)
    node.replace("Transpose", [triples], perm=[1, 0])


def _overlaps(node: NodeAtBoundary) -> str:
    """Tells for each two boxes of a batch whether their intersection over union is above the threshold."""
    sides = [
        node.write("Gather", [node.inputs[0], node.constant([place], "place")], "side", axis=2) for place in range(4)
    ]
    bounds = []
    for axis in range(2):
        one, other = sides[axis], sides[axis + 2]
        if node.known_value_or_default("center_point_box"):
            half = node.write("Div", [other, node.constant(2.0, "two", np.float32)], "half")
            bounds.append([node.write(operator, [one, half], "bound") for operator in ("Sub", "Add")])
        else:
            bounds.append([node.write(operator, [one, other], "bound") for operator in ("Min", "Max")])
    area = node.write("Mul", [node.write("Sub", [high, low], "length") for low, high in bounds], "area")
    lengths = []
    for low, high in bounds:
        ends = [[name, node.write("Transpose", [name], "across", perm=[0, 2, 1])] for name in (low, high)]
        start, end = (node.write(op, pair, "inner") for op, pair in zip(("Max", "Min"), ends, strict=True))
        lengths.append(node.write("Sub", [end, start], "inner_length"))
    zero = node.constant(0.0, "none", np.float32)
    inner = node.write("Mul", lengths, "intersection")
    areas = [area, node.write("Transpose", [area], "other_area", perm=[0, 2, 1])]
    union = node.write("Sub", [node.write("Add", areas, "both_areas"), inner], "union")
    threshold = scalar(node, node.inputs[3], "iou_threshold") if node.uses_input(3) else zero
    result = node.write("Greater", [node.write("Div", [inner, union], "share"), threshold], "is_above")
    for size in (*lengths, inner, *areas, union):
        result = node.write("And", [result, node.write("Greater", [size, zero], "is_some")], "overlaps")
    return result


def _loop_body(node: NodeAtBoundary, outer: list[str]) -> GraphProto:
    """Makes the body of the Loop: one step for each class takes the next box in order. It gives the boxes that are
    left, the number of selected boxes, and whether this box was selected.

    outer: the order of the boxes, the first box of each batch, the rows of overlaps, the indices of the boxes, and the
    maximal number to select.
    """
    order, first, overlaps, numbers, most = outer
    number, going, left, count = (node.new_name(hint) for hint in ("number", "going", "left", "count"))
    nodes: list[NodeProto] = []

    def emit(op_type: str, *inputs: str, **attributes: object) -> str:
        output = node.new_name(op_type.lower())
        inner = make_node(op_type, inputs, [output], name=node.new_name(f"{op_type.lower()}_node"))
        inner.attribute.extend(make_attribute(name, value) for name, value in attributes.items())
        nodes.append(inner)
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
    """Declares a value of a rank."""
    return helper.make_tensor_value_info(name, kind, [None] * rank)
