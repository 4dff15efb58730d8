"""Inlining model-local functions, which some readers of ONNX do not know, by onnx's own inliner."""

from __future__ import annotations

import onnx
import onnx.inliner

from splitgraph.onnx_proto import ModelProto, TensorProto
from splitgraph.variants.variadic_function import is_variadic_function


def inline_functions(model: ModelProto) -> ModelProto:
    """A copy of a valid model with every call of a local function replaced by the function's nodes; VariadicSplit
    functions stay, and a model without others comes back itself.

    Weights pass by the inliner, which could not take more than 2 GiB of them. Raises ValueError where it refuses the
    model: functions that import another opset than the model does.
    """
    ours = [(function.domain, function.name) for function in model.functions if is_variadic_function(function)]
    if len(ours) == len(model.functions):
        return model
    light = _without_weights(model)
    try:
        inlined: ModelProto = onnx.inliner.inline_selected_functions(light, ours, exclude=True)
    except RuntimeError as error:
        raise ValueError(str(error)) from error
    del inlined.graph.initializer[:]
    inlined.graph.initializer.extend(model.graph.initializer)
    return inlined


def _without_weights(model: ModelProto) -> ModelProto:
    """The model with the names of its initializers only, which new names must not be."""
    light = ModelProto()
    for field, content in model.ListFields():
        if field.name != "graph":
            _set(light, field.name, content)
    for field, content in model.graph.ListFields():
        if field.name != "initializer":
            _set(light.graph, field.name, content)
    light.graph.initializer.extend(
        TensorProto(name=tensor.name, data_type=tensor.data_type, dims=[0]) for tensor in model.graph.initializer
    )
    return light


def _set(message: object, name: str, content: object) -> None:
    held = getattr(message, name)
    if hasattr(held, "extend"):
        held.extend(content)
    elif hasattr(held, "CopyFrom"):
        held.CopyFrom(content)
    else:
        setattr(message, name, content)
