"""The cases of the opset reports: onnx's node tests as they are, inside an If body, inside a function, with
attributes that a call of the function gives, and with constants where real models have them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, Literal

import numpy as np
import onnx
from node_tests import node_tests
from onnx import helper, numpy_helper

from .model_cases import ModelCase, opset_of

Wrap = Literal["none", "if", "function", "references", "constants"]
WRAPS: tuple[Wrap, ...] = ("none", "if", "function", "references", "constants")

# The first IR version with model-local functions.
_FUNCTIONS_SINCE = 8
# The first opset in which an operator takes a kind of value, or an element type.
_KINDS_SINCE = {"sequence_type": 11, "optional_type": 15}
_TYPES_SINCE = {"BFLOAT16": 13, "FLOAT4E2M1": 23, "FLOAT8E8M0": 24}
_TYPES_SINCE |= dict.fromkeys(("FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ"), 19)
_TYPES_SINCE |= dict.fromkeys(("INT4", "UINT4"), 21) | dict.fromkeys(("INT2", "UINT2"), 25)
_CONDITION = "the_condition_of_the_wrap"


def has_interface(model: onnx.ModelProto, opset: int) -> bool:
    """False when an input or output is of a type that no operator of ai.onnx has at an opset: nothing could give it."""
    return all(_exists_from(value.type) <= opset for value in (*model.graph.input, *model.graph.output))


def _exists_from(declared: onnx.TypeProto) -> int:
    kind = declared.WhichOneof("value")
    if kind == "tensor_type":
        return _TYPES_SINCE.get(onnx.TensorProto.DataType.Name(declared.tensor_type.elem_type), 1)
    if kind in _KINDS_SINCE:
        return max(_KINDS_SINCE[kind], _exists_from(getattr(declared, kind).elem_type))
    return 1


def operators_of(model: onnx.ModelProto) -> set[str]:
    """The operators of a model, those of subgraphs and functions included."""
    found: set[str] = set()
    for nodes in (model.graph.node, *(function.node for function in model.functions)):
        found |= {node.op_type for node in _nodes_within(nodes)}
    return found


def _nodes_within(nodes: Sequence[onnx.NodeProto]) -> Iterator[onnx.NodeProto]:
    for node in nodes:
        yield node
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                yield from _nodes_within(attribute.g.node)


@cache
def node_cases() -> tuple[ModelCase, ...]:
    """All node tests of the installed onnx whose models import ai.onnx; their models must not be changed."""
    return tuple(
        ModelCase(case.name, case.model, case.data_sets, case.rtol, case.atol)
        for case in node_tests()
        if opset_of(case.model) is not None
    )


def wrapped(case: ModelCase, wrap: Wrap) -> ModelCase | None:
    """The case with its nodes inside another body, or with constants for inputs; None where that is not possible."""
    if wrap == "none":
        return case
    model = onnx.ModelProto()
    model.CopyFrom(case.model)
    if wrap == "function":
        _into_function(model)
        return replace(case, name=f"{case.name}[function]", model=model)
    if wrap == "references":
        _into_function(model)
        made = replace(case, name=f"{case.name}[references]", model=model)
        return made if _hand_in_attributes(model) else None
    if wrap == "constants":
        given = _hold_parameters(model, case.data_sets[0][0])
        made = replace(case, name=f"{case.name}[constants]", model=model, data_sets=[(given, case.data_sets[0][1])])
        return made if model.graph.initializer else None
    _into_branches(model)
    try:
        onnx.checker.check_model(model, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError):
        return None
    given = [([*inputs, np.array(True)], outputs) for inputs, outputs in case.data_sets]
    return replace(case, name=f"{case.name}[if]", model=model, data_sets=given)


def _into_function(model: onnx.ModelProto) -> None:
    graph = model.graph
    names = [value.name for value in graph.input]
    results = [value.name for value in graph.output]
    function = helper.make_function("tests", "Wrapped", names, results, graph.node, model.opset_import)
    model.functions.append(function)
    del graph.node[:]
    graph.node.append(helper.make_node("Wrapped", names, results, name="call", domain="tests"))
    model.opset_import.append(helper.make_opsetid("tests", 1))
    model.ir_version = max(model.ir_version, _FUNCTIONS_SINCE)


def _hand_in_attributes(model: onnx.ModelProto) -> bool:
    """Let the call of the function give the attributes of its nodes, which refer to them; False without any."""
    (function,), (call,) = model.functions, model.graph.node
    for index, node in enumerate(function.node):
        for attribute in node.attribute:
            if attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS):
                continue
            given = call.attribute.add()
            given.CopyFrom(attribute)
            given.name = f"{attribute.name}_{index}"
            function.attribute.append(given.name)
            reference = onnx.AttributeProto(name=attribute.name, type=attribute.type, ref_attr_name=given.name)
            attribute.CopyFrom(reference)
    return bool(call.attribute)


def _hold_parameters(model: onnx.ModelProto, given: Sequence[Any]) -> list[Any]:
    """Make initializers of the inputs that real models hold: all of rank 0 and 1 but the first; the other inputs."""
    graph = model.graph
    left = []
    for index, (value, data) in enumerate(zip(list(graph.input), given, strict=True)):
        tensor = _parameter(data) if index else None
        if tensor is None:
            left.append(data)
            continue
        tensor.name = value.name
        graph.initializer.append(tensor)
        graph.input.remove(value)
    # Before IR 4 an initializer had to be an input.
    model.ir_version = max(model.ir_version, 4)
    return left


def _parameter(data: Any) -> onnx.TensorProto | None:
    if isinstance(data, onnx.TensorProto):
        held = onnx.TensorProto()
        held.CopyFrom(data)
        return held if len(data.dims) <= 1 else None
    if data is None or isinstance(data, (list, dict)) or np.ndim(data) > 1:
        return None
    return numpy_helper.from_array(np.asarray(data))


def _into_branches(model: onnx.ModelProto) -> None:
    """Both branches hold the nodes, which read the graph's inputs from outside, and call their own values alike; the
    condition is an input.
    """
    graph = model.graph
    branches = {}
    for label in ("then", "else"):
        branch = helper.make_graph(graph.node, label, [], graph.output)
        _prefix_values(branch, "inner_", {value.name for value in graph.input})
        branches[f"{label}_branch"] = branch
    choice = helper.make_node("If", [_CONDITION], [value.name for value in graph.output], name="choice", **branches)
    del graph.node[:]
    graph.node.append(choice)
    graph.input.append(helper.make_tensor_value_info(_CONDITION, onnx.TensorProto.BOOL, []))


def _prefix_values(graph: onnx.GraphProto, prefix: str, outside: set[str]) -> None:
    """Rename every value of a graph and its subgraphs, but for those from outside."""

    def renamed(name: str) -> str:
        return name if not name or name in outside else prefix + name

    for held in (*graph.input, *graph.output, *graph.value_info, *graph.initializer):
        held.name = renamed(held.name)
    for node in graph.node:
        node.input[:] = map(renamed, node.input)
        node.output[:] = map(renamed, node.output)
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.GRAPH:
                _prefix_values(attribute.g, prefix, outside)
