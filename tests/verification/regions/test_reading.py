"""Constants that differ must be read by a run before two models are called equal.

Each pair that differs has a witness, which the inputs of usual sizes never meet.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

import splitgraph
from splitgraph.verification.regions.reading import find_changes, questions

from ..small_models import parsed
from .model_pairs import Pair, find_difference, show_difference

F, I64 = np.float32, np.int64
LINE = "float[B, N] x => float[B, M] y"
SLICED = "n = Shape<start = 1, end = 2>(x) p = Slice(t, zeros, n) y = Add(x, p)"
RANGE = "s = Shape<start = 1, end = 2>(x) n = Squeeze(s) r = Range(zero, n, one) "
TAKEN = RANGE + "p = Gather(t, r) y = Add(x, p)"
LIMITED = RANGE + "i = Min(r, most) p = Gather(t, i) y = Add(x, p)"
MASKED = "n = Shape<start = 1, end = 2>(x) p = Slice(t, zeros, n, zeros) q = Slice(p, zeros, n, ones) y = MatMul(x, q)"
LOOKED_UP = "c = Clip(x, low, high) m = Mul(c, k) i = Cast<to = 7>(m) y = Gather(t, i)"
FUNCTION = '<domain: "local", opset_import: ["" : 18]> f (a) => (b) {{ t = Constant<value = float[64] {{{}}}>() {} }}'
OPENING = "z = Constant<value_ints = [0]>() n = Shape<start = 1, end = 2>(a) p = Slice(t, z, n) b = Add(a, p)"
TABLE = np.arange(128).astype(F)
MASK = np.tril(np.ones((256, 256), F))
INDICES = {"zeros": I64([0]), "ones": I64([1]), "zero": I64(0), "one": I64(1), "two": I64(2)}
BRANCH = (
    "s = Shape<start = 0, end = 1>(x) g = Greater(s, limit) c = Squeeze(g) "
    "y = If (c) <then_branch = a () => (float[N, 4] p) <float[4] w = {{{}}}> {{ p = Mul(x, w) }}, "
    "else_branch = b () => (float[N, 4] q) {{ q = Relu(x) }}>"
)


def changed(array: np.ndarray, place: int, value: Any) -> np.ndarray:
    """Return an array with another element."""
    other = array.copy()
    other.reshape(-1)[place] = value
    return other


ROW = {"x": np.ones((1, 128))}
DIFFERENT = {
    "a row of a table that is sliced": Pair(
        LINE, SLICED, SLICED, ROW, INDICES | {"t": TABLE}, {"t": changed(TABLE, 120, -5)}
    ),
    "a row that a range reads": Pair(LINE, TAKEN, TAKEN, ROW, INDICES | {"t": TABLE}, {"t": changed(TABLE, 120, -5)}),
    "the last row": Pair(LINE, TAKEN, TAKEN, ROW, INDICES | {"t": TABLE}, {"t": changed(TABLE, 127, -5)}),
    "a shorter table": Pair(LINE, SLICED, SLICED, {"x": np.ones((1, 100))}, INDICES | {"t": TABLE}, {"t": TABLE[:64]}),
    "an element of a mask": Pair(
        LINE, MASKED, MASKED, {"x": np.ones((1, 256))}, INDICES | {"t": MASK}, {"t": changed(MASK, 200 * 256 + 100, 0)}
    ),
    "a clamp of positions": Pair(
        LINE, LIMITED, LIMITED, ROW, INDICES | {"t": TABLE, "most": I64(127)}, {"most": I64(100)}
    ),
    "a clamp that is reached by one length": Pair(
        LINE, LIMITED, LIMITED, ROW, INDICES | {"t": TABLE, "most": I64(19)}, {"most": I64(25)}
    ),
    "a clamp of fractions": Pair(
        LINE,
        RANGE + "f = Cast<to = 1>(r) i = Min(f, most) y = Add(x, i)",
        RANGE + "f = Cast<to = 1>(r) i = Min(f, most) y = Add(x, i)",
        ROW,
        INDICES | {"most": F(127)},
        {"most": F(100)},
    ),
    "the end of a Slice": Pair(
        LINE,
        "y = Slice(x, zeros, end, ones)",
        "y = Slice(x, zeros, end, ones)",
        ROW,
        INDICES | {"end": I64([127])},
        {"end": I64([100])},
    ),
    "the end of an old Slice": Pair(
        LINE,
        "y = Slice<axes = [1], starts = [0], ends = [127]>(x)",
        "y = Slice<axes = [1], starts = [0], ends = [100]>(x)",
        ROW,
        opset=9,
    ),
    "a branch for many items": Pair(
        "float[N, 4] x => float[N, 4] y",
        BRANCH.format("1, 2, 3, 4"),
        BRANCH.format("1, 2, 3, 5"),
        {"x": np.ones((50, 4))},
        {"limit": I64([40])},
    ),
    "the number of items of a branch": Pair(
        "float[N, 4] x => float[N, 4] y",
        BRANCH.format("1, 2, 3, 4"),
        BRANCH.format("1, 2, 3, 4"),
        {"x": np.ones((50, 4))},
        {"limit": I64([40])},
        {"limit": I64([60])},
    ),
    "a row of a look-up": Pair(
        "float[N] x => float[N] y",
        LOOKED_UP,
        LOOKED_UP,
        {"x": [777.5 / 200]},
        {"low": F(0), "high": F(4.99), "k": F(200), "t": np.arange(1000).astype(F)},
        {"t": changed(np.arange(1000).astype(F), 777, 0)},
    ),
    "a table that an input slices": Pair(
        "int64[1] x => float[M] y",
        "y = Slice(t, zeros, x)",
        "y = Slice(t, zeros, x)",
        {"x": [128]},
        INDICES | {"t": TABLE},
        {"t": changed(TABLE, 120, -5)},
    ),
    "past and present positions": Pair(
        "float[B, N] x, float[B, P] past => float[B, M] y",
        "o = Shape<start = 1, end = 2>(past) n = Shape<start = 1, end = 2>(x) e = Add(o, n) p = Slice(t, o, e) "
        "y = Add(x, p)",
        "o = Shape<start = 1, end = 2>(past) n = Shape<start = 1, end = 2>(x) e = Add(o, n) p = Slice(t, o, e) "
        "y = Add(x, p)",
        {"x": np.ones((1, 8)), "past": np.ones((1, 115))},
        {"t": TABLE},
        {"t": changed(TABLE, 120, -5)},
    ),
    "in a function": Pair(
        LINE,
        "y = local.f(x)",
        "y = local.f(x)",
        {"x": np.ones((1, 64))},
        functions=(
            FUNCTION.format(", ".join(["1"] * 64), OPENING),
            FUNCTION.format(", ".join(["1"] * 60 + ["2"] * 4), OPENING),
        ),
    ),
    "beside other operators": Pair(LINE, SLICED, TAKEN, ROW, INDICES | {"t": TABLE}, {"t": changed(TABLE, 120, -5)}),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_inputs_that_read_what_differs_are_found(name: str) -> None:
    find_difference(DIFFERENT[name])


@pytest.mark.parametrize("name", DIFFERENT)
def test_the_witness_of_each_pair_shows_its_difference(name: str) -> None:
    show_difference(DIFFERENT[name])


# Elements that no input reads, or none that can be tried, and how they are named.
UNREAD = {
    "a row before the first one": (
        Pair(
            LINE,
            RANGE + "i = Add(r, two) p = Gather(t, i) y = Add(x, p)",
            RANGE + "i = Add(r, two) p = Gather(t, i) y = Add(x, p)",
            {},
            INDICES | {"t": TABLE},
            {"t": changed(TABLE, 1, 7)},
        ),
        "`t` differs at [1]",
    ),
    "rows of the second table alone": (
        Pair(LINE, SLICED, SLICED, {}, INDICES | {"t": TABLE[:64]}, {"t": TABLE}),
        "`t` differs at [64], …",
    ),
    "a branch for more items than a run takes": (
        Pair(
            "float[N, 4] x => float[N, 4] y",
            BRANCH.format("1, 2, 3, 4"),
            BRANCH.format("1, 2, 3, 5"),
            {},
            {"limit": I64([10**8])},
        ),
        "`w` differs at [3]",
    ),
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_no_run_reads_is_named(name: str) -> None:
    pair, place = UNREAD[name]
    found = splitgraph.verify(*pair.models())
    assert found.verdict == "not-run", found
    assert [region.unread for region in found.regions] == [(place,)]
    (warning,) = (each for each in found.diagnostics if each.code == "SG506")
    assert f"{place}, and no input was found that reads it" in warning.message
    assert found.document()["regions"][0]["unread"] == [place]


EQUAL = {
    "an axis counted from the end": Pair(
        LINE,
        "y = ReduceSum(x, axes)",
        "y = ReduceSum(x, axes)",
        constants={"axes": I64([-1])},
        changed={"axes": I64([1])},
    ),
    "the same end": Pair(
        LINE,
        "y = Slice(x, zeros, end, ones)",
        "y = Slice(x, zeros, end, ones)",
        constants=INDICES | {"end": I64([2**63 - 1])},
        changed={"end": I64([2**31 - 1])},
    ),
    "the end of a known dimension": Pair(
        "float[N, 9] x => float[N, 8] y",
        "y = Slice(x, ones, end, ones)",
        "y = Slice(x, ones, end, ones)",
        constants=INDICES | {"end": I64([2**63 - 1])},
        changed={"end": I64([9])},
    ),
    "a copied dimension": Pair(
        "float[N, 6] x => float[N, 6] y",
        "y = Reshape(x, shape)",
        "y = Reshape(x, shape)",
        constants={"shape": I64([-1, 6])},
        changed={"shape": I64([0, 6])},
    ),
    "a number as a list": Pair(
        LINE, "y = Mul(x, k)", "y = Mul(x, k)", constants={"k": F(0.5)}, changed={"k": F([0.5])}
    ),
    "a shape that broadcasts alike": Pair(
        LINE, "y = Expand(x, s)", "y = Expand(x, s)", constants={"s": I64([1, 1])}, changed={"s": I64([1])}
    ),
    "the same table beside other operators": Pair(LINE, SLICED, TAKEN, constants=INDICES | {"t": TABLE}),
}


@pytest.mark.parametrize("name", EQUAL)
def test_constants_that_mean_the_same_stay_equal(name: str) -> None:
    found = splitgraph.verify(*EQUAL[name].models())
    assert found.verdict == "equal", found
    assert all(not region.unread for region in found.regions)


def test_given_inputs_are_not_replaced() -> None:
    """Equal means equal on these inputs."""
    pair = DIFFERENT["the last row"]
    assert splitgraph.verify(*pair.models(), inputs={"x": np.ones((1, 5), F)}).verdict == "equal"


def test_fixed_sizes_leave_it_unread() -> None:
    found = splitgraph.verify(*DIFFERENT["the last row"].models(), bind={"N": 5})
    assert found.verdict == "not-run"
    assert found.regions[0].unread == ("`t` differs at [127]",)


# Changes ----------------------------------------------------------------------------------------------------------

TYPES = [TensorProto.FLOAT, TensorProto.FLOAT16, TensorProto.BFLOAT16, TensorProto.DOUBLE, TensorProto.FLOAT8E4M3FN]
TYPES += [
    TensorProto.INT8,
    TensorProto.UINT8,
    TensorProto.INT64,
    TensorProto.BOOL,
    TensorProto.INT4,
    TensorProto.STRING,
]


def of_type(dtype: int, elements: list[int]) -> onnx.ModelProto:
    kind = np.dtype(helper.tensor_dtype_to_np_dtype(dtype))
    array = np.array([f"w{each}" for each in elements], object) if kind.kind == "O" else np.array(elements).astype(kind)
    tensor = numpy_helper.from_array(array, "t")
    tensor.data_type = dtype
    graph = helper.make_graph([helper.make_node("Identity", ["t"], ["y"])], "g", [], [], [tensor])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])


@pytest.mark.parametrize("dtype", TYPES)
def test_a_copy_has_other_elements_where_the_models_differ_and_nowhere_else(dtype: int) -> None:
    models = of_type(dtype, [1, 0, 1]), of_type(dtype, [1, 1, 1])
    (change,) = find_changes(models, (None, None), 1e-4)
    assert [places.tolist() for places in change.places] == [[1], [1]]
    asked = list(questions(models, (None, None), [change]))
    assert [question.side for question in asked] == [0, 1]
    for question in asked:
        own = numpy_helper.to_array(models[question.side].graph.initializer[0])
        for copy in question.models:
            assert copy.graph.initializer[0].data_type == dtype
            array = numpy_helper.to_array(copy.graph.initializer[0])
            assert (array != own).tolist() == [False, True, False]


# Two bodies, and whether the elements of a constant differ.
SMALL = {
    "rounding": ("y = Add(x, c)", F([1, 2]), F([1, 2.00001]), False),
    "a number": ("y = Add(x, c)", F([1, 2]), F([1, 2.1]), True),
    "NaN": ("y = Add(x, c)", F([1, np.nan]), F([1, np.nan]), False),
    "another rank": ("y = Add(x, c)", F([1, 2]), F([[1, 2]]), False),
    "no end": ("y = Slice(x, c, c)", I64([2**40]), I64([2**62]), False),
}


@pytest.mark.parametrize("name", SMALL)
def test_which_constants_have_changed(name: str) -> None:
    body, one, other, is_other = SMALL[name]
    models = [parsed("float[2] x => float[2] y", body, c=array) for array in (one, other)]
    assert bool(find_changes(models, (None, None), 1e-4)) is is_other
