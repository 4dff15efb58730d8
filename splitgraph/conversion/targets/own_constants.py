"""Gives each node constants of its own, for runtimes that mix up nodes which share one."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from splitgraph.conversion.rewrite import Change, Rewrite, step
from splitgraph.model.names import FreshNames, used_names
from splitgraph.model.onnx_proto import ModelProto, NodeProto, TensorProto
from splitgraph.runtimes.target import Target

# Larger ones, which are embeddings for the most part, stay shared.
_MOST_ELEMENTS = 1 << 14
_FLOATS = frozenset({TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.DOUBLE})


def with_own_constants(rewrite: Rewrite, target: Target) -> Rewrite:
    """Return the rewrite with a copy of a constant for each further node of the main graph that reads it, if the target
    mixes up such nodes: OpenCV 4 makes a layer of the constant for one of them, and hands it to the fused layer of
    another one. Only small constants of floating point are copied.
    """
    if not target.mixes_up_constants or not any(_shared(rewrite.model)):
        return rewrite
    copy = ModelProto()
    copy.CopyFrom(rewrite.model)
    names = FreshNames(used_names(copy))
    changes = []
    for node, place, tensor in _shared(copy):
        name = names.new(tensor.name)
        made = copy.graph.initializer.add()
        made.CopyFrom(tensor)
        made.name = node.input[place] = name
        why = f"{target.label} mixes up nodes that share a constant"
        changes.append(Change("main", f"constant {tensor.name}", f"constant {name}", why))
    return replace(rewrite.then(step(copy, changes)), to_opset=rewrite.to_opset)


def _shared(model: ModelProto) -> Iterator[tuple[NodeProto, int, TensorProto]]:
    """Yield each further read of a constant: the node, the position of the input, and the constant."""
    inputs = {value.name for value in model.graph.input}
    held = {
        tensor.name: tensor for tensor in model.graph.initializer if _is_small(tensor) and tensor.name not in inputs
    }
    read = set[str]()
    for node in list(model.graph.node):
        for place, name in enumerate(node.input):
            if name in read:
                yield node, place, held[name]
            elif name in held:
                read.add(name)


def _is_small(tensor: TensorProto) -> bool:
    is_here = tensor.data_location != TensorProto.EXTERNAL
    return is_here and tensor.data_type in _FLOATS and math.prod(tensor.dims) <= _MOST_ELEMENTS
