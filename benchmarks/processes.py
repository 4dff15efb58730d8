"""Measuring a tool on a model: a process for each run, without what it takes to start and import, and with it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import metadata
from pathlib import Path
from statistics import median
from typing import NamedTuple

from alone import ALONE

PROGRAM = """
import resource, sys, time
resource.setrlimit(resource.RLIMIT_AS, ({most}, {most}))
{imports}
source, target = sys.argv[1:]
def memory(what):
    # Not ru_maxrss, which begins with the memory of the process that started this one. Linux only.
    return next(line.split()[1] for line in open("/proc/self/status") if line.startswith(what))
before = memory("VmRSS")
start = time.process_time()
{work}
seconds = time.process_time() - start
print(seconds, time.process_time(), memory("VmHWM"), before)
"""
# For a tool that asks onnx for schemas of operators: onnx registers them, in 12 ms, when the first is asked for.
ONNX = "import onnx; onnx.defs.get_schema('Add'); "
# Seconds after which a run counts as failed.
PATIENCE = 300
# Bytes of address space: a model that takes more counts as failed, and does not take the machine's memory.
_MOST_MEMORY = 6 * 2**30
# Seconds after which one run is enough.
_LONG = 10


class Tool(NamedTuple):
    """A way to treat a model: package, what is imported before the clock starts, what is measured."""

    package: str
    module: str
    imports: str
    work: str


class Cost(NamedTuple):
    """CPU seconds (median) and peak memory in MB (highest) of the runs: seconds of the work, and of the whole process;
    memory of the process, and beyond its imports.
    """

    seconds: float
    whole: float
    memory: float
    beyond: float


class Result(NamedTuple):
    """What a tool cost on a model, or the last line of what it said when it failed; the file that it wrote."""

    cost: Cost | str
    written: Path


def measure_costs(
    tools: Mapping[str, Tool], source: Path, folder: Path, runs: int, patience: int = PATIENCE
) -> dict[str, Result]:
    """The result of each tool on a model, by name. They take turns, a run each: what slows a machine down for some
    seconds slows all of them.
    """
    written = {name: folder / f"written-{index}.onnx" for index, name in enumerate(tools)}
    rounds: dict[str, list[Cost]] = {name: [] for name in tools}
    failed: dict[str, str] = {}
    for tool in tools.values():
        _compile(tool.imports)
    for _ in range(runs):
        for name, tool in tools.items():
            if name in failed or any(done.seconds > _LONG for done in rounds[name]):
                continue
            done = _run(tool, source, written[name], patience)
            if isinstance(done, str):
                failed[name] = done
            else:
                rounds[name].append(done)
    costs = {name: failed[name] if name in failed else _together(rounds[name]) for name in tools}
    return {name: Result(cost, written[name]) for name, cost in costs.items()}


def _together(rounds: Sequence[Cost]) -> Cost:
    seconds, whole, memory, beyond = zip(*rounds, strict=True)
    return Cost(median(seconds), median(whole), max(memory), max(beyond))


def _run(tool: Tool, source: Path, target: Path, patience: int) -> Cost | str:
    program = PROGRAM.format(imports=tool.imports, work=tool.work, most=_MOST_MEMORY)
    # Each writes a new file: what it costs to write over an old one depends on whether that is kept meanwhile.
    target.unlink(missing_ok=True)
    try:
        done = subprocess.run(
            [sys.executable, "-c", program, source, target],
            capture_output=True,
            text=True,
            check=False,
            timeout=patience,
            env=ALONE,
        )
    except subprocess.TimeoutExpired:
        return f"more than {patience} s"
    if done.returncode:
        said = done.stderr.strip().splitlines()
        return said[-1] if said else f"exit {done.returncode}"
    work, process, peak, before = map(float, done.stdout.split()[-4:])
    return Cost(work, process, peak / 1024, (peak - before) / 1024)


@cache
def _compile(imports: str) -> None:
    """Let a process that is not measured compile and keep what is imported; what goes wrong is said by the next one."""
    subprocess.run([sys.executable, "-c", imports], capture_output=True, check=False, timeout=PATIENCE, env=ALONE)


def version_of(tool: Tool) -> str:
    """The package with its version."""
    try:
        return f"{tool.package} {metadata.version(tool.package)}"
    except metadata.PackageNotFoundError:
        return tool.package
