"""Mutations of a model in memory that make one plain fault: what a careless program or person would write."""

from __future__ import annotations

import random
from collections.abc import Callable

from mutated_models_sources import pick
from onnx import AttributeProto, ModelProto, NodeProto, TensorProto, helper

NUMBERS = (-(2**31), -7, -3, -2, -1, 0, 1, 2, 3, 5, 17, 1000)
FIELDS = ("float_data", "int32_data", "int64_data", "double_data", "uint64_data")


def nodes_of(model: ModelProto) -> list[NodeProto]:
    """The nodes of the main graph, of the graphs in it, and of functions."""
    found = list(model.graph.node)
    for node in found:
        found += [inner for each in node.attribute for graph in (each.g, *each.graphs) for inner in graph.node]
    return found + [node for function in model.functions for node in function.node]


def tensors_of(model: ModelProto) -> list[TensorProto]:
    """Initializers and tensors in attributes."""
    held = [each.t for node in nodes_of(model) for each in node.attribute if each.HasField("t")]
    return [*model.graph.initializer, *held]


def make_fault(model: ModelProto, rng: random.Random) -> str | None:
    """Change one thing of the model; returns what, None where the model has nothing of the kind."""
    return rng.choice((_mutate_tensor, _mutate_inputs, _mutate_outputs, _mutate_attribute, _mutate_attribute))(
        model, rng
    )


def _mutate_tensor(model: ModelProto, rng: random.Random) -> str | None:
    held = tensors_of(model)
    if not held:
        return None
    tensor = rng.choice(held)
    changes: dict[str, Callable[[], object]] = {
        "data type": lambda: setattr(tensor, "data_type", rng.randint(0, 27)),
        "dims": lambda: tensor.dims.append(rng.choice(NUMBERS)),
        "no dims": lambda: tensor.ClearField("dims"),
        "raw data": lambda: setattr(tensor, "raw_data", tensor.raw_data + b"\1"),
        "entries": lambda: getattr(tensor, rng.choice(FIELDS)).append(1),
        "less raw data": lambda: setattr(tensor, "raw_data", tensor.raw_data[:-1]),
    }
    return f"tensor {tensor.name!r}: {pick(rng, changes)}"


def _mutate_inputs(model: ModelProto, rng: random.Random) -> str | None:
    held = [node for node in nodes_of(model) if node.input]
    if not held:
        return None
    node = rng.choice(held)
    at = rng.randrange(len(node.input))
    changes: dict[str, Callable[[], object]] = {
        "left out": lambda: node.input.__setitem__(at, ""),
        "removed": lambda: node.input.pop(at),
        "added": lambda: node.input.append(node.input[at]),
        "added empty": lambda: node.input.append(""),
        "another": lambda: node.input.__setitem__(at, rng.choice(node.input)),
        "undefined": lambda: node.input.__setitem__(at, "nobody_gives_this"),
    }
    return f"{node.op_type}: input {at} {pick(rng, changes)}"


def _mutate_outputs(model: ModelProto, rng: random.Random) -> str | None:
    held = [node for node in nodes_of(model) if node.output]
    if not held:
        return None
    node = rng.choice(held)
    name = rng.choice(("removed", "added", "twice"))
    if name == "removed":
        node.output.pop()
    else:
        node.output.append("one_more" if name == "added" else node.output[0])
    return f"{node.op_type}: output {name}"


def _mutate_attribute(model: ModelProto, rng: random.Random) -> str | None:
    held = nodes_of(model)
    if not held:
        return None
    node = rng.choice(held)
    if not node.attribute or rng.random() < 0.1:
        added = rng.choice(("axis", "axes", "nothing_has_this", "consumed_inputs", "mode", "to", "keepdims"))
        if added in [each.name for each in node.attribute]:
            return None
        node.attribute.append(helper.make_attribute(added, rng.choice((1, [0, 1], "linear", 1.5))))
        return f"{node.op_type}: attribute {added} added"
    at = rng.randrange(len(node.attribute))
    attribute = node.attribute[at]
    name = rng.choice(("removed", "retyped", "value", "value", "value", "value"))
    if name == "removed":
        del node.attribute[at]
    elif name == "retyped":
        attribute.type = rng.randint(0, 11)
    elif attribute.type == AttributeProto.INT:
        attribute.i = rng.choice(NUMBERS)
    elif attribute.type == AttributeProto.FLOAT:
        attribute.f = rng.choice((-1.0, 0.0, 2.0, float("nan")))
    elif attribute.type == AttributeProto.STRING:
        attribute.s = rng.choice((b"", b"nonsense", attribute.s.upper()))
    elif attribute.type in (AttributeProto.INTS, AttributeProto.FLOATS, AttributeProto.STRINGS):
        _mutate_list(attribute, rng)
    else:
        return None
    return f"{node.op_type}: attribute {attribute.name if name != 'removed' else at} {name}"


def _mutate_list(attribute: AttributeProto, rng: random.Random) -> None:
    kinds = {AttributeProto.INTS: "ints", AttributeProto.FLOATS: "floats", AttributeProto.STRINGS: "strings"}
    items = getattr(attribute, kinds[attribute.type])
    if items and rng.random() < 0.3:
        items.pop()
    elif items and attribute.type == AttributeProto.INTS and rng.random() < 0.7:
        items[rng.randrange(len(items))] = rng.choice(NUMBERS)
    else:
        items.append(b"a" if attribute.type == AttributeProto.STRINGS else rng.choice(NUMBERS[3:]))
