"""GroupQueryAttention in operators of ai.onnx."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import onnx
import pytest
from conversion.operators.standard.one_node import Array, Case, check, check_types, normal, refusal, run

import splitgraph

_RNG = np.random.default_rng(4)
_data = partial(normal, _RNG)
_HALF = {"rtol": 6e-3, "atol": 6e-3}


# The new tokens, the rows of the cache, the last place of each sequence, and the number of all tokens.
_STEPS: dict[str, tuple[int, int, list[int], int]] = {
    "prompt": (4, 0, [3, 3], 4),
    "padded prompt": (4, 0, [1, 3], 4),
    "prompt in a buffer": (4, 6, [1, 3], 4),
    "token": (1, 5, [5, 5], 6),
    "ragged token": (1, 5, [5, 2], 6),
    "token in a buffer": (1, 9, [4, 2], 5),
    "first token": (1, 6, [0, 0], 1),
    "chunk": (3, 4, [6], 7),
    "chunk in a buffer": (3, 9, [5], 6),
    "short chunk in a buffer": (3, 9, [4], 6),
    "padded chunks": (4, 6, [2, 4], 6),
    "padded chunks that grow": (4, 6, [2, 4], 9),
}


def _grouped(
    step: str = "prompt",
    heads: tuple[int, int] = (4, 2),
    size: int = 8,
    packed: bool = False,
    pairs: int = 0,
    positions: bool = False,
    added: tuple[int, int] | None = None,
    sink: bool = False,
    dtype: str = "float32",
    attributes: dict[str, Any] | None = None,
    **more: Any,
) -> Case:
    new, held, last, total = _STEPS[step]
    batch, (count, kept) = len(last), heads
    tokens = [_data(batch, new, number * size, dtype=dtype) for number in (count, kept, kept)]
    if packed:
        tokens = [np.concatenate(tokens, -1), None, None]  # type: ignore[list-item]
    past = [_data(batch, kept, held, size, dtype=dtype) if held else None for _ in range(2)]
    tables = [_data(20, pairs, dtype=dtype) if pairs else None for _ in range(2)]
    given: list[Array | None] = [
        *tokens,
        *past,
        np.array(last, np.int32),
        np.array([total], np.int32),
        *tables,
        _RNG.integers(0, 15, (batch, new)) if positions else None,
        _data(batch if added[0] else 1, count if added[1] else 1, new, total, dtype=dtype) if added else None,
        _data(count, dtype=dtype) if sink else None,
        *(None,) * 4,
        np.array([2, 3], np.int32) if step.startswith("padded chunks") else None,
    ]
    while given[-1] is None:
        given.pop()
    named = {"num_heads": count, "kv_num_heads": kept, **({"do_rotary": 1} if pairs else {}), **(attributes or {})}
    tolerance = _HALF if dtype == "float16" else {}
    return Case("GroupQueryAttention", given, named, **{"outputs": 3, **tolerance, **more})


def _quantized(step: str, bits: int, per_channel: bool, **more: Any) -> Case:
    """A step with a cache of integers."""
    kind = "PER_CHANNEL" if per_channel else "PER_TENSOR"
    attributes = {"k_quant_type": kind, "v_quant_type": kind, "kv_cache_bit_width": bits, **more.pop("attributes", {})}
    case = _grouped(step, size=16, attributes=attributes, **more)
    given = [*case.inputs, *(None,) * (14 - len(case.inputs))]
    for place in (3, 4):
        shape = np.shape(case.inputs[place])
        low, high, dtype = (-128, 128, np.int8) if bits == 8 else (0, 256, np.uint8)
        given[place] = _RNG.integers(low, high, (*shape[:-1], 16 * bits // 8)).astype(dtype)
        scales = _RNG.uniform(0.01, 0.03, (1, shape[1], 1, 16) if per_channel else (1,))
        given[place + 9] = (scales * (1 if bits == 8 else 12)).astype(np.float32)
    return replace(case, inputs=given)


_TYPICAL = ("prompt", "ragged token", "chunk in a buffer")
_CASES = [
    *(_grouped(step) for step in _STEPS),
    *(_grouped(step, free=True, widths=True) for step in _STEPS),
    *(_grouped(step, (2, 2)) for step in _TYPICAL),
    *(_grouped(step, (6, 1), packed=True) for step in _TYPICAL),
    *(_grouped(step, constants=frozenset({5, 6})) for step in _TYPICAL),
    *(_grouped(step, attributes={"local_window_size": 2}) for step in _STEPS),
    *(_grouped(step, attributes={"local_window_size": 1}) for step in _TYPICAL),
    *(_grouped(step, attributes={"local_window_size": 0}) for step in _TYPICAL),
    *(_grouped(step, attributes={"softcap": 0.7}) for step in _TYPICAL),
    *(_grouped(step, attributes={"softcap": -1.0, "scale": 0.3}) for step in _TYPICAL),
    *(_grouped(step, attributes={"smooth_softmax": 1}) for step in _STEPS),
    *(_grouped(step, sink=True) for step in _TYPICAL),
    *(_grouped(step, sink=True, attributes={"smooth_softmax": 1, "local_window_size": 2}) for step in _TYPICAL),
    *(_grouped(step, attributes={"causal": 0}) for step in ("prompt", "padded prompt", "ragged token")),
    *(_grouped(step, added=added) for step in _TYPICAL for added in ((0, 0), (1, 1), (0, 1))),
    *(_grouped(step, added=(1, 1), attributes={"softcap": 1.2, "local_window_size": 2}) for step in _STEPS),
    *(
        _grouped(step, size=16, pairs=8, attributes={"rotary_interleaved": interleaved})
        for step in _STEPS
        for interleaved in (0, 1)
    ),
    *(_grouped(step, size=32, pairs=8, packed=True) for step in _TYPICAL),
    *(_grouped(step, size=16, pairs=8, positions=True) for step in _STEPS),
    *(_grouped(step, size=16, pairs=8, free=True, widths=True) for step in ("token", "chunk")),
    *(_grouped(step, dtype="float16") for step in _TYPICAL),
    *(_grouped(step, size=16, pairs=8, dtype="float16", sink=True) for step in _TYPICAL),
    _grouped(outputs=1),
    *(
        _quantized(step, bits, per_channel)
        for step in ("prompt in a buffer", "token", "ragged token", "token in a buffer", "chunk")
        for bits in (4, 8)
        for per_channel in (False, True)
    ),
    *(_quantized("token", bits, True, free=True, widths=True) for bits in (4, 8)),
    _quantized("ragged token", 8, False, attributes={"local_window_size": 2, "softcap": 2.0}),
    *(_quantized("ragged token", bits, True, sink=True, dtype="float16") for bits in (4, 8)),
]


@pytest.mark.parametrize("case", [case for case in _CASES if len(case.inputs) < 17], ids=str)
def test_grouped_attention(case: Case) -> None:
    check(case, (24, 13))


@pytest.mark.parametrize("case", [case for case in _CASES if len(case.inputs) == 17], ids=str)
@pytest.mark.parametrize("opset", [24, 13])
def test_rows_of_padded_chunks(case: Case, opset: int) -> None:
    model, counts = case.model(), case.inputs[16]
    result = splitgraph.convert(model, standard=True, opset=opset).model
    (output, *caches), (got, *others) = run(model, case.feeds), run(result, case.feeds)
    for place, count in enumerate(np.asarray(counts)):
        # What is in the other rows is not specified, and the kernel leaves them as they are.
        np.testing.assert_allclose(got[place, :count], output[place, :count], case.rtol, case.atol)
    for one, other in zip(caches, others, strict=True):
        np.testing.assert_allclose(other, one, case.rtol, case.atol)


@pytest.mark.parametrize("case", _CASES, ids=str)
def test_types_are_inferred(case: Case) -> None:
    check_types(case)


@pytest.mark.parametrize("step", ["prompt", "padded prompt", "ragged token", "token in a buffer", "chunk"])
@pytest.mark.parametrize("asked", [1, 2])
@pytest.mark.parametrize("attributes", [{}, {"softcap": 0.5}, {"smooth_softmax": 1}, {"causal": 0}], ids=str)
def test_scores_and_weights(step: str, asked: int, attributes: dict[str, Any]) -> None:
    case = _grouped(step, outputs=4, attributes={"qk_output": asked, **attributes})
    model = case.model()
    for output in model.graph.output:
        output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    result = splitgraph.convert(model, standard=True, opset=13).model
    for one, other in zip(run(model, case.feeds), run(result, case.feeds), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (_grouped(attributes={"k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR"}), "without a past"),
        (_grouped("token", attributes={"k_quant_type": "PER_TENSOR"}), "quantized differently"),
        (_quantized("token", 8, False, attributes={"kv_cache_bit_width": 0}), "a cache of 0 bits"),
        (
            _grouped("token", attributes={"sliding_window_cache": 1, "local_window_size": 2}),
            "a window of the last keys",
        ),
        (_grouped(outputs=4), "qk_output does not tell"),
        (_grouped(outputs=4, attributes={"qk_output": 1, "local_window_size": 2}), "qk_output does not tell"),
        (_grouped(free=True), "the size of a head is unknown"),
        (_grouped("token", size=16, pairs=8, free=True), "the size of a head is unknown"),
        (Case("SparseAttention", [_data(1, 2, 8)] * 3), "one buffer"),
    ],
)
def test_what_cannot_be_compared_or_told_is_refused(case: Case, reason: str) -> None:
    assert reason in refusal(case)


def test_every_opset() -> None:
    check(_grouped("ragged token", size=16, pairs=8))
    check(_grouped("prompt", sink=True, attributes={"local_window_size": 2}))


def test_a_cache_keeps_nothing_behind_a_sequence() -> None:
    case = _grouped("token in a buffer")
    result = splitgraph.convert(case.model(), standard=True, opset=24).model
    _, keys, _ = run(result, case.feeds)
    assert not keys[1, :, 3:].any()
    assert keys[1, :, :3].all()
