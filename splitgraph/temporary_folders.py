"""Temporary folders, which are removed even where their process is killed: then the next process removes them.

A process holds a lock on a file in each of its folders. The operating system gives the lock back however the process
ends. The id of a process would not do: containers and machines that share a folder each count processes of their own.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_PREFIX = "splitgraph-"
# Only a folder with this file in it was made here; other programs may use the prefix, too.
_OWNER = ".splitgraph-owner"

if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A private folder for temporary files; it is removed at the end, whatever happens. Raises OSError."""
    remove_abandoned(tempfile.gettempdir())
    # Windows removes no file that is still open; the system clears its folder for temporary files.
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name, _owned(Path(name)):
        yield Path(name)


@contextlib.contextmanager
def _owned(folder: Path) -> Iterator[None]:
    """Hold the lock that keeps others from removing a folder; without one, where there are no locks, nobody does."""
    made, owner = folder / f"{_OWNER}-new", folder / _OWNER
    descriptor = os.open(made, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        # Under its own name the file must never be seen without the lock.
        with contextlib.suppress(OSError):
            _lock(descriptor)
            made.rename(owner)
        yield
    finally:
        os.close(descriptor)


# Once in a process and folder: a folder for temporary files may have many in it.
@cache
def remove_abandoned(parent: str) -> None:
    """Remove the folders of processes that are gone. parent: the folder for temporary files."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if entry.name.startswith(_PREFIX) and _is_abandoned(entry):
                shutil.rmtree(entry.path, ignore_errors=True)


def _is_abandoned(entry: os.DirEntry[str]) -> bool:
    """True for a folder that was made here, by this user, in a process that has ended."""
    try:
        if not entry.is_dir(follow_symlinks=False):
            return False
        if hasattr(os, "getuid") and entry.stat(follow_symlinks=False).st_uid != os.getuid():
            return False
        descriptor = os.open(os.path.join(entry.path, _OWNER), os.O_RDWR | getattr(os, "O_NOFOLLOW", 0))
    except OSError:
        return False
    try:
        _lock(descriptor)
    except OSError:
        return False
    finally:
        os.close(descriptor)
    return True
