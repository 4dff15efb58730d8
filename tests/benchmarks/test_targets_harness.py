"""The forms are what their names say, and the harness answers for a model that crashes or hangs a runtime."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx.reference import ReferenceEvaluator

sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "targets"))

import measure
from environments import RUNTIMES, Runtime
from forms import FORMS, make, write
from worker import compare

NEWEST = next(name for name in RUNTIMES if name.startswith("onnxruntime@"))
INVALID = [name for name in FORMS if name.startswith("x_")]
# Models of opsets and IR versions that an onnx may not know are left out.
VALID = [name for name in FORMS if not name.startswith(("x_", "zz_"))]
SIMPLE = "d_s13_init"

# An adapter that does with some models what a runtime may do.
ADAPTER = """
import os, signal, subprocess, time
import numpy as np

def version():
    return "0"

def run(path, inputs, outputs, stage):
    name = os.path.basename(path)
    if name.startswith("d_s13_init_neg"):
        os.kill(os.getpid(), signal.SIGSEGV)
    if name.startswith("d_s13_init_op17"):
        os.kill(os.getppid(), signal.SIGKILL)
    if name.startswith("d_s13_single"):
        os._exit(3)
    if name.startswith("d_s13_axis0"):
        time.sleep(600)
    if name.startswith("d_s13_wrapped"):
        raise SystemExit("does not read\\n   this")
    if name.startswith("d2_s13_cast_const"):
        raise ValueError("Traceback (most recent call last):\\n  File 'a.py'\\nKeyError: 0\\n of it\\n")
    if name.startswith("d2_s13_identity_const"):
        raise ValueError(f"{path}: {os.__file__!r}, /src/onnx.cpp:7")
    if name.startswith("t_gather"):
        left = subprocess.Popen(["sleep", "600"])
        with open("left.txt", "w") as file:
            file.write(str(left.pid))
    x = inputs["x"]
    parts = [x[:, :2], x[:, 2:]]
    if name.startswith("e_s13_equal"):
        return parts
    if name.startswith("q_s13_i64"):
        return [part.astype(np.int32) for part in parts]
    if name.startswith("d_s13_unused_out"):
        return parts[:1]
    if name.startswith("h_s18_const"):
        return [part.ravel() for part in parts]
    return [-part for part in parts] if name.startswith("o_slice13") else parts
"""

ANSWERS = {
    "d_s13_init_neg": ("dies", "signal 11"),
    "d_s13_single": ("dies", "exit code 3"),
    "d_s13_axis0": ("hangs", "no answer after 2 s"),
    "d_s13_wrapped": ("refuses", "SystemExit: does not read this"),
    "d2_s13_cast_const": ("refuses", "KeyError: 0 of it"),
    "d2_s13_identity_const": ("refuses", "ValueError: d2_s13_identity_const.onnx: 'os.py', /src/onnx.cpp:7"),
    "e_s13_equal": ("wrong", "y0 has the shape (2, 2, 8) and not (2, 3, 8)"),
    "q_s13_i64": ("reads", "y0 is int32 and not int64; y1 is int32 and not int64"),
    "d_s13_unused_out": ("wrong", "1 outputs and not 2"),
    "o_slice13": ("wrong", "y0 has other values"),
    "h_s18_const": ("rank", "y0 has the shape (32,) and not (2, 2, 8); y1 has the shape (64,) and not (2, 4, 8)"),
    SIMPLE: ("reads", ""),
}


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runtimes run in the Python of this process, instead of an environment of their own."""
    monkeypatch.setattr(measure, "environment", lambda runtime, cache: (Path(sys.executable), {}))


@pytest.mark.parametrize("name", INVALID)
def test_a_form_that_is_not_valid_is_refused_by_onnx(name: str) -> None:
    with pytest.raises((onnx.checker.ValidationError, onnx.shape_inference.InferenceError)):
        onnx.checker.check_model(make(name).model, full_check=True)


@pytest.mark.parametrize("name", VALID)
def test_a_form_is_valid_and_the_reference_gives_what_is_expected(name: str) -> None:
    form = make(name)
    onnx.checker.check_model(form.model, full_check=True)
    found = ReferenceEvaluator(form.model).run(None, form.inputs)
    assert compare(found, form.expected, 1e-4) == ("reads", "")


def test_a_form_is_the_same_each_time() -> None:
    first, second = make(SIMPLE), make(SIMPLE)
    assert first.model.SerializeToString(deterministic=True) == second.model.SerializeToString(deterministic=True)
    assert np.array_equal(first.inputs["x"], second.inputs["x"])
    assert not np.array_equal(first.inputs["x"], make("d_s13_init_123").inputs["x"])


@pytest.mark.usefixtures("here")
def test_the_installed_onnxruntime_is_measured(tmp_path: Path) -> None:
    names = [SIMPLE, "a_s2_attr", "g_s18_num_uneven", "q_s13_str", "x_s13_sum_short"]
    write(tmp_path, names)
    answers = {name: found.answer for name, found in measure.measure(NEWEST, tmp_path, tmp_path).items()}
    assert answers == {**dict.fromkeys(names, "reads"), "x_s13_sum_short": "refuses"}


@pytest.fixture
def badly(here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The name of a runtime that crashes, hangs and computes wrong values."""
    (tmp_path / "badly.py").write_text(ADAPTER)
    monkeypatch.setattr(measure, "ADAPTERS", tmp_path)
    monkeypatch.setattr(measure, "RUNTIMES", {"badly@0": Runtime("badly", "badly-0", ())})
    return "badly@0"


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_crash_and_a_hang_are_answers(jobs: int, badly: str, tmp_path: Path) -> None:
    write(tmp_path, list(ANSWERS))
    answers = measure.measure(badly, tmp_path, tmp_path, models=list(ANSWERS), seconds=2, jobs=jobs)
    assert list(answers.items()) == list(ANSWERS.items())


def test_what_a_runtime_started_and_left_is_ended(badly: str, tmp_path: Path) -> None:
    write(tmp_path, ["t_gather"])
    assert measure.measure(badly, tmp_path, tmp_path)["t_gather"].answer == "reads"
    assert has_ended(int((tmp_path / "left.txt").read_text()))


def has_ended(process: int) -> bool:
    """Whether there is no such process, or only its exit code, within a few seconds."""
    for _ in range(100):
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True).stdout
        if state.strip()[:1] in ("", "Z"):
            return True
        time.sleep(0.05)
    return False


def test_modules_of_the_harness_hide_none_of_a_runtime(
    here: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "own.py").write_text("import cases\n")
    monkeypatch.setattr(measure, "ADAPTERS", tmp_path)
    monkeypatch.setattr(measure, "RUNTIMES", {"own@0": Runtime("own", "own-0", ())})
    write(tmp_path, [SIMPLE])
    with pytest.raises(RuntimeError, match="own@0 did not start"):
        measure.measure("own@0", tmp_path, tmp_path)


def test_a_model_that_ends_the_worker_stops_the_measurement(badly: str, tmp_path: Path) -> None:
    write(tmp_path, [SIMPLE, "d_s13_init_op17", "t_gather"])
    with pytest.raises(RuntimeError, match="badly@0 answered for 1 of 3 models, and ended at d_s13_init_op17"):
        measure.measure(badly, tmp_path, tmp_path, seconds=2)
