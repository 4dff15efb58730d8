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
from splitgraph.verification.regions.checking.reading import find_changes, questions

from ...small_models import parsed
from ..model_pairs import Pair, find_difference, show_difference

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
ADDED = "y = Add(x, p)"
FLOATS = RANGE + "p = Cast<to = 1>(r) " + ADDED
OF_HALVES = "n = Shape<start = 1, end = 2>(x) h = Slice(t, zeros, n) p = Cast<to = 1>(h) " + ADDED
OF_BYTES = "n = Shape<start = 1, end = 2>(x) h = Slice(t, zeros, n) p = DequantizeLinear(h, k) " + ADDED
CAUSAL = (
    "n = Shape<start = 1, end = 2>(x) s = Concat<axis = 0>(n, n) o = ConstantOfShape<value = float[1] {1.0}>(s) "
    "q = Trilu<upper = 0>(o) y = MatMul(x, q)"
)
CAPPED = (
    "s = Shape<start = 0, end = 1>(x) g = Greater(s, limit) c = Squeeze(g) y = If (c) "
    "<then_branch = a () => (float[N] p) { p = Abs(x) }, else_branch = b () => (float[N] q) { q = Relu(x) }>"
)
TABLES = np.arange(4000).astype(F).reshape(1000, 4)
LOOK_UP = "int64[N] x => float[N, 4] y"
DIFFERENT = {
    "a limit that one model has, beyond usual sizes": Pair(
        "float[N] x => float[M] y",
        "y = Slice(x, zeros, most)",
        "y = Identity(x)",
        {"x": np.ones(30_001)},
        {"zeros": I64([0]), "most": I64([30_000])},
    ),
    "a limit beyond usual sizes": Pair(
        "float[N] x => float[1] y",
        "n = Shape(x) m = Min(n, most) f = Cast<to = 1>(m) s = ReduceSum(x) y = Mul(s, f)",
        "n = Shape(x) m = Min(n, most) f = Cast<to = 1>(m) s = ReduceSum(x) y = Mul(s, f)",
        {"x": np.ones(70_000)},
        {"most": I64([60_000])},
        {"most": I64([64_000])},
    ),
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
    "a table that ends": Pair(
        LINE, FLOATS, SLICED, {"x": np.ones((1, 600))}, INDICES | {"t": np.arange(512).astype(F)}
    ),
    "numbers of a Range": Pair(LINE, FLOATS, SLICED, ROW, INDICES | {"t": changed(TABLE, 120, -5)}),
    "a mask that is computed": Pair(LINE, CAUSAL, MASKED, {"x": np.ones((1, 300))}, INDICES | {"t": MASK}),
    "an element of a mask that is computed": Pair(
        LINE, MASKED, CAUSAL, {"x": np.ones((1, 256))}, INDICES | {"t": changed(MASK, 200 * 256 + 100, 0)}
    ),
    "a row of float16": Pair(
        LINE, SLICED, OF_HALVES, ROW, INDICES | {"t": TABLE}, {"t": changed(TABLE.astype(np.float16), 120, 5)}
    ),
    "a row of another shape": Pair(
        LINE,
        SLICED,
        "n = Shape<start = 1, end = 2>(x) q = Slice(t, zeros, n, ones) p = Squeeze(q, zeros) " + ADDED,
        ROW,
        INDICES | {"t": TABLE},
        {"t": changed(TABLE, 120, 5)[None]},
    ),
    "a quantized row": Pair(
        LINE,
        SLICED,
        OF_BYTES,
        ROW,
        INDICES | {"t": TABLE / 4, "k": F(0.25)},
        {"t": changed(TABLE.astype(np.int8), 120, 5)},
    ),
    "a row of a table of multiples": Pair(
        LINE,
        SLICED,
        "n = Shape<start = 1, end = 2>(x) h = Slice(t, zeros, n) p = Mul(h, k) " + ADDED,
        ROW,
        INDICES | {"t": TABLE, "k": F(2)},
        {"t": changed(TABLE / 2, 120, 5)},
    ),
    "a remainder": Pair(
        LINE,
        FLOATS,
        RANGE + "m = Mod(r, most) p = Cast<to = 1>(m) " + ADDED,
        {"x": np.ones((1, 800))},
        INDICES | {"most": I64(777)},
    ),
    "an end of one model": Pair(
        LINE,
        "y = Identity(x)",
        "y = Slice(x, zeros, end, ones)",
        {"x": np.ones((1, 400))},
        INDICES | {"end": I64([300])},
    ),
    "a branch of one model": Pair(
        "float[N] x => float[N] y", "y = Relu(x)", CAPPED, {"x": -np.ones(50)}, {"limit": I64([40])}
    ),
    "positions in 8 bits": Pair(
        LINE,
        FLOATS,
        RANGE + "u = Cast<to = 2>(r) p = Cast<to = 1>(u) " + ADDED,
        {"x": np.ones((1, 300))},
        INDICES,
    ),
    "positions in float16": Pair(
        LINE,
        FLOATS,
        RANGE + "u = Cast<to = 10>(r) p = Cast<to = 1>(u) " + ADDED,
        {"x": np.ones((1, 2050))},
        INDICES,
    ),
    "a row of a table of float16": Pair(
        LOOK_UP,
        "y = Gather(t, x)",
        "g = Gather(t, x) y = Cast<to = 1>(g)",
        {"x": [777]},
        {"t": TABLES % 97},
        {"t": changed((TABLES % 97).astype(np.float16), 777 * 4, 0.5)},
    ),
    "a row of a quantized table": Pair(
        LOOK_UP,
        "y = Gather(t, x)",
        "g = Gather(t, x) y = DequantizeLinear(g, k)",
        {"x": [777]},
        {"t": TABLES % 97 / 4, "k": F(0.25)},
        {"t": changed((TABLES % 97).astype(np.int8), 777 * 4, 99)},
    ),
    "a number that one branch compares": Pair(
        "float[3] x, bool c => bool[3] y",
        "y = If (c) <then_branch = a () => (bool[3] p) <float k = {22.5}> { p = Equal(x, k) }, "
        "else_branch = b () => (bool[3] q) { q = IsNaN(x) }>",
        "y = If (c) <then_branch = a () => (bool[3] p) <float k = {23.5}> { p = Equal(x, k) }, "
        "else_branch = b () => (bool[3] q) { q = IsNaN(x) }>",
        {"x": [22.5, 1, 2], "c": True},
    ),
    "beside other operators": Pair(LINE, SLICED, TAKEN, ROW, INDICES | {"t": TABLE}, {"t": changed(TABLE, 120, -5)}),
}


