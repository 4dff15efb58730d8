"""Indices into what was merged of several dimensions, as `b*T + t`: they count each of them, against numpy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator

import splitgraph

Array = Any
# A mask of B rows of 5 is flattened, and read again by the numbers of its elements.
HEAD = '<ir_version: 8, opset_import: ["": 17]> g (float[B, 5] x) => (float[?, ?, ?, ?] y)'
TABLE = "f = Flatten <axis = 2> (x)"
ROWS = {1: "int64[1,1,1,1] b = {0}", 2: "int64[2,1,1,1] b = {0, 1}"}
COLUMNS = "int64[1,1,1,5] t = {0, 1, 2, 3, 4}, int64[1] last = {1}, int64[4] out = {-1, 1, 1, 5}"


def picked(batch: int, indices: str, weights: str = "", rows: str = "") -> ModelProto:
    """Return a model that reads elements of the mask by indices `i`, computed from rows `b` and columns `t`."""
    kept = ", ".join(filter(None, (rows or ROWS[batch], COLUMNS, weights)))
    return parser.parse_model(
        f"""{HEAD.replace("B", str(batch))} <{kept}> {{
        s = Shape (x) n = Gather (s, last) {TABLE} {indices} g = Gather (f, i) z = Identity (g)
        y = Squeeze <axes = [4]> (z) }}""".replace("Squeeze <axes = [4]> (z)", "Reshape (z, out)")
    )


def rows_of(data: Array) -> Array:
    return data[:, None, None]


FOLLOWING = {
    "the width by its Shape": picked(1, "m = Mul (b, n) i = Add (t, m)"),
    "the rows first": picked(1, "m = Mul (n, b) i = Add (m, t)"),
    "a width that is a constant": picked(1, "m = Mul (b, w) i = Add (t, m)", "int64 w = {5}"),
    "a batch of two": picked(2, "m = Mul (b, n) i = Add (t, m)"),
    "through an Identity": picked(1, "c = Identity (b) m = Mul (c, n) d = Identity (m) i = Add (d, t)"),
}
REFUSED = {
    "columns in another order": picked(1, "m = Mul (b, n) i = Add (u, m)", "int64[1,1,1,5] u = {4, 3, 2, 1, 0}"),
    "columns that begin at one": picked(1, "m = Mul (b, n) i = Add (u, m)", "int64[1,1,1,5] u = {1, 2, 3, 4, 0}"),
    "steps of another width": picked(2, "m = Mul (b, w) i = Add (t, m)", "int64 w = {4}"),
    "rows in another order": picked(2, "m = Mul (b, n) i = Add (t, m)", rows="int64[2,1,1,1] b = {1, 0}"),
    "no rows": picked(1, "z0 = Mul (n, zero) i = Add (t, z0)", "int64 zero = {0}"),
    "rows that are subtracted": picked(1, "m = Mul (b, n) i = Sub (t, m)"),
}


@pytest.mark.parametrize("name", FOLLOWING)
@pytest.mark.parametrize("shape", [["N", 5], [6, 5], ["N", "T"], ["N", 7]])
def test_indices_of_rows_and_columns_count_both(name: str, shape: list[Any]) -> None:
    made = FOLLOWING[name]
    if name == "a width that is a constant" and shape[1] != 5:
        with pytest.raises(splitgraph.ConversionError):
            splitgraph.reshape(made, {"x": shape})
        return
    after = splitgraph.reshape(made, {"x": shape}).model
    for tried in ((1, 5), (3, 4), (6, 9)):
        sizes = [size if isinstance(size, int) else free for size, free in zip(shape, tried, strict=True)]
        data = np.arange(np.prod(sizes), dtype=np.float32).reshape(sizes)
        np.testing.assert_array_equal(ReferenceEvaluator(after).run(None, {"x": data})[0], rows_of(data))


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("shape", [["N", 5], [6, 5], ["N", "T"]])
def test_indices_that_count_otherwise_are_refused(name: str, shape: list[Any]) -> None:
    with pytest.raises(splitgraph.ConversionError) as refused:
        splitgraph.reshape(REFUSED[name], {"x": shape})
    assert "SG420" in {each.code for each in refused.value.diagnostics}


def best_of_rows(batch: int, offsets: str, *, width: int = 6) -> ModelProto:
    """Return a model that takes the greatest element of each row from a flat list. offsets: where the rows begin, `o`,
    with "B" for their number and [..] for 0, 1, 2 … as many, times the number before it.
    """
    for step in (1, 5, 6):
        counted = ", ".join(str(step * number) for number in range(batch))
        offsets = offsets.replace(f"[{step}..]", f"int64[{batch}] c = {{{counted}}}")
    for times in (6, 1):
        offsets = offsets.replace(f"{times}B", str(times * batch))
    weights, _, nodes = offsets.partition(">")
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g (float[{batch}, {width}] x) => (float[?] y)
        <int64[1] flat = {{-1}}, int64 zero = {{0}}, int64 one = {{1}}, int64 six = {{6}}, {weights.strip("<")}>
        {{ f = Reshape (x, flat) a = ArgMax <axis = 1, keepdims = 0> (x) {nodes} i = Add (a, o) y = Gather (f, i) }}"""
    )


OFFSETS = {
    "a constant": "<[6..]> o = Identity (c)",
    "a count times the width": "<[1..]> o = Mul (c, six)",
    "a range times the width": "<int64 b = {1B}> r = Range (zero, b, one) o = Mul (r, six)",
    "a range in steps of the width": "<int64 b = {6B}> o = Range (zero, b, six)",
}


@pytest.mark.parametrize("offsets", OFFSETS)
@pytest.mark.parametrize("batch", [1, 2, 4])
def test_offsets_of_rows_go_on(offsets: str, batch: int) -> None:
    made = best_of_rows(batch, OFFSETS[offsets])
    for new in ("N", 3):
        found = splitgraph.reshape(made, batch=new, verify=True)
        assert found.verification is not None and found.verification.verdict == "equal"
        data = np.random.default_rng(0).random((3, 6), np.float32)
        np.testing.assert_array_equal(ReferenceEvaluator(found.model).run(None, {"x": data})[0], data.max(1))


@pytest.mark.parametrize("batch", [2, 4])
def test_offsets_of_other_rows_are_refused(batch: int) -> None:
    with pytest.raises(splitgraph.ConversionError) as refused:
        splitgraph.reshape(best_of_rows(batch, "<[5..]> o = Identity (c)"), batch="N")
    assert {each.code for each in refused.value.diagnostics} == {"SG420"}
