"""The documents of `explain` and `doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING

from splitgraph.reports.documents.parts import Document, diagnostics_json
from splitgraph.reports.documents.skeletons import command_document

if TYPE_CHECKING:
    from splitgraph.findings.codes import CodeInfo
    from splitgraph.verification.installation import InstallationReport, PackageReport


def explain_json(codes: Mapping[str, CodeInfo], acceptable: Mapping[str, str]) -> Document:
    """Return what `explain --json` prints. acceptable: what an acceptance means, for each code that has one."""
    told = [
        {
            "code": code,
            "title": info.title,
            "meaning": info.meaning,
            "help": info.help,
            "acceptance": acceptable.get(code),
        }
        for code, info in codes.items()
    ]
    return command_document("explain", ok=True, codes=told)


def doctor_json(report: InstallationReport) -> Document:
    """Return what `doctor --json` prints: the installation, and what is wrong with it."""
    return command_document(
        "doctor",
        ok=report.ok,
        python=report.python,
        executable=report.executable,
        system=report.system,
        packages=[_package_json(package) for package in report.packages],
        extras={name: _package_json(package) for name, package in report.extras.items()},
        engines=[{**asdict(engine), "devices": list(engine.devices)} for engine in report.engines],
        runtimes=[asdict(runtime) for runtime in report.runtimes],
        folders=[asdict(folder) for folder in report.folders],
        machine=asdict(report.machine),
        diagnostics=diagnostics_json(report.diagnostics),
    )


def _package_json(package: PackageReport) -> Document:
    return {"name": package.name, "version": package.version, "oldest": package.oldest or None}
