"""Declaring the types of Cast outputs below opset 6. There `to` is the name of a type, which onnx's inference does not
read, so that all types behind a Cast would be unknown.
"""

from __future__ import annotations

from splitgraph.graph.scopes import plain_domain
from splitgraph.onnx_proto import GraphProto, TensorProto

_CASTS_ARE_INFERRED_FROM = 6


def loses_cast_types(source: int, target: int) -> bool:
    """Whether the target opset is one where onnx does not infer the type of Cast."""
    return target < _CASTS_ARE_INFERRED_FROM <= source


def declare_casts(graph: GraphProto) -> None:
    """Declare the output type of each Cast of a graph, where it is not declared."""
    declared = {value.name for value in (*graph.value_info, *graph.output)}
    for node in graph.node:
        if node.op_type != "Cast" or plain_domain(node.domain) != "" or node.output[0] in declared:
            continue
        # A reference to an attribute of the enclosing function has no value here.
        for target in [attribute.s for attribute in node.attribute if attribute.name == "to" and attribute.s]:
            value = graph.value_info.add(name=node.output[0])
            value.type.tensor_type.elem_type = TensorProto.DataType.Value(target.decode())
