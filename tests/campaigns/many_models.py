"""A thousand models in one call, on one machine and on a cluster: `python tests/campaigns/many_models.py`.

The models are onnx's node tests, models/, 20 broken ones, one that hangs, one that crashes its process, and one of
400 MB. Four things are shown, each with its figures:

1. single: the same work in one process, one model after the other, without the faulty ones;
2. many: one call with two workers, against half of that time;
3. resumed: a call that is interrupted with Ctrl+C and resumed has the report of a call that was not;
4. cluster: three workers of dask.distributed, one of which is killed with SIGKILL, have the same report.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.backend.test
from onnx import helper, numpy_helper

ROOT = Path(__file__).parents[2]
FAULTY = ROOT / "tests" / "batch" / "faulty"
NODE_TESTS = Path(onnx.backend.test.__file__).parent / "data" / "node"
OPSET = "26"
TIMEOUT = "20"
FAULTY_NAMES = ("crash", "hang")
# Does the work on each model of stdin, and prints how many seconds it took.
ALONE = f"""
import sys, time
from pathlib import Path
import splitgraph.api, splitgraph.conversion.opset
from splitgraph.many.job import Job, run_job
from splitgraph.options import Output, Running, Converting
from splitgraph.work.task import FileTask

verify = None if "verify" in sys.argv else False
began = time.monotonic()
for number, name in enumerate(sys.stdin.read().splitlines()):
    place = Path("alone") / f"{{number}}.onnx"
    running, output = Running(verify, timeout=60), Output(skip_newer=True)
    task = FileTask("upgrade", Path(name), wanted=Converting({OPSET}), running=running, output=output, place=place)
    run_job(Job(name, task, hashes=True))
print(time.monotonic() - began)
"""


def main() -> int:
    """Run the campaign; returns 1 if anything is not as it should be."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=1000, help="how many models")
    parser.add_argument("--large", type=int, default=400, help="size of the large model, in MB")
    parser.add_argument("--no-cluster", action="store_true", help="leave the cluster out")
    parser.add_argument("--no-verification", action="store_true", help="leave out the call with verification")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.chdir(folder)
        make_models(folder / "zoo", options.models, options.large)
        faults = check_all(folder, with_cluster=not options.no_cluster, with_verification=not options.no_verification)
    for fault in faults:
        print(f"WRONG: {fault}")
    print("as it should be" if not faults else f"{len(faults)} faults")
    return 1 if faults else 0


