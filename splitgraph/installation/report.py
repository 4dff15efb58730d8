"""The state of an installation, and what is wrong with it."""

from __future__ import annotations

import platform
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from splitgraph.diagnostics import Diagnostic, diagnostic
from splitgraph.installation.engine_trials import ENGINES, EngineReport, try_engine
from splitgraph.installation.machine import FolderReport, MachineReport, examine_folders, examine_machine
from splitgraph.installation.packages import PackageReport, optional_packages, required_packages


@dataclass(frozen=True, slots=True)
class InstallationReport:
    """Everything that `splitgraph doctor` tells.

    python: version and implementation. executable: the path of Python. system: the name of the operating system, its
    release and processor. packages: the required ones. extras: the package of each extra, by the extra's name.
    """

    python: str
    executable: str
    system: str
    packages: tuple[PackageReport, ...]
    extras: dict[str, PackageReport]
    engines: tuple[EngineReport, ...]
    folders: tuple[FolderReport, ...]
    machine: MachineReport
    diagnostics: tuple[Diagnostic, ...]

    @property
    def ok(self) -> bool:
        """Whether everything that is installed works."""
        return all(each.severity != "error" for each in self.diagnostics)


def examine(say: Callable[[str], None] = lambda text: None) -> InstallationReport:
    """Look at everything, and run a small model in each engine. say: is told what is being done."""
    packages, extras = required_packages(), optional_packages()
    folders = examine_folders()
    engines = []
    for name in ENGINES:
        say(f"running {name}")
        engines.append(_engine(name))
    found = [*_of_packages(packages), *_of_extras(extras), *_of_folders(folders), *_of_engines(engines)]
    return InstallationReport(
        f"{platform.python_version()} ({platform.python_implementation()})",
        sys.executable,
        platform.platform(),
        tuple(packages),
        extras,
        tuple(engines),
        tuple(folders),
        examine_machine(),
        tuple(found),
    )


def _engine(name: str) -> EngineReport:
    try:
        return try_engine(name)
    except OSError as error:
        return EngineReport(name, "broken", reason=f"its process cannot be started: {error.strerror or error}")


def _of_packages(packages: list[PackageReport]) -> Iterator[Diagnostic]:
    for each in packages:
        if each.version is None:
            yield diagnostic("SG802", f"{each.name} is required and not installed", each.name)
        elif each.is_too_old:
            yield diagnostic("SG802", _too_old(each), each.name)


def _of_extras(extras: dict[str, PackageReport]) -> Iterator[Diagnostic]:
    # Nothing but what the extra adds depends on such a package.
    for each in extras.values():
        if each.is_too_old:
            yield diagnostic("SG802", _too_old(each), each.name, severity="warning")


def _too_old(package: PackageReport) -> str:
    return f"{package.name} {package.version} is too old; {package.oldest} is the oldest that is supported"


def _of_folders(folders: list[FolderReport]) -> Iterator[Diagnostic]:
    for each in folders:
        if not each.writable:
            yield diagnostic("SG803", f"the folder for {each.purpose} cannot be written to: {each.reason}", each.path)


def _of_engines(engines: list[EngineReport]) -> Iterator[Diagnostic]:
    for each in engines:
        if each.status == "broken":
            yield diagnostic("SG801", f"the engine {each.name} does not work: {each.reason}", each.name)
