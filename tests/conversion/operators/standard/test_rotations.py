"""RotaryEmbedding and MRotaryEmbedding of com.microsoft in operators of ai.onnx."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest
from conversion.operators.standard.one_node import Case, check, check_types, normal, refusal

import splitgraph

_RNG = np.random.default_rng(3)
_data = partial(normal, _RNG)
_BATCH, _LENGTH, _HEADS, _SIZE, _ROWS = 2, 3, 2, 8, 12


def _rotary(rank: int = 3, positions: str = "each", turned: int = 0, dtype: str = "float32", **more: Any) -> Case:
    shape = (_BATCH, _LENGTH, _HEADS * _SIZE) if rank == 3 else (_BATCH, _HEADS, _LENGTH, _SIZE)
    pairs = (turned or _SIZE) // 2
    where = _RNG.integers(0, _ROWS, (_BATCH, _LENGTH)) if positions == "each" else np.array([_ROWS - _LENGTH - 1])
    attributes: dict[str, Any] = more.pop("attributes", {})
    if turned:
        attributes = {"rotary_embedding_dim": turned, "num_heads": _HEADS, **attributes}
    tables = [_data(_ROWS, pairs, dtype=dtype) for _ in range(2)]
    tolerance = {"rtol": 4e-3, "atol": 4e-3} if dtype == "float16" else {}
    more = {"constants": frozenset({2, 3}), **tolerance, **more}
    return Case("RotaryEmbedding", [_data(*shape, dtype=dtype), where, *tables], attributes, **more)


_ROTARY = [
    *(
        _rotary(rank, positions, turned, attributes={"interleaved": interleaved})
        for rank in (3, 4)
        for positions in ("each", "first")
        for turned in (0, 4)
        for interleaved in (0, 1)
    ),
    *(_rotary(rank, attributes={"num_heads": _HEADS}, free=True) for rank in (3, 4)),
    *(_rotary(rank, "first", free=True) for rank in (3, 4)),
    _rotary(free=True),
    *(_rotary(rank, positions, constants=frozenset()) for rank in (3, 4) for positions in ("each", "first")),
    _rotary(attributes={"scale": 2.0}),
    Case("RotaryEmbedding", [_data(0, 3, 16), np.zeros((0, 3), np.int64), _data(5, 4), _data(5, 4)]),
    *(_rotary(rank, turned=turned, dtype="float16") for rank in (3, 4) for turned in (0, 4)),
]


def _multimodal(layout: int = 0, rank: int = 3, turned: int = 0, dtype: str = "float32", **more: Any) -> Case:
    size = 16
    shape = (_BATCH, _LENGTH, _HEADS * size) if rank == 3 else (_BATCH, _HEADS, _LENGTH, size)
    sections = ([2, 1, 1], [2, 1, 1]) if turned else ([4, 2, 2], [3, 3, 2])
    attributes = {"mrope_section": sections[layout], "mrope_layout": layout, "num_heads": _HEADS}
    attributes |= {"rotary_embedding_dim": turned} | more.pop("attributes", {})
    where = _RNG.integers(0, _ROWS, (3, _BATCH, _LENGTH))
    tables = [_data(_ROWS, (turned or size) // 2, dtype=dtype) for _ in range(2)]
    tolerance = {"rtol": 4e-3, "atol": 4e-3} if dtype == "float16" else {}
    return Case("MRotaryEmbedding", [_data(*shape, dtype=dtype), where, *tables], attributes, **tolerance, **more)


_MULTIMODAL = [
    *(
        _multimodal(layout, rank, turned, attributes={"interleaved": interleaved})
        for layout in (0, 1)
        for rank in (3, 4)
        for turned in (0, 8)
        for interleaved in (0, 1)
    ),
    *(_multimodal(layout, rank, free=True, constants=frozenset({2, 3})) for layout in (0, 1) for rank in (3, 4)),
    _multimodal(dtype="float16"),
    *(_multimodal(turned=turned, attributes={"scale": scale}) for turned in (0, 8) for scale in (2.0, 0.0, -0.5)),
]


@pytest.mark.parametrize("case", [*_ROTARY, *_MULTIMODAL], ids=str)
def test_rotations(case: Case) -> None:
    check(case, (24, 13))


@pytest.mark.parametrize("case", [*_ROTARY, *_MULTIMODAL], ids=str)
def test_types_are_inferred(case: Case) -> None:
    check_types(case)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        (_rotary(free=True, constants=frozenset()), "how many elements turn"),
        (_rotary(turned=4, free=True), "the size of a head"),
        (_multimodal(attributes={"mrope_section": [4, 2, 1]}), "is not for 8 pairs"),
    ],
)
def test_sizes_that_nothing_tells_are_refused(case: Case, reason: str) -> None:
    assert reason in refusal(case)


def test_every_opset() -> None:
    check(_rotary(turned=4))
    check(_rotary(4, "first", attributes={"interleaved": 1}))
    check(_multimodal(1))


def test_one_node_says_what_that_of_ai_onnx_says() -> None:
    (node,) = splitgraph.convert(_rotary().model(), standard=True, opset=24).model.graph.node
    assert (node.op_type, node.domain, list(node.input)) == ("RotaryEmbedding", "", ["i0", "i2", "i3", "i1"])
