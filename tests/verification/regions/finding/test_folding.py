"""What a region only moves of its constants is one constant: a run reads the rows in which two tables differ."""

from __future__ import annotations

import numpy as np
import onnx
import pytest

import splitgraph
from splitgraph.verification.regions.finding.folding import computed_tables, folded

from ...small_models import parsed

F, I64 = np.float32, np.int64
TABLE = np.random.default_rng(0).standard_normal((1000, 2)).astype(F)
ROW = 777
OTHER = np.where(np.arange(1000)[:, None] == ROW, TABLE + 1, TABLE).astype(F)

# How a table is put together, from these constants.
WAYS = {
    "two parts": ("t = Concat<axis = 0>(p, q)", lambda t: {"p": t[:300], "q": t[300:]}),
    "turned": ("t = Transpose(p)", lambda t: {"p": t.T.copy()}),
    "flat": ("t = Reshape(p, s)", lambda t: {"p": t.reshape(-1), "s": I64([-1, 2])}),
    "a part": ("t = Slice(p, a, b)", lambda t: {"p": np.pad(t, ((1, 1), (0, 0))), "a": I64([1]), "b": I64([-1])}),
    "a Split": ("t, u = Split(p, l)", lambda t: {"p": np.pad(t, ((0, 9), (0, 0))), "l": I64([1000, 9])}),
    "by a Constant": (
        "k = Constant<value = int64[1] {0}>() v = Unsqueeze(p, k) t = Squeeze(v, k)",
        lambda t: {"p": t},
    ),
    "turned signs": ("t = Neg(n)", lambda t: {"n": -t}),
    "a scale": ("t = Mul(h, two)", lambda t: {"h": t / 2, "two": F(2)}),
    "a shift": ("t = Sub(h, one)", lambda t: {"h": t + 1, "one": F(1)}),
}
# How it is read, and where.
READERS = {
    "Gather": ("int64[N] i => float[N, 2] y", "y = Gather(t, i)", {"i": [ROW]}),
    "GatherND": ("int64[N, 1] i => float[N, 2] y", "y = GatherND(t, i)", {"i": [[ROW]]}),
    "GatherElements": ("int64[N, 2] i => float[N, 2] y", "y = GatherElements(t, i)", {"i": [[ROW, ROW]]}),
    "a Cast": ("float[N] x => float[N, 2] y", "i = Cast<to = 7>(x) y = Gather(t, i)", {"x": [ROW]}),
    "ArgMax": (
        "float[N, 1000] x => float[N, 2] y",
        "i = ArgMax<axis = 1, keepdims = 0>(x) y = Gather(t, i)",
        {"x": np.eye(1000)[ROW : ROW + 1]},
    ),
}
CASES = [("two parts", reader) for reader in READERS] + [(way, "GatherND") for way in WAYS if way != "two parts"]


