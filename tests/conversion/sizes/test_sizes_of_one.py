"""Sizes of 1: several things can be 1 at once, so that a target does not say which of them it means."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pytest
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator

import splitgraph

SIZES = {"N": 3, "T": 5}
_OPTION = re.compile('--(follow|keep) "([^"]+)"')
Meaning = Callable[..., Any]


class Model(NamedTuple):
    """A model of x. declared: the sizes of x. inside: the graph. readings: what y can mean at other sizes."""

    declared: Sequence[Any]
    inside: str
    readings: Sequence[Meaning]
    asked: Sequence[Any]


def ways_of(error: splitgraph.ConversionError) -> list[dict[str, list[str]]]:
    """Return the answers that one question suggests, as options of `reshape`."""
    (found,) = error.diagnostics
    assert found.code == "SG421"
    ways = [_OPTION.findall(way) for way in found.help.split(", or ")]
    return [{kind: [text for each, text in way if each == kind] for kind in ("follow", "keep")} for way in ways]


def model(made: Model) -> ModelProto:
    shape, rank = ", ".join(map(str, made.declared)), made.readings[0](np.ones(made.declared, np.float32)).ndim
    out = ", ".join("abcde"[:rank])
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[{shape}] x) => (float[{out}] y) {made.inside}'
    )


def data_of(made: Model) -> Any:
    shape = [SIZES.get(str(size), size) for size in made.asked]
    return np.arange(np.prod(shape), dtype=np.float32).reshape(shape)


def check(made: Model, options: Mapping[str, list[str]]) -> int:
    """Return which of its readings a result gives."""
    after = splitgraph.reshape(model(made), {"x": [*made.asked]}, **options).model
    data = data_of(made)
    (found,) = ReferenceEvaluator(after).run(None, {"x": data})
    wanted = [reading(data) for reading in made.readings]
    fitting = [at for at, each in enumerate(wanted) if each.shape == found.shape and np.allclose(each, found)]
    assert fitting, (found.shape, options)
    return fitting[0]


def reshaped(target: str, rank: int, *readings: Meaning, declared: Any = (1, 1, 4), asked: Any = (1, "T", 4)) -> Model:
    return Model(declared, f"<int64[{rank}] s = {{{target}}}> {{ y = Reshape (x, s) }}", readings, asked)


def to(*shape: Any) -> Meaning:
    """A Reshape, with names for sizes of the data: those of its first two axes."""
    return lambda x: x.reshape([x.shape["NT".index(size)] if size in ("N", "T") else size for size in shape])


ASKED = {
    "merged with one beside, or with the other": reshaped("1, 4", 2, to("T", 4), to(1, -1)),
    "what is left open": reshaped("-1, 4", 2, to("T", 4), to(1, -1)),
    "what is left open behind": reshaped("1, -1", 2, to("T", 4), to(1, -1)),
    "both sizes": reshaped("1, 4", 2, to(-1, 4), to("N", -1), asked=("N", "T", 4)),
    "a new one before and behind": reshaped(
        "4, 1, 1, 5", 4, to(4, "T", 1, 5), to(4, 1, "T", 5), to(-1, 1, 1, 5), to(4, 1, 1, -1),
        declared=(4, 1, 5), asked=(4, "T", 5),
    ),
    "beside a size that stays, both are numbers": reshaped("12", 1, to(-1), declared=(3, 1, 4), asked=(3, "T", 4)),
    "a length beside two numbers": reshaped("3, 4", 2, to(-1, 4), to(3, -1), declared=(3, 1, 4), asked=(3, "T", 4)),
    "rows of two numbers": reshaped("-1, 4", 2, to(-1, 4), to(3, -1), declared=(3, 1, 4), asked=(3, "T", 4)),
    "two Reshapes alike": Model(
        (3, 1, 4),
        "<int64[2] s = {3, 4}> { a = Reshape (x, s) b = Neg (x) c = Reshape (b, s) y = Sub (a, c) }",
        [lambda x: 2 * x.reshape(-1, 4), lambda x: 2 * x.reshape(3, -1)],
        (3, "T", 4),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ASKED)
def test_each_reading_is_asked_and_each_answer_is_accepted(name: str) -> None:
    made = ASKED[name]
    if len(made.readings) == 1:
        assert check(made, {}) == 0
        return
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.reshape(model(made), {"x": [*made.asked]})
    assert {check(made, way) for way in ways_of(caught.value)} == set(range(len(made.readings)))


CLEAR = {
    "a length keeps its place": reshaped("1, 1, 4", 3, to(1, "T", 4)),
    "and one place behind": reshaped("1, 1, 2, 2", 4, to(1, "T", 2, 2)),
    "a first dimension is of items": reshaped("1, 4", 2, to("N", 4), asked=("N", 1, 4)),
    "larger than 1": reshaped("3, 4", 2, to("T", 4), declared=(1, 3, 4)),
    "a zero copies": reshaped("0, 0, 2, 2", 4, to(1, "T", 2, 2)),
    "a product of weights decides": Model(
        (1, 1, 4),
        "<int64[2] s = {1, 4}, float[4, 4] w = {1,0,0,0, 0,1,0,0, 0,0,1,0, 0,0,0,1}> "
        "{ a = Reshape (x, s) y = MatMul (a, w) }",
        [to("T", 4)],
        (1, "T", 4),
    ),
}


@pytest.mark.parametrize("name", CLEAR)
def test_one_reading_is_taken_without_a_question(name: str) -> None:
    assert check(CLEAR[name], {}) == 0


def test_an_answer_has_the_whole_entry() -> None:
    """Other digits that move stand in it, too."""
    made = parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> g (float[3, 4, 1, 6] x) => (float[a, b, c] y)
        <int64[3] s = {3, 4, 6}> { y = Reshape (x, s) }""")
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.reshape(made, {"x": [3, 4, "H", "W"]})
    told = {tuple(way["follow"]) for way in ways_of(caught.value)}
    assert told == {("main/Reshape#0[1]=4*H",), ("main/Reshape#0[2]=H*W",)}
    after = splitgraph.reshape(made, {"x": [3, 4, "H", "W"]}, follow=["main/Reshape#0[2]=H*W"]).model
    data = np.arange(3 * 4 * 2 * 5, dtype=np.float32).reshape(3, 4, 2, 5)
    np.testing.assert_array_equal(ReferenceEvaluator(after).run(None, {"x": data})[0], data.reshape(3, 4, 10))
