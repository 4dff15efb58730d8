"""End an engine process when the process that started it ends, so that no engine keeps running on its own."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable

_PR_SET_PDEATHSIG = 1


def end_with_parent(received: Callable[[str], object] = lambda line: None) -> None:
    """End this process as soon as its parent process ends.

    The parent holds the other end of stdin, a pipe. On Linux the kernel also ends this process, even while an engine
    keeps Python from running. received: takes each line that the parent writes, in a thread of its own.
    """
    killed_with_parent()
    threading.Thread(target=_end_with_stdin, args=(received,), daemon=True).start()


def killed_with_parent() -> None:
    """Have the kernel end this process when the thread that started it ends; only Linux does that."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_with_stdin(received: Callable[[str], object]) -> None:
    # Python's own stdin has a lock, which would block a process that ends by itself.
    held = b""
    while chunk := os.read(0, 65536):
        *lines, held = (held + chunk).split(b"\n")
        for line in lines:
            received(line.decode("utf-8"))
    os._exit(1)
