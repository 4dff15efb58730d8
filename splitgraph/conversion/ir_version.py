"""Which IR version an opset needs, and which one a model does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import onnx
from google.protobuf.descriptor import FieldDescriptor
from onnx import TensorProto, helper

from splitgraph.diagnostics import ConversionError, SplitgraphError, diagnostic

# The IR version that brought each message, field or element type, where that is not the first. Source: onnx.proto.
_MESSAGES = {
    "TensorAnnotation": 5,
    "SparseTensorProto": 6,
    "TrainingInfoProto": 7,
    "FunctionProto": 8,
    "Optional": 8,
    "SparseTensor": 8,
    "DeviceConfigurationProto": 11,
    "NodeDeviceConfigurationProto": 11,
}
_FIELDS = {
    ("FunctionProto", "attribute_proto"): 9,
    ("FunctionProto", "overload"): 10,
    ("NodeProto", "overload"): 10,
    **{(message, "metadata_props"): 10 for message in ("NodeProto", "GraphProto", "FunctionProto", "ValueInfoProto")},
}
_TYPES = {
    TensorProto.BFLOAT16: 4,
    **dict.fromkeys(range(TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2FNUZ + 1), 9),
    TensorProto.UINT4: 10,
    TensorProto.INT4: 10,
    # By number: an older onnx has no names for these.
    23: 11,
    24: 12,
    25: 13,
    26: 13,
    27: 14,
    28: 14,
}


def minimum_ir_version(opset: int) -> int:
    """The IR version of the onnx release that introduced an ai.onnx opset, the least that such a model may have.

    Opsets that no release stopped at (2, 3 and 4) have that of the next. Raises ValueError for an opset that the
    installed onnx does not know. Source: the table of released versions in onnx.helper.
    """
    newest = onnx.defs.onnx_opset_version()
    if not 1 <= opset <= newest:
        raise ValueError(f"opset {opset} is not between 1 and {newest}, the opsets of the installed onnx")
    released = helper.OP_SET_ID_VERSION_MAP.items()
    # The table of onnx 1.22 lacks that release itself, whose opset 27 is of the IR version that it writes.
    return min(
        (ir for (domain, version), ir in released if domain == "ai.onnx" and version >= opset), default=onnx.IR_VERSION
    )


def set_ir_version(model: onnx.ModelProto, version: int, opset: int | None) -> None:
    """Give a model another IR version, which may be lower than its own.

    Raises SplitgraphError for one that does not exist, and ConversionError for one that the model's opset, or something
    in it, is too new for.
    """
    if not 1 <= version <= onnx.IR_VERSION:
        raise SplitgraphError(f"there is no IR version {version}; this onnx knows 1 to {onnx.IR_VERSION}")
    needs = [] if opset is None else [(minimum_ir_version(opset), f"opset {opset}")]
    needs += _needs(model)
    most, what = max(needs, default=(1, ""))
    if most > version:
        text = f"the model needs IR version {most}, for {what}; {version} was asked for"
        found = diagnostic("SG412", text, help=f"Ask for IR version {most} or newer.")
        raise ConversionError(text, [found])
    model.ir_version = version


def _needs(model: onnx.ModelProto) -> Iterator[tuple[int, str]]:
    inputs = {value.name for value in model.graph.input}
    for tensor in model.graph.initializer:
        if tensor.name not in inputs:
            yield 4, f"the initializer {tensor.name!r}, which is no input"
            break
    pending: list[Any] = [model]
    while pending:
        message = pending.pop()
        name = message.DESCRIPTOR.name
        if name in _MESSAGES:
            yield _MESSAGES[name], name
        if isinstance(message, TensorProto):
            # Listing all fields of a tensor would copy its weights.
            yield from _of_type(message.data_type)
            continue
        for field, value in message.ListFields():
            if (name, field.name) in _FIELDS:
                yield _FIELDS[name, field.name], f"{field.name} of {name}"
            if field.type == FieldDescriptor.TYPE_MESSAGE:
                pending.extend(_messages(value))
            elif field.name == "elem_type":
                yield from _of_type(value)


def _of_type(number: int) -> Iterator[tuple[int, str]]:
    if number in _TYPES:
        yield _TYPES[number], f"the element type {TensorProto.DataType.Name(number)}"


def _messages(value: Any) -> Iterable[Any]:
    return (value,) if hasattr(value, "DESCRIPTOR") else value
