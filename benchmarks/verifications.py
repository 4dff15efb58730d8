"""Many models converted and verified in one process, with engine processes that are kept and with new ones.

python benchmarks/verifications.py [OPSET]

Prints for both: seconds in total, and how many of them passed in engine processes, their start included. The verdicts
must be the same.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import splitgraph
from splitgraph.processes import kept_processes
from splitgraph.verification.engines import engine_process

MODELS = Path(__file__).resolve().parent.parent / "models"


def verified(opset: int) -> tuple[dict[str, object], float, float, int]:
    """The verification of each model, the seconds, those in engines, and how many runs of engines there were."""
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
    for path in sorted(MODELS.glob("*.onnx")):
        try:
            found[path.name] = splitgraph.convert(path, opset=opset, verify=True).verification
        except splitgraph.ConversionError:
            found[path.name] = None
    total = time.perf_counter() - began
    engine_process._run_worker = run_worker
    return found, total, spent[0], int(spent[1])


def main() -> None:
    """Measure with kept processes first: the imports of this process are then paid."""
    opset = int(sys.argv[1]) if len(sys.argv) > 1 else 18
    kept = verified(opset)
    kept_processes.IDLE_SECONDS = 0
    new = verified(opset)
    for name, (found, total, spent, runs) in (("kept", kept), ("new", new)):
        each = 1000 * total / len(found)
        print(f"{name}: {len(found)} models, {total:.1f} s, {each:.0f} ms each; {runs} runs of engines, {spent:.1f} s")
    if kept[0] != new[0]:
        sys.exit("the verdicts differ")


if __name__ == "__main__":
    main()
