"""Sizes in what operators offer: each reading is the same at every size, and what is not is computed as before."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from folded_models import assert_equal_at, constants, fold, model, operators
from hypothesis import given, settings
from hypothesis import strategies as st

import splitgraph
from splitgraph.conversion.folding.readings import plain_target
from splitgraph.dim import Facts, evaluate, parse_expression

SIZES = [dict(zip("NST", sizes, strict=True)) for sizes in itertools.product((0, 1, 2, 3), repeat=3)]
NUMBERS = (
    "<int64[1] i0 = {0}, int64[1] i1 = {1}, int64[1] i2 = {2}, int64[1] m = {-1}, int64[1] c2 = {2}, int64[1] c3 = {3}>"
)


def shaped(shape: str, nodes: str, opset: int = 17, outputs: str = "y") -> Any:
    """Return a model that reads the first two sizes of an input. Only the constants that it reads are in it."""
    listed = ", ".join(f"float[a] {name}" for name in outputs.split())
    made = model(
        f"(float[{shape}] x) => ({listed}) {NUMBERS} {{ s = Shape (x) n = Gather (s, i0) t = Gather (s, i1) {nodes} }}",
        opset=opset,
    )
    for value in made.graph.output:
        value.type.tensor_type.ClearField("shape")
    made = splitgraph.infer(made).model
    del made.graph.value_info[:]
    read = {name for node in made.graph.node for name in node.input}
    kept = [tensor for tensor in made.graph.initializer if tensor.name in read]
    del made.graph.initializer[:]
    made.graph.initializer.extend(kept)
    return made


@pytest.mark.parametrize(
    ("data", "items", "made", "expected"),
    [
        ("N, S, 24", "N, S, 3, 8", "N, S, 3, 8", [0, 0, 3, 8]),
        ("N, S, 24", "N, S, 24", "N, S, 24", [0, 0, 24]),
        # The model's own -1 means what the result has there, and so is no second unknown.
        ("N, S, 8", "-1, S, 8", "N, S, 8", [0, 0, 8]),
        ("N*S, 8", "-1, S, 8", "N, S, 8", None),
        ("N, 6", "-1, 3", "2*N, 3", [-1, 3]),
        # A size that no axis of the data has there.
        ("N, 4", "2*N, 2", "2*N, 2", [-1, 2]),
        ("N, S", "S, N", "S, N", None),
        # A -1 beside a dimension that may be 0 means nothing.
        ("N, 4, S", "N, 4*S", "N, 4*S", None),
        ("N, S, 4", "N*S, 4", "N*S, 4", [-1, 4]),
        # The model's own one was there before.
        ("N, 4, S", "N, -1", "N, 4*S", [0, -1]),
        ("N, 4", "0, 2, 2", "N, 2, 2", [0, 2, 2]),
    ],
)
def test_the_target_of_a_reshape(data: str, items: str, made: str, expected: list[int] | None) -> None:
    read = [tuple(parse_expression(part.strip()) for part in text.split(",")) for text in (items, data, made)]
    assert plain_target(read[0], read[1], read[2], Facts()) == expected
    if expected is None:
        with_sizes = plain_target(read[0], read[1], read[2], Facts(), nonempty=True)
        assert with_sizes is None or with_sizes.count(-1) == 1


@given(st.data())
@settings(max_examples=200, deadline=None, derandomize=True)
def test_a_target_as_numbers_means_the_same_at_every_size(data: Any) -> None:
    names = ["N", "S", "T", "2*N", "N*S", "3", "4", "1", "N + S"]
    shape = [parse_expression(text) for text in data.draw(st.lists(st.sampled_from(names), min_size=1, max_size=4))]
    order = data.draw(st.permutations(shape))
    cut = data.draw(st.integers(1, len(order)))
    merged = np.prod(np.array([*order[cut - 1 :]], dtype=object))
    items = [*order[: cut - 1], merged]
    target = plain_target(items, shape, items, Facts())
    for sizes in SIZES if target is not None else ():
        own, meant = ([evaluate(dim, sizes) for dim in dims] for dims in (shape, items))
        array = np.zeros(own)
        said = [own[axis] if number == 0 else number for axis, number in enumerate(target or ())]
        assert list(array.reshape(said).shape) == meant


@pytest.mark.parametrize(
    ("shape", "nodes", "operator", "expected"),
    [
        ("N, S, 24", "q = Concat <axis = 0> (n, t, c3, m) y = Reshape (x, q)", "Reshape", [0, 0, 3, 8]),
        ("N, S, 24", "q = Concat <axis = 0> (n, m, c3) y = Reshape (x, q)", "Reshape", [0, -1, 3]),
        ("N, S, 24", "q = Concat <axis = 0> (m, t, c3) y = Reshape <allowzero = 1> (x, q)", "Reshape", [-1, 0, 3]),
        ("N, 4", "k = Mul (n, c2) q = Concat <axis = 0> (k, c2) y = Reshape (x, q)", "Reshape", [-1, 2]),
        ("N, 1, S", "u = Gather (s, i2) q = Concat <axis = 0> (n, c3, u) y = Expand (x, q)", "Expand", [1, 3, 1]),
        ("N, 3", "q = Concat <axis = 0> (c2, n, i1) y = Expand (x, q)", "Expand", [2, 1, 1]),
        ("N, S", "y = Slice (x, i1, n, i0)", "Slice", [2**63 - 1]),
        ("N, S", "k = Add (n, c3) y = Slice (x, i1, k, i0)", "Slice", [2**63 - 1]),
    ],
)
def test_readings(shape: str, nodes: str, operator: str, expected: list[int]) -> None:
    before = shaped(shape, nodes)
    after = fold(before).model
    assert operators(after) == [operator]
    (node,) = after.graph.node
    assert constants(after)[node.input[2 if operator == "Slice" else 1]] == expected
    assert_equal_at(before, after, SIZES, least=9)


@pytest.mark.parametrize(
    ("shape", "nodes"),
    [
        # Two sizes that the data has at other places, or not at all.
        ("N, S, 24", "q = Concat <axis = 0> (t, n, m) y = Reshape (x, q)"),
        ("N, S", "q = Concat <axis = 0> (n, n) y = Expand (x, q)"),
        # N - 1 where N may be 0: a negative bound counts from the end.
        ("N, S", "k = Sub (n, i1) y = Slice (x, i0, k, i0)"),
        # A bound of another axis.
        ("N, S", "y = Slice (x, i0, t, i0)"),
        # Towards the front.
        ("N, S", "y = Slice (x, n, i0, i0, m)"),
    ],
)
def test_what_numbers_cannot_say_is_computed(shape: str, nodes: str) -> None:
    before = shaped(shape, nodes)
    after = fold(before).model
    assert "Shape" in operators(after)
    assert_equal_at(before, after, SIZES, least=4)


def test_a_bound_that_counts_from_the_end_where_it_is_no_negative_one() -> None:
    """The graph knows of N >= 2 from a slice that has two elements."""
    before = model(
        "(float[N] x) => (float[a] y, float[b] z) <int64[1] k = {2}, int64[1] o = {0}, int64[1] h = {-2}, "
        "int64[1] most = {1000000000000}> { d = Concat <axis = 0> (x, p) s = Shape (d) e = Sub (s, k) "
        "y = Slice (d, e, most, o) z = Relu (d) }"
    )
    before.graph.initializer.extend(
        model("(float[N] x) => (float[N] y) <float[3] p = {1, 2, 3}> { y = Add (x, p) }").graph.initializer
    )
    after = fold(before).model
    assert "Shape" not in operators(after)
    (node,) = (node for node in after.graph.node if node.op_type == "Slice")
    assert constants(after)[node.input[1]] == [-2]
    assert_equal_at(before, after, SIZES, least=4)


@pytest.mark.parametrize(("opset", "attribute"), [(13, None), (18, 2)])
def test_equal_lengths_are_equal_parts(opset: int, attribute: int | None) -> None:
    before = shaped(
        "N, S", "d = Concat <axis = 0> (x, x) q = Concat <axis = 0> (n, n) y, z = Split (d, q)", opset, "y z"
    )
    after = fold(before).model
    assert operators(after) == ["Concat", "Split"]
    node = after.graph.node[1]
    numbers = [entry.i for entry in node.attribute if entry.name == "num_outputs"]
    assert (list(node.input), numbers) == (["d"], [attribute] if attribute else [])


@pytest.mark.parametrize(
    ("sizes", "scales"),
    [
        ("h2 = Mul (h, c2) w2 = Mul (w, c3) q = Concat <axis = 0> (n, t, h2, w2)", [1.0, 1.0, 2.0, 3.0]),
        ("h2 = Add (h, c2) q = Concat <axis = 0> (n, t, h2, w)", None),
        ("h2 = Div (h, c2) q = Concat <axis = 0> (n, t, h2, w)", None),
    ],
)
def test_sizes_of_a_resize_that_are_multiples_are_scales(sizes: str, scales: list[float] | None) -> None:
    before = shaped(
        "N, 2, H, W",
        f'h = Gather (s, i2) w = Gather (s, c3) {sizes} y = Resize <mode = "linear"> (x, , , q)',
    )
    after = fold(before).model
    (node,) = (node for node in after.graph.node if node.op_type == "Resize")
    if scales is None:
        assert len(node.input) == 4
    else:
        assert (constants(after)[node.input[2]], operators(after)) == (scales, ["Resize"])
    tried = [{"N": 1, "H": height, "W": width} for height, width in ((2, 3), (4, 5), (7, 1))]
    assert_equal_at(before, after, tried, least=3)


@pytest.mark.parametrize("first", ["Mul (n, t)", "Mul (t, n)"])
def test_a_target_of_another_reshape_does_not_say_that_the_batch_is_not_empty(first: str) -> None:
    """Inference takes [N*S, 8] to mean that N*S is no 0, which would copy N. With N = 0, it copies 0."""
    before = model(
        "(float[N, S, 8] x) => (float[a, b] y, float[c, d] z) <int64[1] m = {8}> { n = Shape <end = 1> (x) "
        f"t = Shape <start = 1, end = 2> (x) k = {first} r = Constant <value_ints = [8]> () "
        "p = Concat <axis = 0> (k, r) y = Reshape (x, p) w = Mul (t, m) q = Concat <axis = 0> (n, w) "
        "z = Reshape (x, q) }"
    )
    after = fold(before).model
    reshapes = [node for node in after.graph.node if node.op_type == "Reshape"]
    assert constants(after)[reshapes[0].input[1]] == [-1, 8]
    assert reshapes[1].input[1] not in constants(after)
    assert_equal_at(before, after, [{"N": 0, "S": 3}, {"N": 2, "S": 3}], least=2)


@pytest.mark.parametrize(
    ("sizes", "attributes"),
    [
        # Scales are of the region there.
        (
            "h2 = Mul (h, c2) q = Concat <axis = 0> (n, t, h2, w)",
            ', coordinate_transformation_mode = "tf_crop_and_resize"',
        ),
        # No scale is 0, or below.
        ("q = Concat <axis = 0> (n, zero, h, w)", ""),
    ],
)
def test_sizes_that_are_no_scales_stay(sizes: str, attributes: str) -> None:
    before = model(
        "(float[N, 2, H, W] x) => (float[a, b, c, d] y) <float[8] roi = {0, 0, 0.1, 0.1, 1, 1, 0.9, 0.9}, "
        "int64[1] zero = {0}, int64[1] c2 = {2}> { n = Shape <end = 1> (x) t = Shape <start = 1, end = 2> (x) "
        f"h = Shape <start = 2, end = 3> (x) w = Shape <start = 3> (x) {sizes} "
        f'y = Resize <mode = "linear"{attributes}> (x, roi, , q) }}'
    )
    after = splitgraph.convert(before, fold=True).model
    (node,) = (node for node in after.graph.node if node.op_type == "Resize")
    assert (len(node.input), node.input[2]) == (4, "")


def test_int32_operands_stay_int32() -> None:
    before = model(
        "(float[N, S] x) => (float[a, b] y) <int32[1] o = {1}, int32[1] z = {0}, int64[1] i = {0}> "
        "{ s = Shape (x) n = Gather (s, i) e = Cast <to = 6> (n) y = Slice (x, o, e, z) }"
    )
    after = fold(before).model
    (tensor,) = (tensor for tensor in after.graph.initializer if tensor.name == after.graph.node[0].input[2])
    assert (tensor.data_type, constants(after)[tensor.name]) == (6, [2**31 - 1])
    assert_equal_at(before, after, SIZES, least=4)


def test_metadata_of_a_node_that_reads_numbers_now_is_kept() -> None:
    before = shaped("N, S, 24", "q = Concat <axis = 0> (n, t, c3, m) y = Reshape (x, q)")
    before.graph.node[-1].name, before.graph.node[-1].doc_string = "heads", "kept"
    (node,) = splitgraph.convert(before, fold=True).model.graph.node
    assert (node.name, node.doc_string) == ("heads", "kept")
