"""LayerNormalization below opset 17, where it does not exist."""

from __future__ import annotations

from splitgraph.conversion.adapters.registry import downward
from splitgraph.conversion.expansion import expand
from splitgraph.conversion.step import Step
from splitgraph.deferred import np
from splitgraph.onnx_proto import TensorProto
from splitgraph.value_type import DTYPE_NUMBERS


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
