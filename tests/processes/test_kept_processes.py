"""Processes that are kept for the next message, such as those of engines: which are kept, when they end, and that no
verification depends on an earlier one.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from verification.small_models import constant, endless_model, model_of, node, split_model, value

import splitgraph
from splitgraph.processes import kept_processes, worker_process
from splitgraph.verification.engine_settings import EngineSettings
from splitgraph.verification.engines import engine_process
from splitgraph.verification.engines.engine_process import Attempt, EngineRun, workplace

from .watching import CHECKOUT, comes_true, first_line, has_ended, kill, start

FOUR = np.arange(8, dtype=np.float32).reshape(2, 4)
MODELS = CHECKOUT / "models"
Started = list[subprocess.Popen[bytes]]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[Started]:
    """The processes that a test starts; there are none before it, and none after it."""
    made: Started = []

    def told(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        made.append(subprocess.Popen(*arguments, **options))
        return made[-1]

    monkeypatch.setattr(worker_process, "Popen", told)
    kept_processes.end_all()
    yield made
    kept_processes.end_all()


def run(
    engine: str = "onnxruntime",
    model: onnx.ModelProto | None = None,
    seconds: float = 60,
    settings: EngineSettings = EngineSettings(),  # noqa: B008  # it is frozen
) -> EngineRun:
    model = split_model(13, axis=1) if model is None else model
    with workplace([model], [None], [None], settings) as place:
        return place.run(engine, [Attempt(0, 0, {"x": FOUR})], seconds)


def hungry_model() -> onnx.ModelProto:
    """32 GiB of zeros."""
    nodes = [node("ConstantOfShape", ["many"], ["zeros"]), node("ReduceSum", ["zeros"], ["sum"], keepdims=0)]
    return model_of([*nodes, node("Add", ["x", "sum"], ["y"])], [value("x")], ["y"], [constant("many", [1 << 33])])


def crash() -> None:
    """num_outputs=2 with 4 outputs aborts onnxruntime 1.31."""
    (failure,) = run(model=split_model(18, outputs="abcd", dims=(4, 4), num_outputs=2)).failures
    if not failure.reason.startswith("crashed"):
        pytest.skip("this onnxruntime refuses the model that crashed others")


def overrun() -> None:
    (failure,) = run("reference", endless_model(), seconds=5).failures
    assert "did not finish" in failure.reason


def exhaust_memory() -> None:
    (failure,) = run("reference", hungry_model()).failures
    assert "needs more memory" in failure.reason


def fail_in_openvino() -> None:
    if importlib.util.find_spec("openvino") is None:
        pytest.skip("OpenVINO is not installed")
    assert run("openvino", split_model(13, lengths=[9, 9], axis=1)).failures


def name_a_library() -> None:
    assert run(settings=EngineSettings(custom_ops=("/nowhere/libfoo.so",))).failures


UNHEALTHY = {
    "a crash": ("onnxruntime", crash),
    "a time-out": ("reference", overrun),
    "a memory limit": ("reference", exhaust_memory),
    "a failure of OpenVINO": ("openvino", fail_in_openvino),
    "a library": ("onnxruntime", name_a_library),
}


@pytest.mark.parametrize("case", UNHEALTHY)
@pytest.mark.sample(2)
def test_is_not_kept_after(case: str, started: Started) -> None:
    engine, fail = UNHEALTHY[case]
    fail()
    assert comes_true(lambda: has_ended(started[0].pid))
    assert run(engine).failures == []
    assert len(started) == 2


def test_is_not_kept_after_an_interrupt(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: object, deadline: float) -> bytes:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(worker_process.WorkerProcess, "_next", interrupt)
        run()
    assert comes_true(lambda: has_ended(started[0].pid))
    run()
    assert len(started) == 2


def other_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SPLITGRAPH_TEST", "other")


def other_search_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [*sys.path, "/nowhere"])


def none_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_processes, "IDLE_SECONDS", 0)


@pytest.mark.parametrize("change", [other_variable, other_search_path, none_kept])
@pytest.mark.sample(1)
def test_is_not_used_if_a_new_process_would_start_in_another_way(
    change: Callable[[pytest.MonkeyPatch], None], started: Started, monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    change(monkeypatch)
    run()
    assert len(started) == 2
    if change is not none_kept:
        assert comes_true(lambda: has_ended(started[0].pid))


def test_is_not_used_by_another_engine_or_provider(started: Started) -> None:
    run("reference")
    run("onnxruntime")
    run("onnxruntime", settings=EngineSettings(providers=("cpu",)))
    assert len(started) == 3


def test_is_used_again_also_after_a_refusal(started: Started) -> None:
    for _ in range(2):
        assert run().failures == []
        assert run(model=split_model(13, lengths=[9, 9], axis=1)).failures
    assert len(started) == 1
    assert started[0].poll() is None


def test_one_that_died_while_it_waited_is_replaced(started: Started) -> None:
    run()
    started[0].kill()
    assert run().failures == []
    started[1].kill()
    assert comes_true(lambda: started[1].poll() is not None)
    assert run().failures == []
    assert len(started) == 3


def test_ends_after_some_time_without_a_job(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kept_processes, "IDLE_SECONDS", 1.0)
    run("reference")
    assert started[0].poll() is None
    assert comes_true(lambda: started[0].poll() is not None)
    assert run("reference").failures == []


def test_what_a_module_prints_at_the_start_is_no_answer(
    started: Started, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text("print('hello')")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert run("reference").failures == []
    assert run("reference").failures == []
    assert len(started) == 1


def limit_of(process: subprocess.Popen[bytes]) -> str:
    limits = Path(f"/proc/{process.pid}/limits").read_text().splitlines()
    return next(line for line in limits if line.startswith("Max address space")).split()[3]


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of the address space")
def test_devices_have_no_limit_of_the_address_space(started: Started) -> None:
    """The drivers of GPUs reserve more of it than machines have; Azure's provider stands for them."""
    run(settings=EngineSettings(providers=("cpu",)))
    run(settings=EngineSettings(providers=("azure",)))
    assert limit_of(started[0]).isdecimal()
    assert limit_of(started[1]) == "unlimited"


