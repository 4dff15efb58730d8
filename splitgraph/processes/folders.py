"""Temporary folders, the folder of the cache, and lock files.

A lock file says that a running process owns something: a temporary folder, or a file that is being written. A process
holds a lock on such a file. The operating system gives the lock back however the process ends, so that the
next process can remove what it left. The id of a process would not do: containers and machines that share a folder each
count processes of their own.
"""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

_PREFIX = "splitgraph-"
# Only a folder with this file in it was made here; other programs may use the prefix, too.
_OWNER = ".splitgraph-owner"


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """Make a private folder for temporary files, which is removed at the end. If this process is killed, the next
    process removes it. Raises OSError.
    """
    # `infer` needs no temporary folder, only locks.
    import tempfile

    remove_abandoned(tempfile.gettempdir())
    # Windows removes no file that is still open; the system clears its folder for temporary files.
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name, owned(Path(name, _OWNER)):
        yield Path(name)


# Once in a process and folder: a folder for temporary files may have many in it.
@cache
def remove_abandoned(parent: str) -> None:
    """Remove the folders of processes that are gone. parent: the folder for temporary files."""
    import shutil

    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not entry.name.startswith(_PREFIX) or not entry.is_dir(follow_symlinks=False):
                continue
            with taken_over(os.path.join(entry.path, _OWNER)) as is_ours:
                if is_ours:
                    shutil.rmtree(entry.path, ignore_errors=True)


def cache_folder() -> Path:
    """Return the folder in SPLITGRAPH_CACHE, or else `splitgraph` in the user's folder for caches. It may not exist."""
    named = os.environ.get("SPLITGRAPH_CACHE")
    if named:
        return Path(named)
    home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(home) / "splitgraph"


@contextlib.contextmanager
def owned(owner: Path) -> Iterator[None]:
    """Keep a file with a lock on it while the block runs. Without locks, there is no such file, and nobody else removes
    what belongs to it. Raises OSError if the file cannot be made.
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
    """Yield True if the process that made this file has ended and was of this user; nobody else gets True meanwhile."""
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
