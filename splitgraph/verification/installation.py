"""Examine the installation: packages, engines, folders, memory. `splitgraph doctor` shows the result."""

from __future__ import annotations

import importlib.util
import json
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal, NamedTuple

from splitgraph.findings.diagnostics import Diagnostic, SplitgraphError, diagnostic
from splitgraph.processes.folders import cache_folder, temporary_folder
from splitgraph.processes.kept_processes import run_once
from splitgraph.processes.worker_process import ProcessEnded
from splitgraph.runtimes.runners.interpreters import KINDS, Kind, interpreter_for
from splitgraph.runtimes.runners.runner import MissingRuntimeError, runner_of
from splitgraph.verification.engine_settings import memory_limit

# The report -----------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class InstallationReport:
    """Everything that `splitgraph doctor` tells.

    python: version and implementation. executable: the path of Python. system: the name of the operating system, its
    release and processor. packages: the required ones. extras: the package of each extra, by the extra's name.
    runtimes: those in which models of targets can be run.
    """

    python: str
    executable: str
    system: str
    packages: tuple[PackageReport, ...]
    extras: dict[str, PackageReport]
    engines: tuple[EngineReport, ...]
    runtimes: tuple[RuntimeReport, ...]
    folders: tuple[FolderReport, ...]
    machine: MachineReport
    diagnostics: tuple[Diagnostic, ...]

    @property
    def ok(self) -> bool:
        """Return True if everything that is installed works."""
        return all(finding.severity != "error" for finding in self.diagnostics)


def examine(say: Callable[[str], None] = lambda text: None) -> InstallationReport:
    """Examine the installation, and run a small model in each engine. say: is told the present step."""
    packages, extras = required_packages(), optional_packages()
    folders = [_temporary_folder(), _cache_folder()]
    engines = []
    for name in ENGINES:
        say(f"running {name}")
        engines.append(_engine(name))
    runtimes = []
    for kind in KINDS.values():
        say(f"starting {kind.title}")
        runtimes.append(try_runtime(kind))
    findings = [*_of_packages(packages), *_of_extras(extras), *_of_folders(folders), *_of_engines(engines)]
    return InstallationReport(
        f"{platform.python_version()} ({platform.python_implementation()})",
        sys.executable,
        platform.platform(),
        tuple(packages),
        extras,
        tuple(engines),
        tuple(runtimes),
        tuple(folders),
        examine_machine(),
        tuple(findings),
    )


def _engine(name: str) -> EngineReport:
    try:
        return try_engine(name)
    except OSError as error:
        return EngineReport(name, "broken", reason=f"its process cannot be started: {error.strerror or error}")


def _of_packages(packages: list[PackageReport]) -> Iterator[Diagnostic]:
    for package in packages:
        if package.version is None:
            yield diagnostic("SG802", f"{package.name} is required and not installed", package.name)
        elif package.is_too_old:
            yield diagnostic("SG802", _too_old(package), package.name)


def _of_extras(extras: dict[str, PackageReport]) -> Iterator[Diagnostic]:
    # Only the functions of the extra depend on such a package.
    for package in extras.values():
        if package.is_too_old:
            yield diagnostic("SG802", _too_old(package), package.name, severity="warning")


def _too_old(package: PackageReport) -> str:
    return f"{package.name} {package.version} is too old; {package.oldest} is the oldest that is supported"


def _of_folders(folders: list[FolderReport]) -> Iterator[Diagnostic]:
    for folder in folders:
        if not folder.writable:
            yield diagnostic(
                "SG803", f"the folder for {folder.purpose} cannot be written to: {folder.reason}", folder.path
            )


def _of_engines(engines: list[EngineReport]) -> Iterator[Diagnostic]:
    for engine in engines:
        if engine.status == "broken":
            yield diagnostic("SG801", f"the engine {engine.name} does not work: {engine.reason}", engine.name)


# The machine ----------------------------------------------------------------------------------------------------------


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
    """A folder that splitgraph writes to. free: bytes; None if the folder does not tell. reason: why nothing can be
    written, "" if something can.
    """

    purpose: str
    path: str
    writable: bool
    free: int | None
    reason: str = ""


