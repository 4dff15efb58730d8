"""Nodes whose sizes contradict each other, of all operators with a valid model: what every engine refuses is an error.

Each case is a valid model with one dimension of one input one larger. The models are onnx's node tests, and the cases
of onnxruntime's own and of classical operators.
"""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from node_tests import node_tests
from onnx import numpy_helper

import splitgraph

from .onnx.test_machine_learning import CASES as CLASSICAL
from .onnx.test_machine_learning import SIZES as CLASSICAL_SIZES
from .onnx.test_machine_learning import feed
from .onnx.test_machine_learning import model_of as classical_model
from .onnxruntime.test_onnxruntime_rules import CASES as MICROSOFT
from .onnxruntime.test_onnxruntime_rules import model_of as microsoft_model
from .onnxruntime.test_onnxruntime_rules import value_of

CHOSEN = Path(__file__).with_name("refused_sizes.json")

FUSED = "the width of the first weights depends on how activations are fused"
ROWS = "onnx's own tests take an input of one dimension for rows, and onnxruntime for columns"
# What no engine here runs, and infer does not call wrong, by operator, input and axis.
NOT_REPORTED = {
    ("MoE", 2, 1): FUSED,
    ("MoE", 3, 2): FUSED,
    ("Compress", 1, 0): "onnxruntime passes over what lies beyond the end; it only lacks this element type",
    ("LinearClassifier", 0, 0): ROWS,
    ("LinearRegressor", 0, 0): ROWS,
    ("SVMClassifier", 0, 0): ROWS,
    ("SVMRegressor", 0, 0): ROWS,
    ("QLinearMatMul", 1, 0): "the specification allows a scale for each row; no engine has it",
    ("QLinearMatMul", 2, 0): "the specification allows a zero point for each row; no engine has it",
    ("QLinearMatMul", 6, 0): "the specification allows a scale for each row; no engine has it",
    ("QLinearMatMul", 7, 0): "the specification allows a zero point for each row; no engine has it",
}


@dataclass(frozen=True)
class Mutant:
    """A model with one dimension one larger, and the data of its inputs. position, axis: where; -1 for the original."""

    name: str
    model: onnx.ModelProto
    data: dict[str, Any]
    position: int
    axis: int

    @property
    def node(self) -> onnx.NodeProto:
        """The only node."""
        return self.model.graph.node[0]


def seeds() -> Iterator[tuple[str, onnx.ModelProto, list[Any]]]:
    """Valid models of one node with the data of their inputs."""
    for case in node_tests():
        more = case.model.graph.node[1:]
        data = [
            numpy_helper.to_array(each) if isinstance(each, onnx.TensorProto) else each
            for each in (case.data_sets[0][0] if case.data_sets else ())
        ]
        is_plain = all(isinstance(each, (np.ndarray, np.generic)) for each in data)
        if more or not data or not is_plain or len(data) != len(case.model.graph.input):
            continue
        yield case.name, case.model, [np.asarray(each) for each in data]
    for number, (operator, version, given, attributes, expected) in enumerate(CLASSICAL):
        model = classical_model(operator, version, given, attributes, len(expected))
        yield f"{operator} {number}", model, [feed(each, CLASSICAL_SIZES[0]) for each in given]
    for name, operator, inputs, attributes, expected in MICROSOFT:
        model = microsoft_model(operator, inputs, attributes, len(expected))
        fed = {value.name for value in model.graph.input}
        yield name, model, [value_of(each) for index, each in enumerate(inputs) if each and f"i{index}" in fed]


def enlarged(name: str, model: onnx.ModelProto, data: list[Any]) -> Iterator[Mutant]:
    """The model itself, and with each dimension of each input one larger."""
    yield mutant(name, model, data, -1, -1)
    for position, array in enumerate(data):
        for axis, size in enumerate(array.shape):
            if size > 0 and array.size < 20_000:
                larger = np.concatenate([array, np.take(array, [-1], axis=axis)], axis=axis)
                yield mutant(name, model, [*data[:position], larger, *data[position + 1 :]], position, axis)


