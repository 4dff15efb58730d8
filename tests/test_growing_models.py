"""No file makes inference slow: four times the model is about four times the work, the memory and the text."""

from __future__ import annotations

import cProfile
import sys
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from functools import partial, partialmethod
from pathlib import Path
from typing import Any, NamedTuple

import onnx
import pytest
from growing_models import FAMILIES, REWRITTEN, Family
from onnx import TensorProto, helper

import splitgraph
from splitgraph.conversion.cache import ConversionCache
from splitgraph.conversion.ladder import Ladder
from splitgraph.dim import (
    Dim,
    Facts,
    arithmetic,
    dim_max,
    dim_min,
    evaluate,
    parse_dim,
    parse_expression,
    product,
    substitute,
    sum_dims,
    symbol,
)
from splitgraph.dim.atoms import LARGE, MOST_FACTORS, MOST_WRITTEN, all_atoms, degree_of, size_of
from splitgraph.inference.walk import Walk

sys.path.append(str(Path(__file__).parents[1] / "benchmarks"))

from called_functions import MODELS as MODELS_OF_BLOCKS

# Four times as much, and a logarithm of some thousands more.
_GROWTH = 5.5

N, M = symbol("N"), symbol("M")


class Cost(NamedTuple):
    """What one inference took: calls of functions, terms of the dimensions that are held, characters of the result."""

    calls: int
    terms: int
    characters: int


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> int:
    """A lower limit of what a dimension holds, so that small models reach it; the limit."""
    limit = 40
    monkeypatch.setattr(arithmetic, "MOST_WRITTEN", limit)
    return limit


def _calls(run: Callable[[], object]) -> int:
    profile = cProfile.Profile()
    profile.runcall(run)
    entries: Any = profile.getstats()
    return sum(entry.callcount for entry in entries)


def _cost(family: Family, size: int) -> tuple[Cost, splitgraph.Analysis]:
    model, found = family.make(size), list[splitgraph.Analysis]()
    splitgraph.infer(family.make(2))
    _forget_answers()
    calls = _calls(lambda: found.append(splitgraph.infer(model)))
    analysis = found[0]
    texts = [str(each) for each in (*analysis.types.values(), *analysis.obligations, *analysis.diagnostics)]
    dims = set(_dims_of(analysis))
    for atom in all_atoms(dims):
        dims.update(part for part in atom.parts if isinstance(part, Dim))
    return Cost(calls, sum(len(dim.terms) for dim in dims), sum(map(len, texts))), analysis


def _forget_answers() -> None:
    """Forget what was decided about dimensions, which other tests may have asked for a small model alone."""
    for name, module in list(sys.modules.items()):
        for held in vars(module).values() if name.startswith("splitgraph.dim.") else ():
            if hasattr(held, "cache_clear"):
                held.cache_clear()


def _dims_of(analysis: splitgraph.Analysis) -> list[Dim]:
    return [dim for value in analysis.types.values() for dim in value.shape or () if isinstance(dim, Dim)]


@pytest.mark.parametrize("family", FAMILIES.values(), ids=FAMILIES)
@pytest.mark.sample(6)
def test_four_times_the_model_is_four_times_the_work(family: Family, narrow: int) -> None:
    small, _ = _cost(family, family.size)
    large, analysis = _cost(family, 4 * family.size)
    assert large.calls <= _GROWTH * small.calls
    assert large.terms <= _GROWTH * small.terms
    assert large.characters <= _GROWTH * small.characters
    dims = _dims_of(analysis)
    assert max(map(size_of, dims), default=0) <= narrow
    assert max(map(degree_of, dims), default=0) <= MOST_FACTORS


