"""Calls on many models that somebody tried to break."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.numpy_helper
import pytest
from command_line.program import ROOT, Run, split_model

import splitgraph
from many.conftest import hearing_interrupts
from splitgraph import SplitgraphError
from splitgraph.many import run_jobs
from splitgraph.many.run_jobs import Workers

UPGRADE = ("upgrade", "--opset", "18", "--no-verify", "--jobs", "1")


def files(folder: str) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())


def test_resumed_with_another_folder(run: Run, zoo: Path) -> None:
    assert run(*UPGRADE, "zoo", "-o", "out", "--report", "r.jsonl")[0] == 0
    code, out, _ = run(*UPGRADE, "zoo", "-o", "out2", "--report", "r.jsonl", "--resume")
    assert code == 0
    assert "earlier call" not in out
    assert files("out2") == files("out")
    assert run("infer", "zoo", "--report", "i.jsonl")[0] == 0
    assert run("infer", "zoo", "-o", "typed", "--report", "i.jsonl", "--resume")[0] == 0
    assert files("typed") == files("out")


def test_results_beside_the_models_have_one_name_each(run: Run, zoo: Path) -> None:
    os.mkdir("same")
    shutil.copy("zoo/a.onnx", "same/a.onnx")
    shutil.copy("zoo/a.onnx", "same/a.opset13.onnx")
    # Found, the second one is the result of an earlier call; named, it is a model.
    code, _, err = run(*UPGRADE, "same", "--dry-run")
    assert code == 0
    assert "left out 1 result of earlier calls, beside the models: same/a.opset13.onnx" in err
    code, out, _ = run(*UPGRADE, "same/a.onnx", "same/a.opset13.onnx", "--force")
    assert code == 1
    assert "the result of same/a.onnx goes to same/a.opset18.onnx, too" in out


def weighted(path: str) -> None:
    """A model with weights of 16 KiB."""
    model = split_model(shape=("N", 64))
    model.graph.node.insert(0, onnx.helper.make_node("MatMul", ["x", "w"], ["y"]))
    model.graph.node[1].input[0] = "y"
    weights = np.arange(4096, dtype=np.float32).reshape(64, 64)
    model.graph.initializer.append(onnx.numpy_helper.from_array(weights, "w"))
    onnx.save(model, path)


@pytest.mark.parametrize(
    ("lost", "code"),
    [(["m.onnx.data"], 0), (["m.onnx"], 0), (["m.onnx", "m.onnx.data"], 0), ([], 1)],
)
@pytest.mark.parametrize("is_told", [True, False])
@pytest.mark.sample(3)
def test_a_result_of_which_a_part_is_missing(lost: list[str], code: int, is_told: bool, run: Run, zoo: Path) -> None:
    os.mkdir("big")
    weighted("big/m.onnx")
    call = (*UPGRADE, "big", "-o", "out", "--external-data", "--report", "r.jsonl")
    assert run(*call)[0] == 0
    before = {name: Path("out", name).read_bytes() for name in files("out")}
    for name in lost:
        Path("out", name).unlink()
    if not lost:
        Path("out/m.onnx.data").write_bytes(bytes(len(before["m.onnx.data"])))
    if not is_told or not lost:
        Path("r.jsonl").write_text("")
    assert run(*call, "--resume")[0] == code
    if code == 0:
        assert {name: Path("out", name).read_bytes() for name in files("out")} == before


@pytest.mark.parametrize("pattern", ["zoo/**/*.onnx", "zoo/*", "zoo"])
def test_results_are_no_models_when_resumed(pattern: str, run: Run, zoo: Path) -> None:
    call = (*UPGRADE, pattern, "-o", "zoo/out", "--report", "r.jsonl")
    assert run(*call)[0] == 0
    assert "3 of an earlier call" in run(*call, "--resume")[1]


def test_results_beside_the_models_are_no_models_when_resumed(run: Run, zoo: Path) -> None:
    call = ("convert", "zoo", "--to", "slice", "--no-verify", "--report", "r.jsonl")
    assert run(*call)[0] == 0
    whole = Path("r.jsonl").read_text().splitlines()
    Path("r.jsonl").write_text(whole[0] + "\n")
    assert run(*call, "--resume")[0] == 0
    assert {json.loads(line)["model"] for line in Path("r.jsonl").read_text().splitlines()} == {
        json.loads(line)["model"] for line in whole
    }


def test_a_model_in_the_way_of_a_result_is_not_lost_when_resumed(run: Run, zoo: Path) -> None:
    onnx.save(split_model(18, num_outputs=2), "zoo/a.opset18.onnx")
    call = (*UPGRADE, "zoo", "--report", "r.jsonl")
    assert run(*call)[0] == 1
    whole = {json.loads(line)["model"]: json.loads(line)["status"] for line in Path("r.jsonl").read_text().splitlines()}
    assert (whole["zoo/a.onnx"], whole["zoo/a.opset18.onnx"]) == ("failed", "unchanged")
    lines = [line for line in Path("r.jsonl").read_text().splitlines() if "a.onnx" in json.loads(line)["model"]]
    Path("r.jsonl").write_text("\n".join(lines) + "\n")
    run(*call, "--resume")
    assert "zoo/a.opset18.onnx" in {json.loads(line)["model"] for line in Path("r.jsonl").read_text().splitlines()}


def test_one_source_and_one_pattern_may_be_text(zoo: Path) -> None:
    assert [each.model for each in splitgraph.map_models("infer", "zoo/a.onnx")] == ["zoo/a.onnx"]
    found = splitgraph.map_models("infer", "zoo", exclude="deep/")
    assert [each.model for each in found] == ["zoo/a.onnx"]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"jobs": -1}, "jobs is -1"),
        ({"timeout": "x"}, "timeout is 'x'"),
        ({"timeout": float("nan")}, "timeout is nan"),
    ],
)
def test_wrong_limits(options: dict[str, Any], told: str, zoo: Path) -> None:
    with pytest.raises(SplitgraphError) as caught:
        splitgraph.map_models("infer", "zoo", **options)
    assert str(caught.value).startswith(told)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["verify", "zoo/a.onnx", "zoo/a.onnx", "--report", "r.jsonl"], "need --pairs and two folders"),
        (["infer", "zoo", "--all"], "--all is for one model"),
        (["infer", "zoo", "--memory", "inf"], "no finite number"),
        (["infer", "zoo", "--timeout", "nan"], "no finite number"),
        (["infer", "zoo", "--report", "same", "--junit", "same"], "--report and --junit are two files"),
        (["infer", "zoo", "--report", "zoo/a.onnx", "--resume"], "zoo/a.onnx is a name for a model"),
        (["infer", "zoo", "--report", "pipe", "--resume"], "--report is a file, and pipe is none"),
        (["infer", "zoo", "-o", "nowhere"], "nowhere is a link that leads nowhere"),
    ],
)
@pytest.mark.skipif(sys.platform == "win32", reason="needs a named pipe")
def test_refused(typed: list[str], told: str, run: Run, zoo: Path) -> None:
    os.mkfifo("pipe")
    os.symlink("missing/folder", "nowhere")
    before = Path("zoo/a.onnx").read_bytes()
    code, out, err = run(*typed)
    assert (code, out) == (2, "")
    assert told in err
    assert Path("zoo/a.onnx").read_bytes() == before


@pytest.mark.parametrize("part", ['"files": ["x"]', '"model": []', '"output": {}', '"seconds": "x"', '"after": 5'])
def test_a_report_that_somebody_edited(part: str, run: Run, zoo: Path) -> None:
    assert run("infer", "zoo", "--report", "r.jsonl")[0] == 0
    line = json.loads(Path("r.jsonl").read_text().splitlines()[0])
    line.update(json.loads("{" + part + "}"))
    Path("r.jsonl").write_text(json.dumps(line) + "\n")
    code, out, err = run("infer", "zoo", "--report", "r.jsonl", "--resume")
    assert (code, out) == (2, "")
    assert "r.jsonl is no report of splitgraph: line 1" in err


def test_a_wrong_scheduler_leaves_the_earlier_report(run: Run, zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr(run_jobs, "CONNECTING", 0.5)
    assert run("infer", "zoo", "--report", "r.jsonl")[0] == 0
    before = Path("r.jsonl").read_text()
    assert (
        run("infer", "zoo", "--bind", "N=2", "--report", "r.jsonl", "--resume", "--scheduler", "tcp://[::1]:1")[0] == 2
    )
    assert Path("r.jsonl").read_text() == before


def test_the_output_of_the_only_model_is_a_file(run: Run, zoo: Path) -> None:
    assert run(*UPGRADE, "zoo/a.onnx", "-o", "new.onnx", "--report", "r.jsonl")[0] == 0
    assert onnx.load("new.onnx").opset_import[0].version == 18
    assert run("report", "zoo/a.onnx", "-o", "page.html", "--timeout", "60")[0] == 0
    assert Path("page.html").is_file()
    assert not Path("index.html").exists()


def test_a_longer_name_has_its_own_partner(run: Run, zoo: Path) -> None:
    os.makedirs("before")
    os.makedirs("after")
    for name in ("before/net.onnx", "before/net.large.onnx", "after/net.large.opset18.onnx"):
        shutil.copy("zoo/a.onnx", name)
    typed = ["verify", "before", "after", "--pairs", "--engine", "reference", "--samples", "1", "--json"]
    found = {each["model"]: each["status"] for each in json.loads(run(*typed)[1])["models"]}
    assert found == {"before/net.onnx": "failed", "before/net.large.onnx": "equal"}


@pytest.mark.skipif(sys.platform in ("win32", "darwin"), reason="names are text there")
def test_a_name_that_is_no_text(run: Run, zoo: Path) -> None:
    os.mkdir("odd")
    shutil.copy("zoo/a.onnx", os.fsdecode(b"odd/\xff.onnx"))
    assert run("report", "odd", "-o", "site")[0] == 0
    assert "./%FF.onnx.html" in Path("site/index.html").read_text()


def test_junit_that_cannot_be_written(run: Run, zoo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise SplitgraphError("the disk is full")

    monkeypatch.setattr("splitgraph.many.reports.write_junit", refuse)
    code, out, err = run("infer", "zoo", "--junit", "r.xml", "--json")
    assert code == 2
    assert len(json.loads(out)["models"]) == 3
    assert err == "error: the disk is full\n"


def test_workers_import_nothing_of_the_current_folder(run: Run, zoo: Path) -> None:
    Path("queue.py").write_text("open('evil', 'w'); raise ImportError")
    command = [sys.executable, "-m", "splitgraph", "infer", "zoo"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONSAFEPATH": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert not Path("evil").exists()


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="counts open files")
def test_threads_that_end_give_their_workers_back(zoo: Path) -> None:
    def once() -> int:
        with ThreadPoolExecutor(2) as executor:
            assert {each.status for each in splitgraph.map_models("infer", ["zoo"], executor=executor)} == {"clean"}
        deadline = time.monotonic() + 10
        while any("splitgraph-idle" in thread.name for thread in threading.enumerate()) and time.monotonic() < deadline:
            time.sleep(0.05)
        time.sleep(0.5)
        return len(os.listdir("/proc/self/fd"))

    first = once()
    assert max(once() for _ in range(3)) <= first + 1


@pytest.mark.usefixtures("faulty")
def test_workers_that_do_not_listen_end_together(zoo: Path) -> None:
    shutil.copy("zoo/a.onnx", "zoo/deaf.onnx")
    from splitgraph.many.job import Job
    from splitgraph.work.task import FileTask

    workers = Workers()
    job = Job("zoo/deaf.onnx", FileTask("infer", Path("zoo/deaf.onnx")))
    with ThreadPoolExecutor(3) as pool:
        futures = [pool.submit(workers.run, job) for _ in range(3)]
        while len(workers.running) < 3:
            time.sleep(0.01)
        time.sleep(1)
        began = time.monotonic()
        workers.close()
        assert time.monotonic() - began < 4
        assert {future.result().status for future in futures} == {"failed"}


@pytest.mark.skipif(sys.platform == "win32", reason="needs signals")
def test_two_interrupts(zoo: Path) -> None:
    faulty = str(Path(__file__).parent / "faulty")
    for number in range(4):
        shutil.copy("zoo/a.onnx", f"zoo/hang{number}.onnx")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([faulty, str(ROOT)])}
    command = [sys.executable, "-m", "splitgraph", "infer", "zoo", "--jobs", "4"]
    streams: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen(command, env=environment, preexec_fn=hearing_interrupts, **streams)
    time.sleep(2)
    process.send_signal(signal.SIGINT)
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=30)
    assert process.returncode in (130, -signal.SIGINT)
    listed = subprocess.run(["ps", "-eo", "args="], capture_output=True, text=True, check=False).stdout
    assert str(faulty) not in listed
