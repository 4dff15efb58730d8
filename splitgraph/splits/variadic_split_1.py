"""OpenVINO VariadicSplit-1: parts of any lengths, one of which may be -1, the rest of the dimension.

Inputs: data (any type), axis (integer scalar or of shape [1], may be negative), split_lengths (any integer type, 1-D,
each >= 0 but at most one -1; they sum to the dimension). Outputs: as many as lengths. Inside an ONNX file it is a
model-local function of domain org.splitgraph, VariadicSplit_<number of outputs>, with the same three inputs, so that
OpenVINO's importer can map a call onto the real operator. Hence the function's body takes axis and lengths at run time,
cuts with Slice, and puts the rest in place of a -1. The body uses no form of an operator that changed after opset 11,
so converting the model to another opset leaves the body as it is.
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import Literal

from splitgraph.dim import DimLike, Facts, Obligation, sum_dims
from splitgraph.model.attributes import make_node
from splitgraph.model.onnx_proto import AttributeProto, FunctionProto, NodeProto, OperatorSetIdProto, TensorProto
from splitgraph.splits.canonical import (
    CanonicalSplit,
    SplitSite,
    certain_lengths,
    dimension_on,
    listed,
    split_by_lengths,
    split_contents,
)
from splitgraph.splits.lowering import (
    LowerRequest,
    axis_tensor,
    computed_lengths,
    copy_node,
    lengths_with_rest,
    written_axis,
)
from splitgraph.splits.shared import INTEGER_TYPES, count_matches, only_one, possible_axes, read_axis
from splitgraph.splits.variant import Variant

# Gather with a negative index, for a negative axis, exists from opset 11 on.
LOWEST_OPSET = 11
DOMAIN = "org.splitgraph"
FUNCTION_PREFIX = "VariadicSplit_"
# The metadata of a VariadicSplit node under this key says which form of Split it was, for the way back.
FORM_KEY = "splitgraph.form"


def lift(site: SplitSite) -> CanonicalSplit | None:
    """Read a VariadicSplit; lengths that are wrong in themselves are reported even when rank or axis is unknown."""
    given = _read_lengths(site)
    valid, axis = read_axis(site, vector_allowed=True)
    if given is None or not valid:
        return None
    axes = possible_axes(site, axis, lambda facts, dim: _fits(facts, dim, given))
    axis = only_one(axes)
    if not given:
        total = dimension_on(site.input(0), axis)
        if total is not None:
            site.require(total, "==", 0, code="SG204", message=f"there are no lengths, and the dimension is {total}")
        return None
    split = split_by_lengths(site, axis, dimension_on(site.input(0), axis), given, rest_allowed=True)
    if split is None:
        return None
    if axes == []:
        site.find("SG204", f"the lengths {listed(given)} fit no dimension of {site.input(0)}, whichever the axis is")
        return None
    split_contents(site, split, site.contents(0))
    return split


def _fits(facts: Facts, dim: DimLike, lengths: list[DimLike | None]) -> bool:
    """Return False if the lengths cannot sum to the dimension. With a rest or unknown lengths, the others must not
    exceed it.
    """
    certain = certain_lengths(facts, lengths, rest_allowed=True)
    known = [length for length in certain if length is not None]
    relation: Literal["==", ">="] = "==" if len(known) == len(certain) else ">="
    return facts.require(Obligation(dim, relation, sum_dims(known))) != "contradiction"


def _read_lengths(site: SplitSite) -> list[DimLike | None] | None:
    lengths, contents = site.input(2), site.contents(2)
    if lengths.dtype is not None and lengths.dtype not in INTEGER_TYPES:
        site.find("SG211", f"split_lengths must be integers, not {lengths.dtype}")
        return None
    shape = lengths.shape if contents is None else contents.shape
    if shape is not None and len(shape) != 1:
        site.find("SG211", f"split_lengths must be a 1-D tensor, not of rank {len(shape)}")
        return None
    outputs = len(site.outputs)
    count = shape[0] if shape else None
    # While a node is built it has no outputs to count, so an unknown number of lengths says nothing.
    if isinstance(count, int) and outputs and not count_matches(site, count):
        return None
    size = count if isinstance(count, int) else outputs
    if not size and not isinstance(count, int):
        return None
    return [None] * size if contents is None else list(contents.dims)


def lower(request: LowerRequest) -> None:
    """Write a call of the function VariadicSplit_<n>: constant lengths where known, -1 for a single unknown one, else a
    computed tensor.
    """
    axis = written_axis(request)
    axis_name = axis_tensor(request) if axis is None else request.builder.constant(axis, "axis")
    lengths = lengths_with_rest(request.split)
    lengths_name = computed_lengths(request) if lengths is None else request.builder.constant(lengths, "split_lengths")
    node = copy_node(
        request, [request.node.input[0], axis_name, lengths_name], request.builder.function_node(request.parts), keep=()
    )
    node.domain = DOMAIN
    request.builder.main(node)


VARIANT = Variant(
    op_type="VariadicSplit",
    domain=DOMAIN,
    since_version=1,
    inputs=(3, 3),
    outputs=(0, None),
    attributes={},
    dtypes=None,
    lift=lift,
    lower=lower,
)


# The function in an ONNX file ----------------------------------------------------------------------------------------


def function_name(parts: int) -> str:
    """Return the name of the function with this many outputs.

    Overloads would be plainer, but the reference evaluator cannot run them.
    """
    return f"{FUNCTION_PREFIX}{parts}"


def parts_of(name: str) -> int | None:
    """Return the number of outputs that a function name stands for; None for any other name."""
    digits = name.removeprefix(FUNCTION_PREFIX)
    return int(digits) if name.startswith(FUNCTION_PREFIX) and digits.isdigit() and not digits.startswith("0") else None


def variadic_function(parts: int, opset: int) -> FunctionProto:
    """Return the function with `parts` outputs, importing ai.onnx at `opset`."""
    return FunctionProto(
        domain=DOMAIN,
        name=function_name(parts),
        input=["data", "axis", "split_lengths"],
        output=[f"part_{index}" for index in range(parts)],
        node=_body(parts),
        opset_import=[OperatorSetIdProto(domain="", version=opset)],
    )


def is_variadic_function(function: FunctionProto) -> bool:
    """Return True if splitgraph wrote the function: then a call of it means VariadicSplit and nothing else."""
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
    """Return what a node computes, whatever its name and documentation, and however its constants are stored."""
    attributes: dict[str, object] = {}
    for attribute in node.attribute:
        if attribute.type == AttributeProto.TENSOR:
            tensor = attribute.t
            elements: tuple[int, ...] | None = None
            if tensor.data_type == TensorProto.INT64:
                raw = tensor.raw_data[: len(tensor.raw_data) // 8 * 8]
                elements = struct.unpack(f"<{len(raw) // 8}q", raw) if tensor.raw_data else tuple(tensor.int64_data)
            attributes[attribute.name] = (tensor.data_type, tuple(tensor.dims), elements)
        elif attribute.type == AttributeProto.INT and not attribute.ref_attr_name:
            attributes[attribute.name] = attribute.i
        else:
            return None
    domain = "" if node.domain == "ai.onnx" else node.domain
    return domain, node.op_type, tuple(node.input), tuple(node.output), attributes


def _constant(name: str, values: list[int]) -> NodeProto:
    tensor = TensorProto(name=name, data_type=TensorProto.INT64, dims=[len(values)], int64_data=values)
    return make_node("Constant", [], [name], value=tensor)


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
        # Without a -1, the lengths sum to the dimension. With a -1, the rest is the dimension less their sum, less one.
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
