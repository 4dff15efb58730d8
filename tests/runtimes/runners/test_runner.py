"""The loop around a runtime: what a job is answered, whatever the runtime does."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from fake_runtimes import write_program

from splitgraph.runtimes.runners import runner as runner_module
from splitgraph.runtimes.runners.interpreters import LOOP
from splitgraph.runtimes.runners.runner import MissingRuntimeError, ModelJob, Runner

PROGRAM = """
import os, signal, subprocess, sys, time
import numpy as np

PRINTS_WHY = {prints}

def version():
    return "1.2.3"

def run(path, inputs, outputs, stage):
    name = os.path.basename(path)
    stage("prepare")
    if name == "refuses":
        print("the reason")
        raise ValueError(f"{{path}} does not\\n  read {{os.__file__}}")
    if name == "traceback":
        raise ValueError("Traceback (most recent call last):\\n  File 'a.py'\\nKeyError: 0\\n of it\\n")
    if name == "exits":
        raise SystemExit("leaves")
    if name == "not given":
        raise BufferError("no array of float16")
    if name == "kind of":
        raise type("NotForUs", (BufferError,), {{}})("own error")
    stage("run")
    if name == "dies":
        os.write(2, b"terminate called\\n")
        os.kill(os.getpid(), signal.SIGSEGV)
    if name == "leaves":
        os._exit(3)
    if name == "hangs":
        time.sleep(600)
    if name == "kills the loop":
        os.kill(os.getppid(), signal.SIGKILL)
        time.sleep(600)
    if name == "child":
        left = subprocess.Popen(["sleep", "600"])
        with open(os.path.join(os.path.dirname(path), "left.txt"), "w") as file:
            file.write(str(left.pid))
    if name == "texts":
        return [np.array(["a", "bc"], object)]
    if name == "memory":
        return [np.ones(2**33)]
    return [inputs[name] * 2 for name in inputs]
