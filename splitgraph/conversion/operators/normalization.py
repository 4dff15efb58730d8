"""BatchNormalization, InstanceNormalization, GroupNormalization, MeanVarianceNormalization and LayerNormalization:
training modes, scales for channels, and what to write below their first opsets.
"""

from __future__ import annotations

from splitgraph.attributes import UNRESOLVED
from splitgraph.conversion.operators.predicates import RANK_HINT
from splitgraph.conversion.operators.registry import (
    always,
    changed,
    downward,
    edited,
    edited_upward,
    exact,
    exact_downward,
    unchanged,
    upward,
)
from splitgraph.conversion.writing.function_bodies import expand
from splitgraph.conversion.writing.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.writing.shape_nodes import widened
from splitgraph.deferred import np
from splitgraph.onnx_proto import AttributeProto, TensorProto
from splitgraph.value_type import DTYPE_NUMBERS

_HALVES = frozenset({"float16", "bfloat16"})

unchanged("LpNormalization", 22)
unchanged("LRN", 13)

# BatchNormalization, InstanceNormalization --------------------------------------------------------------------------

unchanged("BatchNormalization", 9)
unchanged("InstanceNormalization", 22)
changed(
    "BatchNormalization InstanceNormalization", 6, "below it, the input has four dimensions", up=always, hint=RANK_HINT
)


@exact_downward("BatchNormalization InstanceNormalization", 6)
def rank_is_4(node: NodeAtBoundary) -> bool:
    """True when the input has four dimensions, as it must below 6."""
    return node.rank(0) == 4


@downward("BatchNormalization InstanceNormalization", 6)
def reshape_to_images(node: NodeAtBoundary) -> None:
    """Adds dimensions of 1 behind two or three, because below 6 the input has four dimensions. These change neither
    which elements share their statistics nor how many elements there are.
    """
    rank = node.known_rank(0)
    if node.op_type == "BatchNormalization":
        node.set("consumed_inputs", [0, 0, 0, 1, 1], "BatchNormalization-1 wants it, to no effect")
    if rank == 4:
        return
    if not 2 <= rank < 4:
        raise Inexact(f"below it, the input has four dimensions, and this one {rank}")
    axes = list(range(rank, 4))
    node.inputs[0] = node.write("Unsqueeze", [node.inputs[0]], "image", axes=axes)
    given = node.redirect(0, "normalized")
    node.write_after("Squeeze", [node.outputs[0]], given, axes=axes)


changed(
    "BatchNormalization", 7, "below it, is_test tells inference from training; from then on the number of outputs does"
)


@edited("BatchNormalization", 7)
def mode_and_outputs_agree(node: NodeAtBoundary) -> None:
    """Keep a node when it is in test mode with one output or in training with all five, and has one scale for each
    channel. Sets or drops is_test.
    """
    others = _outputs_after_first(node)
    if node.value_or_default("spatial") != 1 or others not in (0, 4):
        raise Inexact
    if not node.upward:
        if others == 0:
            node.set("is_test", 1, "below opset 7 BatchNormalization is in training mode unless is_test is set")
        return
    if node.value("is_test", 0) is UNRESOLVED or node.is_set("is_test") != (others == 0):
        raise Inexact
    node.drop("is_test", why="from opset 7 on the number of outputs tells inference from training")


def _outputs_after_first(node: NodeAtBoundary) -> int:
    """Counts the outputs after the first one."""
    return sum(node.uses_output(index) for index in range(1, len(node.came.outputs)))


@upward("BatchNormalization", 7)
def fit_outputs_to_mode(node: NodeAtBoundary) -> None:
    """Drops is_test, which below 7 tells inference from training; from 7 on the number of outputs does. Inference loses
    the outputs after the first, which nobody may read; training gets them. spatial=0 is handled as in
    `fold_activations_into_channels`.
    """
    if node.known_value_or_default("spatial") == 0:
        _follow_scale(node)
    if node.known_value_or_default("is_test"):
        read = [name for name in node.outputs[1:] if name and node.is_read(name)]
        if read:
            raise Inexact(f"inference gives one output, and {read[0]!r} is read")
        del node.outputs[1:]
    else:
        _name_statistics(node)
    node.drop("is_test", why="from opset 7 on the number of outputs tells inference from training")


