"""Small models written as text, and what inference says of them."""

from __future__ import annotations

from collections.abc import Sequence

import onnx
import pytest
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


def each(table: Sequence[tuple[str, str, str, int, str]]) -> pytest.MarkDecorator:
    """A test for each row of a table (name, inputs, nodes, opset, expectation) whose opset the installed onnx has."""
    rows = [row for row in table if row[3] <= NEWEST_OPSET]
    arguments = ("inputs", "body", "opset", "expected")
    return pytest.mark.parametrize(arguments, [row[1:] for row in rows], ids=[row[0] for row in rows])


def assert_invalid(analysis: Analysis, said: str) -> None:
    """The only finding is an invalid node and says so; nothing is known of the shape of `y`."""
    (found,) = analysis.diagnostics
    assert found.code == "SG302"
    assert said in found.message
    assert analysis.types["y"].shape is None
