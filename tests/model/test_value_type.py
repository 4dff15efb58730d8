"""Every element type of onnx has its name and size in splitgraph."""

from __future__ import annotations

import pytest
from onnx import TensorProto

from splitgraph.conversion.ir_version import _TYPES
from splitgraph.model.tensor_data import byte_size
from splitgraph.model.value_type import DTYPE_NAMES


@pytest.mark.parametrize("number", sorted({*TensorProto.DataType.values()} - {TensorProto.UNDEFINED}))
def test_every_element_type_of_the_installed_onnx_is_known(number: int) -> None:
    name = TensorProto.DataType.Name(number)
    assert number in DTYPE_NAMES, f"name {name} in splitgraph/model/value_type.py"
    sized = byte_size(TensorProto(data_type=number, dims=[8])) is not None
    assert sized or number == TensorProto.STRING, f"say in splitgraph/model/tensor_data.py how many bits {name} takes"
    assert number < TensorProto.BFLOAT16 or number in _TYPES, f"add {name} to splitgraph.conversion.ir_version"
