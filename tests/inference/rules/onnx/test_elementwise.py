"""Broadcasting, arithmetic on small tensors, casts and constants: refusals, then shapes, then contents."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from node_models import NEWEST_OPSET, infer_nodes, model_of, shape_text
from onnx import TensorProto, helper

from splitgraph.dim import Dim, Facts, evaluate, symbol
from splitgraph.inference import infer_model
from splitgraph.inference.analysis import Analysis
from splitgraph.inference.rules import arithmetic
from splitgraph.model.value_type import Item, Ratio

INVALID = [
    ("misfit", "float[2,3] a, float[4] b", "y = Add(a, b)", 18, "3 and 4"),
    ("types", "float[2] a, int64[2] b", "y = Add(a, b)", 18, "same element type"),
    ("where-types", "bool[2] c, float[2] a, int64[2] b", "y = Where(c, a, b)", 18, "same element type"),
    ("where-misfit", "bool[2] c, float[3] a, float[3] b", "y = Where(c, a, b)", 18, "2 and 3"),
    ("cast", "float[2] a", "y = Cast<to=99>(a)", 18, "not an element type"),
    ("constant-twice", "float x", "y = Constant<value_int=1, value_float=1.0>()", 18, "exactly one"),
    (
        "negative-shape",
        "float x",
        "s = Constant<value_ints=[2,-3]>() y = ConstantOfShape(s)",
        18,
        "negative dimension -3",
    ),
]


@pytest.mark.parametrize(("inputs", "body", "opset", "said"), [c[1:] for c in INVALID], ids=[c[0] for c in INVALID])
def test_an_invalid_node_is_a_finding(inputs: str, body: str, opset: int, said: str) -> None:
    answer = shape_text(inputs, body, opset=opset)
    assert answer.startswith("SG302 ")
    assert said in answer


SHAPES = [
    ("same", "float[N,3] a, float[N,3] b", "y = Add(a, b)", 18, "float32[N, 3]"),
    ("row", "float[N,3] a, float[3] b", "y = Mul(a, b)", 18, "float32[N, 3]"),
    ("column", "float[N,1] a, float[C] b", "y = Sub(a, b)", 18, "float32[N, C]"),
    ("static-wins", "float[N] a, float[3] b", "y = Div(a, b)", 18, "float32[3]"),
    ("zero", "float[N] a, float[0] b", "y = Div(a, b)", 18, "float32[0]"),
    ("nobody-knows", "float[N] a, float[M] b", "y = Add(a, b)", 18, "float32[max(M, N)]"),
    ("the-same-nobody-knows", "float[N] a, float[M] b", "z = Add(a, b) y = Add(z, b)", 18, "float32[max(M, N)]"),
    ("unknown-rank", "float[N] a, float[] b", "y = Add(a, b)", 18, "float32[...]"),
    ("opset-6", "float[N,3,4] a, float[3] b", "y = Add<broadcast=1, axis=1>(a, b)", 6, "float32[N, 3, 4]"),
    ("sum", "float[N,1] a, float[3] b, float[1,1] c", "y = Sum(a, b, c)", 8, "float32[N, 3]"),
    ("compare", "float[N,1] a, float[3] b", "y = Less(a, b)", 18, "bool[N, 3]"),
    ("where", "bool[N,1] c, float[3] a, float b", "y = Where(c, a, b)", 18, "float32[N, 3]"),
    ("pow-types", "float[N] a, int64 b", "y = Pow(a, b)", 18, "float32[N]"),
    ("softmax", "float[N,3] a", "y = Softmax(a)", 18, "float32[N, 3]"),
    ("cast", "float[N,3] a", "y = Cast<to=7>(a)", 18, "int64[N, 3]"),
    ("cast-1", "float[N,3] a", 'y = Cast<to="DOUBLE">(a)', 1, "float64[N, 3]"),
    ("cast-like", "float[N,3] a, int32 b", "y = CastLike(a, b)", 18, "int32[N, 3]"),
    ("dropout-mask", "float[N] a", "z, y = Dropout(a)", 18, "bool[N]"),
    ("dropout-mask-7", "float[N] a", "z, y = Dropout(a)", 7, "float32[N]"),
    ("not", "bool[N] a", "y = Not(a)", 18, "bool[N]"),
]


@pytest.mark.parametrize(("inputs", "body", "opset", "expected"), [c[1:] for c in SHAPES], ids=[c[0] for c in SHAPES])
def test_shapes(inputs: str, body: str, opset: int, expected: str) -> None:
    assert shape_text(inputs, body, opset=opset) == expected


def test_no_obligation_comes_from_broadcasting_two_symbols() -> None:
    analysis = infer_nodes("float[N] a, float[M] b", "y = Add(a, b)")
    assert analysis.symbols["N"] == analysis.symbols["M"] == (0, None)
    assert not analysis.obligations
    assert [str(each) for each in analysis.assumptions] == ["N >= 1", "M >= 1"]


HELD = (
    "int64 two = {2}, int64 three = {3}, int64 minus = {-1}, int64[1] v = {0}, float half = {0.5}, float f2 = {2.0}, "
    "int64 zero = {0}, int32 big = {2147483647}"
)
CONTENTS = [
    ("add", "s = Add(n, two)", "N + 2"),
    ("sub-back", "m = Add(n, two) s = Sub(m, n)", "2"),
    ("mul", "s = Mul(n, three)", "3*N"),
    ("div", "s = Div(n, two)", "N//2"),
    ("mod", "s = Mod(n, three)", "N % 3"),
    ("fmod", "s = Mod<fmod=1>(n, three)", "N % 3"),
    ("min", "s = Min(n, three)", "min(N, 3)"),
    ("max", "s = Max(n, three)", "max(N, 3)"),
    ("neg-abs", "m = Neg(n) s = Abs(m)", "N"),
    ("pow", "s = Pow(n, two)", "N*N"),
    ("where-equal", "c = Equal(n, minus) s = Where(c, two, n)", "N"),
    ("where-less", "c = Less(n, zero) s = Where(c, two, n)", "N"),
    ("not", "c = Equal(n, minus) d = Not(c) s = Where(d, n, two)", "N"),
    ("floats", "f = Cast<to=1>(n) g = Mul(f, half) h = Floor(g) s = Cast<to=7>(h)", "N//2"),
    ("floats-up", "f = Cast<to=1>(n) g = Div(f, f2) h = Ceil(g) s = Cast<to=7>(h)", "(N + 1)//2"),
    ("floats-whole", "f = Cast<to=1>(n) g = Mul(f, f2) s = Cast<to=7>(g)", "2*N"),
    ("int32", "f = Cast<to=6>(n) g = Add(f, f) s = Cast<to=7>(g)", "2*N"),
    ("reduce-prod", "d = Shape(z) s = ReduceProd<keepdims=0>(d)", "A*B"),
    ("reduce-sum", "d = Shape(z) s = ReduceSum<keepdims=0>(d)", "A + B"),
    ("reduce-max", "d = Shape(z) s = ReduceMax<keepdims=0>(d)", "max(A, B)"),
]


@pytest.mark.parametrize(("body", "expected"), [c[1:] for c in CONTENTS], ids=[c[0] for c in CONTENTS])
def test_arithmetic_is_followed(body: str, expected: str) -> None:
    text = f"n = Size(x) {body} u = Unsqueeze(s, v) y = ConstantOfShape(u)"
    answer = shape_text("float[N] x, float[A,B] z", text, constants=HELD)
    assert answer == f"float32[{expected}]"


UNCERTAIN = [
    ("wrap-around", "s1 = Add(big, big) s = Cast<to=7>(s1)"),
    ("narrow", "f = Cast<to=3>(n) s = Cast<to=7>(f)"),
    ("half-precision", "f = Cast<to=10>(n) s = Cast<to=7>(f)"),
    ("a-third", "f = Cast<to=1>(n) g = Mul(f, tenth) s = Cast<to=7>(g)"),
    ("by-zero", "s = Div(two, zero)"),
]


@pytest.mark.parametrize("body", [c[1] for c in UNCERTAIN], ids=[c[0] for c in UNCERTAIN])
def test_what_is_not_certain_is_unknown(body: str) -> None:
    text = f"n = Size(x) {body} u = Unsqueeze(s, v) y = ConstantOfShape(u)"
    assert shape_text("float[N] x", text, constants=HELD + ", float tenth = {0.1}") == "float32[?]"


def test_a_sum_is_less_than_another_where_the_difference_is_at_least_one() -> None:
    n, m = symbol("N"), symbol("M")
    found = [arithmetic.greater_or_equal(Facts(), "int64", n, n + m + more) for more in (-1, 0, 1)]
    assert found == [None, None, 0]
    assert arithmetic.greater_or_equal(Facts(), "int64", n + m, n) == 1


@pytest.mark.parametrize("a", [0, 1, None])
@pytest.mark.parametrize("b", [0, 1, None])
def test_truth_beside_what_is_unknown(a: int | None, b: int | None) -> None:
    """What is found is what all values of the unknown ones give."""
    operators: dict[Callable[[Facts, str, Item, Item], Item], Callable[[int, int], int]] = {
        arithmetic.logical_and: int.__and__,
        arithmetic.logical_or: int.__or__,
        arithmetic.logical_xor: int.__xor__,
    }
    for found, python in operators.items():
        possible = {python(x, y) for x in (0, 1) for y in (0, 1) if a in (None, x) and b in (None, y)}
        assert found(Facts(), "bool", a, b) == (possible.pop() if len(possible) == 1 else None)


CONSTANTS = [
    ("value_int", 2, "int64[]"),
    ("value_ints", [2, 3], "int64[2]"),
    ("value_float", 2.5, "float32[]"),
    ("value_floats", [2.5], "float32[1]"),
    ("value_string", "a", "string[]"),
    ("value_strings", ["a", "b"], "string[2]"),
    ("value", helper.make_tensor("t", TensorProto.INT32, [1, 2], [3, 4]), "int32[1, 2]"),
]


@pytest.mark.parametrize(("name", "value", "expected"), CONSTANTS, ids=[c[0] for c in CONSTANTS])
def test_constants_of_every_form(name: str, value: object, expected: str) -> None:
    assert str(_constant(name, value).types["y"]) == expected


def test_a_sparse_constant_is_dense() -> None:
    values = helper.make_tensor("v", TensorProto.INT64, [2], [3, 4])
    for indices in (
        helper.make_tensor("i", TensorProto.INT64, [2], [0, 2]),
        helper.make_tensor("i", TensorProto.INT64, [2, 1], [0, 2]),
    ):
        analysis = _constant("sparse_value", helper.make_sparse_tensor(values, indices, [3]))
        assert str(analysis.types["y"]) == "int64[3]"
        assert str(analysis.types["z"]) == "float32[3, 0, 4]"


def test_a_sparse_initializer_is_dense() -> None:
    values = helper.make_tensor("w", TensorProto.FLOAT, [1], [1.0])
    indices = helper.make_tensor("", TensorProto.INT64, [1], [1])
    model = model_of("float[1,3] x", "y = Add(x, w)")
    model.graph.sparse_initializer.append(helper.make_sparse_tensor(values, indices, [2, 3]))
    assert str(infer_model(model).types["y"]) == "float32[2, 3]"


def _constant(name: str, value: object) -> Analysis:
    nodes = [helper.make_node("Constant", [], ["y"], **{name: value})]
    if name == "sparse_value":
        nodes.append(helper.make_node("ConstantOfShape", ["y"], ["z"]))
    graph = helper.make_graph(nodes, "g", [], [])
    return infer_model(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8))


# One item at a time: whatever is claimed of symbols holds for their values, as numpy computes it.

INTEGER_OPERATIONS = {
    arithmetic.add: np.add,
    arithmetic.subtract: np.subtract,
    arithmetic.multiply: np.multiply,
    arithmetic.divide: lambda a, b: np.int64(math.trunc(int(a) / int(b))),
    arithmetic.modulo: np.mod,
    arithmetic.fmod: np.fmod,
    arithmetic.smallest: np.minimum,
    arithmetic.largest: np.maximum,
    arithmetic.equal: np.equal,
    arithmetic.less: np.less,
    arithmetic.less_or_equal: np.less_equal,
    arithmetic.greater: np.greater,
    arithmetic.greater_or_equal: np.greater_equal,
}
N = symbol("N")
ITEMS = st.one_of(st.integers(-5, 5), st.sampled_from([N, N + 1, N - 3, 2 * N, 2 * N + 2, -N, N // 2]))


def value_of(item: Item, n: int) -> int | float:
    """The number that an element is where N is n."""
    if isinstance(item, Ratio):
        return evaluate(item.numerator, {"N": n}) / item.denominator
    assert isinstance(item, (int, float, Dim))
    return evaluate(item, {"N": n}) if isinstance(item, Dim) else item


@given(st.sampled_from(list(INTEGER_OPERATIONS)), ITEMS, ITEMS)
@settings(derandomize=True, deadline=None, max_examples=examples(600))
def test_integer_arithmetic_agrees_with_numpy(operation: arithmetic.BinaryItem, a: Item, b: Item) -> None:
    claimed = operation(Facts(), "int64", a, b)
    if claimed is None:
        return
    for n in range(9):
        left, right = value_of(a, n), value_of(b, n)
        divides = operation in (arithmetic.divide, arithmetic.modulo, arithmetic.fmod)
        if divides and right == 0:
            continue
        assert value_of(claimed, n) == INTEGER_OPERATIONS[operation](np.int64(left), np.int64(right))


FLOATS = st.sampled_from([0.5, 2.0, 0.25, -1.0, 3.0, 0.1, 1.5])
STEPS = {
    "mul": lambda facts, a, f: arithmetic.multiply(facts, "float32", a, f),
    "div": lambda facts, a, f: arithmetic.divide(facts, "float32", a, f),
    "add": lambda facts, a, f: arithmetic.add(facts, "float32", a, f),
    "sub": lambda facts, a, f: arithmetic.subtract(facts, "float32", a, f),
}
NUMPY_STEPS = {"mul": np.multiply, "div": np.divide, "add": np.add, "sub": np.subtract}
LAST = {"floor": arithmetic.floor, "ceil": arithmetic.ceiling, "neg": arithmetic.negate}


@given(
    st.lists(st.tuples(st.sampled_from(list(STEPS)), FLOATS), min_size=1, max_size=3),
    st.sampled_from(["floor", "ceil", "cast"]),
)
@settings(derandomize=True, deadline=None, max_examples=examples(400))
def test_float_arithmetic_agrees_with_float32(steps: list[tuple[str, float]], last: str) -> None:
    facts = Facts()
    item: Item = N
    for name, factor in steps:
        item = STEPS[name](facts, item, float(np.float32(factor))) if item is not None else None
    if last == "cast":
        item = arithmetic.cast_item(facts, "float32", "int64", item)
    elif item is not None:
        item = LAST[last](facts, "float32", item)
    if item is None:
        return
    for n in (*range(40), 999, 65537):
        x = np.float32(n)
        for name, factor in steps:
            x = NUMPY_STEPS[name](x, np.float32(factor), dtype=np.float32)
        expected = {"floor": np.floor, "ceil": np.ceil, "cast": np.trunc}[last](x)
        assert value_of(item, n) == expected


def test_the_inputs_of_a_gate_broadcast_to_one_size() -> None:
    # SwiGLU is younger than the oldest onnx that is supported.
    if NEWEST_OPSET >= 28:
        assert shape_text("float[N,M] a, float[N,4] b", "y = SwiGLU(a, b)", opset=28) == "float32[N, 4]"
        analysis = infer_nodes("float[2,4] a, float[2,5] b", "y = SwiGLU(a, b)", opset=28)
        (found,) = analysis.diagnostics
        assert found.code == "SG302"
        assert "[2, 5]; it must be [2, 4]" in found.message
        assert analysis.types["y"].shape is None
