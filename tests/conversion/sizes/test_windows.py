"""Windows that take all of what they pool: asked, and kept as the answer says."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator

import splitgraph


def model(inside: str, weights: str = "") -> ModelProto:
    """Return a model of an image x[1, 3, 6, 7]."""
    kind = "float[a, b]" if "Flatten" in inside else "float[a, b, c, d]"
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[1, 3, 6, 7] x) => ({kind} y) {weights} {{ {inside} }}'
    )


def found(made: Any, *shape: Any, **said: Any) -> list[tuple[str, str]]:
    """Return the codes of what is asked or refused, with the text."""
    try:
        splitgraph.reshape(made, {"x": [*shape]}, verify=False, **said)
    except splitgraph.ConversionError as error:
        return [(each.code, each.message) for each in error.diagnostics]
    return []


WHOLE = model("y = AveragePool <kernel_shape = [6, 7]> (x)")
H = ("SG421", "entry 0 can mean 6 whatever the size of the data, or H")
W = ("SG421", "entry 1 can mean 7 whatever the size of the data, or W")
CASES: list[tuple[ModelProto, tuple[Any, ...], list[tuple[str, str]]]] = [
    (WHOLE, (1, 3, "H", "W"), [H, W]),
    (WHOLE, (1, 3, "H", 7), [H]),
    (WHOLE, (1, 3, 9, 7), [("SG421", "entry 0 can mean 6 whatever the size of the data, or x[2]")]),
    (model("y = MaxPool <kernel_shape = [6, 1]> (x)"), (1, 3, "H", "W"), [H]),
    (model("p = AveragePool <kernel_shape = [6, 7]> (x) y = Flatten (p)"), (1, 3, "H", "W"), [H, W]),
    # Another window, one that goes beyond the data, another dimension, and a batch.
    (model("y = MaxPool <kernel_shape = [3, 2]> (x)"), (1, 3, "H", "W"), []),
    (model("y = MaxPool <kernel_shape = [6, 7], pads = [3, 3, 2, 3]> (x)"), (1, 3, "H", "W"), []),
    (model("y = MaxPool <kernel_shape = [1, 7]> (x)"), (1, 3, "H", 7), []),
    (WHOLE, ("N", 3, 6, 7), []),
]


@pytest.mark.parametrize(("made", "shape", "told"), CASES)
def test_a_window_that_takes_everything_is_asked(
    made: ModelProto, shape: tuple[Any, ...], told: list[tuple[str, str]]
) -> None:
    assert found(made, *shape) == told


def test_a_window_before_weights_of_its_size_is_refused() -> None:
    inside = "p = AveragePool <kernel_shape = [6, 7]> (x) f = Flatten (p) y = MatMul (f, k)"
    made = model(inside, "<float[3, 1] k = {1, 2, 3}>")
    assert [code for code, _ in found(made, 1, 3, "H", "W")] == ["SG420"]


def test_the_suggested_answers_keep_the_window() -> None:
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.reshape(WHOLE, {"x": [1, 3, "H", "W"]})
    help = caught.value.diagnostics[0].help
    assert "make it a global pooling" in help
    kept = re.findall('--keep "([^"]*)"', help.partition("All questions at once")[2])
    made = splitgraph.reshape(WHOLE, {"x": [1, 3, "H", "W"]}, keep=kept).model
    data = np.arange(3 * 8 * 7, dtype=np.float32).reshape(1, 3, 8, 7)
    (pooled,) = ReferenceEvaluator(made).run(None, {"x": data})
    np.testing.assert_allclose(pooled[0, 0, :, 0], [data[0, 0, at : at + 6].mean() for at in range(3)])


def test_a_window_cannot_follow() -> None:
    with pytest.raises(splitgraph.SplitgraphError, match="it can only stay"):
        splitgraph.reshape(WHOLE, {"x": [1, 3, "H", "W"]}, follow=["main/AveragePool#0[0]=H"])