def mutant(name: str, model: onnx.ModelProto, data: list[Any], position: int, axis: int) -> Mutant:
    """The model with inputs of the data's shapes, and outputs of any shape. Lists of sizes, axes and positions are
    constants.
    """
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    changed.ir_version = min(max(changed.ir_version, 8), 13)
    graph = changed.graph
    for value, array in zip([*graph.input][1:], data[1:], strict=True):
        if array.dtype == np.int64 and array.ndim == 1:
            graph.initializer.append(numpy_helper.from_array(array, value.name))
            graph.input.remove(value)
    data = [data[0], *(array for array in data[1:] if not (array.dtype == np.int64 and array.ndim == 1))]
    for value, array in zip(graph.input, data, strict=True):
        declared = value.type.tensor_type
        declared.ClearField("shape")
        declared.shape.SetInParent()
        for size in array.shape:
            declared.shape.dim.add().dim_value = size
    for value in changed.graph.output:
        if value.type.HasField("tensor_type"):
            value.type.tensor_type.ClearField("shape")
    feeds = {value.name: array for value, array in zip(changed.graph.input, data, strict=True)}
    return Mutant(name, changed, feeds, position, axis)


def answers(folder: Path, cases: list[Mutant]) -> list[list[bool]]:
    """Whether onnxruntime and the evaluator run each case. A process that ends is a refusal of the case it was at."""
    models, told = folder / "models", folder / "answers"
    models.write_bytes(pickle.dumps([(case.model.SerializeToString(), case.data) for case in cases]))
    told.touch()
    worker = [sys.executable, str(Path(__file__).parents[1] / "sizes_worker.py"), str(models), str(told)]
    while subprocess.run(worker, check=False, capture_output=True).returncode:
        whole = told.read_text()
        assert whole.endswith("["), "the process ended before it ran a model"
        told.write_text(f"{whole}false, false]\n")
    return [json.loads(line) for line in told.read_text().splitlines()]


def refused(folder: Path) -> Iterator[Mutant]:
    """All cases that every engine refuses which runs the valid model."""
    cases = [each for seed in seeds() for each in enlarged(*seed)]
    told = answers(folder, cases)
    assert len(told) == len(cases)
    valid: list[bool] = []
    for case, runs in zip(cases, told, strict=True):
        if case.position < 0:
            valid = runs
        elif any(valid) and not any(ran for ran, could in zip(runs, valid, strict=True) if could):
            yield case


def is_reported(case: Mutant) -> bool:
    """Whether inference calls the model wrong, or the list above says why not."""
    return not splitgraph.infer(case.model).ok or (case.node.op_type, case.position, case.axis) in NOT_REPORTED


def test_what_every_engine_refused_is_a_finding() -> None:
    """One case for each operator and input, as the slow test chose them."""
    chosen = json.loads(CHOSEN.read_text())
    cases = [
        each
        for name, model, data in seeds()
        if name in chosen
        for each in enlarged(name, model, data)
        if [each.position, each.axis] in chosen[name]
    ]
    assert len(cases) > 250
    assert [(case.name, case.position, case.axis) for case in cases if not is_reported(case)] == []


@pytest.mark.slow
def test_what_every_engine_refuses_is_a_finding(tmp_path: Path) -> None:
    """All cases. With SPLITGRAPH_CHOOSE=1 in the environment, those of the fast test are chosen anew."""
    found = list(refused(tmp_path))
    assert len(found) > 3000
    first = {(case.node.domain, case.node.op_type, case.position): case for case in reversed(found)}
    chosen: dict[str, list[list[int]]] = {}
    for case in first.values():
        chosen.setdefault(case.name, []).append([case.position, case.axis])
    if os.environ.get("SPLITGRAPH_CHOOSE"):
        rows = (f"  {json.dumps(name)}: {json.dumps(sorted(places))}" for name, places in sorted(chosen.items()))
        CHOSEN.write_text("{\n" + ",\n".join(rows) + "\n}\n")
    places = {(case.name, case.position, case.axis) for case in found}
    assert {(name, *place) for name, rows in json.loads(CHOSEN.read_text()).items() for place in rows} <= places, (
        "an engine runs it now: choose anew"
    )
    assert {(case.node.op_type, case.position, case.axis): case.name for case in found if not is_reported(case)} == {}
