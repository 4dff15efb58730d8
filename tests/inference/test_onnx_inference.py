"""onnx's inference of single nodes, which reads some symbolic dimensions as 0: what is believed of it."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest

from splitgraph.dim import Dim, evaluate, symbols_of
from splitgraph.inference import infer_model, reading
from splitgraph.model.value_type import ValueType


@pytest.fixture(autouse=True)
def no_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave every operator to onnx."""
    monkeypatch.setattr(reading, "rule_of", lambda domain, op_type: None)


def model_of(inputs: str, body: str, opset: int) -> onnx.ModelProto:
    model = onnx.parser.parse_model(
        f'<ir_version: 10, opset_import: ["" : {opset}]> g ({inputs}) => (float y) {{ {body} }}'
    )
    model.graph.output[0].ClearField("type")
    return model


@pytest.mark.parametrize(
    ("inputs", "body", "found"),
    [
        ("float[2, 3] x, float[4, 5] w", "y = MatMul (x, w)", "ncompatible dimensions"),
        ("float[N] x, float[2, 3] v, float[4, 5] w", "z = Relu (x) y = MatMul (v, w)", "ncompatible dimensions"),
        ("float[N, 3] x", "y = Cast <to = 77> (x)", "valid type"),
    ],
)
def test_what_is_invalid_whatever_the_symbols_are(inputs: str, body: str, found: str) -> None:
    analysis = infer_model(model_of(inputs, body, 21))
    (diagnostic,) = analysis.diagnostics
    assert diagnostic.code == "SG302" and found in diagnostic.message


@pytest.mark.parametrize(
    ("inputs", "body", "expected"),
    [
        ("float[N, 3] x", "y = Relu (x)", "float32[N, 3]"),
        ("float[N, 3] x, float[3, M] w", "y = MatMul (x, w)", "float32[N, M]"),
        ("float[2, 3] x", "y = Relu (x)", "float32[2, 3]"),
        ("float[2] x, float[] z", "y = Sum (x, z)", "float32[...]"),
        # Nothing is believed of the shape of a product that fits for some sizes only.
        ("float[N, 3] x, float[M, 4] w", "y = MatMul (x, w)", "float32[...]"),
        # The length of `sizes` is read as 0, which is not the rank of `x`.
        ("float[1, 1, 2, 2] x, int64[R] s", 'y = Resize <mode = "nearest"> (x, "", "", s)', "float32[...]"),
        ("float[N, 3] x, int64[2] i", "y = Gather <axis = 5> (x, i)", "float32[...]"),
        # The keys and the past are counted as 0 together.
        (
            "float[2, 3, A, 8] q, float[2, 3, B, 8] k, float[2, 3, B, 8] v, float[2, 3, P, 8] pk, float[2, 3, P, 8] pv",
            'z, u, w, y = Attention (q, k, v, "", pk, pv)',
            "float32[2, 3, A, ?]",
        ),
    ],
)
def test_what_is_believed(inputs: str, body: str, expected: str) -> None:
    analysis = infer_model(model_of(inputs, body, 23))
    assert analysis.ok
    assert str(analysis.types["y"]) == expected


@pytest.mark.slow
def test_no_claim_is_wrong_on_any_node_test() -> None:
    """All of onnx's node tests of one node, with a symbol for each dimension."""
    from node_tests import node_tests as onnx_node_tests

    checked, wrong = 0, []
    for case in onnx_node_tests():
        # onnx ends the process on some of its own Split nodes; those have no fallback.
        if case.model is None or len(case.model.graph.node) != 1 or "split" in case.name.lower():
            continue
        model = onnx.ModelProto()
        model.CopyFrom(case.model)
        inputs, outputs = case.data_sets[0]
        sizes = with_symbols(model, inputs)
        for output in model.graph.output:
            output.ClearField("type")
        analysis = infer_model(model)
        wrong += [f"{case.name}: {found.message}" for found in analysis.diagnostics if found.severity == "error"]
        for output, value in zip(model.graph.output, outputs, strict=False):
            if isinstance(value, np.ndarray) and not holds(analysis.types[output.name], value.shape, sizes):
                wrong.append(f"{case.name}: {analysis.types[output.name]} has the shape {value.shape}")
            checked += 1
    assert checked > 1000
    assert not wrong


def with_symbols(model: onnx.ModelProto, inputs: Any) -> dict[str, int]:
    """Put a symbol of its own for each dimension of the inputs; what each is in the data."""
    sizes: dict[str, int] = {}
    for value, data in zip(model.graph.input, inputs, strict=False):
        if not isinstance(data, np.ndarray):
            continue
        for dim, size in zip(value.type.tensor_type.shape.dim, data.shape, strict=False):
            name = f"d{len(sizes)}"
            sizes[name] = size
            dim.dim_param = name
    return sizes


def holds(known: ValueType, shape: tuple[int, ...], sizes: dict[str, int]) -> bool:
    """Whether a value of this shape is of the type."""
    if known.shape is None:
        return True
    if len(known.shape) != len(shape):
        return False
    for dim, size in zip(known.shape, shape, strict=True):
        if isinstance(dim, Dim) and symbols_of(dim) <= sizes.keys():
            dim = evaluate(dim, sizes)
        if isinstance(dim, int) and dim != size:
            return False
    return True
