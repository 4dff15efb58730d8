"""What holds for this process: garbage collection while a verb works, signals, standard output, its end.

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
    """Look for no reference cycles for a while.

    A model is a million small objects of which hardly any are part of a cycle; looking for some again and again takes a
    third of the time of its inference. What the caller had set is set again afterwards.
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
    """Standard output cannot be written, as on a full disk: nothing can be told there."""


@contextmanager
def writing() -> Iterator[None]:
    """Write to standard output in the block. Raises OutputError where that fails, BrokenPipeError where nobody reads it
    any more.
    """
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.errno, f"standard output cannot be written: {error.strerror}") from error


def killed_with_parent() -> None:
    """Let the kernel kill this process when the thread that started it ends, whatever it does. Only Linux has this."""
    if sys.platform == "linux":
        import ctypes
        import signal

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
