"""The grammar of random graphs: what each operator could be applied to; what does not run is not kept."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from random_graphs import OPSET, Graph, Made, maker

# Elementwise -----------------------------------------------------------------------------------------------------


@maker(2)
def unary(g: Graph) -> Made | None:
    op = g.rng.choice(["Relu", "Neg", "Abs", "Sigmoid", "Identity", "Tanh", "Softplus", "Exp", "Ceil", "Sign"])
    return op, [g.real()], 1, {}


@maker(4)
def binary(g: Graph) -> Made | None:
    op = g.rng.choice(["Add", "Sub", "Mul", "Div", "Less", "Greater", "Max", "Min", "Mean"])
    return op, [g.real(), g.real()], 1, {}


@maker()
def where(g: Graph) -> Made | None:
    return "Where", [g.pick(lambda v: v.dtype == np.bool_), g.real(), g.real()], 1, {}


@maker()
def logic(g: Graph) -> Made | None:
    first, second = (g.pick(lambda v: v.dtype == np.bool_) for _ in range(2))
    return (
        ("Not", [first], 1, {})
        if g.rng.random() < 0.3
        else (g.rng.choice(["And", "Or", "Xor"]), [first, second], 1, {})
    )


@maker()
def cast(g: Graph) -> Made | None:
    to = g.rng.choice([TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL])
    return "Cast", [g.pick(lambda v: True)], 1, {"to": to}


# Shape arithmetic ------------------------------------------------------------------------------------------------


@maker(4)
def shape(g: Graph) -> Made | None:
    attributes = {}
    if g.rng.random() < 0.5:
        attributes["start"] = g.rng.randint(-3, 2)
    if g.rng.random() < 0.5:
        attributes["end"] = g.rng.randint(-2, 4)
    return "Shape", [g.real()], 1, attributes


@maker()
def size(g: Graph) -> Made | None:
    return "Size", [g.real()], 1, {}


@maker(3)
def element(g: Graph) -> Made | None:
    sizes = g.pick(lambda v: v.dtype == np.int64 and v.ndim == 1 and 0 < len(v) <= 6)
    if sizes is None:
        return None
    length = g.shape(sizes)[0]
    return "Gather", [sizes, g.const(g.rng.randrange(-length, length))], 1, {}


@maker(4)
def integers(g: Graph) -> Made | None:
    op = g.rng.choice(["Add", "Sub", "Mul", "Div", "Mod", "Max", "Min"])
    first = g.rng.choice([g.sizes, g.number])()
    # onnxruntime ends the process when it divides by 0.
    some = g.const(g.rng.randint(1, 4))
    second = some if op in ("Div", "Mod") else g.rng.choice([g.sizes, g.number, lambda: some])()
    return op, [first, second], 1, {}


@maker(2)
def joined_sizes(g: Graph) -> Made | None:
    parts = [g.sizes() or "", g.const([g.rng.choice([1, 2, 3, -1])])]
    g.rng.shuffle(parts)
    return "Concat", [*parts, *([g.sizes()] if g.rng.random() < 0.5 else [])], 1, {"axis": 0}


@maker(2)
def vector_of_number(g: Graph) -> Made | None:
    return "Unsqueeze", [g.number(), g.const([0])], 1, {}


@maker()
def reduced_sizes(g: Graph) -> Made | None:
    op = g.rng.choice(["ReduceProd", "ReduceSum", "ReduceMax"])
    return op, [g.sizes()], 1, {"keepdims": g.rng.randint(0, 1)}


@maker()
def range_(g: Graph) -> Made | None:
    return "Range", [g.const(g.rng.randint(0, 2)), g.number(), g.const(g.rng.randint(1, 2))], 1, {}


# Shape use -------------------------------------------------------------------------------------------------------


@maker(3)
def reshape(g: Graph) -> Made | None:
    x = g.real()
    if g.rng.random() < 0.5:
        return "Reshape", [x, g.sizes()], 1, {}
    rank = len(g.shape(x))
    target = [g.rng.choice([0, 1, 2, 3]) for _ in range(g.rng.randint(0, max(rank, 1)))]
    target.insert(g.rng.randint(0, len(target)), -1)
    return "Reshape", [x, g.const(target)], 1, {}


@maker(2)
def expand(g: Graph) -> Made | None:
    return "Expand", [g.real(), g.sizes()], 1, {}


@maker()
def filled(g: Graph) -> Made | None:
    return "ConstantOfShape", [g.sizes()], 1, {"value": helper.make_tensor("", TensorProto.FLOAT, [1], [1.0])}


@maker()
def tile(g: Graph) -> Made | None:
    x = g.real()
    repeats = g.sizes() if g.rng.random() < 0.4 else g.const([g.rng.randint(0, 3) for _ in g.shape(x)])
    return "Tile", [x, repeats], 1, {}


@maker(3)
def slice_(g: Graph) -> Made | None:
    x = g.real()
    step = g.rng.choice([1, 1, 2, -1, -2])
    starts = [g.rng.randint(-4, 3)] if step > 0 else [g.rng.choice([-1, 3, 2**31 - 1])]
    ends = g.const([g.rng.choice([-2, -1, 1, 2, 4, 2**31 - 1]) if step > 0 else g.rng.choice([0, -3, -(2**31)])])
    if g.rng.random() < 0.4:
        ends = g.pick(lambda v: v.dtype == np.int64 and v.shape == (1,)) or ends
    return "Slice", [x, g.const(starts), ends, g.const([g.axis(x)]), g.const([step])], 1, {}


@maker(2)
def pad(g: Graph) -> Made | None:
    x = g.real()
    pads = g.const([g.rng.randint(-1, 2) for _ in g.shape(x) * 2])
    return "Pad", [x, pads], 1, {"mode": g.rng.choice(["constant", "constant", "edge", "reflect"])}


@maker()
def resize(g: Graph) -> Made | None:
    x = g.real(3, 4)
    if x is None:
        return None
    if g.rng.random() < 0.4:
        rank = len(g.shape(x))
        sizes = g.pick(lambda v: v.dtype == np.int64 and v.shape == (rank,))
        return "Resize", [x, "", "", sizes], 1, {"mode": "nearest"}
    scales = [1.0, *(g.rng.choice([0.5, 1.0, 1.5, 2.0, 0.7]) for _ in g.shape(x)[1:])]
    return "Resize", [x, "", g.const(scales, np.float32)], 1, {"mode": "nearest"}


# Structure -------------------------------------------------------------------------------------------------------


@maker(5)
def split(g: Graph) -> Made | None:
    x = g.real()
    axis, count = g.axis(x), g.rng.randint(1, 3)
    total = g.shape(x)[axis] if g.shape(x) else 0
    # Chunks that leave nothing for the last part are warned of: onnxruntime 1.31 refuses them, 1.32 takes some.
    if g.rng.random() < 0.5 and -(-total // count) * (count - 1) < total:
        return "Split", [x], count, {"axis": axis, "num_outputs": count}
    lengths = g.pick(lambda v: v.dtype == np.int64 and v.ndim == 1 and 0 < len(v) <= 3 and v.sum() == total)
    if lengths is None or g.rng.random() < 0.4:
        cut = g.rng.randint(0, total)
        lengths = g.const([cut, total - cut])
    return "Split", [x, lengths], (g.values.get(lengths, g.constants.get(lengths))).size, {"axis": axis}


@maker(2)
def transpose(g: Graph) -> Made | None:
    x = g.real()
    order = list(range(len(g.shape(x))))
    g.rng.shuffle(order)
    return "Transpose", [x], 1, {"perm": order} if order else {}


@maker(4)
def concat(g: Graph) -> Made | None:
    x = g.real()
    parts = [x, *(g.real(len(g.shape(x))) for _ in range(g.rng.randint(0, 2)))]
    return "Concat", parts, 1, {"axis": g.axis(x)}


@maker()
def flatten(g: Graph) -> Made | None:
    x = g.real()
    return "Flatten", [x], 1, {"axis": g.rng.randint(0, len(g.shape(x)))}


@maker(2)
def axes_changed(g: Graph) -> Made | None:
    x = g.real()
    if g.rng.random() < 0.5:
        return "Unsqueeze", [x, g.const([g.rng.randint(0, len(g.shape(x)))])], 1, {}
    return "Squeeze", [x, *([g.const([g.axis(x)])] if g.rng.random() < 0.7 else [])], 1, {}


@maker()
def gather(g: Graph) -> Made | None:
    x = g.real()
    indices = g.const(g.rng.choice([0, [0], [0, 0], [[0, 0, 0]]]))
    return g.rng.choice(["Gather", "GatherElements", "GatherND"]), [x, indices], 1, {}


@maker()
def top(g: Graph) -> Made | None:
    k = g.const([g.rng.randint(0, 3)]) if g.rng.random() < 0.5 else g.sizes()
    x = g.real()
    return "TopK", [x, k], 2, {"axis": g.axis(x)}


@maker()
def picked(g: Graph) -> Made | None:
    x = g.real(1, 2, 3, 4)
    return g.rng.choice(["ArgMax", "ArgMin"]), [x], 1, {"axis": g.axis(x), "keepdims": g.rng.randint(0, 1)}


@maker()
def counted(g: Graph) -> Made | None:
    x = g.real(1, 2, 3, 4)
    if g.rng.random() < 0.5:
        return "NonZero", [x], 1, {}
    return "Compress", [x, g.pick(lambda v: v.dtype == np.bool_ and v.ndim == 1)], 1, {"axis": g.axis(x)}


@maker()
def alike(g: Graph) -> Made | None:
    x = g.real()
    op = g.rng.choice(["CumSum", "Trilu", "EyeLike", "OneHot", "Unique"])
    if op == "CumSum":
        return op, [x, g.const(g.axis(x))], 1, {}
    if op == "OneHot":
        depth = g.const(g.rng.randint(1, 4)) if g.rng.random() < 0.5 else g.number()
        return op, [g.pick(lambda v: v.dtype == np.int64), depth, g.const([0.0, 1.0], np.float32)], 1, {}
    return op, [x], 1, {}


@maker()
def blocks(g: Graph) -> Made | None:
    return g.rng.choice(["DepthToSpace", "SpaceToDepth"]), [g.real(4)], 1, {"blocksize": 2}


# Products --------------------------------------------------------------------------------------------------------


@maker(3)
def matmul(g: Graph) -> Made | None:
    x = g.real()
    if g.rng.random() < 0.5 and g.shape(x):
        return "MatMul", [x, g.weight(g.shape(x)[-1], g.rng.randint(1, 4))], 1, {}
    return "MatMul", [x, g.real()], 1, {}


@maker()
def gemm(g: Graph) -> Made | None:
    return "Gemm", [g.real(2), g.real(2)], 1, {"transA": g.rng.randint(0, 1), "transB": g.rng.randint(0, 1)}


@maker()
def einsum(g: Graph) -> Made | None:
    # Of one tensor and itself only: onnxruntime aborts the process where the operands do not fit.
    rank, equation = g.rng.choice([(2, "ij,kj->ik"), (2, "ij->ji"), (3, "bij,bkj->bik"), (1, "i,j->ij"), (2, "ij->")])
    return "Einsum", [g.real(rank)] * (equation.count(",") + 1), 1, {"equation": equation}


@maker(3)
def windows(g: Graph) -> Made | None:
    x = g.real(3, 4)
    if x is None:
        return None
    spatial = len(g.shape(x)) - 2
    kernel = [g.rng.randint(1, 3) for _ in range(spatial)]
    attributes: dict[str, Any] = {"strides": [g.rng.randint(1, 3) for _ in range(spatial)]}
    if g.rng.random() < 0.3:
        attributes["auto_pad"] = g.rng.choice(["SAME_UPPER", "SAME_LOWER", "VALID"])
    else:
        attributes["pads"] = [g.rng.randint(0, 1) for _ in range(2 * spatial)]
    # With both, onnxruntime's pooling leaves the dilation out of its padding.
    if g.rng.random() < 0.3 and "auto_pad" not in attributes:
        attributes["dilations"] = [g.rng.randint(1, 2) for _ in range(spatial)]
    op = g.rng.choice(["Conv", "ConvTranspose", "MaxPool", "AveragePool"])
    if op.startswith("Conv"):
        channels = g.shape(x)[1]
        outer = g.rng.randint(1, 3)
        return op, [x, g.weight(*((outer, channels) if op == "Conv" else (channels, outer)), *kernel)], 1, attributes
    if op == "AveragePool":
        attributes.pop("dilations", None)
    return op, [x], 1, {**attributes, "kernel_shape": kernel, "ceil_mode": g.rng.randint(0, 1)}


@maker()
def pooled(g: Graph) -> Made | None:
    return g.rng.choice(["GlobalAveragePool", "GlobalMaxPool"]), [g.real(3, 4)], 1, {}


@maker(2)
def reduction(g: Graph) -> Made | None:
    x = g.real(1, 2, 3, 4)
    op = g.rng.choice(["ReduceSum", "ReduceMean", "ReduceMax", "ReduceL2"])
    axes = [g.const([g.axis(x)])] if g.rng.random() < 0.7 else []
    return op, [x, *axes], 1, {"keepdims": g.rng.randint(0, 1), "noop_with_empty_axes": g.rng.randint(0, 1)}


@maker()
def normalised(g: Graph) -> Made | None:
    x = g.real()
    if g.rng.random() < 0.5 or not g.shape(x):
        return g.rng.choice(["Softmax", "LogSoftmax", "Hardmax"]), [x], 1, {"axis": g.axis(x)}
    return "LayerNormalization", [x, g.weight(g.shape(x)[-1])], 1, {"axis": -1}


@maker()
def recurrent(g: Graph) -> Made | None:
    x = g.real(3)
    if x is None:
        return None
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}
    op = g.rng.choice(list(gates))
    w, r = g.weight(1, gates[op] * 2, g.shape(x)[2]), g.weight(1, gates[op] * 2, 2)
    return op, [x, w, r], 2, {"hidden_size": 2}


# Sequences -------------------------------------------------------------------------------------------------------


@maker(3)
def parts(g: Graph) -> Made | None:
    x = g.real()
    kind = g.rng.randrange(3)
    if kind == 0:
        return "SplitToSequence", [x], 1, {"axis": g.axis(x), "keepdims": g.rng.randint(0, 1)}
    # onnxruntime takes no lengths at all for parts of length 1.
    some = g.pick(lambda v: v.dtype == np.int64 and v.ndim == 1 and 0 < len(v) <= 6)
    lengths = g.const(g.rng.randint(1, 3)) if kind == 1 else some
    return "SplitToSequence", [x, lengths], 1, {"axis": g.axis(x)}


@maker(2)
def member(g: Graph) -> Made | None:
    return "SequenceAt", [g.sequence(), g.const(g.rng.randint(-2, 2))], 1, {}


@maker(2)
def rejoined(g: Graph) -> Made | None:
    return "ConcatFromSequence", [g.sequence()], 1, {"axis": g.rng.randint(0, 2), "new_axis": g.rng.randint(0, 1)}


@maker(2)
def sequence_edit(g: Graph) -> Made | None:
    op = g.rng.choice(["SequenceInsert", "SequenceErase", "SequenceLength", "SequenceConstruct", "Identity"])
    if op == "SequenceConstruct":
        return op, [g.real(), g.real()], 1, {}
    inputs = [g.sequence()]
    if op == "SequenceInsert":
        inputs.append(g.real())
    if op in ("SequenceInsert", "SequenceErase") and g.rng.random() < 0.5:
        inputs.append(g.const(g.rng.randint(-1, 1)))
    return op, inputs, 1, {}


# Bodies ----------------------------------------------------------------------------------------------------------


@maker(2)
def branches(g: Graph) -> Made | None:
    if g.outer is not None and g.outer.outer is not None:
        return None
    then, other = (Graph(g.rng, g.name(base) + "_", g) for base in ("then", "else"))
    outputs = []
    for branch in (then, other):
        branch.grow(g.rng.randint(1, 4))
        own = [o for node in branch.nodes for o in node.output if isinstance(branch.values[o], np.ndarray)]
        own = [o for o in own if branch.values[o].dtype == np.float32]
        if not own:
            return None
        outputs.append(own[-1])
    bodies = {
        "then_branch": then.proto([], outputs[:1], then.prefix + "graph"),
        "else_branch": other.proto([], outputs[1:], other.prefix + "graph"),
    }
    condition = g.pick(lambda v: v.dtype == np.bool_ and v.ndim == 0)
    return "If", [condition], 1, bodies


@maker(2)
def loop(g: Graph) -> Made | None:
    carried = g.real()
    body = Graph(g.rng, g.name("loop") + "_", g)
    step, going, state = (body.prefix + base for base in ("step", "going", "state"))
    body.values.update({step: np.array(0), going: np.array(True), state: g.values[carried]})
    start = list(body.values)
    body.grow(g.rng.randint(1, 4))
    made = [n for n in body.values if n not in start and isinstance(body.values[n], np.ndarray)]
    made = [n for n in made if body.values[n].dtype == np.float32]
    if not made or not body.attempt(("Identity", [going], 1, {})):
        return None
    same_rank = [n for n in made if body.values[n].ndim == g.values[carried].ndim]
    still = body.nodes[-1].output[0]
    outputs = [still, g.rng.choice(same_rank or [state]), g.rng.choice(made)]
    if outputs[1] == state and not body.attempt(("Identity", [state], 1, {})):
        return None
    if outputs[1] == state:
        outputs[1] = body.nodes[-1].output[0]
    inputs = [helper.make_tensor_value_info(step, TensorProto.INT64, [])]
    inputs += [
        helper.make_tensor_value_info(going, TensorProto.BOOL, []),
        helper.make_tensor_value_info(state, TensorProto.FLOAT, None),
    ]
    trips = g.const(g.rng.randint(1, 3)) if g.outer or g.rng.random() < 0.5 else g.number()
    return "Loop", [trips, "", carried], 2, {"body": body.proto(inputs, outputs, body.prefix + "graph")}


@maker()
def scan(g: Graph) -> Made | None:
    x = g.real(2, 3, 4)
    if x is None or not g.shape(x)[0]:
        return None
    body = Graph(g.rng, g.name("scan") + "_", g)
    row = body.prefix + "row"
    body.values[row] = g.values[x][0]
    start = list(body.values)
    body.grow(g.rng.randint(1, 4))
    made = [n for n in body.values if n not in start and isinstance(body.values[n], np.ndarray)]
    made = [n for n in made if body.values[n].dtype == np.float32]
    if not made:
        return None
    inputs = [helper.make_tensor_value_info(row, TensorProto.FLOAT, None)]
    graph = body.proto(inputs, made[-1:], body.prefix + "graph")
    # onnxruntime wants to know the rank of what is scanned.
    dims: list[int | None] = [None] * body.values[made[-1]].ndim
    graph.output[0].CopyFrom(helper.make_tensor_value_info(made[-1], TensorProto.FLOAT, dims))
    return "Scan", [x], 1, {"body": graph, "num_scan_inputs": 1}


@maker()
def function(g: Graph) -> Made | None:
    """A call of a new function of the nodes that a few attempts on its one input give."""
    if g.outer is not None:
        return None
    x = g.real()
    name = f"F{len(g.functions)}"
    body = Graph(g.rng, "f_")
    body.values["f_x"] = g.values[x]
    body.grow(g.rng.randint(2, 5), FUNCTION_MAKERS)
    if not body.nodes:
        return None
    held = [
        helper.make_node("Constant", [], [constant], value=onnx.numpy_helper.from_array(body.constants[constant]))
        for constant in body.own_constants
    ]
    last = body.nodes[-1].output[0]
    imports = [helper.make_opsetid("", OPSET)]
    made = helper.make_function("local", name, ["f_x"], [last], [*held, *body.nodes], imports)
    g.functions.append(made)
    return name, [x], 1, {"domain": "local"}


FUNCTION_MAKERS = [unary, shape, element, reshape, slice_, split, transpose, concat, reduction, expand, binary]
