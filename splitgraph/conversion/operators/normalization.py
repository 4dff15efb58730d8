"""Batch, instance, group and mean variance normalization."""

from __future__ import annotations

from splitgraph.attribute_values import UNRESOLVED
from splitgraph.conversion.nodes.crossing import Crossing
from splitgraph.conversion.operators.predicates import RANK_HINT
from splitgraph.conversion.operators.registry import (
    always,
    changed,
    downward,
    exact,
    exact_downward,
    exact_upward,
    unchanged,
    upward,
)
from splitgraph.conversion.writing.adapter_context import Inexact, Step
from splitgraph.conversion.writing.function_bodies import expand
from splitgraph.deferred import np
from splitgraph.onnx_proto import AttributeProto, TensorProto
from splitgraph.value_type import DTYPE_NUMBERS

_HALVES = frozenset({"float16", "bfloat16"})


unchanged("BatchNormalization", 9)
changed("BatchNormalization", 6, "below it, the input has four dimensions", up=always, hint=RANK_HINT)


@exact_downward("BatchNormalization", 6)
def rank_is_4(c: Crossing) -> bool:
    """The older version takes images only."""
    return c.rank(0) == 4


@downward("BatchNormalization InstanceNormalization", 6)
def as_images(step: Step) -> None:
    """Below 6, the input is an image: dimensions of 1 behind two or three change neither which elements share their
    statistics nor how many they are.
    """
    rank = step.known_rank(0)
    if step.form.op_type == "BatchNormalization":
        step.set("consumed_inputs", [0, 0, 0, 1, 1], "BatchNormalization-1 wants it, to no effect")
    if rank == 4:
        return
    if not 2 <= rank < 4:
        raise Inexact(f"below it, the input has four dimensions, and this one {rank}")
    axes = list(range(rank, 4))
    step.inputs[0] = step.emit("Unsqueeze", [step.inputs[0]], "image", axes=axes)
    given = step.redirect(0, "normalized")
    step.emit_after("Squeeze", [step.outputs[0]], given, axes=axes)


changed(
    "BatchNormalization", 7, "below it, is_test tells inference from training; from then on the number of outputs does"
)


@exact("BatchNormalization", 7)
def batch_normalization_mode(c: Crossing) -> bool:
    """BatchNormalization 6|7: test mode with one output, or training with all five; one scale for each channel."""
    others = _outputs_after_first(c)
    if c.value("spatial", 1) != 1 or others not in (0, 4):
        return False
    if not c.upward:
        if others == 0:
            c.set("is_test", 1, "below opset 7 BatchNormalization is in training mode unless is_test is set")
        return True
    if c.value("is_test", 0) is UNRESOLVED or c.is_set("is_test") != (others == 0):
        return False
    c.drop("is_test", why="from opset 7 on the number of outputs tells inference from training")
    return True


def _outputs_after_first(c: Crossing) -> int:
    return sum(c.uses_output(index) for index in range(1, len(c.facts.node.output)))


@upward("BatchNormalization", 7)
def mode_by_outputs(step: Step) -> None:
    """Below 7, is_test tells inference from training; from then on whether there are outputs after the first. Where
    these are not read, inference loses them and training gets them. spatial=0 is as in `activations_as_channels`.
    """
    if step.known_value("spatial", 1) == 0:
        _follow_scale(step)
    if step.known_value("is_test", 0):
        read = [name for name in step.outputs[1:] if name and step.is_read(name)]
        if read:
            raise Inexact(f"inference gives one output, and {read[0]!r} is read")
        del step.outputs[1:]
    else:
        _name_statistics(step)
    step.drop("is_test", why="from opset 7 on the number of outputs tells inference from training")


def _follow_scale(step: Step) -> None:
    """spatial=0 below 7, where the document gives scale one dimension: of channels or of all activations."""
    shape, scale = step.shape(0), step.shape(1)
    known = shape is not None and scale is not None and len(scale) == 1 and len(shape) >= 2 and scale[0] is not None
    if known and shape is not None and scale is not None:
        if len(shape) == 2 or (scale[0] == shape[1] and step.known_is_set("is_test")):
            step.drop("spatial", why="each channel has a scale of its own in both readings")
            return
        sizes = [size for size in shape[1:] if isinstance(size, int)]
        if len(sizes) == len(shape) - 1 and scale[0] == np.prod(sizes):
            activations_as_channels(step)
            return
    raise Inexact("spatial=0 needs shapes that say whether scale is for channels or for activations", "declare them")


