"""Models that crash, hang, or need too much take no other model with them."""

from __future__ import annotations

import os
import pickle
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

import splitgraph
from many.conftest import hearing_interrupts
from splitgraph import Outcome, SplitgraphError
from splitgraph.many.job import Job
from splitgraph.many.run_jobs import Workers
from splitgraph.work.task import FileTask

IR = Path(__file__).parents[2] / "models" / "interval_split.xml"
FAULTY = Path(__file__).parent / "faulty"


def outcomes(verb: Any, *sources: Any, **options: Any) -> dict[str, Outcome]:
    found = list(splitgraph.map_models(verb, sources, **options))
    assert len({each.model for each in found}) == len(found)
    return {Path(each.model).name: each for each in found}


def codes(outcome: Outcome) -> list[str]:
    return [found.code for found in outcome.diagnostics]


@pytest.mark.parametrize(
    ("verb", "sources", "options", "told"),
    [
        ("frobnicate", ["zoo"], {}, "there is no verb 'frobnicate' for many models; there are: infer, upgrade"),
        ("infer", ["zoo"], {"opset": 18}, "map_models('infer', ...): got an unexpected keyword argument 'opset'"),
        (
            "upgrade",
            ["zoo"],
            {"opst": 18},
            "map_models('upgrade', ...): got an unexpected keyword argument 'opst'; did you mean 'opset'?",
        ),
        ("upgrade", ["zoo"], {}, "map_models('upgrade', ...): missing a required argument: 'opset'"),
        ("infer", ["zoo"], {"jobs": 2, "executor": object()}, "the executor decides how many models run at a time"),
        ("infer", ["zoo"], {"jobs": "2"}, "jobs is '2'; it must be an integer of at least 1"),
        ("infer", ["zoo"], {"memory": "4"}, "memory is '4'; it must be a number of GiB, or None"),
        ("report", ["zoo"], {}, "there is no verb 'report' for many models"),
        ("infer", [3], {}, "the sources of map_models are paths and URLs, not int"),
        ("infer", [("a", "b")], {}, "the sources of map_models are paths and URLs, not tuple"),
        ("verify", ["zoo"], {}, "the sources of verify are pairs of models, (before, after), not 'zoo'"),
        ("infer", [], {}, "there are no models: the list of sources is empty"),
        ("infer", ["zoo"], {"exclude": ["*"]}, "--exclude leaves out every model of zoo"),
        ("upgrade", ["zoo"], {"opset": 18, "output": "zoo/a.onnx"}, "with many models -o is a folder"),
    ],
)
def test_wrong_arguments(verb: Any, sources: Any, options: dict[str, Any], told: str, zoo: Path) -> None:
    with pytest.raises(SplitgraphError) as caught:
        splitgraph.map_models(verb, sources, **options)
    assert str(caught.value).startswith(told)


def test_an_upgrade_goes_up_only(zoo: Path) -> None:
    found = outcomes("upgrade", "zoo/deep/new.onnx", opset=13, jobs=1)
    assert found["new.onnx"].status == "kept"
    refused = outcomes("upgrade", "zoo/deep/new.onnx", opset=13, jobs=1, skip_newer=False)
    assert codes(refused["new.onnx"]) == ["SG418"]


EXECUTORS: list[Callable[[], Executor | None]] = [
    lambda: None,
    lambda: ThreadPoolExecutor(2),
    lambda: ProcessPoolExecutor(2),
]


@pytest.mark.usefixtures("faulty")
@pytest.mark.parametrize("executor", EXECUTORS, ids=["own", "threads", "processes"])
@pytest.mark.sample(1)
def test_faulty_models(executor: Any, zoo: Path) -> None:
    for name in ("crash", "hang", "greedy", "fault", "once"):
        shutil.copy("zoo/a.onnx", f"zoo/{name}.onnx")
    used = executor()
    options = {"executor": used, "jobs": 2 if used is None else None, "timeout": 3, "memory": 4.0}
    found = outcomes("upgrade", "zoo", opset=18, output="out", **options)
    if used is not None:
        used.shutdown()
    assert {name: (each.status, codes(each)) for name, each in found.items()} == {
        "a.onnx": ("converted", []),
        "b.onnx": ("converted", []),
        "new.onnx": ("unchanged", []),
        "crash.onnx": ("failed", ["SG604"]),
        "hang.onnx": ("failed", ["SG605"]),
        "greedy.onnx": ("failed", ["SG602"]),
        "fault.onnx": ("failed", ["SG603"]),
        "once.onnx": ("converted", []),
    }
    assert "SIGSEGV" in found["crash.onnx"].diagnostics[0].message
    assert found["hang.onnx"].diagnostics[0].message.startswith("the model took longer than the limit of 3 s")
    assert found["once.onnx"].output == os.path.join("out", "once.onnx")
    assert sorted(os.listdir("out")) == ["a.onnx", "deep", "once.onnx"]


@pytest.mark.usefixtures("faulty")
def test_a_model_that_does_not_listen(zoo: Path) -> None:
    shutil.copy("zoo/a.onnx", "zoo/deaf.onnx")
    found = outcomes("infer", "zoo/deaf.onnx", timeout=1)
    assert codes(found["deaf.onnx"]) == ["SG605"]


