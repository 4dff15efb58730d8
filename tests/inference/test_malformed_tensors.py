"""Tensors whose elements are not where their type says, or not as many as their shape needs, wherever they are held."""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Any

import pytest
from onnx import ModelProto, NodeProto, SparseTensorProto, TensorProto, helper

import splitgraph

FLOAT, INT64 = TensorProto.FLOAT, TensorProto.INT64


def tensor(data_type: int, dims: list[int], **data: Any) -> TensorProto:
    return TensorProto(name="w", data_type=data_type, dims=dims, **data)


MALFORMED = {
    "too few int64": (tensor(INT64, [3], int64_data=[1, 2]), "2 entries in int64_data"),
    "too many int64": (tensor(INT64, [3], int64_data=[1, 2, 3, 4]), "4 entries in int64_data"),
    "too few floats": (tensor(FLOAT, [4], float_data=[1.0]), "1 entries in float_data"),
    "too few doubles": (tensor(TensorProto.DOUBLE, [2], double_data=[1.0]), "1 entries in double_data"),
    "too few strings": (tensor(TensorProto.STRING, [2], string_data=[b"a"]), "1 entries in string_data"),
    "too few of complex numbers": (tensor(TensorProto.COMPLEX64, [2], float_data=[1, 2]), "need 4"),
    "unpacked 4-bit integers": (tensor(TensorProto.INT4, [4], int32_data=[1, 2, 3, 4]), "need 2"),
    "too few raw bytes": (tensor(FLOAT, [2], raw_data=bytes(7)), "7 bytes of data"),
    "too many raw bytes": (tensor(TensorProto.INT16, [2], raw_data=bytes(6)), "6 bytes of data"),
    "elements of an empty tensor": (tensor(INT64, [0], int64_data=[1]), "need 0"),
    "int64 in the field of int32": (tensor(INT64, [1], int32_data=[1]), "in int64_data or raw_data"),
    "floats in the field of doubles": (tensor(FLOAT, [1], double_data=[1.0]), "in float_data or raw_data"),
    "uint64 in the field of int64": (tensor(TensorProto.UINT64, [1], int64_data=[1]), "in uint64_data or raw_data"),
    "float16 in the field of floats": (tensor(TensorProto.FLOAT16, [1], float_data=[1.0]), "in int32_data or raw_data"),
    "booleans in the field of int64": (tensor(TensorProto.BOOL, [1], int64_data=[1]), "in int32_data or raw_data"),
    "strings as raw data": (tensor(TensorProto.STRING, [1], raw_data=b"a"), "must be in string_data"),
    "raw and typed data": (tensor(FLOAT, [1], raw_data=bytes(4), float_data=[0.0]), "both raw_data and float_data"),
    "empty raw data beside typed": (tensor(FLOAT, [1], raw_data=b"", float_data=[0.0]), "both raw_data and float_data"),
    "two fields": (tensor(FLOAT, [1], float_data=[0.0], int64_data=[0]), "exactly one of them"),
    "no element type": (tensor(TensorProto.UNDEFINED, [1], float_data=[0.0]), "has no element type"),
    "an element type that does not exist": (tensor(999, [1], raw_data=bytes(4)), "no element type 999"),
    "bits beyond 16": (tensor(TensorProto.FLOAT16, [2], int32_data=[1, 70000]), "entry 70000 of int32_data"),
    "negative bits": (tensor(TensorProto.BFLOAT16, [1], int32_data=[-1]), "entry -1 of int32_data"),
    "a negative dimension": (tensor(FLOAT, [-2], float_data=[0.0, 0.0]), "dimension -2 is negative"),
}
# Each with raw data and with typed data.
SOUND = [
    tensor(FLOAT, [2], float_data=[1.0, 2.0]),
    tensor(FLOAT, [2], raw_data=bytes(8)),
    tensor(INT64, [], int64_data=[3]),
    tensor(INT64, [0]),
    tensor(INT64, [0, 4], raw_data=b""),
    tensor(TensorProto.BOOL, [2], int32_data=[0, 1]),
    tensor(TensorProto.BFLOAT16, [2], int32_data=[1, 0xFFFF]),
    tensor(TensorProto.FLOAT16, [2], int32_data=[0, 0xFFFF]),
    tensor(TensorProto.INT8, [3], raw_data=bytes(3)),
    tensor(TensorProto.STRING, [2], string_data=[b"a", b""]),
]


def model_of(*nodes: NodeProto, **held: Any) -> ModelProto:
    inputs = [helper.make_tensor_value_info("c", TensorProto.BOOL, [])]
    graph = helper.make_graph(list(nodes), "g", inputs, [helper.make_empty_tensor_value_info("y")], **held)
    imports = [helper.make_opsetid("", 17), helper.make_opsetid("local", 1), helper.make_opsetid("custom", 1)]
    return helper.make_model(graph, opset_imports=imports, ir_version=8)


def as_initializer(held: TensorProto) -> ModelProto:
    return model_of(helper.make_node("Identity", ["w"], ["y"]), initializer=[held])


def as_constant(held: TensorProto) -> ModelProto:
    return model_of(helper.make_node("Constant", [], ["y"], value=held))


