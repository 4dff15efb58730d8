"""Constants of new element types that Cast, CastLike or DequantizeLinear read, below the opset of the type."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from conversion.operators.execute import Array, assert_same, converted, refusal, run
from onnx import TensorProto, helper, numpy_helper

import splitgraph

X = np.arange(6, dtype=np.float32).reshape(2, 3)
# By type: its first opset, and twelve numbers that it holds.
TYPES: dict[str, tuple[int, list[float]]] = {
    "BFLOAT16": (13, [0, 1.5, -2, 3.140625, 2.0**100, -0.0, 4, 6, 256, 2, 0.5, -4]),
    "FLOAT8E4M3FN": (19, [0, 1, -2, 3, 448, -0.0, 4, 6, 0.015625, 2, 0.5, -4]),
    "FLOAT8E4M3FNUZ": (19, [0, 1, -2, 3, 240, 1, 4, 6, 0.0078125, 2, 0.5, -4]),
    "FLOAT8E5M2": (19, [0, 1, -2, 3, 57344, -0.0, 4, 6, np.inf, 2, 0.5, -np.inf]),
    "FLOAT8E5M2FNUZ": (19, [0, 1, -2, 3, 57344, 1, 4, 6, 1, 2, 0.5, -4]),
    "INT4": (21, [0, 1, -2, 3, -8, 7, 4, 6, 1, 2, 0, -4]),
    "UINT4": (21, [0, 1, 2, 3, 15, 1, 4, 6, 1, 2, 0, 4]),
    "FLOAT4E2M1": (23, [0, 1, -2, 3, 6, -0.0, 4, 6, 1, 2, 0.5, -4]),
    "INT2": (25, [0, 1, -2, 1, 0, -1, -2, 1, 1, 0, 0, -1]),
    "UINT2": (25, [0, 1, 2, 3, 0, 1, 2, 3, 1, 2, 0, 1]),
}
KINDS = {
    "BFLOAT16": ml_dtypes.bfloat16,
    "FLOAT8E4M3FN": ml_dtypes.float8_e4m3fn,
    "FLOAT8E4M3FNUZ": ml_dtypes.float8_e4m3fnuz,
    "FLOAT8E5M2": ml_dtypes.float8_e5m2,
    "FLOAT8E5M2FNUZ": ml_dtypes.float8_e5m2fnuz,
    "INT4": ml_dtypes.int4,
    "UINT4": ml_dtypes.uint4,
    "FLOAT4E2M1": ml_dtypes.float4_e2m1fn,
    "INT2": ml_dtypes.int2,
    "UINT2": ml_dtypes.uint2,
}
_HAVE = [name for name in TYPES if onnx.defs.onnx_opset_version() >= TYPES[name][0]]


def weights(dtype: str, shape: Sequence[int] = (4, 3), name: str = "w") -> onnx.TensorProto:
    array = np.array(TYPES[dtype][1], np.float32).reshape(shape).astype(KINDS[dtype])
    return numpy_helper.from_array(array, name)


def numbers(dtype: str, shape: Sequence[int] = (4, 3)) -> Array:
    return np.array(TYPES[dtype][1], np.float32).reshape(shape)


def node(op_type: str, inputs: Sequence[str], output: str, **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, list(inputs), [output], **attributes)


def model(
    nodes: Sequence[onnx.NodeProto],
    opset: int,
    held: Sequence[onnx.TensorProto],
    rank: int = 2,
    to: int = TensorProto.FLOAT,
    inputs: Sequence[onnx.ValueInfoProto] = (),
) -> onnx.ModelProto:
    """A model that gives `y`. The input x keeps it from being a constant as a whole."""
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [2, 3])
    graph = helper.make_graph(
        [*nodes, node("Identity", ["x"], "z")],
        "g",
        [x, *inputs],
        [helper.make_tensor_value_info("y", to, [None] * rank), helper.make_tensor_value_info("z", 1, [2, 3])],
        list(held),
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=13)


def result(before: onnx.ModelProto, target: int, **feeds: Array) -> Array:
    after = converted(before, target)
    young = {tensor.data_type for tensor in after.graph.initializer} - {1, 7, 10, 11, 6, 9, 2, 3}
    assert not young, "a constant of a new type is left"
    found: Array = run(after, {"x": X, **feeds})[0]
    return found


def cast(to: int = TensorProto.FLOAT, source: str = "w") -> onnx.NodeProto:
    return node("Cast", [source], "y", to=to)


F, F16, I64 = TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.INT64


@pytest.mark.parametrize("dtype", _HAVE)
def test_casts(dtype: str) -> None:
    since, held = TYPES[dtype][0], weights(dtype)
    constant = node("Constant", [], "w", value=held)
    forms: list[tuple[list[onnx.NodeProto], list[onnx.TensorProto]]] = [
        ([cast()], [held]),
        ([constant, cast()], []),
    ]
    if since >= 15:
        forms.append(([node("CastLike", ["w", "x"], "y")], [held]))
    for nodes, tensors in forms:
        for target in (since - 1, 11, 9):
            assert_same([numbers(dtype)], [result(model(nodes, since, tensors), target)])


@pytest.mark.parametrize("dtype", _HAVE)
def test_constants_that_nodes_move(dtype: str) -> None:
    since, held, expected = TYPES[dtype][0], weights(dtype), numbers(dtype)
    shape = numpy_helper.from_array(np.array([2, 6]), "s")
    places = numpy_helper.from_array(np.array([2, -1]), "s")
    one, two = (numpy_helper.from_array(np.array([number]), name) for number, name in ((1, "s"), (3, "e")))
    forms: list[tuple[list[onnx.NodeProto], list[onnx.TensorProto], Array]] = [
        ([node("Identity", ["w"], "m")], [], expected),
        ([node("Reshape", ["w", "s"], "m")], [shape], expected.reshape(2, 6)),
        ([node("Transpose", ["w"], "m", perm=[1, 0])], [], expected.T),
        ([node("Transpose", ["w"], "n"), node("Reshape", ["n", "s"], "m")], [shape], expected.T.reshape(2, 6)),
        ([node("Flatten", ["w"], "m", axis=0)], [], expected.reshape(1, 12)),
        ([node("Gather", ["w", "s"], "m", axis=0)], [places], expected[[2, -1]]),
        ([node("Slice", ["w", "s", "e"], "m")], [one, two], expected[1:3]),
        ([node("Concat", ["w", "w"], "m", axis=1)], [], np.concatenate([expected, expected], 1)),
        ([node("Expand", ["w", "s"], "m")], [numpy_helper.from_array(np.array([4, 3]), "s")], expected),
    ]
    for nodes, tensors, wanted in forms:
        before = model([*nodes, cast(source="m")], max(since, 21), [held, *tensors])
        if splitgraph.infer(before).ok:
            assert_same([wanted], [result(before, 12)])


def quantized(dtype: str, **attributes: Any) -> list[onnx.NodeProto]:
    zero = ["z0"] if attributes.pop("zero", False) else []
    return [node("DequantizeLinear", ["w", "s", *zero], "y", **attributes)]


def scale(shape: Sequence[int], kind: Any = np.float32) -> Array:
    count = int(np.prod(shape))
    return np.asarray(np.linspace(0.1, 0.7, count).reshape(shape), kind)


@pytest.mark.parametrize("dtype", [name for name in _HAVE if name != "BFLOAT16"])
def test_dequantization(dtype: str) -> None:
    expected, since = numbers(dtype), max(TYPES[dtype][0], 21)
    blocks = np.repeat(scale((2, 3)), 2, 0)
    for attributes, factor, wanted in (
        ({}, scale(()), scale(())),
        ({}, scale((1,)), scale(())),
        ({"axis": 0}, scale((4,)), scale((4, 1))),
        ({"axis": 1}, scale((3,)), scale((3,))),
        ({"axis": -1}, scale((3,)), scale((3,))),
        ({"axis": 0, "block_size": 2}, scale((2, 3)), blocks),
    ):
        held = [weights(dtype), numpy_helper.from_array(factor, "s")]
        before = model(quantized(dtype, **attributes), since, held)
        for target in (18, 12, 9):
            assert_same([expected * wanted], [result(before, target)])
        moved = model(
            [node("Transpose", ["v"], "w"), *quantized(dtype, **attributes)],
            since,
            [numpy_helper.from_array(expected.T.copy().astype(KINDS[dtype]), "v"), held[1]],
        )
        assert_same([expected * wanted], [result(moved, 12)])


@pytest.mark.parametrize("dtype", [name for name in _HAVE if "INT" in name])
def test_zero_points_of_integers(dtype: str) -> None:
    points = np.array([1, 0, 1], np.float32)
    held = [
        weights(dtype),
        numpy_helper.from_array(scale((3,)), "s"),
        numpy_helper.from_array(points.astype(KINDS[dtype]), "z0"),
    ]
    before = model(quantized(dtype, axis=1, zero=True), TYPES[dtype][0], held)
    for target in (20, 12, 9):
        assert_same([(numbers(dtype) - points) * scale((3,))], [result(before, target)])


@pytest.mark.parametrize("dtype", [name for name in _HAVE if name.startswith("FLOAT")])
def test_scales_of_other_types_and_of_the_run(dtype: str) -> None:
    since, expected = TYPES[dtype][0], numbers(dtype)
    half = scale((), np.float16)
    before = model(quantized(dtype), since, [weights(dtype), numpy_helper.from_array(half, "s")], to=F16)
    with np.errstate(over="ignore"):
        wanted = (expected * half.astype(np.float32)).astype(np.float16)
    assert_same([wanted], [result(before, 18)])
    value = helper.make_tensor_value_info("s", TensorProto.FLOAT, [3])
    before = model(quantized(dtype, axis=1), since, [weights(dtype)], inputs=[value])
    assert_same([expected * scale((3,))], [result(before, 18, s=scale((3,)))])


@pytest.mark.parametrize(
    ("dtype", "to", "kind"),
    [
        ("BFLOAT16", F16, np.float16),
        ("BFLOAT16", TensorProto.DOUBLE, np.float64),
        ("BFLOAT16", TensorProto.BOOL, bool),
        ("FLOAT8E4M3FN", TensorProto.INT32, np.int32),
        ("INT4", I64, np.int64),
        ("INT4", TensorProto.INT8, np.int8),
        ("UINT4", TensorProto.UINT8, np.uint8),
    ],
)
def test_other_targets(dtype: str, to: int, kind: Any) -> None:
    with np.errstate(over="ignore"):
        wanted = numbers(dtype).astype(kind)
    assert_same([wanted], [result(model([cast(to)], TYPES[dtype][0], [weights(dtype)], to=to), 12)])


def test_in_bodies_and_functions() -> None:
    held, expected = weights("BFLOAT16"), numbers("BFLOAT16")
    given = helper.make_tensor_value_info("b", F, [4, 3])
    inner = [node("Cast", ["w"], "b", to=F)]
    branch = helper.make_graph(inner, "t", [], [given])
    own = helper.make_graph(inner, "e", [], [given], [held])
    condition = numpy_helper.from_array(np.array(True), "c")
    for then in (branch, own):
        before = model([node("If", ["c"], "y", then_branch=then, else_branch=own)], 13, [held, condition])
        assert_same([expected], [run(converted(before, 12), {"x": X})[0]])
    imports = [helper.make_opsetid("", 13)]
    body = [node("Constant", [], "v", value=held), node("Transpose", ["v"], "t"), node("Cast", ["t"], "r", to=F)]
    function = helper.make_function("local", "W", [], ["r"], body, imports)
    before = model([helper.make_node("W", [], ["y"], domain="local")], 13, [])
    before.functions.append(function)
    before.opset_import.append(helper.make_opsetid("local", 1))
    assert_same([expected.T], [run(converted(before, 12), {"x": X})[0]])


def test_equal_nodes_of_different_constants() -> None:
    """The second node must not become what the first one became."""
    first, second = numbers("BFLOAT16"), numbers("BFLOAT16")[::-1].copy()
    held = [
        numpy_helper.from_array(array.astype(ml_dtypes.bfloat16), name) for array, name in ((first, "a"), (second, "b"))
    ]
    nodes = []
    for name in "ab":
        nodes += [node("Transpose", [name], f"{name}t"), node("Cast", [f"{name}t"], f"{name}f", to=F)]
    before = model([*nodes, node("Concat", ["af", "bf"], "y", axis=0)], 13, held)
    assert_same([np.concatenate([first.T, second.T])], [result(before, 12)])


SOURCE = np.array([1.2345678, -3.3333, 1e-40, 3.4e38, np.inf, 0.1, 1.00390625, 1.01171875, -0.0], np.float32)
EXACT = np.array([0, 1, -2, 3, 4, 6, 0.5, -4, -0.0], np.float32)


@pytest.mark.parametrize(
    ("source", "through", "since"),
    [
        (SOURCE, ml_dtypes.bfloat16, 13),
        (EXACT.astype(np.float64), ml_dtypes.bfloat16, 13),
        (SOURCE[-2:].astype(np.float16), ml_dtypes.bfloat16, 13),
        (np.array([3, -257, 65537], np.int32), ml_dtypes.bfloat16, 13),
        (EXACT, ml_dtypes.float8_e4m3fn, 21),
        (EXACT, ml_dtypes.float8_e5m2, 21),
        (EXACT, ml_dtypes.float4_e2m1fn, 23),
    ],
)
def test_a_constant_that_is_cast_there_and_back(source: Array, through: Any, since: int) -> None:
    number = helper.np_dtype_to_tensor_dtype(np.dtype(through))
    nodes = [node("Cast", ["w"], "q", to=number), node("Transpose", ["q"], "t"), cast(source="t")]
    expected = source.astype(np.float32).astype(through).astype(np.float32)
    for target in (since - 1, 11, 9):
        assert_same([expected], [result(model(nodes, since, [numpy_helper.from_array(source, "w")], 1), target)])


@pytest.mark.parametrize(
    ("source", "through"),
    [
        (np.array([1 / 3]), ml_dtypes.bfloat16),
        (np.array([2**24 + 1], np.int64), ml_dtypes.bfloat16),
        (np.array([0.1], np.float32), ml_dtypes.float8_e4m3fn),
        (np.array([1e6], np.float32), ml_dtypes.float8_e5m2),
    ],
)
def test_a_cast_that_may_round_twice_or_saturate_is_refused(source: Array, through: Any) -> None:
    nodes = [node("Cast", ["w"], "q", to=helper.np_dtype_to_tensor_dtype(np.dtype(through))), cast(source="q")]
    assert refusal(model(nodes, 19, [numpy_helper.from_array(source, "w")], 1), 12)


def _bfloat16_input(shape: Sequence[int]) -> onnx.ValueInfoProto:
    return helper.make_tensor_value_info("w", TensorProto.BFLOAT16, shape)


MAT = [node("MatMul", ["w", "w2"], "m"), cast(source="m")]


@pytest.mark.parametrize(
    ("before", "target"),
    [
        (model([cast()], 13, [], inputs=[_bfloat16_input([4, 3])]), 12),
        (model([cast()], 13, [weights("BFLOAT16")], inputs=[_bfloat16_input([4, 3])]), 12),
        (model([cast(TensorProto.STRING)], 13, [weights("BFLOAT16")], to=TensorProto.STRING), 12),
        (model([cast(TensorProto.UINT8)], 21, [weights("INT4")], to=TensorProto.UINT8), 20),
        (model([cast(TensorProto.INT32)], 19, [weights("FLOAT8E5M2")], to=TensorProto.INT32), 18),
        (model([cast(TensorProto.FLOAT8E4M3FN)], 23, [weights("BFLOAT16")], to=TensorProto.FLOAT8E4M3FN), 18),
        (model(MAT, 13, [weights("BFLOAT16"), weights("BFLOAT16", (3, 4), "w2")]), 12),
        (model([node("Identity", ["w"], "y")], 13, [weights("BFLOAT16")], to=TensorProto.BFLOAT16), 12),
        (model([node("Mul", ["w", "w"], "m"), cast(source="m")], 13, [weights("BFLOAT16")]), 12),
    ],
    ids=["input", "default", "string", "negative", "infinity", "float8", "matmul", "output", "product"],
)
def test_what_is_not_known_is_refused(before: onnx.ModelProto, target: int) -> None:
    assert refusal(before, target)


def test_large_external_data(tmp_path: Path) -> None:
    """They are read where an older opset needs them, and stay where they are otherwise."""
    array = np.linspace(-9, 9, 4096).reshape(64, 64).astype(np.float32).astype(ml_dtypes.bfloat16)
    before, path, after = model([cast()], 13, [numpy_helper.from_array(array, "w")]), tmp_path / "a", tmp_path / "b"
    onnx.save_model(before, str(path), save_as_external_data=True, location="a.bin", size_threshold=0)
    splitgraph.downgrade(path, 12).save(after)
    assert_same([array.astype(np.float32)], run(onnx.load(after), {"x": X})[:1])
    splitgraph.upgrade(path, 21).save(after)
    kept = onnx.load(after, load_external_data=False).graph.initializer[0]
    assert [entry.value for entry in kept.external_data if entry.key == "location"] == ["a.bin"]


def test_is_not_changed_where_the_type_exists() -> None:
    before = model([cast()], 21, [weights("FLOAT8E5M2")])
    after = converted(before, 19)
    assert after.graph.node == before.graph.node and after.graph.initializer == before.graph.initializer
