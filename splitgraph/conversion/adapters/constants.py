"""ConstantFill, which was experimental, from opset 9 on."""

from __future__ import annotations

from onnx import TensorProto, helper

from splitgraph.conversion.adapters.registry import upward
from splitgraph.conversion.shape_nodes import as_int64
from splitgraph.conversion.step import Inexact, Step

# The values that each type besides float32 holds: the first, and the first beyond.
_BOUNDS = {
    TensorProto.BOOL: (0, 2),
    TensorProto.INT32: (-(2**31), 2**31),
    TensorProto.INT64: (-(2**63), 2**63),
}


@upward("ConstantFill", 9)
def constant_of_shape_instead(step: Step) -> None:
    """ConstantOfShape takes the value as a tensor, and the shape as its input: the attribute shape, the shape of the
    input, or with input_as_shape what the input holds, each followed by extra_shape.
    """
    dtype, value = step.known_value("dtype", TensorProto.FLOAT), step.known_value("value", 0.0)
    if dtype != TensorProto.FLOAT and dtype not in _BOUNDS:
        raise Inexact("ConstantFill gives float32, int32, int64 and bool only")
    if dtype in _BOUNDS and not (value.is_integer() and _BOUNDS[dtype][0] <= value < _BOUNDS[dtype][1]):
        raise Inexact(f"{value} is no element of its type, and ConstantFill does not say how it is rounded")
    held = helper.make_tensor("", dtype, [1], [value if dtype == TensorProto.FLOAT else int(value)])
    step.reasons["shape"] = "ConstantFill was experimental; ConstantOfShape replaces it"
    step.replace("ConstantOfShape", [_shape(step)], value=held)


def _shape(step: Step) -> str:
    given, extra = step.known_value("shape"), [int(size) for size in step.known_value("extra_shape", ())]
    if not step.uses_input(0):
        if given is None or extra:
            raise Inexact("without an input its shape, and nothing else, must be an attribute")
        return step.constant(given, "shape")
    if given is not None:
        raise Inexact("it has an attribute shape beside an input that gives the shape")
    if not step.known_value("input_as_shape", 0):
        shape = step.emit("Shape", [step.inputs[0]], "shape")
    elif step.input_type(0).dtype == "int64":
        shape = step.inputs[0]
    else:
        shape = as_int64(step, step.inputs[0], "shape")
    return step.emit("Concat", [shape, step.constant(extra, "extra_shape")], "whole_shape", axis=0) if extra else shape
