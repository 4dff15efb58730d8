"""Work for worker processes, as they import it: what goes well, and every way to go wrong."""

from __future__ import annotations

import os
import resource
import signal
import sys
import time
from typing import Any


class Unreadable:
    """An object that cannot be read where it is sent to."""

    def __reduce__(self) -> tuple[Any, ...]:
        return (int, ("no number",))


def do(message: tuple[str, Any]) -> Any:
    """Do what the first part of a message says, to the second part."""
    verb, subject = message
    if verb == "say":
        print("of no interest")
        return subject
    if verb == "tell":
        return os.getpid(), resource.getrlimit(getattr(resource, subject))[0]
    if verb == "crash":
        print("this is why", file=sys.stderr, flush=True)
        os.kill(os.getpid(), subject)
    if verb == "exit":
        os._exit(subject)
    if verb == "sleep":
        time.sleep(600)
    if verb == "ignore":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
    if verb == "take":
        return len(bytearray(subject))
    raise ValueError(f"nobody can {verb}")