def make_models(zoo: Path, count: int, megabytes: int) -> None:
    """Fill the folder."""
    zoo.mkdir()
    sound = [*sorted((ROOT / "models").glob("*.onnx")), *sorted(NODE_TESTS.glob("*/model.onnx"))]
    for number in range(count - 23):
        source = sound[number % len(sound)]
        name = source.stem if source.stem != "model" else source.parent.name
        target = zoo / f"{number // 100:02}" / f"{number:04}_{name}.onnx"
        target.parent.mkdir(exist_ok=True)
        shutil.copy(source, target)
    for number in range(20):
        content = (zoo / "00" / sorted(os.listdir(zoo / "00"))[number]).read_bytes()
        damaged = {0: b"", 1: content[: len(content) // 2], 2: b"\xff" + content, 3: b"<html></html>"}[number % 4]
        (zoo / f"broken_{number:02}.onnx").write_bytes(damaged)
    for name in ("crash", "hang"):
        shutil.copy(ROOT / "models" / "split13_equal.onnx", zoo / f"{name}.onnx")
    onnx.save(large_model(megabytes), zoo / "large.onnx")


def large_model(megabytes: int) -> onnx.ModelProto:
    """A Split of a product with large weights, at opset 13."""
    width = 4096
    weights = numpy_helper.from_array(np.ones((megabytes * 2**20 // (4 * width), width), np.float32), "w")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["y"], name="product"),
        helper.make_node("Split", ["y"], ["a", "b"], name="split", axis=1),
    ]
    inputs = [helper.make_tensor_value_info("x", 1, ["N", weights.dims[0]])]
    outputs = [helper.make_tensor_value_info(name, 1, None) for name in "ab"]
    graph = helper.make_graph(nodes, "g", inputs, outputs, [weights])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)


def check_all(folder: Path, *, with_cluster: bool, with_verification: bool) -> list[str]:
    """Everything that is to be shown; what is not so."""
    faults: list[str] = []
    single = seconds_alone(folder)
    wall, whole = call("whole", ["--jobs", "2"])
    counts: dict[str, int] = {}
    for line in whole.values():
        counts[line["status"]] = counts.get(line["status"], 0) + 1
    print(f"many: {len(whole)} models, {counts}")
    print(f"all: {wall:.1f} s, of which one model hangs for {TIMEOUT} s")
    leave_out = [f"--exclude={name}.onnx" for name in FAULTY_NAMES]
    sound, _ = call("sound", ["--jobs", "2", *leave_out])
    tell_ratio("without the two faulty ones", single, sound)
    if with_verification:
        alone = seconds_alone(folder, "verify")
        verified, _ = call("verified", ["--jobs", "2", "--verify", *leave_out])
        tell_ratio("the same with verification", alone, verified)
    for name, code in (("crash", "SG604"), ("hang", "SG605")):
        found = [each["code"] for each in whole[f"zoo/{name}.onnx"]["diagnostics"]]
        faults += [] if found == [code] else [f"{name}: {found}"]
    broken = [line for name, line in whole.items() if "broken" in name]
    codes = sorted({each["code"] for line in broken for each in line["diagnostics"]})
    print(f"broken: {len(broken)} models, {codes}")
    faults += [] if len(broken) == 20 and codes == ["SG101"] else ["broken models are not reported"]
    expected = sum(1 for _ in (folder / "zoo").rglob("*.onnx"))
    faults += [] if len(whole) == expected else [f"{len(whole)} of {expected} models are in the report"]
    interrupted = resumed(folder)
    faults += differences("resumed", whole, interrupted)
    if with_cluster:
        faults += differences("cluster", whole, on_cluster(folder))
    return faults


def tell_ratio(what: str, alone: float, together: float) -> None:
    """Print how long models take in one process, and in one call with two workers."""
    print(f"{what}: one process {alone:.1f} s, one call with 2 workers {together:.1f} s")
    print(f"  {together / (alone / 2):.2f} of half of the first; start of the program included")


def seconds_alone(folder: Path, *arguments: str) -> float:
    """How long the sound models take in one process, one after the other."""
    sound = [path for path in (folder / "zoo").rglob("*.onnx") if path.stem not in FAULTY_NAMES]
    names = "\n".join(str(path.relative_to(folder)) for path in sound)
    typed = [sys.executable, "-c", ALONE, *arguments]
    done = subprocess.run(typed, input=names, capture_output=True, text=True, env=environment(), check=True)
    shutil.rmtree(folder / "alone")
    return float(done.stdout)


def environment(*, faulty: bool = False) -> dict[str, str]:
    """The environment of a call; faulty: workers crash and hang on some names."""
    paths = [str(FAULTY)] * faulty + [str(ROOT)]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def command(name: str, options: list[str]) -> list[str]:
    """The command line of a call."""
    typed = ["upgrade", "zoo", "--opset", OPSET, "--no-verify", "-o", f"out_{name}", "--timeout", TIMEOUT]
    return [sys.executable, "-m", "splitgraph", *typed, "--report", f"{name}.jsonl", "--quiet", *options]


def call(name: str, options: list[str]) -> tuple[float, dict[str, dict[str, Any]]]:
    """Do a call; its seconds, and the lines of its report by model."""
    began = time.monotonic()
    done = subprocess.run(
        command(name, options), capture_output=True, text=True, env=environment(faulty=True), check=False
    )
    # Broken models are findings; one that no engine runs is, too.
    if done.returncode != 1:
        raise SystemExit(f"exit code {done.returncode}: {done.stderr[-2000:]}")
    return time.monotonic() - began, report(name)


def report(name: str) -> dict[str, dict[str, Any]]:
    """The lines of a report by model. A model that has two lines is told."""
    lines = [json.loads(line) for line in Path(f"{name}.jsonl").read_text("utf-8").splitlines()]
    found = {line["model"]: line for line in lines}
    if len(found) != len(lines):
        print(f"WRONG: {name}: {len(lines) - len(found)} models have two lines")
    return found


def hearing() -> None:
    """Let a new process hear Ctrl+C, also where the campaign runs in the background."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def resumed(folder: Path) -> dict[str, dict[str, Any]]:
    """The report of a call that was interrupted in the middle and resumed."""
    typed = command("resumed", ["--jobs", "2"])
    process = subprocess.Popen(typed, env=environment(faulty=True), stderr=subprocess.PIPE, preexec_fn=hearing)
    wait_for_lines(Path("resumed.jsonl"), 400, process)
    process.send_signal(signal.SIGINT)
    process.communicate()
    done = len(Path("resumed.jsonl").read_text("utf-8").splitlines())
    _, found = call("resumed", ["--jobs", "2", "--resume"])
    left = [path.name for path in folder.rglob(".splitgraph-*")]
    print(
        f"resumed: interrupted after {done} models with exit code {process.returncode}, {len(left)} files left behind"
    )
    return found


def on_cluster(folder: Path) -> dict[str, dict[str, Any]]:
    """The report of a call on three dask workers, one of which is killed in the middle."""
    workers: list[subprocess.Popen[bytes]] = []
    started = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--scheduler-file", "s.json"]
    quiet: dict[str, Any] = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = subprocess.Popen([*started, "--no-dashboard"], env=environment(), **quiet)
    try:
        while not Path("s.json").exists():
            time.sleep(0.1)
        address = json.loads(Path("s.json").read_text("utf-8"))["address"]
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"]
        for _ in range(3):
            each = [*worker, "--no-nanny"]
            workers.append(subprocess.Popen(each, env=environment(faulty=True), cwd=folder, **quiet))
        process = subprocess.Popen(command("cluster", ["--scheduler", address]), env=environment(), **quiet)
        wait_for_lines(Path("cluster.jsonl"), 300, process)
        workers[0].send_signal(signal.SIGKILL)
        process.wait()
    finally:
        for each in (*workers, scheduler):
            each.kill()
            each.wait()
    found = report("cluster")
    print(f"cluster: {len(found)} models, one of three workers killed in the middle, exit code {process.returncode}")
    return found


def wait_for_lines(path: Path, count: int, process: subprocess.Popen[bytes]) -> None:
    """Wait until a report has so many lines."""
    while process.poll() is None:
        if path.exists() and path.read_bytes().count(b"\n") >= count:
            return
        time.sleep(0.02)
    raise SystemExit("the call ended before it could be disturbed")


def differences(name: str, first: dict[str, dict[str, Any]], second: dict[str, dict[str, Any]]) -> list[str]:
    """The models of which two reports say different things, but for seconds and the folder of the results."""
    faults = []
    for model in sorted({*first, *second}):
        lines = [comparable(lines[model]) if model in lines else None for lines in (first, second)]
        if lines[0] != lines[1]:
            faults.append(f"{name}: {model}: {lines[0]} and {lines[1]}")
    print(f"{name}: {len(faults)} of {len(first)} lines differ from the call without disturbance")
    return faults


def comparable(line: dict[str, Any]) -> dict[str, Any]:
    """A line without what differs between equal calls."""
    output = line["output"]
    return {**line, "seconds": 0, "output": None if output is None else output.partition("/")[2]}


if __name__ == "__main__":
    sys.exit(main())
