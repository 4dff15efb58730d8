"""Numbers that say the size of a result, in ONNX and in IRs: what follows them, and what is asked or refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator
from openvino import opset13 as ops
from openvino import opset15

import splitgraph
from splitgraph.formats import open_model

F = np.float32


def model(graph: str, opset: int = 18) -> ModelProto:
    return parser.parse_model(f'<ir_version: 8, opset_import: ["": {opset}]> g {graph}')


def said(made: Any, shapes: Any, **answers: Any) -> list[tuple[str, str]]:
    """Return the codes and texts of what is asked or refused."""
    try:
        splitgraph.reshape(made, shapes, **answers)
    except splitgraph.ConversionError as error:
        return [(each.code, each.message) for each in error.diagnostics]
    return []


# Lengths of parts -----------------------------------------------------------------------------------------------------

# Two values side by side are computed with, and taken apart.
JOINED = """(float[1, {T}, 2] x, float[1, {S}, 2] z) => (float[a, b, c] y, float[d, e, f] w) <int64[2] s = {{{T}, {S}}}>
    {{ j = Concat <axis = 1> (x, z) a, b = Split <axis = 1> (j, s) {then} }}"""
SUMS = "y = Add (a, x) w = Add (b, z)"


@pytest.mark.parametrize(("old", "size"), [((5, 7), (4, 9)), ((5, 5), (4, 9)), ((5, 5), (9, 5)), ((5, 5), (5, 9))])
@pytest.mark.parametrize("names", [True, False])
def test_the_lengths_of_two_values_side_by_side(old: tuple[int, int], size: tuple[int, int], names: bool) -> None:
    """Equal lengths are equal by chance, where a later node needs others."""
    made = model(JOINED.format(T=old[0], S=old[1], then=SUMS))
    wanted = [name if names and at != before else at for name, at, before in zip("TS", size, old, strict=True)]
    after = splitgraph.reshape(made, {"x": [1, wanted[0], 2], "z": [1, wanted[1], 2]}).model
    inputs = [np.random.default_rng(at).random((1, at, 2), F) for at in size]
    for found, data in zip(
        ReferenceEvaluator(after).run(None, dict(zip("xz", inputs, strict=True))), inputs, strict=True
    ):
        np.testing.assert_array_equal(found, 2 * data)


def test_equal_parts_that_fit_stay_equal_without_a_question() -> None:
    made = model("""(float[1, 6, 2] x) => (float[a, b, c] y) <int64[2] s = {3, 3}>
        { a, b = Split <axis = 1> (x, s) y = Mul (a, b) }""")
    assert not said(made, {"x": [1, "T", 2]})


def test_one_answer_decides_the_lengths_of_all_parts() -> None:
    """Nothing says which part takes what is new."""
    made = model(JOINED.format(T=5, S=7, then="y = Relu (a) w = Relu (b)"))
    asked = said(made, {"x": [1, "T", 2], "z": [1, "S", 2]})
    assert [code for code, _ in asked] == ["SG421"]
    for answer in ("T", "S + T - 7"):
        follow = [f"main/Split#1[0]={answer}"]
        after = splitgraph.reshape(made, {"x": [1, "T", 2], "z": [1, "S", 2]}, follow=follow).model
        inputs = {"x": np.zeros((1, 4, 2), F), "z": np.zeros((1, 9, 2), F)}
        first, second = ReferenceEvaluator(after).run(None, inputs)
        assert (first.shape[1], second.shape[1]) == ((4, 9) if answer == "T" else (6, 7))


# Results of a given size ----------------------------------------------------------------------------------------------

WINDOW = "(float[2, 6] x) => (float[a, b] y) <int64 n = {6}> { w = HannWindow (n) y = Mul (x, w) }"
SPECTRUM = "(float[2, 6, 1] x) => (float[a, b, c] y) <int64 n = {6}> { y = DFT <axis = 1> (x, n) }"
DECONVOLVED = """(float[2, 3, 8] x) => (float[a, b, c] y) <float[3, 1, 4] w = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12}>
    { y = ConvTranspose <strides = [2], output_shape = [16]> (x, w) }"""


def test_the_size_of_a_window_that_a_later_node_needs_follows() -> None:
    after = splitgraph.reshape(model(WINDOW), {"x": [2, "T"]}).model
    (found,) = ReferenceEvaluator(after).run(None, {"x": np.ones((2, 9), F)})
    np.testing.assert_allclose(found[0], np.sin(np.pi * np.arange(9) / 9) ** 2, atol=1e-5)


def test_the_length_of_a_spectrum_is_asked() -> None:
    """Longer data is cut to the length, or the spectrum has all of it."""
    made = model(SPECTRUM)
    assert [code for code, _ in said(made, {"x": [2, "T", 1]})] == ["SG421"]
    assert not said(made, {"x": [2, "T", 1]}, keep=["main/DFT#0[0]"])
    assert not said(made, {"x": [2, "T", 1]}, follow=["main/DFT#0[0]=T"])


def test_a_given_size_of_a_transposed_convolution_is_refused() -> None:
    made = model(DECONVOLVED)
    (reason,) = said(made, {"x": [2, 3, "T"]})
    assert reason == ("SG420", "output_shape says 16 along axis 2 whatever T is; say it by pads instead")
    assert not said(made, {"x": ["N", 3, 8]})


# IRs ------------------------------------------------------------------------------------------------------------------


def given(name: str, *shape: int) -> Any:
    made = ops.parameter(ov.PartialShape(list(shape)), F, name=name)
    made.output(0).set_names({name})
    return made


def ints(*numbers: int) -> Any:
    return ops.constant(np.array(numbers, np.int64))


def opened(output: Any, inputs: list[Any], folder: Path) -> Any:
    ov.save_model(ov.Model([ops.relu(output)], inputs), folder / "m.xml", compress_to_fp16=False)
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
    found = said(before, {"x": [2, 2, "T", 4]})
    assert {code for code, _ in found} == {"SG420"} and all("to be T along axis" in text for _, text in found)
    assert not said(before, {"x": ["N", 2, 6, 4]})


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
    assert [code for code, _ in said(before, {"x": [2, 3, "T"]})] == ["SG420"]
    assert not said(before, {"x": ["N", 3, 8]})
