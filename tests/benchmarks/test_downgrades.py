"""The table of the same downgrades: which models are converted, and who judges the results."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any

import onnx
import onnx.version_converter
import pytest

import splitgraph

sys.path.append(str(Path(__file__).parents[2] / "benchmarks"))

import downgrades

README = Path(__file__).parents[2] / "README.md"
NETWORKS = {row["file"].partition(".")[0]: row for row in downgrades.networks()}


def model_of(name: str) -> onnx.ModelProto:
    return onnx.load(downgrades.MODELS / NETWORKS[name]["file"])


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.sample(3)
def test_what_the_readme_says_of_splitgraph_and_of_onnx(name: str) -> None:
    model = model_of(name)
    result = splitgraph.downgrade(model, 13, verify=True)
    assert result.verification is not None and result.verification.verdict == "equal"
    assert downgrades.judged(model, result.model, NETWORKS[name], 13) == downgrades.RIGHT
    with pytest.raises(RuntimeError, match=r"No Adapter From Version \$18 for Split"):
        onnx.version_converter.convert_version(model, 13)


def test_the_readme_counts_these_models() -> None:
    text = README.read_text(encoding="utf-8")
    row = re.search(r"^\| \*\*splitgraph\*\* \| (\S+) \| \*\*(\d+)\*\*", text, re.MULTILINE)
    assert row is not None and row.groups() == (splitgraph.__version__, str(len(NETWORKS)))


def spoiled_weights(model: onnx.ModelProto) -> None:
    for tensor in model.graph.initializer:
        if tensor.data_type == onnx.TensorProto.FLOAT:
            tensor.raw_data = bytes(len(tensor.raw_data))


def spoiled_operator(model: onnx.ModelProto) -> None:
    model.graph.node[0].op_type = "Unknown"


@pytest.mark.parametrize(
    ("spoil", "opset", "said"),
    [
        (lambda model: None, 18, "right"),
        (lambda model: None, 13, "gives a model of opset 18"),
        (spoiled_weights, 18, "gives other results"),
        (spoiled_operator, 18, "gives an invalid model: No Op registered for Unknown"),
    ],
)
def test_wrong_results_are_told_apart(spoil: Any, opset: int, said: str) -> None:
    before, after = model_of("glu"), model_of("glu")
    spoil(after)
    assert downgrades.judged(before, after, NETWORKS["glu"], opset).startswith(said)


def test_a_failed_conversion_gives_its_last_line(tmp_path: Path) -> None:
    source = downgrades.MODELS / NETWORKS["glu"]["file"]
    converter = downgrades.CONVERTERS["onnx's version converter"]
    said = downgrades.converted(converter, source, tmp_path / "out.onnx", 13)
    assert said == "No Adapter From Version $18 for Split"
