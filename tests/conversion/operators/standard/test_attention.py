"""Attention, MultiHeadAttention, DecoderMaskedMultiHeadAttention and QAttention in operators of ai.onnx."""

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

import splitgraph

_RNG = np.random.default_rng(2)
_data = partial(normal, _RNG)
_HALF = {"rtol": 4e-3, "atol": 4e-3}
_BATCH, _LENGTH, _HEADS, _SIZE = 2, 4, 2, 3
_LOWEST = float(np.finfo(np.float32).min)


def _mask(kind: str, queries: int, keys: int) -> Array | None:
    """A mask of one of the kinds that onnxruntime takes."""
    made: Any = {
        "": lambda: None,
        "ends": lambda: [2, keys],
        "any ends": lambda: [0, keys + 3],
        "ends and starts": lambda: [keys, keys - 1, 1, 0],
        "three ends": lambda: [2, keys, *range(2 * _BATCH + 2)],
        "keys": lambda: _RNG.integers(0, 2, (_BATCH, keys)) | np.eye(1, keys, dtype=int),
        "signs": lambda: _RNG.integers(-2, 3, (_BATCH, keys)) + 2 * np.eye(1, keys, dtype=int),
        "queries": lambda: _RNG.integers(0, 2, (_BATCH, queries, keys)) | np.eye(1, keys, dtype=int),
        "nothing": lambda: np.zeros((_BATCH, keys)),
        "no mask": lambda: np.zeros((_BATCH, 1)),
        "no mask at all": lambda: np.zeros((1, 1)),
    }[kind]()
    return None if made is None else np.asarray(made, np.int32)


def _attention(
    mask: str = "",
    past: int = 0,
    bias: bool = True,
    widths: tuple[int, int, int] | None = None,
    added: tuple[int, int] | None = None,
    attributes: dict[str, Any] | None = None,
    dtype: str = "float32",
    **more: Any,
) -> Case:
    own = widths or (_HEADS * _SIZE,) * 3
    keys = _LENGTH + past
    given = [
        _data(_BATCH, _LENGTH, 5, dtype=dtype),
        _data(5, sum(own), dtype=dtype),
        _data(sum(own), dtype=dtype) if bias else None,
        _mask(mask, _LENGTH, keys),
        _data(2, _BATCH, _HEADS, past, _SIZE, dtype=dtype) if past else None,
        _data(*added, _LENGTH, keys, dtype=dtype) if added else None,
    ]
    sizes = {"qkv_hidden_sizes": list(widths)} if widths else {}
    named = {"num_heads": _HEADS, **sizes, **(attributes or {})}
    more = {"outputs": 2 if past else 1, "constants": frozenset({1, 2}), **more}
    return Case("Attention", without_last_gaps(given), named, **more)


_ONE_WAY = {"unidirectional": 1}
_MASKS = ("ends", "any ends", "ends and starts", "three ends", "keys", "signs", "queries", "nothing")
# A row whose keys are all masked is what the scores of the keys are, rounded beside -10000.
_ROUNDED = {"rtol": 2e-3, "atol": 2e-3}


def _tolerance(mask: str) -> dict[str, float]:
    return _ROUNDED if mask in ("any ends", "nothing") else {}


_ATTENTION = [
    *(_attention(past=past, attributes=one_way) for past in (0, 3) for one_way in ({}, _ONE_WAY)),
    *(
        _attention(mask, past, attributes=one_way, **_tolerance(mask))
        for mask in _MASKS
        for past, one_way in ((0, {}), (0, _ONE_WAY), (2, _ONE_WAY), (2, {}))
    ),
    *(_attention(mask) for mask in ("no mask", "no mask at all")),
    *(_attention(added=added) for added in ((1, 1), (1, 2), (2, 1), (2, 2))),
    _attention("keys", added=(1, 2), attributes=_ONE_WAY),
    *(_attention("keys", attributes={"mask_filter_value": fill, **_ONE_WAY}) for fill in (-1.0, _LOWEST)),
    _attention("keys", attributes={"mask_filter_value": _LOWEST}),
    *(_attention(attributes={"scale": scale}) for scale in (0.0, 0.37, -0.4)),
    _attention(bias=False),
    _attention(outputs=2),
    _attention(constants=frozenset()),
    *(_attention(mask, widths=(8, 8, 6), attributes=one_way) for mask in ("", "keys") for one_way in ({}, _ONE_WAY)),
    *(_attention(mask, dtype="float16", **_HALF) for mask in ("", "keys", "ends")),
    _attention("keys", 2, dtype="float16", attributes=_ONE_WAY, **_HALF),
    *(
        _attention(mask, past, free=True)
        for mask in ("", "queries", "keys", "no mask")
        for past in (0, 2)
        if mask != "no mask" or not past
    ),
    # The mask has a number of keys, the inputs have none.
    *(_attention(mask, free=True, constants=frozenset({1, 2, 3})) for mask in ("keys", "no mask")),
    _attention("keys", 2, free=True, attributes=_ONE_WAY),
    _attention(free=True, constants=frozenset()),
    _attention(free=True, constants=frozenset(), bias=False, outputs=2),
]


