"""Values that a caller gives for inputs of every kind: which are refused and why, and which form engines get."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

from splitgraph.model.value_type import UNKNOWN, ValueType, sequence, tensor
from splitgraph.verification.inputs.given_inputs import GivenCase, fitted_arrays
from splitgraph.verification.inputs.model_inputs import ModelInput
from splitgraph.verification.values import Value

F3 = np.array([1, 2, 3], np.float32)
OPTIONAL = ValueType("optional", "float32", (3,))
OPTIONAL_LIST = ValueType("optional", "float32", (3,), sequence("float32", (3,)))
MAP = ValueType("map", "int64", None, tensor("float32", ()))
TEXT_MAP = ValueType("map", "string", None, tensor("int32", ()))
MAPS = ValueType("sequence", None, None, MAP)
TEXTS = tensor("string", (2,))
SPARSE = ValueType("sparse_tensor", "float32", (3,))


def fitted(given: Any, declared: ValueType) -> Value:
    item = ModelInput("x", declared, (), has_default=False, declared=declared)
    return fitted_arrays([item], GivenCase(inputs={"x": given}), {})["x"]


REFUSED: list[tuple[ValueType, Any, str]] = [
    (OPTIONAL, F3.astype(np.float64), "is of type float64; the model takes float32"),
    (OPTIONAL, F3.astype(np.int64), "is of type int64; the model takes float32"),
    (OPTIONAL, np.array(["a", "b", "c"]), "is of type string; the model takes float32"),
    (OPTIONAL, F3.reshape(1, 3), r"has the shape \[1, 3\]"),
    (OPTIONAL, [F3], "is a list; the model takes an array"),
    (OPTIONAL, 5, "is a int; the model takes an array"),
    (OPTIONAL_LIST, F3, "is a ndarray; the model takes a list of arrays"),
    (OPTIONAL_LIST, [F3.astype(np.float64)], "is of type float64; the model takes float32"),
    (MAP, None, "is None; the model takes a mapping"),
    (MAP, 5, "is a int; the model takes a mapping"),
    (MAP, [1], "is a list; the model takes a mapping"),
    (MAP, F3, "is a ndarray; the model takes a mapping"),
    (MAP, {"a": 2.0}, "has the key 'a'; the model takes int64 there"),
    (MAP, {1.5: 2.0}, "has the key 1.5; the model takes int64 there"),
    (MAP, {2**63: 2.0}, "the model takes int64 there"),
    (MAP, {2**70: 2.0}, "the model takes int64 there"),
    (MAP, {1: "a"}, "has the value 'a'; the model takes float32 there"),
    (MAP, {1: F3}, "has the value array"),
    (MAP, {1: None}, "has the value None; the model takes float32 there"),
    (TEXT_MAP, {1: 2}, "has the key 1; the model takes string there"),
    (TEXT_MAP, {"a": 2**31}, "has the value 2147483648; the model takes int32 there"),
    (TEXT_MAP, {"a": 1.5}, "has the value 1.5; the model takes int32 there"),
    (MAPS, {1: 2.0}, "is a dict; the model takes a list"),
    (MAPS, [{1: 2.0}, None], "is None; the model takes a mapping"),
    (ValueType("map", "int64", None, sequence("float32", None)), {1: [F3]}, "is a map of sequence values"),
    (UNKNOWN, 5, "is a int; it must be an array, a list of arrays, a mapping or None"),
    (UNKNOWN, [F3, "a"], "is a str; it must be an array"),
    (UNKNOWN, {1: F3}, "has the value array"),
    (SPARSE, 5, "is a int; it must be an array"),
    # An array of another type is not taken for the model's type because its elements have the same size.
    (tensor("float16", None), np.ones(3, ml_dtypes.bfloat16), "is of type bfloat16; the model takes float16"),
    (tensor("bfloat16", None), np.ones(3, np.float16), "is of type float16; the model takes bfloat16"),
    (tensor("float8e4m3fn", None), np.ones(3, ml_dtypes.int4), "is of type int4; the model takes float8e4m3fn"),
    (tensor("int8", None), np.ones(3, ml_dtypes.int4), "is of type int4; the model takes int8"),
    (tensor("float16", None), np.array([b"ab"], "V2"), "is of type void16; the model takes float16"),
    (tensor("int32", None), np.array([b"abcd"], "V4"), "is of type void32; the model takes int32"),
    (tensor("bfloat16", None), np.zeros(3, [("a", "<f2")]), "is of type void16; the model takes bfloat16"),
    (tensor(None, None), np.array([b"ab"], "V2"), "is of type void16, which no model takes"),
    (UNKNOWN, np.zeros(3, "datetime64[s]"), r"is of type datetime64\[s\], which no model takes"),
    (TEXTS, np.array([1, None], object), "is an array of objects, and one of these is a int; give only texts"),
    (TEXTS, np.array(["a", None], object), "one of these is None; give only texts"),
    (UNKNOWN, np.array([F3, F3[:1]], object), "one of these is a ndarray; give only texts"),
]


@pytest.mark.parametrize(("declared", "given", "reason"), REFUSED)
def test_refused(declared: ValueType, given: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=f"^the input 'x' .*{reason}.*; the inputs of the model are x: "):
        fitted(given, declared)


@pytest.mark.parametrize("declared", [tensor("float32", (3,)), OPTIONAL, SPARSE, UNKNOWN])
def test_another_byte_order(declared: ValueType) -> None:
    found = fitted(F3.astype(">f4"), declared)
    assert found.dtype.isnative
    np.testing.assert_array_equal(found, F3)


@pytest.mark.parametrize("declared", [OPTIONAL_LIST, UNKNOWN])
def test_another_byte_order_in_lists(declared: ValueType) -> None:
    (found,) = fitted([F3.astype(">f4")], declared)
    assert found.dtype.isnative
    np.testing.assert_array_equal(found, F3)


@pytest.mark.parametrize(
    ("declared", "given"),
    [
        (OPTIONAL, None),
        (OPTIONAL_LIST, None),
        (UNKNOWN, None),
        (MAP, {1: 2.0, np.int32(2): np.float32(3), 3: 4}),
        (MAP, {}),
        (TEXT_MAP, {"a": 1}),
        (MAPS, [{1: 2.0}, {}]),
        (UNKNOWN, {1: 2.0}),
    ],
)
def test_values_that_are_passed_on(declared: ValueType, given: Any) -> None:
    assert fitted(given, declared) == given


def test_bytes_without_a_name_are_of_a_type_that_numpy_does_not_have() -> None:
    given = np.array([1, 1000], ml_dtypes.bfloat16)
    for dtype, narrow in (("bfloat16", ml_dtypes.bfloat16), ("int4", ml_dtypes.int4)):
        held = np.array([1, 7], narrow)
        found = fitted(held.view(np.dtype((np.void, held.itemsize))), tensor(dtype, (2,)))
        assert found.dtype == narrow
        np.testing.assert_array_equal(found, held)
    assert fitted(given, tensor("bfloat16", (2,))) is given


@pytest.mark.parametrize("given", [np.array(["a", "b"]), np.array([b"a", "b"], object), np.array([b"a", b"b"])])
def test_texts(given: Any) -> None:
    assert fitted(given, TEXTS).tolist() == ["a", "b"]
