"""If and Loop below opsets 16 and 11, Scan below opset 16."""

from __future__ import annotations

from itertools import product

import numpy as np
import onnx
import onnx.parser
import pytest
from conversion.operators.execute import (
    assert_same,
    build,
    converted,
    number_of,
    operators,
    random_array,
    refusal,
    run,
    run_reference,
    value,
)
from onnx import helper


def condition(opset: int, declared: bool, size: int | str = 3) -> onnx.ModelProto:
    """Negates x, or not; the branches say their shapes, or not."""
    branches = {}
    for name, op in (("then_branch", "Neg"), ("else_branch", "Abs")):
        result = value(name, ("float32", (2, size))) if declared else onnx.ValueInfoProto(name=name)
        branches[name] = helper.make_graph([helper.make_node(op, ["x"], [name])], name, [], [result])
    node = helper.make_node("If", ["c"], ["y"], **branches)
    inputs = {"c": ("bool", ()), "x": ("float32", (2, size))}
    return build(node, opset, inputs, {"y": ("float32", (2, "m"))})


Branch = tuple[str, tuple[int | str, ...] | None]


def branching(then: Branch, other: Branch, *, prefixes: tuple[str, ...] = ("",)) -> onnx.ModelProto:
    """A node If for each prefix of the names of its outputs, of which the branches, each with what is declared of its
    result, give all of x, float32[n, 8], its rows but the first, all of it twice, with a dimension of 1 behind, or half
    its columns. The names in the branches are the same.
    """
    nodes = []
    for prefix in prefixes:
        branches = {}
        for side, (part, dims) in (("then", then), ("else", other)):
            made = {
                "Relu": [helper.make_node("Relu", ["x"], [side])],
                "Neg": [helper.make_node("Neg", ["x"], [side])],
                "Rows": [helper.make_node("Slice", ["x", "one", "many", "zero"], [side])],
                "Wide": [helper.make_node("Concat", ["x", "x"], [side], axis=0)],
                "Deep": [helper.make_node("Unsqueeze", ["x"], [side], axes=[2])],
                "Halves": [helper.make_node("Split", ["x"], [side, f"{side}_rest"], axis=1)],
                "Outer": [helper.make_node("Identity", ["w"], [side])],
            }[part]
            result = onnx.ValueInfoProto(name=side) if dims is None else value(side, ("float32", dims))
            branches[f"{side}_branch"] = helper.make_graph(made, side, [], [result])
        nodes.append(helper.make_node("If", ["c"], [f"{prefix}y"], **branches))
    nodes.insert(0, helper.make_node("Abs", ["x"], ["w"]))
    inputs = {"c": ("bool", ()), "x": ("float32", ("n", 8))}
    held = {"zero": np.array([0]), "one": np.array([1]), "many": np.array([99])}
    outputs = {f"{prefix}y": ("float32", (None, None)) for prefix in prefixes}
    return build(nodes, 11, inputs, outputs, held)


@pytest.mark.parametrize(
    ("then", "other"),
    [
        (("Relu", ("a", 8)), ("Rows", ("b", 8))),
        (("Relu", None), ("Rows", None)),
        (("Relu", ("n", 8)), ("Wide", None)),
        (("Relu", ("a", 8)), ("Halves", ("a", 4))),
        (("Relu", None), ("Halves", None)),
    ],
    ids=str,
)
def test_branches_of_other_shapes_are_refused(then: Branch, other: Branch) -> None:
    for one, two in ((then, other), (other, then)):
        assert "both branches must give the same shapes" in refusal(branching(one, two), 10)


@pytest.mark.parametrize("part", ["Halves", "Wide", "Deep"])
def test_declared_shape_of_the_output_says_nothing_against_the_branches(part: str) -> None:
    for one, two in ((("Relu", None), (part, None)), ((part, None), ("Relu", None))):
        model = branching(one, two)
        # True of the branch that runs, as a caller of the model may know.
        model.graph.input[1].CopyFrom(value("x", ("float32", (2, 8))))
        model.graph.output[0].CopyFrom(value("y", ("float32", (2, 8))))
        onnx.checker.check_model(model, full_check=True)
        assert "both branches must give the same shapes" in refusal(model, 10)


