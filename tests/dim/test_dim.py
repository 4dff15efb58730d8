"""Dimensions: one spelling per value, read back as the same object; Python's arithmetic and SymPy are the oracles."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from random import Random

import pytest
import sympy
from example_counts import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from splitgraph.dim import (
    Dim,
    DimLike,
    ceildiv,
    dim_max,
    dim_min,
    evaluate,
    evaluator,
    has_huge_number,
    is_spellable,
    large_atoms,
    parse_dim,
    parse_expression,
    product,
    substitute,
    sum_dims,
    symbol,
    symbols_of,
)
from splitgraph.dim import arithmetic as storage
from splitgraph.dim.atoms import atoms_by_level
from splitgraph.dim.printing import spell_inside, spell_large

NAMES = ("A", "N", "k")
A, N, K = (symbol(name) for name in NAMES)


# What must not be read as an expression, or not be done at all --------------------------------------------------

OPAQUE = [
    "", " ", "2N", "a b", "batch-size", "-1", "0", "12", "0.5", "lambda", "N+1", "N +1", "N + 1 ", " N", "seq:0",
    "unk__12", "N*", "* N", "(N", "N)", "()", "(N)", "((N + 1))", "N + 0", "N*1", "N + N", "N + M - N", "2 * N", "N/2",
    "N / 2", "N // 2", "N//2.0", "N%2", "min", "max", "min(N)", "min()", "min(N,8)", "min(N, 8", "max(N, N)",
    "min(N, N + 2)", "f(N)", "N % 2 == 0", "N if M else K", "True", "None", "N + None", "not N", "N//0", "N % 0",
    "é-1", "1_000*N", "0x10*N", "+N", "--N", "[N]//2", "N\n", "N + 1\n", "N\t+ 1", "١*N",
    "(2*N)//2", "N + 1, 2", "a.b", "9" * 5000, "N//" + "0" * 9,
]  # fmt: skip


@pytest.mark.parametrize("name", OPAQUE)
def test_a_name_that_is_not_spelled_as_an_expression_stays_a_symbol(name: str) -> None:
    assert parse_dim(name) is symbol(name)
    assert str(parse_dim(name)) == name
    assert is_spellable(parse_dim(name))


NOT_EXPRESSIONS = [
    "", "N +", "+ N", "(N", "N)", "2N", "a b", "N ? 2", "min(N)", "max()", "N, 2", "f(N)", "lambda", "N // 0", "N % 0",
    "1.5", "[N", "N**2", "()", "min", "min + 1",
]  # fmt: skip


@pytest.mark.parametrize("text", NOT_EXPRESSIONS)
def test_parse_expression_says_what_is_wrong(text: str) -> None:
    with pytest.raises(ValueError, match=r"is not an expression|divides by zero"):
        parse_expression(text)


@pytest.mark.parametrize("ask", [bool, int, lambda d: d < 1, lambda d: d >= N, lambda d: d > 1, lambda d: [1][d]])
def test_guesses_raise(ask: Callable[[DimLike], object]) -> None:
    with pytest.raises(TypeError, match=r"the dimension N \+ 1 is symbolic"):
        ask(N + 1)


@pytest.mark.parametrize("other", [None, "N", 1.5, 1j])
def test_arithmetic_with_something_else_is_refused(other: object) -> None:
    for operation in (
        "__add__",
        "__sub__",
        "__mul__",
        "__floordiv__",
        "__mod__",
        "__rsub__",
        "__rfloordiv__",
        "__rmod__",
    ):
        assert getattr(N, operation)(other) is NotImplemented


def test_division_by_the_number_zero_is_refused() -> None:
    for divide in (lambda: N // 0, lambda: N % 0, lambda: (N + 1) // (N - N)):
        with pytest.raises(ZeroDivisionError):
            divide()


def test_evaluation_needs_every_symbol_and_divisors_that_are_not_zero() -> None:
    with pytest.raises(KeyError):
        evaluate(N + A, {"N": 1})
    with pytest.raises(ZeroDivisionError):
        evaluate(N // A, {"N": 1, "A": 0})


def test_one_evaluator_takes_many_values() -> None:
    quotient = evaluator((N + A) // A)
    assert [quotient({"N": number, "A": 2}) for number in (1, 4, 1)] == [1, 3, 1]
    with pytest.raises(ZeroDivisionError):
        quotient({"N": 1, "A": 0})
    assert quotient({"N": 6, "A": 3}) == 3
    assert evaluator(7)({}) == 7


def test_extrema_of_nothing_are_refused() -> None:
    for extremum in (dim_min, dim_max):
        with pytest.raises(ValueError, match="at least one"):
            extremum()


def test_dims_are_not_made_by_hand() -> None:
    with pytest.raises(TypeError, match="symbol"):
        Dim()


PICKLED = ["N", "N - 2", "[batch-size]//2", "2*A*N + (N + 2)//3", "N//(A + 1) % 7", "max(0, A - N)", "min(A, N, 8)*k"]


@pytest.mark.parametrize("text", PICKLED)
def test_a_dim_comes_back_from_its_pickle_as_the_same_object(text: str) -> None:
    dim = parse_expression(text)
    assert pickle.loads(pickle.dumps(dim)) is dim


def test_a_deep_dim_is_pickled_too() -> None:
    dim: DimLike = N
    for index in range(1000):
        dim = dim_max(dim // 2 + 1, symbol(f"M{index}"))
    assert pickle.loads(pickle.dumps(dim)) is dim


def test_a_pickle_is_read_by_another_process() -> None:
    code = "import pickle, sys; print(*pickle.load(sys.stdin.buffer), sep='\\n')"
    dims = [parse_expression(text) for text in PICKLED]
    read = subprocess.run([sys.executable, "-c", code], input=pickle.dumps(dims), capture_output=True, check=True)
    assert read.stdout.decode().splitlines() == [str(dim) for dim in dims]


# The normal form ---------------------------------------------------------------------------------------------------

SPELLINGS = [
    ("N", "N"), ("N + 0", "N"), ("N - N", "0"), ("N + 2", "N + 2"), ("2 + N", "N + 2"), ("N - 2", "N - 2"),
    ("2 - N", "2 - N"), ("-N", "-N"), ("N + N", "2*N"), ("N*2", "2*N"), ("A - N", "A - N"), ("N - A", "N - A"),
    ("-A - N - 1", "-A - N - 1"), ("seq_len + past_len", "past_len + seq_len"),
    ("(A + 1)*(k + 2)", "A*k + 2*A + k + 2"), ("N*N*A", "A*N*N"), ("0*N", "0"),
    # quotients by a number
    ("N//1", "N"), ("N//2", "N//2"), ("(N + 2)//3", "(N + 2)//3"), ("(2*N)//2", "N"), ("(2*N + 1)//2", "N"),
    ("(4*N + 2)//4", "N"), ("(4*N + 3)//6", "N - (N + 1)//3"), ("(2*N)//4", "N//2"), ("(N + 5)//2", "(N + 1)//2 + 2"),
    ("(N - 3)//2", "(N + 1)//2 - 2"), ("N//2//2", "N//4"), ("((N + 1)//2 + 1)//2", "(N + 3)//4"),
    ("((N + 1)//2 + N)//3", "N//2"), ("N//-2", "-((N + 1)//2)"), ("(5*N + 7)//4", "N + (N + 3)//4 + 1"),
    ("(2*N)//3", "N - (N + 2)//3"), ("(N + A)//2 - N", "(A + N)//2 - N"), ("5//2", "2"), ("-7//2", "-4"),
    ("(N//3 + A)//2", "(3*A + N)//6"), ("(A - N//3)//2", "(3*A + N)//6 - N//3"), ("2*(N//2)", "2*(N//2)"),
    # sums of quotients
    ("N - (N + 1)//2", "N//2"), ("N - N//2", "(N + 1)//2"), ("N//2 + (N + 1)//2", "N"), ("-(N//2)", "-(N//2)"),
    ("1 - N//2", "1 - N//2"), ("N//3 + (N + 1)//3 + (N + 2)//3", "N"), ("N - 2*((N + 2)//3)", "N - 2*((N + 2)//3)"),
    ("N//4 + (N + 2)//4", "N//2"), ("(N + 1)//2 - (N + 3)//4", "(N + 1)//4"), ("N//2 - N//4", "(N + 2)//4"),
    ("N//2 + N//4", "N//2 + N//4"), ("A*N - A*(N//2)", "A*((N + 1)//2)"), ("(N + A)//2 + (N + A + 1)//2", "A + N"),
    ("7*((N + 6)//7) - N", "7*((N + 6)//7) - N"),
    # remainders
    ("N % 4", "N % 4"), ("N - 4*(N//4)", "N % 4"), ("4*(N//4) + N % 4", "N"), ("(N + 6) % 4", "(N + 2) % 4"),
    ("N % 1", "0"), ("N % -2", "-(N % 2)"), ("(N % 4)//4", "0"), ("(N % 4 + 1)//8", "0"), ("N % 4 % 2", "N % 2"),
    ("N//2 % 2", "(N//2) % 2"), ("A*(N % 4)", "A*(N % 4)"), ("(2*N) % 4", "2*(N % 2)"), ("N % A", "N % A"),
    ("N - A*(N//A)", "N % A"), ("(N//A) % 3", "N//A - 3*(N//(3*A))"), ("5 % A", "5 % A"),
    # quotients by a dimension
    ("(A*N)//N", "A"), ("(A*N + N)//N", "A + 1"), ("(A*N + k)//N", "A + k//N"), ("(4*A*N)//(4*N)", "A"),
    ("(2*k)//(2*N)", "k//N"), ("(N*N - 1)//(N + 1)", "N - 1"), ("(A*k)//(N*k)", "A//N"),
    ("(N + k - 1)//k", "(N + k - 1)//k"), ("N//A//2", "N//(2*A)"), ("N//A//k", "N//(A*k)"), ("0//N", "0"),
    ("7//(N + 8)", "0"), ("(-A*N)//(-N)", "A"), ("N//(2*A + 1)", "N//(2*A + 1)"), ("5//N", "5//N"),
    ("-5//N", "(-5)//N"),
    # extrema
    ("min(N, 8)", "min(N, 8)"), ("min(8, N)", "min(N, 8)"), ("max(0, N - 4)", "max(0, N - 4)"), ("min(N, N + 2)", "N"),
    ("max(N, N + 2)", "N + 2"), ("max(0, N)", "N"), ("min(0, N)", "0"), ("min(N, N//2)", "N//2"),
    ("max(A + 1, 0)", "A + 1"), ("min(5, 3, 4)", "3"), ("min(N, N)", "N"), ("min(N, 3) + 2", "min(N, 3) + 2"),
    ("min(N + 2, 5)", "min(N, 3) + 2"), ("N - min(N, 3)", "max(0, N - 3)"), ("max(N, 3) - 3", "max(0, N - 3)"),
    ("max(A, N) + min(A, N)", "A + N"), ("2*min(N, 3)", "2*min(N, 3)"), ("min(2*N, 6)", "2*min(N, 3)"),
    ("-max(-N, -3)", "min(N, 3)"), ("min(min(A, N), 3)", "min(A, N, 3)"), ("min(A, min(3, N))", "min(A, N, 3)"),
    ("max(max(A, N), max(N, k))", "max(A, N, k)"), ("max(A, N, 0)", "max(A, N)"),
    ("max(A - 3, N - 2, 0) + 3", "max(A, N + 1, 3)"), ("min(max(N - 3, 0), 8)", "min(max(0, N - 3), 8)"),
    ("max(min(N - 3, 8), 0)", "min(max(0, N - 3), 8)"), ("min(N, 8)//2", "min(N, 8)//2"),
    ("min(N, 8) % 4", "min(N, 8) % 4"), ("min(N, 3)//4", "0"), ("A*min(N, 3)", "A*min(N, 3)"),
    ("max(A, N + 3)", "max(A, N + 3)"), ("A - max(N, 2)", "A - max(N, 2)"), ("min(A//2, N)//2", "min(N, A//2)//2"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "spelling"), SPELLINGS)
def test_equal_values_have_one_spelling(text: str, spelling: str) -> None:
    value = parse_expression(text)
    assert str(value) == spelling
    assert parse_expression(spelling) is value or parse_expression(spelling) == value
    assert isinstance(value, int) or parse_dim(spelling) is value


@pytest.mark.parametrize(("text", "spelling"), SPELLINGS)
def test_spellings_are_python(text: str, spelling: str) -> None:
    names = sorted({*NAMES, "past_len", "seq_len"})
    for values in itertools.product((1, 2, 3, 4, 7, 8, 12), repeat=3):
        assignment = dict.fromkeys(names, 5) | dict(zip(NAMES, values, strict=True))
        expected = eval(text, {}, assignment)
        assert eval(spelling, {}, assignment) == expected
        assert evaluate(parse_expression(text), assignment) == expected


@pytest.mark.parametrize(
    "text", ["N + 1", "N - 1", "1 + N", "seq_len + past_len", "(3 + N)//4", "N*A", "max(N - 4, 0)", "min(8, N)"]
)
def test_the_terms_of_a_dim_param_may_come_in_any_order(text: str) -> None:
    assert parse_dim(text) is parse_expression(text)


def test_products_of_many_sums_are_names_and_cost_nothing() -> None:
    text = "*".join(f"(a{i} + b{i} + c{i} + d{i})" for i in range(40))
    assert parse_dim(text) is symbol(text)


# A reference to test against: expressions as text ---------------------------------------------------------------

ATOMS = st.sampled_from([*NAMES, "0", "1", "2", "3", "5", "8"])


def _combined(parts: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    pair = st.tuples(parts, parts)
    return st.one_of(
        pair.map(lambda p: f"({p[0]} + {p[1]})"),
        pair.map(lambda p: f"({p[0]} - {p[1]})"),
        pair.map(lambda p: f"({p[0]}*{p[1]})"),
        pair.map(lambda p: f"min({p[0]}, {p[1]})"),
        pair.map(lambda p: f"max({p[0]}, {p[1]})"),
        st.tuples(parts, st.sampled_from([1, 2, 3, 4, 6, -2])).map(lambda p: f"({p[0]}//{p[1]})"),
        st.tuples(parts, st.sampled_from([2, 3, 4])).map(lambda p: f"({p[0]} % {p[1]})"),
        st.tuples(parts, st.sampled_from(NAMES)).map(lambda p: f"({p[0]}//{p[1]})"),
    )


EXPRESSIONS = st.recursive(ATOMS, _combined, max_leaves=7)
POSITIVE = st.fixed_dictionaries({name: st.integers(1, 30) for name in NAMES})
VALUES = st.fixed_dictionaries({name: st.integers(0, 30) for name in NAMES})


@settings(derandomize=True, deadline=None, max_examples=examples(400))
@given(EXPRESSIONS, st.lists(POSITIVE, min_size=3, max_size=3))
def test_the_value_is_that_of_pythons_arithmetic(text: str, assignments: list[dict[str, int]]) -> None:
    dim = parse_expression(text)
    low, high = dim.interval if isinstance(dim, Dim) else (dim, dim)
    for values in assignments:
        expected = eval(text, {}, values)
        assert evaluate(dim, values) == expected
        assert eval(str(dim), {}, values) == expected
        assert (low is None or low <= expected) and (high is None or expected <= high)


@settings(derandomize=True, deadline=None, max_examples=examples(400))
@given(EXPRESSIONS)
def test_what_is_printed_is_read_back_as_the_same_object(text: str) -> None:
    dim = parse_expression(text)
    assert type(parse_expression(str(dim))) is type(dim) and parse_expression(str(dim)) == dim
    if isinstance(dim, Dim):
        assert parse_dim(str(dim)) is dim
        assert substitute(dim, {"absent": 1}) is dim


@settings(derandomize=True, deadline=None, max_examples=examples(200))
@given(EXPRESSIONS, EXPRESSIONS, POSITIVE)
def test_substitution_is_evaluation_in_two_steps(text: str, inner: str, values: dict[str, int]) -> None:
    dim, replacement = parse_expression(text), parse_expression(f"max({inner}, 1)")
    expected = evaluate(dim, values | {"N": evaluate(replacement, values)})
    assert evaluate(substitute(dim, {"N": replacement}), values) == expected
    assert evaluate(
        substitute(dim, {name: value for name, value in values.items() if name != "N"}), values
    ) == evaluate(dim, values)


@settings(derandomize=True, deadline=None, max_examples=examples(200))
@given(st.lists(EXPRESSIONS, min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_the_order_of_building_does_not_show(texts: list[str], random: Random) -> None:
    dims = [parse_expression(text) for text in texts]
    shuffled = list(dims)
    random.shuffle(shuffled)
    for combine in (sum_dims, lambda ds: dim_max(*ds), lambda ds: dim_min(*ds)):
        assert str(combine(dims)) == str(combine(shuffled))
    assert product(dims[:2]) == product(dims[1::-1])
    assert sum_dims(dims) == (sum_dims(dims[:1]) + sum_dims(dims[1:]))


LINEAR = st.tuples(st.integers(-9, 9), st.integers(0, 5)).map(lambda p: p[1] * N + p[0] + A)


@settings(derandomize=True, deadline=None, max_examples=examples(200))
@given(LINEAR, st.integers(1, 12), st.integers(1, 12), st.integers(-3, 3))
def test_regrouped_quotients_are_the_same(dim: Dim, a: int, b: int, shift: int) -> None:
    assert (dim // a) // b == dim // (a * b)
    assert (dim + shift * a) // a == dim // a + shift
    assert (b * dim) // (a * b) == dim // a
    assert a * (dim // a) + dim % a == dim
    assert sum_dims((dim + i) // a for i in range(a)) == dim
    assert (dim // a + shift) // b == (dim + a * shift) // (a * b)
    assert ceildiv(dim, a) == -((-dim) // a)


@settings(derandomize=True, deadline=None, max_examples=examples(200))
@given(LINEAR, LINEAR, LINEAR, st.integers(0, 4))
def test_extrema_obey_the_laws_of_a_lattice(a: Dim, b: Dim, c: Dim, factor: int) -> None:
    assert dim_max(a, b) + dim_min(a, b) == a + b
    assert dim_max(a + c, b + c) == dim_max(a, b) + c
    assert dim_max(a * factor, b * factor) == dim_max(a, b) * factor
    assert dim_max(dim_max(a, b), c) == dim_max(a, dim_max(b, c)) == dim_max(c, b, a)
    assert dim_min(a, b, c) == -dim_max(-a, -b, -c)
    assert dim_min(dim_max(a, b), a) == a == dim_max(dim_min(a, b), a)


@settings(derandomize=True, deadline=None, max_examples=60)
@given(EXPRESSIONS.filter(lambda text: "//N" not in text and "//A" not in text and "//k" not in text), VALUES)
def test_sympy_agrees(text: str, values: dict[str, int]) -> None:
    symbols = {name: sympy.Symbol(name, integer=True, nonnegative=True) for name in NAMES}
    scope = symbols | {"min": sympy.Min, "max": sympy.Max}
    theirs = sympy.sympify(eval(text, {}, scope))
    ours = sympy.sympify(eval(str(parse_expression(text)), {}, scope))
    at_values = {symbols[name]: value for name, value in values.items()}
    assert theirs.subs(at_values) == ours.subs(at_values) == evaluate(parse_expression(text), values)


# Names -------------------------------------------------------------------------------------------------------------


@settings(derandomize=True, deadline=None, max_examples=examples(400))
@given(st.text())
def test_every_name_survives_byte_for_byte(name: str) -> None:
    assert str(symbol(name)) == name
    assert symbols_of(symbol(name) * 2 + 1) == {name}
    parsed = parse_dim(name)
    assert isinstance(parsed, Dim)
    assert parsed is symbol(name) or str(parse_expression(str(parsed))) == str(parsed)


@settings(derandomize=True, deadline=None, max_examples=examples(400))
@given(st.text())
def test_a_name_in_brackets_is_read_back(name: str) -> None:
    read_back(name)


def read_back(name: str) -> None:
    dim = symbol(name) // 2
    assert isinstance(dim, Dim)
    assert parse_expression(str(dim)) is dim
    if is_spellable(dim):
        assert eval(str(dim), {}, {name: 7}) == 3


@pytest.mark.parametrize(
    "name", ["A\u00b7", "e\u0301", "\u2118", "\u1369", "\u0663", "\ufb01", "K\u0307", "__debug__", "a.b"]
)
def test_names_of_letters_that_few_know_are_read_back(name: str) -> None:
    read_back(name)


def test_what_is_left_out_for_another_still_rules_out_a_third() -> None:
    """A + N//A is at least A, and A at least A//N, which is all that proves the first to be larger than the last."""
    texts = ["A", "A//N", "A + N//A"]
    found = {str(dim_max(*map(parse_expression, each))) for each in itertools.permutations(texts)}
    assert found == {"A + N//A"}


