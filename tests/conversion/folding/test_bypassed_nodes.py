"""Nodes that give what they get go, and those that only look so stay."""

from __future__ import annotations

import pytest
from folded_models import assert_equal_at, fold, model, operators, why

# Each with the same input before and behind the node.
STAYS = [
    # The graph outputs what the node makes.
    "(float[N] x) => (float[N] y) { y = Identity (x) }",
    # Another value, or another shape.
    "(float[N, 2] x) => (float[N, 2] y) { t = Transpose <perm = [1, 0]> (x) u = Transpose <perm = [1, 0]> (t) "
    "y = Relu (u) }",
    "(float[N] x) => (float16[N] y) { c = Cast <to = 10> (x) y = Relu (c) }",
    "(float[N] x) => (float[M, N] y) <int64[2] s = {1, -1}> { r = Reshape (x, s) y = Relu (r) }",
    "(float[1, N] x) => (float[M, N] y) <int64[2] s = {3, 1}> { e = Expand (x, s) y = Relu (e) }",
    # A size that is the same only by chance, or in a reversed or shifted order.
    "(float[3] x) => (float[3] y) <int64[1] s = {2}, int64[1] e = {-4}, int64[1] a = {0}, int64[1] p = {-1}> "
    "{ r = Slice (x, s, e, a, p) y = Relu (r) }",
    "(float[3] x) => (float[3] y) <int64[2] p = {1, -1}> { r = Pad (x, p) y = Relu (r) }",
    "(float[N, N] x) => (float[N, N] y) { t = Transpose (x) y = Relu (t) }",
    # Adding 0.0 makes 0.0 of -0.0.
    "(float[N] x) => (float[N] y) <float z = {0}> { a = Add (x, z) y = Relu (a) }",
    # So does subtracting -0.0.
    "(float[N] x) => (float[N] y) <float z = {-0.0}> { a = Sub (x, z) y = Relu (a) }",
    # Weights that are all 1: runtimes look for the node.
    "(float[N, 2] x) => (float[N, 2] y) <float[2] w = {1, 1}> { a = Mul (x, w) y = Relu (a) }",
    # The number has dimensions of its own, so that there are more of them behind it.
    "(float[N] x) => (float[1, N] y) <float[1, 1] w = {1}> { a = Mul (x, w) y = Relu (a) }",
    # What kind of a value it is cannot be told from its name.
    "(float[N] x) => (float[N] y) <int64 i = {0}> { s = SequenceConstruct (x) t = Identity (s) y = SequenceAt (t, i) }",
    # Dropout in training, or with its mask.
    "(float[N] x) => (float[N] y) <float r = {0.5}, bool t = {1}> { d = Dropout (x, r, t) y = Relu (d) }",
    "(float[N] x) => (float[N] y, bool[N] m) { d, m = Dropout (x) y = Relu (d) }",
    "(float[N] x, bool[N] c) => (float[N] y) { d = Where (c, x, x) y = Relu (d) }",
]


@pytest.mark.parametrize("body", STAYS)
def test_what_does_something_stays(body: str) -> None:
    before = model(body)
    assert fold(before).model == before


GOES = [
    "i = Identity (x)",
    "i = Dropout (x)",
    "i = Cast <to = 1> (x)",
    "i = Transpose <perm = [0, 1]> (x)",
    "s = Shape (x) i = Reshape (x, s)",
    "s = Shape (x) i = Expand (x, s)",
    "i = Reshape (x, zeros)",
    "i = Slice (x, zeros, most)",
    "i = Tile (x, ones)",
    "i = Concat <axis = 0> (x)",
    "i = Sum (x)",
    "i = Mul (x, one)",
    "i = Mul (one, x)",
    "i = Div (x, one)",
    "i = Sub (x, zero)",
    "i = Where (always, x, one)",
    "i = Identity (x)  ",
    "h = Identity (x) k = Cast <to = 1> (h) i = Dropout (k)",
]


@pytest.mark.parametrize("nodes", GOES)
def test_what_gives_what_it_gets_goes(nodes: str) -> None:
    before = model(
        f"(float[N, 3] x) => (float[N, 3] y) <int64[2] zeros = {{0, 0}}, int64[2] ones = {{1, 1}}, "
        f"int64[2] most = {{2147483647, 3}}, float one = {{1}}, float zero = {{0}}, bool always = {{1}}> "
        f"{{ {nodes} y = Relu (i) }}"
    )
    read = {name for node in before.graph.node for name in node.input}
    kept = [tensor for tensor in before.graph.initializer if tensor.name in read]
    del before.graph.initializer[:]
    before.graph.initializer.extend(kept)
    rewrite = fold(before)
    assert (operators(rewrite.model), list(rewrite.model.graph.node[0].input)) == (["Relu"], ["x"])
    assert not rewrite.model.graph.initializer
    assert "it gives what it gets" in why(rewrite).values()
    assert_equal_at(before, rewrite.model, [{"N": 2}, {"N": 0}], least=2)


def test_integers_have_one_zero() -> None:
    before = model("(int64[N] x) => (int64[N] y) <int64 z = {0}> { a = Add (z, x) y = Neg (a) }")
    assert operators(fold(before).model) == ["Neg"]


def test_readers_in_bodies_read_the_source_unless_its_name_is_another_value_there() -> None:
    before = model(
        "(float[2] x, bool c) => (float[2] y, float[2] z) { i = Identity (x) "
        "y = If <then_branch = t () => (float[2] u) { u = Neg (i) }, else_branch = e () => (float[2] v) "
        "{ v = Abs (i) }> (c) "
        "z = If <then_branch = t2 () => (float[2] u2) { w = Neg (i) u2 = Relu (w) }, else_branch = e2 () => "
        "(float[2] v2) { v2 = Abs (i) }> (c) }"
    )
    after = fold(before).model
    assert operators(after) == ["If", "If"]
    assert_equal_at(before, after, [{}])


def test_a_body_with_a_value_of_the_same_name_keeps_what_it_reads() -> None:
    before = model(
        "(float[2] x, int64 m) => (float[2] y) <bool t = {1}> { i = Identity (x) y = Loop <body = b (int64 n, bool c, "
        "float[2] x) => (bool d, float[2] e) { d = Identity (c) e = Add (x, i) }> (m, t, x) }"
    )
    after = fold(before).model
    assert "Identity" in operators(after)
    assert_equal_at(before, after, [{}])


@pytest.mark.parametrize(
    "nodes",
    [
        "i = Identity (x)",
        "i = Mul (x, one)",
        "s = Shape (x) i = Reshape (x, s)",
        "o = Add (one, one) i = Add (one, o)",
    ],
)
def test_a_value_with_a_quantization_annotation_stays(nodes: str) -> None:
    before = model(
        f"(float[N] x) => (float[a] y) <float one = {{1}}, float scale = {{2}}> {{ {nodes} y = Add (i, x) }}"
    )
    note = before.graph.quantization_annotation.add(tensor_name="i")
    note.quant_parameter_tensor_names.add(key="SCALE_TENSOR", value="scale")
    after = fold(before).model
    assert "i" in {name for node in after.graph.node for name in node.output}
    assert list(after.graph.quantization_annotation) == [note]
    assert [tensor.name for tensor in after.graph.initializer if tensor.name == "scale"] == ["scale"]
    assert_equal_at(before, after, [{"N": 3}])
