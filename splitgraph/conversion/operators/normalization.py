"""BatchNormalization, InstanceNormalization, GroupNormalization, MeanVarianceNormalization and LayerNormalization:
training modes, scales for channels, and what to write below their first opsets.

Softmax, LogSoftmax and Hardmax: below 13 they normalize all dimensions from an axis on together, from 13 on one axis.
"""

from __future__ import annotations

from splitgraph.conversion.notation.formula import Formula, Term
from splitgraph.conversion.notation.function_bodies import expand
from splitgraph.conversion.notation.node_at_boundary import Inexact, NodeAtBoundary
from splitgraph.conversion.notation.reshaping import copies_zeros
from splitgraph.conversion.operators.registry import (
    MINUS_AXIS,
    RANK_HINT,
    always,
    axes_counted_from_front,
    changed,
    downward,
    edited,
    edited_upward,
    exact,
    exact_downward,
    unchanged,
    upward,
)
from splitgraph.dim import DimLike, product
from splitgraph.model.attributes import UNRESOLVED
from splitgraph.model.deferred import np
from splitgraph.model.onnx_proto import TensorProto
from splitgraph.model.value_type import DTYPE_NAMES, DTYPE_NUMBERS, Shape

_HALVES = frozenset({"float16", "bfloat16"})
_STATISTICS = (TensorProto.FLOAT, TensorProto.DOUBLE, TensorProto.FLOAT16, TensorProto.BFLOAT16)
_SOFTMAX = "Hardmax LogSoftmax Softmax"

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
    """Return True when the input has four dimensions, as it must below 6."""
    return node.rank(0) == 4


@downward("BatchNormalization InstanceNormalization", 6)
def reshape_to_images(node: NodeAtBoundary) -> None:
    """Add dimensions of 1 behind two or three, because below 6 the input has four dimensions. These change neither
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
    """Count the outputs after the first one."""
    return sum(node.uses_output(index) for index in range(1, len(node.came.outputs)))


@upward("BatchNormalization", 7)
def fit_outputs_to_mode(node: NodeAtBoundary) -> None:
    """Drop is_test, which below 7 tells inference from training; from 7 on the number of outputs does. Inference loses
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
    """Handle spatial=0 below 7, where the scale has one dimension: one for each channel, or one for each activation."""
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
    """Name the outputs of training: there are five, and the last two may stay unnamed."""
    node.outputs.extend([""] * (5 - len(node.outputs)))
    for index, hint in ((1, "mean"), (2, "var")):
        node.outputs[index] = node.outputs[index] or node.new_name(hint)


@upward("BatchNormalization", 9)
@downward("BatchNormalization", 7)
def fold_activations_into_channels(node: NodeAtBoundary) -> None:
    """Reshape the input to a matrix and everything else to rows, so that each activation is a channel: spatial=0
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
    """Set is_test for inference, and name all five outputs for training, as below 7."""
    if node.upward:
        raise Inexact("spatial is known only at run time")
    if not any(node.outputs[1:]):
        node.set("is_test", 1, "below opset 7 BatchNormalization is in training mode unless is_test is set")
        return
    _name_statistics(node)


changed("BatchNormalization", 14, "below it, training has five outputs; from then on three, with training_mode=1")


@exact("BatchNormalization", 14)
def is_inference(node: NodeAtBoundary) -> bool:
    """Return True when the node is in inference, which has one output on both sides."""
    return _outputs_after_first(node) == 0 and node.value("training_mode", 0) == 0


@upward("BatchNormalization", 14)
def leave_out_saved_statistics(node: NodeAtBoundary) -> None:
    """Remove the last two of the five training outputs. The mean is computed again; nobody may read the variance,
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
    """Write training with the operators of the document, because runtimes have no training below 14. From 15 on, 16-bit
    floats are computed in float32.
    """
    if not node.known_is_set("training_mode"):
        raise Inexact("its element types are not allowed below it")
    rank, dtype, f = node.known_rank(0), node.known_dtype(0), Formula(node)
    wide = "float32" if dtype in _HALVES and node.upper.since_version == 15 else dtype
    data, scale, bias, *running = (f.input(index).cast(wide) for index in range(5))
    axes, columns = [0, *range(2, rank)], [-1, *[1] * (rank - 2)]
    mean = data.reduced("ReduceMean", axes, keepdims=True)
    centred = data - mean
    variance = (centred * centred).reduced("ReduceMean", axes, keepdims=True)
    deviation = (variance + node.known_value("epsilon", 1e-5)).sqrt()
    result = centred / deviation * scale.reshape(*columns) + bias.reshape(*columns)
    momentum, results = node.known_value("momentum", 0.9), [result.cast(dtype)]
    for index, (old, current) in enumerate(zip(running, (mean, variance), strict=True), 3):
        mixed = old * momentum + current.reshape(-1) * (1 - momentum)
        results.append(mixed.cast(node.input_type(index).dtype or wide))
    f.give(*results)


changed("BatchNormalization", 15, "from it on, training computes the statistics of 16-bit inputs in float32")


