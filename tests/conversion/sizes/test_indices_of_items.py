"""Indices that each item finds for itself, into rows that were merged of all items: they need a count of the items."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator

import splitgraph

Array = Any
# Rows of B items of 5 are flattened, as text models do before they take one row of each item.
HEAD = '<ir_version: 8, opset_import: ["": 17]> g (float[B, 5, 3] x MORE) => (float[p, q] y)'
KEPT = """int64[2] rows = {-1, 3}, int64[1] one = {1}, int64[1] last = {-1}, int64[1] zero = {0}, int64[1] two = {2},
    int64[1] five = {5}, int64[2] pair = {0, 1}, int64[2] starts = {0, 5}, int64[2] back = {5, 0}"""
FOUND = "w = ReduceSum <keepdims = 0> (x, two) a = ArgMax <axis = 1, keepdims = 0> (w)"


def model(nodes: str, batch: int = 1, more: str = "") -> ModelProto:
    head = HEAD.replace("B", str(batch)).replace(" MORE", more)
    return parser.parse_model(f"{head} <{KEPT}> {{ s = Shape (x) n = Gather (s, one) f = Reshape (x, rows) {nodes} }}")


def largest(x: Array) -> Array:
    return x[np.arange(len(x)), x.sum(2).argmax(1)]


def smallest(x: Array) -> Array:
    return x[np.arange(len(x)), x.sum(2).argmin(1)]


STEPS = "m = Mul (zero, n)"
FOLLOWING: dict[str, tuple[ModelProto, Callable[[Array], Array]]] = {
    "an ArgMax": (model(f"{FOUND} {STEPS} i = Add (a, m) y = Gather (f, i)"), largest),
    "the count first": (model(f"{FOUND} {STEPS} i = Add (m, a) y = Gather (f, i)"), largest),
    "a length that is a constant": (model(f"{FOUND} m = Mul (five, zero) i = Add (a, m) y = Gather (f, i)"), largest),
    "in another layout": (
        model(
            f"{FOUND} {STEPS} u = Unsqueeze (a, one) c = Cast <to = 6> (u) d = Cast <to = 7> (c) "
            "e = Reshape (d, last) i = Add (e, m) y = Gather (f, i)"
        ),
        largest,
    ),
    "an ArgMin": (model(f"{FOUND.replace('ArgMax', 'ArgMin')} {STEPS} i = Add (a, m) y = Gather (f, i)"), smallest),
    "a TopK": (
        model(
            "w = ReduceSum <keepdims = 0> (x, two) v, k = TopK (w, one) a = Squeeze (k, one) "
            f"{STEPS} i = Add (a, m) y = Gather (f, i)"
        ),
        largest,
    ),
    "pairs of a batch of two": (model(f"{FOUND} m = Mul (pair, n) i = Add (a, m) y = Gather (f, i)", 2), largest),
    "tuples": (
        model(f"{FOUND} {STEPS} i = Add (a, m) u = Unsqueeze (i, one) y = GatherND (f, u)"),
        largest,
    ),
    "a count by the shape": (
        model(
            f"{FOUND} o = Constant <value = int64 {{0}}> () l = Constant <value = int64 {{1}}> () k = Gather (s, o) "
            "r = Range (o, k, l) m = Mul (r, n) i = Add (a, m) y = Gather (f, i)"
        ),
        largest,
    ),
    "a count that was folded": (model(f"{FOUND} i = Add (a, zero) y = Gather (f, i)"), largest),
    "starts of two": (model(f"{FOUND} i = Add (a, starts) y = Gather (f, i)", 2), largest),
    # Near misses: rows that are not merged, and tables without items.
    "rows of each item": (
        model(
            "w = ReduceSum <keepdims = 0> (x, two) a = ArgMax <axis = 1> (w) u = Unsqueeze (a, two) "
            "t = Constant <value_ints = [1, 1, 3]> () e = Expand (u, t) g = GatherElements <axis = 1> (x, e) "
            "y = Squeeze (g, one)"
        ),
        largest,
    ),
    "a table of positions": (
        model(f"{FOUND} table = Constant <value = float[5, 1] {{0, 1, 2, 3, 4}}> () y = Gather (table, a)"),
        lambda x: x.sum(2).argmax(1).astype(np.float32)[:, None],
    ),
}
REFUSED: dict[str, ModelProto] = {
    "no count": model(f"{FOUND} y = Gather (f, a)"),
    "a scalar that was folded": model(
        f"{FOUND} o = Constant <value = int64 {{0}}> () i = Add (a, o) y = Gather (f, i)"
    ),
    "a TopK": model(
        "w = ReduceSum <keepdims = 0> (x, two) v, k = TopK (w, one) a = Squeeze (k, one) y = Gather (f, a)"
    ),
    "an input": model("y = Gather (f, i)", more=", int64[1] i"),
    "an input and a folded count": model("k = Add (i, zero) y = Gather (f, k)", more=", int64[1] i"),
    "starts of two, the other way round": model(f"{FOUND} i = Add (a, back) y = Gather (f, i)", 2),
    "a mean over the items, which is no batch": model(
        f"{FOUND} i = Add (a, zero) g = Gather (f, i) y = ReduceMean <axes = [0]> (g)"
    ),
    "the next place": model(f"{FOUND} {STEPS} k = Add (a, m) i = Add (k, one) y = Gather (f, i)"),
    "tuples": model(f"{FOUND} u = Unsqueeze (a, one) y = GatherND (f, u)"),
    "elements": model(
        f"{FOUND} u = Unsqueeze (a, one) t = Constant <value_ints = [1, 3]> () e = Expand (u, t) "
        "y = GatherElements <axis = 0> (f, e)"
    ),
    "elements that are written": model(
        f"{FOUND} u = Unsqueeze (a, one) t = Constant <value_ints = [1, 3]> () e = Expand (u, t) "
        "d = ReduceSum <keepdims = 0> (x, one) y = ScatterElements <axis = 0> (f, e, d)"
    ),
    "tuples that are written": model(
        f"{FOUND} u = Unsqueeze (a, one) d = ReduceSum <keepdims = 0> (x, one) y = ScatterND (f, u, d)"
    ),
}


def reshaped(made: ModelProto, first: int | str, *, is_batch: bool) -> ModelProto:
    """Return a model with another first dimension of its inputs. is_batch: it is asked for as a batch."""
    if is_batch:
        return splitgraph.reshape(made, batch=first).model
    dims = {value.name: [dim.dim_value for dim in value.type.tensor_type.shape.dim] for value in made.graph.input}
    return splitgraph.reshape(made, {name: [first, *own[1:]] for name, own in dims.items()}).model


@pytest.mark.parametrize("name", FOLLOWING)
@pytest.mark.parametrize("first", ["N", 4])
@pytest.mark.parametrize("is_batch", [True, False])
def test_items_take_their_own_rows(name: str, first: int | str, is_batch: bool) -> None:
    made, expected = FOLLOWING[name]
    after = reshaped(made, first, is_batch=is_batch)
    for batch in (4,) if first == 4 else (1, 2, 5):
        x = np.random.default_rng(batch).normal(size=(batch, 5, 3)).astype(np.float32)
        np.testing.assert_array_equal(ReferenceEvaluator(after).run(None, {"x": x})[0], expected(x))


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("first", ["N", 4])
@pytest.mark.parametrize("is_batch", [True, False])
def test_rows_that_nothing_counts_are_refused(name: str, first: int | str, is_batch: bool) -> None:
    with pytest.raises(splitgraph.ConversionError) as refused:
        reshaped(REFUSED[name], first, is_batch=is_batch)
    assert "SG420" in {each.code for each in refused.value.diagnostics}


def written(batch: int, places: list[list[int]], updates: str, *, data: str = "x") -> ModelProto:
    """Return a model that writes updates u. places: of one item, behind its number. updates: their other dimensions."""
    rows = [[item, *place] for item in range(batch) for place in places]
    numbers = ", ".join(str(number) for row in rows for number in row)
    zeros = ", ".join(["0"] * batch * 18)
    shape = f"{batch}, {len(places)}, {len(rows[0])}"
    inputs = f"float[{batch}, 6, 3] x, " if data == "x" else ""
    return parser.parse_model(
        f"""<ir_version: 8, opset_import: ["": 17]> g ({inputs}float[{batch}, {updates}] u) => (float[p, q, r] y)
        <int64[{shape}] i = {{{numbers}}}, float[{batch}, 6, 3] z = {{{zeros}}}> {{ y = ScatterND ({data}, i, u) }}"""
    )


WRITTEN: dict[str, tuple[list[list[int]], str, Any]] = {
    "one row of each": ([[2]], "1, 3", np.s_[:, [2]]),
    "two rows of each": ([[1], [4]], "2, 3", np.s_[:, [1, 4]]),
    "a column of each": ([[row, 1] for row in range(6)], "6", np.s_[:, :, 1]),
}


@pytest.mark.parametrize("name", WRITTEN)
@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("data", ["x", "z"])
def test_rows_of_items_are_written(name: str, batch: int, data: str) -> None:
    places, updates, where = WRITTEN[name]
    found = splitgraph.reshape(written(batch, places, updates, data=data), batch="N", verify=True)
    assert found.verification is not None and found.verification.verdict == "equal"
    for items in (1, 4):
        drawn = np.random.default_rng(items)
        x, u = (drawn.random((items, *shape), np.float32) for shape in ((6, 3), map(int, updates.split(","))))
        expected = np.zeros_like(x) if data == "z" else x.copy()
        expected[where] = u
        given = {"u": u, **({"x": x} if data == "x" else {})}
        np.testing.assert_array_equal(ReferenceEvaluator(found.model).run(None, given)[0], expected)


def test_rows_of_other_items_are_not_written() -> None:
    made = written(2, [[2]], "1, 3")
    made.graph.initializer[0].int64_data[:] = [1, 2, 0, 2]
    with pytest.raises(splitgraph.ConversionError) as refused:
        splitgraph.reshape(made, batch="N")
    assert {each.code for each in refused.value.diagnostics} == {"SG420"}
