"""Values that are drawn for the inputs of a region: their kinds, what does not change, and what each kind holds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import splitgraph
from splitgraph.verification.regions.checking import local_check
from splitgraph.verification.regions.drawing.draw import Drawn, draw
from splitgraph.verification.values import Value

from ...small_models import parsed

F, I64 = np.float32, np.int64
THRESHOLD = "float[N] x => bool[N] y", "y = Greater(x, c)"


def drawn(
    before: onnx.ModelProto,
    base: Mapping[str, Any],
    fixed: tuple[str, ...] = (),
    after: onnx.ModelProto | None = None,
    seed: int = 0,
) -> dict[str, list[Mapping[str, Value]]]:
    """Return what is drawn, by kind."""
    found: dict[str, list[Mapping[str, Value]]] = {}
    models = (before, Path()), (after or before, Path())
    for each in draw(models, {name: np.asarray(value) for name, value in base.items()}, fixed, seed):
        found.setdefault(each.kind, []).append(each.values)
    return found


def numbers(found: dict[str, list[Mapping[str, Value]]], kind: str, name: str = "x") -> list[Any]:
    """Return all elements of an input in the draws of a kind."""
    return [number for values in found.get(kind, ()) for number in np.ravel(values[name]).tolist()]


INTEGERS = ["uint8", "int8", "uint16", "int16", "int32", "uint32", "int64", "uint64"]
FLOATS = ["float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", INTEGERS)
def test_the_numbers_of_an_integer_type(dtype: str) -> None:
    made = drawn(parsed(*THRESHOLD, c=np.int64(7)), {"x": np.ones(500, dtype)})
    least, most = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)
    assert {least, most, least + 1, most - 1} <= set(numbers(made, "ends"))
    assert {0, 1, 6, 7, 8} <= set(numbers(made, "steps"))
    assert "gaps" not in made
    assert len(set(numbers(made, "normal"))) > 50


@pytest.mark.parametrize("dtype", FLOATS)
def test_the_numbers_of_a_floating_point_type(dtype: str) -> None:
    made = drawn(parsed(*THRESHOLD, c=F(7)), {"x": np.ones(500, dtype)})
    after = float(np.nextafter(np.dtype(dtype).type(7), np.dtype(dtype).type(8)))
    assert {0.5, 1.5, 2.5, 7.0, 3.5, after} <= set(numbers(made, "steps"))
    assert [number for number in numbers(made, "steps") if number == 0 and np.signbit(number)]
    assert 65504 <= max(numbers(made, "ends")) <= 1e18
    assert {1.0, np.inf, -np.inf} <= set(numbers(made, "gaps"))
    assert np.isnan(numbers(made, "gaps")).any()
    assert np.isfinite(numbers(made, "normal")).all()


BASES = {
    "floats": np.ones((3, 5), F),
    "halves": np.ones((3, 5), np.float16),
    "a number": np.ones((), F),
    "integers": np.arange(6),
    "bytes": np.arange(6).astype(np.uint8),
    "conditions": np.array([True, False]),
    "texts": np.array(["a", "b"], dtype=object),
    "complex numbers": np.ones(3, np.complex64),
}


@pytest.mark.parametrize("name", BASES)
def test_what_is_drawn_keeps_its_type_and_shape(name: str) -> None:
    base = BASES[name]
    made = drawn(parsed("float[N] x => float[N] y", "y = Identity(x)"), {"x": base})
    values = [values["x"] for each in made.values() for values in each]
    assert all((value.dtype, value.shape) == (base.dtype, base.shape) for value in values)
    assert not all(np.array_equal(value, base) for value in values)


def test_a_seed_gives_the_same_and_another_one_other_numbers() -> None:
    base = {"x": np.ones(20, F)}
    made = [numbers(drawn(parsed(*THRESHOLD, c=F(7)), base, seed=seed), "normal") for seed in (0, 0, 1)]
    assert made[0] == made[1] != made[2]


def test_one_number_takes_all_in_turn() -> None:
    found = numbers(drawn(parsed("float x => bool y", "y = Greater(x, c)", c=F(7)), {"x": F(1)}), "steps")
    # Those between the constants come last.
    steps, between = found[:-3], found[-3:]
    assert len(steps) == len({*map(str, steps)}) > 6
    assert 7.0 in steps
    assert between == [-1.0, 3.5, 10.5]


# A model, the values that reach it, the inputs that are said to be fixed, and those that never change.
KEPT: dict[str, tuple[onnx.ModelProto, dict[str, Any], tuple[str, ...], set[str]]] = {
    "a fixed input": (
        parsed("float[N] x, float[N] v => float[N] y", "y = Mul(x, v)"),
        {"x": F([1, 2]), "v": F([3, 4])},
        ("v",),
        {"v"},
    ),
    "all of them": (parsed("float[N] x => float[N] y", "y = Neg(x)"), {"x": F([1, 2])}, ("x",), {"x"}),
    "a shape": (
        parsed("float[N] x, int64[M] s => float[A, B] y", "y = Reshape(x, s)"),
        {"x": np.ones(4, F), "s": I64([2, 2])},
        (),
        {"s"},
    ),
    "an axis of TopK": (
        parsed("float[N] x, int64[1] k => float[M] y", "y, i = TopK(x, k)"),
        {"x": np.ones(4, F), "k": I64([2])},
        (),
        {"k"},
    ),
    "positions to write to": (
        parsed(
            "float[1, 1, 2] x, int64[1, 1, 2] i => float[1, 1, 4] y",
            "y = MaxUnpool<kernel_shape = [2], strides = [2]>(x, i)",
        ),
        {"x": F([[[1, 2]]]), "i": I64([[[1, 2]]])},
        (),
        {"i"},
    ),
    "what is empty": (
        parsed("float[N] x, float[M] v => float[K] y", "y = Concat<axis = 0>(x, v)"),
        {"x": np.ones(4, F), "v": np.zeros(0, F)},
        (),
        {"v"},
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_inputs_that_do_not_change(name: str) -> None:
    model, base, fixed, kept = KEPT[name]
    made = drawn(model, base, fixed)
    changed = {
        key
        for each in made.values()
        for values in each
        for key, value in base.items()
        if not np.array_equal(values[key], value)
    }
    assert changed == base.keys() - kept


@pytest.mark.parametrize("operator", ["Div", "Mod"])
def test_integers_are_divided_by_all_numbers_but_0(operator: str) -> None:
    model = parsed("int32[N] x, int32[N] v => int32[N] y", f"y = {operator}(x, v)")
    made = drawn(model, {"x": np.ones(4, np.int32), "v": np.full(4, 5, np.int32)})
    assert {number for kind in made for number in numbers(made, kind, "v")} >= {1, -1, 2, 7, -7, 2**31 - 1, -(2**31)}
    assert not any(0 in numbers(made, kind, "v") for kind in made)
    # The least number divided by -1 has no quotient.
    assert not any(-1 in numbers(made, kind, "v") for kind in made if -(2**31) in numbers(made, kind, "x"))


def test_numbers_of_both_models_are_tried() -> None:
    """Those of attributes, too, of Constant nodes, the ends of a quantization, and those of a large tensor."""
    body = "k = Constant<value = float {123.0}>() m = Mul(x, k) l = LeakyRelu<alpha = 0.75>(m) y = Add(l, w)"
    before = parsed("float[100] x => float[100] y", body, w=np.arange(1000, 1100).astype(F))
    after = parsed("float[100] x => float[100] y", "y = Mul(x, c)", c=F(0.015625))
    found = set(numbers(drawn(before, {"x": np.ones(100, F)}, after=after), "steps"))
    assert {123.0, 0.75, 0.015625, 127.5 * 0.015625, -128.5 * 0.015625} <= found
    assert {1050.0, float(np.nextafter(F(1050), F(0)))} <= found


def test_two_inputs_meet_in_all_combinations() -> None:
    made = drawn(parsed("float[N] x, float[N] v => bool[N] y", "y = Less(x, v)"), {"x": F([1]), "v": F([1])})
    pairs = {(str(values["x"][0]), str(values["v"][0])) for values in made["mixed"]}
    assert len(pairs) >= 12
    wide = drawn(
        parsed("float[N] x, float[N] v => bool[N] y", "y = Less(x, v)"), {"x": np.ones(100, F), "v": np.ones(100, F)}
    )
    met = {pair for each in wide["mixed"] for pair in zip(map(str, each["x"]), map(str, each["v"]), strict=True)}
    assert {("nan", "1.0"), ("1.0", "nan"), ("inf", "-inf"), ("-0.0", "0.0"), ("nan", "nan")} <= met


@pytest.mark.parametrize("count", [2, 3, 4])
def test_the_last_of_several_inputs_takes_all_numbers_and_words(count: int) -> None:
    names = [f"x{place}" for place in range(count)]
    for dtype, base, expected in (
        ("string", np.array(["a"], object), {"Ω", "ZED", "42", " ", ""}),
        ("float", F([1]), {0.0, 1.0, np.inf, -np.inf, -1.0, 2.0}),
    ):
        signature = ", ".join(f"{dtype}[1] {name}" for name in names)
        made = drawn(parsed(f"{signature} => {dtype}[1] y", "y = Identity(x0)"), dict.fromkeys(names, base))
        assert all(expected <= set(numbers(made, "mixed", name)) for name in names)


def test_one_flag_of_a_row_is_not_like_the_others() -> None:
    made = drawn(parsed("bool[N, 12] x => bool[N, 12] y", "y = Not(x)"), {"x": np.zeros((1, 12), bool)})
    counts = [int(np.sum(values["x"])) for values in made["mixed"]]
    assert {1, 11} <= set(counts)


def test_words_of_a_region_are_tried_in_other_letters() -> None:
    body = 'y = StringNormalizer<stopwords = ["Monday"]>(x)'
    found = numbers(drawn(parsed("string[N] x => string[M] y", body), {"x": np.array(["a"] * 9, object)}), "mixed")
    assert {"Monday", "MONDAY", "monday", "mONDAY", ""} <= set(found)


LOOP = (
    "y = Loop(n, , x) <body = l (int64 i, bool c, float[N] s) => (bool d, float[N] r) "
    "{ d = Identity(c) r = Mul(s, s) }>"
)


def test_a_loop_runs_several_times_on_all_numbers() -> None:
    made = drawn(parsed("int64 n, float[N] x => float[N] y", LOOP), {"n": I64(3), "x": np.ones(4, F)})
    assert numbers(made, "counts", "n") == [0, 1, 2, 8, 20]
    assert {"ends", "gaps"} <= made.keys()
    assert set(numbers(made, "ends", "n")) == {3}


@pytest.mark.parametrize(
    ("text", "count"),
    [
        # Its condition alone ends it.
        (LOOP.replace("n, , x", ", , x"), 3),
        (LOOP, 2**62),
        # The number of iterations is computed, and the condition, too.
        (
            "m = Add(n, n) y = Loop(m, , x) <body = l (int64 i, bool c, float[N] s) => (bool d, float[N] r) "
            "{ r = Mul(s, s) t = ReduceSum(r) u = Squeeze(t) d = Less(u, u) }>",
            3,
        ),
    ],
)
def test_a_loop_that_may_not_end_runs_on_ordinary_numbers(text: str, count: int) -> None:
    made = drawn(parsed("int64 n, float[N] x => float[N] y", text), {"n": I64(count), "x": np.ones(4, F)})
    assert "steps" in made
    assert not {"ends", "gaps"} & made.keys()


COUNTING = (
    "y, e = Loop(, , x, k) <body = l (int64 i, bool c, float[N] s, int64 j) => (bool d, float[N] r, int64 m) "
    "{{ r = Mul(s, s) one = Constant<value_int = 1>() m = Add(j, one) d = Less({}, k) }}>"
)


@pytest.mark.parametrize(("condition", "ends"), [("m", True), ("j", True), ("i", True), ("n", False)])
def test_a_loop_that_counts_ends_whatever_is_drawn(condition: str, ends: bool) -> None:
    text = COUNTING.format(condition)
    made = drawn(parsed("int64 n, float[N] x => float[N] y", text, k=I64(4)), {"n": I64(9), "x": np.ones(4, F)})
    assert ({"ends", "gaps"} <= made.keys()) is ends


# Tables ---------------------------------------------------------------------------------------------------------------

WIDE = np.zeros((1000, 2), F)
ONE_ROW = WIDE.copy()
ONE_ROW[777] = 1
TABLE = "float[N, 2] y"
READ: dict[str, tuple[str, np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any], Any]] = {
    # What reads the table, the tables, the positions that reach it, and one that must come first.
    "a row": ("y = Gather(w, i)", WIDE, ONE_ROW, I64([0, 1]), 777),
    "a row, cast": ("j = Cast<to = 7>(i) y = Gather(w, j)", WIDE, ONE_ROW, np.int32([0, 1]), 777),
    "a column": ("y = Gather<axis = 1>(w, i)", WIDE.T, ONE_ROW.T, I64([0, 1]), 777),
    "an element": ("y = GatherElements<axis = 0>(w, i)", WIDE, ONE_ROW, I64([[0, 0]]), 777),
    "an entry": ("y = GatherND(w, i)", WIDE, ONE_ROW, I64([[0, 0]]), [777, 0]),
}


@pytest.mark.parametrize("name", READ)
def test_rows_that_differ_are_read_first(name: str) -> None:
    body, table, changed, positions, expected = READ[name]
    signature = "int64[N] i => float[A, B] y"
    before, after = (parsed(signature, body, w=each) for each in (table, changed))
    made = drawn(before, {"i": positions}, after=after)
    first = made["rows"][0]["i"]
    # A dimension without a fixed size holds all rows at once.
    assert first.dtype == positions.dtype and first.ndim == positions.ndim
    assert expected in np.reshape(first, (-1, len(expected)) if isinstance(expected, list) else -1).tolist()


def test_all_rows_of_a_small_table_are_read_and_from_the_end() -> None:
    model = parsed("int64[N] i => float[N, 2] y", "y = Gather(w, i)", w=np.ones((9, 2), F))
    found = set(numbers(drawn(model, {"i": I64([0, 1])}), "rows", "i"))
    assert {*range(9), -1, -9} <= found <= set(range(-9, 9))
    fixed = drawn(model, {"i": I64([0, 1])}, ("i",))
    assert fixed == {}


BOX = "float[1, 2, 32, 32] x, float[3, 4] b, int64[3] i => float[3, 2, 7, 7] y"
ALIGNED = "RoiAlign <output_height = 7, output_width = 7>"
READING_BOXES: dict[str, Any] = {
    "x": np.ones((1, 2, 32, 32), F),
    "b": np.array([[0, 0, 10, 10], [3, 4, 30, 20], [5, 5, 28, 31]], F),
    "i": np.zeros(3, np.int64),
}
THEN = "t = Constant <value = bool {1}> () y = If (t) <then_branch = g () => (float[3, 2, 7, 7] z)"
ELSE = "{ u = Neg (x) }"
WITH_BOXES: dict[str, tuple[str, str]] = {
    "RoiAlign": (BOX, f"y = {ALIGNED} (x, b, i)"),
    "the largest": (BOX, 'y = RoiAlign <mode = "max", output_height = 7, output_width = 7> (x, b, i)'),
    "scaled": (BOX, f"h = Constant <value = float {{0.5}}> () s = Mul (b, h) y = {ALIGNED} (x, s, i)"),
    "sorted": (BOX, f"s = Clip (b) t = Transpose <perm = [0, 1]> (s) y = {ALIGNED} (x, t, i)"),
    "MaxRoiPool": (BOX, "y = MaxRoiPool <pooled_shape = [7, 7]> (x, b)"),
    "in a branch": (BOX, f"{THEN} {{ z = {ALIGNED} (x, b, i) }}, else_branch = h () => (float[3, 2, 7, 7] u) {ELSE}>"),
}


@pytest.mark.parametrize("name", WITH_BOXES)
def test_boxes_stay_as_large_as_they_are(name: str) -> None:
    found = drawn(parsed(*WITH_BOXES[name], opset=16), READING_BOXES)
    assert {"normal", "steps", "mixed"} <= found.keys()
    for kind in found:
        assert all(abs(number) <= 31 for number in numbers(found, kind, "b"))
    assert len(set(numbers(found, "normal", "b"))) > 12


FREE = {
    "the image": ("x", "RoiAlign"),
    "scores": ("b", "y = NonMaxSuppression (b, x)"),
    "no boxes at all": ("b", "y = Relu (b)"),
    "a shape of boxes": ("b", f"s = Shape (b) r = Reshape (b, s) u = Relu (r) y = {ALIGNED} (x, c, i)"),
}


@pytest.mark.parametrize("name", FREE)
def test_other_numbers_are_drawn_of_any_size(name: str) -> None:
    value, body = FREE[name]
    made = parsed(BOX, WITH_BOXES[body][1] if body in WITH_BOXES else body, opset=16, c=READING_BOXES["b"])
    found = drawn(made, READING_BOXES)
    assert max(numbers(found, "ends", value)) > 1e8


@pytest.mark.usefixtures("in_process")
def test_a_fault_of_splitgraph_is_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is left undrawn after an error could have shown a difference."""

    def broken(*arguments: object) -> Iterator[Drawn]:
        raise KeyError("of ours")

    monkeypatch.setattr(local_check, "draw", broken)
    line = "float[N] x => float[N] y"
    found = splitgraph.verify(parsed(line, "y = Relu(x)"), parsed(line, "y = Max(x, c)", c=F(0)))
    assert found.verdict == "not-run"
    assert [region.reason for region in found.regions] == [
        "splitgraph failed on drawn values, which is a fault of splitgraph: KeyError: 'of ours'"
    ]


def test_a_number_that_the_caller_of_a_function_gives_is_no_constant_of_it() -> None:
    function = """<domain: "local", opset_import: ["": 18]> F <k> (a) => (b) {
        c = Constant<value_float: float = @k>() b = Mul(a, c)
    }"""
    model = parsed("float[N] x => float[N] y", "y = local.F<k = 2.0>(x)", function)
    assert {"normal", "steps", "ends", "gaps"} <= drawn(model, {"x": np.ones(3, F)}).keys()
