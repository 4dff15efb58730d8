"""A batch and a length that are merged and taken apart again, and a size that is cut."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import parser
from onnx.reference import ReferenceEvaluator

import splitgraph

# Two sizes, the target that merges them, and the one that takes them apart again.
MERGED = [
    (4, 5, [-1, 6], [-1, 5, 6]),
    (4, 5, [20, 6], [4, -1, 6]),
    (5, 5, [-1, 6], [5, 5, -1]),
    (1, 5, [5, 6], [-1, 5, 6]),
    (1, 1, [-1, 6], [1, 1, 6]),
    (6, 1, [6, 6], [6, -1, 6]),
    (6, 1, [6, -1], [6, -1, 6]),
    ("batch", 5, [-1, 6], [-1, 5, 6]),
]
# Twice the reversed row.
WEIGHTS = ", ".join("2" if row + column == 5 else "0" for row in range(6) for column in range(6))


def times(batch: Any, length: int, one: list[int], other: list[int]) -> onnx.ModelProto:
    """Return a model that multiplies each row by weights, and gives the mean along the second axis, too."""
    return parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]> g (float[{batch}, {length}, 6] x) => (
        float[n, t, c] y, float[n, c] z) <int64[{len(one)}] a = {{{str(one)[1:-1]}}}, float[6, 6] w = {{{WEIGHTS}}},
        int64[{len(other)}] b = {{{str(other)[1:-1]}}}> {{
        f = Reshape (x, a) m = MatMul (f, w) y = Reshape (m, b) z = ReduceMean <axes = [1], keepdims = 0> (y) }}""")


@pytest.mark.parametrize(("batch", "length", "one", "other"), MERGED)
@pytest.mark.parametrize("asked", [("N", "T"), ("N", 9), (8, "T"), (8, 9), (None, "T"), ("N", None)])
def test_merged_sizes_come_apart_as_they_were(
    batch: Any, length: int, one: list[int], other: list[int], asked: tuple[Any, Any]
) -> None:
    sizes = [batch if asked[0] is None else asked[0], length if asked[1] is None else asked[1]]
    after = splitgraph.reshape(times(batch, length, one, other), {"x": [*sizes, 6]}).model
    for tried in ((1, 3), (2, 1), (3, 7)):
        shape = [size if isinstance(size, int) else free for size, free in zip(sizes, tried, strict=True)]
        data = np.arange(shape[0] * shape[1] * 6, dtype=np.float32).reshape(*shape, 6)
        found = ReferenceEvaluator(after).run(None, {"x": data})
        np.testing.assert_allclose(found[0], 2 * data[..., ::-1])
        np.testing.assert_allclose(found[1], 2 * data.mean(1)[..., ::-1])


WINDOWS = """<ir_version: 8, opset_import: ["": 17]> g (float[1, H, W, 3] x) => (float[n, p, c] y)
    <int64[6] a = {1, HH, 7, WW, 7, 3}, int64[3] b = {-1, 49, 3}> {
    f = Reshape (x, a) t = Transpose <perm = [0, 1, 3, 2, 4, 5]> (f) y = Reshape (t, b) }"""


