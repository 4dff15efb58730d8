"""Broadcasts of dimensions of which neither is known: the larger one, and what is assumed for that."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from pathlib import Path

import numpy as np
import onnx
import pytest
from node_models import infer_nodes, model_of
from onnx import helper
from onnx.reference import ReferenceEvaluator
from typical_models import INT64, Builder, value

import splitgraph
from splitgraph.dim import Dim, DimLike, evaluate, parse_expression, symbols_of
from splitgraph.inference import infer_model, walk_model
from splitgraph.inference.analysis import Analysis
from splitgraph.model.value_type import ValueType

MODELS = sorted((Path(__file__).parents[2] / "models").glob("gpt2*.onnx"))

# One dimension, another one, what they broadcast to, and what is assumed for that.
PAIRS = {
    "two names": ("N", "M", "max(M, N)", ["M >= 1", "N >= 1"]),
    "one name": ("N", "N", "N", []),
    "a sum and a name": ("P + T", "TT", "max(P + T, TT)", ["P + T >= 1", "TT >= 1"]),
    "a sum and its part": ("P + T", "T", "P + T", ["T >= 1"]),
    "cut off": ("min(4, P + T)", "P + T", "P + T", []),
    "a slice of a mask": ("min(4, P + T) - min(4, P)", "T", "T", ["3 >= P"]),
    "a slice of a mask and a name": (
        "min(4, P + T) - min(4, P)",
        "M",
        "M + T + max(-M, P - 4, -T) - max(0, P + T - 4)",
        ["3 >= P", "M >= 1", "T >= 1"],
    ),
    "never empty": ("N + 1", "M + 1", "max(M, N) + 1", []),
    "one is never empty": ("N + 1", "M", "max(M, N + 1)", ["M >= 1"]),
    "at least two": ("N + 2", "M", "N + 2", []),
    "empty where the other is 1": ("N//2", "N", "None", []),
    "halves": ("N//2", "(N + 1)//2", "(N + 1)//2", ["N >= 2"]),
    "a product": ("N*M", "K", "max(M*N, K)", ["K >= 1", "M >= 1", "N >= 1"]),
    "a multiple": ("3*N", "N", "3*N", []),
    "what is left": ("max(0, N - 3)", "M", "max(M, N - 3)", ["M >= 1", "N >= 4"]),
    "one": ("1", "M", "M", []),
    "none": ("0", "M", "0", []),
    "a number": ("3", "M", "3", []),
}


def _sum_of(one: str, other: str) -> onnx.ModelProto:
    inputs = [value(name, [_declared(text)]) for name, text in (("a", one), ("b", other))]
    graph = helper.make_graph(
        [helper.make_node("Add", ["a", "b"], ["y"])], "g", inputs, [onnx.ValueInfoProto(name="y")]
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)


def _declared(text: str) -> int | str:
    # As splitgraph writes it: another spelling is a name.
    dim = parse_expression(text)
    return str(dim) if isinstance(dim, Dim) else dim


@pytest.mark.parametrize(("one", "other", "expected", "assumptions"), PAIRS.values(), ids=PAIRS)
def test_pairs(one: str, other: str, expected: str, assumptions: list[str]) -> None:
    analysis = splitgraph.infer(_sum_of(one, other))
    (dim,) = analysis.types["y"].shape or ()
    assert (str(dim), sorted(map(str, analysis.assumptions))) == (expected, assumptions)


@pytest.mark.parametrize(("one", "other"), [row[:2] for row in PAIRS.values() if row[2] != "None"])
def test_pairs_are_what_numpy_broadcasts_them_to(one: str, other: str) -> None:
    left, right = parse_expression(one), parse_expression(other)
    analysis = splitgraph.infer(_sum_of(one, other))
    claimed, needed = _dim(analysis, "y"), dict.fromkeys(analysis.assumptions, False)
    runs = 0
    for at in _sizes(sorted(symbols_of(left) | symbols_of(right))):
        try:
            (real,) = np.broadcast_shapes((evaluate(left, at),), (evaluate(right, at),))
        except ValueError:
            continue
        runs += 1
        assert all(_holds(str(each), at) for each in analysis.obligations), at
        failing = [each for each in analysis.assumptions if not _holds(str(each), at)]
        if not failing:
            assert evaluate(claimed, at) == real, at
        elif len(failing) == 1 and evaluate(claimed, at) != real:
            needed[failing[0]] = True
    assert runs > 1
    # Nothing is assumed without need, but that what a mask is cut from has elements at all.
    assert [str(each) for each, is_needed in needed.items() if not is_needed] in ([], ["T >= 1"])


# What comes later -----------------------------------------------------------------------------------------------------

LATER = {
    "equal after all": ("TT", "y = MatMul(whole, rows)", "P + T", ["P + T == TT"], []),
    "what a product needs": (
        "P + T",
        "y = MatMul(mixed, rows)",
        "P + T",
        ["P + T >= TT"],
        ["P + T >= 1", "TT >= 1"],
    ),
    "not empty after all": (
        "K + 1",
        "longer = Concat<axis=0>(ones, k) y = MatMul(mask, longer)",
        "max(P + T, TT)",
        ["K + 1 == TT"],
        ["P + T >= 1"],
    ),
}


@pytest.mark.parametrize(("rows", "body", "expected", "obligations", "assumptions"), LATER.values(), ids=LATER)
def test_what_is_required_later(
    rows: str, body: str, expected: str, obligations: list[str], assumptions: list[str]
) -> None:
    inputs = "float[1, P] past, float[1, T] new, float[1, TT] mask, float[K] k, float[1] ones"
    model = model_of(inputs, f"whole = Concat<axis=1>(past, new) mixed = Add(whole, mask) {body}")
    model.graph.input.append(value("rows", [rows, 3]))
    analysis = splitgraph.infer(model)
    assert str(_dim(analysis, "mixed", 1)) == expected
    assert [str(each) for each in analysis.obligations] == obligations
    assert sorted(map(str, analysis.assumptions)) == assumptions


def test_what_runs_only_where_an_assumption_fails_is_no_error() -> None:
    # With 0 for N, and 1 for the K + 1 of b, the sum is empty: what the product needs.
    inputs = "float[N] a, float[M] b, float[K] k, float[1] one, float[M, 3] rows, float[0, 3] none"
    body = "longer = Concat<axis=0>(one, k) p = MatMul(longer, rows) c = Add(a, b) y = MatMul(c, none)"
    analysis = splitgraph.infer(model_of(inputs, body))
    assert analysis.ok
    assert (analysis.assumptions, _dim(analysis, "c")) == ((), 0)


def test_an_error_that_is_there_at_any_size_takes_no_dimension_away() -> None:
    inputs = "float[N] a, float[M] b, float[2] c, float[3] d"
    analysis = splitgraph.infer(model_of(inputs, "y = Add(a, b) z = Add(c, d)"))
    assert [found.code for found in analysis.diagnostics] == ["SG302"]
    assert str(_dim(analysis, "y")) == "max(M, N)"
    assert [str(each) for each in analysis.assumptions] == ["N >= 1", "M >= 1"]


# Where nothing is assumed ---------------------------------------------------------------------------------------------

NOT_ASSUMED = {
    "what NonZero counts": ("bool[N] m, float[M] b", "i = NonZero(m) f = Cast<to=1>(i) y = Add(f, b)"),
    "unnamed": ("float[?] a, float[M] b", "y = Add(a, b)"),
}


@pytest.mark.parametrize(("inputs", "body"), NOT_ASSUMED.values(), ids=NOT_ASSUMED)
def test_what_is_not_assumed(inputs: str, body: str) -> None:
    analysis = splitgraph.infer(model_of(inputs, f"{body} z = Relu(y)"))
    assert str(_dim(analysis, "z", -1)) in analysis.generated
    assert analysis.assumptions == ()


def test_more_names_than_anybody_reads_are_a_generated_symbol() -> None:
    names = [f"x{place}" for place in range(9)]
    model = model_of(", ".join(f"float[N{name}] {name}" for name in names), f"y = Sum({', '.join(names)}) z = Relu(y)")
    analysis = splitgraph.infer(model)
    assert str(_dim(analysis, "z")) == "unk0"
    (told,) = analysis.obligations
    assert str(told).startswith("unk0 == min(1, max(Nx0, ")


def test_a_name_that_the_author_gives_a_count_is_not_assumed_to_be_something() -> None:
    model = model_of(*NOT_ASSUMED["what NonZero counts"])
    model.graph.value_info.append(value("i", [1, "count"], INT64))
    assert splitgraph.infer(model).assumptions == ()


def test_what_a_branch_knows_is_assumed_outside_of_it() -> None:
    # In the branch N is K + 1, so that only M can be empty there.
    inputs = "float[N] a, float[M] b, float[K] k, float[1] one, float[N, 3] rows, bool c"
    inside = "longer = Concat<axis=0>(one, k) p = MatMul(longer, rows) r = Add(a, b)"
    branches = f"<then_branch = t () => (r) {{ {inside} }}, else_branch = e () => (s) {{ s = Identity(a) }}>"
    analysis = splitgraph.infer(model_of(inputs, f"q = If (c) {branches} y = Add(a, b)"))
    told = {str(each): location for each, location in analysis.assumed_by.items()}
    assert told == {"M >= 1": "main/If#0/then_branch/Add#2", "N >= 1": "main/Add#1"}


def test_conversion_and_verification_assume_nothing() -> None:
    model = splitgraph.infer(model_of("float[N] a, float[M] b", "y = Add(a, b) z = Relu(y)")).model
    assert model.graph.value_info[0].type.tensor_type.shape.dim[0].dim_param == "max(M, N)"
    (dim,) = walk_model(model).graphs[()].types["z"].shape or ()
    assert str(dim) == "unk0"
    assert infer_model(model).assumptions == ()


def test_a_reshape_to_a_part_of_a_broadcast_needs_no_more() -> None:
    analysis = infer_nodes("float[N, 4] a, float[M, 4] b", "c = Add(a, b) s = Shape(a) y = Reshape(c, s)")
    assert [str(each) for each in analysis.obligations] == ["N >= M"]
    assert [str(each) for each in analysis.assumptions] == ["N >= 1", "M >= 1"]


# Decoders -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.name)
def test_every_dimension_of_a_decoder_is_told_by_those_of_its_inputs(path: Path) -> None:
    analysis = splitgraph.infer(path)
    assert not analysis.assumptions
    assert [str(each) for each in analysis.obligations] == ["32 >= past_len + seq"]
    assert not analysis.generated
    assert analysis.completeness.dims == analysis.completeness.known > 300


POSITIONS, HEADS, SIZE = 6, 2, 4
WIDTH = HEADS * SIZE


def _decoder(layers: int) -> onnx.ModelProto:
    """Layers of attention as exporters wrote GPT-2's: a past of P, a mask of TT, and a slice of the causal bias."""
    b = Builder()
    b.constants.append(onnx.numpy_helper.from_array(np.tri(POSITIONS, dtype=bool)[None, None], "bias"))
    inputs = [value("x", ["B", "T", WIDTH]), value("mask", ["B", "TT"])]
    hidden, penalty = "x", b.op("Unsqueeze", "mask", b.const([1, 2]))
    for layer in range(layers):
        past = [f"past_{layer}_key", f"past_{layer}_value"]
        inputs += [value(name, ["B", HEADS, "P", SIZE]) for name in past]
        hidden = b.op("Add", hidden, _attention(b, hidden, past, penalty))
    return b.model(inputs, [hidden], 17)