@pytest.mark.parametrize("case", _ATTENTION, ids=str)
def test_attention(case: Case) -> None:
    check(case, (24, 13))


def _multi_head(
    mask: str = "",
    past: int = 0,
    bias: bool = False,
    keys: int = _LENGTH,
    value_size: int = _SIZE,
    split: bool = False,
    added: tuple[int, int] | None = None,
    attributes: dict[str, Any] | None = None,
    dtype: str = "float32",
    **more: Any,
) -> Case:
    width, total = _HEADS * _SIZE, keys + past
    shapes = [(_BATCH, keys, _HEADS * size) for size in (_SIZE, value_size)]
    if split:
        shapes = [(_BATCH, _HEADS, keys, size) for size in (_SIZE, value_size)]
    given = [
        _data(_BATCH, _LENGTH, width, dtype=dtype),
        *(_data(*shape, dtype=dtype) for shape in shapes),
        _data(2 * width + _HEADS * value_size, dtype=dtype) if bias else None,
        _mask(mask, _LENGTH, total),
        _data(*added, _LENGTH, total, dtype=dtype) if added else None,
        *(_data(_BATCH, _HEADS, past, size, dtype=dtype) if past else None for size in (_SIZE, value_size)),
    ]
    named = {"num_heads": _HEADS, **(attributes or {})}
    return Case("MultiHeadAttention", without_last_gaps(given), named, **{"outputs": 3 if past else 1, **more})


_MULTI_HEAD = [
    *(
        _multi_head(past=past, keys=keys, attributes=one_way)
        for past in (0, 3)
        for keys in (_LENGTH, 6, 3)
        for one_way in ({}, _ONE_WAY)
    ),
    *(
        _multi_head(mask, past, attributes=one_way, **_tolerance(mask))
        for mask in ("ends", "any ends", "three ends", "keys", "queries", "nothing")
        for past, one_way in ((0, {}), (2, _ONE_WAY))
    ),
    *(_multi_head(mask, keys=6) for mask in ("keys", "queries")),
    *(_multi_head(added=added, past=past) for added in ((1, 1), (1, 2), (2, 1), (2, 2)) for past in (0, 2)),
    _multi_head("keys", 1, added=(2, 2), attributes=_ONE_WAY),
    *(
        _multi_head(bias=True, past=past, constants=constants)
        for past in (0, 2)
        for constants in (frozenset({3}), frozenset())
    ),
    *(_multi_head(bias=bias, value_size=5, keys=6, free=free) for bias in (False, True) for free in (False, True)),
    *(
        _multi_head(split=True, keys=keys, past=past, bias=bias)
        for keys, past, bias in ((6, 0, False), (6, 0, True), (4, 2, False))
    ),
    _multi_head("keys", split=True, keys=5, attributes=_ONE_WAY, outputs=3),
    _multi_head(outputs=3),
    _multi_head(outputs=3, split=True),
    *(_multi_head(attributes={"scale": scale}) for scale in (0.0, 0.2, -0.4)),
    _multi_head("keys", attributes={"mask_filter_value": -5.0}),
    *(_multi_head(mask, dtype="float16", bias=True, **_HALF) for mask in ("", "keys")),
    *(
        _multi_head(mask, past, free=True, attributes=one_way)
        for mask in ("", "keys", "queries")
        for past in (0, 2)
        for one_way in ({}, _ONE_WAY)
    ),
    _multi_head(free=True, split=True, keys=6, attributes=_ONE_WAY),
]


@pytest.mark.parametrize("case", _MULTI_HEAD, ids=str)
def test_multi_head_attention(case: Case) -> None:
    check(case, (24, 13))


