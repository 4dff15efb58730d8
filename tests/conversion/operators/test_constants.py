"""ConstantFill, which no onnx of today knows: from opset 9 on it is ConstantOfShape."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.execute import (
    Array,
    assert_same,
    build,
    converted,
    number_of,
    operators,
    refusal,
    run,
    run_reference,
)
from known_opsets import known
from onnx import helper

from splitgraph.conversion.opset import convert_opset

X = np.zeros((2, 3), np.float32)
SIZES = np.array([2, 3], np.int64)


def fill(kind: str = "float32", given: Array | None = None, rank: int | None = 2, **attributes: Any) -> onnx.ModelProto:
    """ConstantFill at opset 6, of an input with dimensions that are not known where one is given."""
    inputs = {} if given is None else {"x": (str(given.dtype), [None] * given.ndim)}
    if kind != "float32":
        attributes["dtype"] = number_of(kind)
    node = helper.make_node("ConstantFill", list(inputs), ["y"], "fill", **attributes)
    return build(node, 6, inputs, {"y": (kind, None if rank is None else [None] * rank)})


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (fill("float64", rank=1, shape=[2]), "output 0 is float64"),
        (fill("int32", shape=[2], value=0.5), "does not say how it is rounded"),
        (fill("int32", shape=[2], value=2.0**31), "is no element of its type"),
        (fill("int64", shape=[2], value=float("inf")), "is no element of its type"),
        (fill("bool", shape=[2], value=2.0), "is no element of its type"),
        (fill(), "must be an attribute"),
        (fill(shape=[2], extra_shape=[3]), "nothing else"),
        (fill(given=X, shape=[2]), "only one is allowed"),
    ],
)
def test_refusals(model: onnx.ModelProto, words: str) -> None:
    assert words in refusal(model, 9)


def test_is_kept_where_it_existed() -> None:
    model = fill(given=X)
    assert operators(convert_opset(model, 8).model) == ["ConstantFill"]
    assert operators(convert_opset(convert_opset(model, 8).model, 7).model) == ["ConstantFill"]


def test_is_refused_where_it_was_gone_already() -> None:
    model = fill(given=X)
    model.opset_import[0].version = 9
    assert "was removed at opset 9" in refusal(model, 13)
    assert "was removed at opset 9" in refusal(model, 8)


@pytest.mark.parametrize("target", known([9, 18, 26]))
@pytest.mark.parametrize(
    ("model", "feeds", "expected"),
    [
        (fill(shape=[2, 3]), {}, np.zeros((2, 3), np.float32)),
        (fill(shape=[2, 3], value=-0.0), {}, np.full((2, 3), -0.0, np.float32)),
        (fill(shape=[2, 3], value=float("nan")), {}, np.full((2, 3), np.nan, np.float32)),
        (fill("int64", shape=[0, 3]), {}, np.zeros((0, 3), np.int64)),
        (fill(given=X, value=1.5), {"x": X}, np.full((2, 3), 1.5, np.float32)),
        (fill(given=X, value=1.5), {"x": X[:0]}, np.full((0, 3), 1.5, np.float32)),
        (
            fill("int32", X, 4, value=-7.0, extra_shape=[4, 1]),
            {"x": X},
            np.full((2, 3, 4, 1), -7, np.int32),
        ),
        (fill("bool", SIZES, value=1.0, input_as_shape=1), {"x": SIZES}, np.ones((2, 3), bool)),
        (
            fill("float32", SIZES.astype(np.int32), 3, input_as_shape=1, extra_shape=[2]),
            {"x": SIZES.astype(np.int32)},
            np.zeros((2, 3, 2), np.float32),
        ),
        (
            fill("float32", SIZES.astype(np.float32), input_as_shape=1),
            {"x": SIZES.astype(np.float32)},
            np.zeros((2, 3), np.float32),
        ),
        (fill("float32", SIZES, 0, input_as_shape=1), {"x": SIZES[:0]}, np.zeros((), np.float32)),
    ],
)
def test_shape_is_computed(model: onnx.ModelProto, feeds: dict[str, Array], expected: Array, target: int) -> None:
    after = converted(model, target)
    assert "ConstantFill" not in operators(after)
    assert_same([expected], run(after, feeds))


@pytest.mark.usefixtures("functions_stay")
def test_attribute_of_a_function_is_refused() -> None:
    node = helper.make_node("ConstantFill", ["x"], ["y"], "fill")
    node.attribute.append(onnx.AttributeProto(name="value", type=onnx.AttributeProto.FLOAT, ref_attr_name="level"))
    imports = [helper.make_opsetid("", 6)]
    function = helper.make_function("local", "Fill", ["x"], ["y"], [node], imports, ["level"])
    call = helper.make_node("Fill", ["x"], ["y"], "call", domain="local", level=2.0)
    model = build(call, 6, {"x": ("float32", (2,))}, {"y": ("float32", (2,))})
    model.ir_version = 8
    model.opset_import.append(helper.make_opsetid("local", 1))
    model.functions.append(function)
    assert "attribute of the enclosing function" in refusal(model, 9)


def narrow(dtype: str, value: float) -> onnx.ModelProto:
    held = helper.make_tensor("", number_of(dtype), [1], [value])
    node = helper.make_node("ConstantOfShape", ["x"], ["y"], value=held)
    return build(node, 20, {"x": ("int64", (2,))}, {"y": (dtype, [None, None])})


@pytest.mark.parametrize("dtype", ["bfloat16", "float8e5m2", "float8e4m3fn"])
@pytest.mark.parametrize("value", [1.5, -0.0, float("inf"), float("nan")])
def test_narrow_values_below_20(dtype: str, value: float) -> None:
    before = narrow(dtype, value)
    after = converted(before, 19)
    assert operators(after) == ["ConstantOfShape", "Cast"]
    for sizes in (SIZES, SIZES * 0):
        assert_same(run_reference(before, {"x": sizes}), run_reference(after, {"x": sizes}))
    target = 18 if dtype.startswith("float8") else 12
    assert "does not take" in refusal(before, target)


def test_infinities_of_float8_are_not_saturated() -> None:
    """onnx's evaluator does not look at it."""
    before = narrow("float8e5m2", 1.0)
    # onnx's helper saturates.
    held = onnx.TensorProto(data_type=onnx.TensorProto.FLOAT8E5M2, dims=[1], raw_data=b"\x7c")
    before.graph.node[0].attribute[0].t.CopyFrom(held)
    cast = converted(before, 19).graph.node[-1]
    assert {held.name: held.i for held in cast.attribute} == {"to": onnx.TensorProto.FLOAT8E5M2, "saturate": 0}


