"""Mixtures of experts of com.microsoft in operators of ai.onnx."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from conversion.operators.standard.inferred import check
from conversion.operators.standard.one_node import Array, Case, refusal

_RNG = np.random.default_rng(8)
_NEW_AND_OLD = (24, 13)
_SWIGLU = {"activation_type": "swiglu", "swiglu_fusion": 1, "activation_alpha": 1.702, "activation_beta": 0.5}


def _floats(*shape: int, dtype: str = "float32") -> Array:
    return _RNG.standard_normal(shape).astype(dtype)


def _experts(attributes: dict[str, Any], **more: Any) -> Case:
    lead, dtype, bias = more.pop("lead", (5,)), more.pop("dtype", "float32"), more.pop("bias", True)
    size, inner, experts = 8, more.pop("inner", 6), 4
    outer = 2 * inner if attributes.get("activation_type") == "swiglu" else inner
    router = more.pop("router", _floats(int(np.prod(lead)), experts, dtype=dtype))
    inputs: list[Array | None] = [
        *(_floats(*lead, size, dtype=dtype), router, _floats(experts, outer, size, dtype=dtype)),
        _floats(experts, outer, dtype=dtype) if bias else None,
        _floats(experts, size, inner, dtype=dtype),
        _floats(experts, size, dtype=dtype) if bias else None,
    ]
    return Case("MoE", inputs if bias else inputs[:5], attributes, rtol=1e-4, atol=1e-4, **more)


@pytest.mark.parametrize("lead", [(5,), (2, 3)])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("normalized", [0, 1])
@pytest.mark.parametrize("kind", ["relu", "gelu", "silu", "identity", "swiglu"])
def test_experts(kind: str, normalized: int, bias: bool, lead: tuple[int, ...]) -> None:
    attributes = {
        **(_SWIGLU if kind == "swiglu" else {"activation_type": kind}),
        "normalize_routing_weights": normalized,
    }
    for many in (1, 2, 4):
        case = _experts(
            {**attributes, "k": many}, bias=bias, lead=lead, constants=frozenset({2, 3, 4, 5} if bias else {2})
        )
        check(case, _NEW_AND_OLD if many == 2 and bias else (17,))


@pytest.mark.parametrize("limit", [0.0, 1.0, 7.0])
def test_experts_with_a_limit(limit: float) -> None:
    check(_experts({**_SWIGLU, "k": 2, "swiglu_limit": limit}), (17,))


def test_equal_probabilities() -> None:
    for row in ([0, 0, 0, 0], [1, 0, 1, 0], [0, 1, 1, 1]):
        router = np.tile(np.array(row, np.float32), (5, 1))
        for many in (1, 2, 3):
            check(_experts({"k": many}, router=router), (17,))


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("lead", [(0,), (0, 0), (2, 0), (0, 2)])
def test_no_tokens(lead: tuple[int, ...], free: bool) -> None:
    tokens = prod(lead)
    inputs = [_floats(*lead, 4), _floats(tokens, 3), _floats(3, 5, 4), None, _floats(3, 4, 5)]
    case = Case("MoE", inputs, {"k": 2}, constants=frozenset({2, 4}), free=free, widths=True)
    check(case, (24, 17, 13, 11))


def test_as_many_inner_as_outer_sizes() -> None:
    check(_experts({"k": 2}, inner=8), (17,))
    check(_experts({"k": 2, **_SWIGLU}, inner=4), (17,))


def test_an_expert_that_is_not_chosen_may_overflow() -> None:
    case = _experts({"k": 1}, bias=False)
    weights = case.inputs[2].copy()  # type: ignore[union-attr]
    weights[3] = np.inf
    router = np.zeros((5, 4), np.float32)
    router[:, 1] = 9
    inputs = [case.inputs[0], router, weights, None, case.inputs[4]]
    check(Case("MoE", inputs, {"k": 1}, rtol=1e-4, atol=1e-4), (17,))


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (_experts({"activation_type": "tanh"}), "none that onnxruntime runs"),
        (_experts({**_SWIGLU, "swiglu_fusion": 0}), "swiglu_fusion=1"),
        (_experts({**_SWIGLU, "swiglu_limit_after_activation": 1}), "no limit after the activation"),
        (_experts({"use_sparse_mixer": 1}), "use_sparse_mixer"),
        (Case("MoE", [*_experts({}).inputs, _floats(4, 6, 8)]), "third layer"),
        (Case("MoE", [_floats(5, 8), _floats(5, 4), _floats(4, 8, 6), None, _floats(4, 6, 8)]), "do not end with"),
    ],
)
def test_experts_that_no_kernel_runs_are_refused(case: Case, reason: str) -> None:
    assert reason in refusal(case)


# QMoE ----------------------------------------------------------------------------------------------------------------


def _packed(codes: Array, bits: int) -> Array:
    each = 8 // bits
    groups = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, -codes.shape[-1] % each)])
    groups = groups.reshape(*codes.shape[:-1], -1, each)
    return np.bitwise_or.reduce(groups << np.arange(0, 8, bits, dtype=np.uint8), axis=-1).astype(np.uint8)


def _layer(outputs: int, inputs: int, bits: int, block: int, zeros: bool) -> tuple[Array, Array, Array | None]:
    blocks = inputs // block if block else 1
    codes = _RNG.integers(0, 2**bits, (3, outputs, inputs)).astype(np.uint8)
    scales = _RNG.uniform(0.005, 0.02, (3, outputs, blocks)).astype(np.float32)
    points = _RNG.integers(0, 2**bits, (3, outputs, blocks)).astype(np.uint8)
    if not block:
        scales, points = scales[..., 0], points[..., 0]
    return _packed(codes, bits), scales, _packed(points, bits) if zeros else None


def _quantized(bits: int, block: int, zeros: bool, attributes: dict[str, Any], **more: Any) -> Case:
    outer = 128 if attributes.get("activation_type") == "swiglu" else 64
    first, second = _layer(outer, 32, bits, block, zeros), _layer(32, 64, bits, block, zeros)
    bias = [_floats(3, outer), _floats(3, 32)] if more.pop("bias", False) else [None, None]
    inputs: list[Array | None] = [
        *(_floats(4, 32), _floats(4, 3), *first[:2], bias[0], *second[:2], bias[1]),
        *(None, None, None, first[2], second[2]),
    ]
    given = {"k": 2, "expert_weight_bits": bits, "normalize_routing_weights": 1, **attributes}
    if block:
        given["block_size"] = block
    return Case("QMoE", inputs, given, rtol=1e-4, atol=1e-4, **more)


@pytest.mark.parametrize("zeros", [False, True])
@pytest.mark.parametrize("block", [0, 16, 32])
@pytest.mark.parametrize("bits", [2, 4, 8])
def test_quantized_experts(bits: int, block: int, zeros: bool) -> None:
    check(_quantized(bits, block, zeros, {"activation_type": "silu"}, bias=zeros), _NEW_AND_OLD)
    if bits < 8:
        known = frozenset({2, 3, 5, 6, 11, 12} if zeros else {2, 3, 5, 6})
        check(_quantized(bits, block, zeros, {}, constants=known), (25, 24, 13))


@pytest.mark.parametrize("kind", ["relu", "gelu", "identity", "swiglu"])
def test_activations_of_quantized_experts(kind: str) -> None:
    attributes = _SWIGLU if kind == "swiglu" else {"activation_type": kind}
    check(_quantized(4, 32, True, {**attributes, "weights_prepacked": 0}, bias=True), (24,))


@pytest.mark.parametrize(
    ("attributes", "reason"),
    [
        ({"normalize_routing_weights": 0}, "normalizes the weights"),
        ({"quant_type": "fp4"}, "whatever quant_type says"),
        ({"weights_prepacked": 1}, "layout of the document"),
        ({"expert_weight_bits": 3}, "layout of the document"),
    ],
)
def test_other_quantized_experts_are_refused(attributes: dict[str, Any], reason: str) -> None:
    case = _quantized(4, 32, False, {})
    assert reason in refusal(Case("QMoE", case.inputs, {**case.attributes, **attributes}))


def test_all_experts_need_no_normalization() -> None:
    check(_quantized(4, 32, True, {"normalize_routing_weights": 0, "k": 3}), (24,))


# MoEGroupRouter ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("lead", [(5,), (2, 3)])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"n_group": 3, "topk_group": 2},
        {"n_group": 3, "topk_group": 1, "top_k": 6},
        {"n_group": 6, "topk_group": 2, "group_topk": 3},
        {"n_group": 4, "topk_group": 3, "group_topk": 1, "router_sentinel": -5.0},
    ],
)
def test_group_router(attributes: dict[str, Any], lead: tuple[int, ...]) -> None:
    inputs = [_floats(*lead, 12), _floats(12) * np.float32(0.3)]
    check(Case("MoEGroupRouter", inputs, {"top_k": 3, **attributes}), _NEW_AND_OLD)
    ties = [np.zeros((*lead, 12), np.float32), np.zeros(12, np.float32)]
    check(Case("MoEGroupRouter", ties, {"top_k": 3, **attributes}), (17,))


def test_group_router_of_small_shares_and_half_precision() -> None:
    more = {"top_k": 3, "n_group": 3, "topk_group": 2}
    check(Case("MoEGroupRouter", [np.full((2, 12), -200, np.float32), _floats(12)], more), (17,))
    check(Case("MoEGroupRouter", [_floats(2, 12, dtype="float16"), _floats(12)], more, rtol=2e-3, atol=2e-3), (17,))


def test_full_scores_are_refused() -> None:
    case = Case("MoEGroupRouter", [_floats(2, 12), _floats(12)], {"top_k": 3}, outputs=3)
    assert "full scores" in refusal(case)
