"""ScatterElements and ScatterND with a reduction, below its first opset: nodes for a few updates, otherwise a Loop."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.crossings import Crossing
from conversion.operators.execute import (
    Array,
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

Dims = tuple[int | str, ...]
Shape = tuple[int, ...]

X = random_array((4, 5, 6))


def ints(*given: Any) -> Array:
    return np.array(given, np.int64)


def scattering(
    op_type: str, data: Dims | None, indices: Dims | None, updates: Dims | None, dtype: str = "float32", **given: Any
) -> onnx.ModelProto:
    """A model of one node at opset 18 that reduces; its attributes are given, but for `reduction` (add)."""
    node = helper.make_node(op_type, ["x", "i", "u"], ["y"], "node", **{"reduction": "add", **given})
    inputs = {"x": (dtype, data), "i": ("int64", indices), "u": (dtype, updates)}
    return build(node, 18, inputs, {"y": (dtype, data)})


def feeds_of(data: Shape, indices: Shape, updates: Shape, most: int, dtype: str = "float32") -> dict[str, Array]:
    """Data, updates, and indices of both signs below `most`; most of the indices occur several times."""
    places = np.random.default_rng(5).integers(-most, max(most, 1), indices)
    return {"x": random_array(data, dtype), "i": places, "u": random_array(updates, dtype, 1)}


@pytest.mark.parametrize(
    ("model", "target", "words"),
    [
        (scattering("ScatterND", None, None, None), 15, "the rank of 'i' is unknown"),
        (scattering("ScatterElements", None, None, None, axis=-1), 15, "the rank of 'i' is unknown"),
        (scattering("ScatterElements", None, None, None), 10, "GatherElements exists from opset 11 on and the rank"),
        (scattering("ScatterND", ("N",), (), ()), 15, "data and indices must have at least one axis"),
        (scattering("ScatterND", ("N", 3), ("M", "K"), ("M", 3)), 10, "into how many dimensions its indices count"),
        (scattering("ScatterElements", ("N", 3), ("M", 3), ("M", 3)), 8, "cannot go below opset 9"),
        (scattering("ScatterND", ("N", 3), ("M", 1), ("M", 3)), 8, "Scatter exists from opset 9 on"),
        (scattering("ScatterElements", ("N",), ("M",), ("M",), "bool"), 15, "Add does not take bool"),
        (scattering("ScatterND", ("N",), ("M", 1), ("M",), "bool", reduction="max"), 15, "Max does not take bool"),
    ],
    ids=[
        "tuples of any rank",
        "axis counted from the end of any rank",
        "any rank below 11",
        "no dimension",
        "tuples of any length below 11",
        "elements below 9",
        "tuples below 9",
        "sum of bool",
        "greatest bool",
    ],
)
def test_refusals(model: onnx.ModelProto, target: int, words: str) -> None:
    assert words in refusal(model, target)


@pytest.mark.parametrize(
    ("op_type", "data", "indices", "updates", "reduction", "target", "is_loop"),
    [
        ("ScatterElements", ("N",), ("M",), ("M",), "none", 15, False),
        ("ScatterND", ("N",), ("M", 1), ("M",), "none", 13, False),
        ("ScatterElements", ("N",), ("M",), ("M",), "add", 16, False),
        ("ScatterND", ("N",), ("M", 1), ("M",), "mul", 17, False),
        ("ScatterElements", ("N",), ("M",), ("M",), "max", 18, False),
        ("ScatterElements", ("N",), (32,), (32,), "max", 17, False),
        ("ScatterElements", ("N",), (33,), (33,), "max", 17, True),
        ("ScatterElements", ("N",), ("M",), ("M",), "min", 17, True),
        ("ScatterND", ("N", 3), (32, 1), (32, 3), "add", 15, False),
        ("ScatterND", ("N", 3), (4, 8, 1), (4, 8, 3), "add", 15, False),
        ("ScatterND", ("N", 3), (4, 9, 1), (4, 9, 3), "add", 15, True),
        ("ScatterND", ("N", 3), (1,), (3,), "add", 15, False),
    ],
)
def test_only_many_updates_or_any_number_need_a_loop(
    op_type: str, data: Dims, indices: Dims, updates: Dims, reduction: str, target: int, is_loop: bool
) -> None:
    after = converted(scattering(op_type, data, indices, updates, reduction=reduction), target)
    assert ("Loop" in operators(after)) == is_loop
    if reduction == "none" or target in (16, 18):
        assert operators(after) == [op_type]


def test_updates_without_a_shape_have_the_rank_that_data_and_indices_leave() -> None:
    assert refusal(scattering("ScatterND", ("N", 3), ("M", 1, 1), None), 15) == ""


def test_a_loop_stands_for_the_node() -> None:
    before = scattering("ScatterElements", ("N",), ("M",), ("M",))
    before.graph.node[0].metadata_props.add(key="made by", value="an exporter")
    (loop,) = [node for node in converted(before, 15).graph.node if node.op_type == "Loop"]
    assert (loop.name, loop.output) == ("node", ["y"])
    assert [each.key for each in loop.metadata_props] == ["made by"]


@pytest.mark.parametrize(
    ("op_type", "data", "indices", "axis_or_depth"),
    [
        ("ScatterElements", (4, 3), (40, 3), 0),
        ("ScatterElements", (4, 3), (4, 40), -1),
        ("ScatterElements", (3, 4, 2), (3, 35, 1), 1),
        ("ScatterElements", (4, 3), (0, 3), 0),
        ("ScatterElements", (0, 3), (0, 40), 1),
        ("ScatterND", (4, 3), (40, 1), 1),
        ("ScatterND", (4, 3), (40, 2), 2),
        ("ScatterND", (4, 3, 2), (2, 3, 7, 2), 2),
        ("ScatterND", (4, 3), (1,), 1),
        ("ScatterND", (4, 3), (5, 0, 2), 2),
        ("ScatterND", (4, 0), (36, 1), 1),
    ],
    ids=str,
)
@pytest.mark.parametrize(
    ("reduction", "dtype", "target", "is_static"),
    [
        ("add", "float32", 15, False),
        ("mul", "float64", 13, True),
        ("max", "int32", 11, False),
        ("min", "int64", 9, True),
        ("max", "float32", 17, False),
        ("add", "int64", 10, False),
    ],
)
def test_updates_are_reduced_in_their_order(
    op_type: str,
    data: Shape,
    indices: Shape,
    axis_or_depth: int,
    reduction: str,
    dtype: str,
    target: int,
    is_static: bool,
) -> None:
    elements = op_type == "ScatterElements"
    updates = indices if elements else (*indices[:-1], *data[axis_or_depth:])
    attributes = {"reduction": reduction, **({"axis": axis_or_depth} if elements else {})}
    declared = [
        shape if is_static else tuple(f"{name}{axis}" for axis in range(len(shape)))
        for name, shape in (("x", data), ("i", indices), ("u", updates))
    ]
    if not elements:
        declared[1] = (*declared[1][:-1], indices[-1])
    before = scattering(op_type, *declared, dtype, **attributes)
    after = converted(before, target)
    most = data[axis_or_depth] if elements else min(data[:axis_or_depth])
    feeds = feeds_of(data, indices, updates, most, dtype)
    expected = run(before, feeds)
    assert_same(expected, run(after, feeds))
    # The reference evaluator has no Scatter, and its GatherElements wants indices as wide as the data.
    if target >= 11 and (not elements or indices[1:] == data[1:] or axis_or_depth < 0):
        assert_same(expected, run_reference(after, feeds))


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
@pytest.mark.parametrize("target", [17, 15, 13])
def test_reductions(reduction: str, dtype: str, target: int) -> None:
    x = random_array((4, 3), dtype)
    for axis, count in product((0, 1), (1, 5)):
        shape = (count, 2) if axis == 0 else (2, count)
        indices = np.random.default_rng(2).integers(-3, 3, shape)
        given = {"x": x, "i": indices, "u": random_array(shape, dtype, 4)}
        attributes = {"axis": axis, "reduction": reduction}
        Crossing("", "ScatterElements", 18, target, given, {}, attributes, tolerance=1e-6).check()
    for tuples in (ints([1], [1], [-3]), ints([0, 1], [0, 1], [3, -3], [-4, 1])):
        updates = random_array((len(tuples), *x.shape[tuples.shape[1] :]), dtype, 6)
        attributes = {"reduction": reduction}
        Crossing(
            "", "ScatterND", 18, target, {"x": x, "i": tuples, "u": updates}, {}, attributes, tolerance=1e-6
        ).check()


@pytest.mark.parametrize(
    ("op_type", "axis", "data", "indices"),
    [
        ("ScatterElements", 1, ("N", 3), ("N", 3)),
        ("ScatterElements", -1, (4, "N", 3), (2, "M", 2)),
        ("ScatterElements", 0, (5, "N"), (0, "M")),
        ("ScatterND", 0, ("N", "M"), (3, 2)),
        ("ScatterND", 0, (4, "M"), (2, 1)),
    ],
)
@pytest.mark.parametrize(("reduction", "target"), [("add", 15), ("mul", 13), ("max", 17)])
def test_reductions_of_slices_of_unknown_size(
    op_type: str, axis: int, data: Dims, indices: Dims, reduction: str, target: int
) -> None:
    attributes = {"axis": axis} if op_type == "ScatterElements" else {}
    node = helper.make_node(op_type, ["x", "i", "u"], ["y"], reduction=reduction, **attributes)
    updates = indices if attributes else (*indices[:-1], *data[int(indices[-1]) :])
    inputs = {"x": ("float32", data), "i": ("int64", indices), "u": ("float32", updates)}
    before = build(node, 18, inputs, {"y": ("float32", data)})
    after = converted(before, target)
    for size in (0, 1, 3):
        shapes = [[size if isinstance(dim, str) else dim for dim in dims] for dims in (data, indices, updates)]
        length = shapes[0][axis]
        if not attributes and size == 0 and len(shapes[0]) == indices[-1]:
            continue
        most = length if attributes else min(shapes[0][: shapes[1][-1]])
        places = np.random.default_rng(size).integers(-most, most, shapes[1])
        feeds = {"x": random_array(shapes[0]), "i": places, "u": random_array(shapes[2], seed=1)}
        assert_same(run(before, feeds), run(after, feeds), 1e-6)


@pytest.mark.parametrize("target", [15, 11, 9])
@pytest.mark.parametrize(
    ("op_type", "data", "indices", "updates"),
    [
        ("ScatterElements", ("N", 3), ("M", 3), ("M", 3)),
        ("ScatterND", ("N", 3), ("M", 1), ("M", 3)),
        ("ScatterND", ("N", 3), ("M", "K", 1), ("M", "K", 3)),
    ],
)
def test_one_result_serves_every_number_of_updates(
    op_type: str, data: Dims, indices: Dims, updates: Dims, target: int
) -> None:
    before = scattering(op_type, data, indices, updates)
    after = converted(before, target)
    for sizes in ({"N": 4, "M": 0, "K": 2}, {"N": 1, "M": 1, "K": 0}, {"N": 3, "M": 50, "K": 2}):
        data_shape, *others = (
            tuple(sizes[dim] if isinstance(dim, str) else dim for dim in dims) for dims in (data, indices, updates)
        )
        feeds = feeds_of(data_shape, *others, sizes["N"])
        assert_same(run(before, feeds), run(after, feeds))


@pytest.mark.parametrize("target", [15, 12, 10, 9])
def test_loops_in_functions_branches_and_old_models(target: int) -> None:
    """Constants are nodes in a function and at IR version 3; the nodes of a loop go to the target in a branch too."""
    shapes: list[Dims] = [("N", 3), ("M", 3), ("M", 3)]
    feeds = feeds_of((4, 3), (40, 3), (40, 3), 4)
    adding = helper.make_node("ScatterElements", ["x", "i", "u"], ["z"], reduction="add")
    scaling = helper.make_node("ScatterElements", ["z", "i", "u"], ["y"], reduction="mul")

    called = scattering("ScatterElements", *shapes)
    called.graph.node[0].CopyFrom(helper.make_node("F", ["x", "i", "u"], ["y"], domain="my"))
    called.functions.append(
        helper.make_function("my", "F", ["x", "i", "u"], ["y"], [adding, scaling], [helper.make_opsetid("", 18)])
    )
    called.opset_import.append(helper.make_opsetid("my", 1))

    branch = helper.make_graph(
        [adding], "adds", [], [helper.make_tensor_value_info("z", onnx.TensorProto.FLOAT, ["N", 3])]
    )
    other = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["w"])],
        "keeps",
        [],
        [helper.make_tensor_value_info("w", onnx.TensorProto.FLOAT, ["N", 3])],
    )
    branching = scattering("ScatterElements", *shapes)
    branching.graph.node[0].CopyFrom(helper.make_node("If", ["c"], ["y"], then_branch=branch, else_branch=other))
    branching.graph.input.append(helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, []))

    old = scattering("ScatterElements", *shapes)
    old.ir_version = 3
    for before, given in (
        (called, feeds),
        (branching, {**feeds, "c": np.array(True)}),
        (branching, {**feeds, "c": np.array(False)}),
        (old, feeds),
    ):
        assert_same(run(before, given), run(converted(before, target), given))