@pytest.mark.parametrize(("given", "dtype"), [("bfloat16", None), ("bfloat16", "int32"), ("float32", "bfloat16")])
def test_identity_matrices_below_22(given: str, dtype: str | None) -> None:
    attributes = {} if dtype is None else {"dtype": number_of(dtype)}
    node = helper.make_node("EyeLike", ["x"], ["y"], k=1, **attributes)
    before = build(node, 22, {"x": (given, (3, 4))}, {"y": (dtype or given, (3, 4))})
    after = converted(before, 21)
    data = np.ones((3, 4), helper.tensor_dtype_to_np_dtype(number_of(given)))
    assert_same(run_reference(before, {"x": data}), run_reference(after, {"x": data}))
    assert "bfloat16" in refusal(before, 12)


@pytest.mark.parametrize("target", [8, 7, 6])
@pytest.mark.parametrize("is_constant", [True, False])
@pytest.mark.parametrize(("kind", "value"), [("float32", None), ("float64", 0.5), ("int64", 7), ("bool", 1)])
@pytest.mark.parametrize("sizes", [[2, 3], [0, 2], [1], []])
def test_constant_of_shape_below_9(
    sizes: list[int], kind: str, value: float | None, is_constant: bool, target: int
) -> None:
    attributes = {} if value is None else {"value": helper.make_tensor("", number_of(kind), [1], [value])}
    node = helper.make_node("ConstantOfShape", ["s"], ["y"], **attributes)
    held = {"s": np.array(sizes, np.int64)}
    inputs = {} if is_constant else {"s": ("int64", [len(sizes)])}
    model = build(node, 9, inputs, {"y": (kind, [None] * len(sizes))}, held if is_constant else None)
    after = converted(model, target)
    at_run_time = "Expand" if target == 8 else "Tile" if sizes else "Identity"
    assert operators(after)[-1] == ("Identity" if is_constant else at_run_time)
    assert_same([np.full(sizes, value or 0, kind)], run(after, {} if is_constant else held))


@pytest.mark.parametrize("target", [8, 7])
def test_shape_that_is_asked_for_counts_and_not_the_declared_one(target: int) -> None:
    node = helper.make_node("ConstantOfShape", ["s"], ["y"])
    after = converted(build(node, 9, {"s": ("int64", [2])}, {"y": ("float32", [2, 3])}), target)
    after.graph.output[0].type.tensor_type.ClearField("shape")
    assert_same([np.zeros((4, 1), np.float32)], run(after, {"s": np.array([4, 1])}))


def test_many_elements_are_made_at_run_time() -> None:
    node = helper.make_node("ConstantOfShape", ["s"], ["y"])
    model = build(node, 9, {}, {"y": ("float32", [1000, 1000])}, {"s": np.array([1000, 1000])})
    assert operators(converted(model, 8)) == ["Expand"]


@pytest.mark.parametrize(("kind", "k"), [(None, None), ("bool", 1), ("int64", -2), ("float16", 9)])
def test_eye_like_below_9(kind: str | None, k: int | None) -> None:
    attributes = {"k": k, "dtype": None if kind is None else number_of(kind)}
    node = helper.make_node("EyeLike", ["x"], ["y"], **attributes)
    model = build(node, 9, {"x": ("float32", [2, 3])}, {"y": (kind or "float32", [2, 3])})
    expected = np.eye(2, 3, k or 0).astype(kind or "float32")
    for target in (8, 1):
        assert_same([expected], run_reference(converted(model, target), {"x": X}))
    symbolic = build(node, 9, {"x": ("float32", ["n", 3])}, {"y": (kind or "float32", [None, 3])})
    assert "the shape of its input is not known" in refusal(symbolic, 8)