def _follow_scale(node: NodeAtBoundary) -> None:
    """Handles spatial=0 below 7, where the scale has one dimension: one for each channel, or one for each
    activation.
    """
    shape, scale = node.shape(0), node.shape(1)
    known = shape is not None and scale is not None and len(scale) == 1 and len(shape) >= 2 and scale[0] is not None
    if known and shape is not None and scale is not None:
        if len(shape) == 2 or (scale[0] == shape[1] and node.known_is_set("is_test")):
            node.drop("spatial", why="each channel has a scale of its own in both readings")
            return
        sizes = [size for size in shape[1:] if isinstance(size, int)]
        if len(sizes) == len(shape) - 1 and scale[0] == np.prod(sizes):
            fold_activations_into_channels(node)
            return
    raise Inexact("spatial=0 needs shapes that say whether scale is for channels or for activations", "declare them")


def _name_statistics(node: NodeAtBoundary) -> None:
    """Names the outputs of training: there are five, and the last two may stay unnamed."""
    node.outputs.extend([""] * (5 - len(node.outputs)))
    for index, hint in ((1, "mean"), (2, "var")):
        node.outputs[index] = node.outputs[index] or node.new_name(hint)


@upward("BatchNormalization", 9)
@downward("BatchNormalization", 7)
def fold_activations_into_channels(node: NodeAtBoundary) -> None:
    """Reshapes the input to a matrix and everything else to rows, so that each activation is a channel: spatial=0
    normalizes each activation by itself. The document gives this advice.
    """
    if node.known_value_or_default("spatial") != 0:
        _set_is_test(node)
        return
    data, scale = node.inputs[0], node.inputs[1]
    node.inputs[0] = node.write("Flatten", [data], "folded", axis=1)
    for index in range(1, 5):
        node.inputs[index] = node.write("Reshape", [node.inputs[index], node.constant([-1], "row")], "row")
    for index, name in enumerate(node.outputs):
        if name:
            shape = node.write("Shape", [scale if index else data], "shape")
            unfolded = node.redirect(index, "folded")
            node.write_after("Reshape", [node.outputs[index], shape], unfolded)
    node.drop("spatial", why=f"the activations are channels of a matrix {node.side}")
    if not node.upward:
        _set_is_test(node)


def _set_is_test(node: NodeAtBoundary) -> None:
    """Sets is_test for inference, and names all five outputs for training, as below 7."""
    if node.upward:
        raise Inexact("spatial is known only at run time")
    if not any(node.outputs[1:]):
        node.set("is_test", 1, "below opset 7 BatchNormalization is in training mode unless is_test is set")
        return
    _name_statistics(node)


changed("BatchNormalization", 14, "below it, training has five outputs; from then on three, with training_mode=1")


@exact("BatchNormalization", 14)
def is_inference(node: NodeAtBoundary) -> bool:
    """True when the node is in inference, which has one output on both sides."""
    return _outputs_after_first(node) == 0 and node.value("training_mode", 0) == 0


@upward("BatchNormalization", 14)
def leave_out_saved_statistics(node: NodeAtBoundary) -> None:
    """Removes the last two of the five training outputs. The mean is computed again; nobody may read the variance,
    because runtimes disagree about it.
    """
    mean, variance = (node.outputs[index] if index < len(node.outputs) else "" for index in (3, 4))
    if variance and node.is_read(variance):
        raise Inexact(f"training gives no saved_var, and {variance!r} is read", "remove the reader")
    if mean and node.is_read(mean):
        axes = [0, *range(2, node.known_rank(0))]
        node.write_after("ReduceMean", [node.inputs[0]], mean, axes=axes, keepdims=0)
    node.outputs[:] = [
        name or node.new_name(hint) for name, hint in zip([*node.outputs, ""], ("y", "mean", "var"), strict=False)
    ]
    node.set("training_mode", 1, "from opset 14 on the attribute tells inference from training")