def models(way: str, reader: str, second: np.ndarray) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Return a model with the table, and one that puts the second one together."""
    signature, body, _ = READERS[reader]
    text, made = WAYS[way]
    return parsed(signature, body, t=TABLE), parsed(signature, f"{text} {body}", **made(second))


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize(("way", "reader"), CASES)
@pytest.mark.sample(8)
def test_a_row_of_a_table_that_is_put_together_is_read(way: str, reader: str, is_turned: bool) -> None:
    pair = models(way, reader, OTHER)
    found = splitgraph.verify(*(reversed(pair) if is_turned else pair))
    assert found.verdict == "different", found
    if is_turned:
        return
    declared = {value.name: value.type.tensor_type.elem_type for value in pair[0].graph.input}
    types = {name: onnx.helper.tensor_dtype_to_np_dtype(number) for name, number in declared.items()}
    witness = {name: np.asarray(array, types[name]) for name, array in READERS[reader][2].items()}
    assert splitgraph.verify(*pair, inputs=witness).verdict == "different"


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("way", WAYS)
def test_an_equal_table_raises_no_alarm(way: str) -> None:
    found = splitgraph.verify(*models(way, "Gather", TABLE))
    assert found.verdict == "equal" and not found.diagnostics, found


KEPT = {
    "an operator that computes": "t = Exp(p) y = Gather(t, i)",
    "an input": "t = Concat<axis = 0>(i, i) y = Gather(p, t)",
    "an impossible shape": "t = Reshape(p, i2) y = Gather(t, i)",
    "another domain": "t = local.Identity(p) y = Gather(t, i)",
    "an order that onnx's evaluator does not keep": "t = Unique<sorted = 0>(v) y = Gather(t, i)",
    "no order": "t, u = TopK<sorted = 0>(v, d) y = Gather(t, i)",
}


@pytest.mark.parametrize("name", KEPT)
def test_what_computes_stays(name: str) -> None:
    held = {"i2": I64([7, -1]), "d": I64([2]), "v": F([1, 0])}
    model = parsed("int64[N] i => float[N, 2] y", KEPT[name], p=TABLE, **held)
    assert folded(model, None) is model


def test_a_moved_constant_that_is_a_result_has_its_name() -> None:
    text = "y = Identity(p) z = Exp(y)"
    made = folded(parsed("int64[N] i => float[1000, 2] y, float[1000, 2] z", text, p=TABLE), None)
    onnx.checker.check_model(made)
    assert [node.op_type for node in made.graph.node] == ["Identity", "Exp"]


def sparse(values: list[float], places: list[int] | list[list[int]], *, columns: int = 1) -> onnx.ModelProto:
    """Return a model that reads a sparse table of 1,000 rows."""
    model = parsed("int64[N] i => float[N, C] y", "y = Gather(t, i)")
    stored = onnx.numpy_helper.from_array(F(values), "t"), onnx.numpy_helper.from_array(I64(places), "places")
    model.graph.sparse_initializer.append(onnx.helper.make_sparse_tensor(*stored, [1000, columns]))
    return model


SPARSE = {
    "another place": (sparse([1, 2], [3, ROW]), sparse([1, 2], [3, ROW + 1])),
    "another place by axes": (sparse([1, 2], [3, ROW]), sparse([1, 2], [[3, 0], [ROW + 1, 0]])),
    "another element": (sparse([1, 2], [3, ROW]), sparse([1, 3], [3, ROW])),
}


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("name", SPARSE)
def test_an_element_of_a_sparse_table_is_read(name: str) -> None:
    models = SPARSE[name]
    assert splitgraph.verify(*models).verdict == "different"
    assert splitgraph.verify(*models, inputs={"i": I64([ROW])}).verdict == "different"


@pytest.mark.usefixtures("in_process")
def test_a_sparse_table_is_equal_to_a_dense_one() -> None:
    table = np.zeros((1000, 2), F)
    table[3, 1], table[ROW, 0] = 1, 2
    dense = parsed("int64[N] i => float[N, 2] y", "y = Gather(t, i)", t=table)
    stored = sparse([1, 2], [[3, 1], [ROW, 0]], columns=2)
    assert splitgraph.verify(dense, stored).verdict == "equal"
    assert splitgraph.verify(sparse([1, 2], [7, 2 * ROW], columns=2), dense).verdict == "equal"


# What is the same in every run ----------------------------------------------------------------------------------------

# Rows of a table and a mask, by sizes that the input has.
COMPUTED = """z = Constant<value = int64 {0}>() o = Constant<value = int64 {1}>() i = Constant<value = int64 {0}>()
    s = Shape(x) n = Gather(s, i) p = Range(z, n, o) r = Gather(t, p) m = Add(x, r)
    c = ConstantOfShape<value = bool[1] {1}>(s) u = Trilu<upper = 0>(c) y = Where(u, m, x)"""
HELD = "m = Add(x, r) y = Where(u, m, x)"
ROWS, MASK = TABLE[:2], np.tri(2, dtype=bool)


def computed_and_held(size: str, **held: np.ndarray) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Return a model that computes what it reads of a table, and one that holds it."""
    signature = f"float[{size}, 2] x => float[{size}, 2] y"
    return parsed(signature, COMPUTED, t=TABLE), parsed(signature, HELD, **{"r": ROWS, "u": MASK, **held})


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("is_turned", [False, True])
def test_what_follows_from_fixed_sizes_is_no_unread_constant(is_turned: bool) -> None:
    pair = computed_and_held("2")
    found = splitgraph.verify(*(reversed(pair) if is_turned else pair))
    assert found.verdict == "equal", found


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("held", [{"r": TABLE[1:3]}, {"u": MASK.T}, {"u": np.ones((2, 2), bool)}])
def test_another_constant_than_the_sizes_give_is_a_difference(held: dict[str, np.ndarray]) -> None:
    assert splitgraph.verify(*computed_and_held("2", **held)).verdict == "different"