@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.sample(9)
def test_inputs_that_read_what_differs_are_found(name: str) -> None:
    find_difference(DIFFERENT[name])


@pytest.mark.parametrize("name", DIFFERENT)
@pytest.mark.sample(8)
def test_the_witness_of_each_pair_shows_its_difference(name: str) -> None:
    show_difference(DIFFERENT[name])


GRAMS = (
    'TfIdfVectorizer<max_gram_length = 2, min_gram_length = 1, max_skip_count = {}, mode = "TF", '
    "ngram_counts = [0, 3], ngram_indexes = [0, 1, 2, 3, 4], pool_int64s = [2, 3, 4, 5, 6, 7, 8]>"
)
IN_BODY = (
    "r = Relu(x) s = Shape(x) l = Constant<value = int64[1] {100000000}> () g = Greater(s, l) c = Squeeze(g) "
    "y = If (c) <then_branch = a () => (float[N] p) { i = Constant<value = int64 {1}> () "
    "k = Constant<value = float[6] {0, 1, 2, 3, 4, 5}> () h = Gather(k, i) p = Add(r, h) }, "
    "else_branch = b () => (float[N] q) { q = Neg(r) }>"
)
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
        "`t` of main/Gather#4 differs at [1]",
    ),
    "rows of the second table alone": (
        Pair(LINE, SLICED, SLICED, {}, INDICES | {"t": TABLE[:64]}, {"t": TABLE}),
        "`t` of main/Slice#1 differs at [64], …",
    ),
    "a table that the first model has not": (
        Pair(
            "float[N] x => float[N] y",
            "y = Relu(x)",
            "s = Shape(x) g = Greater(s, limit) c = Squeeze(g) y = If (c) <then_branch = a () => (float[N] p) "
            "{ h = Gather(t, zero) r = Relu(x) p = Add(r, h) }, else_branch = b () => (float[N] q) { q = Relu(x) }>",
            {},
            {"limit": I64([10**8]), "zero": I64(0), "t": TABLE},
        ),
        "`t` of main/If#3 is only in the second model",
    ),
    # Nodes in front of those that changed belong to the region, too.
    "an attribute": (
        Pair(
            "int64[N] x => float[5] y", f"a = Abs(x) y = {GRAMS.format(0)}(a)", f"a = Abs(x) y = {GRAMS.format(1)}(a)"
        ),
        "`max_skip_count` of main/TfIdfVectorizer#1 differs",
    ),
    "a table in a body": (
        Pair("float[N] x => float[N] y", IN_BODY, IN_BODY.replace("4, 5}", "4, 6}")),
        "`k` of main/If#5 differs at [5]",
    ),
}


