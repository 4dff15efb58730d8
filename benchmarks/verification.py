"""What a verified upgrade costs beside the runs that it needs: CPU seconds of whole processes.

python benchmarks/verification.py [--runs 7] [--cache FOLDER] [--tree CHECKOUT] [MODEL ...]
python benchmarks/verification.py --many [--opset 18]

Each model is upgraded to opset 18 by the command, with verification. The peer is the plain script: onnxruntime loads
the original and the result, without optimizations as splitgraph's engine does, and runs both on the inputs that the
verification draws; and `upgrade --no-verify` makes the result. The three commands take turns. Printed are the minima,
and the ratio of the upgrade to the sum of the other two. CPU time includes every process that a command starts, also
one that outlives it.

Models: those of `verified_models.py`, and with a cache three of `tests/campaigns/real_models.py`. --tree is another
checkout, whose splitgraph upgrades: for a comparison. --many: all models of `models/` are converted and verified in one
process, with engine processes that are kept and with new ones; the verdicts must be the same.
"""

from __future__ import annotations

import argparse
import ctypes
import importlib.util
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any, NamedTuple

from alone import ALONE

ROOT = Path(__file__).resolve().parents[1]
OPSET = 18
# Of real models: a detector, a reader of text with 860 nodes, and a voice with loops and drawn lengths.
REAL = {"nudenet": "320n.onnx", "rapidocr-onnxruntime": "ch_PP-OCRv4_rec_infer.onnx", "silero-vad": "16k_op15.onnx"}
_SUBREAPER = 36

_MAKE = """
import sys
sys.path.insert(0, sys.argv[1])
import onnx
from verified_models import MODELS
onnx.save(MODELS[sys.argv[2]](), sys.argv[3])
"""
_DRAW = """
import sys
import numpy as np
import onnxruntime
import splitgraph
from splitgraph.verification.inputs.input_maker import InputMaker
session = onnxruntime.InferenceSession(sys.argv[1])
maker, sizes = InputMaker(splitgraph.infer(sys.argv[1])), []
for case in range(3):
    for attempt in range(8):
        inputs, chosen = maker.draw(case, attempt, sizes)
        try:
            session.run(None, inputs)
        except Exception:  # drawn sizes may not fit
            continue
        sizes.append(chosen)
        np.savez(f"{sys.argv[2]}/inputs_{case}.npz", **inputs)
        break
"""
_RUN_BOTH = """
import glob, sys
import numpy as np
import onnxruntime
cases = [dict(np.load(path)) for path in sorted(glob.glob(f"{sys.argv[3]}/inputs_*.npz"))]
for path in sys.argv[1:3]:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    for case in cases:
        session.run(None, case)
    del session
"""


class Cost(NamedTuple):
    """CPU seconds of a command and all of its processes, wall seconds, and what it printed."""

    cpu: float
    wall: float
    printed: str