@pytest.mark.skipif(sys.platform != "linux", reason="the limit of the address space")
def test_the_memory_limit_of_each_job_holds(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the same process: a job with a small limit after one with a large limit, and the other way round."""
    add = model_of([node("Add", ["x", "w"], ["y"])], [value("x")], ["y"], [constant("w", np.ones((2, 4)), np.float32)])
    assert run("reference", add).failures == []
    monkeypatch.setattr(engine_process, "memory_limit", lambda models: 1 << 20)
    (failure,) = run("reference", hungry_model()).failures
    assert "more memory than the limit of 0.000977 GiB" in failure.reason
    monkeypatch.undo()
    assert run("reference", add).failures == []


def test_the_folder_and_the_streams_are_those_of_the_job(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kept process holds nothing of the folder of an earlier job, which is gone."""
    run()
    if not Path("/proc/self/fd").exists():
        pytest.skip("no list of the open files")
    process = Path(f"/proc/{started[0].pid}")
    held = [os.readlink(each) for each in (process / "fd").iterdir()]
    assert not [path for path in [*held, os.readlink(process / "cwd")] if "splitgraph-" in path]


def test_threads_have_processes_of_their_own_that_outlive_them(started: Started) -> None:
    for _ in range(2):
        with ThreadPoolExecutor(3) as threads:
            together = threading.Barrier(3)

            def verify(together: threading.Barrier = together) -> EngineRun:
                together.wait(60)
                return run("reference")

            found = [threads.submit(verify) for _ in range(3)]
            assert all(each.result().failures == [] for each in found)
    assert 1 <= len(started) <= 3


VERIFYING = """
import os, subprocess, sys, time, threading, onnx, splitgraph
pids = []
class Told(subprocess.Popen):
    def __init__(self, *arguments, **options):
        super().__init__(*arguments, **options)
        pids.append(self.pid)
subprocess.Popen = Told
def verify():
    assert splitgraph.verify(sys.argv[1], sys.argv[1], samples=1).verdict == "equal"
"""
IN_A_THREAD = """
thread = threading.Thread(target=verify)
thread.start()
thread.join()
verify()
"""
WAITING = VERIFYING + IN_A_THREAD + "print(*pids, flush=True)\ntime.sleep(600)\n"
ENDING = VERIFYING + IN_A_THREAD + "print(*pids, flush=True)\n"
FORKING = (
    VERIFYING
    + """
verify()
child = os.fork()
if child == 0:
    verify()
    print(*pids, flush=True)
    os._exit(0)
os.waitpid(child, 0)
verify()
print(*pids, flush=True)
"""
)


def verifying(script: str) -> subprocess.Popen[str]:
    return start(script, MODELS / "split13_equal.onnx")


def test_ends_with_the_interpreter() -> None:
    process = verifying(ENDING)
    (pid,) = first_line(process).split()
    assert process.wait(60) == 0
    assert comes_true(lambda: has_ended(int(pid)))
    process.communicate()


def test_ends_when_its_parent_is_killed_while_it_waits() -> None:
    process = verifying(WAITING)
    (pid,) = first_line(process).split()
    assert not has_ended(int(pid))
    kill(process)
    assert comes_true(lambda: has_ended(int(pid)))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks of POSIX")
@pytest.mark.slow
def test_a_fork_starts_its_own_and_leaves_those_of_its_parent() -> None:
    process = verifying(FORKING)
    in_child, in_parent = first_line(process).split(), first_line(process).split()
    assert process.wait(60) == 0
    assert len(in_parent) == 1
    assert in_child[0] == in_parent[0]
    assert len(in_child) == 2
    process.communicate()
    assert comes_true(lambda: all(has_ended(int(pid)) for pid in in_child))


COMPARED = [
    *("split1_input", "split18_neither", "split_in_loop", "string_split20", "split_to_sequence24"),
    "lstm_scan.opset18.dynamo",
]


@pytest.mark.slow
def test_results_are_those_of_new_processes(started: Started, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the order of the models."""
    pairs = [(f"{MODELS}/{left}.onnx", f"{MODELS}/{right}.onnx") for left in COMPARED for right in (left, COMPARED[0])]

    def verified(pairs: list[tuple[str, str]]) -> dict[tuple[str, str], object]:
        return {pair: splitgraph.verify(*pair) for pair in pairs}

    kept = verified(pairs)
    count = len(started)
    assert verified(pairs[::-1]) == kept
    monkeypatch.setattr(kept_processes, "IDLE_SECONDS", 0)
    assert verified(pairs) == kept
    assert {found.verdict for found in kept.values()} >= {"equal", "different"}  # type: ignore[attr-defined]
    assert count < len(COMPARED) < len(started)