@pytest.mark.parametrize("name", UNREAD)
def test_what_no_run_reads_is_named(name: str) -> None:
    pair, place = UNREAD[name]
    found = splitgraph.verify(*pair.models(), timeout=60)
    assert found.verdict == "not-run", found
    assert [region.unread for region in found.regions] == [(place,)]
    (warning,) = (each for each in found.diagnostics if each.code == "SG506")
    read = "all of it" if "is only" in place else "it"
    assert warning.message == f"not verified: {place}, and no input was found that reads {read}"
    assert found.document()["regions"][0]["unread"] == [place]


def test_a_branch_for_more_items_than_a_run_takes_is_run_alone() -> None:
    texts = BRANCH.format("1, 2, 3, 4"), BRANCH.format("1, 2, 3, 5")
    find_difference(Pair("float[N, 4] x => float[N, 4] y", *texts, {}, {"limit": I64([10**8])}))


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
    "a table of as many numbers as a Range": Pair(
        LINE, SLICED, FLOATS, constants=INDICES | {"t": np.arange(512).astype(F)}
    ),
    "a mask and Trilu": Pair(LINE, MASKED, CAUSAL, constants=INDICES | {"t": MASK}),
    "a table of float16": Pair(
        LINE, SLICED, OF_HALVES, constants=INDICES | {"t": TABLE}, changed={"t": TABLE.astype(np.float16)}
    ),
    "a quantized table": Pair(
        LINE,
        SLICED,
        OF_BYTES,
        constants=INDICES | {"t": TABLE / 4, "k": F(0.25)},
        changed={"t": TABLE.astype(np.int8)},
    ),
    "a limit that nothing reaches": Pair(
        "float[N] x => float[N] y", "y = Sigmoid(x)", "s = Sigmoid(x) y = Min(s, k)", constants={"k": F(100)}
    ),
    "the same table beside other operators": Pair(LINE, SLICED, TAKEN, constants=INDICES | {"t": TABLE}),
}


@pytest.mark.parametrize("name", EQUAL)
def test_constants_that_mean_the_same_stay_equal(name: str) -> None:
    found = splitgraph.verify(*EQUAL[name].models(), timeout=60)
    assert found.verdict == "equal", found
    assert all(not region.unread for region in found.regions)


def test_given_inputs_are_not_replaced() -> None:
    """Equal means equal on these inputs."""
    pair = DIFFERENT["the last row"]
    assert splitgraph.verify(*pair.models(), inputs={"x": np.ones((1, 5), F)}).verdict == "equal"


def test_fixed_sizes_leave_it_unread() -> None:
    found = splitgraph.verify(*DIFFERENT["the last row"].models(), bind={"N": 5})
    assert found.verdict == "not-run"
    assert found.regions[0].unread == ("`t` of main/Gather#3 differs at [127]",)


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


