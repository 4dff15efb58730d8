"""How a process ends: it cleans up after a signal, and it does not outlive the process that started it.

Every command imports this module, so it imports little.
"""

from __future__ import annotations

import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_PR_SET_PDEATHSIG = 1


@contextmanager
def stopped_cleanly() -> Iterator[None]:
    """Turn signals that stop the process (`timeout`, a container, a closed terminal) into an exception, which ends
    engines and removes temporary files.
    """

    def stop(number: int, _: object) -> None:
        raise SystemExit(128 + number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    asked = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    # Ignored signals, as under `nohup`, stay ignored.
    earlier = {number: signal.getsignal(number) for number in asked if signal.getsignal(number) is signal.SIG_DFL}
    for number in earlier:
        signal.signal(number, stop)
    try:
        yield
    finally:
        for number, handler in earlier.items():
            signal.signal(number, handler)


def killed_with_parent() -> None:
    """Let the kernel kill this process when the thread that started it ends, whatever it does. Only Linux has this."""
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
