"""Kernels of operators that onnxruntime writes, against onnxruntime."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from conversion.operators.standard.one_node import Array, Case, run

from splitgraph.verification.reference import evaluator
from splitgraph.verification.reference.onnxruntime_kernels import FOREIGN
from splitgraph.verification.values import UnsupportedError

RNG = np.random.default_rng(0)


def data(*shape: int) -> Array:
    return RNG.standard_normal(shape).astype(np.float32)


X, Y, ROW, BIAS = data(2, 3, 8), data(2, 3, 8), data(8), data(8)
CASES = {
    "Gelu": Case("Gelu", [X]),
    "BiasGelu": Case("BiasGelu", [X, BIAS]),
    "FastGelu": Case("FastGelu", [X]),
    "FastGelu with a bias": Case("FastGelu", [X, BIAS]),
    "QuickGelu": Case("QuickGelu", [X]),
    "QuickGelu with alpha": Case("QuickGelu", [X], {"alpha": -0.5}),
    "SkipLayerNormalization": Case("SkipLayerNormalization", [X, Y, ROW, BIAS], {"epsilon": 1e-5}),
    "… without epsilon, with every output": Case("SkipLayerNormalization", [X, Y, ROW, None, BIAS], outputs=4),
    "… of one skip": Case("SkipLayerNormalization", [X, Y[:1], ROW, BIAS, ROW]),
    "SkipSimplifiedLayerNormalization": Case("SkipSimplifiedLayerNormalization", [X, Y, ROW, BIAS]),
    "LayerNormalization": Case("LayerNormalization", [X, ROW, BIAS], {"axis": -1}, domain="", opset=13),
    "… of two axes": Case("LayerNormalization", [X, data(3, 8)], {"axis": 1}, domain="", opset=11),
    "SimplifiedLayerNormalization": Case("SimplifiedLayerNormalization", [X, ROW], {"axis": -1}, domain="", opset=13),
    "FusedMatMul": Case("FusedMatMul", [data(2, 4, 3), data(2, 4, 5)], {"transA": 1, "alpha": 0.5}),
    "FusedMatMul of batches": Case(
        "FusedMatMul", [data(3, 2, 4), data(2, 5, 4)], {"transBatchA": 1, "transB": 1}
    ),
    "TransposeMatMul": Case("TransposeMatMul", [data(3, 4), data(5, 4)], {"transB": 1}),
    "FusedGemm": Case(
        "FusedGemm", [data(4, 3), data(4, 5), data(5)], {"transA": 1, "alpha": 2.0, "beta": -1.0, "activation": "Relu"}
    ),
    "FusedGemm with its defaults": Case("FusedGemm", [data(4, 3), data(3, 5), data(5)], {"activation": "Tanh"}),
    "FusedGemm without a bias": Case("FusedGemm", [data(4, 3), data(5, 3)], {"transB": 1, "activation": "Sigmoid"}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.sample(len(CASES))
def test_a_kernel_gives_what_onnxruntime_gives(name: str) -> None:
    case = CASES[name]
    model = case.model()
    wanted = run(model, case.feeds)
    for place, result in enumerate(wanted):
        model.graph.output[place].CopyFrom(onnx.helper.make_tensor_value_info(f"o{place}", 1, result.shape))
    found = evaluator.run(evaluator.load(model), case.feeds)
    for one, other in zip(wanted, found, strict=True):
        assert isinstance(other, np.ndarray)
        assert one.dtype == other.dtype
        np.testing.assert_allclose(other.reshape(one.shape), one, 1e-5, 1e-6)


def test_every_kernel_is_compared() -> None:
    assert {case.operator for case in CASES.values() if case.domain} == set(FOREIGN)


def test_another_activation_is_refused() -> None:
    model = Case("FusedGemm", [data(2, 2), data(2, 2)], {"activation": "Selu"}).model()
    with pytest.raises(UnsupportedError, match="FusedGemm"):
        evaluator.run(evaluator.load(model), {"i0": data(2, 2), "i1": data(2, 2)})


def test_rows_of_one_number_are_rounding_alone() -> None:
    """What is left of a row of equal numbers is divided by the root of epsilon: rounding, and no difference."""
    import splitgraph

    text = """<ir_version: 8, opset_import: ["" : 13]> g (float[N, 24] x, float[24] s, float[24] b) => (float[N, 24] y)
    { y = LayerNormalization<axis = -1>(x, s, b) }"""
    rewrite = splitgraph.convert(onnx.parser.parse_model(text), standard=True, verify=True)
    assert rewrite.verification is not None
    assert rewrite.verification.verdict == "equal", rewrite.verification
