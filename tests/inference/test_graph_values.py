"""What is known of the values of a graph."""

from __future__ import annotations

import struct

import onnx

from splitgraph.inference import infer_model


def test_constants_in_another_file_are_not_taken_for_those_here() -> None:
    """Two of the same type, of which the second has raw data by mistake: it once had the first one's elements."""
    model = onnx.parser.parse_model(
        """<ir_version: 8, opset_import: ["" : 18]>
        g (float[6] x) => (float[a, b] y, float[c, d] z) { y = Reshape (x, here) z = Reshape (x, there) }"""
    )
    for name in ("here", "there"):
        model.graph.initializer.add(
            name=name, data_type=onnx.TensorProto.INT64, dims=[2], raw_data=struct.pack("<2q", 2, 3)
        )
    model.graph.initializer[1].data_location = onnx.TensorProto.EXTERNAL
    types = infer_model(model).types
    assert (str(types["y"]), str(types["z"])) == ("float32[2, 3]", "float32[c, d]")
