"""BatchNormalization, InstanceNormalization, GroupNormalization, MeanVarianceNormalization and LayerNormalization:
training modes, scales for channels, and what to write below their first opsets.
"""

from __future__ import annotations

from splitgraph.attribute_values import UNRESOLVED
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
from splitgraph.conversion.writing.adapter_context import AdapterContext, Inexact
from splitgraph.conversion.writing.function_bodies import expand
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
def rank_is_4(crossing: AdapterContext) -> bool:
    """True when the input has four dimensions, as it must below 6."""
    return crossing.rank(0) == 4


@downward("BatchNormalization InstanceNormalization", 6)
def reshape_to_images(context: AdapterContext) -> None:
    """Adds dimensions of 1 behind two or three, because below 6 the input has four dimensions. These change neither
    which elements share their statistics nor how many elements there are.
    """
    rank = context.known_rank(0)
    if context.form.op_type == "BatchNormalization":
        context.set("consumed_inputs", [0, 0, 0, 1, 1], "BatchNormalization-1 wants it, to no effect")
    if rank == 4:
        return
    if not 2 <= rank < 4:
        raise Inexact(f"below it, the input has four dimensions, and this one {rank}")
    axes = list(range(rank, 4))
    context.inputs[0] = context.emit("Unsqueeze", [context.inputs[0]], "image", axes=axes)
    given = context.redirect(0, "normalized")
    context.emit_after("Squeeze", [context.outputs[0]], given, axes=axes)


changed(
    "BatchNormalization", 7, "below it, is_test tells inference from training; from then on the number of outputs does"
)


@edited("BatchNormalization", 7)
def mode_and_outputs_agree(crossing: AdapterContext) -> None:
    """Keep a node when it is in test mode with one output or in training with all five, and has one scale for each
    channel. Sets or drops is_test.
    """
    others = _outputs_after_first(crossing)
    if crossing.value_or_default("spatial") != 1 or others not in (0, 4):
        raise Inexact
    if not crossing.upward:
        if others == 0:
            crossing.set("is_test", 1, "below opset 7 BatchNormalization is in training mode unless is_test is set")
        return
    if crossing.value("is_test", 0) is UNRESOLVED or crossing.is_set("is_test") != (others == 0):
        raise Inexact
    crossing.drop("is_test", why="from opset 7 on the number of outputs tells inference from training")


def _outputs_after_first(crossing: AdapterContext) -> int:
    """Counts the outputs after the first one."""
    return sum(crossing.uses_output(index) for index in range(1, len(crossing.came.outputs)))


@upward("BatchNormalization", 7)
def fit_outputs_to_mode(context: AdapterContext) -> None:
    """Drops is_test, which below 7 tells inference from training; from 7 on the number of outputs does. Inference loses
    the outputs after the first, which nobody may read; training gets them. spatial=0 is handled as in
    `fold_activations_into_channels`.
    """
    if context.known_value_or_default("spatial") == 0:
        _follow_scale(context)
    if context.known_value_or_default("is_test"):
        read = [name for name in context.outputs[1:] if name and context.is_read(name)]
        if read:
            raise Inexact(f"inference gives one output, and {read[0]!r} is read")
        del context.outputs[1:]
    else:
        _name_statistics(context)
    context.drop("is_test", why="from opset 7 on the number of outputs tells inference from training")


def _follow_scale(context: AdapterContext) -> None:
    """Handles spatial=0 below 7, where the scale has one dimension: one for each channel, or one for each
    activation.
    """
    shape, scale = context.shape(0), context.shape(1)
    known = shape is not None and scale is not None and len(scale) == 1 and len(shape) >= 2 and scale[0] is not None
    if known and shape is not None and scale is not None:
        if len(shape) == 2 or (scale[0] == shape[1] and context.known_is_set("is_test")):
            context.drop("spatial", why="each channel has a scale of its own in both readings")
            return
        sizes = [size for size in shape[1:] if isinstance(size, int)]
        if len(sizes) == len(shape) - 1 and scale[0] == np.prod(sizes):
            fold_activations_into_channels(context)
            return
    raise Inexact("spatial=0 needs shapes that say whether scale is for channels or for activations", "declare them")


