"""Differences between an OpenVINO IR and another model that ordinary inputs hide: limits, tables, sizes and branches.

Each pair is written in ONNX, and OpenVINO converts it. The second model has other constants or other nodes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
import openvino
import pytest
from onnx import numpy_helper, parser

import splitgraph
from splitgraph.formats import load_ir
from splitgraph.verification.models.ir_constants import changed_constants, ir_constants, with_other_elements

F, I64 = np.float32, np.int64
LINE, WHOLE = "(float[N, 8] x) => (float[N, 8] y)", "(int64[N] x) => (int64[N] y)"
POSITIONS = (
    "(float[N, S, 8] x) => (float[N, S, 8] y) "
    "{ s = Shape<start = 1, end = 2>(x) p = Slice(w, z, s, z, o) y = Add(x, p) }"
)
BRANCH = (
    "(float[N, 8] x) => (float[N, 8] y) { s = ReduceMax<keepdims = 0>(x) c = Greater(s, q) y = If(c)"
    "<then_branch = t () => (float[N, 8] a) { a = Mul(x, k) }, else_branch = e () => (float[N, 8] b) { b = Neg(x) }> }"
)
BY_SIZE = (
    "(float[N, 8] x) => (float[N, 8] y) { s = Shape<start = 0, end = 1>(x) n = Squeeze(s) c = Greater(n, q) "
    "y = Where(c, o, x) }"
)
TABLE = np.arange(1024, dtype=F).reshape(128, 8) / 1024
TIE = "c = {}(x, k) y = Where(c, o, x)"
IDS = "(int64[N] i) => (float[N, 8] y)"
TWO = "(float[N, 8] x, float[N, 8] z) => (float[N, 8] y)"
BOTH = f"{TWO} {{ c = Greater(x, k) d = Less(z, l) e = And(c, d) y = Where(e, o, x) }}"
WINDOW = f"{LINE} {{ s = Mul(x, f) a = Sub(s, m) b = Abs(a) c = Less(b, r) y = Where(c, o, x) }}"
NARROW = {"f": F(0.1), "m": F(77), "r": F(0.5), "o": F(1e5)}


def with_row(number: int) -> Any:
    other = np.array(TABLE)
    other[number] += 1
    return other


class Pair(NamedTuple):
    """The text of a model, its constants, and what is else in the second one."""

    before: str
    constants: dict[str, Any] = {}  # noqa: RUF012
    changed: dict[str, Any] = {}  # noqa: RUF012
    after: str = ""


DIFFERENT = {
    "a threshold": Pair(f"{LINE} {{ {TIE.format('Greater')} }}", {"k": F(100), "o": F(1)}, {"k": F(200)}),
    "a limit": Pair(f"{LINE} {{ y = Min(x, k) }}", {"k": F(100)}, {"k": F(200)}),
    "a limit of whole numbers": Pair(f"{WHOLE} {{ y = Min(x, k) }}", {"k": I64(1000)}, {"k": I64(2000)}),
    "one limit of eight": Pair(
        f"{LINE} {{ y = Min(x, k) }}",
        {"k": np.arange(30, 38, dtype=F)},
        {"k": np.array([30, 31, 32, 45, 34, 35, 36, 37], F)},
    ),
    "a limit of the second model": Pair(
        f"{LINE} {{ y = Identity(x) }}", {"k": F(100)}, after=f"{LINE} {{ y = Min(x, k) }}"
    ),
    "a row of a table": Pair(
        "(int64[N] i) => (float[N, 8] y) { y = Gather(w, i) }", {"w": TABLE}, {"w": with_row(120)}
    ),
    "a position": Pair(POSITIONS, {"w": TABLE, "z": np.array([0]), "o": np.array([1])}, {"w": with_row(120)}),
    "a factor in a branch": Pair(BRANCH, {"q": F(50), "k": F(7)}, {"k": F(9)}),
    "a limit of sizes": Pair(BY_SIZE, {"q": I64(50), "o": F(1)}, {"q": I64(60)}),
    "a row behind a sum": Pair(
        f"{IDS} {{ a = Add(i, o) y = Gather(w, a) }}", {"w": TABLE, "o": I64(1)}, {"w": with_row(120)}
    ),
    "a row behind a product": Pair(
        f"{IDS} {{ a = Mul(i, o) y = Gather(w, a) }}", {"w": TABLE, "o": I64(2)}, {"w": with_row(120)}
    ),
    "a row behind a remainder": Pair(
        f"{IDS} {{ a = Mod(i, o) y = Gather(w, a) }}", {"w": TABLE, "o": I64(128)}, {"w": with_row(5)}
    ),
    "a row behind fractions": Pair(
        "(float[N] i) => (float[N, 8] y) { f = Mul(i, o) a = Cast<to = 7>(f) y = Gather(w, a) }",
        {"w": TABLE, "o": F(10)},
        {"w": with_row(120)},
    ),
    "a row of two positions": Pair(
        "(int64[N] i, int64[N] j) => (float[N, 8] y) { b = Mul(i, o) a = Add(b, j) y = Gather(w, a) }",
        {"w": TABLE, "o": I64(16)},
        {"w": with_row(120)},
    ),
    "what two limits choose": Pair(BOTH, {"k": F(50), "l": F(-70), "o": F(1)}, {"o": F(2)}),
    "what two limits choose, in one model": Pair(
        BOTH, {"k": F(50), "l": F(-70), "o": F(1), "n": F(0)}, after=f"{TWO} {{ m = Mul(z, n) y = Add(x, m) }}"
    ),
    "a limit behind a factor": Pair(
        f"{LINE} {{ s = Mul(x, f) c = Greater(s, k) y = Where(c, o, x) }}",
        {"f": F(0.001), "k": F(5), "o": F(1)},
        {"o": F(2)},
    ),
    "a limit behind a mean": Pair(
        f"{LINE} {{ s = ReduceMean<keepdims = 1>(x) c = Greater(s, k) y = Where(c, o, x) }}",
        {"k": F(50), "o": F(1)},
        {"o": F(2)},
    ),
    "a window": Pair(WINDOW, NARROW, {"o": F(2e5)}),
    "a window of one model": Pair(WINDOW, NARROW, after=f"{LINE} {{ y = Identity(x) }}"),
    "one whole number": Pair(
        f"{WHOLE} {{ c = Equal(x, k) y = Where(c, o, x) }}",
        {"k": I64(777), "o": I64(1)},
        after=f"{WHOLE} {{ y = Identity(x) }}",
    ),
    "a product of two bends": Pair(
        f"{LINE} {{ s = Mul(x, t) a = Sub(s, k) b = Sub(l, s) c = Relu(a) d = Relu(b) e = Mul(c, d) y = Add(x, e) }}",
        {"k": F(50), "l": F(60), "t": F(0.01)},
        after=f"{LINE} {{ y = Identity(x) }}",
    ),
    "the end of a bend": Pair(
        f"{LINE} {{ s = Mul(x, t) y = HardSigmoid(s) }}",
        {"t": F(0.01), "p": F(0.002), "h": F(0.5)},
        after=f"{LINE} {{ a = Mul(x, p) y = Add(a, h) }}",
    ),
    "NaN for ordinary numbers": Pair(
        f"{LINE} {{ {TIE.format('Greater')} }}", {"k": F(0.5), "o": F(1)}, {"o": F(np.nan)}
    ),
    "a bend behind a factor": Pair(
        f"{LINE} {{ s = Mul(x, t) y = Clip(s, l, u) }}", {"t": F(0.01), "l": F(-7), "u": F(7)}, {"u": F(8)}
    ),
}
EQUAL = {
    "a threshold": Pair(
        f"{LINE} {{ {TIE.format('Greater')} }}",
        {"k": F(100), "o": F(1)},
        after=f"{LINE} {{ c = Less(k, x) y = Where(c, o, x) }}",
    ),
    "a table": Pair("(int64[N] i) => (float[N, 8] y) { y = Gather(w, i) }", {"w": TABLE}),
    "limits in other words": Pair(
        f"{LINE} {{ y = Clip(x, low, high) }}",
        {"low": F(-1), "high": F(1)},
        after=f"{LINE} {{ a = Max(x, low) y = Min(a, high) }}",
    ),
    "the largest numbers, equal behind a limit": Pair(
        "(float[N, 8] x) => (float[N, 3] y, int64[N, 3] i) { a = Min(x, c) y, i = TopK(a, k) }",
        {"c": F(20), "k": np.array([3])},
    ),
    "the place of the largest number, behind a limit": Pair(
        "(float[N, 8] x) => (int64[N, 1] y) { a = Min(x, k) y = ArgMax<axis = 1>(a) }", {"k": F(20)}
    ),
    "a table behind a sum, scaled": Pair(
        f"{IDS} {{ a = Add(i, o) b = Gather(w, a) y = Mul(b, t) }}",
        {"w": TABLE, "v": TABLE * 2, "t": F(2), "o": I64(1)},
        after=f"{IDS} {{ a = Add(i, o) y = Gather(v, a) }}",
    ),
    "a table behind a remainder, put together": Pair(
        f"{IDS} {{ a = Mod(i, o) y = Gather(w, a) }}",
        {"w": TABLE, "p": TABLE[:60], "q": TABLE[60:], "o": I64(128)},
        after=f"{IDS} {{ r = Concat<axis = 0>(p, q) a = Mod(i, o) y = Gather(r, a) }}",
    ),
    "two limits in other words": Pair(
        BOTH,
        {"k": F(50), "l": F(-70), "o": F(1)},
        after=f"{TWO} {{ c = LessOrEqual(x, k) d = GreaterOrEqual(z, l) e = Or(d, c) y = Where(e, x, o) }}",
    ),
    "a window in other words": Pair(
        WINDOW,
        NARROW,
        after=f"{LINE} {{ s = Mul(f, x) a = Sub(m, s) b = Abs(a) c = Greater(r, b) y = Where(c, o, x) }}",
    ),
    "two factors as one": Pair(
        f"{LINE} {{ a = Mul(x, w) y = Mul(a, v) }}",
        {"w": F(0.3), "v": F(0.7), "p": F(0.3) * F(0.7)},
        after=f"{LINE} {{ y = Mul(x, p) }}",
    ),
    "a quantization": Pair(
        f"{LINE} {{ q = QuantizeLinear(x, s, z) y = DequantizeLinear(q, s, z) }}", {"s": F(0.1), "z": np.uint8(128)}
    ),
}


def model_of(text: str, constants: dict[str, Any]) -> onnx.ModelProto:
    made = parser.parse_model(f'<ir_version: 8, opset_import: ["": 18]> g {text}')
    used = (numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items())
    read = {name for node in made.graph.node for name in node.input} | ({"k"} if "If(" in text else set())
    made.graph.initializer.extend(tensor for tensor in used if tensor.name in read)
    return made


def as_ir(model: onnx.ModelProto, file: Path) -> str:
    source = file.with_suffix(".onnx")
    onnx.save(model, source)
    openvino.save_model(openvino.convert_model(source), file, compress_to_fp16=False)
    return str(file)


def models(pair: Pair, folder: Path, before: str) -> tuple[Any, str]:
    first = model_of(pair.before, pair.constants)
    second = model_of(pair.after or pair.before, pair.constants | pair.changed)
    known = as_ir(first, folder / "before.xml") if before == "IR" else first
    return known, as_ir(second, folder / "after.xml")


@pytest.mark.parametrize("before", ["IR", "ONNX"])
@pytest.mark.parametrize("pair", DIFFERENT.values(), ids=DIFFERENT)
@pytest.mark.usefixtures("in_process")
@pytest.mark.sample(5)
def test_what_ordinary_inputs_hide_is_found(pair: Pair, before: str, tmp_path: Path) -> None:
    found = splitgraph.verify(*models(pair, tmp_path, before))
    assert found.verdict == "different", found


@pytest.mark.parametrize("before", ["IR", "ONNX"])
@pytest.mark.parametrize("pair", EQUAL.values(), ids=EQUAL)
@pytest.mark.usefixtures("in_process")
@pytest.mark.sample(4)
def test_equal_models_stay_equal(pair: Pair, before: str, tmp_path: Path) -> None:
    found = splitgraph.verify(*models(pair, tmp_path, before))
    assert found.verdict == "equal", found


TIES = {
    "a number": Pair(
        f"{LINE} {{ {TIE.format('Greater')} }}",
        {"k": F(100), "o": F(1)},
        after=f"{LINE} {{ {TIE.format('GreaterOrEqual')} }}",
    ),
    "eight numbers": Pair(
        f"{LINE} {{ {TIE.format('Less')} }}",
        {"k": np.arange(30, 38, dtype=F), "o": F(1000)},
        after=f"{LINE} {{ {TIE.format('LessOrEqual')} }}",
    ),
    "one number alone": Pair(
        f"{LINE} {{ {TIE.format('Equal')} }}", {"k": F(777), "o": F(1)}, after=f"{LINE} {{ y = Identity(x) }}"
    ),
}


@pytest.mark.parametrize("before", ["IR", "ONNX"])
@pytest.mark.parametrize("pair", TIES.values(), ids=TIES)
@pytest.mark.usefixtures("in_process")
def test_what_shows_at_exact_limits_alone_is_not_judged(pair: Pair, before: str, tmp_path: Path) -> None:
    found = splitgraph.verify(*models(pair, tmp_path, before))
    assert found.verdict == "not-run"
    assert "at exact limits" in found.diagnostics[-1].message


@pytest.mark.parametrize("before", ["IR", "ONNX"])
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
@pytest.mark.usefixtures("in_process")
@pytest.mark.sample(2)
def test_what_is_not_finite_in_one_model_alone_is_not_judged(number: float, before: str, tmp_path: Path) -> None:
    """A formula may overflow where a kernel does not, so that the models are not called different, either."""
    pair = Pair(
        f"{LINE} {{ y = Identity(x) }}",
        {"k": F(100), "o": F(number)},
        after=f"{LINE} {{ {TIE.format('Greater')} }}",
    )
    found = splitgraph.verify(*models(pair, tmp_path, before))
    assert found.verdict == "not-run"
    assert "on numbers around limits" in found.diagnostics[-1].message


@pytest.mark.parametrize("before", ["IR", "ONNX"])
@pytest.mark.usefixtures("in_process")
def test_what_shows_where_numbers_must_not_move_is_not_judged(before: str, tmp_path: Path) -> None:
    near = "d = Sub(x, q) n = Abs(d) s = ReduceMax<keepdims = 0>(n) c = Less(s, r)"
    text = BRANCH.replace("s = ReduceMax<keepdims = 0>(x) c = Greater(s, q)", near)
    pair = Pair(text, {"q": F(777), "r": F(0.1), "k": F(7)}, {"k": F(9)})
    found = splitgraph.verify(*models(pair, tmp_path, before))
    assert found.verdict == "not-run"


@pytest.mark.usefixtures("in_process")
def test_what_a_caller_gave_stays(tmp_path: Path) -> None:
    """Then no run reads the constant that differs."""
    two = f"{TWO} {{ a = Min(z, k) y = Add(a, x) }}"
    pair = models(Pair(two, {"k": F(100)}, {"k": F(200)}), tmp_path, "ONNX")
    given = np.ones((2, 8), F)
    found = splitgraph.verify(*pair, inputs={"z": given})
    assert found.verdict == "not-run"
    assert "no input was found that reads it" in found.diagnostics[-1].message
    assert splitgraph.verify(*pair, inputs={"x": given}).verdict == "different"


@pytest.mark.parametrize("before", ["IR", "ONNX"])
@pytest.mark.usefixtures("in_process")
def test_a_constant_that_no_run_reads_is_named(before: str, tmp_path: Path) -> None:
    unread = "(float[N, 8] x) => (float[N, 8] y) { a = Abs(x) n = Neg(a) c = Greater(n, z) y = Where(c, k, x) }"
    pair = Pair(unread, {"z": F(1), "k": F(7)}, {"k": F(9)})
    found = splitgraph.verify(*models(pair, tmp_path, before))
    assert found.verdict == "not-run"
    assert "`k` differs at [" in found.diagnostics[-1].message


def test_constants_are_matched_and_changed_once_more(tmp_path: Path) -> None:
    pair = DIFFERENT["a factor in a branch"]
    first, second = (load_ir(path) for path in models(pair, tmp_path, "IR"))
    (change,) = changed_constants(first, second)
    assert [array.ravel().tolist() for array in change.arrays] == [[7.0], [9.0]]
    other = with_other_elements(second, change)
    (again,) = changed_constants(second, other)
    assert again.arrays[1].ravel().tolist() == [8.0]
    assert len(list(ir_constants(other))) == len(list(ir_constants(second)))
