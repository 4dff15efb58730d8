"""Tensors whose data is not as long as their type and shape need."""

from __future__ import annotations

import onnx
import pytest
from onnx import TensorProto, helper

import splitgraph
from splitgraph.model.tensor_data import misfit

FITTING = [
    TensorProto(data_type=TensorProto.FLOAT, dims=[4], raw_data=bytes(16)),
    TensorProto(data_type=TensorProto.FLOAT, dims=[600], raw_data=bytes(2400), name="w", doc_string="d" * 90),
    TensorProto(data_type=TensorProto.FLOAT, dims=[0, 3], raw_data=b""),
    TensorProto(data_type=TensorProto.INT4, dims=[3], raw_data=bytes(2)),
    TensorProto(data_type=TensorProto.DOUBLE, raw_data=bytes(8)),
    TensorProto(data_type=TensorProto.FLOAT, dims=[1], float_data=[1.0]),
    TensorProto(data_type=TensorProto.STRING, dims=[1], string_data=[b"a"]),
    TensorProto(data_type=TensorProto.STRING, dims=[0]),
    TensorProto(data_type=TensorProto.FLOAT16, dims=[2], int32_data=[1, 2]),
    TensorProto(data_type=TensorProto.BOOL, dims=[], int32_data=[1]),
    TensorProto(data_type=TensorProto.UINT32, dims=[1], uint64_data=[1]),
    TensorProto(data_type=TensorProto.COMPLEX64, dims=[2], float_data=[1, 2, 3, 4]),
    TensorProto(data_type=TensorProto.COMPLEX128, dims=[1], double_data=[1, 2]),
    TensorProto(data_type=TensorProto.UINT4, dims=[3], int32_data=[1, 2]),
    TensorProto(data_type=TensorProto.INT2, dims=[5], int32_data=[1, 2]),
    # The weights were removed, which is no matter of a single tensor.
    TensorProto(data_type=TensorProto.FLOAT, dims=[4]),
    TensorProto(data_type=TensorProto.FLOAT, dims=[4], raw_data=b""),
    TensorProto(data_type=TensorProto.FLOAT, dims=[4], raw_data=b"", data_location=TensorProto.EXTERNAL),
]
if hasattr(TensorProto, "FLOAT6E2M3"):  # older releases of onnx do not have it
    FITTING += [
        TensorProto(data_type=TensorProto.FLOAT6E2M3, dims=[5], raw_data=bytes(4)),
        TensorProto(data_type=TensorProto.FLOAT6E2M3, dims=[2], int32_data=[1, 2]),
    ]
MISFITTING = [
    (TensorProto(data_type=TensorProto.FLOAT, dims=[4], raw_data=bytes(7)), 7, 16),
    (TensorProto(data_type=TensorProto.FLOAT, dims=[4], raw_data=bytes(17)), 17, 16),
    (TensorProto(data_type=TensorProto.INT16, dims=[3], raw_data=bytes(7)), 7, 6),
    (TensorProto(data_type=TensorProto.FLOAT, dims=[1 << 20], raw_data=bytes(4000), name="w"), 4000, 4 << 20),
]


@pytest.mark.parametrize("tensor", FITTING)
def test_data_that_fits(tensor: TensorProto) -> None:
    assert misfit(tensor) is None


def test_a_shape_that_needs_more_digits_than_python_writes() -> None:
    for given in ({"raw_data": bytes(4)}, {"float_data": [1.0]}):
        said = misfit(TensorProto(data_type=TensorProto.FLOAT, dims=[2**62] * 300, **given))
        assert said is not None
        assert said.endswith("need more than 2**63")


@pytest.mark.parametrize(("tensor", "found", "needed"), MISFITTING)
def test_data_that_does_not_fit(tensor: TensorProto, found: int, needed: int) -> None:
    said = f"it has {found} bytes of data, and its type and shape need {needed}"
    assert misfit(tensor) == said
    as_initializer, as_constant = model_of(), model_of()
    as_initializer.graph.initializer.add().CopyFrom(tensor)
    as_initializer.graph.initializer[0].name = "w"
    as_constant.graph.node.insert(0, helper.make_node("Constant", [], ["w"], name="c", value=tensor))
    for model, code, location in ((as_initializer, "SG111", "main"), (as_constant, "SG111", "main/c")):
        (diagnostic,) = splitgraph.infer(model).diagnostics
        assert (diagnostic.code, diagnostic.location) == (code, location)
        assert said in diagnostic.message
        with pytest.raises(splitgraph.ConversionError):
            splitgraph.upgrade(model, 18)


def model_of() -> onnx.ModelProto:
    """y is w, which is to be defined."""
    output = onnx.ValueInfoProto(name="y")
    graph = helper.make_graph([helper.make_node("Identity", ["w"], ["y"])], "g", [], [output])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
