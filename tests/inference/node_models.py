"""Small models written as text, and what inference says of them."""

from __future__ import annotations

import onnx
from onnx import parser

from splitgraph.inference import infer_model
from splitgraph.inference.analysis import Analysis

# The newest opset of the installed onnx: 25 with the oldest supported onnx, 28 with the newest.
NEWEST_OPSET = onnx.defs.onnx_opset_version()


def model_of(inputs: str, body: str, *, opset: int = 18, constants: str = "") -> onnx.ModelProto:
    """A model of onnx's text format: its inputs, its initializers and its nodes."""
    held = f" <{constants}>" if constants else ""
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g ({inputs}) => (){held} {{ {body} }}')


def infer_nodes(inputs: str, body: str, *, opset: int = 18, constants: str = "") -> Analysis:
    """What inference says of such a model."""
    return infer_model(model_of(inputs, body, opset=opset, constants=constants), assumes_nonempty=True)


def shape_text(inputs: str, body: str, *, opset: int = 18, constants: str = "", name: str = "y") -> str:
    """The type of the value `y` as text; an invalid model gives its first finding instead."""
    analysis = infer_nodes(inputs, body, opset=opset, constants=constants)
    if not analysis.ok:
        return f"{analysis.diagnostics[0].code} {analysis.diagnostics[0].message}"
    return str(analysis.types[name])