def _attention(b: Builder, hidden: str, past: Sequence[str], penalty: str) -> str:
    parts = b.many("Split", [b.op("MatMul", hidden, b.weight(WIDTH, 3 * WIDTH)), b.const([WIDTH] * 3)], 3, axis=-1)
    batch, length = (_size(b, hidden, axis) for axis in (0, 1))
    heads = b.op("Concat", batch, length, b.const([HEADS, SIZE]), axis=0)
    query, key, held = (b.op("Transpose", b.op("Reshape", part, heads), perm=[0, 2, 1, 3]) for part in parts)
    key, held = b.op("Concat", past[0], key, axis=2), b.op("Concat", past[1], held, axis=2)
    scores = b.op("MatMul", query, b.op("Transpose", key, perm=[0, 1, 3, 2]))
    end = _size(b, key, 2)
    rows = b.op("Slice", "bias", b.op("Sub", end, _size(b, query, 2)), end, b.const([2]))
    shown = b.op("Slice", rows, b.const([0]), end, b.const([3]))
    masked = b.op("Add", b.op("Where", shown, scores, b.const(-1e4, np.float32)), penalty)
    mixed = b.op("Transpose", b.op("MatMul", b.op("Softmax", masked, axis=-1), held), perm=[0, 2, 1, 3])
    flat = b.op("Concat", *(_size(b, mixed, axis) for axis in (0, 1)), b.const([WIDTH]), axis=0)
    return b.op("Reshape", mixed, flat)


