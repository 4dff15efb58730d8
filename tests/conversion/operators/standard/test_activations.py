"""Activations of com.microsoft in operators of ai.onnx."""

from __future__ import annotations

import numpy as np
import pytest
from conversion.operators.standard.one_node import Array, Case, check

_RNG = np.random.default_rng(0)
_SPECIAL = np.array([0, -0.0, 1e-30, -1e-30, 12, -12, 60, -60, np.inf, -np.inf, np.nan], np.float32)


def _data(*shape: int, dtype: str = "float32") -> Array:
    data = _RNG.standard_normal(shape) * 3
    data.flat[: min(11, data.size // 2)] = _SPECIAL[: min(11, data.size // 2)]
    return data.astype(dtype)


_BIAS = _RNG.standard_normal(8).astype(np.float32)
_LOOSE = {"rtol": 2e-3, "atol": 2e-3}


@pytest.mark.parametrize(
    "case",
    [
        *(
            Case(operator, [_data(*shape)], free=free)
            for operator in ("Gelu", "QuickGelu", "FastGelu", "ScaledSiLU")
            for shape in ((3, 8), (2, 3, 8), (24,), (0, 8))
            for free in (True, False)
        ),
        *(
            Case(op, [_data(*shape), _BIAS], free=True)
            for op in ("BiasGelu", "FastGelu")
            for shape in ((8,), (2, 3, 8))
        ),
        *(Case("QuickGelu", [_data(4, 8)], {"alpha": alpha}) for alpha in (0.0, -1.0, 1.0, 2.5)),
        *(Case("ScaledSiLU", [_data(4, 8)], {"alpha": alpha}) for alpha in (0.0, -1.0, 1.0, 2.5)),
        Case("ScaledSiLU", [_data(4, 8), np.array(0.5, np.float32)]),
        *(Case(op, [_data(4, 8, dtype="float16")], **_LOOSE) for op in ("Gelu", "QuickGelu", "FastGelu")),
    ],
    ids=lambda case: f"{case.operator}-{case.inputs[0].shape}-{case.attributes or case.free}",
)
def test_activations(case: Case) -> None:
    check(case)


def test_gelu_by_erf_and_by_tanh_are_not_confused() -> None:
    sweep = np.linspace(-6, 6, 2001, dtype=np.float32)
    check(Case("Gelu", [sweep], rtol=0, atol=1e-6))
    check(Case("FastGelu", [sweep], rtol=0, atol=1e-6))
