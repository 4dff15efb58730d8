"""The parts of a model that are newer than an IR version: those that its readers skip, and those that they misread."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

from splitgraph.graph.scopes import GraphPath, scopes
from splitgraph.onnx_proto import AttributeProto, ModelProto, TensorProto
from splitgraph.tensor_data import is_in_other_file

# From this IR version on an initializer need not be an input, and one that is an input is a default.
INITIALIZER_IR_VERSION = 4

# The IR version that brought each message or field, where that is not the first. Source: onnx.proto. A reader skips a
# field of a number that it does not know. Skipped, these leave the meaning as it is.
_SKIPPED = {
    ("GraphProto", "quantization_annotation"): 5,
    ("ModelProto", "training_info"): 7,
    ("ModelProto", "configuration"): 11,
    ("NodeProto", "device_configurations"): 11,
    ("FunctionProto", "value_info"): 10,
    **{(message, "metadata_props"): 10 for message in ("NodeProto", "GraphProto", "FunctionProto", "ValueInfoProto")},
}
# Skipped, these change the meaning.
_MISREAD = {
    ("GraphProto", "sparse_initializer"): 6,
    ("AttributeProto", "sparse_tensor"): 6,
    ("AttributeProto", "sparse_tensors"): 6,
    ("AttributeProto", "tp"): 8,
    ("AttributeProto", "type_protos"): 8,
    ("TypeProto", "optional_type"): 8,
    ("TypeProto", "sparse_tensor_type"): 8,
}
# Inlining the functions removes these.
_OF_FUNCTIONS = {
    ("ModelProto", "functions"): 8,
    ("FunctionProto", "attribute_proto"): 9,
    ("FunctionProto", "overload"): 10,
    ("NodeProto", "overload"): 10,
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
# Attributes without messages, and messages without relevant ones: most of a model.
_PLAIN = frozenset(
    (
        AttributeProto.FLOAT,
        AttributeProto.INT,
        AttributeProto.STRING,
        AttributeProto.FLOATS,
        AttributeProto.INTS,
        AttributeProto.STRINGS,
    )
)
_LEAVES = frozenset({"TensorShapeProto", "StringStringEntryProto", "OperatorSetIdProto", "TensorAnnotation"})

Need = tuple[int, str]


@dataclass(slots=True)
class IRNeeds:
    """The IR versions that a model needs, each with a phrase for its reason: for its functions and for all other parts.
    skipped: by name, the parts that older readers skip.
    """

    of_functions: Need = (1, "")
    of_others: Need = (1, "")
    skipped: dict[str, int] = field(default_factory=dict)


def ir_needs(model: ModelProto, version: int) -> IRNeeds:
    """The parts of a model that are newer than an IR version."""
    found = IRNeeds()
    pending: list[Any] = [model]
    while pending:
        message = pending.pop()
        name = message.DESCRIPTOR.name
        if name in _LEAVES or (name == "AttributeProto" and message.type in _PLAIN):
            continue
        if name == "TensorProto":
            # Listing the fields of a tensor would copy its weights.
            _note_type(found, message.data_type, version)
            if version < 4 and is_in_other_file(message):
                found.of_others = max(found.of_others, (4, f"the external data of the tensor {message.name!r}"))
            continue
        for entry, value in message.ListFields():
            _note_field(found, (name, entry.name), value, version)
            # Nothing runs what training_info holds.
            if entry.type == FieldDescriptor.TYPE_MESSAGE and entry.name != "training_info":
                pending.extend(_messages(value))
            elif entry.name == "elem_type":
                _note_type(found, value, version)
    if version < INITIALIZER_IR_VERSION:
        found.of_others = max((found.of_others, *_initializers(model)))
    return found


def _note_field(found: IRNeeds, key: tuple[str, str], value: Any, version: int) -> None:
    text = f"{key[1]} of {key[0]}"
    if value and _SKIPPED.get(key, 0) > version:
        found.skipped[text] = _SKIPPED[key]
    elif value and _OF_FUNCTIONS.get(key, 0) > version:
        found.of_functions = max(found.of_functions, (_OF_FUNCTIONS[key], _phrase(key, value)))
    elif _MISREAD.get(key, 0) > version:
        found.of_others = max(found.of_others, (_MISREAD[key], text))


def _phrase(key: tuple[str, str], value: Any) -> str:
    if key[1] != "functions":
        return f"{key[1]} of {key[0]}"
    return "local functions, such as " + repr(value[0].name)


def _note_type(found: IRNeeds, number: int, version: int) -> None:
    if _TYPES.get(number, 0) > version:
        text = f"the element type {TensorProto.DataType.Name(number)}"
        found.of_others = max(found.of_others, (_TYPES[number], text))


def _initializers(model: ModelProto) -> Iterator[Need]:
    """What keeps initializers from being inputs: an input that has a default, and subgraphs, whose inputs are given."""
    for scope in scopes(model):
        if scope.is_function:
            continue
        inputs, path = {value.name for value in scope.proto.input}, scope.path
        named = (tensor.name for tensor in scope.proto.initializer if (tensor.name in inputs) == (not path))
        name = next(named, None)
        if name is not None and model.ir_version >= INITIALIZER_IR_VERSION:
            yield INITIALIZER_IR_VERSION, _kind(path, name)


def _kind(path: GraphPath, name: str) -> str:
    if path:
        return f"the initializer {name!r} of a subgraph, which is no input"
    return f"the default of the input {name!r}, which an older reader takes for constant"


def _messages(value: Any) -> Iterable[Any]:
    return (value,) if hasattr(value, "DESCRIPTOR") else value
