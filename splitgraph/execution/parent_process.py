"""The end of a child process with its parent, however the parent ends: no engine goes on for nobody."""

from __future__ import annotations

import os
import signal
import sys
import threading

_PR_SET_PDEATHSIG = 1


def end_with_parent() -> None:
    """Let this process end when the one that started it has ended.

    The parent holds the other end of stdin, a pipe, and never writes to it. On Linux the kernel ends this process, too,
    even where an engine keeps Python from running.
    """
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    threading.Thread(target=_end_with_stdin, daemon=True).start()


def _end_with_stdin() -> None:
    # Past Python's own stdin, whose lock would be in the way when the process ends by itself.
    while os.read(0, 1):
        pass
    os._exit(1)