def windows(height: int, width: int) -> onnx.ModelProto:
    text = WINDOWS.replace("HH", str(height // 7)).replace("WW", str(width // 7))
    return parser.parse_model(text.replace("H", str(height)).replace("W", str(width)))


def partitioned(data: Any) -> Any:
    _, height, width, _ = data.shape
    parts = data.reshape(1, height // 7, 7, width // 7, 7, 3).transpose(0, 1, 3, 2, 4, 5)
    return parts.reshape(-1, 49, 3)


@pytest.mark.parametrize(("height", "width"), [(14, 14), (7, 7), (7, 14)])
def test_windows_of_one_size_or_one_number_of_windows(height: int, width: int) -> None:
    """At a size equal to the window, too, both can be meant."""
    made = windows(height, width)
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.reshape(made, {"x": [1, "P", "Q", 3]})
    assert {(found.code, found.location) for found in caught.value.diagnostics} == {("SG421", "main/Reshape#0")}
    follow = ["main/Reshape#0[1]=P//7", "main/Reshape#0[3]=Q//7"]
    after = splitgraph.reshape(made, {"x": [1, "P", "Q", 3]}, follow=follow).model
    data = np.arange(21 * 28 * 3, dtype=np.float32).reshape(1, 21, 28, 3)
    (found,) = ReferenceEvaluator(after).run(None, {"x": data})
    np.testing.assert_array_equal(found, partitioned(data))


CHUNKED = """<ir_version: 8, opset_import: ["": 17]> g (float[1, 4, 2] x) => (float[a, b, c, d] y)
    <int64[4] s = {1, 1, 4, 2}> { r = Reshape (x, s) y = Softmax <axis = 2> (r) }"""


@pytest.mark.parametrize(
    ("follow", "parts"), [("main/Reshape#0[2]=T", 1), ("main/Reshape#0[1]=T//4", 2)], ids=["one", "of four"]
)
def test_one_chunk_that_is_all_of_a_length_is_asked(follow: str, parts: int) -> None:
    """A chunk as long as the data, or chunks of four, of which there is one at the old size."""
    made = parser.parse_model(CHUNKED)
    with pytest.raises(splitgraph.ConversionError, match="its numbers can mean T as entry 2, or T//4 as entry 1"):
        splitgraph.reshape(made, {"x": [1, "T", 2]})
    after = splitgraph.reshape(made, {"x": [1, "T", 2]}, follow=[follow]).model
    data = np.arange(16, dtype=np.float32).reshape(1, parts, -1, 2)
    (found,) = ReferenceEvaluator(after).run(None, {"x": data.reshape(1, 8, 2)})
    exp = np.exp(data - data.max(2, keepdims=True))
    np.testing.assert_allclose(found, exp / exp.sum(2, keepdims=True), rtol=1e-5)


def test_a_batch_of_one_that_comes_back_is_no_chunk() -> None:
    made = parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> g (float[1, 4, 2] x) => (float[a, b, c] y)
        <int64[2] f = {4, 2}, int64[3] s = {1, 4, 2}> { r = Reshape (x, f) y = Reshape (r, s) }""")
    splitgraph.reshape(made, {"x": [1, "T", 2]})


def test_a_loop_whose_state_grows() -> None:
    growing = parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> g (float[5, 4] x) => (float[a, b] y)
        <int64 m = {3}, bool go = {1}> {
        y = Loop <body = b (int64 i, bool c, float[p, q] s) => (bool d, float[u, v] e) {
            d = Identity (c) e = Concat <axis = 0> (s, s) }> (m, go, x) }""")
    after = splitgraph.reshape(growing, {"x": ["T", 4]}).model
    assert ReferenceEvaluator(after).run(None, {"x": np.ones((3, 4), np.float32)})[0].shape == (24, 4)


def test_what_stands_apart_again_is_read_as_it_stands() -> None:
    """The first walk reads [1, N*T, 6], and the digits of N*T are none of the T that a later walk has there."""
    made = parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> g (float[1, 5, 6] x) => (float[a, b, c, d] y)
        <int64[2] f = {5, 6}, int64[3] t = {1, 5, 6}, int64[4] h = {1, 5, 2, 3}> {
        m = Reshape (x, f) n = Relu (m) k = Reshape (n, t) y = Reshape (k, h) }""")
    after = splitgraph.reshape(made, {"x": ["N", "T", 6]}).model
    data = np.arange(2 * 7 * 6, dtype=np.float32).reshape(2, 7, 6)
    (found,) = ReferenceEvaluator(after).run(None, {"x": data})
    np.testing.assert_array_equal(found, data.reshape(2, 7, 2, 3))


# Scores of all pairs get a first column of zeros, and are read in rows of another length: each row moves by one more.
SHIFTED = """<ir_version: 8, opset_import: ["": 17]> g (float[1, 5, 3] x) => (float[n, p, q] y)
    <int64[6] w = {0, 0, 1, 0, 0, 0}, int64[3] a = {A}, int64[1] i = {1}, int64[1] o = {99}> {
    k = Transpose <perm = [0, 2, 1]> (x) s = MatMul (x, k) p = Pad (s, w) r = Reshape (p, a)
    y = Slice (r, i, o, i) }"""


def shifted(data: Any) -> Any:
    """Return what the model gives."""
    scores = np.pad(data @ data.transpose(0, 2, 1), ((0, 0), (0, 0), (1, 0)))
    return scores.reshape(1, data.shape[1] + 1, data.shape[1])[:, 1:]


@pytest.mark.parametrize("target", ["1, 6, 5", "1, -1, 5", "1, 6, -1", "-1, 6, 5"])
@pytest.mark.parametrize("asked", ["T", 8])
def test_lengths_that_are_exchanged_follow_where_they_stand(target: str, asked: str | int) -> None:
    made = parser.parse_model(SHIFTED.replace("A}", f"{target}}}"))
    after = splitgraph.reshape(made, {"x": [1, asked, 3]}).model
    for size in (2, 5, 8) if asked == "T" else (8,):
        data = np.arange(size * 3, dtype=np.float32).reshape(1, size, 3)
        np.testing.assert_allclose(ReferenceEvaluator(after).run(None, {"x": data})[0], shifted(data))


@pytest.mark.parametrize("target", ["1, 3, 10", "1, 10, 3", "1, 2, 15", "1, 15, 2"])
def test_lengths_that_are_cut_otherwise_are_refused(target: str) -> None:
    made = parser.parse_model(SHIFTED.replace("A}", f"{target}}}"))
    with pytest.raises(splitgraph.ConversionError) as refused:
        splitgraph.reshape(made, {"x": [1, "T", 3]})
    assert {each.code for each in refused.value.diagnostics} == {"SG420"}


@pytest.mark.parametrize("shape", [["H", "W"], [8, 12], ["N", 12]])
def test_lengths_that_have_nothing_to_do_with_each_other_are_not_exchanged(shape: list[Any]) -> None:
    made = parser.parse_model(
        """<ir_version: 8, opset_import: ["": 17]> g (float[4, 6] x) => (float[p, q] y) <int64[2] a = {6, 4}> {
        y = Reshape (x, a) }"""
    )
    with pytest.raises(splitgraph.ConversionError):
        splitgraph.reshape(made, {"x": shape})


# A size, the target that joins groups of so many, and the two readings.
GROUPS = [
    ([1, 2, 5], [1, 1, 10], 1, "5*T as entry 2, or T//2 as entry 1"),
    ([1, 5, 2], [1, 10, 1], 2, "5*T as entry 1, or T//2 as entry 2"),
    ([3, 2, 5], [3, 1, 10], 1, "5*T as entry 2, or T//2 as entry 1"),
]
# No entry of 1 that none of the data has: all is joined.
JOINED = [([1, 2, 5], [1, 10], 1, [1, "5*T"]), ([2, 1, 5], [1, 10], 0, [1, "5*T"]), ([4, 5], [20, 1], 0, ["5*T", 1])]


def joined(shape: list[int], target: list[int], axis: int) -> tuple[onnx.ModelProto, dict[str, list[Any]]]:
    out = ", ".join("abc"[: len(target)])
    made = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]> g (float{shape} x) => (float[{out}] y)
        <int64[{len(target)}] a = {{{str(target)[1:-1]}}}> {{ r = Reshape (x, a) y = Softmax <axis = 0> (r) }}""")
    return made, {"x": ["T" if at == axis else size for at, size in enumerate(shape)]}


# What was merged before is one axis, and a 1 is added beside it, as the one head of an attention.
ADDED = [("1, 10, 3", "1, 10, 1, 3"), ("1, 10, 3", "1, 1, 10, 3"), ("10, 3", "10, 1, 3"), ("10, 3", "1, 10, 3")]


@pytest.mark.parametrize(("merged", "added"), ADDED)
@pytest.mark.parametrize("asked", [[1, 2, "T", 3], [1, "S", 5, 3], [1, "S", "T", 3], [1, 2, 15, 3]])
def test_a_one_beside_what_was_merged_before_is_no_number_of_groups(merged: str, added: str, asked: list[Any]) -> None:
    counts = merged.count(",") + 1, added.count(",") + 1
    made = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]> g (float[1, 2, 5, 3] x) =>
        (float[{", ".join("abcd"[: counts[1]])}] y)
        <int64[{counts[0]}] m = {{{merged}}}, int64[{counts[1]}] a = {{{added}}}> {{
        f = Reshape (x, m) r = Relu (f) y = Reshape (r, a) }}""")
    after = splitgraph.reshape(made, {"x": asked}).model
    for tried in ((2, 5), (4, 15), (3, 10)):
        sizes = [size if isinstance(size, int) else tried[at - 1] for at, size in enumerate(asked)]
        data = np.arange(1, 1 + np.prod(sizes), dtype=np.float32).reshape(sizes)
        target = [sizes[1] * sizes[2] if size == "10" else int(size) for size in added.split(", ")]
        np.testing.assert_array_equal(ReferenceEvaluator(after).run(None, {"x": data})[0], data.reshape(target))


@pytest.mark.parametrize(("shape", "target", "axis", "said"), GROUPS)
def test_groups_of_the_old_size_may_be_several_groups(
    shape: list[int], target: list[int], axis: int, said: str
) -> None:
    made, shapes = joined(shape, target, axis)
    with pytest.raises(splitgraph.ConversionError) as caught:
        splitgraph.reshape(made, shapes)
    (found,) = caught.value.diagnostics
    assert found.code == "SG421" and said in found.message


@pytest.mark.parametrize(("shape", "target", "axis", "expected"), JOINED)
def test_what_has_no_place_for_a_number_of_groups_is_joined(
    shape: list[int], target: list[int], axis: int, expected: list[Any]
) -> None:
    made, shapes = joined(shape, target, axis)
    (output,) = splitgraph.reshape(made, shapes).model.graph.output
    assert [dim.dim_param or dim.dim_value for dim in output.type.tensor_type.shape.dim] == expected


# Twice the half of each length: its own order is not known, and it comes apart from the other one as a whole.
DOUBLED = """<ir_version: 8, opset_import: ["": 17]> g (float[1, 2, 8, 12] x) => (float[n, c, h, w] y)
    <float[4] twice = {1, 1, 2, 2}, int64[FN] f = {F}, int64[TN] t = {T}> {
    p = MaxPool <kernel_shape = [2, 2], strides = [2, 2]> (x) r = Resize <mode = "nearest"> (p, , twice)
    m = Reshape (r, f) s = Softmax <axis = -1> (m) b = Reshape (s, t) y = Add (b, r) }"""
JOINED_AND_APART = [
    ("1, 2, 96", "1, 2, 8, 12"),
    ("1, 2, -1", "1, 2, 8, 12"),
    ("2, 96", "1, 2, 8, 12"),
    ("192", "1, -1, 8, 12"),
    ("192", "1, 2, 8, -1"),
]


def doubled(data: Any) -> Any:
    _, _, height, width = data.shape
    small = data.reshape(1, 2, height // 2, 2, width // 2, 2).max((3, 5))
    return small.repeat(2, 2).repeat(2, 3)


@pytest.mark.parametrize(("merged", "apart"), JOINED_AND_APART)
@pytest.mark.parametrize("asked", [("H", "W"), ("H", 16), (14, 16), ("H", 12), (8, "W")])
def test_products_of_unknown_order_come_apart_as_wholes(merged: str, apart: str, asked: tuple[Any, Any]) -> None:
    text = DOUBLED.replace("FN", str(merged.count(",") + 1)).replace("TN", "4")
    made = parser.parse_model(text.replace("{F}", f"{{{merged}}}").replace("{T}", f"{{{apart}}}"))
    after = splitgraph.reshape(made, {"x": [1, 2, *asked]}).model
    for tried in ((8, 12), (4, 6), (10, 22)):
        height, width = (size if isinstance(size, int) else free for size, free in zip(asked, tried, strict=True))
        data = np.random.default_rng(0).random((1, 2, height, width), np.float32)
        large = doubled(data)
        rows = large.reshape({1: [-1], 2: [2, -1], 3: [1, 2, -1]}[merged.count(",") + 1])
        shares = np.exp(rows) / np.exp(rows).sum(-1, keepdims=True)
        found = ReferenceEvaluator(after).run(None, {"x": data})[0]
        np.testing.assert_allclose(found, shares.reshape(large.shape) + large, rtol=1e-5)


def queries(batch: int) -> onnx.ModelProto:
    """Return a model in which queries that are weights meet the keys of items, in two heads."""
    rows = ", ".join(str(number % 5 - 2) for number in range(32))
    return parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]> g (float[{batch}, 7, 8] x) => (
        float[n, s, c] y) <float[1, 4, 8] w = {{{rows}}}, int64[3] e = {{{batch}, 4, 8}},
        int64[3] a = {{4, {2 * batch}, 4}}, int64[3] b = {{7, {2 * batch}, 4}}, int64[2] f = {{{4 * batch}, 8}},
        int64[3] d = {{4, {batch}, 8}}> {{
        q = Expand (w, e) qt = Transpose <perm = [1, 0, 2]> (q) qr = Reshape (qt, a)
        qh = Transpose <perm = [1, 0, 2]> (qr) xt = Transpose <perm = [1, 0, 2]> (x) k = Reshape (xt, b)
        kh = Transpose <perm = [1, 2, 0]> (k) m = MatMul (qh, kh) p = Softmax (m)
        vh = Transpose <perm = [1, 0, 2]> (k) h = MatMul (p, vh) ht = Transpose <perm = [1, 0, 2]> (h)
        r = Reshape (ht, f) g = Relu (r) i = Reshape (g, d) y = Transpose <perm = [1, 0, 2]> (i) }}""")


