"""Settings of this process: garbage collection while a verb works, signals, standard output, its end.

Modules that help texts do not need are imported late.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_PR_SET_PDEATHSIG = 1


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pause the search for reference cycles.

    A model has millions of small objects, and hardly any is part of a cycle. The repeated search takes a third of the
    time of an inference. At the end, the setting of the caller is restored.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


@contextmanager
def stopped_cleanly() -> Iterator[None]:
    """Turn signals that stop the process (`timeout`, a container, a closed terminal) into an exception, which ends
    engines and removes temporary files.
    """

    import signal
    import threading

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


class OutputError(OSError):
    """Raised if standard output cannot be written, for example on a full disk. No message can be shown there."""


@contextmanager
def writing() -> Iterator[None]:
    """Write to standard output in the block. Raises OutputError if that fails, and BrokenPipeError if nobody reads it
    any more.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.errno, f"standard output cannot be written: {error.strerror}") from error


def killed_with_parent() -> None:
    """Let the kernel kill this process when the thread that started it ends, for whatever reason. Only Linux can do
    this.
    """
    if sys.platform == "linux":
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
