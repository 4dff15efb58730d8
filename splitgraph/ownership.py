"""Files that say that a running process owns something: temporary folders, and files that are being written.

A process holds a lock on such a file. The operating system gives the lock back however the process ends, so that the
next process can see that the owner is gone, and remove what it left. The id of a process would not do: containers and
machines that share a folder each count processes of their own.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from pathlib import Path

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:

    def _lock(descriptor: int) -> None:
        try:
            import fcntl
        except ImportError:
            raise OSError("this system has no locks") from None
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def owned(owner: Path) -> Iterator[None]:
    """Have a file with a lock on it while the block runs. Where there are no locks, there is no such file, and nobody
    else removes what belongs to it. Raises OSError where no file can be made.
    """
    made = owner.with_name(f"{owner.name}-new")
    descriptor = os.open(made, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        # Under its own name the file must never be seen without the lock.
        with contextlib.suppress(OSError):
            _lock(descriptor)
            made.rename(owner)
        yield
    finally:
        os.close(descriptor)
        # The folder may be gone by now.
        for path in (made, owner):
            with contextlib.suppress(OSError):
                path.unlink()


@contextlib.contextmanager
def taken_over(owner: str) -> Iterator[bool]:
    """Whether the process that made this file has ended, and was of this user; nobody else gets True meanwhile."""
    try:
        descriptor = os.open(owner, os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        yield False
        return
    try:
        is_ours = not hasattr(os, "getuid") or os.fstat(descriptor).st_uid == os.getuid()
        if is_ours:
            _lock(descriptor)
    except OSError:
        is_ours = False
    try:
        yield is_ours
    finally:
        os.close(descriptor)