@downward("BatchNormalization", 14, 15)
def write_training(node: NodeAtBoundary) -> None:
    """Writes training with the operators of the document, because runtimes have no training below 14. From 15 on,
    16-bit floats are computed in float32.
    """
    if not node.known_is_set("training_mode"):
        raise Inexact("its element types are not allowed below it")
    rank, dtype = node.known_rank(0), node.known_dtype(0)
    kept = [node.input_type(index).dtype for index in range(5)]
    wide = "float32" if dtype in _HALVES and node.upper.since_version == 15 else dtype
    data, scale, bias, old_mean, old_var = (widened(node, name, kept[i], wide) for i, name in enumerate(node.inputs))
    axes = [0, *range(2, rank)]
    columns = node.constant([-1, *[1] * (rank - 2)], "columns")
    mean = node.write("ReduceMean", [data], "mean", axes=axes, keepdims=1)
    centred = node.write("Sub", [data, mean], "centred")
    var = node.write("ReduceMean", [node.write("Mul", [centred, centred], "squares")], "var", axes=axes, keepdims=1)
    epsilon = node.constant(node.known_value("epsilon", 1e-5), "epsilon", wide)
    deviation = node.write("Sqrt", [node.write("Add", [var, epsilon], "var")], "deviation")
    normalized = node.write("Div", [centred, deviation], "normalized")
    scaled = node.write("Mul", [normalized, node.write("Reshape", [scale, columns], "scale")], "scaled")
    shifted = [scaled, node.write("Reshape", [bias, columns], "bias")]
    momentum = node.known_value("momentum", 0.9)
    for index, (old, current) in enumerate(((old_mean, mean), (old_var, var)), 1):
        if index < len(node.outputs) and node.outputs[index]:
            _write_running(node, index, old, current, momentum, wide, kept[index + 2])
    del node.outputs[1:]
    if wide == dtype:
        node.replace("Add", shifted)
    else:
        node.replace("Cast", [node.write("Add", shifted, "y")], to=DTYPE_NUMBERS[dtype])


def _write_running(
    node: NodeAtBoundary, index: int, old: str, current: str, momentum: float, wide: str, kept: str | None
) -> None:
    """Writes the running mean or variance: a weighted sum of the old one and the one of this batch."""
    row = node.write("Reshape", [current, node.constant([-1], "row")], "current")
    parts = [
        node.write("Mul", [old, node.constant(momentum, "momentum", wide)], "old"),
        node.write("Mul", [row, node.constant(1 - momentum, "rest", wide)], "new"),
    ]
    if kept in (None, wide):
        node.write_after("Add", parts, node.outputs[index])
    else:
        node.write_after("Cast", [node.write("Add", parts, "running")], node.outputs[index], to=DTYPE_NUMBERS[kept])


changed("BatchNormalization", 15, "from it on, training computes the statistics of 16-bit inputs in float32")


@exact("BatchNormalization", 15)
def statistics_have_type_of_input(node: NodeAtBoundary) -> bool:
    """True when the node computes no statistics, or has an input of float32 or float64."""
    return node.value_or_default("training_mode") == 0 or node.dtype(0) in ("float32", "float64")


# GroupNormalization -------------------------------------------------------------------------------------------------

changed("GroupNormalization", 21, "scale and bias are for each channel, not for each group, from then on")


@upward("GroupNormalization", 21)
def repeat_scales_for_channels(node: NodeAtBoundary) -> None:
    """Repeats scale and bias, which are for each group below 21, for the channels of the group. Sets stash_type: below
    21 the statistics are computed in the type of the input, from 21 on in float32 by default.
    """
    dtype = node.known_dtype(0)
    if dtype != "float32":
        node.set("stash_type", DTYPE_NUMBERS[dtype], "statistics are computed in the type of the input below opset 21")
    groups = node.write("Shape", [node.inputs[1]], "groups")
    channels = node.write("Shape", [node.inputs[0]], "channels", start=1, end=2)
    sizes = node.write("Concat", [groups, node.write("Div", [channels, groups], "each")], "sizes", axis=0)
    for index in (1, 2):
        column = node.write("Reshape", [node.inputs[index], node.constant([-1, 1], "column")], "column")
        repeated = node.write("Expand", [column, sizes], "repeated")
        node.inputs[index] = node.write("Reshape", [repeated, node.constant([-1], "row")], "of_channels")


# MeanVarianceNormalization ------------------------------------------------------------------------------------------