@pytest.mark.parametrize("make", MODELS_OF_BLOCKS.values(), ids=MODELS_OF_BLOCKS)
@pytest.mark.parametrize("target", [12, 18])
def test_nodes_of_functions_are_inferred_and_converted_once(
    make: Callable[[int], onnx.ModelProto], target: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Equal nodes are in another function each."""
    done = list[str]()
    for owner, name in ((Walk, "_visit"), (Ladder, "_convert"), (ConversionCache, "keep_split")):
        follow = getattr(owner, name)
        counted = partial(_counted, follow, done, name)
        monkeypatch.setattr(owner, name, partialmethod(counted))
    change = splitgraph.upgrade if target > 13 else splitgraph.downgrade
    counts = []
    for blocks in (20, 80):
        done.clear()
        change(make(blocks), target)
        counts.append(Counter(done))
    assert counts[0] == counts[1]
    assert counts[0]["_visit"] >= 8


def _counted(follow: Callable[..., Any], done: list[str], name: str, owner: Any, *given: Any, **options: Any) -> Any:
    done.append(name)
    return follow(owner, *given, **options)


@pytest.mark.parametrize("make", MODELS_OF_BLOCKS.values(), ids=MODELS_OF_BLOCKS)
def test_four_times_the_functions_are_four_times_the_work(make: Callable[[int], onnx.ModelProto]) -> None:
    for run in (splitgraph.infer, partial(splitgraph.upgrade, opset=18)):
        run(make(2))
        small, large = (_calls(partial(run, make(blocks))) for blocks in (50, 200))
        assert large <= _GROWTH * small


# What each verb does; a refusal is work, too.
VERBS: dict[str, Callable[[onnx.ModelProto], object]] = {
    "infer": splitgraph.infer,
    "upgrade": partial(splitgraph.upgrade, opset=24),
    "downgrade": partial(splitgraph.downgrade, opset=12),
    "to split": partial(splitgraph.convert, to="split"),
    "explicit lengths": partial(splitgraph.convert, to="split", explicit_lengths=True),
    "to VariadicSplit": partial(splitgraph.convert, to="variadic-split"),
    "to slices": partial(splitgraph.convert, to="slice"),
    "for a target": partial(splitgraph.convert, target="opencv"),
    "check": partial(splitgraph.check, target=["ncnn", "coreml"]),
}


@pytest.mark.parametrize("family", REWRITTEN.values(), ids=REWRITTEN)
@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_four_times_the_model_is_four_times_the_work_of_each_verb(
    verb: Callable[[onnx.ModelProto], object], family: Family
) -> None:
    def run(size: int) -> int:
        model = family.make(size)
        return _calls(partial(_try, verb, model))

    run(2)
    assert run(4 * family.size) <= _GROWTH * run(family.size)


def _try(verb: Callable[[onnx.ModelProto], object], model: onnx.ModelProto) -> None:
    with suppress(splitgraph.ConversionError):
        verb(model)


# Texts of dimensions, as a file may declare them: a text of n.
TEXTS: dict[str, Callable[[int], str]] = {
    "a maximum": lambda n: f"max({', '.join(f'd{i}' for i in range(n))})",
    "a sum": lambda n: " + ".join(f"d{i}" for i in range(n)),
    "a sum of quotients": lambda n: " + ".join(f"N//{i + 2}" for i in range(n)),
    "a power": lambda n: "*".join(["N"] * n),
    "a product of sums": lambda n: "*".join(f"(d{i} + 1)" for i in range(n)),
    "nested quotients": lambda n: "(" * n + "N" + "".join(f" + d{i})//3" for i in range(n)),
    "nested minima": lambda n: "min(" * n + "N" + "".join(f" + 1, d{i})" for i in range(n)),
    "nested remainders": lambda n: "(" * n + "N" + "".join(f" + d{i}) % 7" for i in range(n)),
}


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.usefixtures("narrow")
def test_four_times_the_text_is_four_times_the_work(text: Callable[[int], str]) -> None:
    small, large = (_calls(lambda size=size: parse_dim(text(size))) for size in (50, 200))
    assert large <= _GROWTH * small


# What a large atom is -----------------------------------------------------------------------------------------------


def _power(base: Any, exponent: int) -> Any:
    return product([base] * exponent)


def _squared(base: Any, times: int) -> Any:
    for _ in range(times):
        base = base * base
    return base


WIDE = [symbol(f"x{index}") for index in range(2 * MOST_WRITTEN)]
LARGE_VALUES = {
    "a power": _squared(N, 5),
    "a product of sums": product([symbol(f"x{index}") + N for index in range(40)]),
    "a wide sum": sum_dims(WIDE),
    "a wide sum with factors": sum_dims([index * each for index, each in enumerate(WIDE)]) - 7,
    "a quotient of a large one": (_squared(N + 1, 5) + 3) // 4,
    "a remainder by a large one": M % (_squared(N + 1, 5) + 1),
    "a difference of large ones": _squared(N + 1, 5) - sum_dims(WIDE),
}
SIZES = {f"x{index}": index % 5 for index in range(2 * MOST_WRITTEN)} | {"N": 2, "M": 10**40}


def test_what_is_within_the_bounds_is_multiplied_out() -> None:
    assert not any(atom.kind in LARGE for m, _ in _power(N, MOST_FACTORS).terms for atom in m)
    assert str(_power(N, 3)) == "N*N*N"
    assert str((N + 1) * (M + 2)) == "M*N + M + 2*N + 2"
    assert parse_expression(str(sum_dims(WIDE[:MOST_WRITTEN]))) is sum_dims(WIDE[:MOST_WRITTEN])


@pytest.mark.parametrize("value", LARGE_VALUES.values(), ids=LARGE_VALUES)
def test_a_large_value_is_equal_to_itself_and_small_to_write(value: Dim) -> None:
    assert size_of(value) <= MOST_WRITTEN
    assert any("[large, " in name for name in value.names)
    assert value - value == 0
    assert 3 * value - value is 2 * value
    negative = -value
    assert -negative is value
    assert (6 * value) // 3 is 2 * value
    assert substitute(value, {"absent": 1}) is value
    assert Facts().prove_eq(value + M, M + value)
    assert not Facts().prove_eq(value, M)


def test_the_largest_of_many_is_found_in_any_order() -> None:
    largest = dim_max(*WIDE, 3)
    assert largest is dim_max(3, *reversed(WIDE))
    assert evaluate(largest, SIZES) == 4
    assert evaluate(dim_min(*WIDE, 3), SIZES) == 0


EXPECTED = {
    "a power": 2**32,
    "a product of sums": (2 * 3 * 4 * 5 * 6) ** 8,
    "a wide sum": sum(index % 5 for index in range(2 * MOST_WRITTEN)),
    "a wide sum with factors": sum(index * (index % 5) for index in range(2 * MOST_WRITTEN)) - 7,
    "a quotient of a large one": (3**32 + 3) // 4,
    "a remainder by a large one": 10**40 % (3**32 + 1),
    "a difference of large ones": 3**32 - sum(index % 5 for index in range(2 * MOST_WRITTEN)),
}


@pytest.mark.parametrize("name", LARGE_VALUES)
def test_a_large_value_is_evaluated_exactly(name: str) -> None:
    value = LARGE_VALUES[name]
    assert evaluate(value, SIZES) == EXPECTED[name]
    assert substitute(value, SIZES) == EXPECTED[name]
    assert substitute(value, {"N": symbol("K")}).symbols == {"K" if name == "N" else name for name in value.symbols}
    low, high = value.interval
    assert low is None or low <= EXPECTED[name]
    assert high is None or high >= EXPECTED[name]


def test_bounds_of_large_values_are_known() -> None:
    assert _squared(N + 2, 5).interval[0] == 2**32
    assert sum_dims(WIDE).interval[0] == 0
    assert (sum_dims(WIDE) - 3).interval[0] == -3
    assert _squared(N - 2, 5).interval[0] is None
    assert Facts().prove_ge(_squared(N + 2, 30), 2**64)


def test_a_number_that_would_fill_any_memory_is_refused() -> None:
    for ask in (evaluate, substitute):
        with pytest.raises(OverflowError, match="too many digits"):
            ask(_squared(N, 40), {"N": 3})
        assert ask(_squared(N, 40), {"N": 1}) == 1


# As users see it ----------------------------------------------------------------------------------------------------


def test_a_large_dimension_is_shown_as_a_generated_symbol_with_its_meaning() -> None:
    sixteen = "*".join(["N"] * 16)
    for times, shown in ((4, sixteen), (5, "unk0"), (6, "unk0*unk0")):
        analysis = splitgraph.infer(FAMILIES["squared"].make(times))
        assert [str(dim) for dim in analysis.types["y"].shape] == [shown]
        told = [str(each) for each in analysis.obligations]
        assert told == ([] if times == 4 else [f"unk0 == ({sixteen})*({sixteen})"])


def test_equal_large_dimensions_are_shown_alike() -> None:
    shape = [f"d{index}" for index in range(400)]
    inputs = [helper.make_tensor_value_info(f"x{i}", TensorProto.FLOAT, [name]) for i, name in enumerate(shape)]
    names = [f"x{i}" for i in range(400)]
    nodes = [helper.make_node("Concat", order, [out], axis=0) for order, out in ((names, "y"), (names[::-1], "z"))]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, [None]) for name in "yz"]
    graph = helper.make_graph(nodes, "g", inputs, outputs)
    analysis = splitgraph.infer(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8))
    assert analysis.types["y"] == analysis.types["z"]
    assert [str(dim) for dim in analysis.types["y"].shape] == ["unk0"]
    assert f"unk0 == {' + '.join(sorted(shape))}" in [str(each) for each in analysis.obligations]
