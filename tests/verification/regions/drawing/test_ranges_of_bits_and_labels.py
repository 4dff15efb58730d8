"""Bits that are shifted or masked, and numbers of labels: what they cannot be is not drawn."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import numpy_helper, parser

import splitgraph

from ..model_pairs import Pair, find_difference, show_difference

BITS = {"bits": np.uint16(8), "whole": np.uint16(255), "less": np.uint16(127), "one": np.uint16(1)}
NUMBERS = "uint16[N] x => uint16[N] y, uint16[N] s"
RIGHT, LEFT = (f's = BitShift<direction = "{way}">(x, bits) ' for way in ("RIGHT", "LEFT"))
MASKED = "s = BitwiseAnd(x, less) "
EQUAL = {
    "a mask of shifted bits": Pair(NUMBERS, RIGHT + "y = BitwiseAnd(s, whole)", RIGHT + "y = Identity(s)", {}, BITS),
    "the least of shifted bits": Pair(NUMBERS, RIGHT + "y = Min(s, whole)", RIGHT + "y = Identity(s)", {}, BITS),
    "the least of masked bits": Pair(NUMBERS, MASKED + "y = Min(s, whole)", MASKED + "y = Identity(s)", {}, BITS),
}
MANY = {"x": np.array([65535, 65280], np.uint16)}
DIFFERENT = {
    "a smaller mask": Pair(NUMBERS, RIGHT + "y = BitwiseAnd(s, less)", RIGHT + "y = Identity(s)", MANY, BITS),
    "bits that are shifted to the left": Pair(
        NUMBERS, LEFT + "y = Min(s, whole)", LEFT + "y = Identity(s)", MANY, BITS
    ),
    "masked bits": Pair(NUMBERS, MASKED + "y = Min(s, one)", MASKED + "y = Identity(s)", MANY, BITS),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", EQUAL)
def test_bits_that_are_away_show_nothing(name: str) -> None:
    models = EQUAL[name].models()
    for one, other in (models, models[::-1]):
        assert splitgraph.verify(one, other).verdict == "equal"


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", DIFFERENT)
def test_bits_that_are_there_show_a_difference(name: str) -> None:
    find_difference(DIFFERENT[name])
    show_difference(DIFFERENT[name])


def labelled(rest: str, labels: str) -> onnx.ModelProto:
    """Return a model of the numbers of some labels, and a table with a row for the numbers 0, 1 and 2."""
    encoder = f"s = ai.onnx.ml.LabelEncoder<{labels}>(x)"
    header = '<ir_version: 8, opset_import: ["": 18, "ai.onnx.ml": 3]>'
    text = f"{header} g (string[N] x) => (float[N, 2] y, int64[N] s) {{ {encoder} {rest} }}"
    model: onnx.ModelProto = parser.parse_model(text)
    arrays = {"table": np.arange(6, dtype=np.float32).reshape(3, 2), "least": np.int64(0), "most": np.int64(2)}
    model.graph.initializer.extend(numpy_helper.from_array(np.asarray(each), name) for name, each in arrays.items())
    return model


LABELS = 'keys_strings = ["a", "b"], values_int64s = [1, 2]'
LABELLED = {
    "with a number for others": (LABELS + ", default_int64 = 0", "equal"),
    # The last row stands for what is not known.
    "with the usual number for others": (LABELS, "different"),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", LABELLED)
def test_numbers_of_labels(name: str) -> None:
    labels, verdict = LABELLED[name]
    ways = ("y = Gather(table, s)", "c = Clip(s, least, most) y = Gather(table, c)")
    assert splitgraph.verify(*(labelled(way, labels) for way in ways)).verdict == verdict