"""
WITHOUT_FORK = """
import os, runpy, sys
del os.fork
sys.argv = [{loop!r}, *sys.argv[1:]]
runpy.run_path({loop!r}, run_name="__main__")
"""


@pytest.fixture(params=["fork", "new process"])
def runner(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Runner]:
    """A runner of the program, with and without forks."""
    if request.param == "new process":
        loop = tmp_path / "loop_without_fork.py"
        loop.write_text(WITHOUT_FORK.format(loop=str(LOOP)))
        monkeypatch.setattr(runner_module, "LOOP", loop)
    with Runner(write_program(tmp_path, text=PROGRAM.format(prints=False)), python()) as made:
        yield made


def python() -> str:
    import sys

    return sys.executable


def job(folder: Path, name: str, seconds: float = 30) -> ModelJob:
    np.savez(folder / "in.npz", i0=np.float32([1, 2]), i1=np.array(["é", "bc"]))
    return ModelJob(folder / name, folder / "in.npz", ["x"], ["y"], folder / "out.npz", seconds)


ANSWERS = [
    ("right", ("ran", "run", "")),
    ("refuses", ("refuses", "prepare", "ValueError: refuses does not read os.py")),
    ("traceback", ("refuses", "prepare", "KeyError: 0 of it")),
    ("exits", ("refuses", "prepare", "SystemExit: leaves")),
    ("not given", ("not given", "prepare", "BufferError: no array of float16")),
    # Only the exception that programs raise themselves.
    ("kind of", ("refuses", "prepare", "NotForUs: own error")),
    ("leaves", ("dies", "run", "exit code 3")),
]


@pytest.mark.parametrize(("name", "answer"), ANSWERS, ids=[name for name, _ in ANSWERS])
@pytest.mark.sample(5)
def test_what_a_job_is_answered(runner: Runner, tmp_path: Path, name: str, answer: tuple[str, str, str]) -> None:
    result = runner.run(job(tmp_path, name))
    assert (result.answer, result.stage, result.said) == answer
    # The next one is answered, too.
    assert runner.run(job(tmp_path, "right")).answer == "ran"


def test_a_death_and_a_hang_cost_one_job(runner: Runner, tmp_path: Path) -> None:
    died = runner.run(job(tmp_path, "dies"))
    assert (died.answer, died.stage) == ("dies", "run")
    # Its last words are what it printed.
    assert died.said.endswith(": terminate called")
    began = time.monotonic()
    hung = runner.run(job(tmp_path, "hangs", seconds=1))
    assert (hung.answer, hung.stage, hung.said) == ("hangs", "run", "no answer after 1 s")
    assert time.monotonic() - began < 30
    assert runner.run(job(tmp_path, "right")).answer == "ran"


def test_results_are_saved_by_position(runner: Runner, tmp_path: Path) -> None:
    result = runner.run(job(tmp_path, "right"))
    assert (result.answer, (runner.version, runner.python_version is not None)) == ("ran", ("1.2.3", True))
    with np.load(tmp_path / "out.npz") as held:
        assert held.files == ["o0"]
        assert np.array_equal(held["o0"], np.float32([2, 4]))
    assert runner.run(job(tmp_path, "texts")).answer == "ran"
    with np.load(tmp_path / "out.npz") as held:
        assert held["o0"].tolist() == ["a", "bc"]


def test_inputs_are_given_by_their_names(runner: Runner, tmp_path: Path) -> None:
    # Names of the function that writes archives, and of folders.
    asked = job(tmp_path, "right")._replace(names=["../file"])
    assert runner.run(asked).answer == "ran"


def test_a_program_that_ends_is_started_again(tmp_path: Path) -> None:
    with Runner(write_program(tmp_path, text=PROGRAM.format(prints=False)), python()) as runner:
        result = runner.run(job(tmp_path, "kills the loop"))
        assert (result.answer, result.said) == ("dies", "the program that runs it ended")
        assert runner.run(job(tmp_path, "right")).answer == "ran"


def test_what_a_runtime_started_and_left_is_ended(tmp_path: Path) -> None:
    with Runner(write_program(tmp_path, text=PROGRAM.format(prints=False)), python()) as runner:
        assert runner.run(job(tmp_path, "child")).answer == "ran"
        assert has_ended(int((tmp_path / "left.txt").read_text()))


def has_ended(process: int) -> bool:
    """Return True once there is no such process, or only its exit code."""
    for _ in range(100):
        state = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True).stdout
        if state.strip()[:1] in ("", "Z"):
            return True
        time.sleep(0.05)
    return False


@pytest.mark.parametrize(("prints", "said"), [(True, ": the reason"), (False, "os.py")])
def test_a_runtime_that_prints_why(tmp_path: Path, prints: bool, said: str) -> None:
    with Runner(write_program(tmp_path, text=PROGRAM.format(prints=prints)), python()) as runner:
        assert runner.run(job(tmp_path, "refuses")).said.endswith(said)


def test_the_memory_of_a_job_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner_module, "MEGABYTES", 2048)
    with Runner(write_program(tmp_path, text=PROGRAM.format(prints=False)), python()) as runner:
        result = runner.run(job(tmp_path, "memory"))
        assert result.answer == "refuses"
        assert "MemoryError" in result.said


MISSING = [
    ("import a_runtime_that_nobody_has", "No module named 'a_runtime_that_nobody_has'"),
    ("raise ImportError('libfoo.so: cannot open')", "libfoo.so: cannot open"),
    ("import os; os._exit(1)", "it does not start"),
    ("print('chatter')\ndef version(): raise OSError('no licence')", "no licence"),
]


@pytest.mark.parametrize(("text", "said"), MISSING)
def test_a_runtime_that_does_not_start(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(MissingRuntimeError, match=said):
        Runner(write_program(tmp_path, text=text), python())


def test_a_program_that_prints_when_it_starts(tmp_path: Path) -> None:
    with Runner(write_program(tmp_path, text="print('chatter')\n" + PROGRAM.format(prints=False)), python()) as runner:
        assert runner.version == "1.2.3"


def test_modules_beside_a_program_hide_none_of_a_runtime(tmp_path: Path) -> None:
    (tmp_path / "json_of_the_runtime.py").write_text("")
    with pytest.raises(MissingRuntimeError, match="No module named"):
        Runner(write_program(tmp_path, text="import json_of_the_runtime"), python())
