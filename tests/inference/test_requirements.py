"""`Analysis.obligations` and `Analysis.assumptions`: relations whose sides say as dimensions what their text says."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import NamedTuple

import onnx
import pytest
from growing_models import FAMILIES
from node_models import model_of
from obligation_texts import obligation_of

import splitgraph
from splitgraph.dim import Obligation, evaluate, parse_expression, sum_dims, symbol
from splitgraph.inference import infer_model
from splitgraph.options import Sizes as GivenSizes

Sizes = dict[str, int]

GPT2 = Path(__file__).parents[2] / "models" / "gpt2.opset17.onnx"
THIRDS = "int64[1] zero = {0}, int64[1] large = {9223372036854775807}, int64[1] three = {3}"


class Case(NamedTuple):
    """A model, what is said of it, and sizes: some at which all of that holds, and some at which something does not."""

    model: onnx.ModelProto
    told: list[str]
    hold: list[Sizes]
    fail: list[Sizes]
    assumes: bool = True


def named(model: onnx.ModelProto, **names: str) -> onnx.ModelProto:
    """The model with other names of dimensions, which the text format of onnx 1.20 cannot have."""
    for value in model.graph.input:
        for dim in value.type.tensor_type.shape.dim:
            if dim.dim_param in names:
                dim.dim_param = names[dim.dim_param]
    return model


CASES = {
    "nothing": Case(model_of("float[N] x", "y = Relu(x)"), [], [{"N": 0}], []),
    "equal parts": Case(
        model_of("float[N] x", "a, b = Split(x)", opset=13), ["N % 2 == 0"], [{"N": 0}, {"N": 4}], [{"N": 3}]
    ),
    "two dimensions": Case(
        model_of("float[N, 2] x, float[M, 3] y", "z = Concat<axis=1>(x, y)"),
        ["M == N"],
        [{"M": 2, "N": 2}],
        [{"M": 1, "N": 2}, {"M": 2, "N": 1}],
    ),
    "a number on the left": Case(
        onnx.load(GPT2),
        ["32 >= past_len + seq"],
        [{"past_len": 0, "seq": 32}, {"past_len": 3, "seq": 2}],
        [{"past_len": 1, "seq": 32}],
    ),
    "plainer beside another": Case(
        model_of(
            "float[H] x, float[4] y",
            "a, b, c = Split(x) s = Slice(x, zero, large, zero, three) z = Concat<axis=0>(s, y) "
            "d, e, f, g, h, i = Split(z)",
            opset=13,
            constants=THIRDS,
        ),
        ["H % 3 == 0", "(H//3 + 4) % 6 == 0"],
        [{"H": 6}, {"H": 24}],
        [{"H": 5}, {"H": 3}],
    ),
    "assumptions": Case(
        model_of("float[N] x, float[M] y", "z = Add(x, y)"),
        ["N >= 1", "M >= 1"],
        [{"M": 1, "N": 1}, {"M": 1, "N": 5}],
        [{"M": 0, "N": 1}, {"M": 1, "N": 0}],
    ),
    "a broadcast": Case(
        model_of("float[a] x, float[b] y", "z = Add(x, y) w = Relu(z)"),
        ["unk0 == min(1, a)*min(1, b)*max(a, b)"],
        [{"a": 1, "b": 5, "unk0": 5}, {"a": 0, "b": 1, "unk0": 0}, {"a": 3, "b": 3, "unk0": 3}],
        [{"a": 1, "b": 5, "unk0": 1}, {"a": 0, "b": 1, "unk0": 1}],
        assumes=False,
    ),
    "a broadcast of names that are no identifiers": Case(
        named(model_of("float[P] x, float[Q] y", "z = Add(x, y) w = Relu(z)"), P="batch-size", Q="batch-size + 1"),
        ["unk0 == min(1, [batch-size])*min(1, [batch-size + 1])*max([batch-size], [batch-size + 1])"],
        [{"batch-size": 1, "batch-size + 1": 5, "unk0": 5}],
        [{"batch-size": 1, "batch-size + 1": 5, "unk0": 1}],
        assumes=False,
    ),
    "a name that is no identifier": Case(
        named(model_of("float[P] x", "a, b = Split<num_outputs=2>(x)"), P="batch-size"),
        ["unk0 == ([batch-size] + 1)//2", "unk1 == [batch-size]//2"],
        [{"batch-size": 5, "unk0": 3, "unk1": 2}],
        [{"batch-size": 5, "unk0": 2, "unk1": 2}, {"batch-size": 5, "unk0": 3, "unk1": 3}],
    ),
    "names like relations": Case(
        named(
            model_of("float[P] x, float[Q] y", "z = Concat<axis=0>(x, y) p, q = Split(z)", opset=13),
            P="a == b",
            Q="c] >= d",
        ),
        [
            "([a == b] + [c]] >= d]) % 2 == 0",
            "unk1 == ([a == b] + [c]] >= d])//2",
            "unk0 == [a == b] + [c]] >= d]",
        ],
        [{"a == b": 1, "c] >= d": 3, "unk0": 4, "unk1": 2}],
        [{"a == b": 1, "c] >= d": 2, "unk0": 3, "unk1": 1}, {"a == b": 1, "c] >= d": 3, "unk0": 4, "unk1": 3}],
    ),
    "a large product": Case(
        FAMILIES["squared"].make(5),
        [f"unk0 == ({'*'.join('N' * 16)})*({'*'.join('N' * 16)})"],
        [{"N": 1, "unk0": 1}, {"N": 2, "unk0": 2**32}],
        [{"N": 2, "unk0": 2**31}],
    ),
}


def holds(obligation: Obligation, sizes: Sizes) -> bool:
    left, right = evaluate(obligation.lhs, sizes), evaluate(obligation.rhs, sizes)
    return left == right if obligation.relation == "==" else left >= right


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_what_is_told_holds_and_fails_where_its_text_says(case: Case) -> None:
    analysis = infer_model(case.model, assumes_nonempty=case.assumes)
    told = (*analysis.obligations, *analysis.assumptions)
    assert all(isinstance(each, splitgraph.Obligation) for each in told)
    assert [str(each) for each in told] == case.told
    for sizes in case.hold:
        assert all(holds(each, sizes) for each in told), sizes
    for sizes in case.fail:
        assert not all(holds(each, sizes) for each in told), sizes


@pytest.mark.parametrize("name", ["equal parts", "two dimensions", "a number on the left", "plainer beside another"])
def test_obligations_hold_where_the_model_is_valid(name: str) -> None:
    case = CASES[name]
    for sizes in (*case.hold, *case.fail):
        assert infer_model(case.model, GivenSizes(sizes)).ok == (sizes in case.hold), sizes


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_obligations_can_be_asked_for_pickled_and_compared(case: Case) -> None:
    analysis = infer_model(case.model, assumes_nonempty=case.assumes)
    again = infer_model(case.model, assumes_nonempty=case.assumes)
    for each, other in zip(analysis.obligations, again.obligations, strict=True):
        assert analysis.required_by[other] == analysis.required_by[each]
        loaded = pickle.loads(pickle.dumps(each))
        assert (loaded, hash(loaded), str(loaded)) == (other, hash(other), str(other))
        assert each.symbols <= {*analysis.symbols, *case.hold[0]}


# Their sides ----------------------------------------------------------------------------------------------------------

N, M = symbol("N"), symbol("M")

SIDES = {
    "solved": (Obligation(2 * N - 4, ">=", 0), "N", "2"),
    "the number on the left": (Obligation(0, ">=", N - 5), "5", "N"),
    "an equation turned round": (Obligation(-M, "==", -N - 1), "M", "N + 1"),
    "a remainder": (Obligation(N, "==", 3 * (N // 3)), "N % 3", "0"),
    "nothing in common": (Obligation(2 * N, "==", 3), "2*N", "3"),
    "a name in brackets": (Obligation(symbol("a >= b] == c"), ">=", 2), "[a >= b]] == c]", "2"),
    "numbers": (Obligation(3, "==", 4), "3", "4"),
    "the same": (Obligation(N, ">=", N), "N", "N"),
}


@pytest.mark.parametrize(("obligation", "left", "right"), SIDES.values(), ids=SIDES)
def test_a_solved_obligation_has_the_sides_of_its_text(obligation: Obligation, left: str, right: str) -> None:
    solved = obligation.solved()
    assert solved == Obligation(parse_expression(left), obligation.relation, parse_expression(right))
    assert str(solved) == str(obligation) == f"{left} {obligation.relation} {right}"
    assert solved.solved() == solved


def test_a_solved_obligation_of_a_large_dimension_says_the_same() -> None:
    names = [f"d{place}" for place in range(400)]
    obligation = Obligation(sum_dims(map(symbol, names)), ">=", 400)
    solved = obligation.solved()
    assert str(solved) == str(obligation)
    assert holds(solved, dict.fromkeys(names, 1))
    assert not holds(solved, {**dict.fromkeys(names, 1), "d7": 0})


def test_a_text_says_only_how_an_obligation_is_written() -> None:
    plain = obligation_of("unk0 == a*a + a*b")
    written = Obligation(plain.lhs, plain.relation, plain.rhs, "unk0 == a*(a + b)")
    assert (written, hash(written)) == (plain, hash(plain))
    assert (str(plain), str(written)) == ("a*a + a*b == unk0", "unk0 == a*(a + b)")
    assert written.solved() is written