@pytest.mark.parametrize("batch", [1, 2])
@pytest.mark.parametrize("length", [7, "T"])
def test_weights_that_are_split_into_heads_get_the_items_of_the_keys(batch: int, length: int | str) -> None:
    after = splitgraph.reshape(queries(batch), {"x": ["N", length, 8]}, verify=True)
    assert after.verification is not None and after.verification.verdict == "equal"
    data = np.random.default_rng(0).random((3, 7, 8), np.float32)
    results = ReferenceEvaluator(after.model).run(None, {"x": data})
    alone = [ReferenceEvaluator(queries(1)).run(None, {"x": each}) for each in np.split(data, 3)]
    for found, *wanted in zip(results, *alone, strict=True):
        np.testing.assert_allclose(found, np.concatenate(wanted), 1e-4, 1e-5)


def test_more_numbers_than_readings_that_are_tried_without_getting_further() -> None:
    count = 26
    slices = " ".join(
        f"s{at} = Slice (p, a{at}, b{at}, c) x{at + 1} = Add (x{at}, s{at})" for at in range(1, count + 1)
    )
    bounds = ", ".join(f"int64[1] a{at} = {{{at}}}, int64[1] b{at} = {{{at + 40}}}" for at in range(1, count + 1))
    made = parser.parse_model(f"""<ir_version: 8, opset_import: ["": 17]> g (float[1, 40] x) => (float[n, t] y)
        <int64[4] w = {{0, 0, 0, 28}}, int64[1] c = {{1}}, {bounds}> {{
        p = Pad (x, w) x1 = Identity (x) {slices} y = Identity (x{count + 1}) }}""")
    after = splitgraph.reshape(made, {"x": [1, "T"]}).model
    data = np.random.default_rng(0).random((1, 50), np.float32)
    (found,) = ReferenceEvaluator(after).run(None, {"x": data})
    padded = np.pad(data, ((0, 0), (0, 28)))
    np.testing.assert_allclose(found, data + sum(padded[:, at : at + 50] for at in range(1, count + 1)), 1e-5)


@pytest.mark.parametrize(("answer", "shape"), [("[0]=8*T", (96, 1, 4, 12)), ("[1]=T//4", (32, 3, 4, 12))])
def test_an_entry_says_one_of_two_equal_sizes(answer: str, shape: tuple[int, ...]) -> None:
    """Each pixel is compared with each other one, and its results are an image."""
    made = parser.parse_model("""<ir_version: 8, opset_import: ["": 17]> g (float[2, 3, 4, 4] x) => (
        float[a, b, h, w] y) <int64[3] f = {2, 3, -1}, int64[4] s = {32, 1, 4, 4}> {
        p = Reshape (x, f) t = Transpose <perm = [0, 2, 1]> (p) m = MatMul (t, p) y = Reshape (m, s) }""")
    after = splitgraph.reshape(made, {"x": [2, 3, 4, "T"]}, follow=[f"main/Reshape#3{answer}"]).model
    data = np.random.default_rng(0).random((2, 3, 4, 12), np.float32)
    (found,) = ReferenceEvaluator(after).run(None, {"x": data})
    flat = data.reshape(2, 3, 48)
    np.testing.assert_allclose(found, (flat.transpose(0, 2, 1) @ flat).reshape(shape), 1e-5)
