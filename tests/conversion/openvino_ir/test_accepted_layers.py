"""An IR with an invalid layer beside its splits, which is accepted by name."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import splitgraph

MODELS = Path(__file__).parents[3] / "models"
# An Add of dimensions that do not broadcast.
LAYERS = """
<layer id="90" name="p" type="Parameter" version="opset1"><data shape="3" element_type="f32"/>
  <output><port id="0" precision="FP32"><dim>3</dim></port></output></layer>
<layer id="91" name="q" type="Parameter" version="opset1"><data shape="4" element_type="f32"/>
  <output><port id="0" precision="FP32"><dim>4</dim></port></output></layer>
<layer id="92" name="bad" type="Add" version="opset1"><data auto_broadcast="numpy"/>
  <input><port id="0" precision="FP32"><dim>3</dim></port><port id="1" precision="FP32"><dim>4</dim></port></input>
  <output><port id="2" precision="FP32"><dim>3</dim></port></output></layer>
<layer id="93" name="r" type="Result" version="opset1">
  <input><port id="0" precision="FP32"><dim>3</dim></port></input></layer>
</layers>"""
EDGES = """
<edge from-layer="90" from-port="0" to-layer="92" to-port="0"/>
<edge from-layer="91" from-port="0" to-layer="92" to-port="1"/>
<edge from-layer="92" from-port="2" to-layer="93" to-port="0"/>
</edges>"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    text = (MODELS / "interval_split.xml").read_text(encoding="utf-8")
    written = tmp_path / "bad.xml"
    written.write_text(text.replace("</layers>", LAYERS).replace("</edges>", EDGES), encoding="utf-8")
    shutil.copy(MODELS / "interval_split.bin", tmp_path / "bad.bin")
    return written


@pytest.mark.parametrize("accept", [[], ["SG212"], ["SG302@main/heads"]])
def test_an_invalid_layer_blocks(path: Path, accept: list[str]) -> None:
    assert not splitgraph.infer(path, accept=accept).ok
    with pytest.raises(splitgraph.ConversionError, match="do not broadcast"):
        splitgraph.convert(path, "variadic-split", accept=accept)


def test_an_accepted_layer_stays(path: Path) -> None:
    analysis = splitgraph.infer(path, accept=["SG302@main/bad"])
    assert (analysis.ok, [found.location for found in analysis.accepted]) == (True, ["main/bad"])
    rewrite = splitgraph.convert(path, "variadic-split", accept=["SG302@main/bad", "SG212"])
    assert [change.location for change in rewrite.changes] == ["main/halves"]
    assert [found.location for found in rewrite.accepted] == ["main/bad"]
    assert [found.code for found in rewrite.diagnostics] == ["SG606"]