def _buffered(operator: str, queries: int = 1, beams: bool = False, **more: Any) -> Case:
    """Attention over a past of 3 rows in buffers of 8."""
    rows, held = 3, 8
    new = [_data(_BATCH, queries, _HEADS * _SIZE) for _ in range(3)]
    buffers = [_data(_BATCH, _HEADS, held, _SIZE) for _ in range(2)]
    chosen = _RNG.integers(0, 2, (1, 2, held)).astype(np.int32) if beams else None
    mask, added, bias = (more.pop(name, None) for name in ("mask", "added", "bias"))
    length = np.array([rows], np.int32)
    if operator == "MultiHeadAttention":
        given = [*new, bias, mask, added, *buffers, length, chosen]
        attributes: dict[str, Any] = {"num_heads": _HEADS}
    else:
        width = np.array([2], np.int32) if beams else None
        given = [*new, mask, added, *buffers, length, width, chosen, bias]
        attributes = {"num_heads": _HEADS, "past_present_share_buffer": 1}
    return Case(operator, without_last_gaps(given), attributes | more.pop("attributes", {}), outputs=3, **more)


_BUFFERED = [
    *(
        _buffered(operator, beams=beams, free=free)
        for operator in ("MultiHeadAttention", "DecoderMaskedMultiHeadAttention")
        for beams in (False, True)
        for free in (False, True)
    ),
    *(
        _buffered(
            operator,
            mask=np.array([[1, 0, 1, 1], [1, 1, 1, 1]], np.int32),
            added=_data(1, _HEADS, 1, 4),
            bias=_data(18),
        )
        for operator in ("MultiHeadAttention", "DecoderMaskedMultiHeadAttention")
    ),
    *(
        _buffered(operator, beams=True, added=_data(1, heads, 1, 4))
        for operator in ("MultiHeadAttention", "DecoderMaskedMultiHeadAttention")
        for heads in (1, _HEADS)
    ),
    _buffered("MultiHeadAttention", 3),
    _buffered("MultiHeadAttention", 3, attributes=_ONE_WAY, constants=frozenset({8})),
    _buffered(
        "DecoderMaskedMultiHeadAttention",
        attributes={"scale": 0.5, "mask_filter_value": -3.0},
        constants=frozenset({7}),
    ),
    *(
        Case(
            "DecoderMaskedMultiHeadAttention",
            [_data(2, 1, 6), _data(2, 2, 5, 3), _data(2, 2, 5, 3), *more],
            {"num_heads": 2},
            free=free,
        )
        for more in ([], [np.array([[1, 1, 0, 0, 0], [1, 0, 1, 1, 1]], np.int32)])
        for free in (False, True)
    ),
    Case("DecoderMaskedMultiHeadAttention", [_data(2, 1, 6), _data(2, 1, 6), _data(2, 1, 6)], {"num_heads": 2}),
]


@pytest.mark.parametrize("case", _BUFFERED, ids=str)
def test_buffers(case: Case) -> None:
    check(case, (24, 13))


def _quantized(
    mask: str = "", past: int = 0, columns: bool = False, points: bool = True, signed: bool = True, **more: Any
) -> Case:
    width = 3 * _HEADS * _SIZE
    kind = np.int8 if signed else np.uint8
    shape = (width,) if columns else ()
    given = [
        _RNG.integers(0, 256, (_BATCH, _LENGTH, 5)).astype(np.uint8),
        _RNG.integers(np.iinfo(kind).min, np.iinfo(kind).max, (5, width)).astype(kind),
        _data(width),
        np.array(0.02, np.float32),
        _RNG.uniform(0.005, 0.02, shape).astype(np.float32),
        _mask(mask, _LENGTH, _LENGTH + past),
        np.array(120, np.uint8) if points else None,
        _RNG.integers(0, 9, shape).astype(kind) if points else None,
        _data(2, _BATCH, _HEADS, past, _SIZE) if past else None,
    ]
    attributes = {"num_heads": _HEADS, **more.pop("attributes", {})}
    more = {"outputs": 2 if past else 1, "constants": frozenset({1, 2, 4, 7}), **more}
    return Case("QAttention", without_last_gaps(given), attributes, rtol=1e-4, atol=1e-4, **more)


_QUANTIZED = [
    *(
        _quantized(mask, past, columns, attributes=one_way)
        for mask in ("", "ends", "keys", "ends and starts", "queries")
        for past, columns, one_way in ((0, False, {}), (2, True, _ONE_WAY))
    ),
    *(_quantized(points=points, signed=signed) for points in (False, True) for signed in (False, True)),
    *(_quantized(attributes=attributes) for attributes in ({"scale": 0.3}, {"do_rotary": 1})),
    _quantized("keys", free=True),
    _quantized("keys", 2, free=True, outputs=2, attributes={"mask_filter_value": -2.0}),
]


@pytest.mark.parametrize("case", _QUANTIZED, ids=str)
def test_quantized_attention(case: Case) -> None:
    check(case, (24, 13))


