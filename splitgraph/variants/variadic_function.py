"""VariadicSplit inside an ONNX file: the body of the model-local function VariadicSplit_<n>, in plain ONNX.

Inputs (data, axis, split_lengths) are those of the OpenVINO operator, so that its importer can map a call onto the real
one; hence the body takes axis and lengths at run time, cuts with Slice, and puts the rest in place of a -1. It uses no
form of an operator that changed after opset 11, so converting the model to another opset leaves it as it is.
"""

from __future__ import annotations

from functools import lru_cache

from splitgraph.onnx_proto import AttributeProto, FunctionProto, NodeProto, TensorProto
from splitgraph.variants.variadic_split_1 import DOMAIN, FUNCTION_PREFIX

# Gather with a negative index, for a negative axis, exists from opset 11 on.
LOWEST_OPSET = 11


def function_name(parts: int) -> str:
    """The name of the function with this many outputs (an overload would say it better, but the reference evaluator
    cannot run those).
    """
    return f"{FUNCTION_PREFIX}{parts}"


def parts_of(name: str) -> int | None:
    """The number of outputs that a function name stands for; None for any other name."""
    digits = name.removeprefix(FUNCTION_PREFIX)
    return int(digits) if name.startswith(FUNCTION_PREFIX) and digits.isdigit() and not digits.startswith("0") else None


def variadic_function(parts: int, opset: int) -> FunctionProto:
    """The function with `parts` outputs, importing ai.onnx at `opset`."""
    from onnx import helper

    return helper.make_function(
        DOMAIN,
        function_name(parts),
        ["data", "axis", "split_lengths"],
        [f"part_{index}" for index in range(parts)],
        list(_body(parts)),
        [helper.make_opsetid("", opset)],
    )


def is_variadic_function(function: FunctionProto) -> bool:
    """True when the function is one that splitgraph wrote: then a call of it means VariadicSplit and nothing else."""
    parts = parts_of(function.name)
    if (
        function.domain != DOMAIN
        or parts != len(function.output)
        or list(function.input) != ["data", "axis", "split_lengths"]
    ):
        return False
    return parts is not None and [_meaning(node) for node in function.node] == list(_body_meaning(parts))


@lru_cache(maxsize=64)
def _body_meaning(parts: int) -> tuple[object, ...]:
    return tuple(_meaning(node) for node in _body(parts))


def _meaning(node: NodeProto) -> object:
    """What a node computes, whatever its name and documentation, and however its constants are stored."""
    from onnx import numpy_helper

    attributes: dict[str, object] = {}
    for attribute in node.attribute:
        if attribute.type == AttributeProto.TENSOR:
            tensor = attribute.t
            elements = numpy_helper.to_array(tensor).tolist() if tensor.data_type == TensorProto.INT64 else None
            attributes[attribute.name] = (tensor.data_type, tuple(tensor.dims), elements)
        elif attribute.type == AttributeProto.INT and not attribute.ref_attr_name:
            attributes[attribute.name] = attribute.i
        else:
            return None
    domain = "" if node.domain == "ai.onnx" else node.domain
    return domain, node.op_type, tuple(node.input), tuple(node.output), attributes


def _constant(name: str, values: list[int]) -> NodeProto:
    from onnx import helper

    held = helper.make_tensor(name, TensorProto.INT64, [len(values)], values)
    return helper.make_node("Constant", [], [name], value=held)


@lru_cache(maxsize=64)
def _body(parts: int) -> tuple[NodeProto, ...]:
    from onnx import helper

    node = helper.make_node
    nodes = [
        _constant("minus_one", [-1]),
        _constant("one", [1]),
        node("Cast", ["axis"], ["axis_int64"], to=TensorProto.INT64),
        node("Reshape", ["axis_int64", "one"], ["axes"]),
        node("Cast", ["split_lengths"], ["given"], to=TensorProto.INT64),
        node("Shape", ["data"], ["shape"]),
        node("Gather", ["shape", "axes"], ["dim"], axis=0),
        # The lengths sum to the dimension; with a -1 among them, to what precedes the rest, less one.
        node("ReduceSum", ["given"], ["sum"], keepdims=0),
        node("Sub", ["dim", "sum"], ["difference"]),
        node("Sub", ["difference", "one"], ["rest"]),
        node("Equal", ["given", "minus_one"], ["is_rest"]),
        node("Where", ["is_rest", "rest", "given"], ["lengths"]),
        _constant("bound_0", [0]),
    ]
    for index in range(parts):
        nodes.append(_constant(f"from_{index}", [index]))
        nodes.append(_constant(f"to_{index}", [index + 1]))
        nodes.append(node("Slice", ["lengths", f"from_{index}", f"to_{index}"], [f"length_{index}"]))
        nodes.append(node("Add", [f"bound_{index}", f"length_{index}"], [f"bound_{index + 1}"]))
        nodes.append(node("Slice", ["data", f"bound_{index}", f"bound_{index + 1}", "axes"], [f"part_{index}"]))
    return tuple(nodes)
