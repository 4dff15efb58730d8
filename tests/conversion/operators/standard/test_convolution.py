"""Convolutions and pools of com.microsoft in operators of ai.onnx."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from conversion.operators.standard.inferred import check
from conversion.operators.standard.one_node import Array, Case, refusal

_RNG = np.random.default_rng(3)
_NEW_AND_OLD = (24, 13)


def _floats(*shape: int, dtype: str = "float32") -> Array:
    return _RNG.standard_normal(shape).astype(dtype)


# FusedConv -----------------------------------------------------------------------------------------------------------

_ACTIVATIONS = (
    *((None, ()), ("Relu", ()), ("Tanh", ()), ("Sigmoid", ()), ("HardSwish", ()), ("LeakyRelu", (0.2,))),
    *(("Clip", (-0.5, 1.0)), ("HardSigmoid", (0.3, 0.4)), ("Relu", (1.0,))),
)


def _conv(activation: str | None, numbers: tuple[float, ...], **more: Any) -> Case:
    bias, total, rank = more.pop("bias", True), more.pop("total", False), more.pop("rank", 2)
    attributes: dict[str, Any] = {"group": 2, "pads": [1, *[0] * (2 * rank - 2), 1], **more.pop("attributes", {})}
    if activation is not None:
        attributes["activation"] = activation
    if numbers:
        attributes["activation_params"] = list(numbers)
    data, weights = _floats(2, 4, *[5] * rank), _floats(6, 2, *[2] * rank)
    size = (2, 6, *([5] if rank == 1 else [5, *[4] * (rank - 2), 5]))
    inputs = [data, weights, _floats(6) if bias else None, _floats(*size) if total else None]
    return Case("FusedConv", inputs, attributes, atol=5e-5, **more)


@pytest.mark.parametrize("total", [False, True])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize(("activation", "numbers"), _ACTIVATIONS)
def test_fused_conv(activation: str | None, numbers: tuple[float, ...], bias: bool, total: bool) -> None:
    case = _conv(activation, numbers, bias=bias, total=total, constants=frozenset({1, 2}) if bias else frozenset())
    check(case, _NEW_AND_OLD if total else (17,))


@pytest.mark.parametrize(
    "attributes",
    [{"auto_pad": "SAME_UPPER"}, {"strides": [2, 1]}, {"dilations": [1, 2]}, {"kernel_shape": [2, 2]}, {"group": 2}],
)
def test_fused_conv_with_attributes(attributes: dict[str, Any]) -> None:
    case = _conv("Relu", (), attributes=attributes)
    more = dict(case.attributes)
    if "auto_pad" in attributes:
        del more["pads"]
    check(Case("FusedConv", case.inputs, more, atol=5e-5), _NEW_AND_OLD)
    check(Case("FusedConv", case.inputs, more, atol=5e-5, free=True), (17,))


@pytest.mark.parametrize("rank", [1, 3])
def test_fused_conv_of_other_ranks(rank: int) -> None:
    check(_conv("Relu", (), rank=rank, bias=False), _NEW_AND_OLD)


@pytest.mark.parametrize(
    ("activation", "numbers", "reason"),
    [
        ("Elu", (1.0,), "none that onnxruntime runs"),
        ("", (), "none that onnxruntime runs"),
        ("Clip", (1.0,), "takes 2 parameters, and 1 are given"),
        ("LeakyRelu", (), "takes 1 parameters, and 0 are given"),
    ],
)
def test_activations_without_a_kernel_are_refused(activation: str, numbers: tuple[float, ...], reason: str) -> None:
    assert reason in refusal(_conv(activation, numbers))


# ConvTransposeWithDynamicPads ----------------------------------------------------------------------------------------


def _transposed(attributes: dict[str, Any], pads: list[int] | None, *, rank: int = 2, **more: Any) -> Case:
    filters = 3 // attributes.get("group", 1) if attributes.get("group", 1) in (1, 3) else 3
    channels = 2 * attributes.get("group", 1)
    inputs = [_floats(1, channels, *[4] * rank), _floats(channels, filters, *[3] * rank)]
    given: list[Array | None] = [*inputs, None if pads is None else np.array(pads, np.int64)]
    if more.pop("bias", False):
        given.append(_floats(filters * attributes.get("group", 1)))
    return Case("ConvTransposeWithDynamicPads", given, attributes, **more)


@pytest.mark.parametrize("constants", [frozenset(), frozenset({1, 2})])
@pytest.mark.parametrize("pads", [[0, 0, 0, 0], [1, 0, 0, 1], [2, 2, 1, 1]])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": [2, 2]},
        {"dilations": [2, 2]},
        {"group": 3},
        {"strides": [2, 2], "output_padding": [1, 1], "kernel_shape": [3, 3]},
    ],
)
def test_conv_transpose(attributes: dict[str, Any], pads: list[int], constants: frozenset[int]) -> None:
    case = _transposed(attributes, pads, constants=constants, bias=pads[0] == 1)
    check(case, _NEW_AND_OLD if pads[0] == 1 else (17,), computed=not constants)


@pytest.mark.parametrize("rank", [1, 3])
def test_conv_transpose_of_other_ranks(rank: int) -> None:
    check(_transposed({}, [1] * (2 * rank), rank=rank), (17,), computed=True)


def test_conv_transpose_with_auto_pad_is_refused() -> None:
    assert "auto_pad" in refusal(_transposed({"auto_pad": "SAME_UPPER"}, [0, 0, 0, 0]))


# Pools ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["int8", "uint8"])
@pytest.mark.parametrize(
    "attributes",
    [
        {},
        {"strides": [2, 1]},
        {"pads": [1, 0, 0, 1]},
        {"ceil_mode": 1, "strides": [2, 2]},
        {"dilations": [1, 2]},
        {"auto_pad": "SAME_LOWER"},
    ],
)
def test_pool_with_the_channels_last(attributes: dict[str, Any], dtype: str) -> None:
    data = _RNG.integers(-100, 100, (2, 6, 5, 3)).astype(dtype)
    for free in (False, True):
        case = Case("NhwcMaxPool", [data], {"kernel_shape": [2, 2], **attributes}, free=free, rtol=0, atol=0)
        check(case, _NEW_AND_OLD if free else (17,))


@pytest.mark.parametrize(
    "attributes",
    [{}, {"pads": [1, 0, 0, 1]}, {"auto_pad": "SAME_UPPER"}, {"storage_order": 1, "strides": [2, 2]}],
)
def test_pool_whose_mask_hides_nothing(attributes: dict[str, Any]) -> None:
    data, more = _floats(2, 3, 5, 5), {"kernel_shape": [2, 2], **attributes}
    mask = np.full((2, 3, 5, 5), 2, np.int32)
    check(Case("MaxpoolWithMask", [data, mask], more, constants=frozenset({1})), _NEW_AND_OLD)


def test_pool_with_a_mask_is_refused() -> None:
    mask = np.ones((1, 1, 4, 4), np.int32)
    more = {"kernel_shape": [2, 2]}
    assert "order in which" in refusal(Case("MaxpoolWithMask", [_floats(1, 1, 4, 4), mask], more))
    mask[0, 0, 1, 1] = 0
    case = Case("MaxpoolWithMask", [_floats(1, 1, 4, 4), mask], more, constants=frozenset({1}))
    assert "order in which" in refusal(case)
