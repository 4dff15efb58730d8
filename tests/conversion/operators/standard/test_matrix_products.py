"""Matrix products of com.microsoft in operators of ai.onnx."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conversion.operators.standard.inferred import check
from conversion.operators.standard.one_node import Array, Case, refusal

_RNG = np.random.default_rng(1)
_EXACT = {"rtol": 0, "atol": 0}
_NEW_AND_OLD = (24, 13)


def _floats(*shape: int, dtype: str = "float32") -> Array:
    return _RNG.standard_normal(shape).astype(dtype)


def _bytes(dtype: str, *shape: int) -> Array:
    info = np.iinfo(dtype)
    return _RNG.integers(info.min, info.max + 1, shape).astype(dtype)


def _scale(*shape: int) -> Array:
    return np.asarray(_RNG.uniform(0.01, 0.1, shape), np.float32)


# FusedMatMul, TransposeMatMul ----------------------------------------------------------------------------------------


def _laid_out(rows: int, columns: int, batch: tuple[int, ...], swapped: int, behind: int) -> Array:
    matrix = _floats(*batch, *((columns, rows) if swapped else (rows, columns)))
    return np.ascontiguousarray(np.moveaxis(matrix, -2, 0)) if behind and batch else matrix


def _fused(operator: str, batch: tuple[int, ...], flags: tuple[int, int, int, int], **more: Any) -> Case:
    a, b, batch_a, batch_b = flags
    operands = [_laid_out(2, 3, batch, a, batch_a), _laid_out(3, 4, batch, b, batch_b)]
    attributes = {"transA": a, "transB": b, "alpha": more.pop("alpha", 0.5)}
    if operator == "FusedMatMul":
        attributes |= {"transBatchA": batch_a, "transBatchB": batch_b}
    return Case(operator, operands, attributes, **more)


@pytest.mark.parametrize(
    "case",
    [
        *(
            _fused("FusedMatMul", batch, (a, b, batch_a, batch_b), free=free)
            for a in (0, 1)
            for b in (0, 1)
            for batch, batch_a, batch_b, free in (
                ((), 0, 0, True),
                ((2,), 0, 1, False),
                ((2,), 1, 0, True),
                ((2, 3), 1, 1, False),
            )
        ),
        *(_fused("TransposeMatMul", batch, (1, 1, 0, 0)) for batch in ((), (2,), (2, 3))),
        *(_fused("FusedMatMul", (2,), (0, 1, 0, 0), alpha=alpha) for alpha in (1.0, -2.0, 0.3)),
        *(
            Case("FusedMatMul", [_floats(*left), _floats(*right)], {"alpha": 0.5, "transA": len(left) == 1})
            for left, right in (
                ((3,), (3, 2)),
                ((2, 3), (3,)),
                ((3,), (3,)),
                ((4, 2, 3), (3, 5)),
                ((1, 2, 3), (4, 3, 5)),
            )
        ),
        Case("FusedMatMul", [_floats(2, 3, dtype="float64"), _floats(4, 3, dtype="float64")], {"transB": 1}),
        Case("FusedMatMul", [_floats(2, 3), _floats(4, 3)], {"transB": 1}, constants=frozenset({1})),
        Case(
            "FusedMatMul",
            [_floats(2, 3, dtype="float16"), _floats(4, 3, dtype="float16")],
            {"transB": 1, "alpha": 0.125},
            rtol=2e-3,
            atol=2e-3,
        ),
    ],
    ids=lambda case: f"{case.operator}-{case.inputs[0].shape}-{case.attributes}-{case.free}",
)
def test_fused_matmul(case: Case) -> None:
    check(case, _NEW_AND_OLD)


# FusedGemm -----------------------------------------------------------------------------------------------------------

_PARAMETERS = {"activation_alpha": 0.7, "activation_beta": 1.3, "activation_gamma": 1.2}


@pytest.mark.parametrize("bias", [None, (4,), (2, 1), (1,), (2, 4)])
@pytest.mark.parametrize(
    "activation",
    [
        *("Relu", "Sigmoid", "Tanh", "Softplus", "Softsign", "LeakyRelu", "Elu", "HardSigmoid", "ParametricSoftplus"),
        *("ScaledTanh", "ThresholdedRelu", "Selu"),
    ],
)
def test_fused_gemm(activation: str, bias: tuple[int, ...] | None) -> None:
    third = None if bias is None else _floats(*bias)
    attributes = {"activation": activation, "alpha": 1.5, "beta": -0.5, "transB": 1, **_PARAMETERS}
    inputs = [_floats(2, 3), _floats(4, 3), third][: 2 if third is None else 3]
    check(Case("FusedGemm", inputs, attributes), _NEW_AND_OLD if bias == (4,) else (17,))


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({}, "no activation"),
        ({"activation": "Gelu"}, "none that onnxruntime runs"),
        ({"activation": "Selu"}, "needs activation_alpha and activation_gamma"),
        ({"activation": "LeakyRelu"}, "needs activation_alpha"),
    ],
)
def test_a_gemm_that_no_kernel_runs_is_refused(attributes: dict[str, Any], reason: str) -> None:
    assert reason in refusal(Case("FusedGemm", [_floats(2, 3), _floats(3, 4)], attributes))


# Integers ------------------------------------------------------------------------------------------------------------


def test_int16_wraps_in_int32() -> None:
    check(Case("MatMulInteger16", [_bytes("int16", 2, 3, 40), _bytes("int16", 2, 40, 5)], **_EXACT))


_PAIRS = (("uint8", "uint8"), ("uint8", "int8"), ("int8", "int8"))


@pytest.mark.parametrize("constants", [frozenset(), frozenset({1})])
@pytest.mark.parametrize("columns", [(), (1,), (9,)])
@pytest.mark.parametrize("zeros", ["none", "a", "b", "both", "columns"])
@pytest.mark.parametrize(("left", "right"), _PAIRS)
def test_matmul_integer_to_float(
    left: str, right: str, zeros: str, columns: tuple[int, ...], constants: frozenset[int]
) -> None:
    a_zero = _bytes(left, 1)[0] if zeros in ("a", "both", "columns") else None
    b_zero = None if zeros in ("none", "a") else _bytes(right, 9) if zeros == "columns" else _bytes(right, 1)[0]
    bias = _floats(9) if zeros in ("both", "none") else None
    inputs = [_bytes(left, 2, 3, 70), _bytes(right, 70, 9), _scale(), _scale(*columns), a_zero, b_zero, bias]
    case = Case("MatMulIntegerToFloat", inputs, constants=constants, rtol=1e-6, atol=1e-6)
    check(case, _NEW_AND_OLD if zeros == "both" else (17,))


@pytest.mark.parametrize("right", ["uint8", "int8"])
@pytest.mark.parametrize("columns", [(), (1,), (9,)])
@pytest.mark.parametrize("zeros", [None, (), (9,)])
@pytest.mark.parametrize("bias", [False, True])
def test_dynamic_quantize_matmul(
    right: str, columns: tuple[int, ...], zeros: tuple[int, ...] | None, bias: bool
) -> None:
    b_zero = None if zeros is None else _bytes(right, *zeros) if zeros else np.array(_bytes(right, 1)[0])
    inputs = [_floats(2, 3, 70), _bytes(right, 70, 9), _scale(*columns), b_zero, _floats(9) if bias else None]
    case = Case("DynamicQuantizeMatMul", inputs, rtol=1e-6, atol=1e-6, free=bias)
    check(case, _NEW_AND_OLD if bias else (17,))


def test_a_quantized_matrix_of_zeros() -> None:
    check(Case("DynamicQuantizeMatMul", [np.zeros((2, 3), np.float32), _bytes("int8", 3, 4), _scale()]))


def _gemm(
    left: str, right: str, bias: tuple[int, ...] | None, columns: tuple[int, ...], quantized: bool, **more: Any
) -> Case:
    b_zero = _bytes(right, 9) if columns == (9,) else np.array(_bytes(right, 1)[0])
    inputs: list[Array | None] = [
        _bytes(left, 70, 5) if more.get("transA") else _bytes(left, 5, 70),
        _scale(),
        np.array(_bytes(left, 1)[0]),
        _bytes(right, 9, 70) if more.get("transB") else _bytes(right, 70, 9),
        _scale(*columns),
        b_zero,
        None if bias is None else _RNG.integers(-50000, 50000, bias).astype(np.int32),
    ]
    if quantized:
        inputs += [np.array(_RNG.choice([0.5, 8.0, 3.7]), np.float32), np.array(_bytes(left, 1)[0])]
    return Case("QGemm", inputs, more, **_EXACT)


@pytest.mark.parametrize("quantized", [False, True])
@pytest.mark.parametrize(("left", "right"), _PAIRS)
@pytest.mark.parametrize("bias", [None, (9,), (1, 9), (5, 1), (5, 9)])
def test_qgemm(left: str, right: str, bias: tuple[int, ...] | None, quantized: bool) -> None:
    for columns in ((), (9,)):
        check(_gemm(left, right, bias, columns, quantized), _NEW_AND_OLD if bias == (9,) else (17,))


@pytest.mark.parametrize("alpha", [1.0, 0.5, 1.3, 0.07])
@pytest.mark.parametrize("flags", [(0, 1), (1, 0), (1, 1)])
def test_qgemm_scaled_and_transposed(flags: tuple[int, int], alpha: float) -> None:
    for quantized in (False, True):
        case = _gemm("uint8", "int8", (9,), (9,), quantized, transA=flags[0], transB=flags[1], alpha=alpha)
        check(case, (17,))


def test_qgemm_rounds_before_the_zero_point() -> None:
    one, half = np.array(1, np.float32), np.array(0.5, np.float32)
    column = np.arange(256, dtype=np.uint8).reshape(256, 1)
    zero = np.array(0, np.uint8)
    inputs = [
        column,
        half,
        np.array(77, np.uint8),
        np.ones((1, 1), np.uint8),
        one,
        zero,
        None,
        one,
        np.array(3, np.uint8),
    ]
    check(Case("QGemm", inputs, **_EXACT))


def test_a_sparse_matrix_is_refused() -> None:
    assert "sparse tensor" in refusal(Case("SparseToDenseMatMul", [_floats(2, 2), _floats(2, 2)]))
