"""Shapes that are written as shapes: what the letters of inputs and outputs stand for."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from onnx import TensorProto, helper

import splitgraph

Shape = Sequence[int | str] | None

# By operator of onnxruntime, the shapes of inputs and of outputs; None for an unknown rank.
GIVEN: list[tuple[str, list[Shape], list[str]]] = [
    ("CDist", [["M", "K"], ["N", "K"]], ["float32[M, N]"]),
    # A number stands for the letter in all outputs, whichever input has it.
    ("BiasAdd", [["B", "S", "C"], [8], ["B", "S", "C"]], ["float32[B, S, 8]"]),
    ("BiasAdd", [None, [8], [2, "S", "C"]], ["float32[2, S, 8]"]),
    ("BiasGelu", [[2, "S", "H"], ["H"]], ["float32[2, S, H]"]),
    # Nothing is known of "..." without the input that has it.
    ("BiasGelu", [None, [8]], ["float32[...]"]),
    ("Inverse", [["B", 3, "N"]], ["float32[B, 3, 3]"]),
    # "..." stands for the same dimensions everywhere.
    ("GatedRMSNorm", [["B", 3, 8], [8], [2, "S", 8]], ["float32[2, 3, 8]"]),
    ("GatedRMSNorm", [None, [8], [2, "S", 8]], ["float32[2, S, 8]"]),
    # What is skipped may have fewer dimensions than the output.
    ("SkipLayerNormalization", [None, [5, 8], [8]], ["float32[...]"]),
    (
        "SkipLayerNormalization",
        [["B", 5, "H"], ["B", 5, "H"], [8]],
        ["float32[B, 5, 8]", "float32[B, 5, 1]", "float32[B, 5, 1]", "float32[B, 5, 8]"],
    ),
]
WRONG: list[tuple[str, list[Shape], str]] = [
    ("CDist", [[3, 4], [5, 6]], "CDist-1: B (input 1) has the shape [5, 6]; it must be [N, 4]"),
    ("CDist", [[3, 4, 5], [5, 6]], "CDist-1: A (input 0) has the shape [3, 4, 5]; it must be [M, K]"),
    (
        "GatedRMSNorm",
        [[2, 3, 8], [8], [2, 4, 8]],
        "GatedRMSNorm-1: gate (input 2) has the shape [2, 4, 8]; it must be [2, 3, 8]",
    ),
    (
        "GatedRMSNorm",
        [["B", 3, 8], [8], [3, 8]],
        "GatedRMSNorm-1: gate (input 2) has the shape [3, 8]; it must be [B, 3, 8]",
    ),
    ("Inverse", [[2, 3, 4]], "Inverse-1: X (input 0) has the shape [2, 3, 4]; it must be [..., N, N]"),
]


def analysis_of(op_type: str, shapes: Sequence[Shape], outputs: int) -> splitgraph.Analysis:
    names = [f"x{at}" for at in range(len(shapes))]
    node = helper.make_node(op_type, names, [f"y{at}" for at in range(outputs)], domain="com.microsoft")
    given = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in zip(names, shapes, strict=True)
    ]
    graph = helper.make_graph([node], "g", given, [])
    opsets = [helper.make_opsetid("", 18), helper.make_opsetid("com.microsoft", 1)]
    return splitgraph.infer(helper.make_model(graph, opset_imports=opsets))


@pytest.mark.parametrize(("op_type", "shapes", "expected"), GIVEN)
def test_what_letters_stand_for(op_type: str, shapes: list[Shape], expected: list[str]) -> None:
    analysis = analysis_of(op_type, shapes, len(expected))
    assert not analysis.diagnostics
    assert [str(analysis.types[f"y{at}"]) for at in range(len(expected))] == expected


@pytest.mark.parametrize(("op_type", "shapes", "said"), WRONG)
def test_an_input_that_does_not_fit(op_type: str, shapes: list[Shape], said: str) -> None:
    (found,) = analysis_of(op_type, shapes, 1).diagnostics
    assert (found.code, found.message) == ("SG302", said)


def test_a_letter_that_no_input_has_is_one_dimension_in_all_outputs() -> None:
    analysis = analysis_of("SkipLayerNormalization", [["B", "S", "H"], None, None], 4)
    assert analysis.types["y0"] == analysis.types["y3"]
    unknown = helper.make_node("LSTM", ["x", "w", "r"], ["y", "h", "c"])
    graph = helper.make_graph(
        [unknown], "g", [helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in "xwr"], []
    )
    types = splitgraph.infer(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)])).types
    steps, directions, batch, hidden = types["y"].shape or ()
    assert directions == 1 and steps not in (batch, hidden)
    assert types["h"].shape == types["c"].shape == (1, batch, hidden)