def _name_statistics(context: AdapterContext) -> None:
    """Names the outputs of training: there are five, and the last two may stay unnamed."""
    context.outputs.extend([""] * (5 - len(context.outputs)))
    for index, hint in ((1, "mean"), (2, "var")):
        context.outputs[index] = context.outputs[index] or context.new_name(hint)


@upward("BatchNormalization", 9)
@downward("BatchNormalization", 7)
def fold_activations_into_channels(context: AdapterContext) -> None:
    """Reshapes the input to a matrix and everything else to rows, so that each activation is a channel: spatial=0
    normalizes each activation by itself. The document gives this advice.
    """
    if context.known_value_or_default("spatial") != 0:
        _set_is_test(context)
        return
    data, scale = context.inputs[0], context.inputs[1]
    context.inputs[0] = context.emit("Flatten", [data], "folded", axis=1)
    for index in range(1, 5):
        context.inputs[index] = context.emit("Reshape", [context.inputs[index], context.constant([-1], "row")], "row")
    for index, name in enumerate(context.outputs):
        if name:
            shape = context.emit("Shape", [scale if index else data], "shape")
            unfolded = context.redirect(index, "folded")
            context.emit_after("Reshape", [context.outputs[index], shape], unfolded)
    context.drop("spatial", why=f"the activations are channels of a matrix {context.side}")
    if not context.upward:
        _set_is_test(context)


def _set_is_test(context: AdapterContext) -> None:
    """Sets is_test for inference, and names all five outputs for training, as below 7."""
    if context.upward:
        raise Inexact("spatial is known only at run time")
    if not any(context.outputs[1:]):
        context.set("is_test", 1, "below opset 7 BatchNormalization is in training mode unless is_test is set")
        return
    _name_statistics(context)


changed("BatchNormalization", 14, "below it, training has five outputs; from then on three, with training_mode=1")


@exact("BatchNormalization", 14)
def is_inference(crossing: AdapterContext) -> bool:
    """True when the node is in inference, which has one output on both sides."""
    return _outputs_after_first(crossing) == 0 and crossing.value("training_mode", 0) == 0


@upward("BatchNormalization", 14)
def leave_out_saved_statistics(context: AdapterContext) -> None:
    """Removes the last two of the five training outputs. The mean is computed again; nobody may read the variance,
    because runtimes disagree about it.
    """
    mean, variance = (context.outputs[index] if index < len(context.outputs) else "" for index in (3, 4))
    if variance and context.is_read(variance):
        raise Inexact(f"training gives no saved_var, and {variance!r} is read", "remove the reader")
    if mean and context.is_read(mean):
        axes = [0, *range(2, context.known_rank(0))]
        context.emit_after("ReduceMean", [context.inputs[0]], mean, axes=axes, keepdims=0)
    context.outputs[:] = [
        name or context.new_name(hint) for name, hint in zip([*context.outputs, ""], ("y", "mean", "var"), strict=False)
    ]
    context.set("training_mode", 1, "from opset 14 on the attribute tells inference from training")


