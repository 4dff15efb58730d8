"""Numbers that a model computes with: those that may be a length are asked, and follow or stay as the answer says."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

import splitgraph

# The number of the largest pixel.
PIXEL = "f = Reshape (x, m) i = ArgMax <axis = 1, keepdims = 0> (f)"
GIVEN = "<int64[2] m = {1, -1}"


def model(inside: str) -> ModelProto:
    """Return a model of an image x[1, 6, 7]."""
    kind = "float" if "float" in inside else "int64"
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[1, 6, 7] x, int64[3] k) => ({kind}[b] y) {inside}'
    )


def asked(made: Any, *shape: Any, **said: Any) -> list[tuple[str, str]]:
    """Return where something is asked or refused, and what."""
    try:
        splitgraph.reshape(made, {"x": [*shape]}, **said)
    except splitgraph.ConversionError as error:
        return [(each.location, each.message) for each in error.diagnostics]
    return []


COLUMN = model(f"{GIVEN}, int64 w = {{7}}> {{ {PIXEL} y = Mod (i, w) }}")
MIRRORED = model(f"{GIVEN}, int64 w = {{6}}> {{ {PIXEL} y = Sub (w, i) }}")
CUT = model(f"{GIVEN}, int64 l = {{0}}, int64 h = {{6}}> {{ {PIXEL} y = Clip (i, l, h) }}")
PART = model(f"{GIVEN}, float w = {{7}}> {{ {PIXEL} c = Cast <to = 1> (i) y = Div (c, w) }}")
BOX = model(f"{GIVEN}, float[2] w = {{7, 6}}> {{ {PIXEL} c = Cast <to = 1> (i) y = Mul (c, w) }}")

LAST = model(f"{GIVEN}, float[2] w = {{6, 5}}> {{ {PIXEL} c = Cast <to = 1> (i) y = Mul (c, w) }}")


@pytest.mark.parametrize(
    ("made", "shape", "questions"),
    [
        (COLUMN, (1, 6, "W"), [("main/Mod#2", "entry 0 can mean 7 whatever the size of the data, or W")]),
        (COLUMN, (1, 6, 9), [("main/Mod#2", "entry 0 can mean 7 whatever the size of the data, or x[2]")]),
        # The last place along a dimension.
        (MIRRORED, (1, 6, "W"), [("main/Sub#2", "entry 0 can mean 6 whatever the size of the data, or W - 1")]),
        (MIRRORED, (1, "H", 7), [("main/Sub#2", "entry 0 can mean 6 whatever the size of the data, or H")]),
        (CUT, (1, 6, "W"), [("main/Clip#2", "entry 0 can mean 6 whatever the size of the data, or W - 1")]),
        # The same as floats.
        (PART, (1, 6, "W"), [("main/Div#3", "entry 0 can mean 7 whatever the size of the data, or W")]),
        (BOX, (1, 6, "W"), [("main/Mul#3", "entry 0 can mean 7 whatever the size of the data, or W")]),
        (LAST, (1, 6, "W"), [("main/Mul#3", "entry 0 can mean 6 whatever the size of the data, or W - 1")]),
    ],
)
def test_a_number_that_may_be_a_length_is_asked(
    made: ModelProto, shape: tuple[Any, ...], questions: list[tuple[str, str]]
) -> None:
    assert asked(made, *shape)[:1] == questions


@pytest.mark.parametrize(
    ("inside", "shape"),
    [
        # Another number, another length, a batch, and numbers that are weights.
        (f"{GIVEN}, int64 w = {{8}}> {{ {PIXEL} y = Mod (i, w) }}", (1, 6, "W")),
        (f"{GIVEN}, int64 w = {{7}}> {{ {PIXEL} y = Mod (i, w) }}", (1, "H", 7)),
        (f"{GIVEN}, int64[3] w = {{0, 1, 2}}> {{ {PIXEL} y = Add (k, w) }}", (1, 6, "W")),
        (f"{GIVEN}, float[2] w = {{7, 2.5}}> {{ {PIXEL} c = Cast <to = 1> (i) y = Mul (c, w) }}", (1, 6, "W")),
        (f"{GIVEN}, float w = {{2}}> {{ {PIXEL} c = Cast <to = 1> (i) y = Mul (c, w) }}", (1, 6, "W")),
        # What is computed from shapes says its sizes itself.
        (f"{GIVEN}, int64 w = {{7}}> {{ {PIXEL} s = Shape (x) y = Add (s, w) }}", (1, 6, "W")),
    ],
)
def test_other_numbers_stay_without_a_question(inside: str, shape: tuple[Any, ...]) -> None:
    assert not asked(model(inside), *shape)


@pytest.mark.parametrize("operator", ["Add", "Mul"])
@pytest.mark.parametrize("number", [np.inf, -np.inf, np.nan, 1e-310])
def test_numbers_that_are_no_size_stay(operator: str, number: float) -> None:
    """Exports mask with infinities."""
    made = model(f"{GIVEN}> {{ {PIXEL} c = Cast <to = 11> (i) d = {operator} (c, w) y = Cast <to = 7> (d) }}")
    made.graph.initializer.append(numpy_helper.from_array(np.array(number), "w"))
    assert not asked(made, 1, 6, "W")


def test_numbers_that_count_in_steps_of_a_length_are_refused() -> None:
    made = model(f"{GIVEN}, int64[3] w = {{0, 7, 14}}> {{ {PIXEL} y = Add (k, w) }}")
    assert asked(made, 1, 6, "W") == [("main/Add#2", "computes with 0, 7, 14 and so on, where 7 can be W")]


@pytest.mark.parametrize("size", ["W", 5])
@pytest.mark.parametrize(
    ("made", "answers", "expected"),
    [
        (COLUMN, {"follow": ["main/Mod#2[0]={W}"]}, lambda at: at % 5),
        (COLUMN, {"keep": ["main/Mod#2[0]"]}, lambda at: at % 7),
        (MIRRORED, {"follow": ["main/Sub#2[0]={W} - 1"]}, lambda at: 4 - at),
        (CUT, {"follow": ["main/Clip#2[0]={W} - 1"]}, lambda at: min(at, 4)),
        (PART, {"follow": ["main/Div#3[0]={W}"]}, lambda at: at / 5),
        (PART, {"keep": ["main/Div#3[0]"]}, lambda at: at / 7),
        (BOX, {"follow": ["main/Mul#3[0]={W}"], "keep": ["main/Mul#3[1]"]}, lambda at: [at * 5, at * 6]),
    ],
)
def test_answers_decide(made: ModelProto, answers: dict[str, list[str]], expected: Any, size: int | str) -> None:
    """They hold for a name and for a number, and while the result is verified."""
    name = "W" if size == "W" else "x[2]"
    said = {option: [text.format(W=name) for text in texts] for option, texts in answers.items()}
    changed = splitgraph.reshape(made, {"x": [1, 6, size]}, verify=True, **said)
    x = np.random.default_rng(0).random((1, 6, 5), np.float32)
    (found,) = ReferenceEvaluator(changed.model).run(None, {"x": x, "k": np.zeros(3, np.int64)})
    assert np.allclose(found.ravel(), np.ravel(expected(int(x.argmax()))))


GRAM = "f = Reshape (x, m) t = Transpose <perm = [0, 2, 1]> (f) p = MatMul (f, t)"


VARIANCE, ROOT = "y = Div (s, c)", "r = Pow (c, e) y = Mul (s, r)"


@pytest.mark.parametrize(
    ("height", "shape", "inside", "number", "meant"),
    [
        # A variance, of an image of which both sides change, or one.
        (6, ("H", "W"), VARIANCE, 41, "H*W - 1"),
        (6, (6, "W"), VARIANCE, 41, "6*W - 1"),
        (6, (9, 9), VARIANCE, 41, "x[2]*x[3] - 1"),
        # One size along both.
        (7, ("S", "S"), VARIANCE, 48, "S*S - 1"),
        (7, ("S", "S"), VARIANCE, 49, "S*S"),
        (7, (9, 9), VARIANCE, 48, "x[2]*x[2] - 1"),
        # As a power.
        (6, ("H", "W"), ROOT, 42, "H*W"),
        # Another number, a small one, and what is no area of the input.
        (6, ("H", "W"), VARIANCE, 40, None),
        (6, (6, "W"), VARIANCE, 20, None),
        (6, ("H", "W"), ROOT, 40, None),
        (6, (6, "S"), VARIANCE, 49, None),
    ],
)
def test_an_area_and_one_less_are_asked(
    height: int, shape: tuple[Any, ...], inside: str, number: int, meant: str | None
) -> None:
    made = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[1, 3, {height}, 7] x) => (float[1, 3, 1, 1] y) '
        f"<float c = {{{number}}}, float e = {{-0.5}}> {{ s = ReduceSumSquare <axes = [2, 3]> (x) {inside} }}"
    )
    told = [text for _, text in asked(made, 1, 3, *shape)]
    assert told == ([f"entry 0 can mean {number} whatever the size of the data, or {meant}"] if meant else [])


@pytest.mark.parametrize("name", ["H*W - 1", "7*H - 1"])
def test_an_area_follows(name: str) -> None:
    made = parser.parse_model(
        '<ir_version: 8, opset_import: ["": 17]> g (float[1, 3, 6, 7] x) => (float[1, 3, 1, 1] y) '
        f"<float c = {{41}}> {{ s = ReduceSumSquare <axes = [2, 3]> (x) {VARIANCE} }}"
    )
    sides = ("H", "W") if "W" in name else ("H", 7)
    changed = splitgraph.reshape(made, {"x": [1, 3, *sides]}, follow=[f"main/Div#1[0]={name}"])
    x = np.random.default_rng(0).random((1, 3, 5, 7), np.float32)
    (found,) = ReferenceEvaluator(changed.model).run(None, {"x": x})
    assert np.allclose(found.ravel(), (x**2).sum((0, 2, 3)) / 34)


@pytest.mark.parametrize(
    ("shape", "number", "meant"),
    [
        ((1, 3, "H", "W"), 126, "3*H*W"),
        ((1, 3, "H", 7), 126, "21*H"),
        ((1, 3, 6, 9), 126, "18*x[3]"),
        # Another number, a batch of 1, and a small product.
        ((1, 3, "H", "W"), 125, None),
        (("N", 3, 6, 7), 126, None),
        ((1, 3, "H", 7), 18, None),
    ],
)
def test_a_product_of_lengths_and_sizes_that_stay_is_asked(
    shape: tuple[Any, ...], number: int, meant: str | None
) -> None:
    weights = f"<int64[3] m = {{1, 3, -1}}, float c = {{{number}}}>" if shape[0] == 1 else "<float c = {126}>"
    inside = f"{GRAM} y = Div (p, c)" if shape[0] == 1 else "p = ReduceSum <keepdims = 0> (x) y = Div (p, c)"
    kind = "float[a, b, c]" if shape[0] == 1 else "float"
    made = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[1, 3, 6, 7] x) => ({kind} y) {weights} {{ {inside} }}'
    )
    told = [text for _, text in asked(made, *shape)]
    assert told == ([f"entry 0 can mean {number} whatever the size of the data, or {meant}"] if meant else [])


@pytest.mark.parametrize(
    ("inside", "told"),
    [
        (
            "<float r = {2.4494898}> { p = Softmax <axis = 1> (x) y = Div (p, r) }",
            "sqrt(6) whatever the size of the data, or sqrt(T)",
        ),
        (
            "<float r = {2.236068}> { p = Softmax <axis = 1> (x) y = Div (p, r) }",
            "sqrt(5) whatever the size of the data, or sqrt(T - 1)",
        ),
        (
            "<float r = {0.40824829}> { p = Softmax <axis = 1> (x) y = Mul (p, r) }",
            "1/sqrt(6) whatever the size of the data, or 1/sqrt(T)",
        ),
        (
            "<float r = {6}> { p = Softmax <axis = 1> (x) s = Sqrt (r) y = Div (p, s) }",
            "6 whatever the size of the data, or T",
        ),
        # The root of a number that is no length, and of a size that stays as well.
        ("<float r = {2.6457513}> { p = Softmax <axis = 1> (x) y = Div (p, r) }", None),
        (
            "<float r = {2.4494898}, int64[2] s = {-1, 6}> "
            "{ z = Reshape (x, s) p = Softmax <axis = 1> (x) y = Div (p, r) }",
            None,
        ),
    ],
)
def test_the_root_of_a_length_is_asked(inside: str, told: str | None) -> None:
    made = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[2, 6, 3] x) => (float[a, b, c] y) {inside}'
    )
    assert [text for _, text in asked(made, 2, "T", 3)] == ([] if told is None else [f"entry 0 can mean {told}"])


@pytest.mark.parametrize("dtype", ["float", "float16"])
@pytest.mark.parametrize(
    ("number", "size", "meant"),
    [
        (1 / 6, "T", "1/(T)"),
        (1 / 6, 9, "1/(x[1])"),
        (1 / 5, "T", "1/(T - 1)"),
        # No number of the length, and one that is no inverse.
        (1 / 4, "T", None),
        (0.3, "T", None),
        (0.5, "T", None),
    ],
)
def test_a_product_with_the_inverse_of_a_length_is_asked(
    number: float, size: int | str, meant: str | None, dtype: str
) -> None:
    """A mean over 6 places, as a sum and a factor."""
    made = parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g ({dtype}[2, 6, 4] x) => ({dtype}[2, 4] y) '
        "<int64[1] a = {1}> { s = ReduceSum <keepdims = 0> (x, a) y = Mul (s, c) }"
    )
    factor = np.array(number, np.float32 if dtype == "float" else np.float16)
    made.graph.initializer.append(numpy_helper.from_array(factor, "c"))
    told = [text for _, text in asked(made, 2, size, 4)]
    assert [meant in text for text in told] == ([True] if meant else []), told
