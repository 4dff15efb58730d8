"""Numbers that a model computes with: those that may be a length are asked, and follow or stay as the answer says."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
import pytest
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator
from openvino import opset13 as ops

import splitgraph
from splitgraph.formats import open_model

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


# IRs ------------------------------------------------------------------------------------------------------------------


def ints(*numbers: int) -> Any:
    return ops.constant(np.array(numbers, np.int64))


def opened(output: Any, inputs: list[Any], folder: Path) -> Any:
    ov.save_model(ov.Model([output], inputs), folder / "m.xml", compress_to_fp16=False)
    return open_model(folder / "m.xml").content


def run(made: Any, folder: Path, *inputs: Any) -> Any:
    splitgraph.save(made, folder / "run.xml")
    return next(iter(ov.Core().compile_model(folder / "run.xml", "CPU")([*inputs]).values()))


@pytest.mark.parametrize("size", ["W", 5])
def test_the_column_of_a_pixel_in_an_ir(size: int | str, tmp_path: Path) -> None:
    x = ops.parameter(ov.PartialShape([1, 6, 7]), np.float32, name="x")
    found = ops.topk(
        ops.reshape(x, ints(1, 42), False), ops.constant(np.int64(1)), 1, "max", "value", index_element_type="i64"
    )
    column = ops.floor_mod(found.output(1), ops.constant(np.array([[7]], np.int64)))
    column.set_friendly_name("column")
    before = opened(column, [x], tmp_path)
    shape, name = [1, 6, size], "W" if size == "W" else "x[2]"
    assert asked(before, *shape) == [("main/column", f"entry 0 can mean 7 whatever the size of the data, or {name}")]
    data = np.random.default_rng(0).random((1, 6, 5), np.float32)
    for said, width in (({"follow": [f"main/column[0]={name}"]}, 5), ({"keep": ["main/column[0]"]}, 7)):
        after = splitgraph.reshape(before, {"x": shape}, **said).model
        assert run(after, tmp_path, data) == data.argmax() % width


def test_one_of_several_numbers_in_an_ir(tmp_path: Path) -> None:
    """The rows of two items follow one another, and each item starts where the one before ends."""
    x = ops.parameter(ov.PartialShape([2, 6, 3]), np.float32, name="x")
    chosen = ops.parameter(ov.PartialShape([2]), np.int64, name="k")
    places = ops.add(chosen, ints(0, 6))
    places.set_friendly_name("places")
    before = opened(ops.gather(ops.reshape(x, ints(12, 3), False), places, ints(0)), [x, chosen], tmp_path)
    after = splitgraph.reshape(before, {"x": [2, "T", 3]}, follow=["main/places[1]=T"]).model
    data = np.random.default_rng(0).random((2, 4, 3), np.float32)
    np.testing.assert_array_equal(run(after, tmp_path, data, np.array([3, 1])), [data[0, 3], data[1, 1]])
