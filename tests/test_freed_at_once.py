"""What a verb needed is freed when it returns: nothing of ours waits for Python's collector of reference cycles, which
a pipeline may have turned off, with a model's weights in its hands.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import freed_worker
import pytest

ROOT = Path(__file__).parents[1]
MODELS = ROOT / "models"
# What these have: functions with calls, branches, loops, sequences, dimensions that an author named, symbols that must
# divide, IR.
NAMES = (
    "branched_gate.opset13.onnx",
    "gpt2.opset17.onnx",
    "gpt2.opset18.dynamo.onnx",
    "lstm_loop.opset17.onnx",
    "segment_means.opset13.onnx",
    "split13_computed.onnx",
    "split_in_function.onnx",
    "split_in_loop.onnx",
    "split_in_scan.onnx",
    "split_to_sequence11_each.onnx",
    "string_split20.onnx",
    "interval_split.xml",
)

Found = dict[str, dict[str, list[str]]]


@pytest.fixture(scope="module")
def found() -> Found:
    """What waits, by model and verb."""
    command = [sys.executable, freed_worker.__file__, *(str(MODELS / name) for name in NAMES)]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    read: Found = json.loads(done.stdout)
    return read


@pytest.mark.parametrize("verb", freed_worker.VERBS)
def test_nothing_waits_for_the_collector(found: Found, verb: str) -> None:
    assert {name: found[name][verb] for name in NAMES} == {name: [] for name in NAMES}


def test_a_cycle_would_be_seen(found: Found) -> None:
    assert found["split13_computed.onnx"]["a cycle"] == ["ModelProto"]
