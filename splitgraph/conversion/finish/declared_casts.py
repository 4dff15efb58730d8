"""What Cast gives below opset 6, where `to` is the name of a type: onnx's inference does not read it, and then knows no
type of anything that depends on it. So what each Cast gives is declared.
"""

from __future__ import annotations

from splitgraph.graph.scopes import plain_domain
from splitgraph.onnx_proto import GraphProto, TensorProto

_CASTS_ARE_INFERRED_FROM = 6


def loses_cast_types(source: int, target: int) -> bool:
    """Whether a conversion takes a model to where the types that Cast gives are not inferred."""
    return target < _CASTS_ARE_INFERRED_FROM <= source


def declare_casts(graph: GraphProto) -> None:
    """Declare what each Cast of a graph gives, where nothing declares it."""
    declared = {value.name for value in (*graph.value_info, *graph.output)}
    for node in graph.node:
        if node.op_type != "Cast" or plain_domain(node.domain) != "" or node.output[0] in declared:
            continue
        # A reference to an attribute of an enclosing function names none.
        for target in [attribute.s for attribute in node.attribute if attribute.name == "to" and attribute.s]:
            value = graph.value_info.add(name=node.output[0])
            value.type.tensor_type.elem_type = TensorProto.DataType.Value(target.decode())
