"""IRs of every element type, saved by OpenVINO with its default compression, have no finding and are converted."""

from __future__ import annotations

from pathlib import Path

import openvino as ov
import pytest
from openvino import Type, opset13

import splitgraph

TYPES = [
    "boolean",
    "bf16",
    "f16",
    "f32",
    "f64",
    "i4",
    "i8",
    "i16",
    "i32",
    "i64",
    "u1",
    "u4",
    "u8",
    "u16",
    "u32",
    "u64",
    "nf4",
    "f8e4m3",
    "f8e5m2",
    "f4e2m1",
]


@pytest.mark.parametrize("name", TYPES)
def test_what_openvino_saves_is_read_without_a_finding(tmp_path: Path, name: str) -> None:
    data = opset13.parameter([4, 6], Type.f32)
    held = opset13.constant(ov.Tensor(getattr(Type, name), ov.Shape([4, 6])))
    part = opset13.variadic_split(data, opset13.constant(1), opset13.constant([3, -1])).output(0)
    ov.save_model(ov.Model([part, held.output(0)], [data]), tmp_path / "m.xml")
    assert not splitgraph.infer(tmp_path / "m.xml").diagnostics
    assert splitgraph.convert(tmp_path / "m.xml", "split").changes