@pytest.mark.usefixtures("faulty")
def test_a_lost_result_is_not_taken_for_another_one(zoo: Path) -> None:
    # The file appears while the call runs, but is not what a lost worker would have written.
    shutil.copy("zoo/a.onnx", "zoo/once.onnx")
    job = Job("zoo/once.onnx", FileTask("infer", Path("zoo/once.onnx"), place=Path("out.onnx")), is_new=True)
    Path("out.onnx").write_bytes(b"another")
    workers = Workers()
    try:
        outcome = workers.run(job)
    finally:
        workers.close()
    assert (outcome.status, codes(outcome)) == ("failed", ["SG108"])
    assert Path("out.onnx").read_bytes() == b"another"


def waiting(workers: Workers) -> list[subprocess.Popen[bytes]]:
    """The processes that wait for a job."""
    return [process._process for kept in workers._processes._waiting.values() for _, process in kept]


def test_a_worker_is_used_again(zoo: Path) -> None:
    workers = Workers()
    job = Job("zoo/a.onnx", FileTask("infer", Path("zoo/a.onnx")))
    try:
        assert [workers.run(job).status for _ in range(3)] == ["clean"] * 3
        (first,) = waiting(workers)
        workers.run(job)
        assert waiting(workers) == [first]
        first.kill()
        first.wait()
        assert workers.run(job).status == "clean"
        (second,) = waiting(workers)
        assert second is not first
    finally:
        workers.close()


def test_an_iterator_that_is_closed_ends_the_workers(zoo: Path) -> None:
    for number in range(20):
        shutil.copy("zoo/a.onnx", f"zoo/{number}.onnx")
    found = splitgraph.map_models("infer", ["zoo"], jobs=1)
    next(found)
    found.close()
    assert _children() == set()


def _children() -> set[str]:
    listed = subprocess.run(
        ["ps", "-o", "args=", "--ppid", str(os.getpid())], capture_output=True, text=True, check=False
    )
    return {line for line in listed.stdout.splitlines() if "splitgraph.many.job" in line}


def test_outcomes_are_pickled_and_read_again(zoo: Path) -> None:
    Path("zoo/broken.onnx").write_bytes(b"\xff")
    for outcome in splitgraph.map_models("infer", ["zoo"], jobs=1, hashes=True):
        assert pickle.loads(pickle.dumps(outcome)) == outcome
        assert outcome.ok == (outcome.status == "clean")
        assert list(outcome.files) == [outcome.model]


def test_every_file_of_a_model_is_hashed(zoo: Path) -> None:
    model = onnx.load("zoo/a.onnx")
    model.graph.initializer.append(onnx.numpy_helper.from_array(np.ones(9, np.float32), "w"))
    onnx.save(model, "zoo/w.onnx", save_as_external_data=True, location="w.bin", size_threshold=0)
    found = outcomes("verify", ("zoo/w.onnx", "zoo/a.onnx"), hashes=True, engine="reference", samples=1)
    assert set(found["w.onnx"].files) == {"zoo/w.onnx", "zoo/w.bin", "zoo/a.onnx"}
    assert set(outcomes("infer", str(IR), hashes=True)[IR.name].files) == {str(IR), str(IR.with_suffix(".bin"))}


def test_nothing_is_written_without_output(zoo: Path) -> None:
    before = sorted(Path().rglob("*"))
    found = outcomes("upgrade", "zoo", opset=18, verify=True, engine="reference", samples=1)
    assert {each.status for each in found.values()} == {"converted", "unchanged"}
    assert found["a.onnx"].verdict == "equal"
    assert sorted(Path().rglob("*")) == before


def test_verify_takes_pairs(zoo: Path) -> None:
    (found,) = outcomes("verify", ("zoo/a.onnx", "zoo/deep/b.onnx"), engine="reference", samples=1).values()
    assert (found.status, found.after, found.engine) == ("equal", "zoo/deep/b.onnx", "reference")


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGINT for another process")
def test_an_interrupted_call_leaves_no_process_and_can_be_resumed(zoo: Path) -> None:
    for number in range(6):
        shutil.copy("zoo/a.onnx", f"zoo/{number}.onnx")
    shutil.copy("zoo/a.onnx", "zoo/hang.onnx")
    typed = ["infer", "zoo", "--report", "r.jsonl", "--jobs", "2"]
    command = [sys.executable, "-m", "splitgraph", *typed]
    root = str(Path(__file__).parents[2])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(FAULTY), root])}
    streams: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=environment, preexec_fn=hearing_interrupts, **streams)
    deadline = time.monotonic() + 60
    while not (Path("r.jsonl").exists() and Path("r.jsonl").read_text().count("\n") == 9):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert err.endswith("interrupted\n")
    listed = subprocess.run(["ps", "-eo", "args="], capture_output=True, text=True, check=False).stdout
    assert str(zoo) not in listed
    environment["PYTHONPATH"] = root
    done = subprocess.run([*command, "--resume"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert "9 of an earlier call" in done.stdout
    assert Path("r.jsonl").read_text().count("\n") == 10
