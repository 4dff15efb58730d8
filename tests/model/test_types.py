"""Types of values as a model declares them."""

from __future__ import annotations

import onnx
import onnx.parser

import splitgraph


def test_a_dimension_beyond_64_bits_is_inferred_and_left_undeclared() -> None:
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (float[4611686018427387904] x) => (float[A] y) { y = Concat <axis: int = 0> (x, x) }"""
    )
    analysis = splitgraph.infer(model)
    assert str(analysis.types["y"]) == f"float32[{2**63}]"
    assert not analysis.model.graph.output[0].type.tensor_type.shape.dim[0].dim_value
