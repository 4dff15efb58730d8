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
