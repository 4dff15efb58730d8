"""The machine: processors, memory, and the folders that splitgraph writes to."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from splitgraph.execution.engine_settings import memory_limit
from splitgraph.processes.folders import cache_folder, temporary_folder


@dataclass(frozen=True, slots=True)
class MachineReport:
    """What the machine has. cpus: that this process may use. memory: of the machine, in bytes. available_memory: that a
    new process gets without swapping. engine_memory: that an engine's process may use, in bytes of address space; None
    where the system has no such limit. None for everything that the system does not tell.
    """

    cpus: int | None
    memory: int | None
    available_memory: int | None
    engine_memory: int | None


@dataclass(frozen=True, slots=True)
class FolderReport:
    """A folder that splitgraph writes to. free: bytes; None where the folder does not tell. reason: why nothing can be
    written, "" where something can.
    """

    purpose: str
    path: str
    writable: bool
    free: int | None
    reason: str = ""


def examine_machine() -> MachineReport:
    """What this machine has."""
    has_limit = hasattr(os, "sysconf") and sys.platform != "darwin"
    return MachineReport(_cpus(), _memory(), _available_memory(), memory_limit(0) if has_limit else None)


def examine_folders() -> list[FolderReport]:
    """The folders that splitgraph writes to by itself."""
    return [_temporary_folder(), _cache_folder()]


def _temporary_folder() -> FolderReport:
    purpose = "temporary files"
    try:
        path = tempfile.gettempdir()
    except OSError as error:
        return FolderReport(purpose, "", False, None, error.strerror or str(error))
    try:
        with temporary_folder() as folder:
            (folder / "written").write_bytes(b"1")
    except OSError as error:
        return FolderReport(purpose, path, False, _free(path), error.strerror or str(error))
    return FolderReport(purpose, path, True, _free(path))


def _cache_folder() -> FolderReport:
    """The folder of models that were read from URLs. It is made when there is one."""
    purpose, path = "models at URLs", cache_folder()
    existing = next(folder for folder in (path, *path.parents) if folder.exists())
    is_writable = existing.is_dir() and os.access(existing, os.W_OK)
    reason = "" if is_writable else f"{existing} cannot be written to"
    return FolderReport(purpose, str(path), is_writable, _free(str(existing)), reason)


def _free(path: str) -> int | None:
    try:
        return shutil.disk_usage(path).free
    except OSError:
        return None


def _cpus() -> int | None:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count()


def _memory() -> int | None:
    if not hasattr(os, "sysconf"):
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _available_memory() -> int | None:
    """As Linux estimates it; other systems have no such number."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return None
    found = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    return None if found is None else 1024 * int(found)