@pytest.mark.parametrize("case", [*_ATTENTION, *_MULTI_HEAD, *_BUFFERED, *_QUANTIZED], ids=str)
def test_types_are_inferred(case: Case) -> None:
    check_types(case)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (_attention(attributes={"do_rotary": 1}), "do_rotary on a CPU"),
        (_attention(attributes={"past_present_share_buffer": 1}), "past_present_share_buffer on a CPU"),
        (_attention(widths=(8, 6, 6)), "of one size"),
        (
            Case("Attention", [_data(2, 4, 5), _data(5, 18), None, np.ones((2, 1, 8, 8), np.int32)], {"num_heads": 2}),
            "rank 4",
        ),
        (
            Case("Attention", [_data(2, 4, 5), _data(5, 18), None, np.ones(2, np.int32)], {"num_heads": 2}, free=True),
            "its mask",
        ),
        (Case("MultiHeadAttention", [_data(2, 4, 2, 3, 5)], {"num_heads": 2}), "packed"),
        (_buffered("MultiHeadAttention", beams=True, added=_data(_BATCH, 1, 1, 4)), "meant for another one"),
        (Case("MultiHeadAttention", [_data(2, 4, 6), _data(2, 4, 2, 2, 3)], {"num_heads": 2}), "packed"),
        (Case("DecoderMaskedMultiHeadAttention", [_data(2, 1, 18)], {"num_heads": 2}), "packed"),
        (
            Case(
                "DecoderMaskedMultiHeadAttention",
                [*(_data(2, 1, 6) for _ in range(3)), None, None, *(_data(2, 2, 4, 3) for _ in range(2))],
                {"num_heads": 2},
            ),
            "a past of keys without its length",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_no_kernel_computes_is_refused(case: Case, reason: str) -> None:
    assert reason in refusal(case)


def test_every_opset() -> None:
    check(_attention("keys", 2, added=None, attributes=_ONE_WAY))
    check(_multi_head("queries", 2, bias=True, added=(1, 2), attributes=_ONE_WAY))
    check(_quantized("ends", 2, columns=True))


@pytest.mark.parametrize(("mask", "past", "added"), [("", 0, None), ("keys", 2, (2, 2)), ("queries", 0, (1, 1))])
@pytest.mark.parametrize("opset", [24, 13])
def test_scores_before_the_softmax(mask: str, past: int, added: tuple[int, int] | None, opset: int) -> None:
    case = _multi_head(mask, past, added=added, outputs=4, attributes=_ONE_WAY)
    model = case.model()
    for output in model.graph.output:
        # onnxruntime does not know the type of the scores.
        output.type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    for one, other in zip(run(model, case.feeds), run(_standard(model, opset), case.feeds), strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-5, atol=1e-5)


def _standard(model: onnx.ModelProto, opset: int) -> onnx.ModelProto:
    return splitgraph.convert(model, standard=True, opset=opset).model


def test_one_node_says_what_attention_of_ai_onnx_says() -> None:
    case = _multi_head(past=2, attributes=_ONE_WAY)
    assert [node.op_type for node in _standard(case.model(), 24).graph.node] == ["Attention"]


@pytest.mark.parametrize("one_way", [{}, _ONE_WAY], ids=str)
@pytest.mark.parametrize("past", [0, 2])
@pytest.mark.parametrize("fill", [_LOWEST, -3.4e38, -3.401e38, -1e30])
def test_a_query_may_see_nothing_but_the_least_numbers(fill: float, past: int, one_way: dict[str, Any]) -> None:
    attributes = {"mask_filter_value": fill, **one_way}
    check(_attention("nothing", past, attributes=attributes), (24, 13))
    check(_multi_head("nothing", past, attributes=attributes), (24, 13))


@pytest.mark.parametrize("one_way", [{}, _ONE_WAY], ids=str)
@pytest.mark.parametrize("row", [(_LOWEST,) * 4, (-np.inf,) * 4, (_LOWEST, _LOWEST, -np.inf, -np.inf)], ids=str)
def test_a_bias_may_hide_all_keys(row: tuple[float, ...], one_way: dict[str, Any]) -> None:
    case = _multi_head(added=(1, 2), attributes=one_way)
    np.asarray(case.inputs[5])[0, 0, 1] = row
    check(case, (24, 13))


def test_a_query_whose_keys_are_all_masked_sees_them_alike() -> None:
    case = _multi_head("nothing", attributes={"scale": 1e-3})
    means = np.asarray(case.inputs[2]).mean(1, keepdims=True).repeat(_LENGTH, 1)
    (got,) = run(_standard(case.model(), 24), case.feeds)
    np.testing.assert_allclose(got, means, rtol=0, atol=5e-3)
