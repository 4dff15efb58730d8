"""The port maps of If, TensorIterator and Loop in the mirror: by the positions of what a layer and its body have.

The IR names a port of the layer by its id, and a Parameter or Result of the body by the id of that layer.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from splitgraph.formats.openvino_ir import Graph, Layer


@dataclass(frozen=True, slots=True)
class PortEntry:
    """One entry of a port map, or of the back edges.

    tag: "input", "output" or "edge". external: the position of the layer's input or output, None without one. internal:
    the position of the body's input or output. For an edge, external is the body's output, which internal, its input,
    is given in the next iteration. axis: along which slices are taken or put together, from start to end, in parts of
    part_size, which begin stride after one another. purpose: of a Loop's iteration number and condition.
    """

    tag: str
    external: int | None
    internal: int | None
    axis: int | None
    start: int
    end: int
    stride: int
    part_size: int
    purpose: str


def write_ports(layer: Layer, key: str) -> str:
    """Return a port map as text, for an attribute of the mirrored node."""
    prefix = key.removesuffix("port_map") if key.endswith("port_map") else ""
    body = layer.bodies.get(f"{prefix}body")
    return json.dumps([asdict(_entry(layer, body, written)) for written in layer.port_maps[key]])


def read_ports(text: str) -> list[PortEntry]:
    """Return the entries that `write_ports` has written."""
    return [PortEntry(**entry) for entry in json.loads(text)]


def _entry(layer: Layer, body: Graph | None, written: Mapping[str, str]) -> PortEntry:
    tag = written.get("tag", "")
    results, parameters = _ids(body, "Result"), _ids(body, "Parameter")
    if tag == "edge":
        external, internal = _position(results, written, "from-layer"), _position(parameters, written, "to-layer")
    else:
        ports = layer.inputs if tag == "input" else layer.outputs
        external = _position([port.id for port in ports], written, "external_port_id")
        internal = _position(parameters if tag == "input" else results, written, "internal_layer_id")
    axis = _integer(written, "axis", -1)
    return PortEntry(
        tag,
        external,
        internal,
        axis if "axis" in written and axis >= 0 else None,
        _integer(written, "start", 0),
        _integer(written, "end", -1),
        _integer(written, "stride", 1),
        _integer(written, "part_size", 1),
        written.get("purpose", ""),
    )


def _ids(body: Graph | None, kind: str) -> list[int]:
    return [] if body is None else [layer.id for layer in body.layers if layer.type == kind]


def _position(ids: list[int], written: Mapping[str, str], name: str) -> int | None:
    wanted = _integer(written, name, -1)
    return ids.index(wanted) if wanted in ids else None


def _integer(written: Mapping[str, str], name: str, default: int) -> int:
    text = written.get(name, "").strip()
    return int(text) if text.removeprefix("-").isdigit() and text.isascii() else default
