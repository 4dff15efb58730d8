"""Temporary folders, which are removed even where their process is killed: then the next process removes them."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from splitgraph.ownership import owned, taken_over

_PREFIX = "splitgraph-"
# Only a folder with this file in it was made here; other programs may use the prefix, too.
_OWNER = ".splitgraph-owner"


@contextlib.contextmanager
def temporary_folder() -> Iterator[Path]:
    """A private folder for temporary files; it is removed at the end, whatever happens. Raises OSError."""
    remove_abandoned(tempfile.gettempdir())
    # Windows removes no file that is still open; the system clears its folder for temporary files.
    with tempfile.TemporaryDirectory(prefix=_PREFIX, ignore_cleanup_errors=True) as name, owned(Path(name, _OWNER)):
        yield Path(name)


# Once in a process and folder: a folder for temporary files may have many in it.
@cache
def remove_abandoned(parent: str) -> None:
    """Remove the folders of processes that are gone. parent: the folder for temporary files."""
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not entry.name.startswith(_PREFIX) or not entry.is_dir(follow_symlinks=False):
                continue
            with taken_over(os.path.join(entry.path, _OWNER)) as is_ours:
                if is_ours:
                    shutil.rmtree(entry.path, ignore_errors=True)
