"""What inferring and upgrading cost on models as users have them, beside onnx reading, inferring and writing them.

python benchmarks/real_models.py CACHE [RUNS]

CACHE: the folder of `tests/campaigns/real_models.py`, with the models that it has fetched; exports of `models/` with
local functions are measured as well. Infer is held against onnx.load and onnx's inference with data_prop, upgrade and
save against onnx.load and onnx.save. Warm: CPU time in a process that has done the work before, the best of RUNS.
Cold: CPU time of whole processes. Printed are the medians of the ratios and the ten worst.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
# Older models are brought here; newer ones are read and written as they are.
OPSET = 21
PAIRS = {"infer": "onnx's inference", "upgrade": "load and save"}

_SETUP = """
import sys
source, target, goal = sys.argv[1], sys.argv[2], int(sys.argv[3])
"""
_WORK = {
    "infer": "import splitgraph\ndef work(): return splitgraph.infer(source)",
    "onnx's inference": "import onnx, onnx.shape_inference\n"
    "def work(): return onnx.shape_inference.infer_shapes(onnx.load(source), data_prop=True)",
    "upgrade": "import splitgraph\ndef work(): return splitgraph.convert(source, opset=goal).save(target)",
    "load and save": "import onnx\ndef work(): return onnx.save(onnx.load(source), target)",
}
_MEASURE = """
import time
runs = int(sys.argv[4])
work()
best = None
for _ in range(runs):
    start = time.process_time()
    work()
    seconds = time.process_time() - start
    best = seconds if best is None else min(best, seconds)
print(best)
"""


def cpu_seconds(code: str, *arguments: object) -> tuple[float, str] | None:
    """CPU time of a process that runs the code, and what it prints; None where it fails."""
    with tempfile.TemporaryFile("w+") as printed:
        command = [sys.executable, "-c", _SETUP + code, *map(str, arguments)]
        with subprocess.Popen(command, stdout=printed, stderr=subprocess.DEVNULL, cwd=ROOT) as process:
            _, status, used = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
        printed.seek(0)
        return (used.ru_utime + used.ru_stime, printed.read()) if process.returncode == 0 else None


def measured(model: Path, folder: Path, runs: int) -> Mapping[str, tuple[float, float]]:
    """Warm and cold seconds of each work; what fails is left out, such as the upgrade of a model that is refused."""
    found = {}
    for name, work in _WORK.items():
        given = model, folder / "new.onnx", _goal(model)
        cold = cpu_seconds(work + "\nwork()", *given)
        warm = None if cold is None else cpu_seconds(work + _MEASURE, *given, runs)
        if cold is not None and warm is not None:
            found[name] = float(warm[1]), cold[0]
    return found


def _goal(model: Path) -> int:
    import onnx

    imports = onnx.load(str(model), load_external_data=False).opset_import
    return max([OPSET, *(item.version for item in imports if item.domain in ("", "ai.onnx"))])


def main() -> None:
    """Measure every model, and print the table."""
    cache, runs = Path(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 3
    listed = json.loads((ROOT / "tests" / "campaigns" / "real_models.json").read_text())
    models = {f"{item['package']}: {Path(item['file']).name}": cache / f"{item['sha256'][:16]}.onnx" for item in listed}
    models |= {path.name: path for path in sorted((ROOT / "models").glob("*.dynamo.onnx"))}
    with tempfile.TemporaryDirectory(prefix="splitgraph-benchmark-") as folder:
        found = {name: measured(path, Path(folder), runs) for name, path in models.items() if path.exists()}
    print(f"{len(found)} models")
    for ours, theirs in PAIRS.items():
        both = {name: seconds for name, seconds in found.items() if ours in seconds and theirs in seconds}
        for place, kind in enumerate(("warm", "cold")):
            ratios = {name: seconds[ours][place] / seconds[theirs][place] for name, seconds in both.items()}
            print(f"\n{ours} / {theirs}, {kind}: median {median(ratios.values()):.2f} of {len(ratios)}")
            for name in sorted(ratios, key=ratios.__getitem__, reverse=True)[:10]:
                one, other = (1000 * both[name][which][place] for which in (ours, theirs))
                print(f"  {ratios[name]:6.2f}  {one:8.1f} ms  {other:8.1f} ms  {name}")


if __name__ == "__main__":
    main()
