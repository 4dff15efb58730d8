"""`convert --to split --explicit-lengths` gives ONNX that OpenVINO's own frontend reads, where it failed before."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import splitgraph
from splitgraph.verification.reference.evaluator import load, run

from .frontend_models import Feeds
from .model_table import models_of

CASES = models_of("frontend")
WORKER = Path(__file__).with_name("frontend_worker.py")
MOST_CRASHES = 3


@pytest.fixture(scope="module")
def told(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Any]]:
    """What OpenVINO says to each model, before and after; the child is started again after a crash."""
    folder = tmp_path_factory.mktemp("frontend")
    for number, case in enumerate(CASES.values()):
        write(folder / f"{number}_before.onnx", case.model, case.feeds)
        write(folder / f"{number}_after.onnx", converted(case.model), case.feeds)
    for _ in range(MOST_CRASHES):
        command = [sys.executable, str(WORKER), str(folder)]
        if subprocess.run(command, capture_output=True, timeout=120, check=False).returncode == 0:
            break
    return {path.stem: json.loads(path.read_text("utf-8")) for path in folder.glob("*.json")}


def write(path: Path, model: onnx.ModelProto, feeds: Sequence[Feeds]) -> None:
    onnx.save(model, path)
    for index, feed in enumerate(feeds):
        np.savez(path.with_suffix(f".{index}.npz"), **feed)


def converted(model: onnx.ModelProto) -> onnx.ModelProto:
    after: onnx.ModelProto = splitgraph.convert(model, "split", explicit_lengths=True).model
    return after


def expected(model: onnx.ModelProto, feeds: Sequence[Feeds]) -> list[list[list[object]]]:
    evaluator = load(model)
    return [[[list(value.shape), value.ravel().tolist()] for value in run(evaluator, feed)] for feed in feeds]


@pytest.mark.parametrize("name", CASES)
def test_openvino_reads_it_afterwards_only(name: str, told: dict[str, dict[str, Any]]) -> None:
    number = list(CASES).index(name)
    right = {"outputs": expected(CASES[name].model, CASES[name].feeds)}
    assert told[f"{number}_before"] != right
    assert told[f"{number}_after"] == right


@pytest.mark.parametrize("name", CASES)
def test_the_result_is_valid_and_stays_as_it_is(name: str) -> None:
    after = converted(CASES[name].model)
    onnx.checker.check_model(after)
    assert not after.functions
    again = splitgraph.convert(after, "split", explicit_lengths=True)
    assert not again.changes
    assert again.model == after


def test_functions_that_are_inlined_are_named() -> None:
    found = splitgraph.convert(CASES["nested local functions"].model, "split", explicit_lengths=True).diagnostics
    assert [(each.code, each.severity) for each in found] == [("SG413", "info")]
    assert "a.domain.Halve, a.domain.Outer" in found[0].message


def test_functions_stay_without_explicit_lengths() -> None:
    before = CASES["a local function"].model
    assert splitgraph.convert(before, "split").model.functions == before.functions


def test_functions_that_onnx_cannot_inline_stay_with_a_warning() -> None:
    model = onnx.ModelProto()
    model.CopyFrom(CASES["a local function"].model)
    model.graph.input[0].type.tensor_type.shape.dim[1].dim_value = 6
    del model.functions[0].node[0].attribute[1]
    model.functions[0].opset_import[0].version = 17
    rewrite = splitgraph.convert(model, "split", explicit_lengths=True)
    assert [(each.code, each.severity) for each in rewrite.diagnostics] == [("SG413", "warning")]
    assert "imports version 17 of ai.onnx, and the model imports version 18" in rewrite.diagnostics[0].message
    assert splitgraph.verify(model, rewrite.model).verdict == "equal"
