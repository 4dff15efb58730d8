"""A VariadicSplit of an IR without lengths and outputs: nothing is what a dimension of 0 has."""

from __future__ import annotations

from pathlib import Path

import pytest

import splitgraph

LAYER = '<layer id="{}" name="{}" type="{}" version="opset1">{}</layer>'
EDGE = '<edge from-layer="{}" from-port="0" to-layer="3" to-port="{}"/>'


def port(index: int, kind: str, dims: list[int]) -> str:
    held = "".join(f"<dim>{dim}</dim>" for dim in dims)
    return f'<port id="{index}" precision="{kind}">{held}</port>'


def given(index: int, name: str, op_type: str, kind: str, dims: list[int], data: str) -> str:
    return LAYER.format(index, name, op_type, f"{data}<output>{port(0, kind, dims)}</output>")


def write(folder: Path, dims: list[int]) -> Path:
    shape = ",".join(map(str, dims))
    layers = [
        given(0, "x", "Parameter", "FP32", dims, f'<data shape="{shape}" element_type="f32"/>'),
        given(1, "a", "Const", "I64", [], '<data element_type="i64" shape="" offset="0" size="8"/>'),
        given(2, "l", "Const", "I64", [0], '<data element_type="i64" shape="0" offset="8" size="0"/>'),
        LAYER.format(
            3,
            "v",
            "VariadicSplit",
            f"<input>{port(0, 'FP32', dims)}{port(1, 'I64', [])}{port(2, 'I64', [0])}</input>",
        ),
    ]
    edges = "".join(EDGE.format(index, index) for index in range(3))
    path = folder / "m.xml"
    text = f'<net name="m" version="11"><layers>{"".join(layers)}</layers><edges>{edges}</edges></net>'
    path.write_text(f'<?xml version="1.0"?>{text}')
    path.with_suffix(".bin").write_bytes(bytes(8))
    return path


@pytest.mark.parametrize(
    ("dims", "codes"), [([6], ["SG204"]), ([1], ["SG204"]), ([6, 2], ["SG204"]), ([0], []), ([0, 4], []), ([-1], [])]
)
def test_no_lengths(tmp_path: Path, dims: list[int], codes: list[str]) -> None:
    assert [found.code for found in splitgraph.infer(str(write(tmp_path, dims))).diagnostics] == codes
