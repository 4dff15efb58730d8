"""Optional, OptionalGetElement and OptionalHasElement below opset 15, where there are no optionals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import onnx
import pytest
from conversion.operators.execute import assert_same, converted, operators, refusal, run
from onnx import TensorProto, helper

X = np.array([1, -2, 3], np.float32)
OF_TENSOR = helper.make_optional_type_proto(helper.make_tensor_type_proto(1, [3]))


def node(op_type: str, inputs: str, output: str, **attributes: object) -> onnx.NodeProto:
    return helper.make_node(op_type, inputs.split(), [output], **attributes)


def model(nodes: Sequence[onnx.NodeProto], opset: int = 15, to: int = 1, size: int | None = 3) -> onnx.ModelProto:
    """A model that gives `y`."""
    x = helper.make_tensor_value_info("x", 1, [3])
    y = helper.make_tensor_value_info("y", to, [] if size is None else [size])
    graph = helper.make_graph(list(nodes), "g", [x], [y])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=8)


GET, MAKE = node("OptionalGetElement", "o", "y"), node("Optional", "x", "o")
NONE = node("Optional", "", "o", type=helper.make_tensor_type_proto(1, [3]))
BRANCHES = {
    "then_branch": helper.make_graph(
        [node("OptionalGetElement", "o", "b")], "t", [], [helper.make_tensor_value_info("b", 1, [3])]
    ),
    "else_branch": helper.make_graph([node("Neg", "x", "n")], "e", [], [helper.make_tensor_value_info("n", 1, [3])]),
}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (model([MAKE, GET]), ["Identity"]),
        (model([MAKE, node("Identity", "o", "p"), node("OptionalGetElement", "p", "y")], 16), ["Identity"]),
        (model([node("OptionalGetElement", "x", "y")], 18), ["Identity"]),
        (model([MAKE, node("OptionalHasElement", "o", "y")], to=TensorProto.BOOL, size=None), ["Constant"]),
        (model([NONE, node("OptionalHasElement", "o", "y")], to=TensorProto.BOOL, size=None), ["Constant"]),
        (model([MAKE, node("OptionalHasElement", "o", "c"), node("If", "c", "y", **BRANCHES)]), ["Constant", "If"]),
        (
            model(
                [
                    node("SequenceConstruct", "x x", "s"),
                    node("Optional", "s", "o"),
                    node("OptionalGetElement", "o", "t"),
                    node("ConcatFromSequence", "t", "y", axis=0),
                ],
                size=6,
            ),
            ["SequenceConstruct", "Identity", "ConcatFromSequence"],
        ),
        # Nodes that are alike read different values.
        (
            model(
                [
                    node("Neg", "x", "n"),
                    MAKE,
                    node("Optional", "n", "p"),
                    node("OptionalGetElement", "o", "a"),
                    node("OptionalGetElement", "p", "b"),
                    node("Sub", "a b", "y"),
                ]
            ),
            ["Neg", "Identity", "Identity", "Sub"],
        ),
    ],
)
def test_element_is_known(before: onnx.ModelProto, after: list[str]) -> None:
    expected = run(before, {"x": X})
    assert operators(converted(before, 14)) == after
    for target in (14, 11):
        assert_same(expected, run(converted(before, target), {"x": X}))


def _reading_input() -> onnx.ModelProto:
    made = model([GET])
    made.graph.input.append(helper.make_value_info("o", OF_TENSOR))
    return made


def _giving_optional() -> onnx.ModelProto:
    made = model([MAKE, GET])
    made.graph.output.append(helper.make_value_info("o", OF_TENSOR))
    return made


@pytest.mark.parametrize(
    ("before", "words"),
    [
        (_reading_input(), "no node of the model makes the optional"),
        (_giving_optional(), "Optional exists from opset 15 on"),
        (model([NONE, GET]), "no node of the model makes the optional that it reads of an element"),
    ],
)
def test_what_is_not_known_is_refused(before: onnx.ModelProto, words: str) -> None:
    assert words in refusal(before, 14)


def test_is_kept_at_15() -> None:
    before = model([MAKE, GET], 18)
    assert operators(converted(before, 15)) == ["Optional", "OptionalGetElement"]
