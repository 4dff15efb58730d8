"""Slices that are all parts of a value as one Split: near misses, which stay as they are, then what is joined."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from sliced_models import (
    END,
    FLOAT,
    assert_same,
    constant,
    data,
    gather_node,
    held,
    model_of,
    operators,
    slice_node,
    sliced,
    value,
)

import splitgraph


def nodes_of(*groups: list[onnx.NodeProto]) -> list[onnx.NodeProto]:
    return [node for group in groups for node in group]


def stepped(step: int) -> onnx.ModelProto:
    nodes = nodes_of(slice_node("y0", 0, 3), slice_node("y1", 3, 6), [constant("steps", [step])])
    nodes[-2].input.append("steps")
    nodes.insert(0, nodes.pop())
    return model_of(nodes, ["y0", "y1"])


def two_axes() -> onnx.ModelProto:
    bounds = [constant("zero", [0, 0]), constant("half", [3, 4]), constant("axes", [0, 1])]
    whole = helper.make_node("Slice", ["x", "zero", "half", "axes"], ["y0"])
    return model_of([*bounds, whole, *slice_node("y1", 3, 6)], ["y0", "y1"])


def two_values() -> onnx.ModelProto:
    nodes = [helper.make_node("Neg", ["x"], ["z"]), *slice_node("y0", 0, 3), *slice_node("y1", 3, 6, data="z")]
    return model_of(nodes, ["y0", "y1"])


def overridable() -> onnx.ModelProto:
    nodes = nodes_of(slice_node("y0", 0, "cut"), slice_node("y1", "cut", 6))
    return model_of(nodes, ["y0", "y1"], initializers=[held("cut", [3])], inputs=[value("cut", [1], TensorProto.INT64)])


def in_branches() -> onnx.ModelProto:
    """One part in a branch, the other in the main graph."""
    graphs = {
        name: helper.make_graph(slice_node(f"{name}_y", 0, 3), name, [], [value(f"{name}_y", None)])
        for name in ("then_branch", "else_branch")
    }
    nodes = [helper.make_node("If", ["choice"], ["y0"], **graphs), *slice_node("y1", 3, 6)]
    return model_of(nodes, ["y0", "y1"], inputs=[value("choice", [], TensorProto.BOOL)])


def of_a_shape() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        *slice_node("y0", 0, 1, data="s"),
        *slice_node("y1", 1, 2, data="s"),
    ]
    made = model_of(nodes, ["y0", "y1"], ("N", 4))
    for output in made.graph.output:
        output.type.tensor_type.elem_type = TensorProto.INT64
    return made


def unknown_bound() -> onnx.ModelProto:
    nodes = nodes_of(slice_node("y0", 0, "cut"), slice_node("y1", "cut", 6))
    return model_of(nodes, ["y0", "y1"], inputs=[value("cut", [1], TensorProto.INT64)])


def read_too_early() -> onnx.ModelProto:
    """The second bound, which the lengths need, is computed from the first part."""
    nodes = [
        *slice_node("y0", 0, 2),
        helper.make_node("Shape", ["y0"], ["s"]),
        *slice_node("n", 0, 1, data="s"),
        helper.make_node("Shape", ["x"], ["sx"]),
        *slice_node("nx", 0, 1, data="sx"),
        constant("two", [2]),
        helper.make_node("Div", ["nx", "two"], ["half"]),
        helper.make_node("Add", ["half", "n"], ["cut"]),
        *slice_node("y1", 2, "cut"),
        *slice_node("y2", "cut", END),
    ]
    return model_of(nodes, ["y0", "y1", "y2"], ("2*N + 4", 4))


def gathered(*indices: Any) -> onnx.ModelProto:
    nodes = nodes_of(*(gather_node(f"y{place}", each) for place, each in enumerate(indices)))
    return model_of(nodes, [f"y{place}" for place in range(len(indices))])


NEAR_MISSES = {
    "a gap": sliced([(0, 2), (3, 6)]),
    "no first part": sliced([(2, 4), (4, 6)]),
    "no last part": sliced([(0, 2), (2, 5)]),
    "an overlap": sliced([(0, 4), (3, 6)]),
    "a part twice": sliced([(0, 3), (3, 6), (3, 6)]),
    "another slice of the axis": sliced([(0, 3), (3, 6), (1, 2)]),
    "the whole alone": sliced([(0, 6)]),
    "no part at all": sliced([(3, 3)]),
    "a backward range": sliced([(0, 6), (4, 2)]),
    "a step": stepped(2),
    "a step backward": stepped(-1),
    "two axes in one node": two_axes(),
    "an axis each": model_of(nodes_of(slice_node("y0", 0, 3), slice_node("y1", 3, 4, 1)), ["y0", "y1"]),
    "two values": two_values(),
    "a bound that a caller may replace": overridable(),
    "a bound that is an input": unknown_bound(),
    "parts in several graphs": in_branches(),
    "a shape": of_a_shape(),
    "an unknown dimension": sliced([(0, 3), (3, 6)], (None, 4)),
    "an unknown rank": sliced([(0, 3), (3, 6)], None),
    "a part that may overlap": sliced([(0, 1), (1, -1), (-1, END)], ("N", 4)),
    "computed lengths below opset 13": sliced([(0, 3), (3, END)], ("N", 4), opset=12),
    "a computed bound behind a reader": read_too_early(),
    "integers below opset 2": sliced([(0, 3), (3, 6)], opset=1, dtype=TensorProto.INT32),
    "indices with a gap": gathered([0, 2, 1], [3, 4, 5]),
    "indices of two axes": gathered([[0, 1, 2]], [3, 4, 5]),
    "indices around the end": gathered([-1, 0], [1, 2, 3, 4]),
    "a scalar index missing": gathered(0, 1, 2, 3, 4),
}


@pytest.mark.parametrize("name", NEAR_MISSES)
def test_a_near_miss_is_left_alone(name: str) -> None:
    model = NEAR_MISSES[name]
    rewrite = splitgraph.convert(model, "split")
    assert rewrite.model.SerializeToString(deterministic=True) == model.SerializeToString(deterministic=True)
    assert (rewrite.changes, rewrite.diagnostics) == ((), ())


# Bounds, opset, and the inputs and attributes of the Split beside the axis.
STATIC = [
    ([(0, 3), (3, 6)], 1, {}),
    ([(0, 2), (2, 6)], 1, {"split": [2, 4]}),
    ([(0, 3), (3, 6)], 9, {}),
    ([(0, 2), (2, 6)], 12, {"split": [2, 4]}),
    ([(0, 3), (3, 6)], 13, {}),
    ([(0, 2), (2, 6)], 13, "lengths"),
    ([(0, 3), (3, 6)], 18, {"num_outputs": 2}),
    ([(0, 2), (2, 4), (4, 6)], 24, {"num_outputs": 3}),
    ([(3, 6), (0, 3)], 18, {"num_outputs": 2}),
    ([(-3, 99), (-99, -3)], 18, {"num_outputs": 2}),
    ([(0, 4), (4, 6)], 18, "lengths"),
    ([(0, 0), (0, 6)], 18, "lengths"),
    ([(0, 6), (5, 5)], 18, "lengths"),
]


@pytest.mark.parametrize(("bounds", "opset", "form"), STATIC)
def test_slices_become_the_plain_form_of_the_opset(bounds: Any, opset: int, form: Any) -> None:
    model = sliced(bounds, opset=opset)
    rewrite = splitgraph.convert(model, "split")
    (split,) = (node for node in rewrite.model.graph.node if node.op_type == "Split")
    given = {each.name: helper.get_attribute_value(each) for each in split.attribute if each.name != "axis"}
    assert (len(split.input), given) == ((2, {}) if form == "lengths" else (1, form))
    assert operators(rewrite.model) == ["Split"]
    if opset > 1:
        assert_same(model, rewrite.model, data(6, 4))


@pytest.mark.parametrize(
    ("bounds", "shape"),
    [
        ([(0, 3), (3, END)], ("N", 4)),
        ([(-3, END), (0, -3)], ("N", 4)),
        ([(0, 2), (2, 4), (4, 2**31 - 1)], ("N", 4)),
        ([(0, 1), (1, -1), (-1, END)], ("N + 2", 4)),
    ],
)
def test_a_dynamic_dimension_is_cut_as_slices_clamp_their_bounds(bounds: Any, shape: Any) -> None:
    model = sliced(bounds, shape, opset=13)
    rewrite = splitgraph.convert(model, "split")
    assert operators(rewrite.model)[-1] == "Split"
    assert_same(model, rewrite.model, *(data(size, 4) for size in range(2 if shape[0] != "N" else 0, 8)))


@pytest.mark.parametrize(("opset", "shape"), [(11, "2*N"), (18, "2*N"), (13, "N"), (18, "N")])
def test_halves_at_run_time(opset: int, shape: str) -> None:
    """Equal halves need no lengths; others are computed from the bounds of the slices."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        constant("first", [0]),
        constant("two", [2]),
        helper.make_node("Gather", ["s", "first"], ["n"], axis=0),
        helper.make_node("Div", ["n", "two"], ["half"]),
        *slice_node("y0", 0, "half"),
        *slice_node("y1", "half", END),
    ]
    model = model_of(nodes, ["y0", "y1"], (shape, 4), opset=opset)
    after = splitgraph.convert(model, "split").model
    (split,) = (node for node in after.graph.node if node.op_type == "Split")
    assert len(split.input) == (1 if shape == "2*N" else 2)
    assert_same(model, after, *(data(size, 4) for size in ((2, 4, 6) if shape == "2*N" else range(1, 8))))


