"""Reshape, Tile, Range, Constant, and copies of sequences and optionals."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.crossings import Crossing, both_shapes
from conversion.operators.execute import (
    assert_same,
    build,
    converted,
    operators,
    random_array,
    refusal,
    run,
    value,
)
from onnx import TensorProto, helper, numpy_helper

X = random_array((2, 3, 4))


@pytest.mark.parametrize(
    ("case", "words"),
    [
        (Crossing("time", "Reshape", 5, 4, {"x": X, "s": np.array([6, 4])}), "shape is an attribute"),
        (Crossing("scalar", "Reshape", 5, 4, {"x": X[0, 0, :1]}, {"s": np.zeros(0, np.int64)}), "empty list"),
        (
            Crossing("rank", "Tile", 5, 6, {"x": X}, {"t": np.float32(2), "a": np.float32(1)}, shapes="unknown"),
            "the rank of 'x' is unknown",
        ),
    ],
    ids=str,
)
def test_refusals(case: Crossing, words: str) -> None:
    assert words in case.refused()


@pytest.mark.parametrize("target", [5, 8, 13, 18])
def test_shape_becomes_a_constant(target: int) -> None:
    for shape in ([6, 4], [0, -1], [-1]):
        attributes = {"shape": shape, "consumed_inputs": [0]}
        expected = [X.reshape([X.shape[at] if size == 0 else size for at, size in enumerate(shape)])]
        Crossing("", "Reshape", 1, target, {"x": X}, {}, attributes, expected=expected).check()


def test_shape_becomes_an_attribute() -> None:
    after = converted(Crossing("", "Reshape", 13, 4, {"x": X}, {"s": np.array([0, -1])}).model(), 4)
    (node,) = after.graph.node
    assert {attribute.name: list(attribute.ints) for attribute in node.attribute} == {"shape": [0, -1]}


@pytest.mark.parametrize(
    ("shape", "new"),
    [((2, 3), (3, 2)), ((2, 0, 3), (0, 6)), ((0, 2), (2, 0, 5)), ((2, 3), (-1,)), ((0,), (0, 0)), ((1,), ())],
)
@pytest.mark.parametrize("dtype", ["float32", "bool"])
@pytest.mark.parametrize("target", [13, 11, 8])
def test_dimensions_of_zero(shape: tuple[int, ...], new: tuple[int, ...], dtype: str, target: int) -> None:
    x, held = random_array(shape, dtype), np.array(new, np.int64)
    for first, rest in (({"x": x}, {"s": held}), ({"x": x, "s": held}, {})):
        for case in both_shapes(Crossing("", "Reshape", 14, target, first, rest, {"allowzero": 1})):
            case.check()


def viewed(dims: tuple[str | int, ...], lengths: tuple[str | int, ...], *, given: int | None = None) -> onnx.ModelProto:
    """Reshape with allowzero to lengths of which a name is a dimension of the data, "A*B" a product of two, and "?" is
    known only at run time. given: how many lengths are given at run time, instead of all that.
    """
    nodes, held, inputs = [], {}, {"x": ("float32", dims)}

    def size(name: str) -> str:
        axis = dims.index(name)
        nodes.append(helper.make_node("Shape", ["x"], [f"{name}{len(nodes)}"], start=axis, end=axis + 1))
        return str(nodes[-1].output[0])

    parts = []
    for place, length in enumerate(lengths):
        if isinstance(length, int):
            held[f"l{place}"] = np.array([length])
            parts.append(f"l{place}")
        elif length == "?":
            inputs[f"l{place}"] = ("int64", (1,))
            parts.append(f"l{place}")
        else:
            factors = []
            for factor in length.split("*"):
                if factor.isdigit():
                    held[f"n{factor}"] = np.array([int(factor)])
                factors.append(f"n{factor}" if factor.isdigit() else size(factor))
            if len(factors) == 2:
                nodes.append(helper.make_node("Mul", factors, [f"p{place}"]))
            parts.append(f"p{place}" if len(factors) == 2 else factors[0])
    if given is None:
        nodes.append(helper.make_node("Concat", parts, ["s"], axis=0))
    else:
        inputs["s"] = ("int64", (given,))
    nodes.append(helper.make_node("Reshape", ["x", "s"], ["y"], allowzero=1))
    return build(nodes, 18, inputs, {"y": ("float32", [None] * (given or len(lengths)))}, held)


def sizes_of(dims: tuple[str | int, ...]) -> list[dict[str, int]]:
    names = list(dict.fromkeys(name for name in dims if isinstance(name, str)))
    return [dict(zip(names, sizes, strict=True)) for sizes in product((0, 1, 3), repeat=len(names))]


@pytest.mark.parametrize(
    ("dims", "lengths", "written"),
    [
        # A 0 copies a 0.
        (("B", "T", 4), ("B", "T", 2, 2), []),
        (("B", "T", 2, 2), ("B", "T", 4), []),
        (("B", 4, "T"), ("B", "2*T", 2), None),
        (("B", "T", 4), ("B", "4*T"), []),
        (("B", "T", 4), ("2*B", "T", 2), []),
        (("B", 6, 4), ("2*B", 3, 4), []),
        (("B", 4, 3), ("2*B", "?"), None),
        # So it does once dimensions of 1 are put in, or taken out in the end.
        (("B", "T"), ("B", 1, "T"), ["Unsqueeze"]),
        (("B", "T", 6), ("B", 2, "T", 3), ["Unsqueeze"]),
        (("B", 6, "T", "U"), ("B", 2, 3, "T", "U"), ["Unsqueeze"]),
        (("B", 2, 3, "T", "U"), ("B", 6, "T", "U"), ["Squeeze"]),
        (("B", 1, 2, "T"), ("B", 2, "T"), ["Squeeze"]),
        (("B", 6, 1, "T", 1), ("B", 6, "T"), ["Squeeze"]),
        # Nothing but the first dimension can be 0.
        (("B", 4, 3), ("?", 2, 3), []),
        # What is left takes a 0 on.
        (("B", "T", 4), ("B*T", 4), []),
        (("T", "B", 4), ("B*T", 2, 2), []),
        (("B", 2, "T", 4), (2, "B*T", 4), []),
        # A length of 0 meets a dimension that is none.
        (("B", 2, "T"), ("B", "T", 2), None),
        (("B", "T", 4), ("T", "B", 4), None),
        (("B", 2, "T", 4), ("2*B", "T", 4), None),
        (("B", "T", 4), ("T", "4*B"), None),
        (("B", "T", 4), ("4*B", "T", 1, 1), []),
        # One length that inference works out of the others, of which a 0 leaves it open.
        (("B", "T", 4), ("?", "T", 4), None),
    ],
    ids=str,
)
@pytest.mark.parametrize("target", [13, 9])
def test_lengths_of_zero_among_dynamic_ones(
    dims: tuple[str | int, ...], lengths: tuple[str | int, ...], written: list[str] | None, target: int
) -> None:
    """written: the operators for the Reshape besides itself; None where it takes more."""
    before = viewed(dims, lengths)
    after = converted(before, target)
    others = {"Shape", "Slice", "Mul", "Concat", "Reshape"}
    found = [operator for operator in operators(after) if operator not in others]
    assert found == (["Sign", "Abs", "Expand"] if written is None else written)
    for sizes in sizes_of(dims):
        x = random_array([sizes[dim] if isinstance(dim, str) else dim for dim in dims])
        feeds = {"x": x}
        if "?" in lengths:
            whole = [np.prod([sizes.get(f, 0) or int(f.isdigit() and f) for f in str(n).split("*")]) for n in lengths]
            rest = int(np.prod([n for n, length in zip(whole, lengths, strict=True) if length != "?"]))
            # Of nothing, any number.
            feeds[f"l{lengths.index('?')}"] = np.array([x.size // rest if rest else 0])
        assert_same(run(before, feeds), run(after, feeds))


@pytest.mark.parametrize("target", [13, 9])
def test_lengths_that_nothing_is_known_of(target: int) -> None:
    for dims, written in ((("B", 4), None), (("B", "T"), None), (("B",), [])):
        before = viewed(dims, (), given=len(dims))
        after = converted(before, target)
        assert [n for n in operators(after) if n != "Reshape"] == (["Sign", "Abs", "Expand"] if written is None else [])
        for sizes in sizes_of(dims):
            x = random_array([sizes[dim] if isinstance(dim, str) else dim for dim in dims])
            feeds = {"x": x, "s": np.array(x.shape[::-1])}
            assert_same(run(before, feeds), run(after, feeds))


def test_alike_nodes_of_which_other_lengths_are_known() -> None:
    """What inference works out is the same: that of the second may still be 0 where that of the first is not."""
    nodes = [
        helper.make_node("Shape", ["x"], ["b"], start=0, end=1),
        helper.make_node("Shape", ["x"], ["t"], start=1, end=2),
        helper.make_node("Concat", ["b", "t", "four"], ["s"], axis=0),
        helper.make_node("Concat", ["n", "t", "four"], ["r"], axis=0),
        helper.make_node("Reshape", ["x", "s"], ["y"], allowzero=1),
        helper.make_node("Reshape", ["x", "r"], ["z"], allowzero=1),
    ]
    inputs = {"x": ("float32", ("B", "T", 4)), "n": ("int64", (1,))}
    outputs = {"y": ("float32", [None] * 3), "z": ("float32", [None] * 3)}
    for listed in (nodes, [*nodes[:4], nodes[5], nodes[4]]):
        before = build(listed, 18, inputs, outputs, {"four": np.array([4])})
        after = converted(before, 13)
        for x, n in ((random_array((2, 3, 4)), 2), (random_array((2, 0, 4)), 0), (random_array((0, 3, 4)), 0)):
            feeds = {"x": x, "n": np.array([n])}
            assert_same(run(before, feeds), run(after, feeds))


@pytest.mark.parametrize(
    ("lengths", "written"), [(("B", "T", -1, 2), []), (("B", "?", -1, 2), []), (("T", -1), ["Sign", "Abs", "Expand"])]
)
def test_a_0_beside_a_rest(lengths: tuple[str | int, ...], written: list[str]) -> None:
    """It is not valid, though onnxruntime takes it: it takes none of what is written."""
    before = viewed(("B", "T", 4), lengths)
    after = converted(before, 13)
    assert [n for n in operators(after) if n not in ("Shape", "Slice", "Concat", "Reshape")] == written
    for sizes in sizes_of(("B", "T")):
        feeds = {"x": random_array((sizes["B"], sizes["T"], 4))}
        if "?" in lengths:
            feeds["l1"] = np.array([sizes["T"]])
        if 0 in sizes.values() and not (lengths[0] == "T" and sizes["T"]):
            with pytest.raises(Exception, match="cannot be reshaped"):
                run(after, feeds)
        else:
            assert_same(run(before, feeds), run(after, feeds))


def test_lengths_that_the_author_knows() -> None:
    """What is known of the lengths in the model is how many there are."""
    before = viewed(("B", 6), (), given=3)
    assert "Expand" in operators(converted(before, 13))
    before.graph.output[0].CopyFrom(value("y", ("float32", ("B", 3, 2))))
    after = converted(before, 13)
    assert operators(after) == ["Reshape"]
    for size in (0, 1, 3):
        feeds = {"x": random_array((size, 6)), "s": np.array([size, 3, 2])}
        assert_same(run(before, feeds), run(after, feeds))


@pytest.mark.parametrize("lengths", [(-1, 2), (2, -1), (1, 4, -1)])
def test_what_is_left_of_nothing(lengths: tuple[int, ...]) -> None:
    """A valid -1 has no 0 beside it."""
    before = viewed(("B", 4), lengths)
    after = converted(before, 13)
    assert [n for n in operators(after) if n not in ("Concat", "Reshape")] == []
    for size in (0, 1, 3):
        assert_same(run(before, {"x": X[0, :1].repeat(size, 0)}), run(after, {"x": X[0, :1].repeat(size, 0)}))


@pytest.mark.parametrize("target", [6, 9, 13, 18])
@pytest.mark.parametrize("axis", [0, 2])
def test_tile_goes_up(target: int, axis: int) -> None:
    parts = {"t": np.float32(3), "a": np.float32(axis)}
    repeats = [3 if place == axis else 1 for place in range(3)]
    for given in ((), ("t",), ("a",), ("t", "a")):
        first = {"x": X, **{name: parts[name] for name in given}}
        rest = {name: array for name, array in parts.items() if name not in given}
        inputs = ("x", "t", "a")
        Crossing("", "Tile", 1, target, first, rest, {}, inputs, expected=[np.tile(X, repeats)]).check()


@pytest.mark.parametrize(("repeats", "count"), [((1, 1, 1), 0), ((2, 1, 3), 2), ((1, 0, 1), 1)])
def test_tile_goes_down(repeats: tuple[int, ...], count: int) -> None:
    after = converted(Crossing("", "Tile", 6, 5, {"x": X}, {"r": np.array(repeats)}).model(), 5)
    assert operators(after) == (["Tile"] * count or ["Identity"])


RANGES = [(0, 5, 1), (10, 4, -2), (3, 9, 3), (1, 0, 1), (0, 10, 4), (5, -5, -3), (-3, 4, 2), (2, 2, 1), (9, 3, 4)]


@pytest.mark.parametrize("dtype", ["int16", "int32", "int64", "float32", "float64"])
@pytest.mark.parametrize("target", [10, 9])
def test_range(dtype: str, target: int) -> None:
    for bounds in RANGES:
        given = {name: np.array(bound, dtype) for name, bound in zip(("a", "b", "c"), bounds, strict=True)}
        Crossing("", "Range", 11, target, given).check()
        expected = [np.arange(*bounds).astype(dtype)]
        Crossing(
            "", "Range", 11, target, {"a": given["a"]}, {"b": given["b"], "c": given["c"]}, expected=expected
        ).check()


def test_range_of_fractions() -> None:
    for bounds in ((0, 1, 0.1), (1, -1, -0.3), (0.5, 7.25, 1.25)):
        given = {name: np.float32(bound) for name, bound in zip(("a", "b", "c"), bounds, strict=True)}
        Crossing("", "Range", 11, 9, given, tolerance=1e-6).check()


def constant(opset: int, dtype: str, elements: np.ndarray | None = None, **attributes: Any) -> onnx.ModelProto:
    if elements is not None:
        attributes["value"] = numpy_helper.from_array(elements)
    node = helper.make_node("Constant", [], ["y"], **attributes)
    return build(node, opset, {}, {"y": (dtype, None if elements is None else elements.shape)})


@pytest.mark.parametrize("dtype", ["int64", "int32", "uint8", "bool", "float32", "float64"])
@pytest.mark.parametrize("target", [8, 7])
def test_constants_below_9(dtype: str, target: int) -> None:
    elements = np.array([[0, 1, 2], [3, 100, 7]]).astype(dtype)
    before = constant(13, dtype, elements)
    assert_same(run(before, {}), run(converted(before, target), {}))


def test_constants_that_no_float_holds() -> None:
    before = constant(13, "int64", np.array([2**53 + 1, -(2**62)]))
    after = converted(before, 8)
    assert operators(after) == ["Identity"]
    assert_same(run(before, {}), run(after, {}))


@pytest.mark.parametrize("by_place", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_sparse_constants(by_place: bool, dtype: str) -> None:
    values = numpy_helper.from_array(np.array([5, -2]).astype(dtype), "values")
    places = np.array([1, 5]) if by_place else np.array([[0, 1], [1, 2]])
    sparse = helper.make_sparse_tensor(values, numpy_helper.from_array(places, "indices"), [2, 3])
    node = helper.make_node("Constant", [], ["y"], sparse_value=sparse)
    model = build(node, 11, {}, {"y": (dtype, (2, 3))})
    expected = np.array([[0, 5, 0], [0, 0, -2]]).astype(dtype)
    for target in (10, 9):
        assert_same([expected], run(converted(model, target), {}))


@pytest.mark.parametrize("target", [13, 11])
@pytest.mark.parametrize("dtype", ["float32", "int64", "bool"])
def test_sequences_are_copied(target: int, dtype: str) -> None:
    nodes = [
        helper.make_node("SequenceConstruct", ["x", "x"], ["s"]),
        helper.make_node("Identity", ["s"], ["c"]),
        helper.make_node("SequenceAt", ["c", "i"], ["y"]),
        helper.make_node("SequenceLength", ["c"], ["n"]),
    ]
    inputs = {"x": (dtype, (2, 3)), "i": ("int64", ())}
    model = build(nodes, 14, inputs, {"y": (dtype, (2, 3)), "n": ("int64", ())})
    feeds = {"x": random_array((2, 3), dtype), "i": np.array(-1)}
    after = converted(model, target)
    assert "SequenceErase" in operators(after)
    assert_same(run(model, feeds), run(after, feeds))


def test_what_is_no_optional_is_itself() -> None:
    nodes = [
        helper.make_node("OptionalHasElement", ["x"], ["has"]),
        helper.make_node("OptionalHasElement", [], ["none"]),
        helper.make_node("OptionalGetElement", ["x"], ["y"]),
    ]
    outputs = {"has": ("bool", ()), "none": ("bool", ()), "y": ("float32", (2, 3, 4))}
    model = build(nodes, 18, {"x": ("float32", (2, 3, 4))}, outputs)
    for target in (17, 13, 9):
        assert_same([np.array(True), np.array(False), X], run(converted(model, target), {"x": X}))


def test_optional_inputs_are_refused_below_15() -> None:
    optional = helper.make_optional_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [2]))
    node = helper.make_node("OptionalHasElement", ["x"], ["y"])
    inputs = [helper.make_value_info("x", optional)]
    outputs = [helper.make_tensor_value_info("y", TensorProto.BOOL, [])]
    graph = helper.make_graph([node], "g", inputs, outputs)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=8)
    assert "OptionalHasElement exists from opset 15 on" in refusal(model, 14)
    assert operators(converted(model, 15)) == ["OptionalHasElement"]


EXPANDED: list[tuple[tuple[int, ...], list[int]]] = [
    ((1, 3), [2, 3]),
    ((3,), [2, 1, 3]),
    ((), [2, 2]),
    ((2, 1), [3]),
    ((2, 3), [1, 1]),
    ((1, 2), [0, 2]),
    ((), []),
]


@pytest.mark.parametrize("target", [7, 6])
@pytest.mark.parametrize(("shape", "asked"), EXPANDED)
def test_expand_by_repeating(shape: tuple[int, ...], asked: list[int], target: int) -> None:
    x, sizes = random_array(shape), np.array(asked, np.int64)
    expected = [x * np.ones(asked, np.float32)]
    for given, constants in (({"x": x}, {"s": sizes}), ({"x": x, "s": sizes}, {})):
        Crossing("", "Expand", 8, target, given, constants, expected=expected).check()


def test_expand_of_what_may_be_one_or_not_is_refused() -> None:
    case = Crossing("", "Expand", 8, 7, {"x": X, "s": np.array([2, 3, 4])}, shapes="symbolic")
    assert "is 1 is not known" in case.refused()


@pytest.mark.parametrize("target", [13, 12, 9, 8])
def test_zeros_of_a_shape_that_is_followed(target: int) -> None:
    nodes = [helper.make_node("Shape", ["z"], ["s"]), helper.make_node("Reshape", ["x", "s"], ["y"], allowzero=1)]
    given = {"x": np.zeros((3, 0), np.float32), "z": np.zeros((0, 4), np.float32)}
    inputs = {name: ("float32", array.shape) for name, array in given.items()}
    after = converted(build(nodes, 14, inputs, {"y": ("float32", (0, 4))}), target)
    assert_same([given["z"]], run(after, given))
