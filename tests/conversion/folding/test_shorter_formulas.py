"""What no reading says is computed by a shorter way, if there is one."""

from __future__ import annotations

import itertools

import numpy as np
import onnx
import pytest
from chain_models import model_of_chain
from folded_models import assert_equal_at, assert_same, fold, model, operators, plain_session, runtime_errors
from random_chains import random_chain

import splitgraph

SIZES = [dict(zip("NSH", sizes, strict=True)) for sizes in itertools.product((0, 1, 2, 5), repeat=3)]
ONES = "<int64[1] i0 = {0}, int64[1] i1 = {1}, int64[1] two = {2}, int64[1] c4 = {4}, int64 s0 = {0}, int64 s1 = {1}>"


def without_unread(made: onnx.ModelProto) -> onnx.ModelProto:
    read = {name for node in made.graph.node for name in node.input}
    kept = [tensor for tensor in made.graph.initializer if tensor.name in read]
    del made.graph.initializer[:]
    made.graph.initializer.extend(kept)
    return made


# Each is computed anew for every reader, as exporters do.
@pytest.mark.parametrize(
    ("body", "expected"),
    [
        # One Shape and one Gather for all that reads N and S.
        (
            f"(float[N, S] x) => (float[a, b] y, float[c, d] z) {ONES} {{ s = Shape (x) g = Gather (s, s0) "
            "h = Gather (s, s1) u = Unsqueeze (h, i0) v = Unsqueeze (g, i0) q = Concat <axis = 0> (u, v) "
            "y = Reshape (x, q) s2 = Shape (x) g2 = Gather (s2, s0) h2 = Gather (s2, s1) u2 = Unsqueeze (h2, i0) "
            "v2 = Unsqueeze (g2, i0) q2 = Concat <axis = 0> (u2, v2) r = Relu (x) z = Reshape (r, q2) }",
            ["Shape", "Gather", "Reshape", "Relu", "Reshape"],
        ),
        # Through a value that another one has the size of.
        (
            f"(float[N, S] x) => (float[a] y) {ONES} {{ r = Relu (x) s = Shape (r) g = Gather (s, i0) "
            "h = Gather (s, i1) p = Mul (g, two) q = Div (p, two) k = Concat <axis = 0> (h, q) e = ConstantOfShape (k) "
            "m = ReduceSum <keepdims = 0> (e, i0) y = Add (m, m) }",
            ["Shape", "Gather", "ConstantOfShape", "ReduceSum", "Add"],
        ),
    ],
)
def test_shorter_ways(body: str, expected: list[str]) -> None:
    before = without_unread(model(body))
    after = fold(before).model
    assert operators(after) == expected
    assert_equal_at(before, after, SIZES, least=9)


@pytest.mark.parametrize(
    "body",
    [
        # It is as short as it can be.
        f"(float[N, S] x) => (float[a] y) {ONES} {{ s = Shape (x) y = ConstantOfShape (s) }}",
        # A size that only a run knows has no shorter way.
        f"(float[N] x) => (float[a] y) {ONES} {{ k = NonZero (x) s = Shape (k) g = Gather (s, i1) "
        "y = ConstantOfShape (g) }",
        # A quotient that may be one of a number below 0: ONNX rounds it to 0, and the formula down.
        f"(float[N] x) => (float[a] y) {ONES} {{ s = Shape (x) d = Sub (s, c4) q = Div (d, two) a2 = Abs (q) "
        "y = ConstantOfShape (a2) }",
    ],
)
def test_what_has_no_shorter_way_stays(body: str) -> None:
    before = without_unread(model(body))
    after = fold(before).model
    assert len(after.graph.node) <= len(before.graph.node)
    assert "Shape" in operators(after)
    assert_equal_at(before, after, SIZES, least=4)


def test_a_size_that_the_graph_outputs_is_still_made() -> None:
    before = without_unread(
        model(
            f"(float[N, S] x) => (int64[1] g, float[a, b] y) {ONES} {{ s = Shape (x) g = Gather (s, i0) "
            "h = Gather (s, i1) q = Concat <axis = 0> (h, g) y = Reshape (x, q) }"
        )
    )
    after = fold(before).model
    assert after.graph.output == before.graph.output
    assert_equal_at(before, after, SIZES, least=9)


def test_int32_sizes_stay_int32_and_scalars_stay_scalars() -> None:
    before = without_unread(
        model(
            f"(float[N, S] x) => (int32[n] y) {ONES} {{ s = Shape (x) g = Gather (s, s0) h = Gather (s, s1) "
            "k = Add (g, h) l = Sub (k, h) m = Mul (l, s1) o = Add (m, s0) c = Cast <to = 6> (o) "
            "z = Cast <to = 6> (s0) e = Cast <to = 6> (s1) y = Range (z, c, e) }"
        )
    )
    after = fold(before).model
    assert len(after.graph.node) < 6
    assert_equal_at(before, after, SIZES, least=9)


@pytest.mark.parametrize("opset", [11, 12])
def test_a_maximum_of_sizes_needs_an_opset_that_has_it(opset: int) -> None:
    before = model(
        "(float[N] x, float[S] z) => (float[a] y) { s = Shape (x) t = Shape (z) u = Cast <to = 1> (s) "
        "v = Cast <to = 1> (t) m = Max (u, v) n = Cast <to = 7> (m) y = ConstantOfShape (n) }",
        opset=opset,
    )
    after = fold(before).model
    assert_equal_at(before, after, SIZES, least=9)


@pytest.mark.parametrize("seed", range(40))
def test_random_chains_of_shape_arithmetic(seed: int) -> None:
    """At the sizes of their design, and at others at which the original runs: onnxruntime says so."""
    chain, sizes = random_chain(seed)
    before = model_of_chain(chain)
    read = {name for node in before.graph.node for name in node.input}
    made = (name for node in before.graph.node for name in node.output)
    before.graph.output.extend(onnx.ValueInfoProto(name=name) for name in made if name and name not in read)
    after = splitgraph.convert(before, fold=True).model
    assert len(after.graph.node) <= len(before.graph.node)
    runs = [plain_session(each) for each in (before, after)]
    for named in (sizes, dict.fromkeys(sizes, 1), {name: size + 1 for name, size in sizes.items()}):
        feeds = {
            name: np.ones([dim if isinstance(dim, int) else named[dim] for dim in dims], np.float32)
            for name, dims in chain.inputs.items()
        }
        try:
            expected = runs[0].run(None, feeds)
        except runtime_errors():
            assert named != sizes
            continue
        assert_same(expected, runs[1].run(None, feeds))