@upward("BatchNormalization", 9)
@downward("BatchNormalization", 7)
def activations_as_channels(step: Step) -> None:
    """spatial=0 normalizes each activation by itself, as the operator does for channels when the input is folded into
    a matrix and everything else into rows, as the document advises.
    """
    if step.known_value("spatial", 1) != 0:
        _mode_by_is_test(step)
        return
    data, scale = step.inputs[0], step.inputs[1]
    step.inputs[0] = step.emit("Flatten", [data], "folded", axis=1)
    for index in range(1, 5):
        step.inputs[index] = step.emit("Reshape", [step.inputs[index], step.constant([-1], "row")], "row")
    for index, name in enumerate(step.outputs):
        if name:
            shape = step.emit("Shape", [scale if index else data], "shape")
            unfolded = step.redirect(index, "folded")
            step.emit_after("Reshape", [step.outputs[index], shape], unfolded)
    step.drop("spatial", why=f"the activations are channels of a matrix {step.side}")
    if not step.upward:
        _mode_by_is_test(step)


def _mode_by_is_test(step: Step) -> None:
    """Below 7: inference says so; training names all five outputs."""
    if step.upward:
        raise Inexact("spatial is known only at run time")
    if not any(step.outputs[1:]):
        step.set("is_test", 1, "below opset 7 BatchNormalization is in training mode unless is_test is set")
        return
    _name_statistics(step)


def _name_statistics(step: Step) -> None:
    """Training has five outputs, of which the last two stay unnamed where they are."""
    step.outputs.extend([""] * (5 - len(step.outputs)))
    for index, hint in ((1, "mean"), (2, "var")):
        step.outputs[index] = step.outputs[index] or step.new_name(hint)


changed("BatchNormalization", 14, "below it, training has five outputs; from then on three, with training_mode=1")


@exact("BatchNormalization", 14)
def batch_normalization_inference(c: Crossing) -> bool:
    """BatchNormalization 9|14: inference, which has one output on both sides."""
    return _outputs_after_first(c) == 0 and c.value("training_mode", 0) == 0


@upward("BatchNormalization", 14)
def training_of_three_outputs(step: Step) -> None:
    """Below 14, training has five outputs, of which 14 lacks the last two: nobody may read the variance, which was
    each runtime's own business; the mean is computed again.
    """
    mean, variance = (step.outputs[index] if index < len(step.outputs) else "" for index in (3, 4))
    if variance and step.is_read(variance):
        raise Inexact(f"training gives no saved_var, and {variance!r} is read", "remove the reader")
    if mean and step.is_read(mean):
        axes = [0, *range(2, step.known_rank(0))]
        step.emit_after("ReduceMean", [step.inputs[0]], mean, axes=axes, keepdims=0)
    step.outputs[:] = [
        name or step.new_name(hint) for name, hint in zip([*step.outputs, ""], ("y", "mean", "var"), strict=False)
    ]
    step.set("training_mode", 1, "from opset 14 on the attribute tells inference from training")


