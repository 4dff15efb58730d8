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


def part(size: int, window: int, stride: int = 0) -> ModelProto:
    """Return a pooling of an image x[1, 3, size, size]. stride: 0 for that of the window."""
    step = stride or window
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[1, 3, {size}, {size}] x) => (float[a, b, c, d] y) '
        f"{{ y = AveragePool <kernel_shape = [{window}, {window}], strides = [{step}, {step}]> (x) }}"
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
    # Parts side by side, as an adaptive pooling is exported: halves and thirds, but no small ones, and no others.
    (part(8, 4), (1, 3, "H", 8), [("SG421", "entry 0 can mean 4 whatever the size of the data, or H//2")]),
    (part(12, 4), (1, 3, "H", 12), [("SG421", "entry 0 can mean 4 whatever the size of the data, or H//3")]),
    (part(6, 3), (1, 3, "H", 6), []),
    (part(16, 4), (1, 3, "H", 16), []),
    (part(8, 4, stride=2), (1, 3, "H", 8), []),
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


def pooled(made: ModelProto, shape: tuple[Any, ...], **said: Any) -> list[Any]:
    """Return what a model gives for an image of 8 rows and 9 columns."""
    (result,) = ReferenceEvaluator(splitgraph.reshape(made, {"x": [*shape]}, **said).model).run(None, {"x": DATA})
    return list(result.reshape(-1))


DATA = np.random.default_rng(0).random((1, 3, 8, 9), np.float32)
FEATURES = "f = Flatten (p) y = MatMul (f, k)"
WEIGHTS = "<float[3, 1] k = {1, 2, 3}>"
# A pooling of everything, and what it makes of the image.
GLOBAL: list[tuple[str, Any]] = [
    ("AveragePool <kernel_shape = [6, 7]>", DATA.mean((2, 3))),
    ("AveragePool <kernel_shape = [6, 7], strides = [6, 7], count_include_pad = 1>", DATA.mean((2, 3))),
    ("MaxPool <kernel_shape = [6, 7], strides = [2, 2]>", DATA.max((2, 3))),
]


@pytest.mark.parametrize(("pooling", "expected"), GLOBAL, ids=[pooling for pooling, _ in GLOBAL])
@pytest.mark.parametrize("shape", [(1, 3, "H", "W"), (1, 3, 8, 9), ("N", 3, "H", "W")], ids=str)
def test_a_window_follows_where_the_weights_behind_it_need_one_place(
    pooling: str, expected: Any, shape: tuple[Any, ...]
) -> None:
    made = model(f"p = {pooling} (x) {FEATURES}", WEIGHTS)
    np.testing.assert_allclose(pooled(made, shape), expected @ np.array([1, 2, 3]), rtol=1e-5)


def test_a_window_with_another_result_does_not_follow() -> None:
    made = model(f"p, i = MaxPool <kernel_shape = [6, 7]> (x) j = Identity (i) {FEATURES}", WEIGHTS)
    assert [code for code, _ in found(made, 1, 3, "H", "W")] == ["SG420"]
    with pytest.raises(splitgraph.SplitgraphError, match="it can only stay"):
        splitgraph.reshape(made, {"x": [1, 3, "H", "W"]}, follow=["main/MaxPool#0[0]=H"])


def answers() -> list[tuple[str, str]]:
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.reshape(WHOLE, {"x": [1, 3, "H", "W"]})
    return re.findall('--(keep|follow) "([^"]*)"', caught.value.diagnostics[0].help)


def test_the_suggested_answers_are_taken() -> None:
    place = "main/AveragePool#0"
    follows = [f"{place}[0]=H", f"{place}[1]=W"]
    assert answers() == [("keep", f"{place}[0]"), *(("follow", text) for text in [follows[0], *follows])]
    for said in (follows, follows[:1]):
        np.testing.assert_allclose(pooled(WHOLE, (1, 3, "H", "W"), follow=said), DATA.mean((2, 3))[0], rtol=1e-5)
    kept = pooled(WHOLE, (1, 3, "H", "W"), keep=[f"{place}[0]", f"{place}[1]"])
    np.testing.assert_allclose(kept[0], DATA[0, 0, :6, :7].mean(), rtol=1e-5)


def test_a_window_follows_along_all_axes_or_none() -> None:
    said = {"keep": ["main/AveragePool#0[0]"], "follow": ["main/AveragePool#0[1]=W"]}
    assert [code for code, _ in found(WHOLE, 1, 3, "H", "W", **said)] == ["SG420"]