def test_what_is_known_of_the_branches_of_another_node_is_not_taken_for_its_own() -> None:
    """Branches of the same names: of those of the first node, and of those of the last."""
    same, others = (
        branching(("Relu", None), (part, None), prefixes=("first_", "last_")).graph.node[1:] for part in ("Neg", "Rows")
    )
    for first, last in ((same[0], others[1]), (others[0], same[1])):
        model = branching(("Relu", None), ("Neg", None), prefixes=("first_", "last_"))
        model.graph.node[1].CopyFrom(first)
        model.graph.node[2].CopyFrom(last)
        assert "both branches must give the same shapes" in refusal(model, 10)


@pytest.mark.parametrize(
    ("then", "other"),
    [
        (("Relu", ("a", 8)), ("Neg", ("b", 8))),
        (("Relu", ("n", 8)), ("Neg", ("m", 8))),
        (("Relu", ("a", 8)), ("Neg", None)),
        (("Relu", None), ("Neg", None)),
        (("Halves", ("a", 4)), ("Halves", ("b", 4))),
        (("Rows", ("a", 8)), ("Rows", ("b", 8))),
        (("Outer", ("a", 8)), ("Relu", ("b", 8))),
    ],
    ids=str,
)
@pytest.mark.parametrize("target", [10, 7])
def test_branches_of_one_inferred_shape(then: Branch, other: Branch, target: int) -> None:
    before = branching(then, other)
    after = converted(before, target)
    for chosen, rows in product((True, False), (0, 1, 3)):
        feeds = {"c": np.array(chosen), "x": random_array((rows, 8))}
        assert_same(run(before, feeds), run(after, feeds))


@pytest.mark.parametrize(
    ("then", "other"),
    [
        (("Relu", None), ("Rows", None)),
        (("Rows", ("a", 8)), ("Halves", ("b", 4))),
        (("Outer", ("n", 8)), ("Wide", ("a", 8))),
    ],
    ids=str,
)
@pytest.mark.parametrize("chosen", [True, False])
@pytest.mark.parametrize("is_node", [True, False])
@pytest.mark.parametrize("target", [10, 7])
def test_branches_that_never_run(then: Branch, other: Branch, chosen: bool, is_node: bool, target: int) -> None:
    before = branching(then, other, prefixes=("first_", "last_"))
    held = onnx.numpy_helper.from_array(np.array(chosen), "c")
    del before.graph.input[0]
    if is_node:
        before.graph.node.insert(0, helper.make_node("Constant", [], ["c"], value=held))
    else:
        before.graph.initializer.append(held)
    after = converted(before, target)
    for rows in (0, 1, 3):
        feeds = {"x": random_array((rows, 8))}
        assert_same(run(before, feeds), run(after, feeds))
    nodes = [node for node in after.graph.node if node.op_type == "If"]
    assert all(node.attribute[0].g == node.attribute[1].g for node in nodes)


def test_a_default_condition_that_a_caller_may_override_chooses_no_branch() -> None:
    model = branching(("Relu", None), ("Rows", None))
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.array(True), "c"))
    assert "both branches must give the same shapes" in refusal(model, 10)


def test_known_branches_within_branches() -> None:
    """The inner node is copied as it was converted, and reads what is made around it."""
    before = branching(("Relu", None), ("Rows", None))
    inner, outer = before.graph.node[-1], branching(("Relu", None), ("Rows", None), prefixes=("outer_",)).graph.node[-1]
    del before.graph.input[0]
    before.graph.initializer.append(onnx.numpy_helper.from_array(np.array(True), "c"))
    branch = next(held.g for held in outer.attribute if held.name == "then_branch")
    for held in inner.attribute:
        held.g.node[0].input[0] = "here"
    branch.node[0].output[0] = "here"
    branch.node.append(inner)
    branch.output[0].name = "y"
    del before.graph.node[-1]
    before.graph.node.append(outer)
    before.graph.node.append(helper.make_node("Identity", ["outer_y"], ["y_out"]))
    before.graph.output[0].name = "y_out"
    after = converted(before, 10)
    for rows in (0, 1, 3):
        feeds = {"x": random_array((rows, 8))}
        assert_same(run(before, feeds), run(after, feeds))


