"""If and Loop below opset 11."""

from __future__ import annotations

from functools import partial

import onnx
from onnx import TensorProto, helper

from splitgraph.conversion.adapters.registry import downward
from splitgraph.conversion.step import Inexact, Step


@downward("If", 11)
def branches_of_one_shape(step: Step) -> None:
    """Below 11, both branches give the same shapes: so they do where the shapes of the outputs are static, unless these
    are the shapes of the one branch that a known condition chooses.
    """
    if step.elements(0) is not None:
        raise Inexact("below it, both branches must give the same shapes, and one of them never runs")
    for index, name in enumerate(step.outputs):
        shape = step.output_type(index).shape
        if name and (shape is None or not all(isinstance(size, int) for size in shape)):
            raise Inexact(
                "below it, both branches must give the same shapes", "declare the shapes of what the branches give"
            )


@downward("Loop", 11)
def something_to_carry(step: Step) -> None:
    """Below 11, a loop carries at least one value: a number that nobody reads."""
    if len(step.inputs) > 2:
        raise Inexact("its element types are not allowed below it")
    if step.form.original is None:
        raise Inexact("its body is not the model's")
    step.inputs[:] = [*step.inputs, step.constant(0, "carried")]
    step.outputs.insert(0, step.new_name("carried"))
    step.form.wrap = partial(_carry, step.new_name("before"), step.new_name("after"))


def _carry(before: str, after: str, node: onnx.NodeProto) -> None:
    """Let the body of a loop hand a number on."""
    body = next(held.g for held in node.attribute if held.name == "body")
    body.node.append(helper.make_node("Identity", [before], [after]))
    body.input.append(helper.make_tensor_value_info(before, TensorProto.INT64, []))
    outputs = [body.output[0], helper.make_tensor_value_info(after, TensorProto.INT64, []), *body.output[1:]]
    held = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in outputs]
    del body.output[:]
    body.output.extend(held)
