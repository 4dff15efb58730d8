"""What each version writes where another form of the same parts would do as well, or nearly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import onnx
import onnx.parser
import pytest

import splitgraph
from splitgraph.conversion.builders import new_emission
from splitgraph.conversion.plan import Plan, Replacement
from splitgraph.conversion.splits.lower import SplitNode, lower_split
from splitgraph.findings.diagnostics import Diagnostic
from splitgraph.inference import walk_model
from splitgraph.model.names import FreshNames
from splitgraph.model.scopes import MAIN
from splitgraph.splits import variant_at


def model(text: str, opset: int = 13) -> onnx.ModelProto:
    made: onnx.ModelProto = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> {text}')
    return made


@pytest.mark.parametrize("size", ["4", "N"])
def test_equal_parts_get_lengths_where_they_are_asked_for(size: str) -> None:
    before = model(f"g (float[{size}] x) => (float[A] y, float[B] z) {{ y, z = Split <axis = 0> (x) }}")
    assert [len(node.input) for node in splitgraph.convert(before, "split").model.graph.node] == [1]
    after = splitgraph.convert(before, "split", explicit_lengths=True, verify=True)
    assert after.verification is not None and after.verification.verdict == "equal"
    last = after.model.graph.node[-1]
    assert (last.op_type, len(last.input)) == ("Split", 2)


def test_the_first_part_may_be_left_out() -> None:
    before = model("g (float[2, 8] x, int64[2] l) => (float[2, M] y) { a, y = Split <axis = 1> (x, l) }")
    before.graph.node[0].output[0] = ""
    verification = splitgraph.downgrade(before, 11, verify=True).verification
    assert verification is not None and verification.verdict == "equal"


def test_a_negative_axis_stays_where_it_is_documented() -> None:
    text = (
        "g (float[2, 4] x) => (float[2, 1] y, float[2, 3] z) <int64[2] l = {1, 3}> { y, z = Split <axis = -1> (x, l) }"
    )
    (node,) = splitgraph.downgrade(model(text), 11).model.graph.node
    assert {held.name: onnx.helper.get_attribute_value(held) for held in node.attribute} == {
        "axis": -1,
        "split": [1, 3],
    }


AXIS_AS_AN_INPUT = [
    # The axis as inference found it, and what the versions below write of it.
    (0, []),
    (1, [1]),
]


def lowered(axis: int | None, target: int) -> tuple[Replacement | None, Sequence[Diagnostic]]:
    """What a split becomes whose axis is no attribute, as that of OpenVINO's splits, and maybe of a Split to come."""
    text = "g (float[4, 6] x) => (float[A, B] y, float[C, D] z) { y, z = Split <axis = 1, num_outputs = 2> (x) }"
    before = model(text, 18)
    walked = walk_model(before)
    scope, detail = walked.scopes[0], walked.graphs[MAIN].splits[0]
    assert detail.split is not None
    node = onnx.helper.make_node("Split", ["x", "", "axis"], ["y", "z"], num_outputs=2)
    emission = new_emission(Plan(), before, scope, node, 0, FreshNames(["x", "axis"]), target)
    found = SplitNode(scope, 0, node, replace(detail, split=replace(detail.split, axis=axis)))
    variant = variant_at("Split", target)
    assert variant is not None
    return lower_split(found, variant, emission, "")


@pytest.mark.parametrize("target", [1, 2, 11, 13])
@pytest.mark.parametrize(("axis", "expected"), AXIS_AS_AN_INPUT)
def test_an_axis_that_is_an_input_becomes_an_attribute(axis: int, expected: list[int], target: int) -> None:
    replacement, _ = lowered(axis, target)
    assert replacement is not None
    node = replacement.messages()[-1]
    assert [held.i for held in node.attribute if held.name == "axis"] == (expected or [0] * (target == 1))


@pytest.mark.parametrize("target", [2, 11, 13])
def test_an_axis_that_only_run_time_knows_is_no_attribute(target: int) -> None:
    assert [found.code for found in lowered(None, target)[1]] == ["SG402"]