@downward("BatchNormalization", 14, 15)
def write_training(context: AdapterContext) -> None:
    """Writes training with the operators of the document, because runtimes have no training below 14. From 15 on,
    16-bit floats are computed in float32.
    """
    if not context.known_is_set("training_mode"):
        raise Inexact("its element types are not allowed below it")
    rank, dtype = context.known_rank(0), context.known_dtype(0)
    kept = [context.input_type(index).dtype for index in range(5)]
    wide = "float32" if dtype in _HALVES and context.upper.since_version == 15 else dtype
    data, scale, bias, old_mean, old_var = (
        widened(context, name, kept[i], wide) for i, name in enumerate(context.inputs)
    )
    axes = [0, *range(2, rank)]
    columns = context.constant([-1, *[1] * (rank - 2)], "columns")
    mean = context.emit("ReduceMean", [data], "mean", axes=axes, keepdims=1)
    centred = context.emit("Sub", [data, mean], "centred")
    var = context.emit("ReduceMean", [context.emit("Mul", [centred, centred], "squares")], "var", axes=axes, keepdims=1)
    epsilon = context.constant(context.known_value("epsilon", 1e-5), "epsilon", wide)
    deviation = context.emit("Sqrt", [context.emit("Add", [var, epsilon], "var")], "deviation")
    normalized = context.emit("Div", [centred, deviation], "normalized")
    scaled = context.emit("Mul", [normalized, context.emit("Reshape", [scale, columns], "scale")], "scaled")
    shifted = [scaled, context.emit("Reshape", [bias, columns], "bias")]
    momentum = context.known_value("momentum", 0.9)
    for index, (old, current) in enumerate(((old_mean, mean), (old_var, var)), 1):
        if index < len(context.outputs) and context.outputs[index]:
            _write_running(context, index, old, current, momentum, wide, kept[index + 2])
    del context.outputs[1:]
    if wide == dtype:
        context.replace("Add", shifted)
    else:
        context.replace("Cast", [context.emit("Add", shifted, "y")], to=DTYPE_NUMBERS[dtype])


def _write_running(
    context: AdapterContext, index: int, old: str, current: str, momentum: float, wide: str, kept: str | None
) -> None:
    """Writes the running mean or variance: a weighted sum of the old one and the one of this batch."""
    row = context.emit("Reshape", [current, context.constant([-1], "row")], "current")
    parts = [
        context.emit("Mul", [old, context.constant(momentum, "momentum", wide)], "old"),
        context.emit("Mul", [row, context.constant(1 - momentum, "rest", wide)], "new"),
    ]
    if kept in (None, wide):
        context.emit_after("Add", parts, context.outputs[index])
    else:
        context.emit_after(
            "Cast", [context.emit("Add", parts, "running")], context.outputs[index], to=DTYPE_NUMBERS[kept]
        )


changed("BatchNormalization", 15, "from it on, training computes the statistics of 16-bit inputs in float32")


@exact("BatchNormalization", 15)
def statistics_have_type_of_input(crossing: AdapterContext) -> bool:
    """True when the node computes no statistics, or has an input of float32 or float64."""
    return crossing.value_or_default("training_mode") == 0 or crossing.dtype(0) in ("float32", "float64")


# GroupNormalization -------------------------------------------------------------------------------------------------

changed("GroupNormalization", 21, "scale and bias are for each channel, not for each group, from then on")


@upward("GroupNormalization", 21)
def repeat_scales_for_channels(context: AdapterContext) -> None:
    """Repeats scale and bias, which are for each group below 21, for the channels of the group. Sets stash_type: below
    21 the statistics are computed in the type of the input, from 21 on in float32 by default.
    """
    dtype = context.known_dtype(0)
    if dtype != "float32":
        context.set(
            "stash_type", DTYPE_NUMBERS[dtype], "statistics are computed in the type of the input below opset 21"
        )
    groups = context.emit("Shape", [context.inputs[1]], "groups")
    channels = context.emit("Shape", [context.inputs[0]], "channels", start=1, end=2)
    sizes = context.emit("Concat", [groups, context.emit("Div", [channels, groups], "each")], "sizes", axis=0)
    for index in (1, 2):
        column = context.emit("Reshape", [context.inputs[index], context.constant([-1, 1], "column")], "column")
        repeated = context.emit("Expand", [column, sizes], "repeated")
        context.inputs[index] = context.emit("Reshape", [repeated, context.constant([-1], "row")], "of_channels")


# MeanVarianceNormalization ------------------------------------------------------------------------------------------