@pytest.mark.parametrize("declared", [False, True])
@pytest.mark.parametrize("target", [10, 7])
def test_branches_of_one_shape(declared: bool, target: int) -> None:
    before = condition(11, declared)
    after = converted(before, target)
    for chosen in (True, False):
        feeds = {"c": np.array(chosen), "x": random_array((2, 3))}
        assert_same(run(before, feeds), run(after, feeds))


def halves(opset: int, other: str = "float32") -> onnx.ModelProto:
    """Gives what is half as precise as float32, and something else beside it."""
    numbers = {"bfloat16": onnx.TensorProto.BFLOAT16, "float32": onnx.TensorProto.FLOAT, other: number_of(other)}
    branches = {}
    for name, op in (("then_branch", "Neg"), ("else_branch", "Abs")):
        nodes = [
            helper.make_node(op, ["x"], [f"{name}_x"]),
            helper.make_node("Cast", [f"{name}_x"], [f"{name}_0"], to=numbers["bfloat16"]),
            helper.make_node("Cast", [f"{name}_x"], [f"{name}_1"], to=numbers[other]),
        ]
        results = [value(f"{name}_0", ("bfloat16", ("n",))), value(f"{name}_1", (other, ("n",)))]
        branches[name] = helper.make_graph(nodes, name, [], results)
    node = helper.make_node("If", ["c"], ["half", "z"], **branches)
    last = helper.make_node("Cast", ["half"], ["y"], to=numbers["float32"])
    inputs = {"c": ("bool", ()), "x": ("float32", ("n",))}
    return build([node, last], opset, inputs, {"y": ("float32", ("n",)), "z": (other, ("n",))})


def test_halves_are_refused_where_nothing_takes_them() -> None:
    assert "bfloat16" in refusal(halves(16), 12)


@pytest.mark.parametrize("other", ["float32", "bfloat16", "int64"])
@pytest.mark.parametrize("target", [15, 13])
def test_branches_that_give_halves(other: str, target: int) -> None:
    before = halves(16, other)
    after = converted(before, target)
    for chosen in (True, False):
        feeds = {"c": np.array(chosen), "x": random_array((5,))}
        assert_same(run_reference(before, feeds), run_reference(after, feeds))


def repeated_halves(op: str, *, last: str = "every") -> onnx.ModelProto:
    """Adds up halves, and gives every sum and something of another type beside it."""
    nodes = [
        helper.make_node("Add", ["sum", "x"], ["next"]),
        helper.make_node("Identity", ["next"], ["each"]),
        helper.make_node("Cast", ["next"], ["whole"], to=onnx.TensorProto.INT64),
    ]
    half = ("bfloat16", (3,))
    inputs, outputs = [value("sum", half)], [value("next", half), value("each", half), value("whole", ("int64", (3,)))]
    if op == "Loop":
        nodes[0].input[1] = "rows"
        nodes.append(helper.make_node("Identity", ["go"], ["again"]))
        inputs = [value("i", ("int64", ())), value("go", ("bool", ())), *inputs]
        outputs = [value("again", ("bool", ())), *outputs]
        given, attributes = ["n", "", "first"], {}
    else:
        inputs.append(value("x", half))
        given, attributes = ["first", "rows"], {"num_scan_inputs": 1}
    body = helper.make_graph(nodes, "body", inputs, outputs)
    loop = helper.make_node(op, given, ["last", last, "wholes"], body=body, **attributes)
    cast = [
        helper.make_node("Cast", ["a"], ["first"], to=onnx.TensorProto.BFLOAT16),
        helper.make_node("Cast", ["b"], ["rows"], to=onnx.TensorProto.BFLOAT16),
        loop,
        helper.make_node("Cast", ["last"], ["y"], to=onnx.TensorProto.FLOAT),
    ]
    declared = {"a": ("float32", (3,)), "b": ("float32", (3,) if op == "Loop" else (4, 3))}
    if op == "Loop":
        declared["n"] = ("int64", ())
    results = {"y": ("float32", (3,)), "wholes": ("int64", (None, 3))}
    if last:
        cast.append(helper.make_node("Cast", [last], ["z"], to=onnx.TensorProto.FLOAT))
        results["z"] = ("float32", (None, 3))
    return build(cast, 16, declared, results)


