"""Numbers that say the size of a result: what follows them, and what is asked or refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator

import splitgraph

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


@pytest.mark.parametrize("old", [1, 2])
def test_there_are_as_many_grids_as_matrices(old: int) -> None:
    made = model(
        f"""(float[{old}, 2, 3] x) => (float[n, h, w, c] y) <int64[4] s = {{{old}, 1, 4, 4}}>
        {{ y = AffineGrid (x, s) }}""",
        20,
    )
    found = splitgraph.reshape(made, {"x": ["N", 2, 3]}, verify=True)
    assert found.verification is not None and found.verification.verdict == "equal"
    assert [dim.dim_param or dim.dim_value for dim in found.model.graph.output[0].type.tensor_type.shape.dim] == [
        "N",
        4,
        4,
        2,
    ]
