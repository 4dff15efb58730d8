"""End an engine process when the process that started it ends, so that no engine keeps running on its own."""

from __future__ import annotations

import os
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """End this process as soon as its parent process ends.

    The parent holds the other end of stdin, a pipe, and never writes to it. On Linux the kernel also ends this process,
    even while an engine keeps Python from running.
    """
    killed_with_parent()
    threading.Thread(target=_end_with_stdin, daemon=True).start()


def killed_with_parent() -> None:
    """Have the kernel end this process when the thread that started it ends; only Linux does that."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def _end_with_stdin() -> None:
    # Python's own stdin has a lock, which would block a process that ends by itself.
    while os.read(0, 1):
        pass
    os._exit(1)