@pytest.mark.parametrize(("dim", "is_joined"), [("N + 2", True), ("N", False)])
def test_bounds_that_are_negative_at_run_time(dim: str, is_joined: bool) -> None:
    """Half of a dimension from its end. Half of 1 is 0, which is the start and not the end."""
    nodes = [
        helper.make_node("Shape", ["x"], ["s"]),
        constant("first", [0]),
        constant("two", [2]),
        helper.make_node("Gather", ["s", "first"], ["n"], axis=0),
        helper.make_node("Div", ["n", "two"], ["half"]),
        helper.make_node("Neg", ["half"], ["cut"]),
        *slice_node("y0", 0, "cut"),
        *slice_node("y1", "cut", END),
    ]
    model = model_of(nodes, ["y0", "y1"], (dim, 4))
    after = splitgraph.convert(model, "split").model
    assert ("Split" in operators(after)) == is_joined
    assert_same(model, after, *(data(size, 4) for size in range(2, 7)))


@pytest.mark.parametrize("opset", [9, 11, 13, 18])
def test_gathers_of_each_element_are_a_split_and_squeezes(opset: int) -> None:
    nodes = nodes_of(*(gather_node(f"y{index}", index, 1) for index in (2, 0, 3, 1)))
    model = model_of(nodes, ["y0", "y1", "y2", "y3"], opset=opset)
    rewrite = splitgraph.convert(model, "split")
    assert operators(rewrite.model) == ["Split", *["Squeeze"] * 4]
    assert [node.name for node in rewrite.model.graph.node if node.op_type == "Squeeze"] == [
        f"y{index}_gather" for index in range(4)
    ]
    assert_same(model, rewrite.model, data(6, 4))