@pytest.mark.parametrize("op", ["Loop", "Scan"])
@pytest.mark.parametrize("last", ["every", ""])
@pytest.mark.parametrize("target", [15, 13])
def test_bodies_that_take_and_give_halves(op: str, last: str, target: int) -> None:
    before = repeated_halves(op, last=last)
    after = converted(before, target)
    rows = random_array((3,) if op == "Loop" else (4, 3)) * 40
    feeds = {"a": random_array((3,), seed=1) * 9, "b": rows, **({"n": np.array(4)} if op == "Loop" else {})}
    if op == "Loop":
        # onnx's evaluator wants a condition.
        before, after = (with_going(model) for model in (before, after))
    assert_same(run_reference(before, feeds), run_reference(after, feeds))
    assert "bfloat16" in refusal(repeated_halves(op, last=last), 12)


def test_states_are_told_from_what_is_scanned() -> None:
    """Only what is scanned is half as precise: a state must stay of the type that the body gives it."""
    text = """body (float[2] state, bfloat16[2] half) => (float[2] next, float[2] element) {
        element = Cast <to: int = 1> (half)
        next = Add (state, element)
    }"""
    node = helper.make_node(
        "Scan", ["first", "x"], ["last", "y"], body=onnx.parser.parse_graph(text), num_scan_inputs=1
    )
    inputs = {"first": ("float32", (2,)), "x": ("bfloat16", (3, 2))}
    before = build(node, 16, inputs, {"last": ("float32", (2,)), "y": ("float32", (3, 2))})
    assert operators(converted(before, 15)) == ["Cast", "Scan"]


def with_going(model: onnx.ModelProto) -> onnx.ModelProto:
    result = onnx.ModelProto.FromString(model.SerializeToString())
    for node in result.graph.node:
        if node.op_type == "Loop":
            node.input[1] = "going"
    result.graph.initializer.append(onnx.numpy_helper.from_array(np.array(True), "going"))
    return result


@pytest.mark.parametrize("with_condition", [False, True])
@pytest.mark.parametrize("target", [10, 8, 13])
def test_loop_that_carries_nothing(with_condition: bool, target: int) -> None:
    nodes = [
        helper.make_node("Cast", ["i"], ["number"], to=onnx.TensorProto.FLOAT),
        helper.make_node("Mul", ["number", "x"], ["element"]),
        helper.make_node("Less", ["number", "limit"], ["again"]),
    ]
    inputs = [value("i", ("int64", ())), value("c", ("bool", ()))]
    outputs = [value("again", ("bool", ())), value("element", ("float32", (2,)))]
    body = helper.make_graph(nodes, "body", inputs, outputs)
    node = helper.make_node("Loop", ["n", "go" if with_condition else ""], ["y"], body=body)
    declared = {"n": ("int64", ()), "x": ("float32", (2,)), "limit": ("float32", ())}
    if with_condition:
        declared["go"] = ("bool", ())
    before = build(node, 11, declared, {"y": ("float32", ("t", 2))})
    after = converted(before, target)
    assert len(after.graph.node[-1].input) == (3 if target < 11 else 2)
    for limit in (2.0, 9.0):
        feeds = {"n": np.array(5), "x": random_array((2,)), "limit": np.float32(limit), "go": np.array(True)}
        given = {name: np.asarray(feeds[name]) for name in declared}
        assert_same(run(before, given), run(after, given))
        assert_same(run(before, given), run(converted(after, 13), given))