@downward("MeanVarianceNormalization", 9)
def write_mean_variance(node: NodeAtBoundary) -> None:
    """Computes the mean, the deviation, and the variance of the deviation, as the document says.

    The function body computes the variance as the mean of the squares less the square of the mean: rounding makes it
    negative where the elements are alike, and its constants are float32 for every type. 16-bit types, in which its
    epsilon is 0, are computed in float32.
    """
    dtype = node.known_dtype()
    axes = node.attributes.get("axes")
    computed = "float32" if dtype in _HALVES else dtype
    data = widened(node, node.inputs[0], dtype, computed)
    deviation = node.write("Sub", [data, _mean(node, data, axes, "mean")], "deviation")
    variance = _mean(node, node.write("Mul", [deviation, deviation], "square"), axes, "variance")
    spread = node.write("Sqrt", [variance], "spread")
    divisor = node.write("Add", [spread, node.constant(1e-9, "epsilon", computed)], "divisor")
    if computed == dtype:
        node.replace("Div", [deviation, divisor])
    else:
        node.replace("Cast", [node.write("Div", [deviation, divisor], "normal")], to=DTYPE_NUMBERS[dtype])


def _mean(node: NodeAtBoundary, data: str, axes: AttributeProto | None, hint: str) -> str:
    """Emits the mean over the axes of the node."""
    name = node.write("ReduceMean", [data], hint, axes=[0, 2, 3] if axes is None else None)
    if axes is not None:
        # The attribute of the node may refer to an attribute of the enclosing function.
        node.before[-1].attributes["axes"] = axes
    return name


changed("MeanVarianceNormalization", 13, "from then on, onnx's shape inference fails on it without axes", down=always)


@edited_upward("MeanVarianceNormalization", 13)
def write_default_axes(node: NodeAtBoundary) -> None:
    """Keep every node. Writes out the default of axes: from 13 on, onnx infers types by a function body that refers
    to axes.
    """
    if not node.has("axes"):
        node.set("axes", [0, 2, 3], "onnx infers no types from opset 13 on unless axes is written")


# LayerNormalization -------------------------------------------------------------------------------------------------


@downward("LayerNormalization", 17)
def write_layer_normalization(node: NodeAtBoundary) -> None:
    """Computes the mean, the deviation, and the variance of the deviation.

    The function body computes the variance as the mean of the squares less the square of the mean. Rounding cancels
    this where the mean is large; what runtimes compute does not cancel.
    """
    axes = _axes(node)
    dtype = node.input_type(0).dtype
    stash = node.known_value_or_default("stash_type")
    if axes is None or dtype is None or stash not in (TensorProto.FLOAT, TensorProto.DOUBLE):
        expand(node)
        return
    own, epsilon = DTYPE_NUMBERS[dtype], node.known_value("epsilon", 1e-5)
    data, scale = node.inputs[0], node.inputs[1]
    bias = node.inputs[2] if node.uses_input(2) else ""
    values = data if own == stash else node.write("Cast", [data], "wide", to=stash)
    mean = node.write("ReduceMean", [values], "mean", axes=axes, keepdims=1)
    deviation = node.write("Sub", [values, mean], "deviation")
    variance = node.write("ReduceMean", [node.write("Mul", [deviation, deviation], "square")], "variance", axes=axes)
    wide = np.float32 if stash == TensorProto.FLOAT else np.float64
    raised = node.write("Add", [variance, node.constant(epsilon, "epsilon", wide)], "raised")
    spread = node.write("Sqrt", [raised], "spread")
    normal = node.write("Div", [deviation, spread], "normal")
    if own != stash:
        normal = node.write("Cast", [normal], "narrow", to=own)
    given = list(node.outputs)
    del node.outputs[1:]
    if bias:
        node.replace("Add", [node.write("Mul", [normal, scale], "scaled"), bias])
    else:
        node.replace("Mul", [normal, scale])
    if len(given) > 1 and given[1]:
        node.write_after("Identity", [mean], given[1])
    if len(given) > 2 and given[2]:
        node.write_after("Reciprocal", [spread], given[2])


def _axes(node: NodeAtBoundary) -> list[int] | None:
    """Gives the axes from `axis` to the last, None where their number is unknown."""
    axis, rank = node.known_value_or_default("axis"), node.rank(0)
    if axis < 0:
        return list(range(axis, 0))
    return None if rank is None else list(range(axis - rank, 0))
