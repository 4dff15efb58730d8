"""Mutations of a model in memory that a hostile program would make: each way asks for much, or says what cannot be."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import DecodeError, Message
from mutated_models_bombs import add_bomb
from mutated_models_faults import make_fault, nodes_of, tensors_of
from mutated_models_sources import NUMBERS, TEXTS, pick
from onnx import AttributeProto, GraphProto, ModelProto, NodeProto, TensorProto, ValueInfoProto

# Messages that are looked at; a model that was nested deep has no end of them.
_MOST_MESSAGES = 3000
_FLOATS = (0.0, -1.0, 1e38, float("inf"), float("-inf"), float("nan"))


def mutate_object(model: ModelProto, rng: random.Random) -> str | None:
    """Change one thing of the model; returns what, None where the model has nothing of the kind."""
    way: Callable[[ModelProto, random.Random], str | None] = rng.choices(_WAYS, _WEIGHTS)[0]
    try:
        found = way(model, rng)
    except (DecodeError, ValueError, TypeError):
        # What protobuf takes from a file only: numbers of other types, text that is not UTF-8. And it copies a message
        # by way of its bytes, of which it reads none that are nested deeper than 100.
        return None
    return None if found is None else f"{way.__name__.lstrip('_')}: {found}"


def _parse(message: Message, written: bytes) -> bool:
    """Read the message from bytes; False where protobuf does not, for they are nested too deep."""
    try:
        type(message)().ParseFromString(written)
    except DecodeError:
        return False
    message.ParseFromString(written)
    return True


# Any field of any message ----------------------------------------------------------------------------------------


def _messages(model: Message) -> list[Message]:
    waiting, found = [model], []
    while waiting and len(found) < _MOST_MESSAGES:
        message = waiting.pop()
        found.append(message)
        for field, value in message.ListFields():
            if field.message_type is not None:
                waiting += [value] if isinstance(value, Message) else value
    return found


def _any_field(model: ModelProto, rng: random.Random) -> str | None:
    message = rng.choice(_messages(model))
    field = rng.choice(list(message.DESCRIPTOR.fields))
    where = f"{message.DESCRIPTOR.name}.{field.name}"
    value = getattr(message, field.name)
    if rng.random() < 0.15:
        message.ClearField(field.name)
        return f"{where} cleared"
    if _is_many(value):
        return f"{where} {_change_list(field, value, rng)}"
    if field.message_type is not None:
        others = [each for each in _messages(model) if each.DESCRIPTOR is field.message_type and each is not value]
        # A copy: the other may be around this one.
        return f"{where} replaced" if _parse(value, rng.choice(others).SerializeToString() if others else b"") else None
    changed = _scalar(field, rng)
    setattr(message, field.name, changed)
    return f"{where} = {str(changed)[:40]!r}"


def _is_many(value: Any) -> bool:
    return hasattr(value, "append")


def _scalar(field: FieldDescriptor, rng: random.Random) -> Any:
    if field.cpp_type in (FieldDescriptor.CPPTYPE_FLOAT, FieldDescriptor.CPPTYPE_DOUBLE):
        return rng.choice(_FLOATS)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        return rng.choice(TEXTS)
    return rng.choice((*NUMBERS, rng.randint(0, 30)))


def _change_list(field: FieldDescriptor, value: Any, rng: random.Random) -> str:
    def add() -> None:
        if len(value):
            value.append(rng.choice(list(value)))
        elif field.message_type is not None:
            value.add()
        else:
            value.append(_scalar(field, rng))

    changes: dict[str, Callable[[], object]] = {
        "with one more": add,
        "with 300 more": lambda: [add() for _ in range(300)],
        "without one": lambda: value.pop(rng.randrange(len(value))) if len(value) else None,
        "the other way round": value.reverse,
    }
    if field.message_type is None and len(value):
        changes["with another"] = lambda: value.__setitem__(rng.randrange(len(value)), _scalar(field, rng))
    return pick(rng, changes)


# Names -----------------------------------------------------------------------------------------------------------


def _broken_text(model: ModelProto, rng: random.Random) -> str | None:
    """A name that is not UTF-8, which protobuf hands out as bytes."""
    names = sorted({name for node in nodes_of(model) for name in _names_of(node) if isinstance(name, str) and name})
    if not names:
        return None
    name = rng.choice(names).encode()
    broken = bytes([rng.choice((0x80, 0xC0, 0xFF))]) + name[1:]
    is_read = _parse(model, model.SerializeToString().replace(name, broken))
    return f"{name!r} is {broken!r}" if is_read else None


def _names_of(node: NodeProto) -> Iterator[str]:
    yield from (node.name, node.op_type, node.domain, *node.input, *node.output)
    yield from (attribute.name for attribute in node.attribute)


def _same_name(model: ModelProto, rng: random.Random) -> str | None:
    """Two things of one name: values, nodes, initializers, inputs."""
    held = [*model.graph.node, *model.graph.initializer, *model.graph.input, *model.graph.output, *model.functions]
    if len(held) < 2:
        return None
    first, second = rng.sample(held, 2)
    first.name = second.name
    return f"{second.name!r}"


# Graphs ----------------------------------------------------------------------------------------------------------


def _cycle(model: ModelProto, rng: random.Random) -> str | None:
    held = [node for node in nodes_of(model) if node.input]
    givers = [node for node in nodes_of(model) if node.output]
    if not held or not givers:
        return None
    reader, giver = rng.choice(held), rng.choice(givers)
    at = rng.randrange(len(reader.input))
    reader.input[at] = rng.choice((reader if reader.output else giver, giver)).output[0]
    return f"{reader.op_type} reads {reader.input[at]!r}"


def _node_order(model: ModelProto, rng: random.Random) -> str | None:
    nodes = list(model.graph.node)
    rng.shuffle(nodes)
    written = [node.SerializeToString() for node in nodes]
    for node, other in zip(model.graph.node, written, strict=True):
        node.ParseFromString(other)
    return "of the main graph"


def _deep_graph(model: ModelProto, rng: random.Random) -> str | None:
    """The main graph's nodes within an If, within an If, and so on."""
    inner = GraphProto(node=model.graph.node, initializer=model.graph.initializer, output=model.graph.output)
    outputs = [value.name for value in model.graph.output]
    model.graph.ClearField("node")
    condition = TensorProto(name="condition", data_type=TensorProto.BOOL, int32_data=[1])
    model.graph.initializer.append(condition)
    depth = rng.choice((1, 5, 20, 31, 32, 33, 40, 90, 300))
    graph = model.graph
    for _ in range(depth):
        node = graph.node.add(op_type="If", input=["condition"], output=outputs)
        other = node.attribute.add(name="else_branch", type=AttributeProto.GRAPH)
        other.g.output.extend(inner.output)
        branch = node.attribute.add(name="then_branch", type=AttributeProto.GRAPH)
        graph = branch.g
        graph.output.extend(inner.output)
    graph.MergeFrom(inner)
    return f"{depth} deep"


