"""Arguments of the Python API that are of the wrong type or out of range: one clear SplitgraphError for each."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

import splitgraph

SPLIT = """<ir_version: 8, opset_import: ["" : 11]>
g (float[N, 6] x) => (float[N, 3] a, float[N, 3] b) { a, b = Split <axis: int = 1> (x) }"""


@pytest.fixture
def model() -> onnx.ModelProto:
    return onnx.parser.parse_model(SPLIT)


@pytest.mark.parametrize("opset", [None, "18", 18.0, True, [18]])
def test_an_opset_is_an_integer(model: onnx.ModelProto, opset: Any) -> None:
    for convert in (splitgraph.upgrade, splitgraph.downgrade):
        with pytest.raises(splitgraph.SplitgraphError, match="it must be an integer"):
            convert(model, opset)


@pytest.mark.parametrize("opset", [-1, 0, 10**30])
def test_an_opset_that_does_not_exist_is_not_called_a_downgrade(model: onnx.ModelProto, opset: int) -> None:
    for convert in (splitgraph.upgrade, splitgraph.downgrade):
        with pytest.raises(splitgraph.SplitgraphError, match="there is no opset"):
            convert(model, opset)


def test_numpys_integers_are_integers(model: onnx.ModelProto) -> None:
    assert type(splitgraph.upgrade(model, np.int64(18)).to_opset[""]) is int
    assert str(splitgraph.infer(model, bind={"N": np.int64(4)}).types["x"]) == "float32[4, 6]"  # type: ignore[dict-item]


@pytest.mark.parametrize("bind", [5, "N", ["N"], {"N": True}, {"N": 4.0}, {"N": -1}, {"N": 2**63}, {None: 1}])
def test_bindings_give_dimensions_by_name(model: onnx.ModelProto, bind: Any) -> None:
    with pytest.raises(splitgraph.SplitgraphError):
        splitgraph.infer(model, bind=bind)


@pytest.mark.parametrize("bind", [5, "N", ["N"], {"N": True}, {"N": 4.0}, {"N": -1}])
def test_bindings_of_verify_give_dimensions_by_name(model: onnx.ModelProto, bind: Any) -> None:
    with pytest.raises(splitgraph.SplitgraphError):
        splitgraph.verify(model, model, bind=bind)


SHAPES: list[Any] = [
    *(5, "x", ["x"], {5: [1]}, {"x": 5}, {"x": "N,6"}),
    *({"x": [dim, 6]} for dim in (b"N", 2.0, True, -1, "-1", "0 - 4", "", 2**63)),
]


@pytest.mark.parametrize("shapes", SHAPES)
def test_input_shapes_give_lists_of_dimensions_by_name(model: onnx.ModelProto, shapes: Any) -> None:
    with pytest.raises(splitgraph.SplitgraphError):
        splitgraph.infer(model, input_shapes=shapes)


ARGUMENTS: list[dict[str, Any]] = [
    *({"samples": value} for value in (0, "3", None, 2.5, True)),
    *({"seed": value} for value in (-1, "a", None)),
    *({"rtol": value} for value in (-1, "a", None, float("nan"))),
    *({"atol": value} for value in (-1, "a", None, float("nan"))),
    *({"timeout": value} for value in (0, -1, "a", True, float("nan"))),
    {"inputs": 5},
]


@pytest.mark.parametrize("arguments", ARGUMENTS, ids=str)
def test_arguments_of_verify_are_numbers_in_range(model: onnx.ModelProto, arguments: dict[str, Any]) -> None:
    with pytest.raises(splitgraph.SplitgraphError, match=next(iter(arguments))):
        splitgraph.verify(model, model, **arguments)


def test_more_cases_than_there_is_time_for_are_not_run(model: onnx.ModelProto) -> None:
    verification = splitgraph.verify(model, model, samples=10**9, timeout=1e-9)
    assert verification.verdict == "not-run"
