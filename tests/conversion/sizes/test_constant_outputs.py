"""Outputs that are constants: a number there that was a size follows it, or stays, and which is asked."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import ModelProto, parser
from onnx.reference import ReferenceEvaluator

import splitgraph

# What gives y[1, 7, 2], and the lengths of it that a caller wants beside.
_Y = "y = Relu(x)"


def model(outputs: str, inside: str, weights: str = "") -> ModelProto:
    """Return a model of x[1, 7, 2] whose first output is y."""
    return parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> g (float[1, 7, 2] x) => (float[a, b, c] y, {outputs}) {weights} '
        f"{{ {_Y} {inside} }}"
    )


INITIALIZER = model("int64[1] n", "", "<int64[1] n = {7}>")
CONSTANT = model("int64 n", "n = Constant<value = int64 {7}>()")
TWO = model("int64[3] n", "", "<int64[3] n = {2, 7, 7}>")
CHAIN = model("int64[1] n", "n = Neg(k)", "<int64[1] k = {-7}>")
READ_TOO = model("int64[1] n, int64[1] m", "m = Neg(n)", "<int64[1] n = {7}>")


def _questions(made: ModelProto, **said: object) -> list[str]:
    try:
        splitgraph.reshape(made, {"x": [1, "T", 2]}, verify=False, **said)  # type: ignore[call-overload]
    except splitgraph.ConversionError as error:
        return [f"{each.code} {each.location}: {each.message}" for each in error.diagnostics]
    return []


@pytest.mark.parametrize(
    ("made", "entries"),
    [(INITIALIZER, [0]), (CONSTANT, [0]), (TWO, [1, 2]), (CHAIN, [0]), (READ_TOO, [0])],
    ids=["initializer", "constant", "two entries", "computed from a constant", "read by a node, too"],
)
def test_what_is_asked(made: ModelProto, entries: list[int]) -> None:
    assert _questions(made) == [
        f"SG421 main/n: entry {entry} can mean 7 whatever the size of the data, or T" for entry in entries
    ]


@pytest.mark.parametrize(
    ("made", "said", "expected"),
    [
        (INITIALIZER, {"follow": ["main/n[0]=T"]}, [[9]]),
        (INITIALIZER, {"keep": ["main/n[0]"]}, [[7]]),
        (CONSTANT, {"follow": ["main/n[0]=T"]}, [9]),
        (CONSTANT, {"keep": ["main/n[0]"]}, [7]),
        (TWO, {"follow": ["main/n[2]=T"], "keep": ["main/n[1]"]}, [[2, 7, 9]]),
        (READ_TOO, {"follow": ["main/n[0]=T"]}, [[9], [-7]]),
        (CHAIN, {"follow": ["main/n[0]=T"]}, [[9]]),
    ],
)
def test_answers_are_taken(made: ModelProto, said: dict[str, list[str]], expected: list[object]) -> None:
    rewrite = splitgraph.reshape(made, {"x": [1, "T", 2]}, verify=False, **said)  # type: ignore[call-overload]
    found = ReferenceEvaluator(rewrite.model).run(None, {"x": np.zeros((1, 9, 2), np.float32)})
    assert [each.tolist() for each in found[1:]] == expected


@pytest.mark.parametrize(
    "made",
    [
        model("int64[1] n", "", "<int64[1] n = {6}>"),
        model("int64[2] n", "", "<int64[2] n = {0, 1}>"),
        model("float[1] n", "", "<float[1] n = {7}>"),
        model("int64[3] s", "s = Shape<start = 0>(x)"),
    ],
    ids=["no size", "0 and 1", "no integer", "a shape"],
)
def test_other_constants_stay_as_they_are(made: ModelProto) -> None:
    after = splitgraph.reshape(made, {"x": [1, "T", 2]}, verify=False).model
    assert [node.op_type for node in after.graph.node] == [node.op_type for node in made.graph.node]
    assert after.graph.initializer == made.graph.initializer


LESS = model("int64[1] n", "", "<int64[1] n = {6}>")


@pytest.mark.parametrize(
    ("made", "said", "told"),
    [
        # It may be a size less one, of which nothing speaks.
        (LESS, {}, ["main/n"]),
        (LESS, {"keep": ["main/n[0]"]}, []),
        (LESS, {"follow": ["main/n[0]=T - 1"]}, []),
        (model("int64[2] n", "", "<int64[2] n = {0, 1}>"), {}, []),
        (model("float[1] n", "", "<float[1] n = {6}>"), {}, []),
    ],
    ids=["a size less one", "which stays", "which follows", "0 and 1", "no integer"],
)
def test_what_stays_is_said(made: ModelProto, said: dict[str, list[str]], told: list[str]) -> None:
    rewrite = splitgraph.reshape(made, {"x": [1, "T", 2]}, verify=False, **said)  # type: ignore[call-overload]
    assert [each.location for each in rewrite.diagnostics if each.code == "SG424"] == told
    found = ReferenceEvaluator(rewrite.model).run(None, {"x": np.zeros((1, 9, 2), np.float32)})[1]
    assert "follow" not in said or found.tolist() == [8]


def test_a_batch_of_any_size_has_no_other_constants() -> None:
    after = splitgraph.reshape(INITIALIZER, batch="N", verify=False).model
    assert [node.op_type for node in after.graph.node] == ["Relu"]
