"""Start a Python process that runs a module of splitgraph, end it, and say how it ended.

This module imports neither onnx nor NumPy: `splitgraph doctor` must start where one of them is broken.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO


def command_of(module: str, *arguments: str) -> list[str]:
    """Return the command that runs a module."""
    return [sys.executable, "-m", module, *arguments]


def environment() -> dict[str, str]:
    """Return the environment of a new process: it finds the modules that this process finds, and none in the current
    folder of the user.
    """
    package_folder = str(Path(__file__).resolve().parents[3])
    made = {**os.environ, "PYTHONPATH": os.pathsep.join([package_folder, *filter(None, sys.path)])}
    # Each arena of malloc in glibc reserves 64 MiB of address space, for up to 8 arenas per core.
    made.setdefault("MALLOC_ARENA_MAX", "2")
    return made


def start(
    command: Sequence[str], environment: Mapping[str, str], folder: Path, stdout: int | IO[bytes], stderr: IO[bytes]
) -> subprocess.Popen[bytes]:
    """Start a process in a folder. Its stdin is a pipe: when this process ends, the pipe closes, which ends the new
    process (see `parent_process`).
    """
    return subprocess.Popen(
        command,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=stdout,
        stderr=stderr,
        cwd=folder,
        env=environment,
        start_new_session=True,
    )


def run_module(module: str, folder: Path, seconds: float) -> str:
    """Run a module of splitgraph on a folder, in its own process; return "" or why that did not end normally."""
    with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
        process = start(command_of(module, str(folder)), environment(), folder, stdout, stderr)
        try:
            status = _wait(process, max(seconds, 0.0))
        except subprocess.TimeoutExpired:
            return overtime(seconds)
        finally:
            kill(process)
            if process.stdin is not None:
                process.stdin.close()
    return describe_exit(status, folder / "stderr")


def overtime(seconds: float) -> str:
    """Return the text for a process that takes longer than so many seconds."""
    return f"did not finish within {seconds:.3g} seconds"


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int:
    """Wait like `Popen.wait`, which only looks every 50 ms if it has a limit: a tenth of the time of a small model."""
    if not hasattr(os, "pidfd_open"):
        return process.wait(seconds)
    deadline = time.monotonic() + seconds
    descriptor = os.pidfd_open(process.pid)
    try:
        poll = select.poll()
        poll.register(descriptor, select.POLLIN)
        poll.poll(1000 * seconds)
    finally:
        os.close(descriptor)
    return process.wait(max(deadline - time.monotonic(), 0.0))


def kill(process: subprocess.Popen[bytes], *, waits: bool = True) -> None:
    """End a process and the processes that it started. waits: until it has ended."""
    if process.poll() is not None:
        return
    if hasattr(os, "killpg"):
        os.killpg(process.pid, signal.SIGKILL)
    else:
        process.kill()
    if waits:
        process.wait()


def describe_exit(status: int, stderr: Path) -> str:
    """Return why a process did not end normally, with its last line on stderr; "" if it did."""
    if status == 0:
        return ""
    if status < 0:
        try:
            cause = f"crashed ({signal.Signals(-status).name})"
        except ValueError:
            cause = f"crashed (signal {-status})"
    else:
        cause = f"ended with exit status {status}"
    lines = [line.strip() for line in stderr.read_text("utf-8", "replace").splitlines() if line.strip()]
    return f"{cause}: {lines[-1][:300]}" if lines else cause
