"""Elements of every type, case by case."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from splitgraph.verification.inputs.elements import draw_elements
from splitgraph.verification.inputs.later_attempts import RETRY_POLICY

from ..drawing import draw
from ..small_models import model_of, node, value

INT64, BOOL, STRING = TensorProto.INT64, TensorProto.BOOL, TensorProto.STRING


def identity(dims: Any, dtype: int = TensorProto.FLOAT) -> onnx.ModelProto:
    return model_of([node("Identity", ["x"], ["y"])], [value("x", dims, dtype)], [value("y", None, dtype)])


ELEMENT_TYPES = [number for number in TensorProto.DataType.values() if number not in (0, 8, 9)]


@pytest.mark.parametrize("number", [n for n in ELEMENT_TYPES if n <= 22])
def test_every_element_type(number: int) -> None:
    (first, second) = draw(identity((3, 5), number), cases=2)
    expected = helper.tensor_dtype_to_np_dtype(number)
    assert first["x"].dtype == expected
    assert first["x"].tobytes() != second["x"].tobytes()


def test_floats_of_every_third_case_are_positive() -> None:
    signs = [bool((case["x"] < 0).any()) for case in draw(identity((40,)))]
    assert signs == [True, True, False]


def test_booleans_are_both_and_strings_hold_white_space_and_delimiters() -> None:
    assert set(draw(identity((4,), BOOL))[0]["x"].tolist()) == {True, False}
    split = node("StringSplit", ["x"], ["y", "z"], delimiter=";")
    outputs = [value("y", None, STRING), value("z", None, INT64)]
    (texts, *_) = draw(model_of([split], [value("x", (30,), STRING)], outputs, opset=20))
    assert any(";" in text for text in texts["x"])
    assert any(" " in text for text in texts["x"])
    assert any(text.endswith(";;") for text in texts["x"])


def test_integers_are_distinct_and_of_both_signs_in_the_second_case() -> None:
    first, second, _ = draw(identity(("N", 5), INT64))
    assert len(set(first["x"].ravel().tolist())) == first["x"].size
    assert first["x"].min() == 1
    assert second["x"].min() < 0 < second["x"].max()


DRAWN_APART = [
    ("int64", (), {1, 0}),
    ("uint8", (1,), {1, 0}),
    ("int32", (2, 3), {0}),
    ("bool", (), {True, False}),
    ("bool", (1, 1), {True, False}),
]


@pytest.mark.parametrize(("dtype", "shape", "among"), DRAWN_APART)
def test_what_few_elements_are_differs_from_case_to_case(dtype: str, shape: Any, among: set[int]) -> None:
    """Or a condition would have one value, and a scalar be equal to its cube."""
    number = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    drawn = [case["x"] for case in draw(identity(shape, number))]
    assert all(each.shape == shape for each in drawn)
    found = {element for each in drawn for element in each.ravel().tolist()}
    assert among <= found
    assert dtype == "bool" or max(map(abs, found)) > 1


@pytest.mark.parametrize("operator", ["Div", "Mod"])
def test_integers_that_may_divide_are_not_0(operator: str) -> None:
    """A runtime may end the process over it."""
    inputs = [value("x", (3,), INT64), value("y", (3,), INT64)]
    model = model_of([node(operator, ["x", "y"], ["z"])], inputs, [value("z", (3,), INT64)])
    assert all((case["y"] != 0).all() for case in draw(model, 6))


def test_positions_stay_among_the_elements() -> None:
    model = model_of([node("Gather", ["x", "i"], ["y"])], [value("x", (2,)), value("i", (1,), INT64)], ["y"])
    assert all(abs(case["i"]).max() <= 1 for case in draw(model, 6))


def test_one_number_is_of_both_signs() -> None:
    assert {float(np.sign(case["x"])) for case in draw(identity(()))} == {1.0, -1.0}


@pytest.mark.parametrize(("case", "attempt"), [(0, 0), (2, 0), (1, 1), (1, 5)])
def test_floats_of_other_cases_and_attempts_are_normally_distributed(case: int, attempt: int) -> None:
    numbers = draw_elements("float32", (40,), np.random.default_rng(0), case=case, rule=RETRY_POLICY[attempt])
    assert 0 < abs(numbers).min() < abs(numbers).max() < 6


FLOATS = ["float16", "bfloat16", "float32", "float64", "float8e4m3fn", "float8e4m3fnuz", "float8e5m2", "float8e5m2fnuz"]


@pytest.mark.parametrize("dtype", [*FLOATS, "float4e2m1"])
@pytest.mark.parametrize("shape", [(), (1,), (2,), (7,), (8,), (3, 5), (400,)])
def test_floats_of_the_second_case_have_large_ones_of_both_signs_and_a_0(dtype: str, shape: Any) -> None:
    drawn = draw_elements(dtype, shape, np.random.default_rng(0), case=1, rule=RETRY_POLICY[0])
    numbers = drawn.astype(np.float64).ravel()
    farther = draw_elements(dtype, shape, np.random.default_rng(0), case=1, rule=RETRY_POLICY[0], reach=1e30)
    assert np.isfinite([*numbers, *farther.astype(np.float64).ravel()]).all()
    if dtype == "float4e2m1":
        assert abs(numbers).max() <= 6
        return
    large = abs(numbers) >= 7
    assert large.sum() == (len(numbers) + 3) // 4 if len(numbers) > 1 else not large.any()
    assert len(set(np.sign(numbers[large]))) == min(large.sum(), 2)
    if dtype in ("float32", "float64"):
        assert (numbers == 0).sum() == (len(numbers) >= 8)
        assert len(set(numbers.tolist())) == len(numbers)


def test_narrow_integers_stay_in_range() -> None:
    rng = np.random.default_rng(0)
    for name, low, high in (("int4", -8, 7), ("uint4", 0, 15)):
        numbers = draw_elements(name, (200,), rng, case=0, rule=RETRY_POLICY[0])
        assert numbers.dtype == getattr(ml_dtypes, name)
        assert (int(numbers.min()), int(numbers.max())) == (low, high)
    assert draw_elements("int8", (300,), rng, case=0, rule=RETRY_POLICY[0]).min() >= 0
    assert set(draw_elements("int64", (50,), rng, case=0, rule=RETRY_POLICY[4]).tolist()) == {0, 1}