def test_slices_and_gathers_join() -> None:
    nodes = nodes_of(slice_node("y0", 0, 2), gather_node("y1", [2, 3]), gather_node("y2", -2), gather_node("y3", 5))
    model = model_of(nodes, ["y0", "y1", "y2", "y3"])
    rewrite = splitgraph.convert(model, "split")
    assert operators(rewrite.model) == ["Split", "Squeeze", "Squeeze"]
    assert_same(model, rewrite.model, data(6, 4))
    assert [change.before for change in rewrite.changes] == ["Slice-13", "Gather-13", "Gather-13", "Gather-13"]


def test_the_changes_name_the_parts() -> None:
    model = sliced([(3, 6), (0, 3)])
    model.graph.node[3].doc_string = "the second half"
    rewrite = splitgraph.convert(model, "split")
    assert [(change.location, change.before, change.after, change.why) for change in rewrite.changes] == [
        ("main/y0_slice", "Slice-13", "Split-18", "convert --to split: part 2 of 2 of x on axis 0"),
        ("main/y1_slice", "Slice-13", "Split-18", "convert --to split: part 1 of 2 of x on axis 0"),
    ]
    (split,) = rewrite.model.graph.node
    assert (split.name, split.doc_string, list(split.output)) == ("y0_slice", "the second half", ["y1", "y0"])


