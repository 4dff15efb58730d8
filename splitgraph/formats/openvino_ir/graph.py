"""The graph of an OpenVINO IR: layers with their ports, what feeds them, and the bodies inside them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree.ElementTree import Element


@dataclass(frozen=True, slots=True)
class Port:
    """One input or output of a layer.

    precision: as the IR writes it ("FP32", "I64"), "" when absent. dims: None for an entry that is dynamic; the whole
    is None where the IR does not tell the rank: a port without <dim> is a scalar or of unknown rank, and only the
    layers Const and Parameter say which. names: the tensor's names.
    """

    id: int
    precision: str
    dims: tuple[int | None, ...] | None
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Layer:
    """One layer of a graph.

    version: "opset1", "extension", ... data: the attributes of <data>. bodies: by tag ("body", "then_body",
    "else_body"). port_maps: by tag ("port_map", "then_port_map", "else_port_map", "back_edges"), the attributes of each
    entry in order, with the entry's own tag under "tag". element: the layer in the model's tree.
    """

    id: int
    name: str
    type: str
    version: str
    data: Mapping[str, str]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    bodies: Mapping[str, Graph]
    port_maps: Mapping[str, tuple[Mapping[str, str], ...]]
    element: Element


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """The layers of a <net> or a body, in topological order; layers on a cycle, or that depend on one, come last.

    sources: what each input port reads: (to layer, to port) -> (from layer, from port). element: the element that holds
    <layers> and <edges>.
    """

    layers: tuple[Layer, ...]
    sources: Mapping[tuple[int, int], tuple[int, int]]
    element: Element