@exact("BatchNormalization", 15)
def statistics_have_type_of_input(node: NodeAtBoundary) -> bool:
    """Return True when the node computes no statistics, or has an input of float32 or float64."""
    return node.value_or_default("training_mode") == 0 or node.dtype(0) in ("float32", "float64")


# GroupNormalization -------------------------------------------------------------------------------------------------

changed("GroupNormalization", 21, "scale and bias are for each channel, not for each group, from then on")


@upward("GroupNormalization", 21)
def repeat_scales_for_channels(node: NodeAtBoundary) -> None:
    """Repeat scale and bias, which are for each group below 21, for the channels of the group. Sets stash_type: below
    21 the statistics are computed in the type of the input, from 21 on in float32 by default.
    """
    dtype = node.known_dtype(0)
    if dtype != "float32":
        node.set("stash_type", DTYPE_NUMBERS[dtype], "statistics are computed in the type of the input below opset 21")
    f = Formula(node)
    groups, channels = f.shape(node.inputs[1]), f.apply("Shape", f.input(0), gives="int64", start=1, end=2)
    sizes = f.joined([groups, channels / groups])
    for index in (1, 2):
        repeated = f.input(index).reshape(-1, 1).expanded(sizes)
        node.inputs[index] = repeated.reshape(-1).name


@downward("GroupNormalization", 21)
def write_group_normalization(node: NodeAtBoundary) -> None:
    """Compute the statistics of each group in the type of stash_type, and scale each channel."""
    _write_groups(node, node.known_value_or_default("stash_type"))


@downward("GroupNormalization", 18)
def write_group_normalization_of_groups(node: NodeAtBoundary) -> None:
    """Compute the statistics of each group in the type of the input, and scale each group."""
    _write_groups(node, None)


def _write_groups(node: NodeAtBoundary, stash: int | None) -> None:
    """Compute the mean, the deviation, and the variance of the deviation.

    The function body computes the variance as the mean of the squares less the square of the mean, as it does for
    LayerNormalization. stash: None where scale and bias are for each group.
    """
    dtype, groups = node.input_type(0).dtype, node.known_value("num_groups", None)
    if dtype is None or groups is None or (stash is not None and stash not in _STATISTICS):
        expand(node)
        return
    f, shape = Formula(node), Formula(node).shape(node.inputs[0])
    data = f.input(0).cast(dtype if stash is None else DTYPE_NAMES[stash]).reshape(0, groups, -1)
    deviation = data - data.reduced("ReduceMean", [2], keepdims=True)
    variance = (deviation * deviation).reduced("ReduceMean", [2], keepdims=True)
    result = deviation / (variance + node.known_value("epsilon", 1e-5)).sqrt()
    if stash is not None:
        result = result.shaped(shape).reshape(0, 0, -1).cast(dtype)
    scaled = result * f.input(1).reshape(1, -1, 1) + f.input(2).reshape(1, -1, 1)
    f.give(scaled.shaped(shape))


# MeanVarianceNormalization ------------------------------------------------------------------------------------------


changed("MeanVarianceNormalization", 9, "below it, it was experimental, with other attributes")


@upward("MeanVarianceNormalization", 9)
def name_axes(node: NodeAtBoundary) -> None:
    """Write the axes out: batch, height and width, and with across_channels also the channels, as far as the input has
    them. Write x - mean without normalize_variance.
    """
    across, divides = node.known_value("across_channels", 0), node.known_value("normalize_variance", 1)
    axes = [axis for axis in (0, 1, 2, 3) if axis < node.known_rank() and (axis != 1 or across)]
    if not divides:
        data = Formula(node).input(0)
        wide = data.cast("float32" if node.known_dtype() in _HALVES else node.known_dtype())
        data.formula.give((wide - wide.reduced("ReduceMean", axes, keepdims=True)).cast(data.dtype))
        return
    why = "the axes are named from opset 9 on; below it, OpenVINO normalizes each item of a batch by itself"
    node.drop("across_channels", "normalize_variance", why=why)
    node.set("axes", axes, why)


@downward("MeanVarianceNormalization", 9)
def write_mean_variance(node: NodeAtBoundary) -> None:
    """Compute the mean, the deviation, and the variance of the deviation, as the document says.

    The function body computes the variance as the mean of the squares less the square of the mean: rounding makes it
    negative where the elements are alike, and its constants are float32 for every type. 16-bit types, in which its
    epsilon is 0, are computed in float32.
    """
    dtype, f = node.known_dtype(), Formula(node)
    computed, axes = "float32" if dtype in _HALVES else dtype, node.attributes.get("axes")

    def mean(data: Term) -> Term:
        averaged = f.apply("ReduceMean", data, axes=[0, 2, 3] if axes is None else None)
        if axes is not None:
            # The attribute of the node may refer to an attribute of the enclosing function.
            node.before[-1].attributes["axes"] = axes
        return averaged

    data = f.input(0).cast(computed)
    deviation = data - mean(data)
    f.give((deviation / (mean(deviation * deviation).sqrt() + 1e-9)).cast(dtype))


changed("MeanVarianceNormalization", 13, "from then on, onnx's shape inference fails on it without axes", down=always)