@downward("BatchNormalization", 14, 15)
def training_written_out(step: Step) -> None:
    """Training is written as what the document says that it computes: below 14 runtimes have none. From 15 on, 16-bit
    floats are computed in float32.
    """
    if not step.known_is_set("training_mode"):
        raise Inexact("its element types are not allowed below it")
    rank, dtype = step.known_rank(0), step.known_dtype(0)
    kept = [step.input_type(index).dtype for index in range(5)]
    wide = "float32" if dtype in _HALVES and step.upper.since_version == 15 else dtype
    data, scale, bias, old_mean, old_var = (_cast(step, name, kept[i], wide) for i, name in enumerate(step.inputs))
    axes = [0, *range(2, rank)]
    columns = step.constant([-1, *[1] * (rank - 2)], "columns")
    mean = step.emit("ReduceMean", [data], "mean", axes=axes, keepdims=1)
    centred = step.emit("Sub", [data, mean], "centred")
    var = step.emit("ReduceMean", [step.emit("Mul", [centred, centred], "squares")], "var", axes=axes, keepdims=1)
    epsilon = step.constant(step.known_value("epsilon", 1e-5), "epsilon", wide)
    deviation = step.emit("Sqrt", [step.emit("Add", [var, epsilon], "var")], "deviation")
    normalized = step.emit("Div", [centred, deviation], "normalized")
    scaled = step.emit("Mul", [normalized, step.emit("Reshape", [scale, columns], "scale")], "scaled")
    shifted = [scaled, step.emit("Reshape", [bias, columns], "bias")]
    momentum = step.known_value("momentum", 0.9)
    for index, (old, current) in enumerate(((old_mean, mean), (old_var, var)), 1):
        if index < len(step.outputs) and step.outputs[index]:
            _running(step, index, old, current, momentum, wide, kept[index + 2])
    del step.outputs[1:]
    if wide == dtype:
        step.replace("Add", shifted)
    else:
        step.replace("Cast", [step.emit("Add", shifted, "y")], to=DTYPE_NUMBERS[dtype])


def _running(step: Step, index: int, old: str, current: str, momentum: float, wide: str, kept: str | None) -> None:
    """The running mean or variance: a weighted sum of the old one and that of this batch."""
    row = step.emit("Reshape", [current, step.constant([-1], "row")], "current")
    parts = [
        step.emit("Mul", [old, step.constant(momentum, "momentum", wide)], "old"),
        step.emit("Mul", [row, step.constant(1 - momentum, "rest", wide)], "new"),
    ]
    if kept in (None, wide):
        step.emit_after("Add", parts, step.outputs[index])
    else:
        step.emit_after("Cast", [step.emit("Add", parts, "running")], step.outputs[index], to=DTYPE_NUMBERS[kept])


def _cast(step: Step, name: str, dtype: str | None, wide: str) -> str:
    return name if dtype == wide else step.emit("Cast", [name], "wide", to=DTYPE_NUMBERS[wide])


changed("BatchNormalization", 15, "from it on, training computes the statistics of 16-bit inputs in float32")


@exact("BatchNormalization", 15)
def batch_statistics_in_float(c: Crossing) -> bool:
    """BatchNormalization 14|15: no statistics are computed, or they are computed in the type of the input anyway."""
    return c.value("training_mode", 0) == 0 or c.dtype(0) in ("float32", "float64")


unchanged("InstanceNormalization LpNormalization", 22)
changed("InstanceNormalization", 6, "below it, the input has four dimensions", up=always, hint=RANK_HINT)
exact_downward("InstanceNormalization", 6)(rank_is_4)
changed("GroupNormalization", 21, "scale and bias are for each channel, not for each group, from then on")


@upward("GroupNormalization", 21)
def scales_of_channels(step: Step) -> None:
    """Below 21, scale and bias are for each group: each is repeated for the channels of its group. The statistics are
    computed in the type of the input, which from 21 on is float32 unless stash_type says otherwise.
    """
    dtype = step.known_dtype(0)
    if dtype != "float32":
        step.set("stash_type", DTYPE_NUMBERS[dtype], "statistics are computed in the type of the input below opset 21")
    groups = step.emit("Shape", [step.inputs[1]], "groups")
    channels = step.emit("Shape", [step.inputs[0]], "channels", start=1, end=2)
    sizes = step.emit("Concat", [groups, step.emit("Div", [channels, groups], "each")], "sizes", axis=0)
    for index in (1, 2):
        column = step.emit("Reshape", [step.inputs[index], step.constant([-1, 1], "column")], "column")
        repeated = step.emit("Expand", [column, sizes], "repeated")
        step.inputs[index] = step.emit("Reshape", [repeated, step.constant([-1], "row")], "of_channels")


