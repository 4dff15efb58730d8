"""Models in onnx's text form, and what differs between two of them in few words."""

from __future__ import annotations

import onnx
import onnx.parser

import splitgraph
from splitgraph import ModelDifference


def model(text: str, opset: int = 18, functions: str = "") -> onnx.ModelProto:
    """The model of a graph: "(float[N, 6] x) => (float[N, 3] y) { y = Relu(x) }"."""
    imports = f'"": {opset}, "mine": 1'
    return onnx.parser.parse_model(f"<ir_version: 8, opset_import: [{imports}]> g {text} {functions}")


def unnamed(text: str, opset: int = 18) -> onnx.ModelProto:
    """The same, with no name for any node."""
    made = model(text, opset)
    for node in made.graph.node:
        node.ClearField("name")
    return made


def named(text: str, *names: str, opset: int = 18) -> onnx.ModelProto:
    """The same, with these names for the nodes of the main graph."""
    made = model(text, opset)
    for node, name in zip(made.graph.node, names, strict=True):
        node.name = name
    return made


def told(found: ModelDifference) -> list[str]:
    """The nodes that differ: "changed Split#0: attributes"."""
    return [f"{node.kind} {node.location.removeprefix('main/')}: {', '.join(node.aspects)}" for node in found.nodes]


def parts(found: ModelDifference) -> list[tuple[str, str, str, str | None, str | None]]:
    return [(each.part, each.name, each.kind, each.before, each.after) for each in found.parts]


def diff(before: onnx.ModelProto, after: onnx.ModelProto) -> ModelDifference:
    return splitgraph.diff(before, after)
