"""Which IR version an opset needs, and which one a model does."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from splitgraph.diagnostics import ConversionError, SplitgraphError, diagnostic
from splitgraph.graph.scopes import scopes
from splitgraph.onnx_proto import IR_VERSION, ModelProto, TensorProto
from splitgraph.schemas import newest_opset

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


# The newest opset whose first release wrote each IR version.
_RELEASES = (
    (8, 3),
    (9, 4),
    (10, 5),
    (11, 6),
    (14, 7),
    (18, 8),
    (20, 9),
    (22, 10),
    (23, 11),
    (24, 12),
    (27, 13),
    (28, 14),
)


def minimum_ir_version(opset: int) -> int:
    """The IR version of the onnx release that introduced an ai.onnx opset, the least that such a model may have.

    Opsets that no release stopped at (2, 3 and 4) have that of the next. Raises ValueError for an opset that nobody
    knows. Source: onnx's table of released versions.
    """
    newest = newest_opset(opset)
    if not 1 <= opset <= newest:
        raise ValueError(f"opset {opset} is not between 1 and {newest}")
    # An opset beyond the table is one that only the installed onnx knows, and of the IR version that it writes.
    return next((version for newest, version in _RELEASES if opset <= newest), IR_VERSION)


def set_ir_version(model: ModelProto, version: int, opset: int | None) -> None:
    """Give a model another IR version, which may be lower than its own.

    Raises SplitgraphError for one that does not exist, and ConversionError for one that the model's opset, or something
    in it, is too new for.
    """
    if not 1 <= version <= IR_VERSION:
        raise SplitgraphError(f"there is no IR version {version}; this onnx knows 1 to {IR_VERSION}")
    needs = [] if opset is None else [(minimum_ir_version(opset), f"opset {opset}")]
    needs += _needs(model)
    most, what = max(needs, default=(1, ""))
    if most > version:
        text = f"the model needs IR version {most}, for {what}; {version} was asked for"
        found = diagnostic("SG412", text, help=f"Ask for IR version {most} or newer.")
        raise ConversionError(text, [found])
    model.ir_version = version


def _needs(model: ModelProto) -> Iterator[tuple[int, str]]:
    for graph in (scope.proto for scope in scopes(model) if not scope.is_function):
        inputs = {value.name for value in graph.input}
        lone = next((tensor.name for tensor in graph.initializer if tensor.name not in inputs), None)
        if lone is not None:
            yield 4, f"the initializer {lone!r}, which is no input"
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
