"""Pooling over its boundaries: rounding up, windows with holes, what of the padding counts."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import onnx
import pytest
from conversion.operators.execute import (
    assert_same,
    build,
    converted,
    operators,
    random_array,
    refusal,
    run,
    run_reference,
)
from onnx import helper

from splitgraph.conversion.opset import convert_opset


def pool(
    op: str,
    opset: int,
    sizes: Sequence[int | str],
    outputs: Sequence[str] = ("y",),
    channels: int | str = 2,
    **attributes: Any,
) -> onnx.ModelProto:
    node = helper.make_node(op, ["x"], list(outputs), **attributes)
    out = ["n", channels, *(f"out{i}" for i in range(len(sizes)))]
    made = {name: ("int64" if index else "float32", out) for index, name in enumerate(outputs)}
    return build(node, opset, {"x": ("float32", ["n", channels, *sizes])}, made)


REFUSED = [
    (("MaxPool", 10, ("h", 5)), {"kernel_shape": [2, 2], "strides": [3, 2], "ceil_mode": 1}, 9, "which is not static"),
    (
        ("MaxPool", 10, ("h",)),
        {"kernel_shape": [2], "strides": [2], "pads": [0, 1], "ceil_mode": 1},
        9,
        "which is not static",
    ),
    (("MaxPool", 10, ("h",)), {"kernel_shape": [2], "auto_pad": "VALID", "ceil_mode": 1}, 9, "which is not static"),
    (
        ("AveragePool", 10, ("h",)),
        {"kernel_shape": [2], "pads": [1, 0], "count_include_pad": 1, "ceil_mode": 1},
        9,
        "which is not static",
    ),
    (("MaxPool", 10, (5, 5), ("y", "i")), {"kernel_shape": [2, 2], "dilations": [2, 2]}, 9, "windows with holes"),
    (("MaxPool", 10, (1,)), {"kernel_shape": [2], "dilations": [2], "pads": [1, 1]}, 9, "nothing but padding"),
    (("MaxPool", 8, (5, 5), ("y", "i")), {"kernel_shape": [2, 2]}, 7, "Indices does not exist"),
    (
        ("MaxPool", 11, (3,)),
        {"kernel_shape": [1], "strides": [3], "pads": [0, 1], "ceil_mode": 1},
        22,
        "starts in the padding",
    ),
    (
        ("AveragePool", 19, (5,), ("y",), "c"),
        {"kernel_shape": [2], "dilations": [2]},
        18,
        "number of channels is unknown",
    ),
    (("AveragePool", 19, (5,), ("y",), 0), {"kernel_shape": [2], "dilations": [2]}, 18, "number of channels is 0"),
    (("AveragePool", 19, (2,)), {"kernel_shape": [2], "dilations": [2]}, 18, "larger than the input"),
    (("MaxPool", 10, (2,)), {"kernel_shape": [2], "dilations": [2]}, 9, "larger than the input"),
    (
        ("AveragePool", 19, (8,)),
        {"kernel_shape": [2], "dilations": [2], "auto_pad": "SAME_LOWER"},
        18,
        "disagree about their",
    ),
    (
        ("MaxPool", 11, (8,)),
        {"kernel_shape": [3], "strides": [3], "auto_pad": "VALID", "ceil_mode": 1},
        9,
        "ceil_mode with auto_pad=VALID",
    ),
    (
        ("AveragePool", 7, (5,)),
        {"kernel_shape": [2], "auto_pad": "SAME_UPPER", "count_include_pad": 1},
        6,
        "worked out from auto_pad",
    ),
]


@pytest.mark.parametrize(("arguments", "attributes", "target", "words"), REFUSED)
def test_refused(arguments: tuple[Any, ...], attributes: dict[str, Any], target: int, words: str) -> None:
    assert words in refusal(pool(*arguments, **attributes), target)


WINDOWS: list[tuple[tuple[int, ...], dict[str, Any]]] = [
    ((6,), {"kernel_shape": [3], "strides": [2]}),
    ((7, 8), {"kernel_shape": [3, 2], "strides": [3, 3]}),
    ((7, 8), {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]}),
    ((5, 6), {"kernel_shape": [2, 3], "strides": [2, 2], "pads": [0, 1, 1, 0]}),
    ((5, 6), {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
    ((4, 4, 5), {"kernel_shape": [2, 2, 2], "strides": [3, 1, 3]}),
]


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool"])
@pytest.mark.parametrize(("sizes", "attributes"), WINDOWS)
def test_ceil_mode_below_10(op: str, sizes: tuple[int, ...], attributes: dict[str, Any]) -> None:
    before = pool(op, 11, sizes, ceil_mode=1, **attributes)
    after = converted(before, 9)
    assert operators(after) == [op]
    feeds = {"x": random_array((2, 2, *sizes))}
    assert_same(run(before, feeds), run(after, feeds), 1e-6)


def outcome(model: onnx.ModelProto, x: Any) -> list[Any] | None:
    """What a model gives, None where it does not run."""
    try:
        return run(model, {"x": x})
    except Exception:
        return None


@pytest.mark.parametrize(
    ("op", "source", "target"),
    [
        ("MaxPool", 10, 9),
        ("MaxPool", 12, 9),
        ("MaxPool", 22, 7),
        ("AveragePool", 10, 9),
        ("AveragePool", 11, 7),
        ("AveragePool", 19, 9),
        ("AveragePool", 22, 9),
        ("LpPool", 18, 17),
        ("LpPool", 22, 9),
    ],
)
@pytest.mark.sample(3)
def test_ceil_mode_of_every_size(op: str, source: int, target: int) -> None:
    """Windows that begin inside, whatever the size is: also where it is less than a window."""
    compared = 0
    for kernel, stride, begin, end in product((1, 2, 3, 5), (1, 2, 3), (0, 1), (0, 1)):
        if begin >= kernel or end + stride - 1 >= kernel:
            continue
        attributes = {"kernel_shape": [kernel], "strides": [stride], "pads": [begin, end], "ceil_mode": 1}
        before = pool(op, source, ("h",), **attributes)
        after = converted(before, target)
        if stride == 1 or kernel < stride + begin + end:
            assert operators(after) == [op]
        else:
            assert (operators(after)[0], operators(after)[-1]) == ("Shape", "Tile")
        for size in (*range(9), 12):
            x = random_array((2, 2, size))
            expected = outcome(before, x)
            if expected is not None:
                assert_same(expected, run(after, {"x": x}), 1e-6)
                compared += 1
    assert compared > 100


@pytest.mark.parametrize(
    ("op", "attributes"),
    [
        ("MaxPool", {"strides": [2, 1], "pads": [1, 0, 0, 1]}),
        ("AveragePool", {"strides": [2, 3], "pads": [0, 1, 0, 0]}),
        ("AveragePool", {"strides": [2, 3], "count_include_pad": 1}),
        ("AveragePool", {"count_include_pad": 1}),
    ],
)
@pytest.mark.parametrize("source", [11, 19, 22])
def test_ceil_mode_of_images_of_every_size(op: str, attributes: dict[str, Any], source: int) -> None:
    outputs = ("y", "i") if op == "MaxPool" else ("y",)
    for sizes in (("h", "w"), ("h", 7)):
        before = pool(op, source, sizes, outputs, kernel_shape=[3, 3], ceil_mode=1, **attributes)
        after = converted(before, 9)
        for height in (1, 3, 4, 6):
            x = random_array((1, 2, height, 7))
            expected = outcome(before, x)
            assert expected is not None or (height == 1 and "strides" not in attributes)
            if expected is not None:
                assert_same(expected, run(after, {"x": x}), 1e-6)


@pytest.mark.parametrize("attributes", [{"strides": [2]}, {"strides": [3], "pads": [1, 0]}])
def test_mean_with_holes_of_every_size(attributes: dict[str, Any]) -> None:
    before = pool("AveragePool", 19, ("h",), kernel_shape=[2], dilations=[3], ceil_mode=1, **attributes)
    after = converted(before, 9)
    for size in range(4, 12):
        feeds = {"x": random_array((1, 2, size))}
        assert_same(run(before, feeds), run(after, feeds), 1e-6)


@pytest.mark.parametrize(("sizes", "attributes"), [each for each in WINDOWS if "auto_pad" not in each[1]])
@pytest.mark.parametrize("source", [11, 19])
def test_padding_counts_but_not_what_is_beyond_it(source: int, sizes: tuple[int, ...], attributes: Any) -> None:
    before = pool("AveragePool", source, sizes, ceil_mode=1, count_include_pad=1, **attributes)
    feeds = {"x": random_array((2, 2, *sizes))}
    expected = run(before, feeds)
    assert_same(expected, run(converted(before, 9), feeds), 1e-5)
    assert_same(expected, run_reference(converted(before, 6), feeds), 1e-5)
    before = pool("AveragePool", 19, sizes, ceil_mode=1, count_include_pad=1, dilations=[2] * len(sizes), **attributes)
    assert_same(run(before, feeds), run(converted(before, 9), feeds), 1e-5)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("target", [21, 9])
def test_windows_in_the_padding_below_22(op: str, target: int) -> None:
    for size in range(2, 7):
        before = pool(op, 22, (size, 5), kernel_shape=[1, 2], strides=[3, 2], pads=[0, 0, 0, 1], ceil_mode=1)
        feeds = {"x": random_array((1, 2, size, 5))}
        after = converted(before, target)
        assert_same(run(before, feeds), run(after, feeds), 1e-6)
        assert_same(run(before, feeds), run(converted(after, 22), feeds), 1e-6)


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize("auto_pad", ["SAME_UPPER", "SAME_LOWER"])
def test_ceil_mode_with_auto_pad_goes_below_22(op: str, auto_pad: str) -> None:
    """It changes nothing there, but onnx's inference below 22 has a window more with it. With VALID it does, for
    runtimes, other than the document says.
    """
    for size in range(2, 9):
        before = pool(op, 22, (size,), kernel_shape=[2], strides=[3], auto_pad=auto_pad, ceil_mode=1)
        before.graph.output[0].type.tensor_type.shape.dim[2].dim_value = -(-size // 3)
        for target in (21, 18, 10):
            after = converted(before, target)
            assert not has_ceil_mode(after)


def has_ceil_mode(model: onnx.ModelProto) -> bool:
    return "ceil_mode" in {attribute.name for attribute in model.graph.node[0].attribute}


@pytest.mark.parametrize("op", ["MaxPool", "AveragePool", "LpPool"])
@pytest.mark.parametrize(("kernel", "stride"), [(1, 2), (2, 3), (3, 2)])
def test_ceil_mode_with_valid_goes_where_it_makes_no_window(op: str, kernel: int, stride: int) -> None:
    """A window that starts in the data is one more in runtimes, and stays."""
    for size in range(kernel, 12):
        before = pool(op, 22, (size,), kernel_shape=[kernel], strides=[stride], auto_pad="VALID", ceil_mode=1)
        feeds = {"x": random_array((1, 2, size))}
        (expected,) = run(before, feeds)
        before.graph.output[0].type.tensor_type.shape.dim[2].dim_value = expected.shape[2]
        after = converted(before, 21)
        assert has_ceil_mode(after) == (expected.shape[2] > (size - kernel) // stride + 1)
        assert_same([expected], run(after, feeds), 1e-6)


def test_ceil_mode_of_windows_with_holes_stays() -> None:
    """onnxruntime counts them otherwise with auto_pad, with ceil_mode and without."""
    attributes = {"kernel_shape": [2], "dilations": [2], "strides": [3], "auto_pad": "SAME_UPPER", "ceil_mode": 1}
    assert has_ceil_mode(converted(pool("MaxPool", 22, (6,), **attributes), 21))


def test_windows_in_padding_that_counts_below_22() -> None:
    for size in range(2, 7):
        attributes: dict[str, Any] = {"kernel_shape": [2, 3], "strides": [3, 2], "pads": [0, 0, 1, 1], "ceil_mode": 1}
        before = pool("AveragePool", 22, (size, 4), count_include_pad=1, **attributes)
        feeds = {"x": random_array((1, 2, size, 4))}
        for target in (21, 9):
            assert_same(run(before, feeds), run(converted(before, target), feeds), 1e-6)


@pytest.mark.parametrize("count_include_pad", [0, 1])
@pytest.mark.parametrize(
    ("sizes", "attributes"),
    [
        ((7,), {"kernel_shape": [2], "dilations": [3]}),
        ((7, 8), {"kernel_shape": [2, 3], "dilations": [2, 2], "strides": [2, 1], "pads": [1, 0, 0, 2]}),
        ((9, 9), {"kernel_shape": [2, 2], "dilations": [2, 2], "strides": [2, 3], "auto_pad": "VALID", "ceil_mode": 1}),
    ],
)
def test_mean_of_windows_with_holes(count_include_pad: int, sizes: tuple[int, ...], attributes: dict[str, Any]) -> None:
    before = pool("AveragePool", 19, sizes, count_include_pad=count_include_pad, **attributes)
    feeds = {"x": random_array((2, 2, *sizes))}
    expected = run(before, feeds)
    for target in (18, 9):
        assert_same(expected, run(converted(before, target), feeds), 1e-5)


def test_rounding_up_of_windows_with_holes() -> None:
    before = pool("AveragePool", 19, (8, 7), kernel_shape=[2, 2], dilations=[2, 2], strides=[2, 2], ceil_mode=1)
    feeds = {"x": random_array((2, 2, 8, 7))}
    assert_same(run_reference(before, feeds), run(converted(before, 11), feeds), 1e-5)


@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize(
    "attributes", [{"ceil_mode": 1}, {"dilations": [2, 2]}, {"dilations": [1, 1], "pads": [1, 0, 0, 1]}]
)
def test_lp_pool_below_18(p: int, attributes: dict[str, Any]) -> None:
    before = pool("LpPool", 18, (7, 8), kernel_shape=[2, 3], strides=[2, 2], p=p, **attributes)
    feeds = {"x": random_array((2, 2, 7, 8))}
    for target in (11, 2):
        assert_same(run(before, feeds), run(converted(converted(before, target), 11), feeds), 1e-5)


def test_lp_pool_has_a_float_below_2() -> None:
    before = pool("LpPool", 2, (7,), kernel_shape=[2], p=3)
    after = converted(before, 1)
    assert {a.name: a.type for a in after.graph.node[0].attribute}["p"] == onnx.AttributeProto.FLOAT
    assert converted(after, 2).graph.node[0] == before.graph.node[0]


def test_padding_that_counts_below_7() -> None:
    before = pool("AveragePool", 7, (5, 6), kernel_shape=[3, 2], pads=[1, 0, 2, 1], count_include_pad=1)
    after = converted(before, 6)
    assert operators(after) == ["Pad", "AveragePool"]
    feeds = {"x": random_array((2, 2, 5, 6))}
    assert_same(run(before, feeds), run(converted(after, 10), feeds), 1e-6)


def test_indices_that_nobody_reads_below_8() -> None:
    node = helper.make_node("MaxPool", ["x"], ["y", "i"], kernel_shape=[2], storage_order=1)
    before = build(node, 8, {"x": ("float32", (1, 1, 4))}, {"y": ("float32", (1, 1, 3))})
    after = converted(before, 7)
    assert list(after.graph.node[0].output) == ["y"]
    feeds = {"x": random_array((1, 1, 4))}
    assert_same(run(before, feeds), run(after, feeds))


@pytest.mark.parametrize("way", [(10, 11), (11, 10)])
@pytest.mark.parametrize(
    "attributes",
    [
        {"output_shape": [10, 8], "strides": [3, 2], "output_padding": [1, 1]},
        {"output_shape": [10, 8], "strides": [3, 2]},
        {"auto_pad": "SAME_UPPER", "strides": [1, 1]},
        {"auto_pad": "SAME_LOWER", "strides": [3, 3], "output_padding": [0, 2]},
    ],
)
def test_padding_of_output_shape(way: tuple[int, int], attributes: dict[str, Any]) -> None:
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], **attributes)
    inputs = {"x": ("float32", (1, 1, 3, 3)), "w": ("float32", (1, 2, 3, 3))}
    before = build(node, way[0], inputs, {"y": ("float32", (1, 2, "h", "w"))})
    feeds = {"x": random_array((1, 1, 3, 3)), "w": random_array((1, 2, 3, 3), seed=1)}
    after = converted(before, way[1])
    assert_same(run(before, feeds), run(after, feeds), 1e-6)


@pytest.mark.parametrize(
    "attributes",
    [
        # OpenVINO ignores auto_pad beside output_shape.
        {"output_shape": [8, 8], "strides": [3, 3], "auto_pad": "SAME_UPPER"},
        # onnxruntime gives fewer elements than the evaluator where padding is negative.
        {"auto_pad": "SAME_UPPER", "strides": [2, 4]},
    ],
)
def test_odd_padding_that_engines_disagree_about_is_refused(attributes: dict[str, Any]) -> None:
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], **attributes)
    inputs = {"x": ("float32", (1, 1, 3, 3)), "w": ("float32", (1, 2, 3, 3))}
    assert "runtimes disagree about where" in refusal(build(node, 10, inputs, {"y": ("float32", (1, 2, "h", "w"))}), 11)


@pytest.mark.parametrize(
    ("attributes", "pads"),
    [
        ({"auto_pad": "SAME_UPPER", "strides": [2, 2]}, [0, 0, 1, 1]),
        ({"auto_pad": "SAME_LOWER", "strides": [2, 2]}, [1, 1, 0, 0]),
        ({"auto_pad": "SAME_LOWER", "strides": [2, 1], "dilations": [2, 1]}, [2, 1, 1, 1]),
        ({"auto_pad": "SAME_UPPER", "strides": [2, 2], "output_padding": [1, 0]}, [1, 0, 1, 1]),
        ({"output_shape": [8, 8], "strides": [3, 3]}, [1, 1, 0, 0]),
        ({"output_shape": [8, 8], "strides": [3, 3], "auto_pad": "SAME_LOWER"}, [1, 1, 0, 0]),
    ],
)
def test_odd_padding_goes_up_as_engines_read_it(attributes: dict[str, Any], pads: list[int]) -> None:
    """With auto_pad, the padding is the same for all sizes. onnx's evaluator fails on output_shape without auto_pad."""
    sizes = (3, 3) if "output_shape" in attributes else ("h", "w")
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], **attributes)
    inputs = {"x": ("float32", (1, 1, *sizes)), "w": ("float32", (1, 2, 3, 3))}
    before = build(node, 1, inputs, {"y": ("float32", (1, 2, None, None))})
    result = convert_opset(before, 13)
    after = result.model
    assert {held.name: list(held.ints) for held in after.graph.node[0].attribute}["pads"] == pads
    assert any("against its document" in change.why for change in result.changes)
    feeds = {"x": random_array((1, 1, 3, 3)), "w": random_array((1, 2, 3, 3), seed=1)}
    assert_same(run(before, feeds), run(after, feeds), 1e-6)
    if "auto_pad" in attributes:
        assert_same(run_reference(before, feeds), run_reference(after, feeds), 1e-6)


