"""The strict kernels: what each operator version gives, what it refuses, and onnx's own node tests."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from node_tests import node_tests as onnx_node_tests
from onnx import numpy_helper

from splitgraph.verification.reference import kernels
from splitgraph.verification.reference.kernels import (
    ONNX_KERNEL_VERSIONS,
    KernelError,
    run_onnx,
    run_split,
    run_split_to_sequence,
    run_string_split,
)

SIX = np.arange(6, dtype=np.float32)
GRID = np.arange(24, dtype=np.float32).reshape(4, 6)


def ints(*numbers: int) -> np.ndarray:
    return np.array(numbers, dtype=np.int64)


REFUSED_SPLITS = [
    # version, inputs, attributes, outputs, what the message names
    (7, [SIX], {}, 2, "not a version"),
    (13, [], {}, 2, "needs the tensor"),
    (13, [None], {}, 2, "needs the tensor"),
    (13, [SIX, None, None], {}, 2, "at most 2"),
    (11, [SIX, ints(2, 4)], {}, 2, "at most 1"),
    (13, [[SIX]], {}, 2, "not a list"),
    (13, [SIX], {}, 0, "at least one output"),
    (13, [SIX], {"axis": 1}, 2, "out of range"),
    (13, [SIX], {"axis": -2}, 2, "out of range"),
    (13, [np.array(1, np.float32)], {}, 1, "scalar"),
    (13, [SIX], {}, 4, "not divisible"),
    (13, [SIX, ints(2, 3)], {}, 2, "sum to 5"),
    (13, [SIX, ints(2, 4)], {}, 3, "2 lengths for 3 outputs"),
    (13, [SIX, ints(7, -1)], {}, 2, "negative"),
    (13, [SIX, np.array([2, 4], np.int32)], {}, 2, "int64"),
    (13, [SIX, ints(6).reshape(())], {}, 1, "rank 0"),
    (13, [SIX, ints(2, 4).reshape(1, 2)], {}, 2, "rank 2"),
    (13, [SIX], {"split": [2, 4]}, 2, "no attribute 'split'"),
    (13, [SIX], {"num_outputs": 2}, 2, "no attribute 'num_outputs'"),
    (18, [SIX], {}, 2, "neither"),
    (18, [SIX, None], {"axis": 0}, 2, "neither"),
    (18, [SIX, ints(2, 4)], {"num_outputs": 2}, 2, "both"),
    (18, [SIX], {"num_outputs": 3}, 2, "must be the number of outputs"),
    (18, [SIX], {"num_outputs": 0}, 2, "must be the number of outputs"),
    (1, [SIX, np.array([2, 4], np.float32)], {"split": [2, 4]}, 2, "both"),
    (1, [SIX, ints(2, 4)], {}, 2, "data's type"),
    (1, [SIX, np.array([2.5, 3.5], np.float32)], {}, 2, "not whole"),
    (1, [SIX, np.array([np.nan, 6], np.float32)], {}, 2, "not whole"),
    (1, [ints(1, 2)], {}, 2, "type int64"),
    (2, [SIX.astype(ml_dtypes.bfloat16)], {}, 2, "bfloat16"),
    (11, [SIX.astype(ml_dtypes.bfloat16)], {}, 2, "bfloat16"),
    (13, [SIX.astype(ml_dtypes.float8_e4m3fn)], {}, 2, "float8_e4m3fn"),
    (18, [SIX.astype(ml_dtypes.int4)], {"num_outputs": 2}, 2, "int4"),
]


@pytest.mark.parametrize(("version", "inputs", "attributes", "outputs", "named"), REFUSED_SPLITS)
def test_a_split_that_its_version_does_not_allow(
    version: int, inputs: list[Any], attributes: Mapping[str, Any], outputs: int, named: str
) -> None:
    with pytest.raises(KernelError, match=named):
        run_split(version, inputs, attributes, outputs)


SPLITS = [
    (1, [SIX], {}, 2, [3, 3]),
    (1, [SIX], {"split": [2, 4]}, 2, [2, 4]),
    (1, [SIX, np.array([2, 4], np.float32)], {}, 2, [2, 4]),
    (2, [SIX], {"split": [2, 4], "axis": -1}, 2, [2, 4]),
    (11, [SIX], {"axis": None, "split": None}, 3, [2, 2, 2]),
    (11, [SIX], {"split": [0, 6]}, 2, [0, 6]),
    (13, [SIX, ints(1, 5)], {}, 2, [1, 5]),
    (13, [SIX, None], {}, 6, [1] * 6),
    (13, [SIX[:0]], {}, 2, [0, 0]),
    (18, [SIX, ints(6)], {}, 1, [6]),
    (18, [SIX], {"num_outputs": 4}, 4, [2, 2, 2, 0]),
    (18, [SIX[:5]], {"num_outputs": 4}, 4, [2, 2, 1, 0]),
    (18, [SIX[:3]], {"num_outputs": 5}, 5, [1, 1, 1, 0, 0]),
    (18, [SIX[:5]], {"num_outputs": 2}, 2, [3, 2]),
    (18, [SIX[:1]], {"num_outputs": 3}, 3, [1, 0, 0]),
]


@pytest.mark.parametrize(("version", "inputs", "attributes", "outputs", "lengths"), SPLITS)
def test_the_parts_of_a_split(
    version: int, inputs: list[Any], attributes: Mapping[str, Any], outputs: int, lengths: list[int]
) -> None:
    parts = run_split(version, inputs, attributes, outputs)
    assert [len(part) for part in parts] == lengths
    assert np.concatenate(parts).tolist() == inputs[0].tolist()


@pytest.mark.parametrize("axis", [1, -1])
def test_a_split_along_an_inner_axis(axis: int) -> None:
    left, right = run_split(13, [GRID, ints(2, 4)], {"axis": axis}, 2)
    assert left.tolist() == GRID[:, :2].tolist()
    assert right.tolist() == GRID[:, 2:].tolist()


@pytest.mark.parametrize(("op_type", "versions"), ONNX_KERNEL_VERSIONS.items())
def test_every_version_of_the_family_has_a_kernel(op_type: str, versions: tuple[int, ...]) -> None:
    known = {s.since_version for s in onnx.defs.get_all_schemas_with_history() if (s.domain, s.name) == ("", op_type)}
    assert known <= set(versions), (
        f"write kernels of {op_type} {known - set(versions)} in splitgraph/verification/reference/kernels.py, "
        "from its document"
    )


@pytest.mark.parametrize("version", ONNX_KERNEL_VERSIONS["Split"])
def test_every_version_of_split_is_in_the_tables(version: int) -> None:
    for table, name in ((SPLITS, "SPLITS"), (REFUSED_SPLITS, "REFUSED_SPLITS")):
        assert any(row[0] == version for row in table), f"add rows of Split-{version} to {name}"


def numpy_name(onnx_type: str) -> str:
    """The name under which the kernels know "tensor(float)"."""
    inner = onnx_type.removeprefix("tensor(").removesuffix(")")
    return {"float": "float32", "double": "float64"}.get(inner, inner)


@pytest.mark.parametrize(
    ("op_type", "version"), [(op, v) for op in ("Split", "SplitToSequence") for v in ONNX_KERNEL_VERSIONS[op]]
)
def test_a_kernel_takes_the_element_types_of_its_schema_and_no_others(op_type: str, version: int) -> None:
    schema = onnx.defs.get_schema(op_type, version)
    allowed = {numpy_name(t) for c in schema.type_constraints if c.type_param_str == "T" for t in c.allowed_type_strs}
    names = "float16 float32 float64 bfloat16 float8_e4m3fn float8_e5m2 int4 uint4 int8 int16 int32 int64 uint8 uint16"
    names += " uint32 uint64 bool string complex64 complex128"
    taken = set()
    for name in names.split():
        dtype = object if name == "string" else getattr(ml_dtypes, name, None) or np.dtype(name)
        data = np.array(["a", "b"], dtype=object) if name == "string" else np.zeros(2).astype(dtype)
        inputs = [data, np.array([1, 1]).astype(dtype if version == 1 else np.int64)]
        attributes: dict[str, Any] = {} if version == 1 or version >= 13 or op_type != "Split" else {"split": [1, 1]}
        try:
            run_onnx(op_type, version, inputs if not attributes else inputs[:1], attributes, 2)
        except KernelError:
            continue
        taken.add(name)
    assert taken == allowed


SEQUENCES = [
    (ints(2, 4), {}, [(2,), (4,)]),
    (ints(2, 4).astype(np.int32), {"keepdims": 0}, [(2,), (4,)]),
    (ints(0, 6), {}, [(0,), (6,)]),
    (np.array(4), {}, [(4,), (2,)]),
    (np.array(9), {}, [(6,)]),
    (np.array(3), {"keepdims": 0}, [(3,), (3,)]),
    (None, {}, [(1,)] * 6),
    (None, {"keepdims": 0, "axis": -1}, [()] * 6),
]


@pytest.mark.parametrize(("split", "attributes", "shapes"), SEQUENCES)
def test_the_elements_of_a_sequence(split: Any, attributes: Mapping[str, Any], shapes: list[tuple[int, ...]]) -> None:
    parts = run_split_to_sequence(11, [SIX, split], attributes)
    assert [part.shape for part in parts] == shapes
    assert np.concatenate([part.ravel() for part in parts]).tolist() == SIX.tolist()


@pytest.mark.parametrize("split", [None, np.array(2)])
def test_a_sequence_of_an_empty_dimension_is_empty(split: Any) -> None:
    assert run_split_to_sequence(11, [SIX[:0], split], {}) == []


REFUSED_SEQUENCES = [
    (np.array(0), {}, "at least 1"),
    (np.array(-2), {}, "at least 1"),
    (ints(2, 3), {}, "sum to 5"),
    (ints(7, -1), {}, "negative"),
    (ints(6).reshape(1, 1), {}, "rank 2"),
    (np.array(2, np.int16), {}, "int32 or int64"),
    (np.array(2.0), {}, "int32 or int64"),
    (None, {"keepdims": 2}, "keepdims"),
    (None, {"axis": 1}, "out of range"),
    (None, {"num_outputs": 2}, "no attribute"),
]


@pytest.mark.parametrize(("split", "attributes", "named"), REFUSED_SEQUENCES)
def test_a_sequence_that_its_version_does_not_allow(split: Any, attributes: Mapping[str, Any], named: str) -> None:
    with pytest.raises(KernelError, match=named):
        run_split_to_sequence(11, [SIX, split], attributes)


STRINGS = [
    ({}, " a b  c ", ["a", "b", "c"]),
    ({"delimiter": ""}, "\ta\n", ["a"]),
    ({}, "", []),
    ({}, "  ", []),
    ({"maxsplit": 1}, " a b  c ", ["a", "b  c"]),
    ({"maxsplit": 0}, " a b ", ["a b"]),
    ({"maxsplit": -1}, "a b c", ["a", "b", "c"]),
    ({"delimiter": ","}, ",a,,b,", ["", "a", "", "b", ""]),
    ({"delimiter": ","}, "", [""]),
    ({"delimiter": ","}, " a ", [" a "]),
    ({"delimiter": ",", "maxsplit": 2}, "a,b,c,d,", ["a", "b", "c,d,"]),
    ({"delimiter": ", "}, "a, b,c", ["a", "b,c"]),
]


@pytest.mark.parametrize(("attributes", "text", "parts"), STRINGS)
def test_the_substrings_of_a_string(attributes: Mapping[str, Any], text: str, parts: list[str]) -> None:
    substrings, counts = run_string_split([np.array([text], dtype=object)], attributes)
    assert (substrings.tolist(), counts.tolist()) == ([parts], [len(parts)])


def test_substrings_are_padded_to_the_longest_list_in_any_rank() -> None:
    substrings, counts = run_string_split([np.array([["a b", b"c"], ["", "d e f"]], dtype=object)], {})
    assert substrings.tolist() == [[["a", "b", ""], ["c", "", ""]], [["", "", ""], ["d", "e", "f"]]]
    assert (counts.tolist(), counts.dtype) == ([[2, 1], [0, 3]], np.int64)


def test_no_strings_give_no_substrings() -> None:
    substrings, counts = run_string_split([np.empty((2, 0), dtype=object)], {})
    assert (substrings.shape, counts.shape) == ((2, 0, 0), (2, 0))


def test_only_strings_are_split_into_strings() -> None:
    with pytest.raises(KernelError, match="float32"):
        run_string_split([SIX], {})


NODE_TESTS = {
    case.name: case for case in onnx_node_tests() if case.name.startswith(("test_split", "test_string_split"))
}


def test_onnx_has_node_tests_of_the_family() -> None:
    assert len(NODE_TESTS) >= 20


@pytest.mark.parametrize("name", sorted(NODE_TESTS))
def test_a_node_test_of_onnx(name: str) -> None:
    case = NODE_TESTS[name]
    (split,) = case.model.graph.node
    opset = case.model.opset_import[0].version
    version = onnx.defs.get_schema(split.op_type, opset).since_version
    attributes = {a.name: onnx.helper.get_attribute_value(a) for a in split.attribute}
    for inputs, expected in case.data_sets:
        by_name = dict(zip((i.name for i in case.model.graph.input), map(as_array, inputs), strict=True))
        given_inputs = [by_name.get(i) for i in split.input]
        results = run_onnx(split.op_type, version, given_inputs, attributes, len(split.output))
        assert len(results) == len(expected)
        for result, wanted in zip(results, expected, strict=True):
            check_equal(result, as_array(wanted))


def as_array(value: Any) -> Any:
    if isinstance(value, onnx.TensorProto):
        return numpy_helper.to_array(value)
    return numpy_helper.to_list(value) if isinstance(value, onnx.SequenceProto) else value


def check_equal(result: Any, wanted: Any) -> None:
    if isinstance(wanted, list):
        assert isinstance(result, list)
        assert len(result) == len(wanted)
        for pair in zip(result, wanted, strict=True):
            check_equal(*pair)
        return
    assert result.shape == wanted.shape
    assert (result == wanted).all()


@settings(derandomize=True, deadline=None, max_examples=60)
@given(st.lists(st.integers(0, 4), min_size=1, max_size=5), st.integers(0, 2), st.data())
def test_the_parts_put_together_are_the_whole(lengths: list[int], axis: int, data: st.DataObject) -> None:
    shape = [2, 3, 2]
    shape[axis] = sum(lengths)
    whole = np.arange(np.prod(shape)).reshape(shape)
    negative = data.draw(st.booleans())
    parts = run_split(13, [whole, ints(*lengths)], {"axis": axis - 3 if negative else axis}, len(lengths))
    assert (np.concatenate(parts, axis=axis) == whole).all()
    chunks = run_split(18, [whole], {"axis": axis, "num_outputs": len(lengths)}, len(lengths))
    assert (np.concatenate(chunks, axis=axis) == whole).all()


def test_kernels_know_nothing_of_the_canonical_split() -> None:
    tree = ast.parse(Path(kernels.__file__).read_text("utf-8"))
    modules = {node.module for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    modules |= {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert not [module for module in modules if module and module.startswith("splitgraph")]