@downward("MeanVarianceNormalization", 9)
def write_mean_variance(context: AdapterContext) -> None:
    """Computes the mean, the deviation, and the variance of the deviation, as the document says.

    The function body computes the variance as the mean of the squares less the square of the mean: rounding makes it
    negative where the elements are alike, and its constants are float32 for every type. 16-bit types, in which its
    epsilon is 0, are computed in float32.
    """
    dtype = context.known_dtype()
    axes = context.attributes.get("axes")
    computed = "float32" if dtype in _HALVES else dtype
    data = widened(context, context.inputs[0], dtype, computed)
    deviation = context.emit("Sub", [data, _mean(context, data, axes, "mean")], "deviation")
    variance = _mean(context, context.emit("Mul", [deviation, deviation], "square"), axes, "variance")
    spread = context.emit("Sqrt", [variance], "spread")
    divisor = context.emit("Add", [spread, context.constant(1e-9, "epsilon", computed)], "divisor")
    if computed == dtype:
        context.replace("Div", [deviation, divisor])
    else:
        context.replace("Cast", [context.emit("Div", [deviation, divisor], "normal")], to=DTYPE_NUMBERS[dtype])


def _mean(context: AdapterContext, data: str, axes: AttributeProto | None, hint: str) -> str:
    """Emits the mean over the axes of the node."""
    name = context.emit("ReduceMean", [data], hint, axes=[0, 2, 3] if axes is None else None)
    if axes is not None:
        # The attribute of the node may refer to an attribute of the enclosing function.
        context.before[-1].attributes["axes"] = axes
    return name


changed("MeanVarianceNormalization", 13, "from then on, onnx's shape inference fails on it without axes", down=always)


@edited_upward("MeanVarianceNormalization", 13)
def write_default_axes(crossing: AdapterContext) -> None:
    """Keep every node. Writes out the default of axes: from 13 on, onnx infers types by a function body that refers
    to axes.
    """
    if not crossing.has("axes"):
        crossing.set("axes", [0, 2, 3], "onnx infers no types from opset 13 on unless axes is written")


# LayerNormalization -------------------------------------------------------------------------------------------------


@downward("LayerNormalization", 17)
def write_layer_normalization(context: AdapterContext) -> None:
    """Computes the mean, the deviation, and the variance of the deviation.

    The function body computes the variance as the mean of the squares less the square of the mean. Rounding cancels
    this where the mean is large; what runtimes compute does not cancel.
    """
    axes = _axes(context)
    dtype = context.input_type(0).dtype
    stash = context.known_value_or_default("stash_type")
    if axes is None or dtype is None or stash not in (TensorProto.FLOAT, TensorProto.DOUBLE):
        expand(context)
        return
    own, epsilon = DTYPE_NUMBERS[dtype], context.known_value("epsilon", 1e-5)
    data, scale = context.inputs[0], context.inputs[1]
    bias = context.inputs[2] if context.uses_input(2) else ""
    values = data if own == stash else context.emit("Cast", [data], "wide", to=stash)
    mean = context.emit("ReduceMean", [values], "mean", axes=axes, keepdims=1)
    deviation = context.emit("Sub", [values, mean], "deviation")
    variance = context.emit(
        "ReduceMean", [context.emit("Mul", [deviation, deviation], "square")], "variance", axes=axes
    )
    wide = np.float32 if stash == TensorProto.FLOAT else np.float64
    raised = context.emit("Add", [variance, context.constant(epsilon, "epsilon", wide)], "raised")
    spread = context.emit("Sqrt", [raised], "spread")
    normal = context.emit("Div", [deviation, spread], "normal")
    if own != stash:
        normal = context.emit("Cast", [normal], "narrow", to=own)
    given = list(context.outputs)
    del context.outputs[1:]
    if bias:
        context.replace("Add", [context.emit("Mul", [normal, scale], "scaled"), bias])
    else:
        context.replace("Mul", [normal, scale])
    if len(given) > 1 and given[1]:
        context.emit_after("Identity", [mean], given[1])
    if len(given) > 2 and given[2]:
        context.emit_after("Reciprocal", [spread], given[2])


def _axes(context: AdapterContext) -> list[int] | None:
    """Gives the axes from `axis` to the last, None where their number is unknown."""
    axis, rank = context.known_value_or_default("axis"), context.rank(0)
    if axis < 0:
        return list(range(axis, 0))
    return None if rank is None else list(range(axis - rank, 0))