def _functions(model: ModelProto, rng: random.Random) -> str | None:
    """Functions that call one another: in a row, twice each, or around in a circle."""
    count, calls = rng.choices((1, 5, 30, 60, 300), (60, 60, 20, 5, 1))[0], rng.choice((1, 1, 2, 3))
    # Of several calls each, a circle takes all of the calls that are looked into, which is a second.
    is_circle = rng.random() < (0.3 if calls == 1 else 0.05)
    model.opset_import.add(domain="deep", version=1)
    for number in range(count):
        function = model.functions.add(name=f"f{number}", domain="deep", input=["x"], output=["y"])
        function.opset_import.add(domain="", version=17)
        function.opset_import.add(domain="deep", version=1)
        following = number + 1 if number + 1 < count else 0 if is_circle else None
        name = "x"
        for call in range(calls):
            new = "y" if call == calls - 1 else f"y{call}"
            called = {"op_type": "Relu"} if following is None else {"op_type": f"f{following}", "domain": "deep"}
            function.node.add(input=[name], output=[new], **called)
            name = new
    given = [value.name for value in model.graph.input]
    model.graph.node.add(op_type="f0", domain="deep", input=given[:1] or ["x"], output=["deep_y"])
    return f"{count}, {calls} calls each{', in a circle' if is_circle else ''}"


# Sizes, types and versions ---------------------------------------------------------------------------------------


def _values(model: ModelProto) -> list[ValueInfoProto]:
    return [*model.graph.input, *model.graph.output, *model.graph.value_info]


