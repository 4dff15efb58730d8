"""Engines in child processes: crashes, time-outs and refusals are told apart, and nothing is left behind."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from processes.watching import comes_true, has_ended

from splitgraph.processes import worker_process
from splitgraph.verification import engine_settings
from splitgraph.verification.engines import engine_process
from splitgraph.verification.engines.engine_process import Attempt, EngineRun, workplace
from splitgraph.verification.models import model_files
from splitgraph.verification.models.model_files import save_model

from ..small_models import constant, endless_model, model_of, node, split_model, value

FOUR = np.arange(8, dtype=np.float32).reshape(2, 4)


def run(
    engine: str, before: onnx.ModelProto, after: onnx.ModelProto | None = None, seconds: float = 60, **feeds: Any
) -> EngineRun:
    with workplace([before, before if after is None else after]) as place:
        return place.run(engine, [Attempt(0, 0, feeds or {"x": FOUR})], seconds)


def fake_interpreter(folder: Path, script: str) -> str:
    """A program that is started in place of Python: a shell script in the folder of the run."""
    path = folder / "interpreter"
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


CRASHES = [
    ("kill -SEGV $$", "crashed (SIGSEGV)"),
    ("echo one >&2; echo 'terminate called: two' >&2; kill -ABRT $$", "crashed (SIGABRT): terminate called: two"),
    ("exit 3", "ended with exit status 3"),
    ("echo 'Traceback (most recent call last):' >&2; echo 'MemoryError' >&2; exit 1", "exit status 1: MemoryError"),
    ("echo '  what():  std::bad_alloc' >&2; kill -ABRT $$", "GiB: crashed (SIGABRT)"),
]


@pytest.mark.parametrize(("script", "reason"), CRASHES)
def test_a_crash_before_anything_is_a_failure_of_loading(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, reason: str
) -> None:
    monkeypatch.setattr(worker_process.sys, "executable", fake_interpreter(tmp_path, script))
    (failure,) = run("reference", split_model(13)).failures
    assert (failure.stage, failure.model, failure.case, failure.unsupported) == ("load", 0, None, True)
    assert reason in failure.reason


def test_the_last_event_tells_what_a_crash_interrupted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    events = [
        '{"event": "start", "stage": "load", "model": 0}',
        '{"event": "start", "stage": "run", "model": 1, "case": 4, "attempt": 0}',
        '{"event": "en',
    ]
    script = f"printf '%s' '{chr(10).join(events)}' > events.jsonl; kill -SEGV $$"
    monkeypatch.setattr(worker_process.sys, "executable", fake_interpreter(tmp_path, script))
    (failure,) = run("reference", split_model(13)).failures
    assert (failure.stage, failure.model, failure.case, failure.unsupported) == ("run", 1, 4, True)


def test_an_engine_that_aborts() -> None:
    """num_outputs=2 with 4 outputs aborts onnxruntime 1.31; a version that refuses it instead is fine too."""
    (failure,) = run("onnxruntime", split_model(18, outputs="abcd", dims=(4, 4), num_outputs=2)).failures
    assert (failure.stage, failure.model, failure.unsupported) == ("load", 0, True)


def test_a_model_that_does_not_end() -> None:
    (failure,) = run(
        "reference", split_model(13, axis=1, outputs="y", dims=("N", 4)), endless_model(), seconds=5
    ).failures
    assert (failure.stage, failure.model, failure.case, failure.unsupported) == ("run", 1, 0, True)
    assert failure.reason == "did not finish within 5 seconds"


INSTALLED = ["reference", *(name for name in ("onnxruntime", "openvino") if importlib.util.find_spec(name))]


@pytest.mark.parametrize("engine", INSTALLED)
def test_a_model_that_takes_too_much_memory_is_told_so_and_proves_nothing(engine: str) -> None:
    """32 GiB of zeros, which no engine may refuse as a fault of the model: the second one may take what the first did
    not.
    """
    nodes = [node("ConstantOfShape", ["many"], ["zeros"]), node("ReduceSum", ["zeros"], ["sum"], keepdims=0)]
    large = model_of([*nodes, node("Add", ["x", "sum"], ["y"])], [value("x")], ["y"], [constant("many", [1 << 33])])
    small = model_of([node("Identity", ["x"], ["y"])], [value("x")], ["y"])
    (failure,) = run(engine, small, large).failures
    assert (failure.model, failure.unsupported) == (1, True)
    assert "needs more memory than the limit of" in failure.reason
    assert "onnxruntime_src" not in failure.reason


def test_the_memory_of_a_run_grows_with_the_models_and_stays_below_the_machines() -> None:
    machine = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    assert 0 < engine_settings.memory_limit(0) <= engine_settings.MEMORY_LIMIT
    assert (
        engine_process.memory_limit(0)
        <= engine_process.memory_limit(1 << 30)
        <= engine_process.memory_limit(1 << 60)
        < machine
    )


def test_a_child_that_starts_others_is_ended_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script = f"sleep 600 & echo $! > {tmp_path}/pid; wait"
    monkeypatch.setattr(worker_process.sys, "executable", fake_interpreter(tmp_path, script))
    run("reference", split_model(13), seconds=1)
    started = int((tmp_path / "pid").read_text())
    assert comes_true(lambda: has_ended(started))


def test_nothing_is_left_behind_and_nothing_is_printed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    run("reference", split_model(13, lengths=[9]))
    with pytest.raises(RuntimeError), workplace([split_model(13)] * 2):
        raise RuntimeError
    assert list(tmp_path.iterdir()) == []
    assert capfd.readouterr() == ("", "")


def test_modules_in_the_users_folder_are_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "onnx.py").write_text("raise SystemExit(7)")
    monkeypatch.chdir(tmp_path)
    assert run("reference", split_model(13, axis=1)).failures == []


@pytest.mark.parametrize("engine", ["reference", "onnxruntime"])
def test_the_first_models_refusal_is_no_obstacle_and_keeps_the_second_from_running(engine: str) -> None:
    result = run(engine, split_model(13, dims=("N", "M"), axis=1), x=FOUR[:, :3])
    (failure,) = result.failures
    assert (failure.stage, failure.model, failure.case, failure.unsupported) == ("run", 0, 0, False)
    assert result.outputs == ({}, {})


@pytest.mark.parametrize("engine", ["reference", "onnxruntime"])
def test_the_second_models_refusal(engine: str) -> None:
    before, after = (
        split_model(opset, dims=("N", "M"), axis=1, **attributes)
        for opset, attributes in ((18, {"num_outputs": 2}), (13, {}))
    )
    result = run(engine, before, after, x=FOUR[:, :3])
    (failure,) = result.failures
    assert (failure.model, failure.unsupported) == (1, False)
    assert [part.shape for part in result.outputs[0][0, 0]] == [(2, 2), (2, 1)]


def test_what_an_engine_lacks_is_an_obstacle() -> None:
    (failure,) = run("onnxruntime", split_model(13, dtype=TensorProto.COMPLEX64), x=FOUR.astype(np.complex64)).failures
    assert failure.unsupported
    assert "\n" not in failure.reason


def test_further_attempts_at_an_accepted_case_are_left_out() -> None:
    attempts = [Attempt(0, 0, {"x": FOUR[:, :3]}), Attempt(0, 1, {"x": FOUR}), Attempt(0, 2, {"x": FOUR})]
    attempts += [Attempt(1, 0, {"x": FOUR})]
    model = split_model(13, dims=("N", "M"), axis=1)
    with workplace([model, model]) as place:
        result = place.run("reference", attempts, 60)
    assert result.outputs[0].keys() == result.outputs[1].keys() == {(0, 1), (1, 0)}
    assert len(result.failures) == 1


@pytest.mark.parametrize("outputs", [["a", ""], ["", "a"], ["", "a", ""]])
def test_onnxruntime_never_sees_an_omitted_output_of_a_split(outputs: list[str]) -> None:
    model = split_model(13, outputs=outputs, dims=("N", 6), axis=1)
    result = run("onnxruntime", model, x=np.arange(6, dtype=np.float32).reshape(1, 6))
    assert result.failures == []
    width = 6 // len(outputs)
    start = outputs.index("a") * width
    assert result.outputs[0][0, 0][0].tolist() == [list(range(start, start + width))]


@pytest.mark.parametrize("opset", [21, onnx.defs.onnx_opset_version()])
def test_onnxruntime_takes_newer_opsets_whose_operators_it_knows(opset: int) -> None:
    model = split_model(opset, axis=1, num_outputs=2)
    model.ir_version = onnx.IR_VERSION
    assert run("onnxruntime", model).failures == []


NARROW = {"bfloat16": TensorProto.BFLOAT16, "float8_e4m3fn": TensorProto.FLOAT8E4M3FN}


@pytest.mark.parametrize(("name", "number"), NARROW.items())
@pytest.mark.parametrize("shape", [(2, 4), (0, 4), ()])
def test_onnxruntime_takes_and_gives_narrow_floats(name: str, number: int, shape: tuple[int, ...]) -> None:
    inputs = [value("x", None, number), value("i", None, TensorProto.INT64)]
    outputs = [value("y", None, number), value("j", None, TensorProto.INT64)]
    model = model_of(
        [node("Identity", ["x"], ["y"]), node("Identity", ["i"], ["j"])], inputs, outputs, opset=21, ir_version=10
    )
    array = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(getattr(ml_dtypes, name))
    result = run("onnxruntime", model, x=array, i=np.arange(3))
    assert result.failures == []
    back, integers = result.outputs[0][0, 0]
    assert (back.dtype, back.shape, back.tobytes()) == (array.dtype, array.shape, array.tobytes())
    assert integers.tolist() == [0, 1, 2]


@pytest.mark.parametrize("engine", ["reference", "onnxruntime"])
def test_sequences_optionals_and_strings(engine: str) -> None:
    tensors = helper.make_tensor_sequence_value_info("s", TensorProto.FLOAT, None)
    optional = helper.make_value_info("o", helper.make_optional_type_proto(helper.make_tensor_type_proto(1, (None,))))
    nodes = [
        node("SplitToSequence", ["x"], ["parts"], axis=1, keepdims=0),
        node("SequenceLength", ["s"], ["n"]),
        node("OptionalHasElement", ["o"], ["h"]),
        node("Identity", ["t"], ["u"]),
    ]
    outputs = [
        helper.make_tensor_sequence_value_info("parts", TensorProto.FLOAT, None),
        value("n", (), TensorProto.INT64),
        value("h", (), TensorProto.BOOL),
        value("u", None, TensorProto.STRING),
    ]
    model = model_of(nodes, [value("x"), tensors, optional, value("t", None, TensorProto.STRING)], outputs)
    feeds = {"x": FOUR, "s": [FOUR, FOUR[:1]], "o": None, "t": np.array(["a b", "ü"], dtype=object)}
    result = run(engine, model, **feeds)
    assert result.failures == []
    parts, length, has, texts = result.outputs[1][0, 0]
    assert [part.tolist() for part in parts] == FOUR.T.tolist()
    assert (int(length), bool(has), texts.tolist()) == (2, False, ["a b", "ü"])


def test_openvino_runs_or_says_why_not() -> None:
    result = run("openvino", split_model(13, axis=1))
    if importlib.util.find_spec("openvino") is None:
        assert result.failures[0].unsupported
    else:
        assert [part.shape for part in result.outputs[0][0, 0]] == [(2, 2), (2, 2)]


def test_a_large_model_is_saved_with_its_weights_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_files, "_LARGEST_MESSAGE", 1000)
    weights = np.arange(4096, dtype=np.float32).reshape(4, 1024)
    model = model_of([node("MatMul", ["x", "w"], ["y"])], [value("x")], ["y"], [constant("w", weights, np.float32)])
    unchanged = model.SerializeToString()
    saved = save_model(model, tmp_path / "model.onnx")
    assert model.SerializeToString() == unchanged
    assert saved.stat().st_size < 1000 < (tmp_path / "model.onnx.data").stat().st_size
    for engine in ("reference", "onnxruntime"):
        result = run(engine, model)
        assert result.failures == []
        np.testing.assert_allclose(result.outputs[0][0, 0][0], FOUR @ weights, rtol=1e-5)
