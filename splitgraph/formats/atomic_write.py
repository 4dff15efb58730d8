"""Write files so that each is either the old one or the new one, whole, whatever happens in between.

That holds in a power cut, too, if something would be lost: before an old file is replaced, the new one is on the disk.
Files that replace nothing are written to the disk when the system likes, as with other programs: for a model of 28 MB,
waiting for the disk would be a quarter of the time of a conversion.

A process that is killed leaves files called `.splitgraph-…` behind. The next one that writes to the folder removes
them.
"""

from __future__ import annotations

import contextlib
import errno
import filecmp
import os
import shutil
import stat
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import BinaryIO

from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats.recognition import model_error, shown, system_reason
from splitgraph.processes.folders import owned, taken_over

# What file systems answer that cannot sync a folder; there is nothing to sync on them.
_FOLDER_SYNC_UNSUPPORTED = {errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS}

_BINARY: int = getattr(os, "O_BINARY", 0)
_PREFIX, _OWNER = ".splitgraph-", ".owner"


@dataclass(frozen=True, slots=True)
class _Staged:
    """A file that is written in full beside its target.

    backup: the name under which the old file stays until all files are in place. replaces: there is an old file.
    is_copy: the file is a copy of another file, and another program may write the same copy.
    """

    target: Path
    temporary: Path
    backup: Path
    replaces: bool
    is_copy: bool