def as_attribute_of_another_domain(held: TensorProto) -> ModelProto:
    return model_of(helper.make_node("Lookup", ["c"], ["y"], domain="custom", table=held))


def as_attribute_of_tensors(held: TensorProto) -> ModelProto:
    sound = tensor(FLOAT, [1], float_data=[0.0])
    return model_of(helper.make_node("Lookup", ["c"], ["y"], domain="custom", tables=[sound, held]))


def in_a_branch(held: TensorProto) -> ModelProto:
    branch = helper.make_graph([], "b", [], [helper.make_empty_tensor_value_info("w")], initializer=[held])
    return model_of(helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=branch))


def in_a_function(held: TensorProto) -> ModelProto:
    model = model_of(helper.make_node("F", [], ["y"], domain="local"))
    body = [helper.make_node("Constant", [], ["o"], value=held)]
    model.functions.append(helper.make_function("local", "F", [], ["o"], body, [helper.make_opsetid("", 17)]))
    return model


PLACES = [
    as_initializer,
    as_constant,
    as_attribute_of_another_domain,
    as_attribute_of_tensors,
    in_a_branch,
    in_a_function,
]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("held", SOUND, ids=lambda held: f"{held.data_type}{list(held.dims)}")
def test_sound_tensors(held: TensorProto, place: Callable[[TensorProto], ModelProto]) -> None:
    assert splitgraph.infer(place(held)).ok


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", MALFORMED)
def test_malformed_tensors(name: str, place: Callable[[TensorProto], ModelProto]) -> None:
    held, said = MALFORMED[name]
    model = place(held)
    errors = [found for found in splitgraph.infer(model).diagnostics if found.severity == "error"]
    assert [found.code for found in errors][:1] == ["SG111"]
    assert said in errors[0].message
    with pytest.raises(splitgraph.ConversionError, match="cannot go") as refused:
        splitgraph.upgrade(model, 18)
    assert any(said in found.message for found in refused.value.diagnostics)


def sparse(values: TensorProto, indices: TensorProto, dims: list[int]) -> SparseTensorProto:
    return SparseTensorProto(values=values, indices=indices, dims=dims)


TWO = tensor(FLOAT, [2], float_data=[1.0, 2.0])
MALFORMED_SPARSE = {
    "indices outside": (sparse(TWO, tensor(INT64, [2], int64_data=[0, 6]), [2, 3]), "lies outside"),
    "coordinates outside": (sparse(TWO, tensor(INT64, [2, 2], int64_data=[0, 0, 2, 0]), [2, 3]), "lies outside"),
    "indices out of order": (sparse(TWO, tensor(INT64, [2], int64_data=[4, 1]), [2, 3]), "ascending"),
    "an index twice": (sparse(TWO, tensor(INT64, [2], int64_data=[1, 1]), [2, 3]), "ascending"),
    "fewer indices than values": (sparse(TWO, tensor(INT64, [1], int64_data=[1]), [2, 3]), "it must be [2] or [2, 2]"),
    "indices of another rank": (sparse(TWO, tensor(INT64, [2, 1], int64_data=[1, 2]), [2, 3]), "it must be [2] or"),
    "indices of another type": (sparse(TWO, tensor(TensorProto.INT32, [2], int32_data=[0, 1]), [6]), "must be int64"),
    "values that are no vector": (
        sparse(tensor(FLOAT, [1, 1], float_data=[1]), tensor(INT64, [1], int64_data=[0]), [6]),
        "rank 2",
    ),
    "values too short": (sparse(tensor(FLOAT, [2], float_data=[1]), TWO, [6]), "of its values"),
    "no shape": (sparse(TWO, tensor(INT64, [2], int64_data=[0, 1]), []), "one dimension or more"),
}
SOUND_SPARSE = [
    sparse(TWO, tensor(INT64, [2], int64_data=[0, 5]), [2, 3]),
    sparse(TWO, tensor(INT64, [2, 2], int64_data=[0, 2, 1, 0]), [2, 3]),
    sparse(TWO, tensor(INT64, [2], raw_data=struct.pack("<2q", 1, 2)), [6]),
    sparse(tensor(FLOAT, [0]), tensor(INT64, [0]), [6]),
]


def sparse_models(held: SparseTensorProto) -> list[ModelProto]:
    read = helper.make_node("Identity", ["w"], ["y"])
    constant = helper.make_node("Constant", [], ["y"], sparse_value=held)
    return [model_of(read, sparse_initializer=[held]), model_of(constant)]


@pytest.mark.parametrize("held", SOUND_SPARSE, ids=lambda held: str(list(held.dims)))
def test_sound_sparse_tensors(held: SparseTensorProto) -> None:
    held.values.name = "w"
    assert all(splitgraph.infer(model).ok for model in sparse_models(held))


@pytest.mark.parametrize("name", MALFORMED_SPARSE)
def test_malformed_sparse_tensors(name: str) -> None:
    held, said = MALFORMED_SPARSE[name]
    held.values.name = "w"
    for model in sparse_models(held):
        errors = [found for found in splitgraph.infer(model).diagnostics if found.severity == "error"]
        assert errors[0].code == "SG111"
        assert said in errors[0].message
        with pytest.raises(splitgraph.ConversionError):
            splitgraph.upgrade(model, 18)