def _size(b: Builder, name: str, axis: int) -> str:
    return b.op("Unsqueeze", b.op("Gather", b.op("Shape", name), b.const(axis)), b.const([0]))


def test_layers_invent_no_symbol() -> None:
    few, many = splitgraph.infer(_decoder(2)), splitgraph.infer(_decoder(8))
    for analysis in (few, many):
        assert not analysis.generated
        assert str(next(reversed(analysis.types.values()))) == "float32[B, T, 8]"
        assert analysis.completeness.dims == analysis.completeness.known
    # What one layer assumes is enough for all.
    assert (many.assumptions, many.obligations) == (few.assumptions, few.obligations)
    assert [str(each) for each in few.assumptions] == ["P + T >= 1", "TT >= 1"]
    assert [str(each) for each in few.obligations] == [f"{POSITIONS} >= P + T", "P + T >= TT"]


def test_conversion_invents_no_symbol_for_each_layer() -> None:
    generated = [
        {name for type in walk_model(_decoder(layers)).graphs[()].types.values() for name in _generated_in(type)}
        for layers in (2, 8)
    ]
    # One for the mask of attention against the positions, which all layers share.
    assert len(generated[0]) == len(generated[1]) == 1


def test_a_decoder_runs_as_inferred() -> None:
    model = _decoder(2)
    analysis = splitgraph.infer(model)
    model.graph.output.extend(onnx.ValueInfoProto(name=name) for node in model.graph.node for name in node.output)
    evaluator, runs = ReferenceEvaluator(model), 0
    for past, new, mask in product((0, 1, 3, POSITIONS), (1, 2), range(9)):
        at = {"B": 2, "P": past, "T": new, "TT": mask}
        shapes = {name: _shape_at(analysis, name, at) for name in (held.name for held in model.graph.input)}
        feeds = {name: np.ones(shape, np.float32) for name, shape in shapes.items()}
        try:
            results = evaluator.run(None, feeds)
        except (TypeError, ValueError):
            # What the reference evaluator makes of shapes that do not fit.
            continue
        runs += 1
        assert all(_holds(str(each), at) for each in (*analysis.assumptions, *analysis.obligations)), at
        for held, result in zip(model.graph.output, results, strict=True):
            assert _shape_at(analysis, held.name, at) == np.shape(result), (held.name, at)
    assert runs > 10


# ----------------------------------------------------------------------------------------------------------------------


def _dim(analysis: Analysis, name: str, axis: int = 0) -> DimLike:
    dim = (analysis.types[name].shape or ())[axis]
    assert dim is not None
    return dim


def _generated_in(value: ValueType) -> set[str]:
    return {name for dim in value.shape or () if isinstance(dim, Dim) for name in symbols_of(dim) if "unk" in name}


def _shape_at(analysis: Analysis, name: str, at: Mapping[str, int]) -> tuple[int, ...]:
    dims = analysis.types[name].shape or ()
    return tuple(evaluate(dim, at) if isinstance(dim, Dim) else int(dim or 0) for dim in dims)


def _sizes(names: Sequence[str]) -> Iterator[Mapping[str, int]]:
    for sizes in product(range(8), repeat=len(names)):
        yield dict(zip(names, sizes, strict=True))


def _holds(text: str, at: Mapping[str, int]) -> bool:
    relation = "==" if "==" in text else ">="
    left, right = (evaluate(parse_expression(side), at) for side in text.split(f" {relation} "))
    return left == right if relation == "==" else left >= right
