"""The JSON documents of `doctor`; every name here is part of the contract, as in `documents`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import splitgraph
from splitgraph.diagnostics import Diagnostic
from splitgraph.report.documents import Document, diagnostics_json

if TYPE_CHECKING:
    from splitgraph.installation.packages import PackageReport
    from splitgraph.installation.report import InstallationReport


def doctor_json(report: InstallationReport) -> Document:
    """What `doctor --json` prints: everything that was looked at, and what is wrong."""
    from dataclasses import asdict

    return {
        "splitgraph": splitgraph.__version__,
        "ok": report.ok,
        "python": report.python,
        "executable": report.executable,
        "system": report.system,
        "packages": [_package_json(package) for package in report.packages],
        "extras": {name: _package_json(package) for name, package in report.extras.items()},
        "engines": [{**asdict(engine), "devices": list(engine.devices)} for engine in report.engines],
        "folders": [asdict(folder) for folder in report.folders],
        "machine": asdict(report.machine),
        "diagnostics": diagnostics_json(report.diagnostics),
    }


def _package_json(package: PackageReport) -> Document:
    return {"name": package.name, "version": package.version, "oldest": package.oldest or None}


def failed_doctor_json(diagnostics: Iterable[Diagnostic]) -> Document:
    """What `doctor --json` prints where the call is wrong: nothing was looked at."""
    return {
        "splitgraph": splitgraph.__version__,
        "ok": False,
        "python": "",
        "executable": "",
        "system": "",
        "packages": [],
        "extras": {},
        "engines": [],
        "folders": [],
        "machine": None,
        "diagnostics": diagnostics_json(diagnostics),
    }
