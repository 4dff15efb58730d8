"""Says which values a node passes to its bodies, and takes from them, in ONNX and in OpenVINO IR."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from splitgraph.inference.rules.openvino.control_flow import read_ports
from splitgraph.model.attributes import attribute_value
from splitgraph.model.onnx_proto import GraphProto, NodeProto
from splitgraph.model.scopes import plain_domain


class BodyPorts(NamedTuple):
    """The ways into a body and out of it. inputs: positions of inputs of the node and of the body. outputs: positions
    of outputs of the body and of the node. iteration: the input of the body that is the number of the iteration.
    sliced: the axes along which inputs of the body are parts of the node's inputs, which have the same rank.
    """

    inputs: Sequence[tuple[int, int]]
    outputs: Sequence[tuple[int, int]]
    iteration: int | None = None
    sliced: Mapping[int, int] = MappingProxyType({})


def ports_of_body(node: NodeProto, name: str, graph: GraphProto) -> BodyPorts:
    """Return the ports of a body. name: of its attribute."""
    mapped = next((each for each in node.attribute if each.name == f"{name.removesuffix('body')}port_map"), None)
    if mapped is not None and plain_domain(node.domain):
        entries = read_ports(str(attribute_value(mapped)))
        iteration = next((each.internal for each in entries if each.purpose == "current_iteration"), None)
        passed = [(each.external, each.internal) for each in entries if each.tag == "input"]
        given = [(each.internal, each.external) for each in entries if each.tag == "output"]
        parts = [(each.internal, each.axis) for each in entries if each.tag == "input"]
        return BodyPorts(_connected(passed), _connected(given), iteration, dict(_connected(parts)))
    is_loop = node.op_type == "Loop"
    first = 1 if is_loop else 0
    inputs = [] if node.op_type == "If" else [(at, at) for at in range(first, len(node.input))]
    outputs = [(at + first, at) for at in range(len(graph.output) - first)]
    return BodyPorts(inputs, outputs, 0 if is_loop else None)


def _connected(ports: Sequence[tuple[int | None, int | None]]) -> list[tuple[int, int]]:
    return [(one, other) for one, other in ports if one is not None and other is not None]