def test_parts_of_a_branch_and_of_a_function() -> None:
    nodes = nodes_of(slice_node("a", 0, 2), slice_node("b", 2, 4), [helper.make_node("Neg", ["b"], ["c"])])
    branch = helper.make_graph(nodes, "then_branch", [], [value("a", None), value("c", None)])
    other = helper.make_graph(
        [helper.make_node("Identity", ["x"], ["d"]), helper.make_node("Identity", ["x"], ["e"])],
        "else_branch", [], [value("d", None), value("e", None)],
    )  # fmt: skip
    chosen = helper.make_node("If", ["choice"], ["y0", "y1"], then_branch=branch, else_branch=other)
    model = model_of([chosen], ["y0", "y1"], (4, 2), inputs=[value("choice", [], TensorProto.BOOL)])
    model.functions.append(helper.make_function("own", "cut", ["x"], ["a", "c"], nodes, [helper.make_opsetid("", 18)]))
    model.graph.node.append(helper.make_node("cut", ["x"], ["y2", "y3"], domain="own"))
    model.graph.output.extend([value("y2", None), value("y3", None)])
    model.opset_import.append(helper.make_opsetid("own", 1))
    after = splitgraph.convert(model, "split").model
    then = next(each.g for each in after.graph.node[0].attribute if each.name == "then_branch")
    for body in (then, after.functions[0]):
        assert [node.op_type for node in body.node if node.op_type != "Constant"] == ["Split", "Neg"]
    feeds = [{**data(4, 2), "choice": np.array(choice)} for choice in (True, False)]
    assert_same(model, after, *feeds)


def test_slices_of_slices_are_joined_too() -> None:
    nodes = nodes_of(
        slice_node("a", 0, 4), slice_node("b", 4, 6), slice_node("c", 0, 2, data="a"), slice_node("d", 2, 4, data="a")
    )
    model = model_of(nodes, ["b", "c", "d"])
    after = splitgraph.convert(model, "split").model
    assert operators(after) == ["Split", "Split"]
    assert_same(model, after, data(6, 4))


def test_a_part_that_a_branch_reads() -> None:
    nodes = nodes_of(slice_node("a", 0, 3), slice_node("b", 3, 6))
    graphs = {
        name: helper.make_graph([helper.make_node(op, ["b"], [f"{name}_y"])], name, [], [value(f"{name}_y", None)])
        for name, op in (("then_branch", "Neg"), ("else_branch", "Abs"))
    }
    nodes.append(helper.make_node("If", ["choice"], ["y"], **graphs))
    model = model_of(nodes, ["a", "y"], inputs=[value("choice", [], TensorProto.BOOL)])
    after = splitgraph.convert(model, "split").model
    assert operators(after) == ["Split", "If"]
    assert_same(model, after, {**data(6, 4), "choice": np.array(True)})


def test_types_of_the_parts_stay() -> None:
    model = sliced([(0, 3), (3, 6)], kept=[])
    model.graph.node.append(helper.make_node("Neg", ["y1"], ["z"]))
    model.graph.value_info.append(value("y1", [3, 4]))
    del model.graph.output[1]
    model.graph.output.append(value("z", [3, 4], FLOAT))
    assert list(splitgraph.convert(model, "split").model.graph.value_info) == list(model.graph.value_info)


def test_joined_once_nothing_is_left_to_join() -> None:
    once = splitgraph.convert(sliced([(0, 3), (3, END)], ("N", 4)), "split").model
    twice = splitgraph.convert(once, "split")
    assert (twice.model, twice.changes) == (once, ())


def test_explicit_lengths_of_joined_slices() -> None:
    after = splitgraph.convert(sliced([(0, 3), (3, 6)]), "split", explicit_lengths=True).model
    (split,) = after.graph.node
    assert len(split.input) == 2