# What reads [1, 2, 4] or [0, 2, 4], and whether it only says the target of a Reshape.
READERS = {
    "a target": ("y = Reshape(x, s)", True),
    "put together": ("n = Shape<start = 1>(x) t = Concat<axis = 0>(s, n) y = Reshape(x, t)", True),
    "data": ("y = Reshape(s, s)", False),
    "a limit besides": ("l = Less(s, s) r = Reshape(x, s) y = Where(l, r, r)", False),
    "a limit, put together": ("t = Concat<axis = 0>(s, s) l = Less(t, t) y = Reshape(l, t)", False),
    "a result": ("y = Concat<axis = 0>(s, s)", False),
    "a body": (
        "r = Reshape(x, s) y = If(c) <then_branch = a () => (bool[n] p) { p = Less(s, s) }, "
        "else_branch = b () => (bool[n] q) { q = Less(s, s) }>",
        False,
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_a_target_gets_a_number_that_no_size_is(name: str) -> None:
    """0, 1 and -1 may all mean one size; of a limit, a number far beyond it shows nothing."""
    body, is_target = READERS[name]
    line = "float[1, 8] x, bool c => float[n] y"
    models = [parsed(line, body, s=I64(sizes)) for sizes in ([1, 2, 4], [0, 2, 4])]
    changes = find_changes(models, (None, None), 1e-4)
    (change,) = (each for each in changes if len(each.arrays[0]) == 3)
    asked = list(questions(models, (None, None), [change]))
    targets = [numpy_helper.to_array(copy.graph.initializer[0]).tolist() for each in asked for copy in each.models]
    assert ([1000003, 2, 4] in targets) == is_target


# Two bodies, and whether the elements of a constant differ.
SMALL = {
    "rounding": ("y = Add(x, c)", F([1, 2]), F([1, 2.00001]), False),
    "a number": ("y = Add(x, c)", F([1, 2]), F([1, 2.1]), True),
    "NaN": ("y = Add(x, c)", F([1, np.nan]), F([1, np.nan]), False),
    "another rank": ("y = Add(x, c)", F([1, 2]), F([[1, 2]]), False),
    "a number in another rank": ("y = Add(x, c)", F([1, 2]), F([[1, 3]]), True),
    "a number in another type": ("d = Cast<to = 1>(c) y = Add(x, d)", F([1, 2]), I64([1, 3]), True),
    "another type": ("d = Cast<to = 1>(c) y = Add(x, d)", F([1, 2]), I64([1, 2]), False),
    "no end": ("y = Slice(x, c, c)", I64([2**40]), I64([2**62]), False),
}


@pytest.mark.parametrize("name", SMALL)
def test_which_constants_have_changed(name: str) -> None:
    body, one, other, is_other = SMALL[name]
    models = [parsed("float[2] x => float[2] y", body, c=array) for array in (one, other)]
    assert bool(find_changes(models, (None, None), 1e-4)) is is_other


TEXTS = "string[N] s => bool[N] y"


@pytest.mark.usefixtures("in_process")
def test_other_patterns_give_no_verdict() -> None:
    """Texts that match one pattern say nothing about another one."""
    for one, other in (("a{5}", "a{5,6}"), ("[a-y]+", "[a-z]+")):
        texts = (f'y = RegexFullMatch<pattern = "{pattern}">(s)' for pattern in (one, other))
        found = splitgraph.verify(*(parsed(TEXTS, text, opset=20) for text in texts))
        assert found.verdict == "not-run", found
        assert "`pattern` of main/RegexFullMatch#0 differs" in found.diagnostics[0].message


@pytest.mark.usefixtures("in_process")
def test_a_text_that_no_run_reads_gives_no_verdict() -> None:
    texts = (f'k = Constant<value_string = "{text}">() e = Equal(k, k) n = Not(e) y = Where(n, k, s)' for text in "ab")
    found = splitgraph.verify(*(parsed("string[N] s => string[N] y", text, opset=20) for text in texts))
    assert found.verdict == "not-run", found


DELIMITERS = Pair(
    "string[N] s => string[N, M] y, int64[N] c",
    'y, c = StringSplit<delimiter = "::">(s)',
    'y, c = StringSplit<delimiter = ":">(s)',
    {"s": ["a::b:c"]},
    opset=20,
)


@pytest.mark.usefixtures("in_process")
def test_other_delimiters_are_different() -> None:
    find_difference(DELIMITERS)
    show_difference(DELIMITERS)