@pytest.mark.parametrize("op", ["AveragePool", "LpPool"])
def test_late_windows_that_every_engine_leaves_out_go_up(op: str) -> None:
    """The size of the input needs not be known: nothing changes."""
    before = pool(op, 18, ("h",), kernel_shape=[2], strides=[3], pads=[0, 1], ceil_mode=1)
    after = converted(before, 22)
    assert after.graph.node == before.graph.node
    for size in (4, 5, 6):
        feeds = {"x": random_array((1, 2, size))}
        assert_same(run(before, feeds), run(after, feeds))


@pytest.mark.parametrize(
    "attributes",
    [
        {"output_shape": [8, 8], "strides": [3, 3]},
        {"output_shape": [8, 10], "strides": [3, 3]},
        {"auto_pad": "SAME_UPPER", "strides": [2, 2]},
        {"auto_pad": "SAME_LOWER", "strides": [2, 2], "dilations": [2, 1]},
    ],
)
def test_odd_padding_of_output_shape_goes_down(attributes: dict[str, Any]) -> None:
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], **attributes)
    inputs = {"x": ("float32", (1, 1, 3, 3)), "w": ("float32", (1, 2, 3, 3))}
    before = build(node, 11, inputs, {"y": ("float32", (1, 2, "h", "w"))})
    feeds = {"x": random_array((1, 1, 3, 3)), "w": random_array((1, 2, 3, 3), seed=1)}
    after = converted(before, 9)
    assert any(held.name == "pads" for held in after.graph.node[0].attribute)
    assert_same(run(before, feeds), run(after, feeds), 1e-6)
    assert_same(run(before, feeds), run(converted(after, 11), feeds), 1e-6)


@pytest.mark.parametrize(
    ("sizes", "attributes"),
    [
        ((9,), {"kernel_shape": [3], "dilations": [2], "strides": [2]}),
        ((7, 8), {"kernel_shape": [2, 3], "dilations": [2, 1], "pads": [1, 0, 0, 2]}),
        ((7, 8), {"kernel_shape": [2, 2], "dilations": [3, 2], "strides": [2, 3], "ceil_mode": 1}),
    ],
)
def test_greatest_of_windows_with_holes(sizes: tuple[int, ...], attributes: dict[str, Any]) -> None:
    before = pool("MaxPool", 10, sizes, **attributes)
    feeds = {"x": random_array((2, 2, *sizes)) - 5}
    for target in (9, 8):
        assert_same(run(before, feeds), run(converted(before, target), feeds))
