"""Measuring a tool on a model: a process for each run, imports paid before the clock starts."""

from __future__ import annotations

import subprocess
import sys
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import NamedTuple

PROGRAM = """
import sys, time
import onnx
{imports}
source, target = sys.argv[1:]
# onnx registers its operators, in 12 ms, when the first is asked for, which every tool here does.
onnx.defs.get_schema("Add")
start = time.process_time()
{work}
seconds = time.process_time() - start
# Not ru_maxrss, which begins with the memory of the process that started this one. Linux only.
peak = next(line.split()[1] for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(seconds, peak)
"""
# Seconds after which a run counts as failed.
PATIENCE = 300


class Tool(NamedTuple):
    """A way to treat a model: package, what is imported before the clock starts, what is measured."""

    package: str
    module: str
    imports: str
    work: str


class Cost(NamedTuple):
    """CPU seconds (median) and peak memory in MB (highest) of the runs."""

    seconds: float
    memory: float


def measure_cost(tool: Tool, source: Path, target: Path, runs: int) -> Cost | str:
    """The cost of a tool on a model; the last line of what it says when it fails."""
    program = PROGRAM.format(imports=tool.imports, work=tool.work)
    seconds, memory = [], 0.0
    for _ in range(runs):
        try:
            done = subprocess.run(
                [sys.executable, "-c", program, source, target],
                capture_output=True,
                text=True,
                check=False,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired:
            return f"more than {PATIENCE} s"
        if done.returncode:
            said = done.stderr.strip().splitlines()
            return said[-1] if said else f"exit {done.returncode}"
        cpu, kilobytes = done.stdout.split()[-2:]
        seconds.append(float(cpu))
        memory = max(memory, float(kilobytes) / 1024)
        if seconds[0] > 10:
            break
    return Cost(median(seconds), memory)


def version_of(tool: Tool) -> str:
    """The package with its version."""
    try:
        return f"{tool.package} {metadata.version(tool.package)}"
    except metadata.PackageNotFoundError:
        return tool.package
