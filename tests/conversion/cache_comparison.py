"""Conversions with the cache and without it."""

from __future__ import annotations

import re
from unittest import mock

import onnx
from conformance.opset_cases import opset_of
from known_opsets import known

import splitgraph
from splitgraph.conversion.cache import ConversionCache

TARGETS = known((7, 11, 13, 18, 21, 28))


def converted(model: onnx.ModelProto, target: int) -> bytes | list[str]:
    """What conversion gives: the bytes of the model, or its reasons."""
    change = splitgraph.upgrade if target > (opset_of(model) or 0) else splitgraph.downgrade
    try:
        rewrite = change(model, target)
    except splitgraph.ConversionError as refusal:
        return [found.message for found in refusal.diagnostics]
    graph, own = rewrite.model.graph, {value.name for value in model.graph.input}
    # Below IR version 4, new constants are inputs, too.
    kept = [onnx.ValueInfoProto.FromString(value.SerializeToString()) for value in graph.input if value.name in own]
    del graph.input[:]
    graph.input.extend(kept)
    by_content(graph, {})
    changes = repr(rewrite.changes).encode()
    return changes + rewrite.model.SerializeToString(deterministic=True)


def by_content(graph: onnx.GraphProto, outer: dict[str, str], depth: int = 0) -> None:
    """Name each constant of a graph by what it holds, so that equal ones are one, as they are to every reader, and each
    value by its place: where a constant has no name of its own, another value or node may have it.
    """
    inputs, names, held = {value.name for value in graph.input}, dict(outer), dict[str, onnx.TensorProto]()
    for tensor in graph.initializer:
        before = tensor.name
        if before not in inputs:
            tensor.name = ""
            tensor.name = names[before] = f"constant {tensor.SerializeToString(deterministic=True).hex()}"
        held[tensor.name] = tensor
    kept = [onnx.TensorProto.FromString(held[name].SerializeToString()) for name in sorted(held)]
    del graph.initializer[:]
    graph.initializer.extend(kept)
    given = set() if depth else {value.name for value in graph.output}
    for index, node in enumerate(graph.node):
        node.input[:] = [names.get(name, name) for name in node.input]
        for attribute in node.attribute:
            for body in (*([attribute.g] if attribute.HasField("g") else []), *attribute.graphs):
                by_content(body, names, depth + 1)
        for place, name in enumerate(node.output):
            names[name] = name if not name or name in given else f"value {depth} {index} {place}"
        node.output[:] = [names[name] for name in node.output]
        node.name = re.sub(r"_\d+", "", node.name)
    for value in (*graph.value_info, *graph.output):
        value.name = names.get(value.name, value.name)


def without_cache(model: onnx.ModelProto, target: int) -> bytes | list[str]:
    """What conversion gives where nothing is remembered of a node for the next one."""
    with mock.patch.object(ConversionCache, "remembers", False):
        return converted(model, target)


def to_others(models: list[onnx.ModelProto], targets: list[int]) -> list[tuple[onnx.ModelProto, int]]:
    """Each model with each target that is not its own opset."""
    return [(model, target) for model in models for target in targets if target != opset_of(model)]
