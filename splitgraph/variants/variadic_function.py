"""VariadicSplit inside an ONNX file: the body of the model-local function VariadicSplit_<n>, in plain ONNX.

Inputs (data, axis, split_lengths) are those of the OpenVINO operator, so that its importer can map a call onto the real
one; hence the body takes axis and lengths at run time, cuts with Slice, and puts the rest in place of a -1. It uses no
form of an operator that changed after opset 11, so converting the model to another opset leaves it as it is.
"""

from __future__ import annotations

import struct
from functools import lru_cache

from splitgraph.node_making import make_node
from splitgraph.onnx_proto import AttributeProto, FunctionProto, NodeProto, OperatorSetIdProto, TensorProto
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
    return FunctionProto(
        domain=DOMAIN,
        name=function_name(parts),
        input=["data", "axis", "split_lengths"],
        output=[f"part_{index}" for index in range(parts)],
        node=_body(parts),
        opset_import=[OperatorSetIdProto(domain="", version=opset)],
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
    attributes: dict[str, object] = {}
    for attribute in node.attribute:
        if attribute.type == AttributeProto.TENSOR:
            tensor = attribute.t
            elements = _int64_elements(tensor) if tensor.data_type == TensorProto.INT64 else None
            attributes[attribute.name] = (tensor.data_type, tuple(tensor.dims), elements)
        elif attribute.type == AttributeProto.INT and not attribute.ref_attr_name:
            attributes[attribute.name] = attribute.i
        else:
            return None
    domain = "" if node.domain == "ai.onnx" else node.domain
    return domain, node.op_type, tuple(node.input), tuple(node.output), attributes


def _int64_elements(tensor: TensorProto) -> tuple[int, ...]:
    raw = tensor.raw_data
    return struct.unpack(f"<{len(raw) // 8}q", raw[: len(raw) // 8 * 8]) if raw else tuple(tensor.int64_data)


def _constant(name: str, values: list[int]) -> NodeProto:
    held = TensorProto(name=name, data_type=TensorProto.INT64, dims=[len(values)], int64_data=values)
    return make_node("Constant", [], [name], value=held)


@lru_cache(maxsize=64)
def _body(parts: int) -> tuple[NodeProto, ...]:
    nodes = [
        _constant("minus_one", [-1]),
        _constant("one", [1]),
        make_node("Cast", ["axis"], ["axis_int64"], to=TensorProto.INT64),
        make_node("Reshape", ["axis_int64", "one"], ["axes"]),
        make_node("Cast", ["split_lengths"], ["given"], to=TensorProto.INT64),
        make_node("Shape", ["data"], ["shape"]),
        make_node("Gather", ["shape", "axes"], ["dim"], axis=0),
        # The lengths sum to the dimension; with a -1 among them, to what precedes the rest, less one.
        make_node("ReduceSum", ["given"], ["sum"], keepdims=0),
        make_node("Sub", ["dim", "sum"], ["difference"]),
        make_node("Sub", ["difference", "one"], ["rest"]),
        make_node("Equal", ["given", "minus_one"], ["is_rest"]),
        make_node("Where", ["is_rest", "rest", "given"], ["lengths"]),
        _constant("bound_0", [0]),
    ]
    for index in range(parts):
        nodes.append(_constant(f"from_{index}", [index]))
        nodes.append(_constant(f"to_{index}", [index + 1]))
        nodes.append(make_node("Slice", ["lengths", f"from_{index}", f"to_{index}"], [f"length_{index}"]))
        nodes.append(make_node("Add", [f"bound_{index}", f"length_{index}"], [f"bound_{index + 1}"]))
        nodes.append(make_node("Slice", ["data", f"bound_{index}", f"bound_{index + 1}", "axes"], [f"part_{index}"]))
    return tuple(nodes)