class WriteTogether:
    """Several files that are written together: all of them appear under their names, or none does.

    Used as a context: `with WriteTogether() as files: files.open(path) ...`. Leaving the block normally puts every
    file in its place; leaving it with any exception, KeyboardInterrupt included, removes every trace. Raises OSError.

    kept: files that are never replaced, those of the model that was read. overwrite: whether other files are; without
    it, a file that somebody else writes under one of the names meanwhile is as one that was there before.
    """

    def __init__(self, kept: Collection[Path] = (), *, overwrite: bool = True) -> None:
        self._kept = kept
        self._overwrite = overwrite
        self._staged: list[_Staged] = []
        self._new_folders: list[Path] = []
        # What the names of all temporary files in a folder begin with.
        self._marks: dict[Path, str] = {}
        self._owners = contextlib.ExitStack()

    def __enter__(self) -> WriteTogether:
        return self

    def __exit__(self, kind: object, error: object, traceback: object) -> None:
        try:
            if kind is None:
                self._put_in_place()
                self._new_folders.clear()
        finally:
            self._clean_up()

    @contextlib.contextmanager
    def open(self, target: Path, *, copied: Path | None = None) -> Iterator[BinaryIO]:
        """Open a binary file that will be `target`. Its folder is made if need be; an overwritten file keeps its
        permissions.

        copied: the file that the new one copies; the new one has no permission that this file does not have. Raises
        ModelError (SG108) for a file that must not be replaced, here or if it has appeared by the end.
        """
        staged = self._stage(target, is_copy=copied is not None)
        replaces = staged.replaces
        with os.fdopen(os.open(staged.temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666), "wb") as file:
            if replaces:
                os.chmod(staged.temporary, stat.S_IMODE(target.stat().st_mode))
            elif copied is not None:
                os.chmod(staged.temporary, stat.S_IMODE(staged.temporary.stat().st_mode & copied.stat().st_mode))
            yield file
            if replaces:
                file.flush()
                os.fsync(file.fileno())

    def link(self, target: Path, other: Path) -> None:
        """Make `target` another name of a file. Raises ModelError as `open` does, and OSError if the file system cannot
        link them.
        """
        _link(other, self._stage(target, is_copy=True).temporary)

    def _stage(self, target: Path, *, is_copy: bool) -> _Staged:
        if target.exists() and any(kept.exists() and target.samefile(kept) for kept in self._kept):
            # Not every command that writes has --in-place.
            help = "Choose another name or folder with -o."
            raise model_error("SG108", "belongs to the model that was read, which would be lost", target, help=help)
        self._make_folder(target.parent)
        mark = f"{self._mark(target.parent)}-{len(self._staged)}"
        replaces = target.exists() and self._overwrite
        temporary, backup = target.parent / f"{mark}.tmp", target.parent / f"{mark}.old"
        staged = _Staged(target, temporary, backup, replaces, is_copy=is_copy)
        # Noted before it exists: an interrupt between the two must not leave it behind.
        self._staged.append(staged)
        return staged

    def _mark(self, folder: Path) -> str:
        if folder not in self._marks:
            remove_abandoned(os.path.realpath(folder))
            mark = f"{_PREFIX}{os.urandom(8).hex()}"
            self._owners.enter_context(owned(folder / f"{mark}{_OWNER}"))
            self._marks[folder] = mark
        return self._marks[folder]

    def _make_folder(self, folder: Path) -> None:
        missing = [parent for parent in (folder, *folder.parents) if not parent.exists()]
        for parent in reversed(missing):
            # It may be another name of one that was just made: "sub/.." is only there when "sub" is.
            if not parent.exists():
                self._new_folders.append(parent)
                parent.mkdir()

    def _put_in_place(self) -> None:
        """Give each file its name; after an error, no file has its new name, and the old files are back."""
        is_loss_possible = any(staged.replaces for staged in self._staged)
        try:
            for staged in self._staged:
                # A file that replaces another may refer to one that does not.
                if is_loss_possible and not staged.replaces:
                    _sync(staged.temporary)
            for staged in self._staged:
                if self._overwrite:
                    _replace(staged)
                else:
                    _put_where_nothing_is(staged)
            for folder in {staged.target.parent for staged in self._staged if is_loss_possible}:
                _sync_folder(folder)
        except BaseException as error:
            # A ModelError says that another program took one of the names. That program may already depend on a copy
            # that was put in place here.
            self._put_back(keeps_copies=isinstance(error, ModelError))
            raise

    def _put_back(self, *, keeps_copies: bool) -> None:
        """Give the old files their names again. keeps_copies: leave new copies of other files where they are."""
        for staged in self._staged[::-1]:
            if keeps_copies and staged.is_copy and not staged.replaces:
                continue
            # If the temporary file is still there, it was not renamed, so the target is the old file; unless both are
            # the same file.
            if staged.temporary.exists() and not _is_same(staged.temporary, staged.target):
                continue
            if staged.backup.exists():
                self._restore(staged)
            else:
                staged.target.unlink(missing_ok=True)

    def _restore(self, staged: _Staged) -> None:
        try:
            os.replace(staged.backup, staged.target)
        except OSError as error:
            # The only copy of the old file: it must outlive this.
            self._staged.remove(staged)
            raise OSError(
                error.errno, f"{error.strerror}; the old {staged.target.name} is now {staged.backup.name}"
            ) from error

    def _clean_up(self) -> None:
        with self._owners:
            for staged in self._staged:
                staged.temporary.unlink(missing_ok=True)
                staged.backup.unlink(missing_ok=True)
        for folder in reversed(self._new_folders):
            # Somebody else may have put a file there meanwhile.
            with contextlib.suppress(OSError):
                folder.rmdir()


# Once in a process and folder: there may be many models in it.
@cache
def remove_abandoned(folder: str) -> None:
    """Remove what processes left in a folder that were killed while they wrote to it."""
    with contextlib.suppress(OSError):
        names = [name for name in os.listdir(folder) if name.startswith(_PREFIX)]
        for owner in (name for name in names if _OWNER in name):
            with taken_over(os.path.join(folder, owner)) as is_ours:
                mark = owner.partition(_OWNER)[0]
                for name in (name for name in names if is_ours and name.startswith(mark) and name != owner):
                    os.unlink(os.path.join(folder, name))
            if is_ours:
                # Last: if this process is killed here, the next one removes the rest.
                os.unlink(os.path.join(folder, owner))


