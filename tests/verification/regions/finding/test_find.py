"""The regions of two models: their nodes, the values at their border, and what belongs to them besides."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from splitgraph.inference import infer_model
from splitgraph.verification.models.model_pair import ComparedModel
from splitgraph.verification.regions.finding.find import ModelRegions

from ..model_pairs import Pair

F, I64 = np.float32, np.int64
LINE, TWO = "float[N, 3] x => float[N, 3] y", "float[N, 3] x => float[N, 3] y, float[N, 3] z"
K: dict[str, Any] = {"c": F(2), "d": F(3), "w": np.eye(3, dtype=F), "one": I64([1])}


def regions_of(pair: Pair) -> ModelRegions:
    before, after = (ComparedModel(model, model, infer_model(model, fill=False)) for model in pair.models())
    return ModelRegions(before, after)


def told(pair: Pair) -> list[str]:
    """Return each region as "nodes before > nodes after | inputs > outputs"; nodes of the context are in brackets, and
    values have the names of the first model.
    """
    found = regions_of(pair)
    texts = []
    for region in found.regions:
        kept = {found.partners[index] for index in region.context}
        nodes = []
        for side, indices, context in zip(
            found.sides, (region.before, region.after), (region.context, kept), strict=True
        ):
            names = [(side.nodes[index].op_type, index in context) for index in indices]
            nodes.append(" ".join(f"[{name}]" if is_kept else name for name, is_kept in names))
        borders = (" ".join(border.before for border in side) for side in (region.inputs, region.outputs))
        texts.append(" | ".join((" > ".join(nodes), " > ".join(borders))))
    return texts


def pair(before: str, after: str, signature: str = LINE, **options: Any) -> Pair:
    return Pair(signature, before, after, constants=K, **options)


WITHOUT = {
    "the same": pair("a = Mul(x, c) y = Relu(a)", "a = Mul(x, c) y = Relu(a)"),
    "renamed values": pair("a = Mul(x, c) y = Relu(a)", "b = Mul(x, c) y = Relu(b)"),
    "another order": pair("a = Mul(x, c) b = Add(x, d) y = Sub(a, b)", "b = Add(x, d) a = Mul(x, c) y = Sub(a, b)"),
    "an equal constant": pair("y = Mul(x, c)", "k = Constant<value = float {2.0}>() y = Mul(x, k)"),
    "the same weights under other names": pair(
        "y = MatMul(x, w)", "y = MatMul(x, u)", changed={"u": np.eye(3, dtype=F)}
    ),
    "another opset of the same meaning": pair("y = Relu(x)", "y = Relu(x)", opset=13, opset_after=18),
    "nodes that nobody reads": pair("y = Neg(x)", "a = Exp(x) b = Mul(a, c) y = Neg(x)"),
    "names in bodies": pair(
        "m = ReduceMax<keepdims = 0>(x) g = Greater(m, c) y = If(g) <then_branch = t () => (float[N, 3] a) "
        "{ a = Neg(x) }, else_branch = e () => (float[N, 3] b) { b = Abs(x) }>",
        "m = ReduceMax<keepdims = 0>(x) g = Greater(m, c) y = If(g) <then_branch = t () => (float[N, 3] p) "
        "{ p = Neg(x) }, else_branch = e () => (float[N, 3] q) { q = Abs(x) }>",
    ),
}


@pytest.mark.parametrize("name", WITHOUT)
def test_models_without_regions(name: str) -> None:
    assert told(WITHOUT[name]) == []


CHOICE = (
    "m = ReduceMax<keepdims = 0>(x) g = Greater(m, c) y = If(g) <then_branch = t () => (float[N, 3] a) "
    "{{ k = Constant<value = float {{{}}}>() a = Mul(x, k) }}, else_branch = e () => (float[N, 3] b) {{ b = Neg(x) }}>"
)
CALL = (
    '<opset_import: ["": 18], domain: "local"> f (a) => (b) {{ k = Constant<value_float = {}>() b = Mul(a, k) }}'
    ' <opset_import: ["": 18, "local": 1], domain: "local"> h (a) => (b) {{ n = Neg(a) b = local.f(n) }}'
)
FOUND: dict[str, tuple[Pair, list[str]]] = {
    # Nodes.
    "another operator": (
        pair("a = Mul(x, c) b = Exp(a) y = Tanh(b)", "a = Mul(x, c) b = Log(a) y = Tanh(b)"),
        ["Exp > Log | a > b"],
    ),
    "one node as two": (pair("y = Add(x, x)", "a = Identity(x) y = Add(a, x)"), ["Add > Identity Add | x > y"]),
    "two nodes as one": (
        pair("a = Sigmoid(x) b = Mul(x, a) y = Exp(b)", "b = HardSwish(x) y = Exp(b)"),
        ["Sigmoid Mul > HardSwish | x > b"],
    ),
    "another attribute": (
        pair("y = Softmax<axis = 0>(x)", "y = Softmax<axis = 1>(x)"),
        ["Softmax > Softmax | x > y"],
    ),
    # What is equal is found when both sides run.
    "a written default": (pair("y = Softmax(x)", "y = Softmax<axis = -1>(x)"), ["Softmax > Softmax | x > y"]),
    "swapped names": (
        pair("a = Mul(x, c) b = Mul(x, d) y = Sub(a, b)", "b = Mul(x, c) a = Mul(x, d) y = Sub(b, a)"),
        ["Mul > Mul | x > a", "Mul > Mul | x > b", "Sub > Sub | a b > y"],
    ),
    "another meaning at another opset": (
        pair("y = Softmax(x)", "y = Softmax(x)", opset=12, opset_after=13),
        ["Softmax > Softmax | x > y"],
    ),
    "swapped inputs": (
        pair("y = Sub(x, v)", "y = Sub(v, x)", "float[N, 3] x, float[N, 3] v => float[N, 3] y"),
        ["Sub > Sub | x v > y"],
    ),
    "a node that is gone": (
        pair("a = Abs(x) b = Abs(a) y = Exp(b)", "b = Abs(x) y = Exp(b)"),
        ["Abs Abs > Abs | x > b"],
    ),
    # Constants.
    "a changed weight, all of its readers": (
        pair(
            "a = MatMul(x, w) b = MatMul(a, w) y = Exp(b)",
            "a = MatMul(x, w) b = MatMul(a, w) y = Exp(b)",
            changed={"w": 2 * np.eye(3, dtype=F)},
        ),
        ["MatMul > MatMul | x > a", "MatMul > MatMul | a > b"],
    ),
    "a changed weight of one reader": (
        pair("a = Mul(x, c) y = Add(a, d)", "a = Mul(x, c) y = Add(a, d)", changed={"d": F(4)}),
        ["Add > Add | a > y"],
    ),
    "a folded constant": (
        pair("k = Add(c, d) y = Mul(x, k)", "y = Mul(x, e)", changed={"e": F(5)}),
        ["Add Mul > Mul | x > y"],
    ),
    "a constant output": (
        pair(
            "y = Neg(x) z = Add(c, d)",
            "y = Neg(x) z = Identity(e)",
            "float[N, 3] x => float[N, 3] y, float z",
            changed={"e": F(5)},
        ),
        ["Add > Identity |  > z"],
    ),
    # Several.
    "two that meet at a value of both": (
        pair("a = Add(x, x) y = Add(a, a)", "a = Mul(x, c) y = Mul(a, c)"),
        ["Add > Mul | x > a", "Add > Mul | a > y"],
    ),
    "two that share an input": (
        pair("y = Add(x, x) z = Exp(x)", "y = Mul(x, c) z = Log(x)", TWO),
        ["Add > Mul | x > y", "Exp > Log | x > z"],
    ),
    "one of two outputs": (pair("y = Exp(x) z = Neg(x)", "y = Log(x) z = Neg(x)", TWO), ["Exp > Log | x > y"]),
    "an inner value that is read twice": (
        pair("a = Exp(x) y = Neg(a) z = Abs(a)", "p = Log(x) q = Log(x) y = Neg(p) z = Abs(q)", TWO),
        ["Exp Neg Abs > Log Neg Abs | x > y z"],
    ),
    "swapped outputs": (
        pair("y, z = Split<num_outputs = 2>(x)", "z, y = Split<num_outputs = 2>(x)", TWO),
        ["Split > Split | x > y z"],
    ),
    # Bodies and functions.
    "a weight in a body": (pair(CHOICE.format(2), CHOICE.format(3)), ["If > If | g x > y"]),
    "a function of a function": (
        pair("a = Exp(x) y = local.h(a)", "a = Exp(x) y = local.h(a)", functions=(CALL.format(2.0), CALL.format(3.0))),
        ["h > h | a > y"],
    ),
    "a function that is inlined": (
        pair("y = local.f(x)", "y = Mul(x, c)", functions=(CALL.format(2.0), "")),
        ["f > Mul | x > y"],
    ),
    # Context.
    "a Relu before": (
        pair("r = Relu(x) y = Pow(r, c)", "r = Relu(x) y = Mul(r, r)"),
        ["[Relu] Pow > [Relu] Mul | x > y"],
    ),
    "a Cast and a Clip before": (
        pair(
            "f = Cast<to = 1>(x) k = Clip(f, c, d) y = Exp(k)",
            "f = Cast<to = 1>(x) k = Clip(f, c, d) y = Log(k)",
            "int8[N] x => float[N] y",
        ),
        ["[Cast] [Clip] Exp > [Cast] [Clip] Log | x > y"],
    ),
    "what one side reads, computed from what the other one reads": (
        pair("z = Mul(x, c) y = Sub(z, d)", "z = Mul(x, c) n = Add(x, x) y = Add(n, d)", TWO),
        ["[Mul] Sub > [Mul] Add Add | x > z y"],
    ),
    "nothing that lets all numbers pass": (
        pair("n = Neg(x) y = Exp(n)", "n = Neg(x) y = Log(n)"),
        ["Exp > Log | n > y"],
    ),
}


@pytest.mark.parametrize("name", FOUND)
def test_the_regions_of_two_models(name: str) -> None:
    models, expected = FOUND[name]
    assert told(models) == expected


def test_regions_that_differ_are_joined_with_what_is_between() -> None:
    found = regions_of(
        pair(
            "a = Exp(x) b = Neg(a) e = Tanh(b) y = Add(e, c) z = Abs(a)",
            "a = Log(x) b = Neg(a) e = Tanh(b) y = Sub(e, c) z = Abs(a)",
            TWO,
        )
    )
    assert [region.before for region in found.regions] == [(0,), (3,)]
    joined = found.joined(found.regions)
    assert (joined.before, joined.after, joined.context) == ((0, 1, 2, 3), (0, 1, 2, 3), {1, 2})
    assert [border.before for border in joined.outputs] == ["a", "y"]


# The values in which 0.0 and -0.0 are not the same.
SIGNS = {
    "a divisor": ("a = Neg(x) b = Exp(x) y = Div(b, a)", "a x"),
    "a reciprocal behind a product": ("a = Mul(x, c) y = Reciprocal(a)", "a c x"),
    "a sum": ("a = Add(x, c) y = Reciprocal(a)", "a"),
    "a dividend": ("a = Neg(x) b = Exp(x) y = Div(a, b)", "b"),
    "an odd function": ("a = Sin(x) y = Reciprocal(a)", "a x"),
    "a text": ("a = Neg(x) y = Cast<to = 8>(a)", "a x"),
    "nothing": ("a = Neg(x) y = Exp(a)", ""),
}


@pytest.mark.parametrize("name", SIGNS)
def test_where_signs_of_zeros_matter(name: str) -> None:
    body, names = SIGNS[name]
    assert sorted(regions_of(pair(body, body)).signs_matter) == names.split()


def test_values_that_both_models_compute() -> None:
    found = regions_of(pair("a = Exp(x) b = Neg(a) y = Abs(b)", "k = Exp(x) b = Sub(k, c) y = Abs(b)"))
    assert [tuple(border) for border in found.common_values()] == [("a", "k"), ("b", "b"), ("y", "y")]
