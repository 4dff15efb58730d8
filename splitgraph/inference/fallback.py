"""onnx's own inference for a single node, with our symbols passed through; for operators without a rule of ours."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
from onnx import TypeProto, shape_inference

from splitgraph.contents import Contents
from splitgraph.dim import Dim, DimLike
from splitgraph.graph.tensors import int64_tensor
from splitgraph.graph.types import type_proto, value_type
from splitgraph.inference.context import NodeContext
from splitgraph.inference.operators import Operator
from splitgraph.value_type import UNKNOWN, ValueType


def infer_with_onnx(ctx: NodeContext, operator: Operator) -> Sequence[ValueType]:
    """The types that onnx's inference of this one node gives; UNKNOWN outputs where it knows nothing. Reports an
    invalid node.
    """
    names: dict[str, DimLike] = {}
    types: dict[str, TypeProto] = {}
    for name, known in zip(ctx.node.input, ctx.inputs, strict=True):
        proto = None if known is None else type_proto(_with_stand_ins(known, names))
        if name and proto is not None:
            types[name] = proto
        elif name:
            # onnx's functions read the type of every input that is present without looking whether there is one.
            return ()
    if any(
        attribute.type in (onnx.AttributeProto.GRAPH, onnx.AttributeProto.GRAPHS) for attribute in ctx.node.attribute
    ):
        return ()
    data = {
        name: made for index, name in enumerate(ctx.node.input) if name and (made := _constant(ctx, index)) is not None
    }
    try:
        inferred = shape_inference.infer_node_outputs(
            operator.schema,
            ctx.node,
            types,
            data,
            {},
            [onnx.helper.make_opsetid(ctx.node.domain, ctx.opset)],
            ctx.walk.state.model.ir_version,
        )
    except (shape_inference.InferenceError, onnx.checker.ValidationError) as error:
        ctx.find("SG302", f"{ctx.node.op_type}-{ctx.since_version} is invalid: {_plain(str(error))}")
        return ()
    outputs = [inferred.get(name) for name in ctx.node.output]
    return [
        UNKNOWN if proto is None else _back(ctx, value_type(proto, lambda text: names.get(text, ctx.fresh())))
        for proto in outputs
    ]


def _with_stand_ins(known: ValueType, names: dict[str, DimLike]) -> ValueType:
    """The type with each symbolic dimension as a plain name that onnx passes through; `names` keeps what each stands
    for.
    """
    if known.shape is None:
        return known
    for dim in known.shape:
        if isinstance(dim, Dim):
            names[str(dim)] = dim
    return known


def _back(ctx: NodeContext, found: ValueType) -> ValueType:
    # onnx computes with int64 and wraps around or leaves -1 behind; a negative dimension is no answer (value_type reads
    # it as unknown).
    return found if found.kind != "tensor" or found.dtype is not None else ValueType("tensor", None, found.shape)


def _constant(ctx: NodeContext, index: int) -> onnx.TensorProto | None:
    contents: Contents | None = ctx.contents(index)
    integers = None if contents is None else contents.integers
    if contents is None or integers is None or ctx.input(index).dtype != "int64":
        return None
    made = int64_tensor(ctx.node.input[index], integers)
    del made.dims[:]
    made.dims.extend(contents.shape)
    return made


def _plain(text: str) -> str:
    """The message without onnx's prefixes and positions."""
    return text.split("] ", 1)[-1].strip().rstrip(".").replace("\n", " ")[:300]
