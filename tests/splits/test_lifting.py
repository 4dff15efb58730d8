"""What the versions of the split operators make of a node: findings first, then what is left to run time."""

from __future__ import annotations

from typing import Literal

import onnx
import onnx.parser
import pytest
from onnx import TensorProto, helper

import splitgraph


def analysis_of(inputs: str, node: str, opset: int = 13) -> splitgraph.Analysis:
    text = f'<ir_version: 8, opset_import: ["" : {opset}]> g ({inputs}) => () {{ {node} }}'
    return splitgraph.infer(onnx.parser.parse_model(text))


@pytest.mark.parametrize(
    ("inputs", "node", "opset", "code"),
    [
        ("float[2,8] x, int32[2] l", "y, z = Split<axis=1>(x, l)", 13, "SG211"),
        ("float[2,8] x, int64[2,1] l", "y, z = Split<axis=1>(x, l)", 13, "SG211"),
        ("float[2,8] x, int64[3] l", "y, z = Split<axis=1>(x, l)", 13, "SG202"),
        # Whatever they add up to.
        ("float[2,8] x", "y, z = Split<axis=1, split=[1, 2, 4]>(x)", 11, "SG202"),
        ("float[2,8] x", "y, z = Split<axis=1, split=[1, 2, 5]>(x)", 11, "SG202"),
        ("float[4] x", "s, t = SplitToSequence(x)", 13, "SG212"),
        ("float[4] x, int64[1,2] l", "s = SplitToSequence(x, l)", 13, "SG211"),
    ],
)
def test_an_invalid_split_is_one_finding(inputs: str, node: str, opset: int, code: str) -> None:
    assert [found.code for found in analysis_of(inputs, node, opset).diagnostics] == [code]


@pytest.mark.parametrize("empty_chunks", ["clamp", "error"])
def test_a_last_chunk_of_nothing_is_a_warning(empty_chunks: Literal["clamp", "error"]) -> None:
    """It does not overrun the dimension, so that the specification's length of it is 0."""
    text = '<ir_version: 8, opset_import: ["" : 18]> g (float[4] x) => () { a, b, c = Split<num_outputs=3>(x) }'
    analysis = splitgraph.infer(onnx.parser.parse_model(text), empty_chunks=empty_chunks)
    assert [(found.code, found.severity) for found in analysis.diagnostics] == [("SG203", "warning")]
    assert [analysis.types[name].shape for name in "abc"] == [(2,), (2,), (0,)]


def test_as_many_lengths_as_outputs_are_left_to_run_time() -> None:
    analysis = analysis_of("float[2,8] x, int64[K] l", "y, z = Split<axis=1>(x, l)")
    assert analysis.ok
    assert "K == 2" in [str(held) for held in analysis.obligations]


@pytest.mark.parametrize(("count", "obligations"), [("3", 1), ("K", 0)])
def test_lengths_of_a_sequence_are_left_to_run_time(count: str, obligations: int) -> None:
    """Where their number is known, they must add up to the dimension."""
    analysis = analysis_of(f"float[4,2] x, int64[{count}] l", "s = SplitToSequence(x, l)")
    assert analysis.ok
    assert len(analysis.obligations) == obligations


@pytest.mark.parametrize(("texts", "expected"), [([b"a,b", b"c"], "string[2, 2]"), ([b"a,b", b""], "string[2, ?]")])
def test_how_many_substrings_nothing_has_is_not_said(texts: list[bytes], expected: str) -> None:
    node = helper.make_node("StringSplit", ["d"], ["y", "n"], delimiter=",")
    held = helper.make_tensor("d", TensorProto.STRING, [2], texts)
    graph = helper.make_graph([node], "g", [], [], [held])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    assert str(splitgraph.infer(model).types["y"]) == expected