def examine_machine() -> MachineReport:
    """Return the resources of this machine."""
    has_limit = hasattr(os, "sysconf") and sys.platform != "darwin"
    return MachineReport(_cpus(), _memory(), _available_memory(), memory_limit(0) if has_limit else None)


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
    """Examine the folder for models from URLs. It is made when the first one is read."""
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
    """Return the estimate of Linux; other systems have none."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return None
    kibibytes = next((line.split()[1] for line in lines if line.startswith("MemAvailable:")), None)
    return None if kibibytes is None else 1024 * int(kibibytes)


# Packages -------------------------------------------------------------------------------------------------------------


# As pyproject.toml requires them, and what comes with onnx.
REQUIRED: Mapping[str, str] = {
    "onnx": "1.20",
    "onnx-graphsurgeon": "0.6.1",
    "numpy": "1.24",
    "click": "8.1",
    "rich": "13",
    "defusedxml": "0.7.1",
    "protobuf": "",
}
if sys.version_info < (3, 11):
    REQUIRED = {**REQUIRED, "tomli": "2"}


class OptionalPackage(NamedTuple):
    """An optional package: the oldest version that is supported, the module to import, and what it adds."""

    package: str
    oldest: str
    module: str
    adds: str


# By the names of the extras in pyproject.toml.
EXTRAS: Mapping[str, OptionalPackage] = {
    "onnxruntime": OptionalPackage("onnxruntime", "1.20", "onnxruntime", "verification with ONNX Runtime"),
    "openvino": OptionalPackage(
        "openvino", "2025.0", "openvino", "verification with OpenVINO, ONNX to IR, passes for ov.Model"
    ),
    "onnx-ir": OptionalPackage("onnx-ir", "0.1.7", "onnx_ir", "models of the type onnx_ir.Model, passes for onnx_ir"),
    "distributed": OptionalPackage(
        "distributed", "2024.1", "distributed", "many models on a cluster of dask.distributed"
    ),
    "fsspec": OptionalPackage("fsspec", "2024.2", "fsspec", "models at URLs"),
}


@dataclass(frozen=True, slots=True)
class PackageReport:
    """A package: the version that is installed (None: none), and the oldest one that is supported ("": any)."""

    name: str
    version: str | None
    oldest: str

    @property
    def is_too_old(self) -> bool:
        """Return True if the installed version is older than the oldest supported one."""
        return self.version is not None and _numbers(self.version) < _numbers(self.oldest)


def required_packages() -> list[PackageReport]:
    """Return every package that splitgraph requires."""
    return [PackageReport(name, _version(name), oldest) for name, oldest in REQUIRED.items()]


def optional_packages() -> dict[str, PackageReport]:
    """Return the package of every extra, by the name of the extra. A variant such as onnxruntime-gpu counts."""
    providers = metadata.packages_distributions()
    reports = {}
    for name, extra in EXTRAS.items():
        package = next(iter(providers.get(extra.module, ())), extra.package)
        reports[name] = PackageReport(package, _version(package), extra.oldest)
    return reports


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _numbers(version: str) -> list[int]:
    """Return the numbers of a release: [1, 20] for "1.20". A suffix such as "rc1" does not count."""
    release = re.match(r"[\d.]*", version)
    return [int(number) for number in re.findall(r"\d+", release.group() if release else "")]


# Engines --------------------------------------------------------------------------------------------------------------


# Each engine with the module that it is made of.
ENGINES: Mapping[str, str] = {"reference": "onnx", "onnxruntime": "onnxruntime", "openvino": "openvino"}
# Importing an engine on a busy machine takes seconds.
SECONDS = 60.0

TrialStatus = Literal["works", "broken", "not installed"]


@dataclass(frozen=True, slots=True)
class EngineReport:
    """The state of an engine.

    version: of its package; None if it could not be imported. newest_opset: the newest opset of ai.onnx at which it
    runs a Split; None if it does not work. devices: what it can run on; the providers of onnxruntime. reason: why it is
    broken, "" if it is not.
    """

    name: str
    status: TrialStatus
    version: str | None = None
    newest_opset: int | None = None
    devices: tuple[str, ...] = ()
    reason: str = ""


def try_engine(name: str, seconds: float = SECONDS) -> EngineReport:
    """Run a small model in an engine, for at most so many seconds. Raises OSError if no temporary file can be made."""
    if importlib.util.find_spec(ENGINES[name]) is None:
        # The reference evaluator is part of onnx, which splitgraph requires.
        if name == "reference":
            return EngineReport(name, "broken", reason="onnx is not installed")
        return EngineReport(name, "not installed")
    with temporary_folder() as folder:
        abnormal = ""
        try:
            run_once("splitgraph.verification.engines.capabilities:main", (name, folder), folder, seconds)
        except ProcessEnded as ended:
            abnormal = str(ended)
        # A process that ended early wrote nothing, or a part.
        abilities: dict[str, Any] = {}
        with suppress(FileNotFoundError, ValueError):
            abilities = json.loads((folder / "found.json").read_text("utf-8"))
    newest = abilities.get("newest_opset")
    version, devices = abilities.get("version"), tuple(abilities.get("devices", ()))
    if newest is not None and not abnormal:
        return EngineReport(name, "works", version, newest, devices)
    reason = abnormal or abilities.get("reason") or "runs no model"
    if abnormal and abilities.get("opset") is not None:
        reason = f"{abnormal}, with a Split of opset {abilities['opset']}"
    return EngineReport(name, "broken", version, None, devices, reason)


# Runtimes of targets --------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class RuntimeReport:
    """A runtime in which models of a target can be run (`check --run`).

    name: of the target. title: its own name. status: "works" if it starts. version: None if it does not. python: the
    Python that has it, or that was asked. reason: why it is broken, or how to install it; "" if it works.
    """

    name: str
    title: str
    status: TrialStatus
    version: str | None
    python: str
    reason: str = ""


def try_runtime(kind: Kind) -> RuntimeReport:
    """Start a runtime in the Python that is to run it (see `interpreters`)."""
    python = ""
    try:
        python = interpreter_for(kind)
        with runner_of(kind, python) as runner:
            return RuntimeReport(kind.name, kind.title, "works", runner.version, python)
    except MissingRuntimeError as missing:
        # The name of the module is that of the runtime, if it is not installed.
        if "No module named" in str(missing):
            reason = f"{kind.install}, or {kind.variable}=PATH of a Python that has it"
            return RuntimeReport(kind.name, kind.title, "not installed", None, python, reason)
        return RuntimeReport(kind.name, kind.title, "broken", None, python, str(missing))
    except (OSError, SplitgraphError) as error:
        return RuntimeReport(kind.name, kind.title, "broken", None, python, str(error))
