"""The depth of a OneHot that is a size, and the classes that are places along it."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import splitgraph
from splitgraph.dim import DimLike

LENGTHS = (1, 4, 5, 9)


def hot(*classes: int, given: str = "") -> ModelProto:
    """Rows of the 5 of x by their numbers, as a product with a OneHot. given: how the model gets the classes."""
    numbers = f"int64[{len(classes)}] i = {{{', '.join(map(str, classes))}}}, " if not given else ""
    made = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]>
        g (float[2, 5, 3] x{given and f", {given} i"}) => (float[?, ?, ?] y) <{numbers}int64 d = {{5}}>
        {{ h = OneHot (i, d, v) y = MatMul (h, x) }}""")
    made.graph.initializer.append(numpy_helper.from_array(np.array([0, 1], np.float32), "v"))
    return made


def _rows(length: int) -> np.ndarray:
    return np.random.default_rng(length).standard_normal((2, length, 3)).astype(np.float32)


def test_classes_of_all_places_count_them() -> None:
    after = splitgraph.reshape(hot(0, 1, 2, 3, 4), {"x": [2, "T", 3]}, verify=False).model
    for length in LENGTHS:
        x = _rows(length)
        np.testing.assert_array_equal(ReferenceEvaluator(after).run(None, {"x": x})[0], x)


@pytest.mark.parametrize("size", ["T", 7])
@pytest.mark.parametrize("classes", [(4, 3, 2, 1, 1), (0, 1, 4), (3,)])
def test_classes_in_the_second_half_are_no_guess(classes: tuple[int, ...], size: DimLike) -> None:
    with pytest.raises(splitgraph.SplitgraphError) as caught:
        splitgraph.reshape(hot(*classes), {"x": [2, size, 3]})
    assert {found.code for found in caught.value.diagnostics} == {"SG420"}


def test_classes_in_the_first_half_stay_and_those_of_a_caller_are_his() -> None:
    first = splitgraph.reshape(hot(0, 1), {"x": [2, "T", 3]}, verify=False).model
    given = splitgraph.reshape(hot(given="int64[2]"), {"x": [2, "T", 3]}, verify=False).model
    for length in LENGTHS[1:]:
        x = _rows(length)
        np.testing.assert_array_equal(ReferenceEvaluator(first).run(None, {"x": x})[0], x[:, :2])
        picked = ReferenceEvaluator(given).run(None, {"x": x, "i": np.array([3, 0])})[0]
        np.testing.assert_array_equal(picked, x[:, [3, 0]])
