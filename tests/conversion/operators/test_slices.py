"""Slice in all its forms, the parts of Shape, triangles, the last of several equal elements."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import numpy as np
import onnx.parser
import pytest
from conversion.operators.crossings import Crossing, both_shapes
from conversion.operators.execute import (
    assert_same,
    build,
    converted,
    operators,
    random_array,
    refusal,
    run,
    run_reference,
)

import splitgraph

X = random_array((4, 5, 6))
GREATEST, LEAST = np.iinfo(np.int64).max, np.iinfo(np.int64).min


def ints(*given: int) -> np.ndarray:
    return np.array(given, np.int64)


def bounds(*given: tuple[int, ...]) -> dict[str, np.ndarray]:
    return {name: ints(*each) for name, each in zip(("starts", "ends", "axes", "steps"), given, strict=False)}


# starts, ends, axes, steps
PARTS = [
    ((1, 0), (3, 4)),
    ((-3,), (-1,), (1,)),
    ((2,), (GREATEST,), (2,)),
    ((-1000,), (2**31 - 1,), (0,)),
    ((7,), (9,), (0,)),
    ((3, 1), (5, 2), (2, 0)),
    ((0, 1), (4, 6), (0, 2), (2, 3)),
    ((-1,), (LEAST,), (1,), (-1,)),
    ((10, 3), (0, -6), (2, 0), (-2, -3)),
    ((1,), (3,), (-1,), (1,)),
    ((0,), (0,), (-2,), (-1,)),
]


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (
            Crossing("axes", "Slice", 13, 9, {"x": X, **bounds((1,), (3,), (-1,))}, shapes="unknown"),
            "the rank of 'x' is unknown",
        ),
        (
            Crossing("count", "Slice", 13, 9, {"x": X, **bounds((1,), (3,))}, shapes="symbolic"),
            "how many axes it slices is known only at run time",
        ),
        (
            Crossing("backwards", "Slice", 13, 9, {"x": X}, bounds((-1, 0), (2**31 - 1, 2), (1, 0), (-1, 1))),
            "onnxruntime takes the largest integer as the end of a backward slice for its beginning",
        ),
    ],
    ids=str,
)
def test_refusals(case: Crossing, words: str) -> None:
    assert words in case.refused()


def test_axes_that_only_the_run_tells_of_a_tensor_of_a_thousand_are_refused() -> None:
    sizes = ",".join("1" for _ in range(1000))
    model = onnx.parser.parse_model(f"""<ir_version: 8, opset_import: ["" : 13]>
        g (float[{sizes}] x, int64[1] from, int64[1] to, int64[1] along) => (y) {{ y = Slice(x, from, to, along) }}""")
    with pytest.raises(splitgraph.ConversionError, match="nothing is written out for more than 32 axes"):
        splitgraph.downgrade(model, 9)


@pytest.mark.parametrize("part", PARTS[:6], ids=str)
def test_attributes_become_constants(part: tuple[tuple[int, ...], ...]) -> None:
    names = ("starts", "ends", "axes")
    attributes = {name: list(given) for name, given in zip(names, part, strict=False)}
    for target in (10, 11, 18):
        Crossing("", "Slice", 9, target, {"x": X}, attributes=attributes).check()


@pytest.mark.parametrize("part", PARTS, ids=str)
@pytest.mark.parametrize("target", [12, 10, 9])
def test_constants(part: tuple[tuple[int, ...], ...], target: int) -> None:
    for case in both_shapes(Crossing("", "Slice", 13, target, {"x": X}, bounds(*part))):
        case.check()


@pytest.mark.parametrize("part", PARTS, ids=str)
@pytest.mark.parametrize("target", [10, 9])
def test_bounds_at_run_time(part: tuple[tuple[int, ...], ...], target: int) -> None:
    for case in both_shapes(Crossing("", "Slice", 13, target, {"x": X, **bounds(*part)})):
        # Without the number of axes nothing is known of where the slice is.
        if target > 9 or case.shapes == "static" or len(part) > 2:
            case.check()


@pytest.mark.parametrize("length", [0, 1, 3])
def test_every_bound_of_a_short_dimension_at_run_time(length: int) -> None:
    x = np.arange(length, dtype=np.float32)
    case = Crossing("", "Slice", 13, 9, {"x": x, **bounds((0,), (1,), (0,), (1,))}, shapes="symbolic")
    before, after = case.model(), converted(case.model(), 9)
    for start, end, step in product((-4, -2, 0, 1, 3, GREATEST), (LEAST, -4, -1, 0, 2, GREATEST), (1, 2, -1, -2)):
        if step < 0 and end == GREATEST:
            # The document clamps it to the last element; onnxruntime takes it for the first.
            continue
        feeds = {"x": x, **bounds((start,), (end,), (0,), (step,))}
        assert_same(run(before, feeds), run(after, feeds))


@pytest.mark.parametrize("source", [13, 10])
def test_constant_slice_without_steps_stays_one_node(source: int) -> None:
    case = Crossing("", "Slice", source, 9, {"x": X}, bounds((1,), (3,), (-1,)))
    (node,) = case.check().graph.node
    assert node.op_type == "Slice"
    # Below 11 axes are counted from the front, whatever onnxruntime takes.
    assert [list(held.ints) for held in node.attribute if held.name == "axes"] == [[X.ndim - 1]]


@pytest.mark.parametrize("start", [None, 0, 1, -1, -10, 10])
@pytest.mark.parametrize("end", [None, 0, 2, -1, -10, 10])
def test_part_of_shape(start: int | None, end: int | None) -> None:
    attributes = {name: value for name, value in (("start", start), ("end", end)) if value is not None}
    case = Crossing("", "Shape", 15, 14, {"x": X}, attributes=attributes)
    for each in (*both_shapes(case), replace(case, shapes="unknown")):
        each.check()


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("shape", [(3, 4), (2, 4, 3), (0, 3), (2, 3, 0)])
@pytest.mark.parametrize("target", [13, 9])
def test_triangles(upper: int, shape: tuple[int, ...], target: int) -> None:
    for dtype, k in product(("float32", "int64", "bool"), (None, 0, 1, -2, 7)):
        x = random_array(shape, dtype)
        held = {} if k is None else {"k": np.array(k)}
        Crossing("", "Trilu", 14, target, {"x": x}, held, {"upper": upper}).check()
        Crossing("", "Trilu", 14, target, {"x": x, **held}, {}, {"upper": upper}, shapes="symbolic").check()


def test_triangles_of_strings_are_refused() -> None:
    declared = {"x": ("string", (2, 2))}
    model = build(onnx.helper.make_node("Trilu", ["x"], ["y"]), 14, declared, {"y": ("string", (2, 2))})
    assert "the value outside of a triangle of strings is not specified" in refusal(model, 13)


@pytest.mark.parametrize("upper", [0, 1])
def test_triangles_of_bfloat16_at_13(upper: int) -> None:
    """Elements are chosen in float32, from which Cast gives each back."""
    text = f"""<ir_version: 8, opset_import: ["": 14]>
    g (bfloat16[N, M] x, int64 k) => (bfloat16[N, M] y) {{ y = Trilu <upper = {upper}> (x, k) }}"""
    before = onnx.parser.parse_model(text)
    bfloat16 = onnx.helper.tensor_dtype_to_np_dtype(onnx.TensorProto.BFLOAT16)
    feeds = {"x": random_array((3, 4)).astype(bfloat16), "k": np.array(1)}
    (found,), (expected,) = (run_reference(each, feeds) for each in (converted(before, 13), before))
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))
    assert "does not take bfloat16" in refusal(before, 12)


@pytest.mark.parametrize("op", ["ArgMax", "ArgMin"])
@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("keepdims", [0, 1])
def test_last_of_equal_elements(op: str, axis: int, keepdims: int) -> None:
    x = np.random.default_rng(0).integers(0, 3, (3, 5, 4)).astype(np.float32)
    attributes = {"axis": axis, "keepdims": keepdims, "select_last_index": 1}
    for target in (11, 9):
        for case in both_shapes(Crossing("", op, 13, target, {"x": x}, attributes=attributes)):
            case.check()


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_axes_that_are_counted_at_run_time_say_of_which_type_the_bounds_are(dtype: str) -> None:
    """One type variable stands for all four inputs, whatever is known of the others."""
    text = (
        '<ir_version: 8, opset_import: ["" : 11, "other" : 1]>'
        f"g (float[] x, {dtype}[1] a) => (float[] y) {{ s = other.unknown (x) y = Slice (x, s, s, a) }}"
    )
    assert "Slice" in operators(splitgraph.downgrade(onnx.parser.parse_model(text), 10).model)
