"""What starting the program costs: CPU time of whole processes, beside that of `python -c "import click"`.

python benchmarks/startup.py [RUNS]

The commands take turns, a run each, so that what slows the machine down for a while slows all of them. A ratio is the
median of the ratios within a turn.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from alone import ALONE

MODEL = str(Path(__file__).resolve().parents[1] / "models" / "split13_equal.onnx")
# What the installed script `splitgraph` does.
SCRIPT = "import sys; from splitgraph.cli import main; sys.exit(main())"
UNIT = "import click"
COMMANDS: Mapping[str, Sequence[str]] = {
    'python -c "pass"': ("pass",),
    'python -c "import click"': (UNIT,),
    "splitgraph --version": (SCRIPT, "--version"),
    "splitgraph --help": (SCRIPT, "--help"),
    "splitgraph infer --help": (SCRIPT, "infer", "--help"),
    "splitgraph upgrade --help": (SCRIPT, "upgrade", "--help"),
    "splitgraph explain SG203": (SCRIPT, "explain", "SG203"),
    "splitgraph infer MODEL": (SCRIPT, "infer", MODEL),
    "splitgraph infer MODEL --json": (SCRIPT, "infer", MODEL, "--json"),
    'python -c "import onnx"': ("import onnx",),
}


class Row(NamedTuple):
    """What a command costs: CPU milliseconds, and their ratio to importing click."""

    command: str
    milliseconds: float
    ratio: float


def measure(runs: int) -> list[Row]:
    """The medians of each command."""
    for command in COMMANDS.values():
        # Not counted: the first run compiles what it imports.
        _run(command)
    turns = [{name: _run(command) for name, command in COMMANDS.items()} for _ in range(runs)]
    unit = next(name for name, command in COMMANDS.items() if command == (UNIT,))
    return [
        Row(
            name,
            1000 * median(turn[name] for turn in turns),
            median(turn[name] / turn[unit] for turn in turns),
        )
        for name in COMMANDS
    ]


def _run(command: Sequence[str]) -> float:
    """CPU seconds of one run in a process of its own. Raises CalledProcessError where that fails."""
    arguments = [sys.executable, "-c", *command]
    with subprocess.Popen(arguments, stdout=subprocess.DEVNULL, env=ALONE) as process:
        # Not `resource.getrusage`, which adds all children up.
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, arguments)
    return used.ru_utime + used.ru_stime


def _print_table(rows: Sequence[Row]) -> None:
    print("| command | CPU ms | ratio to importing click |\n|---|---|---|")
    for row in rows:
        print(f"| `{row.command}` | {row.milliseconds:.0f} | {row.ratio:.2f} |")


if __name__ == "__main__":
    _print_table(measure(int(sys.argv[1]) if len(sys.argv) > 1 else 21))