def _replace(staged: _Staged) -> None:
    """Give a file its name; the old file of that name, if there is one, stays reachable as the backup."""
    if staged.target.exists():
        try:
            _link(staged.target, staged.backup)
        except OSError:
            # Not every file system has hard links.
            shutil.copy2(staged.target, staged.backup)
    os.replace(staged.temporary, staged.target)


def _put_where_nothing_is(staged: _Staged) -> None:
    """Give a file its name, if no file has that name. Raises ModelError (SG108) if another program has just written a
    file of that name, unless both are copies of the same file.
    """
    try:
        _take_name(staged.temporary, staged.target)
    except FileExistsError:
        if staged.is_copy and _becomes_same(staged.temporary, staged.target):
            return
        raise model_error("SG108", "exists already: another program has just written it", staged.target) from None


def _becomes_same(temporary: Path, target: Path) -> bool:
    """Return True for a file with the same contents; an empty one that only takes the name gets a second to be
    replaced.
    """
    for _ in range(100):
        if target.stat().st_size or not temporary.stat().st_size:
            break
        time.sleep(0.01)
    return filecmp.cmp(temporary, target, shallow=False)


def _take_name(temporary: Path, target: Path) -> None:
    """Rename a file to a name that is free. Raises FileExistsError if the name is taken."""
    # No rename of the system refuses a taken name everywhere, but links do.
    try:
        _link(temporary, target)
    except FileExistsError:
        raise
    except OSError:
        # Not every file system has hard links. An empty file takes the name, and is replaced at once.
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            os.replace(temporary, target)
        except BaseException:
            target.unlink()
            raise
    else:
        temporary.unlink()


def _link(source: Path, target: Path) -> None:
    """As os.link, which not every system has; raises OSError there, too."""
    if not hasattr(os, "link"):
        raise OSError(errno.ENOTSUP, "this system has no hard links")
    os.link(source, target)


def _is_same(temporary: Path, target: Path) -> bool:
    return target.exists() and temporary.samefile(target)


def _sync(path: Path) -> None:
    """Write a file's contents to the disk. Windows does so only for a file that is open for writing."""
    descriptor = os.open(path, os.O_RDWR | _BINARY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _sync_folder(folder: Path) -> None:
    """Write the names in a folder to the disk, so that a rename survives a power cut. Windows has no such call."""
    if os.name == "nt":
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    except OSError as error:
        if error.errno not in _FOLDER_SYNC_UNSUPPORTED:
            raise
    finally:
        os.close(descriptor)


def writable_target(path: str | os.PathLike[str], overwrite: bool) -> Path:
    """Return the file to write, behind a symbolic link if the path is one; refuses what cannot be a model file. Raises
    OSError.
    """
    target = Path(os.path.realpath(path))
    if not target.parent.is_dir():
        raise model_error("SG109", f"the folder {shown(target.parent)} does not exist", path)
    if not os.path.lexists(target):
        return target
    mode = os.stat(target).st_mode
    if stat.S_ISDIR(mode):
        raise model_error("SG109", "is a folder", path)
    if not stat.S_ISREG(mode):
        raise model_error("SG109", "is not a regular file", path)
    if not overwrite:
        raise model_error("SG108", "exists already", path)
    if not os.access(target, os.W_OK):
        raise model_error("SG109", "is write-protected", path)
    return target


def write_text(text: str, path: Path, *, overwrite: bool, kept: Collection[Path] = ()) -> None:
    """Write a text in UTF-8; the folder is made if the path names a new one. kept: files that are not replaced, not
    even with `overwrite`: the models that were read.

    Raises ModelError: SG108 the file exists and overwrite is False, or the file is one of those kept; SG109 the file
    cannot be written.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with WriteTogether(kept, overwrite=overwrite) as files, files.open(writable_target(path, overwrite)) as file:
            file.write(text.encode("utf-8"))
    except OSError as error:
        raise model_error("SG109", f"cannot be written: {system_reason(error)}", path) from error
