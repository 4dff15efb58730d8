"""What each version writes where another form of the same parts would do as well, or nearly."""

from __future__ import annotations

import onnx
import onnx.parser
import pytest

import splitgraph


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
