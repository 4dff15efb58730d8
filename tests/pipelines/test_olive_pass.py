"""The pass for Olive, in workflows that Olive itself runs.

olive-ai needs several gigabytes of other packages, so no extra of splitgraph has it. `tests/campaigns/olive_pass.py`
makes an environment with it and runs these tests there.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from onnx import TensorProto, helper

import splitgraph

olive = pytest.importorskip("olive", reason="olive-ai is not installed; tests/campaigns/olive_pass.py runs these tests")

from splitgraph.pipelines.olive_pass import package_config  # noqa: E402  # after the line that skips

MODELS = Path(__file__).parents[2] / "models"


def run(model: Path, folder: Path, passes: dict[str, dict[str, Any]]) -> list[Any]:
    """The models that a workflow with these passes gives."""
    config = {
        "input_model": {"type": "ONNXModel", "model_path": str(model)},
        "passes": passes,
        "output_dir": str(folder / "out"),
        "cache_dir": str(folder / "cache"),
    }
    found: list[Any] = olive.run(config, package_config=package_config()).get_output_models()
    return found


def converted(model: Path, folder: Path, **parameters: Any) -> list[Any]:
    return run(model, folder, {"convert": {"type": "SplitgraphConversion", **parameters}})


@pytest.fixture
def weighted(tmp_path: Path) -> Path:
    """A model with its weights in a file beside the model."""
    weights = onnx.numpy_helper.from_array(np.arange(4096, dtype=np.float32).reshape(64, 64), "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"]),
        helper.make_node("Split", ["y"], ["a", "b"], axis=1),
    ]
    values = [
        helper.make_tensor_value_info(name, TensorProto.FLOAT, ["N", size])
        for name, size in (("x", 64), ("a", 32), ("b", 32))
    ]
    graph = helper.make_graph(nodes, "g", values[:1], values[1:], [weights])
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    path = tmp_path / "given" / "weighted.onnx"
    path.parent.mkdir()
    onnx.save(made, path, save_as_external_data=True, location="weighted.bin", size_threshold=0)
    return path


UNCLEAR = [
    {},
    {"explicit_lengths": True},
    {"target": "mnn", "to": "split"},
    {"target": "mnn", "explicit_lengths": True},
    {"target": "abacus"},
]


@pytest.mark.parametrize("parameters", UNCLEAR)
def test_a_pass_without_a_clear_purpose_is_dropped_with_a_reason(
    parameters: dict[str, Any], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert converted(MODELS / "split13_equal.onnx", tmp_path, **parameters) == []
    assert "SplitgraphConversion: " in caplog.text


@pytest.mark.parametrize("parameters", [{"to": "slices"}, {"opset": "eighteen"}, {"ir_version": "newest"}])
def test_olive_refuses_a_parameter_of_another_type(parameters: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=next(iter(parameters))):
        converted(MODELS / "split13_equal.onnx", tmp_path, **parameters)


@pytest.mark.parametrize(
    ("name", "opset", "told"),
    [
        ("string_split20.onnx", 18, "ConversionError: the model cannot go from opset 20 to 18"),
        ("split13_equal.onnx", 999, "SplitgraphError: "),
    ],
)
def test_a_blocker_is_in_the_log_and_there_is_no_model(
    name: str, opset: int, told: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert converted(MODELS / name, tmp_path, opset=opset) == []
    assert told in caplog.text
    assert not list(tmp_path.rglob("*.onnx"))


@pytest.mark.parametrize("name", ["gpt2.opset17.onnx", "split_in_if.onnx", "split11_attribute.onnx"])
@pytest.mark.parametrize(
    "parameters", [{"opset": 18}, {"target": "mnn"}, {"to": "slice"}, {"opset": 21, "to": "split"}]
)
def test_a_workflow_gives_what_the_api_makes(name: str, parameters: dict[str, Any], tmp_path: Path) -> None:
    (output,) = converted(MODELS / name, tmp_path, **parameters)
    assert onnx.load(output.model_path) == splitgraph.convert(MODELS / name, **parameters).model


def test_other_passes_of_olive_go_on_with_the_result(tmp_path: Path) -> None:
    passes = {
        "convert": {"type": "SplitgraphConversion", "opset": 18},
        "fuse": {"type": "OnnxPeepholeOptimizer"},
    }
    (output,) = run(MODELS / "gpt2.opset17.onnx", tmp_path, passes)
    assert {item.domain: item.version for item in onnx.load(output.model_path).opset_import}[""] == 18
    assert splitgraph.verify(MODELS / "gpt2.opset17.onnx", output.model_path, samples=1).verdict == "equal"


@pytest.mark.parametrize(("beside", "data_file"), [(False, "weighted.bin"), (True, "weighted.onnx.data")])
def test_weights_in_a_file_stay_in_a_file(beside: bool, data_file: str, weighted: Path, tmp_path: Path) -> None:
    (output,) = converted(weighted, tmp_path, opset=18, save_as_external_data=beside)
    path = Path(output.model_path, "model.onnx")
    (data,) = (file for file in path.parent.iterdir() if file.suffix in {".bin", ".data"})
    assert (data.name, data.stat().st_size) == (data_file, 4096 * 4)
    assert path.parent != weighted.parent
    assert onnx.load(path).graph.initializer == onnx.load(weighted).graph.initializer
    assert splitgraph.verify(weighted, path, samples=1).verdict == "equal"


def test_operators_of_com_microsoft_are_written_in_those_of_onnx(tmp_path: Path) -> None:
    text = '<ir_version: 8, opset_import: ["" : 18, "com.microsoft" : 1]> g (float[N] x) => (float[N] y)'
    given = tmp_path / "gelu.onnx"
    onnx.save(onnx.parser.parse_model(text + " { y = com.microsoft.FastGelu(x) }"), given)
    (output,) = converted(given, tmp_path, standard=True)
    assert {node.domain for node in onnx.load(output.model_path).graph.node} == {""}
    assert splitgraph.verify(given, output.model_path, samples=1).verdict == "equal"


def test_weights_go_to_a_file_on_request(tmp_path: Path) -> None:
    (output,) = converted(MODELS / "gpt2.opset17.onnx", tmp_path, opset=18, save_as_external_data=True)
    path = Path(output.model_path, "model.onnx")
    assert list(path.parent.glob("*.data"))
    assert splitgraph.verify(MODELS / "gpt2.opset17.onnx", path, samples=1).verdict == "equal"


def test_the_workflow_of_the_page_runs(tmp_path: Path) -> None:
    page = (MODELS.parent / "docs" / "pipelines.md").read_text(encoding="utf-8")
    config = json.loads(page.partition("```json\n")[2].partition("```")[0])
    (output,) = run(MODELS / "split13_equal.onnx", tmp_path, config["passes"])
    assert splitgraph.verify(MODELS / "split13_equal.onnx", output.model_path, samples=1).verdict == "equal"


def test_the_command_of_olive_finds_the_pass(tmp_path: Path) -> None:
    text = subprocess.run(
        [sys.executable, "-m", "splitgraph.pipelines.olive_pass"], capture_output=True, text=True, check=True
    ).stdout
    (tmp_path / "olive_config.json").write_text(text, encoding="utf-8")
    config = {
        "input_model": {"type": "ONNXModel", "model_path": str(MODELS / "split13_equal.onnx")},
        "passes": {"convert": {"type": "SplitgraphConversion", "opset": 18}},
        "output_dir": "out",
        "cache_dir": "cache",
    }
    (tmp_path / "run.json").write_text(json.dumps(config), encoding="utf-8")
    arguments = ["run", "--config", "run.json", "--package-config", "olive_config.json"]
    subprocess.run([sys.executable, "-m", "olive", *arguments], cwd=tmp_path, capture_output=True, check=True)
    (made,) = (tmp_path / "out").rglob("*.onnx")
    assert onnx.load(made).opset_import[0].version == 18
