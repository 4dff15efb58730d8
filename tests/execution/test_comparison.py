"""What counts as a difference, of values and of interfaces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from splitgraph.execution.comparison import (
    _NARROW_FLOATS,
    Comparison,
    compare_interfaces,
    misfits,
    mistyped,
)

from .small_models import constant, model_of, node, value


def difference_of(before: Any, after: Any, rtol: float = 1e-5, atol: float = 1e-6) -> str:
    """The reason why two values differ, "" when they do not."""
    found = Comparison(rtol, atol).compare_outputs(["y"], [before], [after], 2)
    if found is None:
        return ""
    assert (found.name, found.case) == ("y", 2)
    return found.reason


F = np.float32
NORMAL = np.random.default_rng(0).standard_normal(50).astype(F)

DIFFERENT = [
    (F([1, 2]), F([1, 2.001]), r"at \[1\] before gives 2.0, after 2.001 \(1 of 2 elements differ\)"),
    (NORMAL, NORMAL * F(1 + 5e-4), "elements differ"),
    (NORMAL.astype(np.float64), NORMAL.astype(np.float64) * (1 + 5e-4), "elements differ"),
    (F([1, 2]), np.float64([1, 2]), "type float32, after float64"),
    (F([1, 2]), F([[1, 2]]), r"shape \[2\], after \[1, 2\]"),
    (F([[1], [2]]), F([[1]]), r"shape \[2, 1\], after \[1, 1\]"),
    (np.zeros((0, 2), F), np.zeros((0, 3), F), "shape"),
    (F([np.nan]), F([0]), "before gives nan, after 0.0"),
    (F([0]), F([np.nan]), "after nan"),
    (F([np.inf]), F([-np.inf]), "before gives inf, after -inf"),
    (F([np.inf]), F([3e38]), "after 3e"),
    (F(1).reshape(()), F(2).reshape(()), "^before gives 1.0, after 2.0$"),
    (np.int64([2**53]), np.int64([2**53 + 1]), "9007199254740993"),
    (np.uint64([2**64 - 1]), np.uint64([2**64 - 2]), "before gives 18446744073709551615"),
    (np.int32([1]), np.int64([1]), "type int32, after int64"),
    (np.array([True]), np.array([False]), "before gives True, after False"),
    (np.array(["a", "b"], object), np.array(["a", "B"], object), "before gives 'b', after 'B'"),
    (np.array(["1"], object), np.int64([1]), "type string, after int64"),
    (np.complex64([1 + 1j]), np.complex64([1 + 1.001j]), "elements|before gives"),
    (np.float16([1]), np.float16([1.004]), "before gives 1.0"),
    (np.array([1], ml_dtypes.bfloat16), np.array([1.04], ml_dtypes.bfloat16), "before gives 1"),
    (np.array([1], ml_dtypes.float8_e4m3fn), np.array([1.5], ml_dtypes.float8_e4m3fn), "before gives 1"),
    (np.array([1], ml_dtypes.float8_e8m0fnu), np.array([2], ml_dtypes.float8_e8m0fnu), "before gives 1"),
    (np.array([1], ml_dtypes.float4_e2m1fn), np.array([1.5], ml_dtypes.float4_e2m1fn), "before gives 1"),
    (np.array([1], ml_dtypes.int4), np.array([2], ml_dtypes.int4), "before gives 1, after 2"),
    (None, F([1]), "an empty optional, after a tensor"),
    ([F([1])], F([1]), "a sequence, after a tensor"),
    ([F([1])], [], "a sequence of 1, after of 0"),
    ([F([1]), F([2])], [F([1]), F([3])], r"element 1: at \[0\] before gives 2.0"),
    ([F([1]), F([2])], [F([2]), F([1])], "element 0"),
    ([None], [F([1])], "element 0"),
    ({"a": F([1])}, {"b": F([1])}, "keys"),
    ({"a": F([1])}, {"a": F([2])}, "at key 'a'"),
]


@pytest.mark.parametrize(("before", "after", "reason"), DIFFERENT)
def test_values_that_differ(before: Any, after: Any, reason: str) -> None:
    import re

    assert re.search(reason, difference_of(before, after))


EQUAL = [
    (F([np.nan, np.inf, -np.inf, 0.0]), F([np.nan, np.inf, -np.inf, -0.0])),
    (NORMAL, NORMAL * F(1 + 2e-6)),
    (F([1e-9]), F([-1e-9])),
    (np.float16([1]), np.float16([1.001])),
    (np.array([1], ml_dtypes.bfloat16), np.array([1.0078125], ml_dtypes.bfloat16)),
    (np.array([1], ml_dtypes.float8_e5m2), np.array([1.25], ml_dtypes.float8_e5m2)),
    (np.complex64([complex(np.nan, 1)]), np.complex64([complex(np.nan, 1)])),
    (np.zeros((0, 2), F), np.zeros((0, 2), F)),
    (np.array(["a"], object), np.array(["a"], object)),
    (None, None),
    ([], []),
    ([F([1]), F([[2]])], [F([1]), F([[2]])]),
    ({"a": F([1])}, {"a": F([1])}),
]


@pytest.mark.parametrize(("before", "after"), EQUAL)
def test_values_that_are_equal(before: Any, after: Any) -> None:
    assert difference_of(before, after) == ""


@pytest.mark.parametrize(("rtol", "atol", "equal"), [(1e-5, 0.0, False), (1e-2, 0.0, True), (0.0, 1e-2, True)])
def test_the_tolerances_are_the_callers(rtol: float, atol: float, equal: bool) -> None:
    assert (difference_of(F([1]), F([1.005]), rtol, atol) == "") is equal


def test_tolerances_of_narrow_types_come_from_the_types() -> None:
    for name, (eps, least) in _NARROW_FLOATS.items():
        info = ml_dtypes.finfo(np.dtype(getattr(ml_dtypes, name, name)))
        assert eps == float(info.eps)
        assert least == (float(info.smallest_subnormal) if name.startswith("float8") else eps)


def test_the_largest_differences_are_kept() -> None:
    comparison = Comparison(1e-2, 1e-2)
    assert comparison.max_abs_diff is None
    assert comparison.compare_outputs(["y"], [F([0, 2, 4])], [F([0.001, 2.002, 4])], 0) is None
    assert comparison.compare_outputs(["y"], [F([np.inf, 10])], [F([np.inf, 10])], 1) is None
    assert comparison.max_abs_diff == pytest.approx(0.002, rel=1e-3)
    assert comparison.max_rel_diff == pytest.approx(0.001, rel=1e-3)


@pytest.mark.parametrize(("before", "after"), [(1, np.inf), (np.inf, 1), (0, np.nan), (np.nan, 2), (np.inf, -np.inf)])
def test_nothing_is_further_from_a_number_than_what_is_none(before: float, after: float) -> None:
    comparison = Comparison(1e-5, 1e-6)
    assert comparison.compare_outputs(["y"], [F([3, before])], [F([3, after])], 0) is not None
    assert (comparison.max_abs_diff, comparison.max_rel_diff) == (np.inf, np.inf)


def test_integers_alone_leave_the_differences_at_nothing() -> None:
    comparison = Comparison(1e-5, 1e-6)
    assert comparison.compare_outputs(["y"], [np.int64([1])], [np.int64([1])], 0) is None
    assert (comparison.max_abs_diff, comparison.max_rel_diff) == (0.0, 0.0)


def test_another_number_of_outputs() -> None:
    found = Comparison(1e-5, 1e-6).compare_outputs(["y"], [F([1])], [F([1]), F([2])], 0)
    assert found is not None
    assert "1 outputs, after 2" in found.reason


def base() -> onnx.ModelProto:
    """x and a default w give a and b."""
    nodes = [node("Add", ["x", "w"], ["s"]), node("Split", ["s"], ["a", "b"], num_outputs=2)]
    inputs = [value("x"), value("w", (4,))]
    return model_of(nodes, inputs, [value("a"), value("b")], [constant("w", [1, 2, 3, 4], np.float32)])


def swap_outputs(model: onnx.ModelProto) -> None:
    first = onnx.ValueInfoProto()
    first.CopyFrom(model.graph.output[0])
    del model.graph.output[0]
    model.graph.output.append(first)


def set_type(index: int, elem_type: int) -> Callable[[onnx.ModelProto], None]:
    return lambda model: setattr(model.graph.output[index].type.tensor_type, "elem_type", elem_type)


def drop_default(model: onnx.ModelProto) -> None:
    del model.graph.initializer[:]


def hold_sparsely(model: onnx.ModelProto) -> None:
    (held,) = model.graph.initializer
    indices = helper.make_tensor("", TensorProto.INT64, [4], [0, 1, 2, 3])
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(held, indices, [4]))
    del model.graph.initializer[:]


def sequence_output(model: onnx.ModelProto) -> None:
    model.graph.output[0].CopyFrom(helper.make_tensor_sequence_value_info("a", TensorProto.FLOAT, None))


INTERFACES: list[tuple[Callable[[onnx.ModelProto], Any], str, str]] = [
    (swap_outputs, "a", "another order: a, b before, b, a after"),
    (lambda m: m.graph.output.pop(), "b", "the output 'b' is missing"),
    (lambda m: m.graph.output.append(value("s")), "s", "new output 's'"),
    (lambda m: m.graph.output.append(m.graph.output[0]), "a", "more often"),
    (lambda m: setattr(m.graph.output[0], "name", "c"), "a", "the output 'a' is missing"),
    (lambda m: setattr(m.graph.input[0], "name", "z"), "x", "the input 'x' is missing"),
    (lambda m: m.graph.input.pop(0), "x", "the input 'x' is missing"),
    (lambda m: m.graph.input.pop(1), "w", "the input 'w' is missing"),
    (lambda m: m.graph.input.append(value("new")), "new", "new input 'new'"),
    (drop_default, "w", "lost its default"),
    (set_type(1, TensorProto.DOUBLE), "b", "declared float32 before and float64 after"),
    (lambda m: m.graph.output[0].type.tensor_type.shape.dim.add(), "a", "of rank 2 before and 3 after"),
    (lambda m: m.graph.input[0].type.tensor_type.shape.dim.pop(), "x", "the input 'x' is declared of rank 2"),
    (sequence_output, "a", "a tensor before and a sequence after"),
]


@pytest.mark.parametrize(("change", "name", "reason"), INTERFACES)
def test_interfaces_that_differ(change: Callable[[onnx.ModelProto], Any], name: str, reason: str) -> None:
    after = base()
    change(after)
    found = compare_interfaces(base(), after)
    assert found is not None
    assert (found.name, found.case) == (name, None)
    assert reason in found.reason


def test_a_sparse_default_that_is_lost_is_a_difference() -> None:
    before, after = base(), base()
    hold_sparsely(before)
    assert compare_interfaces(before, base()) is compare_interfaces(base(), before) is None
    drop_default(after)
    found = compare_interfaces(before, after)
    assert found is not None
    assert "lost its default" in found.reason


def add_default(model: onnx.ModelProto) -> None:
    model.graph.input.append(value("new", ()))
    model.graph.initializer.append(constant("new", 1, np.float32))


SAME_INTERFACES: list[Callable[[onnx.ModelProto], Any]] = [
    lambda m: None,
    lambda m: m.graph.input.reverse(),
    lambda m: m.graph.output[0].type.tensor_type.ClearField("shape"),
    set_type(0, 0),
    lambda m: m.graph.output[0].ClearField("type"),
    lambda m: setattr(m.graph.output[0].type.tensor_type.shape.dim[0], "dim_param", "M"),
    add_default,
]


@pytest.mark.parametrize("change", SAME_INTERFACES)
def test_interfaces_that_do_not(change: Callable[[onnx.ModelProto], Any]) -> None:
    after = base()
    change(after)
    assert compare_interfaces(base(), after) is None


def test_before_ir_4_an_initializer_is_no_input() -> None:
    before, after = base(), base()
    before.ir_version = 3
    del after.graph.input[1]
    assert compare_interfaces(before, after) is None


NESTED = [
    (helper.make_tensor_sequence_value_info("a", TensorProto.INT64, None), "declared float32 before and int64 after"),
    (helper.make_tensor_sequence_value_info("a", TensorProto.FLOAT, [2, 3]), "of rank 1 before and 2 after"),
]


@pytest.mark.parametrize(("declared", "reason"), NESTED)
def test_the_elements_of_sequences_are_compared(declared: onnx.ValueInfoProto, reason: str) -> None:
    before, after = base(), base()
    before.graph.output[0].CopyFrom(helper.make_tensor_sequence_value_info("a", TensorProto.FLOAT, [2]))
    after.graph.output[0].CopyFrom(declared)
    found = compare_interfaces(before, after)
    assert found is not None
    assert reason in found.reason


def test_values_that_are_not_as_declared() -> None:
    declared = [value("x", (1, "N")), value("y", None), value("z", ("N",), TensorProto.INT64)]
    given = {"x": np.zeros((2, 3), F), "y": np.zeros(2, np.float64), "z": [F([1])], "other": F([1])}
    assert misfits(declared, given) == {"x": "declared of shape [1, N] but is [2, 3]"}
    assert mistyped(declared, given) == {"y": "declared of type float32 but is float64"}
    assert misfits(declared, {"x": np.zeros((1, 3, 1), F)}).keys() == {"x"}
    assert misfits(declared, {"x": np.zeros((1, 5), F)}) == mistyped(declared, {"x": np.zeros((1, 5), F)}) == {}