@downward("MeanVarianceNormalization", 9)
def mean_and_deviation(step: Step) -> None:
    """Mean, deviation, variance of the deviation, as the document has it. The function body takes the variance as the
    mean of the squares less the square of the mean, which rounding makes negative where the elements are alike, and
    its constants are float32 for every type. 16-bit types, in which its epsilon is 0, are computed in float32.
    """
    dtype = step.known_dtype()
    axes = step.attributes.get("axes")
    computed = "float32" if dtype in _HALVES else dtype
    data = step.inputs[0]
    if computed != dtype:
        data = step.emit("Cast", [data], "wide", to=DTYPE_NUMBERS[computed])
    deviation = step.emit("Sub", [data, _mean(step, data, axes, "mean")], "deviation")
    variance = _mean(step, step.emit("Mul", [deviation, deviation], "square"), axes, "variance")
    spread = step.emit("Sqrt", [variance], "spread")
    divisor = step.emit("Add", [spread, step.constant(1e-9, "epsilon", computed)], "divisor")
    if computed == dtype:
        step.replace("Div", [deviation, divisor])
    else:
        step.replace("Cast", [step.emit("Div", [deviation, divisor], "normal")], to=DTYPE_NUMBERS[dtype])


def _mean(step: Step, data: str, axes: AttributeProto | None, hint: str) -> str:
    name = step.emit("ReduceMean", [data], hint, axes=[0, 2, 3] if axes is None else None)
    if axes is not None:
        # As the node has it, which may be a reference to an attribute of the enclosing function.
        step.before[-1].attributes["axes"] = axes
    return name


changed("MeanVarianceNormalization", 13, "from then on, onnx's shape inference fails on it without axes", down=always)


@exact_upward("MeanVarianceNormalization", 13)
def mean_variance_axes(c: Crossing) -> bool:
    """MeanVarianceNormalization 9|13, upward: the function body that onnx infers types by refers to axes, also where a
    node leaves it out; its default is written out.
    """
    if not c.has("axes"):
        c.set("axes", [0, 2, 3], "onnx infers no types from opset 13 on unless axes is written")
    return True


@downward("LayerNormalization", 17)
def layer_normalization_written_out(step: Step) -> None:
    """Mean, deviation, variance of the deviation. The specification's function body takes the variance as the mean of
    the squares less the square of the mean, which is the same but for rounding: where the mean is large it cancels, and
    what runtimes compute does not.
    """
    axes = _axes(step)
    dtype = step.input_type(0).dtype
    stash = step.known_value("stash_type", TensorProto.FLOAT)
    if axes is None or dtype is None or stash not in (TensorProto.FLOAT, TensorProto.DOUBLE):
        expand(step)
        return
    own, epsilon = DTYPE_NUMBERS[dtype], step.known_value("epsilon", 1e-5)
    data, scale = step.inputs[0], step.inputs[1]
    bias = step.inputs[2] if step.uses_input(2) else ""
    values = data if own == stash else step.emit("Cast", [data], "wide", to=stash)
    mean = step.emit("ReduceMean", [values], "mean", axes=axes, keepdims=1)
    deviation = step.emit("Sub", [values, mean], "deviation")
    variance = step.emit("ReduceMean", [step.emit("Mul", [deviation, deviation], "square")], "variance", axes=axes)
    wide = np.float32 if stash == TensorProto.FLOAT else np.float64
    raised = step.emit("Add", [variance, step.constant(epsilon, "epsilon", wide)], "raised")
    spread = step.emit("Sqrt", [raised], "spread")
    normal = step.emit("Div", [deviation, spread], "normal")
    if own != stash:
        normal = step.emit("Cast", [normal], "narrow", to=own)
    given = list(step.outputs)
    del step.outputs[1:]
    if bias:
        step.replace("Add", [step.emit("Mul", [normal, scale], "scaled"), bias])
    else:
        step.replace("Mul", [normal, scale])
    if len(given) > 1 and given[1]:
        step.emit_after("Identity", [mean], given[1])
    if len(given) > 2 and given[2]:
        step.emit_after("Reciprocal", [spread], given[2])


def _axes(step: Step) -> list[int] | None:
    """The axes from `axis` to the last, None where their number is not known."""
    axis, rank = step.known_value("axis", -1), step.rank(0)
    if axis < 0:
        return list(range(axis, 0))
    return None if rank is None else list(range(axis - rank, 0))


unchanged("LRN", 13)
