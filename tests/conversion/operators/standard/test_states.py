"""Linear attention and causal convolutions of com.microsoft, which carry a state, in operators of ai.onnx."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.standard.one_node import (
    Array,
    Case,
    check,
    check_types,
    normal,
    refusal,
    run,
    without_last_gaps,
)
from known_opsets import known
from onnx.reference import ReferenceEvaluator

import splitgraph

_RNG = np.random.default_rng(6)
_data = partial(normal, _RNG)
_HALF = {"rtol": 6e-3, "atol": 6e-3}
_BATCH, _KEY, _VALUE = 2, 4, 3
_RULES = ("linear", "gated", "delta", "gated_delta")


def _keys(*shape: int) -> Array:
    made = _data(*shape, _KEY)
    return made / np.linalg.norm(made, axis=-1, keepdims=True)


# Linear attention -----------------------------------------------------------------------------------------------------


def _linear(
    rule: str = "gated_delta",
    heads: tuple[int, int] = (2, 2),
    length: int = 5,
    state: bool = True,
    by_element: bool = False,
    one_rate: bool = False,
    dtype: str = "float32",
    **more: Any,
) -> Case:
    queries, kept = heads
    row = (_BATCH, length)
    given: list[Array | None] = [
        _data(*row, queries * _KEY),
        _keys(*row, min(heads)).reshape(*row, min(heads) * _KEY),
        _data(*row, kept * _VALUE),
        _data(_BATCH, kept, _KEY, _VALUE) if state else None,
        -np.abs(_data(*row, kept * (_KEY if by_element else 1))) if "gated" in rule else None,
        _RNG.uniform(0, 1, (*row, 1 if one_rate else kept)).astype(np.float32) if "delta" in rule else None,
    ]
    typed = [None if value is None else value.astype(dtype) for value in without_last_gaps(given)]
    attributes = {"q_num_heads": queries, "kv_num_heads": kept, "update_rule": rule, **more.pop("attributes", {})}
    tolerance = _HALF if dtype == "float16" else {}
    return Case("LinearAttention", typed, attributes, outputs=2, **tolerance, **more)


_LINEAR = [
    *(_linear(rule, heads) for rule in _RULES for heads in ((2, 2), (4, 2), (2, 4))),
    *(_linear(rule, length=1, state=state) for rule in _RULES for state in (False, True)),
    *(_linear(rule, by_element=True, state=False) for rule in ("gated", "gated_delta")),
    *(_linear(rule, one_rate=True, heads=(4, 2)) for rule in ("delta", "gated_delta")),
    *(_linear(rule, heads, free=True, widths=True) for rule in _RULES for heads in ((2, 2), (4, 2))),
    _linear("linear", state=False, free=True, widths=True),
    _linear("linear", attributes={"scale": 0.7}),
    _linear("linear", length=1, attributes={"scale": 0.7, "chunk_size": 16}),
    *(_linear(rule, dtype="float16") for rule in ("linear", "gated_delta")),
]


def _net(
    rule: str = "gated_delta",
    heads: tuple[int, int] = (2, 2),
    apart: bool = True,
    packed: bool = False,
    by_element: bool = False,
    state: bool = True,
    shift: str = "heads",
    dtype: str = "float32",
    **more: Any,
) -> Case:
    (shared, kept), length = heads, 3
    row = (_BATCH, length) if apart else (_BATCH * length,)
    tokens = [_data(*row, shared, _KEY), _keys(*row, shared), _data(*row, kept, _VALUE)]
    attributes = {"update_rule": rule, **more.pop("attributes", {})}
    given: list[Array | None] = [
        *([np.concatenate([part.reshape(*row, -1) for part in tokens], -1), None, None] if packed else tokens),
        None,
        -np.abs(_data(*row, kept, *((_KEY,) if by_element else ()))) if "gated" in rule else None,
        _RNG.uniform(0, 1, (*row, kept)).astype(np.float32) if "delta" in rule else None,
        _data(_BATCH, kept, _VALUE, _KEY) if state else None,
    ]
    given = [
        None if value is None else value.astype(dtype) if place < 3 else value for place, value in enumerate(given)
    ]
    if attributes.get("gate_activation", "none") != "none":
        sizes = {"heads": (kept,), "elements": (kept, _KEY), "flat": (kept * _KEY,)}
        given += [_data(kept), _data(*sizes[shift])]
    tolerance = _HALF if dtype == "float16" else {}
    return Case("GatedDeltaNet", without_last_gaps(given), attributes, outputs=2, **tolerance, **more)


_NETS = [
    *(_net(rule, heads, apart) for rule in _RULES for heads in ((2, 2), (2, 4)) for apart in (True, False)),
    *(_net(packed=True, apart=apart, heads=(2, 4)) for apart in (True, False)),
    *(_net(rule, by_element=True, apart=apart) for rule in ("gated", "gated_delta") for apart in (True, False)),
    *(
        _net(apart=apart, attributes={"gate_activation": name, "beta_activation": "sigmoid", "qk_l2_norm": 1})
        for name in ("softplus", "qwen", "sigmoid", "kda")
        for apart in (True, False)
    ),
    *(
        _net("gated", by_element=True, shift=shift, attributes={"gate_activation": name, "gate_lower_bound": -2.0})
        for name in ("softplus", "kda")
        for shift in ("heads", "elements", "flat")
    ),
    _net("linear", state=False),
    _net("linear", attributes={"scale": 0.3, "qk_l2_norm": 1}),
    _net(packed=True, attributes={"qk_l2_norm": 1}),
    _net(dtype="float16"),
]


# Convolutions ---------------------------------------------------------------------------------------------------------


def _conv(
    length: int = 4,
    taps: int = 3,
    bias: bool = True,
    state: bool = True,
    last: tuple[int, ...] = (),
    dtype: str = "float32",
    **more: Any,
) -> Case:
    attributes = more.pop("attributes", {})
    channels, held = int(np.prod(last)) if last else 3, (taps - 1) * attributes.get("dilation", 1)

    def laid(size: int) -> Array:
        return _data(2, size, *last, dtype=dtype) if last else _data(2, channels, size, dtype=dtype)

    given: list[Array | None] = [
        laid(length),
        _data(channels, 1, taps, dtype=dtype),
        _data(channels, dtype=dtype) if bias else None,
        laid(held) if state else None,
    ]
    named = {**attributes, **({"channels_last": 1} if last else {})}
    more = {"outputs": 2, "constants": frozenset({1, 2}), **(_HALF if dtype == "float16" else {}), **more}
    return Case("CausalConvWithState", without_last_gaps(given), named, **more)


_CONVOLUTIONS = [
    *(
        _conv(length, taps, bias, state)
        for length in (1, 4)
        for taps in (2, 4)
        for bias in (True, False)
        for state in (True, False)
    ),
    *(
        _conv(last=last, state=state, attributes={"activation": "silu"})
        for last in ((3,), (3, 2))
        for state in (True, False)
    ),
    *(
        _conv(attributes={"activation": name, "dilation": dilation})
        for name in ("none", "silu", "swish")
        for dilation in (1, 2)
    ),
    *(_conv(taps=1, state=state) for state in (True, False)),
    *(_conv(state=state, free=True) for state in (True, False)),
    *(_conv(last=(3,), state=state, free=True) for state in (True, False)),
    _conv(last=(3, 2), attributes={"dilation": 2}),
    _conv(dtype="float16"),
]


def _varlen(
    lengths: tuple[int, ...] = (2, 3), taps: int = 3, bias: bool = True, dtype: str = "float32", **more: Any
) -> Case:
    attributes = more.pop("attributes", {})
    given: list[Array | None] = [
        _data(sum(lengths), 4, dtype=dtype),
        _data(4, 1, taps, dtype=dtype),
        np.cumsum([0, *lengths]).astype(np.int32),
        _data(4, dtype=dtype) if bias else None,
        _data(len(lengths), 4, (taps - 1) * attributes.get("dilation", 1), dtype=dtype),
    ]
    more = {"outputs": 2, "constants": frozenset({1, 3}), **(_HALF if dtype == "float16" else {}), **more}
    return Case("VarlenCausalConvWithState", given, attributes, **more)


_VARLEN = [
    *(_varlen(lengths, taps) for lengths in ((2, 3), (1,), (1, 7, 1, 2)) for taps in (1, 2, 4)),
    *(
        _varlen(attributes={"dilation": dilation, "activation": name})
        for dilation in (1, 2)
        for name in ("none", "silu", "swish")
    ),
    *(_varlen(bias=bias, free=True) for bias in (True, False)),
    _varlen(dtype="float16"),
]

_CASES = [*_LINEAR, *_NETS, *_CONVOLUTIONS, *_VARLEN]


@pytest.mark.parametrize("case", _CASES, ids=str)
def test_states(case: Case) -> None:
    check(case, (24, 13))


@pytest.mark.parametrize("case", _CASES, ids=str)
def test_types_are_inferred(case: Case) -> None:
    check_types(case)


def test_every_opset() -> None:
    check(_linear(heads=(4, 2)))
    check(_net(heads=(2, 4), attributes={"gate_activation": "softplus"}))
    check(_conv(last=(3,)))
    check(_varlen())


_EMPTY = [
    *(_linear(rule, length=0, free=free, widths=free) for rule in _RULES for free in (False, True)),
    _linear("gated", length=0, by_element=True, state=False, free=True, widths=True),
    *(
        _conv(0, taps, last=last, state=state, free=free)
        for taps in (1, 2)
        for last in ((), (3,))
        for state in (False, True)
        for free in (False, True)
    ),
    _conv(0, last=(3, 2), attributes={"activation": "silu", "dilation": 2}),
]


@pytest.mark.parametrize("case", _EMPTY, ids=str)
def test_no_tokens(case: Case) -> None:
    check(case, (24, 13, 11))


def test_a_token_takes_no_loop() -> None:
    for length, loops in ((1, 0), (4, 1)):
        nodes = splitgraph.convert(_linear(length=length).model(), standard=True, opset=18).model.graph.node
        assert [node.op_type for node in nodes].count("Loop") == loops


@pytest.mark.skipif(not known([27]), reason="the installed onnx does not have the operator")
@pytest.mark.parametrize("rule", _RULES)
def test_linear_attention_of_ai_onnx(rule: str) -> None:
    case = _linear(rule, (4, 2))
    model = case.model()
    wanted = run(model, case.feeds)
    result = splitgraph.convert(model, standard=True, opset=27).model
    assert [node.op_type for node in result.graph.node] == ["LinearAttention"]
    for value in result.graph.output:
        value.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    for one, other in zip(wanted, ReferenceEvaluator(result).run(None, case.feeds), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (_linear(attributes={"state_window": 2}), "state_window on a CPU"),
        (_linear(free=True), "the width of the queries is unknown"),
        (_net(attributes={"state_update_capacity": 2}), "updates of the state"),
        (
            Case("GatedDeltaNet", [_data(4, 2, 4), _data(4, 2, 4), _data(4, 2, 3), np.array([0, 4], np.int32)]),
            "behind each other",
        ),
        (_net(attributes={"gate_activation": "tanh"}), "no gate activation 'tanh'"),
        (_conv(attributes={"ndim": 2}), "more than one dimension"),
        (_conv(attributes={"state_window": 2}), "state_window on a CPU"),
        (_conv(attributes={"state_channels_last": 1}), "state_channels_last on a CPU"),
        (_conv(attributes={"activation": "gelu"}), "no activation 'gelu'"),
        (_conv(constants=frozenset(), free=True), "the shape of the weight is unknown"),
        (_varlen(attributes={"state_update_capacity": 2}), "on a GPU only"),
    ],
)
def test_what_cannot_be_compared_or_told_is_refused(case: Case, reason: str) -> None:
    assert reason in refusal(case)