def adopt_orphans() -> None:
    """Become the parent of processes that outlive theirs, so that their time counts. Only Linux has this."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)


def cost(command: Sequence[str], tree: Path = ROOT) -> Cost:
    """Run a command and wait for everything that it started. Raises CalledProcessError if it fails."""
    before, began = getrusage(RUSAGE_CHILDREN), time.monotonic()
    environment = {**ALONE, "PYTHONPATH": str(tree)}
    # Python looks for modules in the current folder first.
    done = subprocess.run(command, env=environment, cwd=tree, capture_output=True, text=True, check=True)
    wall = time.monotonic() - began
    while True:
        try:
            os.wait()
        except ChildProcessError:
            break
    after = getrusage(RUSAGE_CHILDREN)
    return Cost(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime, wall, done.stdout)


def measured(source: Path, folder: Path, runs: int, tree: Path) -> Mapping[str, list[Cost]]:
    """Return the costs of each command on a model."""
    python, result = sys.executable, str(folder / "result.onnx")
    upgrade = [python, "-m", "splitgraph", "upgrade", str(source), "--opset", str(OPSET), "--force", "-o", result]
    # Modules are compiled before, as in an installation.
    cost(upgrade, tree)
    subprocess.run([python, "-c", _DRAW, str(source), str(folder)], check=True, cwd=ROOT)
    commands = {
        "upgrade": upgrade,
        "runs": [python, "-c", _RUN_BOTH, str(source), result, str(folder)],
        "no verify": [*upgrade, "--no-verify"],
    }
    costs: dict[str, list[Cost]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            costs[name].append(cost(command, tree))
    return costs


def models(wanted: Sequence[str], cache: Path | None, folder: Path) -> Iterator[tuple[str, Path]]:
    """Yield the name and the file of each model, made or fetched."""
    for name in ("detector", "transformer", "decoder", "small"):
        if not wanted or name in wanted:
            path = folder / f"{name}.onnx"
            subprocess.run([sys.executable, "-c", _MAKE, str(ROOT / "benchmarks"), name, str(path)], check=True)
            yield name, path
    if cache is None:
        return
    campaign = _campaign()
    for entry in campaign.entries():
        end = REAL.get(entry["package"])
        if end is not None and entry["file"].endswith(end) and (not wanted or entry["package"] in wanted):
            yield entry["package"], campaign.fetch(entry, cache)


def _campaign() -> Any:
    folder = ROOT / "tests" / "campaigns"
    sys.path.insert(0, str(folder))
    found = importlib.util.spec_from_file_location("real_models", folder / "real_models.py")
    assert found is not None and found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def row(name: str, costs: Mapping[str, list[Cost]]) -> str:
    """Return a line of the table."""
    least = {kind: min(each.cpu for each in all_of_it) for kind, all_of_it in costs.items()}
    noise = max(each.cpu for each in costs["upgrade"]) / least["upgrade"]
    seconds = " | ".join(f"{least[kind]:.2f} s" for kind in costs)
    wall = min(each.wall for each in costs["upgrade"])
    ratio = least["upgrade"] / (least["runs"] + least["no verify"])
    return f"| {name} | {seconds} | {ratio:.2f} | {noise:.2f} | {wall:.1f} s |"


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="*", metavar="MODEL")
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--cache", type=Path, help="the folder of tests/campaigns/real_models.py")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the checkout whose splitgraph upgrades")
    parser.add_argument("--many", action="store_true", help="verify all models of models/ in one process instead")
    parser.add_argument("--opset", type=int, default=OPSET, help="of --many")
    options = parser.parse_args()
    if options.many:
        verify_many(options.opset)
        return
    adopt_orphans()
    print("| model | upgrade | both runs | upgrade --no-verify | ratio | worst to best | wall |", flush=True)
    print("|---" * 7 + "|", flush=True)
    with tempfile.TemporaryDirectory(prefix="splitgraph-benchmark-") as name:
        for title, path in models(options.models, options.cache, Path(name)):
            folder = Path(name) / title
            folder.mkdir()
            costs = measured(path, folder, options.runs, options.tree)
            print(row(title, costs), flush=True)
            print("\n".join(f"  {line}" for line in costs["upgrade"][-1].printed.splitlines()), file=sys.stderr)


# Many models in one process ------------------------------------------------------------------------------------------


def verify_many(opset: int) -> None:
    """Measure with kept processes first: the imports of this process are then paid."""
    from splitgraph.processes import kept_processes

    kept = _verified(opset)
    kept_processes.IDLE_SECONDS = 0
    new = _verified(opset)
    for name, (found, total, spent, runs) in (("kept", kept), ("new", new)):
        each = 1000 * total / len(found)
        print(f"{name}: {len(found)} models, {total:.1f} s, {each:.0f} ms each; {runs} runs of engines, {spent:.1f} s")
    # How many sets of values there was time for is no verdict: a new process takes some of the time.
    verdicts = [{name: getattr(one, "verdict", None) for name, one in found.items()} for found, *_ in (kept, new)]
    if verdicts[0] != verdicts[1]:
        sys.exit("the verdicts differ")


def _verified(opset: int) -> tuple[dict[str, object], float, float, int]:
    """Return the verification of each model, the seconds, those in engines, and how many runs of engines there were."""
    import splitgraph
    from splitgraph.verification.engines import engine_process

    spent = [0.0, 0]
    run_worker = engine_process._run_worker

    def timed(*job: Any) -> str:
        began = time.perf_counter()
        try:
            return run_worker(*job)
        finally:
            spent[0] += time.perf_counter() - began
            spent[1] += 1

    engine_process._run_worker = timed
    found: dict[str, object] = {}
    began = time.perf_counter()
    for path in sorted((ROOT / "models").glob("*.onnx")):
        try:
            found[path.name] = splitgraph.convert(path, opset=opset, verify=True).verification
        except splitgraph.ConversionError:
            found[path.name] = None
    total = time.perf_counter() - began
    engine_process._run_worker = run_worker
    return found, total, spent[0], int(spent[1])


if __name__ == "__main__":
    main()
