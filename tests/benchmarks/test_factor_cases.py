"""Cases of one factor (benchmarks/targets/factor_cases.py), and the table that is made of answers to them."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import onnx
import pytest
from onnx import ModelProto

sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "targets"))

import factor_cases
from chains import chains, fully_measured
from factor_recipes import Recipe
from factor_table import Version, answers_of, shared

from splitgraph.runtimes.check import examine

# Operators with hard cases: sizes as data, lists, states, graphs.
OPERATORS = ("Softmax", "Shape", "Gather", "Unsqueeze", "LSTM", "If", "Resize", "LayerNormalization")
# Operators of ai.onnx.ml: linear models, labels taken from a list, trees, two outputs.
OPERATORS += tuple(f"ai.onnx.ml.{name}" for name in ("Scaler", "LinearClassifier", "TreeEnsembleRegressor"))


@pytest.mark.parametrize(
    ("operator", "expected"),
    [
        # From opset 13 on, Softmax flattens nothing, and the default of its axis is another one.
        ("Softmax", [[1, 11], [13]]),
        # Axes became an input.
        ("Squeeze", [[1, 11], [13, 21, 23, 24, 25]]),
        # An attribute that may be left out.
        ("LSTM", [[7, 14, 22]]),
        ("RoiAlign", [[10], [16, 22]]),
    ],
)
def test_versions_of_one_meaning(operator: str, expected: list[list[int]]) -> None:
    assert chains(operator) == expected


@pytest.mark.parametrize(
    ("operator", "expected"), [("Softmax", [11, 13]), ("Squeeze", [11, 13]), ("LSTM", [14]), ("Swish", [24])]
)
def test_versions_with_all_factors(operator: str, expected: list[int]) -> None:
    assert fully_measured(operator) == expected


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.sample(3)
def test_a_case_and_its_base_differ_in_what_is_read(operator: str, tmp_path: Path) -> None:
    counts = factor_cases.write(tmp_path, [operator])
    assert counts
    by_family: dict[tuple[str, str], dict[str, Any]] = {}
    for path in sorted(tmp_path.glob("*.onnx")):
        model = onnx.load(path)
        label, _, change, family = path.stem.rsplit(".", 3)
        by_family.setdefault((label, family), {})[change] = factor_cases.factors_of(model)
        assert_subject_stands_in_the_middle(model)
        assert_control(onnx.load(tmp_path / "controls" / path.name), model)
    for cases in by_family.values():
        assert "base" in cases
        assert len(set(cases.values())) == len(cases)


def assert_subject_stands_in_the_middle(model: ModelProto) -> None:
    (subject,) = (node for node in model.graph.node if node.name == factor_cases.SUBJECT)
    outputs = {value.name for value in model.graph.output}
    assert not outputs & set(subject.output)
    assert all(value.type.tensor_type.HasField("shape") for value in model.graph.output)


def assert_control(control: ModelProto, model: ModelProto) -> None:
    """The graph without its node, with the same results."""
    names = [node.name for node in control.graph.node]
    assert factor_cases.SUBJECT not in names
    assert {value.name for value in model.graph.output} <= {value.name for value in control.graph.output}
    assert not list(examine(control).errors)


def test_a_result_that_the_model_returns_is_given_to_the_control(tmp_path: Path) -> None:
    """A control that returned its own input would tell of the runtime's inputs, and not of the node."""
    factor_cases.write(tmp_path, ["ConvTranspose"])
    (path,) = tmp_path.glob("ConvTranspose-11.*returned*.onnx")
    control = onnx.load(tmp_path / "controls" / path.name)
    assert_control(control, onnx.load(path))
    assert not {value.name for value in control.graph.output} & {value.name for value in control.graph.input}


def test_a_change_without_a_difference_and_one_that_is_invalid_are_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    relu = next(recipe for recipe in factor_cases.RECIPES if recipe.operator == "Relu")
    changed = Recipe("Relu", relu.build, [{"shape": (3, 2, 8)}, {"shape": (2, 0, 8), "T": "string"}, {"shape": (4, 6)}])
    monkeypatch.setattr(factor_cases, "RECIPES", [changed])
    counts = factor_cases.write(tmp_path, ["Relu"])
    said = capsys.readouterr().out
    assert "Relu-14  shape=3x2x8: no factor differs" in said
    assert "Relu-14  shape=2x0x8_T=string: invalid" in said
    # The base, one change, and data that is a constant, or computed from constants.
    assert counts["Relu-14"] == 4


A, B, C = {"T": "float32", "axis": "last"}, {"T": "float32", "axis": "first"}, {"T": "int64", "axis": "last"}


def table(generated: dict[str, str], older: dict[str, str]) -> str:
    """The letters of a version with a base, a change and an older case. The words begin with the answer."""
    version = Version(
        [A, B, C],
        [0, 0, -1],
        {"Op-1.000.base.plain": 0, "Op-1.001.axis.plain": 1},
        {"Op-1.001.a.inputs": 1, "Op-1.002.b.inputs": 2, "Op-1.003.c.inputs": 2},
    )
    pairs = [{name: (answer, "") for name, answer in each.items()} for each in (generated, older)]
    letters, _ = answers_of({"Op-1": version}, *pairs)
    return letters.get("Op-1", "")


@pytest.mark.parametrize(
    ("generated", "older", "expected"),
    [
        ({}, {}, ""),
        ({"Op-1.000.base.plain": "control"}, {}, ""),
        ({"Op-1.000.base.plain": "reads"}, {}, ".??"),
        ({"Op-1.000.base.plain": "reads", "Op-1.001.axis.plain": "wrong"}, {"Op-1.001.a.inputs": "reads"}, ".W?"),
        ({"Op-1.000.base.plain": "reads", "Op-1.001.axis.plain": "control"}, {"Op-1.001.a.inputs": "reads"}, ".??"),
        ({}, {"Op-1.001.a.inputs": "reads", "Op-1.002.b.inputs": "reads"}, "?.."),
        # Models with the same factors and other answers.
        ({}, {"Op-1.002.b.inputs": "reads", "Op-1.003.c.inputs": "refuses"}, "??m"),
        ({}, {"Op-1.002.b.inputs": "dies", "Op-1.003.c.inputs": "refuses"}, "??X"),
    ],
)
def test_letters(generated: dict[str, str], older: dict[str, str], expected: str) -> None:
    assert table(generated, older) == expected


def test_what_all_runtimes_share() -> None:
    versions = {"Op-1": Version([A, B, C], [0, 0, -1]), "Op-2": Version([A, B, C], [0, 0, -1])}
    assert shared(versions) == {
        "Op-1": {"first": A, "cases": [[{"axis": "first"}, 0], [{"T": "int64"}]], "base": 1},
        "Op-2": {"cases": "Op-1"},
    }
