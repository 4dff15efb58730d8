"""The most memory that a process holds, measured of that process and of no other."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Starts a command and prints its exit status and the most that it held. It stands between the tests and the command:
# Linux counts what a process held before `exec` as the command's, and the tests themselves hold hundreds of megabytes.
_MEASURE = """
import os, subprocess, sys
child = subprocess.Popen(sys.argv[1:], stdout=subprocess.DEVNULL)
_, status, usage = os.wait4(child.pid, 0)
child.returncode = os.waitstatus_to_exitcode(status)
print(child.returncode, usage.ru_maxrss)
"""


def run_python(arguments: Sequence[str], folder: Path) -> tuple[int, int]:
    """The exit status of Python with these arguments in a folder, and the most bytes that it held."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)])}
    measured = subprocess.run(
        [sys.executable, "-c", _MEASURE, sys.executable, *arguments],
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    status, held = map(int, measured.stdout.split())
    # Linux counts kibibytes, macOS bytes.
    return status, held * (1 if sys.platform == "darwin" else 1024)
