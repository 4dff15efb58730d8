"""The loop inside a worker process: take a message, do the work, answer (see `worker_process`).

Messages come from stdin, answers go to stdout. The process ends when stdin ends, even while it works.
"""

from __future__ import annotations

import contextlib
import gc
import mmap
import os
import pickle
import queue
import signal
import struct
import sys
import threading
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import IO, Any, NamedTuple

from splitgraph.processes.this_process import killed_with_parent, stopped_cleanly

# The first line of the process. What modules print while Python starts comes before it.
READY = b"splitgraph is ready\n"
# The process says that it took a message; the next thing that it says is the answer.
BEGAN = b"began"
# A process that holds so many bytes more than when it started takes no other message.
_MOST_HELD = 2**30
# Seconds after the time limit at which the process ends itself, because its parent may have been killed.
_SECONDS_TOO_LATE = 5
_LENGTH = struct.Struct("!Q")


class ProcessLimits(NamedTuple):
    """The limits for the work on one message.

    seconds: None for no limit. address_space: bytes, in addition to what earlier messages left. data: bytes that the
    process and each of its children may allocate. Only Linux enforces both; 0 leaves the limit as it is.
    """

    seconds: float | None = None
    address_space: int = 0
    data: int = 0


def write_message(message: bytes, stream: IO[bytes]) -> None:
    """Write a message after its length."""
    stream.write(_LENGTH.pack(len(message)))
    stream.write(message)
    stream.flush()


def read_message(stream: IO[bytes]) -> bytes:
    """Read a message that `write_message` wrote. Raises EOFError if the stream ends before the message does."""
    head = stream.read(_LENGTH.size)
    if len(head) == _LENGTH.size:
        (length,) = _LENGTH.unpack(head)
        message = stream.read(length)
        if len(message) == length:
            return message
    raise EOFError


def serve(work: str, *, cleans_up: bool) -> None:
    """Do the work on each message until the parent ends, or much memory is held.

    work: "module:function", which takes a message and returns the answer. cleans_up: whether SIGTERM removes temporary
    files.
    """
    killed_with_parent()
    stdin, answers = _take_streams()
    messages: queue.SimpleQueue[bytes] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(stdin, messages), daemon=True).start()
    module, _, name = work.partition(":")
    function: Callable[[Any], Any] = getattr(import_module(module), name)
    at_start = _used_memory()
    is_last = False
    with stopped_cleanly() if cleans_up else contextlib.nullcontext():
        answers.write(READY)
        answers.flush()
        while not is_last:
            message = messages.get()
            write_message(BEGAN, answers)
            # Objects from before the message are no garbage of its work.
            gc.freeze()
            subject, limits = pickle.loads(message)
            _limit(limits, _used_memory().size - at_start.size)
            answer = function(subject)
            gc.collect()
            if hasattr(signal, "alarm"):
                signal.alarm(0)
            sys.stdout.flush()
            sys.stderr.flush()
            is_last = _used_memory().resident - at_start.resident >= _MOST_HELD
            write_message(pickle.dumps((answer, is_last)), answers)
            del message, subject, answer


def _take_streams() -> tuple[IO[bytes], IO[bytes]]:
    """Return the streams of messages and answers. What libraries print goes to stderr, and they can read nothing."""
    stdin, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return stdin, answers


def _read(stdin: IO[bytes], messages: queue.SimpleQueue[bytes]) -> None:
    while True:
        try:
            messages.put(read_message(stdin))
        except EOFError:
            os._exit(0)


def _limit(limits: ProcessLimits, left: int) -> None:
    """Limit this process. left: how many bytes of address space earlier messages left.

    macOS does not enforce a limit of memory, and Windows has none.
    """
    if limits.seconds is not None and hasattr(signal, "alarm"):
        signal.alarm(max(int(limits.seconds), 0) + _SECONDS_TOO_LATE)
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "darwin":
        return
    wanted = {
        resource.RLIMIT_AS: limits.address_space and limits.address_space + left,
        resource.RLIMIT_DATA: min(limits.data, sys.maxsize),
    }
    for kind, most in wanted.items():
        if most:
            _, hard = resource.getrlimit(kind)
            resource.setrlimit(kind, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


class _Memory(NamedTuple):
    """The memory of this process in bytes; 0 if the system does not say it.

    size: of the address space. resident: the part in the memory of the machine.
    """

    size: int = 0
    resident: int = 0


def _used_memory() -> _Memory:
    try:
        size, resident = Path("/proc/self/statm").read_text("ascii").split()[:2]
        return _Memory(int(size) * mmap.PAGESIZE, int(resident) * mmap.PAGESIZE)
    except OSError:
        return _Memory()