@pytest.mark.usefixtures("in_process")
def test_what_follows_from_a_free_size_is_not_held() -> None:
    """At 2 the two are equal, and at any other size only the first one runs, or gives something else."""
    assert splitgraph.verify(*computed_and_held("N")).verdict != "equal"


def test_what_overflows_is_not_the_same_in_every_engine() -> None:
    model = parsed("int32[2] x => int32[2] y", "s = Add(a, a) y = Add(x, s)", a=np.array([2**31 - 1, 1], np.int32))
    assert folded(model, None) is model


# Tables that one model computes ---------------------------------------------------------------------------------------

HALVES = np.random.default_rng(1).standard_normal((2, 1000, 2)).astype(F)
# Functions that engines round in their own ways, and what they give.
FUNCTIONS = {
    "Exp": ("t = Exp(p)", {"p": TABLE}, np.exp(TABLE)),
    "Softmax": ("t = Softmax<axis = 1>(p)", {"p": TABLE}, np.exp(TABLE) / np.exp(TABLE).sum(1, keepdims=True)),
    "a product": ("t = MatMul(p, q)", {"p": TABLE, "q": TABLE[:2]}, TABLE @ TABLE[:2]),
    "waves": ("s = Mul(p, q) t = Sin(s)", {"p": TABLE * 100, "q": F([1, 0.01])}, np.sin(TABLE * 100 * F([1, 0.01]))),
    "a mean": ("t = ReduceMean<axes = [0], keepdims = 0>(p)", {"p": HALVES}, HALVES.mean(0)),
}
COMPUTED_CASES = [("a product", reader) for reader in READERS] + [
    (name, "Gather") for name in FUNCTIONS if name != "a product"
]


def computed_pair(name: str, reader: str, change: float) -> tuple[onnx.ModelProto, onnx.ModelProto]:
    """Return a model that computes a table, and one that holds it, but for one element."""
    signature, body, _ = READERS[reader]
    text, constants, table = FUNCTIONS[name]
    held = table.astype(F)
    held[ROW, 1] += change
    return parsed(signature, f"{text} {body}", opset=17, **constants), parsed(signature, body, opset=17, t=held)


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize(("name", "reader"), COMPUTED_CASES)
@pytest.mark.sample(5)
def test_a_row_of_a_table_that_is_computed_is_read(name: str, reader: str, is_turned: bool) -> None:
    pair = computed_pair(name, reader, 0.5)
    found = splitgraph.verify(*(reversed(pair) if is_turned else pair))
    assert found.verdict == "different", found


@pytest.mark.usefixtures("in_process")
@pytest.mark.parametrize("is_turned", [False, True])
@pytest.mark.parametrize(("name", "reader"), COMPUTED_CASES)
@pytest.mark.sample(5)
def test_an_equal_table_that_is_computed_raises_no_alarm(name: str, reader: str, is_turned: bool) -> None:
    pair = computed_pair(name, reader, 0)
    found = splitgraph.verify(*(reversed(pair) if is_turned else pair))
    assert found.verdict == "equal" and not found.diagnostics, found


@pytest.mark.usefixtures("in_process")
def test_rows_of_tables_that_both_models_compute_are_read() -> None:
    signature, body, _ = READERS["Gather"]
    logarithms = np.log(np.abs(TABLE) + 1)
    other = logarithms.copy()
    other[ROW] += 1
    first = parsed(signature, f"a = Exp(p) t = Identity(a) {body}", p=logarithms)
    for changed, verdict in ((logarithms, "equal"), (other, "different")):
        second = parsed(signature, f"s = Neg(n) m = Exp(s) t = Reciprocal(m) {body}", n=changed)
        assert splitgraph.verify(first, second).verdict == verdict


RANDOM = {
    "random numbers": "t = RandomNormalLike(p) y = Gather(t, i)",
    "a table that is held": "y = Gather(p, i)",
    "an input": "t = Add(p, i) y = Gather(t, i)",
}


@pytest.mark.parametrize("name", RANDOM)
def test_only_what_is_the_same_in_every_run_is_computed(name: str) -> None:
    assert computed_tables(parsed("int64[N] i => float[N, 2] y", RANDOM[name], p=TABLE), None) == {}