def _dims(model: ModelProto, rng: random.Random) -> str | None:
    """A size, or the name of one, of a value or a tensor."""
    values = _values(model)
    dims = [dim for value in values for dim in value.type.tensor_type.shape.dim]
    if dims and rng.random() < 0.6:
        dim = rng.choice(dims)
        if rng.random() < 0.5:
            dim.dim_value = rng.choice(NUMBERS)
            return f"{dim.dim_value}"
        dim.dim_param = rng.choice(TEXTS).decode()
        return f"{dim.dim_param[:40]!r}"
    tensors = [tensor for tensor in tensors_of(model) if tensor.dims]
    if not tensors:
        return None
    tensor = rng.choice(tensors)
    tensor.dims[rng.randrange(len(tensor.dims))] = rng.choice(NUMBERS)
    return f"of {tensor.name!r}: {list(tensor.dims)[:5]}"


def _type(model: ModelProto, rng: random.Random) -> str | None:
    values = _values(model)
    if not values:
        return None
    type_ = rng.choice(values).type
    element = rng.choice(NUMBERS[:-9]) if rng.random() < 0.5 else rng.randint(0, 30)
    depth = rng.choice((1, 2, 30, 60, 200))

    def nest() -> None:
        inner = type_
        for _ in range(depth):
            inner = inner.sequence_type.elem_type if rng.random() < 0.7 else inner.optional_type.elem_type
        inner.tensor_type.elem_type = 1

    changes: dict[str, Callable[[], object]] = {
        f"element type {element}": lambda: setattr(type_.tensor_type, "elem_type", element),
        "no type": lambda: type_.Clear(),
        "no shape": lambda: type_.tensor_type.ClearField("shape"),
        "a map": lambda: setattr(type_.map_type, "key_type", element),
        "a sparse tensor": lambda: setattr(type_.sparse_tensor_type, "elem_type", element),
        f"nested {depth} deep": nest,
        "of rank 1000": lambda: [type_.tensor_type.shape.dim.add(dim_value=1) for _ in range(1000)],
    }
    return pick(rng, changes)


def _numbers(model: ModelProto, rng: random.Random) -> str | None:
    """Constants that say how much there is to be of something."""
    tensors = [tensor for tensor in tensors_of(model) if tensor.data_type == TensorProto.INT64]
    if not tensors:
        return None
    tensor = rng.choice(tensors)
    count = max(1, (len(tensor.raw_data) or 8 * len(tensor.int64_data)) // 8)
    numbers = [rng.choice(NUMBERS) for _ in range(min(count, 100))]
    tensor.ClearField("int64_data")
    tensor.raw_data = b"".join(number.to_bytes(8, "little", signed=True) for number in numbers)
    return f"{tensor.name!r} holds {numbers[:4]}"


def _external(model: ModelProto, rng: random.Random) -> str | None:
    """A tensor that is in another file, or says so."""
    tensors = tensors_of(model)
    if not tensors:
        return None
    tensor = rng.choice(tensors)
    if rng.random() < 0.7:
        tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    entries: Sequence[tuple[str, Any]] = (
        ("location", rng.choice(("w.bin", "w.bin", "../w.bin", "/dev/zero", "", ".", "model.onnx", "a\0b", "w.bin/"))),
        ("offset", rng.choice((0, 8, *NUMBERS, "x", 10**30))),
        ("length", rng.choice((0, 8, *NUMBERS, "1e3"))),
    )
    for key, value in rng.sample(entries, rng.randint(1, 3)):
        tensor.external_data.add(key=key, value=str(value))
    return f"{tensor.name!r}: {[(entry.key, entry.value) for entry in tensor.external_data]}"


def _opsets(model: ModelProto, rng: random.Random) -> str | None:
    version = rng.choice((*NUMBERS, *range(30)))
    changes: dict[str, Callable[[], object]] = {
        "none": lambda: model.ClearField("opset_import"),
        f"another {version}": lambda: model.opset_import.add(domain=rng.choice(("", "ai.onnx", "x")), version=version),
        f"{version}": lambda: [setattr(each, "version", version) for each in model.opset_import],
        f"IR version {version}": lambda: setattr(model, "ir_version", version),
    }
    return pick(rng, changes)


_WEIGHED = {
    _any_field: 30, make_fault: 8, _broken_text: 6, _same_name: 4, _cycle: 6, _node_order: 3, _deep_graph: 5,
    _functions: 5, _dims: 12, _type: 6, _numbers: 7, _external: 5, _opsets: 5, add_bomb: 5,
}  # fmt: skip
_WAYS, _WEIGHTS = list(_WEIGHED), list(_WEIGHED.values())
