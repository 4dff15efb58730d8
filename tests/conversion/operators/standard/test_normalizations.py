"""Normalizations of com.microsoft, and those that onnxruntime writes into ai.onnx, in operators of ai.onnx."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from conversion.operators.standard.one_node import Array, Case, check, check_types, normal, refusal

_RNG = np.random.default_rng(1)
_data = partial(normal, _RNG)
_HALF = {"rtol": 4e-3, "atol": 4e-3}


def _integers(most: int, *shape: int, dtype: str = "int32") -> Array:
    return _RNG.integers(0, most, shape).astype(dtype)


def _skips(operator: str, shape: tuple[int, ...], skip: tuple[int, ...], dtype: str = "float32", **more: Any) -> Case:
    """A sum with everything that may be added."""
    size = shape[-1]
    vectors = [_data(size, dtype=dtype) for _ in range(2 if operator.startswith("SkipSimplified") else 3)]
    return Case(operator, [_data(*shape, dtype=dtype), _data(*skip, dtype=dtype), *vectors], **more)


_SKIPS = [
    *(
        _skips(operator, (2, 3, 8), skip, outputs=outputs, constants=frozenset({2, 3, 4}), free=free)
        for operator in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
        for skip in ((2, 3, 8), (1, 3, 8), (3, 8))
        for outputs in (1, 4)
        for free in (False, True)
    ),
    *(
        _skips(operator, (3, 8), (3, 8), outputs=4)
        for operator in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
    ),
    *(
        _skips(operator, (2, 3, 8), (2, 3, 8), "float16", outputs=outputs, **_HALF)
        for operator in ("SkipLayerNormalization", "SkipSimplifiedLayerNormalization")
        for outputs in (1, 4)
    ),
    Case("SkipLayerNormalization", [_data(2, 3, 8), _data(2, 3, 8), _data(8)], {"epsilon": 0.1}),
    Case("SkipLayerNormalization", [_data(2, 3, 8), _data(2, 3, 8), _data(8), None, _data(8)], outputs=4),
    Case("SkipLayerNormalization", [_data(2, 3, 8) + 1000, _data(2, 3, 8), _data(8), _data(8)], rtol=1e-3, atol=1e-3),
    Case("SkipSimplifiedLayerNormalization", [_data(2, 3, 8), _data(2, 3, 8), _data(8)], {"epsilon": 0.1}, outputs=3),
]


@pytest.mark.parametrize("case", _SKIPS, ids=str)
def test_sums_that_are_normalized(case: Case) -> None:
    check(case, (24, 13) if case.outputs == 1 else (24,))


def test_sums_go_to_every_opset() -> None:
    check(_skips("SkipLayerNormalization", (2, 3, 8), (3, 8), outputs=4))
    check(_skips("SkipSimplifiedLayerNormalization", (2, 3, 8), (3, 8), outputs=4))


def _plain(operator: str, opset: int, dtype: str, axis: int, **more: Any) -> Case:
    scale = (5,) if axis in (-1, 2) else (4, 5) if axis in (1, -2) else (3, 4, 5)
    given = [_data(3, 4, 5, dtype=dtype), _data(*scale, dtype=dtype), _data(*scale, dtype=dtype)]
    tolerance = _HALF if dtype == "float16" else {}
    count = 2 if operator.startswith("Simplified") else 3
    return Case(operator, given[:count], {"axis": axis, "epsilon": 1e-4}, domain="", opset=opset, **tolerance, **more)


_PLAIN = [
    *(
        _plain("SimplifiedLayerNormalization", opset, dtype, axis, outputs=outputs)
        for opset, dtype, axis in ((9, "float32", -1), (13, "float32", 1), (17, "float64", -1), (21, "float16", 0))
        for outputs in (1, 2)
    ),
    *(_plain("SimplifiedLayerNormalization", 13, "float32", axis, outputs=1) for axis in (0, 2, -2, -3)),
    *(
        _plain("LayerNormalization", opset, dtype, axis, outputs=outputs)
        for opset, dtype, axis in ((9, "float32", -1), (13, "float64", 1), (16, "float64", -1), (16, "float16", 0))
        for outputs in (1, 3)
    ),
    Case("LayerNormalization", [_data(3, 4, 5), _data(5)], domain="", opset=12),
    *(
        Case(
            "SimplifiedLayerNormalization",
            [_data(3, 5, dtype=one), _data(5, dtype=other)],
            domain="",
            opset=13,
            **_HALF,
        )
        for one, other in (("float16", "float32"), ("float32", "float16"))
    ),
]


@pytest.mark.parametrize("case", _PLAIN, ids=str)
def test_nodes_of_onnxruntime_in_ai_onnx(case: Case) -> None:
    check(case, (24, 13))


def test_nodes_of_ai_onnx_keep_the_opset_of_the_model() -> None:
    check(_plain("LayerNormalization", 11, "float32", -1, outputs=3), (11,))
    check(_plain("SimplifiedLayerNormalization", 11, "float32", -1, outputs=2), (11,))


def _embeds(
    segments: bool = False, mask: bool = False, positions: int = 0, dtype: str = "float32", **more: Any
) -> Case:
    batch, length, size = 2, 4, 8
    tables = [_data(11, size, dtype=dtype), _data(7, size, dtype=dtype), _data(3, size, dtype=dtype)]
    given: list[Array | None] = [
        _integers(11, batch, length),
        _integers(3, batch, length) if segments else None,
        tables[0],
        tables[1],
        tables[2] if segments else None,
        _data(size, dtype=dtype),
        _data(size, dtype=dtype),
        _integers(3, batch, length) if mask else None,
        _integers(7, positions, length) if positions else None,
    ]
    while given[-1] is None:
        given.pop()
    return Case("EmbedLayerNormalization", given, {"epsilon": 1e-5}, constants=frozenset({2, 3, 4, 5, 6}), **more)


_EMBEDS = [
    _embeds(segments, mask, positions, outputs=outputs, free=outputs == 2)
    for segments in (False, True)
    for mask in (False, True)
    for positions in (0, 1, 2)
    for outputs in (2, 3)
]


@pytest.mark.parametrize("case", _EMBEDS, ids=str)
def test_embeddings(case: Case) -> None:
    check(case, (24, 13))


def test_embeddings_of_16_bits() -> None:
    check(_embeds(True, True, 2, "float16", outputs=3, **_HALF))


def _quantized_embeds(segments: bool, mask: bool, dtype: str, **more: Any) -> Case:
    low, high = np.iinfo(dtype).min, np.iinfo(dtype).max + 1
    scales = [np.array(value, np.float32) for value in (0.02, 0.03, 0.05, 0.04, 0.01)]
    points = [_RNG.integers(low, high, ()).astype(dtype) for _ in range(5)]
    vectors = [_RNG.integers(low, high, shape).astype(dtype) for shape in ((11, 8), (7, 8), (3, 8), (8,), (8,))]
    if not segments:
        vectors[2] = scales[2] = points[2] = None  # type: ignore[call-overload]
    ids = [_integers(11, 2, 4), _integers(3, 2, 4) if segments else None]
    given = [*ids, *vectors, _integers(2, 2, 4) if mask else None, *scales, *points]
    return Case("QEmbedLayerNormalization", given, outputs=2, **more)


@pytest.mark.parametrize("dtype", ["uint8", "int8"])
@pytest.mark.parametrize("mask", [False, True])
@pytest.mark.parametrize("segments", [False, True])
def test_quantized_embeddings(segments: bool, mask: bool, dtype: str) -> None:
    check(_quantized_embeds(segments, mask, dtype, free=mask, constants=frozenset(range(2, 7))), (24, 13))


_PARTS = [
    *(
        Case("BranchwiseRMSNorm", [_data(2, 4, 3, 5), *more], {"epsilon": 1e-4}, free=free)
        for more in ([], [_data(15)], [_data(3, 5)], [_data(5)])
        for free in (False, True)
        if not free or not more or more[0].ndim == 2
    ),
    *(
        Case("BranchwiseRMSNorm", [_data(2, 4, 15), *more], {"num_branches": 3}, free=free)
        for more in ([], [_data(15)], [_data(3, 5)], [_data(5)])
        for free in (False, True)
        if not free or not more or more[0].ndim == 2
    ),
    Case("BranchwiseRMSNorm", [_data(2, 3, 5, dtype="float16"), _data(5, dtype="float16")], **_HALF),
    *(
        Case("GatedRMSNorm", [_data(2, 4, size), _data(5), _data(2, 4, size)], {"activation": activation}, free=free)
        for size in (5, 15)
        for activation in ("silu", "swish", "sigmoid")
        for free in (False, True)
    ),
    Case("GatedRMSNorm", [_data(7, 5), _data(5), _data(7, 5)], constants=frozenset({1})),
    Case(
        "GatedRMSNorm",
        [_data(*shape, dtype="float16") for shape in ((2, 3, 10), (5,), (2, 3, 10))],
        **_HALF,
    ),
]


@pytest.mark.parametrize("case", _PARTS, ids=str)
def test_root_mean_squares_of_parts(case: Case) -> None:
    check(case, (24, 13))


@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("lead", [(0, 3), (2, 0)])
def test_no_rows(lead: tuple[int, int], free: bool) -> None:
    gated = Case("GatedRMSNorm", [_data(*lead, 6), _data(3), _data(*lead, 6)], free=free)
    parts = Case("BranchwiseRMSNorm", [_data(*lead, 6), _data(2, 3)], {"num_branches": 2}, free=free)
    for case in (gated, parts):
        check(case, (24, 13, 11))


def test_a_scale_that_may_be_for_one_branch_or_for_all_is_refused() -> None:
    case = Case("BranchwiseRMSNorm", [_data(2, 3, 5), _data(5)], free=True)
    assert "its sizes do not tell" in refusal(case)


@pytest.mark.parametrize("case", [*_SKIPS, *_PLAIN, *_EMBEDS, *_PARTS], ids=str)
def test_types_are_inferred(case: Case) -> None:
    check_types(case)
