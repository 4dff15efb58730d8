"""Run a module of splitgraph in a process of its own, and say how that process ended.

This module imports neither onnx nor NumPy: `splitgraph doctor` must start where one of them is broken.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path


def run_module(module: str, folder: Path, seconds: float) -> str:
    """Run a module of splitgraph on a folder, in its own process; return "" or why that did not end normally."""
    command = [sys.executable, "-m", module, str(folder)]
    package_folder = str(Path(__file__).resolve().parents[3])
    # The new process finds the modules that this process finds, and none in the current folder of the user.
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([package_folder, *filter(None, sys.path)])}
    # Each arena of malloc in glibc reserves 64 MiB of address space, for up to 8 arenas per core.
    environment.setdefault("MALLOC_ARENA_MAX", "2")
    with (folder / "stdout").open("wb") as stdout, (folder / "stderr").open("wb") as stderr:
        process = subprocess.Popen(
            command,
            # When this process ends, the pipe closes, which ends the new process (see `parent_process`).
            stdin=subprocess.PIPE,
            stdout=stdout,
            stderr=stderr,
            cwd=folder,
            env=environment,
            start_new_session=True,
        )
        try:
            status = _wait(process, max(seconds, 0.0))
        except subprocess.TimeoutExpired:
            return f"did not finish within {seconds:.3g} seconds"
        finally:
            _kill(process)
            if process.stdin is not None:
                process.stdin.close()
    return _describe_exit(status, folder / "stderr")


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


def _kill(process: subprocess.Popen[bytes]) -> None:
    """End a process and the processes that it started."""
    if process.poll() is None:
        if hasattr(os, "killpg"):
            os.killpg(process.pid, signal.SIGKILL)
        else:
            process.kill()
        process.wait()


def _describe_exit(status: int, stderr: Path) -> str:
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
