"""Numbers of an IR that a size can say, or that layers compute with: what follows, and what is asked or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import openvino as ov
import pytest
from onnx import parser
from openvino import opset13 as ops
from openvino import opset15

import splitgraph
from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.formats import open_model

F = np.float32


def refused(made: Any, shapes: Any) -> tuple[Diagnostic, ...]:
    """Return what is asked or refused."""
    try:
        splitgraph.reshape(made, shapes)
    except splitgraph.ConversionError as error:
        return tuple(error.diagnostics)
    return ()


def given(name: str, *shape: int, dtype: Any = F) -> Any:
    made = ops.parameter(ov.PartialShape(list(shape)), dtype, name=name)
    made.output(0).set_names({name})
    return made


def ints(*numbers: int) -> Any:
    return ops.constant(np.array(numbers, np.int64))


def opened(output: Any, inputs: list[Any], folder: Path) -> Any:
    ov.save_model(ov.Model([output], inputs), folder / "m.xml", compress_to_fp16=False)
    return open_model(folder / "m.xml").content


def run(made: Any, folder: Path, **inputs: Any) -> Any:
    splitgraph.save(made, folder / "run.xml")
    compiled = ov.Core().compile_model(folder / "run.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return next(iter(compiled(inputs).values()))


@pytest.mark.parametrize("size", ["names", "numbers"])
def test_a_size_that_is_at_least_the_own_one_is_the_own_one(size: str, tmp_path: Path) -> None:
    """OpenVINO makes such a target of the one of Expand in ONNX."""
    x = given("x", 2, 6, 6)
    target = ops.maximum(ops.shape_of(x), ints(2, 6, 6))
    before = opened(ops.broadcast(x, target), [x], tmp_path)
    shape = [2, "H", "W"] if size == "names" else [2, 3, 9]
    assert run(splitgraph.reshape(before, {"x": shape}).model, tmp_path, x=np.ones((2, 3, 9), F)).shape == (2, 3, 9)


def test_weights_of_attention_are_needed_at_the_new_size(tmp_path: Path) -> None:
    data = given("x", 2, 2, 6, 4)
    bias = ops.constant(np.random.default_rng(0).random((2, 6, 6), F))
    before = opened(ops.scaled_dot_product_attention(data, data, data, bias), [data], tmp_path)
    found = refused(before, {"x": [2, 2, "T", 4]})
    assert {each.code for each in found} == {"SG420"}
    assert all("to be T along axis" in each.message for each in found)
    assert not refused(before, {"x": ["N", 2, 6, 4]})


def test_a_grid_of_floats_is_counted_in_both_entries(tmp_path: Path) -> None:
    grid = np.stack(np.meshgrid(np.arange(3), np.arange(4), indexing="ij"))[None].astype(F)
    x = given("x", 1, 2, 3, 4)
    before = opened(ops.add(x, ops.constant(grid)), [x], tmp_path)
    after = splitgraph.reshape(before, {"x": [1, 2, "H", "W"]}).model
    found = run(after, tmp_path, x=np.zeros((1, 2, 5, 2), F))
    np.testing.assert_array_equal(found[0], np.stack(np.meshgrid(np.arange(5), np.arange(2), indexing="ij")))


def test_a_given_size_of_a_transposed_convolution_of_an_ir_is_refused(tmp_path: Path) -> None:
    x, kernel = given("x", 2, 3, 8), ops.constant(np.ones((3, 1, 4), F))
    made = opset15.convolution_backprop_data(x, kernel, [2], ints(16), [0], [0], [1], "same_upper")
    before = opened(made, [x], tmp_path)
    assert [each.code for each in refused(before, {"x": [2, 3, "T"]})] == ["SG420"]
    assert not refused(before, {"x": ["N", 3, 8]})


@pytest.mark.parametrize("size", ["W", 5])
def test_the_column_of_a_pixel_in_an_ir(size: int | str, tmp_path: Path) -> None:
    x = given("x", 1, 6, 7)
    found = ops.topk(
        ops.reshape(x, ints(1, 42), False), ops.constant(np.int64(1)), 1, "max", "value", index_element_type="i64"
    )
    column = ops.floor_mod(found.output(1), ops.constant(np.array([[7]], np.int64)))
    column.set_friendly_name("column")
    before = opened(column, [x], tmp_path)
    shape, name = [1, 6, size], "W" if size == "W" else "x[2]"
    assert [(each.location, each.message) for each in refused(before, {"x": shape})] == [
        ("main/column", f"entry 0 can mean 7 whatever the size of the data, or {name}")
    ]
    data = np.random.default_rng(0).random((1, 6, 5), np.float32)
    for said, width in (({"follow": [f"main/column[0]={name}"]}, 5), ({"keep": ["main/column[0]"]}, 7)):
        after = splitgraph.reshape(before, {"x": shape}, **said).model
        assert run(after, tmp_path, x=data) == data.argmax() % width


def test_one_of_several_numbers_in_an_ir(tmp_path: Path) -> None:
    """The rows of two items follow one another, and each item starts where the one before ends."""
    x = given("x", 2, 6, 3)
    chosen = given("k", 2, dtype=np.int64)
    places = ops.add(chosen, ints(0, 6))
    places.set_friendly_name("places")
    before = opened(ops.gather(ops.reshape(x, ints(12, 3), False), places, ints(0)), [x, chosen], tmp_path)
    after = splitgraph.reshape(before, {"x": [2, "T", 3]}, follow=["main/places[1]=T"]).model
    data = np.random.default_rng(0).random((2, 4, 3), np.float32)
    np.testing.assert_array_equal(run(after, tmp_path, x=data, k=np.array([3, 1])), [data[0, 3], data[1, 1]])


def test_a_length_that_a_body_says_by_a_number_is_no_batch(tmp_path: Path) -> None:
    """Nothing is known of the result any more, so that nothing says that its items stand apart."""
    made = parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> g (float[2, 6, 4] x) => (float[2, 6, 4] y)
        <int64 n = {3}, bool c = {1}> { y = Loop (n, c, x) <body = turn (int64 i, bool g, float[2, 6, 4] s)
            => (bool h, float[2, 6, 4] t) <int64[2] a = {-1, 4}, int64[3] b = {-1, 6, 4}>
            { h = Identity (g) r = Reshape (s, a) m = Tanh (r) t = Reshape (m, b) }> }""")
    onnx.save(made, tmp_path / "m.onnx")
    ov.save_model(ov.convert_model(tmp_path / "m.onnx"), tmp_path / "m.xml", compress_to_fp16=False)
    before = open_model(tmp_path / "m.xml").content
    assert {each.code for each in refused(before, {"x": [2, "T", 4]})} <= {"SG420", "SG421"}
    assert refused(before, {"x": [2, "T", 4]})
