"""Gates and mixtures of streams of com.microsoft in operators of ai.onnx."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from conversion.operators.standard.one_node import Case, check, check_types, normal, refusal

_RNG = np.random.default_rng(5)
_data = partial(normal, _RNG)
_HALF = {"rtol": 6e-3, "atol": 6e-3}
_BRANCHES, _SIZE = 3, 5


def _tolerance(dtype: str) -> dict[str, Any]:
    return _HALF if dtype == "float16" else {}


def _streams(operator: str, *more: tuple[int, ...], flat: bool = False, dtype: str = "float32", **rest: Any) -> Case:
    """Streams (2, 4, branches, size), or flat; and inputs of more shapes behind (2, 4)."""
    own = (_BRANCHES * _SIZE,) if flat else (_BRANCHES, _SIZE)
    given = [_data(2, 4, *shape, dtype=dtype) for shape in (own, *more)]
    attributes = {**({"num_branches": _BRANCHES} if flat else {}), **rest.pop("attributes", {})}
    return Case(operator, given, attributes, **_tolerance(dtype), **rest)


_WEIGHTS = ((_BRANCHES,), (_BRANCHES, 1), (_BRANCHES, _SIZE))
_CASES = [
    *(
        _streams("HyperConnectionPreMix", weights, flat=flat, attributes=attributes)
        for weights in _WEIGHTS
        for flat in (False, True)
        for attributes in ({}, {"reduction_scale": 0.5})
    ),
    _streams("HyperConnectionPreMix", (_BRANCHES * _SIZE,), flat=True),
    *(
        _streams("HyperConnectionPostMix", (_SIZE,), weights, *mix, flat=flat)
        for weights in _WEIGHTS
        for flat in (False, True)
        for mix in ((), ((_BRANCHES, _BRANCHES),))
    ),
    *(
        _streams(operator, *more, dtype=dtype, free=dtype == "float32")
        for operator, more in (
            ("HyperConnectionPreMix", ((_BRANCHES,),)),
            ("HyperConnectionPostMix", ((_SIZE,), (_BRANCHES,), (_BRANCHES, _BRANCHES))),
        )
        for dtype in ("float32", "float16")
    ),
    *(
        Case("GatedAdd", [_data(2, 3, size, dtype=dtype) for size in (4, 4, 1)], free=free, **_tolerance(dtype))
        for dtype in ("float32", "float16")
        for free in (False, True)
    ),
    *(
        Case(
            "LinearAttentionGate",
            [_data(2, 3, 4, dtype=dtype), _data(4), _data(4), *([_data(2, 3, 4, dtype=dtype)] * (outputs - 1))],
            outputs=outputs,
            free=free,
            **_tolerance(dtype),
        )
        for dtype in ("float32", "float16")
        for outputs in (1, 2)
        for free in (False, True)
    ),
    *(
        Case(
            "EngramGate",
            [
                *(_data(2, 4, _BRANCHES, _SIZE, dtype=dtype) for _ in range(2)),
                _data(2, 4, _SIZE, dtype=dtype),
                *(_data(_BRANCHES, _SIZE, dtype=dtype) for _ in range(outputs + 1)),
            ],
            attributes,
            outputs,
            free=free,
            **_tolerance(dtype),
        )
        for dtype, free in (("float32", False), ("float32", True), ("float16", False))
        for outputs in (1, 2)
        for attributes in ({}, {"epsilon": 0.1})
    ),
]


@pytest.mark.parametrize("case", _CASES, ids=str)
def test_gates(case: Case) -> None:
    check(case, (24, 13))


@pytest.mark.parametrize("case", _CASES, ids=str)
def test_types_are_inferred(case: Case) -> None:
    check_types(case)


def test_no_agreement_at_all_closes_no_gate() -> None:
    zeros, ones = np.zeros((1, 1, 2, 3), np.float32), np.ones((2, 3), np.float32)
    check(Case("EngramGate", [zeros, zeros, _data(1, 1, 3), ones, ones]))


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (Case("GatedAdd", [_data(2, 4), _data(2, 4), _data(2, 3), _data(3, 1)]), "gate_weight on a CPU"),
        (_streams("HyperConnectionPreMix", (_BRANCHES,), flat=True, free=True), "their sizes do not tell"),
    ],
)
def test_what_cannot_be_compared_or_told_is_refused(case: Case, reason: str) -> None:
    assert reason in refusal(case)