@pytest.mark.parametrize(
    "name", ["batch-size", "2N", "lambda", "min", "max", "__debug__", "\ufb01", "", "a b", "é-1", "N + 1"]
)
def test_an_expression_over_a_name_that_is_no_identifier_has_no_spelling(name: str) -> None:
    assert is_spellable(symbol(name))
    assert not is_spellable(symbol(name) // 2)
    assert not is_spellable(dim_min(N, symbol(name)))
    assert str(symbol(name) // 2) == f"[{name}]//2"


@pytest.mark.parametrize(
    ("dim", "text"),
    [(3, "3"), (-3, "-3"), (N, "N"), (symbol("batch-size"), "[batch-size]"), (symbol("2N") + 1, "[2N] + 1")],
)
def test_within_an_expression_a_name_that_is_no_identifier_stands_in_brackets(dim: DimLike, text: str) -> None:
    assert spell_inside(dim) == text
    assert parse_expression(text) == dim


def test_a_large_product_is_written_with_names_in_brackets() -> None:
    size = symbol("batch-size")
    [atom] = large_atoms(product([size] * 17))
    assert spell_large(atom, atom.parts) == f"({'*'.join(['[batch-size]'] * 16)})*[batch-size]"


def test_atoms_come_in_the_order_of_the_terms() -> None:
    names = [f"s{place:02}" for place in range(60)]
    total = sum_dims([*map(symbol, names), *(symbol(name) // 2 for name in names)])
    assert [atom.name for atom in atoms_by_level([total])] == [*names, *names]


@pytest.mark.parametrize("dim", [3, N, N + 1, symbol("é"), symbol("_x") // 2])
def test_what_can_be_spelled(dim: DimLike) -> None:
    assert is_spellable(dim)


@pytest.mark.parametrize(
    ("dim", "names"), [(3, set()), (N, {"N"}), (dim_min(N, A // K) + N, {"N", "A", "k"}), (N - N, set())]
)
def test_symbols_of(dim: DimLike, names: set[str]) -> None:
    assert symbols_of(dim) == names


# Objects -----------------------------------------------------------------------------------------------------------


def test_a_constant_is_an_int_and_no_dim_equals_one() -> None:
    assert type(N - N + 3) is int
    assert type(dim_min(N, N) - N) is int
    assert ceildiv(7, 2) == 4 and dim_max(2, 5) == 5 and sum_dims([]) == 0 and product([]) == 1
    assert N != 0 and N + 1 != 1


def test_equal_dims_are_one_object_also_when_copied() -> None:
    one, other = (N + 1) // 2 + A, A - (-N - 1) // -2 * -1
    assert one is other and hash(one) == hash(other)
    assert copy.copy(one) is one and copy.deepcopy({"d": one})["d"] is one


def test_threads_share_the_objects() -> None:
    found: list[list[int]] = []

    def build() -> None:
        dims = [((symbol(f"t{i}") + 1) // 3 + i) * symbol("u") for i in range(300)]
        found.append([id(dim) for dim in dims])
        barrier.wait()

    barrier = threading.Barrier(4)
    threads = [threading.Thread(target=build) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({tuple(ids) for ids in found}) == 1


def test_dims_that_nobody_holds_are_forgotten() -> None:
    gc.collect()
    before = len(storage._DIMS)
    for index in range(20_000):
        symbol(f"gone{index}") + index
    gc.collect()
    assert len(storage._DIMS) - before < 100


def test_numbers_are_unbounded() -> None:
    huge = 10**6000
    assert evaluate((huge * N + 1) // 2, {"N": 3}) == (3 * huge + 1) // 2
    assert parse_expression(str(2**32 * N + huge + 1)) == 2**32 * N + huge + 1
    assert str(N - huge) == "N - 1" + "0" * 6000


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize(
    "made",
    [
        lambda number: number,
        lambda number: N + number,
        lambda number: N * number + 1,
        lambda number: A * N * number + K,
        lambda number: A + N // abs(number),
    ],
    ids=["a number", "a summand", "a factor", "a factor of a product", "a divisor"],
)
def test_numbers_of_more_than_64_bits_are_huge(made: Callable[[int], DimLike], sign: int) -> None:
    assert has_huge_number(made(sign * 2**64))
    assert not has_huge_number(made(sign * (2**64 - 1)))