@edited_upward("MeanVarianceNormalization", 13)
def write_default_axes(node: NodeAtBoundary) -> None:
    """Keep every node. Write out the default of axes: from 13 on, onnx infers types by a function body that refers to
    axes.
    """
    if not node.has("axes"):
        node.set("axes", [0, 2, 3], "onnx infers no types from opset 13 on unless axes is written")


# LayerNormalization -------------------------------------------------------------------------------------------------


@downward("LayerNormalization", 17)
def write_layer_normalization(node: NodeAtBoundary) -> None:
    """Compute the mean, the deviation, and the variance of the deviation.

    The function body computes the variance as the mean of the squares less the square of the mean. Rounding cancels
    this where the mean is large; what runtimes compute does not cancel.
    """
    axes = _axes(node)
    dtype = node.input_type(0).dtype
    stash = node.known_value_or_default("stash_type")
    if axes is None or dtype is None or stash not in (TensorProto.FLOAT, TensorProto.DOUBLE):
        expand(node)
        return
    f, wide, given = Formula(node), DTYPE_NAMES[stash], list(node.outputs)
    values = f.input(0).cast(wide)
    mean = values.reduced("ReduceMean", axes, keepdims=True)
    deviation = values - mean
    variance = (deviation * deviation).reduced("ReduceMean", axes, keepdims=True)
    spread = (variance + node.known_value("epsilon", 1e-5)).sqrt()
    result = (deviation / spread).cast(dtype) * f.input(1)
    if node.uses_input(2):
        result = result + f.input(2)
    results = [result, mean, f.apply("Reciprocal", spread)]
    f.give(*results[: len(given)])


def _axes(node: NodeAtBoundary) -> list[int] | None:
    """Return the axes from `axis` to the last, None where their number is unknown."""
    axis, rank = node.known_value_or_default("axis"), node.rank(0)
    if axis < 0:
        return list(range(axis, 0))
    return None if rank is None else list(range(axis - rank, 0))


# Softmax, LogSoftmax, Hardmax ----------------------------------------------------------------------------------------

changed(_SOFTMAX, 11, MINUS_AXIS, up=always, down=axes_counted_from_front("axis"), hint=RANK_HINT)
changed(
    _SOFTMAX,
    13,
    (
        "below it, all dimensions from axis (1 by default) on are normalized together; from then on, only the"
        " axis (-1 by default)"
    ),
    hint=RANK_HINT,
)


@exact(_SOFTMAX, 13)
def normalizes_last_axis(node: NodeAtBoundary) -> bool:
    """Return True when all dimensions after the axis are 1, so that folding changes nothing."""
    axis = node.value("axis", 1 if node.upward else -1)
    if axis is UNRESOLVED:
        return False
    if axis == -1:
        return True
    shape = node.shape(0)
    if shape is None or not -len(shape) <= axis < len(shape):
        return False
    return all(dim == 1 for dim in shape[axis % len(shape) + 1 :])


@upward(_SOFTMAX, 13)
def fold_into_matrix(node: NodeAtBoundary) -> None:
    """Fold the input into a matrix at `axis` (1 by default) with Flatten, which has the same default and takes every
    rank; normalize the last axis, and unfold the result with Reshape.
    """
    data, place = node.inputs[0], node.value_or_default("axis")
    axis = node.attributes.pop("axis", None)
    node.reasons["axis"] = f"only one axis is normalized {node.side}"
    node.inputs[0] = node.write("Flatten", [data], "folded")
    if axis is not None:
        node.before[-1].attributes["axis"] = axis
    shape = node.values.type_of(data).shape
    copies = shape is not None and isinstance(place, int) and _unfolds_by_copying(shape, place)
    if not copies and node.to_opset >= 14:
        # The node means the same at opset 14, and Reshape has allowzero there.
        node.dialect = 14
    f = Formula(node)
    f.follow(0, lambda normalized: normalized.with_shape(f.shape(data), dense=copies))


def _unfolds_by_copying(dims: Shape, axis: int) -> bool:
    """Return True when Reshape to these dimensions, after a fold at the axis, copies a 0 only where it is meant: no
    length is 0, or each 0 copies a 0.
    """
    sides: list[DimLike | None] = []
    for side in (dims[:axis], dims[axis:]):
        known = [dim for dim in side if dim is not None]
        sides.append(product(known) if len(known) == len(side) else None)
    return copies_zeros(dims, tuple(sides))


@downward(_SOFTMAX, 13)
def move_axis_to_the_end(node: NodeAtBoundary) -> None:
    """Exchange the axis with the last one by Transpose, before and behind the node. Below 13 only the last axis can be
    normalized alone.
    """
    axis = node.known_value_or_default("axis")
    rank = node.known_rank(0)
    if not -rank <= axis < rank:
        raise Inexact(f"axis {axis} is out of range")
    order = list(range(rank))
    order[axis], order[-1] = order[-1], order[axis]
    node.inputs[0] = node.write("Transpose", [node.inputs[0]], "exchanged", perm=order)
    node.set("axis", rank - 1, f"the last axis is the one that is normalized alone {node.side}")
    given = node.redirect(0, "normalized")
    node.write_after("Transpose", [node.outputs[0]], given, perm=order)
