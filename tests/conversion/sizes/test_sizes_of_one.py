"""Sizes of 1: several things can be 1 at once, so that numbers and weights do not say which of them they mean."""

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
    "what is left open, of as many as the target has entries": reshaped(
        "-1, 4", 2, to(-1, 4), to("N", -1), declared=(2, 1, 4), asked=(2, "T", 4)
    ),
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
    "steps of which a mean is taken": Model(
        (3, 1, 3),
        "<int64[2] s = {-1, 3}> { a = Reshape (x, s) y = ReduceMean <axes = [0], keepdims = 0> (a) }",
        [lambda x: x.reshape(-1, 3).mean(0), lambda x: x.reshape(3, -1).mean(0)],
        (3, "T", 3),
    ),
    "steps that are added up": Model(
        (2, 3, 1, 4),
        "<int64[3] s = {2, -1, 4}, int64 i = {1}> { a = Reshape (x, s) y = CumSum (a, i) }",
        [lambda x: x.reshape(2, -1, 4).cumsum(1), lambda x: x.reshape(2, 3, -1).cumsum(1)],
        (2, 3, "T", 4),
    ),
    "the first one, or the last one": Model(
        (1, 1, 4),
        "<int64 i = {0}> { y = Gather <axis = 1> (x, i) }",
        [lambda x: x[:, 0], lambda x: x[:, -1]],
        (1, "T", 4),
    ),
    "the first one, or all": Model(
        (1, 1, 4),
        "<int64[1] s = {0}, int64[1] e = {1}, int64[1] a = {1}> { y = Slice (x, s, e, a) }",
        [lambda x: x[:, :1], lambda x: x],
        (1, "T", 4),
    ),
    "one step, or as many": Model(
        (1, 1, 4),
        "<int64 n = {1}, bool go = {1}> { y = Loop <body = b (int64 i, bool c, float[p, q, r] s) => "
        "(bool d, float[u, v, w] e) { d = Identity (c) e = Add (s, s) }> (n, go, x) }",
        [lambda x: 2 * x, lambda x: x * 2 ** x.shape[1]],
        (1, "T", 4),
    ),
    "lengths of sequences": Model(
        (1, 1, 4),
        "<int64[1] n = {1}> { y = ReverseSequence <batch_axis = 0, time_axis = 1> (x, n) }",
        [lambda x: x, lambda x: x[:, ::-1]],
        (1, "T", 4),
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
    "items that come back": Model(
        (3, 1, 4),
        "<int64[2] s = {-1, 4}, int64[3] t = {3, 1, 4}, int64 i = {0}> "
        "{ a = Reshape (x, s) b = CumSum (a, i) y = Reshape (b, t) }",
        [lambda x: x.reshape(3, -1).cumsum(0).reshape(x.shape)],
        (3, "T", 4),
    ),
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


WEIGHTS = {
    "added": ("<float[1, 1, 4] w = {1, 2, 3, 4}> { y = Add (x, w) }", 1),
    "a mask of one": ("<float[1, 1] w = {5}> { y = Mul (x, w) }", 0),
    "chosen": ("<bool[1, 1] w = {1}, float k = {0}> { y = Where (w, x, k) }", 0),
    "a mask that is computed": (
        "<float[1, 1] w = {20}, float k = {0}> { m = ReduceMax <axes = [1, 2], keepdims = 1> (x) l = Less (w, m) "
        "o = Or (l, l) y = Where (o, x, k) }",
        1,
    ),
}
_W = np.array([1, 2, 3, 4], np.float32)


@pytest.mark.parametrize(
    ("inside", "axis", "function"),
    [
        (*WEIGHTS["added"], lambda x: x + _W),
        (*WEIGHTS["a mask of one"], lambda x: 5 * x),
        (*WEIGHTS["chosen"], lambda x: x),
        (*WEIGHTS["a mask that is computed"], lambda x: np.where(x.max((1, 2), keepdims=True) > 20, x, 0)),
    ],
    ids=list(WEIGHTS),
)
def test_weights_of_one_row_are_asked_about(inside: str, axis: int, function: Meaning) -> None:
    """They are the same for each place, or a table, whose other rows nobody has."""
    made = Model((2, 1, 4), inside, [function], (2, "T", 4))
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.reshape(model(made), {"x": [2, "T", 4]})
    (found,) = caught.value.diagnostics
    assert found.code == "SG421" and re.search("the size 1 of '[wo]' whatever the size of the data", found.message)
    (way,) = ways_of(caught.value)
    assert list(way.values()) == [[], [way["keep"][0]]] and way["keep"][0].endswith(f"[{axis}]")
    assert check(made, way) == 0


ITEMS = {
    "items, and weights for each": Model(
        (1, 3, 4), WEIGHTS["added"][0], [lambda x: x + _W], ("N", 3, 4)
    ),
    "a vector of features": Model(
        (1, 1, 4), "<float[4] w = {1, 2, 3, 4}> { y = Add (x, w) }", [lambda x: x + _W], (1, "T", 4)
    ),
    "what is found in the data itself": Model(
        (1, 1, 4),
        "<float[4] w = {1, 2, 3, 4}> { m = ReduceMax <axes = [1], keepdims = 1> (x) a = Add (m, w) y = Mul (x, a) }",
        [lambda x: x * (x.max(1, keepdims=True) + _W)],
        (1, "T", 4),
    ),
    "a length that was larger": Model(
        (1, 3, 4), WEIGHTS["added"][0], [lambda x: x + _W], (1, "T", 4)
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ITEMS)
def test_other_weights_are_taken_without_a_question(name: str) -> None:
    assert check(ITEMS[name], {}) == 0


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


def test_items_that_the_user_has_placed_may_be_computed_over() -> None:
    """Each of two questions about one Reshape is asked, and each answer to them is accepted."""
    made = Model(
        (1, 1, 3),
        "<int64[2] s = {-1, 3}, int64 i = {0}> { a = Reshape (x, s) y = CumSum (a, i) }",
        [lambda x: x.reshape(-1, 3).cumsum(0), lambda x: x.reshape(x.shape[0], -1).cumsum(0)],
        ("N", "T", 3),
    )
    with pytest.raises(splitgraph.ConversionError, match="2 blockers"):
        splitgraph.reshape(model(made), {"x": [*made.asked]})
    assert check(made, {"follow": ["main/Reshape#0[0]=N*T"]}) == 0
    assert check(made, {"follow": ["main/Reshape#0[0]=N", "main/Reshape#0[1]=3*T"]}) == 1
