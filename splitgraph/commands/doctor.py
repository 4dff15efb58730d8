"""`splitgraph doctor`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import splitgraph
from splitgraph.findings.exit_codes import CLEAN, FINDINGS
from splitgraph.reports.printing import print_document, print_result, working
from splitgraph.verification.installation import (
    EXTRAS,
    EngineReport,
    FolderReport,
    InstallationReport,
    MachineReport,
    PackageReport,
    RuntimeReport,
    examine,
)

if TYPE_CHECKING:
    from splitgraph.reports.text import Block, Cell

_GIB = 2**30


def doctor(*, as_json: bool) -> int:
    """Examine the installation and print the result."""
    with working("examining the installation") as say:
        report = examine(say)
    if as_json:
        from splitgraph.reports.documents.program import doctor_json

        print_document(doctor_json(report))
    else:
        print_result(_page(report))
    return CLEAN if report.ok else FINDINGS


def _page(report: InstallationReport) -> list[Block]:
    from splitgraph.findings.diagnostics import findings_phrase
    from splitgraph.reports.pages import findings_table
    from splitgraph.reports.text import BLANK, line, table

    title = (f"splitgraph {splitgraph.__version__}", "bold")
    blocks: list[Block] = [
        line(title, f" · Python {report.python} · {report.system}"),
        line(f"  {report.executable}"),
        BLANK,
        table(
            ("package", "version", "needs"),
            ("bold", "", "dim"),
            [(p.name, _version(p), f">= {p.oldest}" if p.oldest else "") for p in report.packages],
        ),
        BLANK,
        table(
            ("engine", "version", "state", "splits to opset", "devices"),
            ("bold", "", "", "", ""),
            list(map(_engine_row, report.engines)),
        ),
        BLANK,
        table(
            ("runtime of check --run", "version", "state", "Python"),
            ("bold", "", "", ""),
            list(map(_runtime_row, report.runtimes)),
            is_prose=True,
        ),
        BLANK,
        table(
            ("extra", "version", "needs", "adds"),
            ("bold", "", "dim", ""),
            [(name, _version(p), f">= {p.oldest}", EXTRAS[name].adds) for name, p in report.extras.items()],
            is_prose=True,
        ),
        BLANK,
        *(line(f"  {_folder_text(folder)}") for folder in report.folders),
        line(f"  {_machine_text(report.machine)}"),
        BLANK,
    ]
    if not report.diagnostics:
        return [*blocks, line(("Everything that is installed works.", "green"))]
    return [*blocks, line(f"{findings_phrase(report.diagnostics)}."), BLANK, findings_table(report.diagnostics)]


def _version(package: PackageReport) -> str | Cell:
    from splitgraph.reports.text import Cell

    if package.version is None:
        return Cell(("not installed",), "yellow")
    return Cell((package.version,), "bold red") if package.is_too_old else package.version


_STYLES = {"works": "green", "broken": "bold red", "not installed": "yellow"}


def _engine_row(engine: EngineReport) -> Sequence[str | Cell]:
    from splitgraph.reports.text import Cell

    state = Cell((engine.status,), _STYLES[engine.status])
    newest = "" if engine.newest_opset is None else str(engine.newest_opset)
    return engine.name, engine.version or "", state, newest, ", ".join(engine.devices)


def _runtime_row(runtime: RuntimeReport) -> Sequence[str | Cell]:
    from splitgraph.reports.text import Cell

    state = Cell((runtime.status,), _STYLES[runtime.status])
    return runtime.name, runtime.version or "", state, runtime.reason or runtime.python


def _folder_text(folder: FolderReport) -> str:
    state = "writable" if folder.writable else "NOT WRITABLE"
    free = "" if folder.free is None else f", {_size(folder.free)} free"
    return f"{folder.purpose}: {folder.path or 'no folder'}, {state}{free}"


def _machine_text(machine: MachineReport) -> str:
    from splitgraph.reports.text import count

    parts = ["processors not known" if machine.cpus is None else count(machine.cpus, "processor")]
    if machine.memory is not None:
        parts.append(f"{_size(machine.memory)} memory")
    if machine.available_memory is not None:
        parts.append(f"{_size(machine.available_memory)} available")
    if machine.engine_memory is not None:
        parts.append(f"an engine may use {_size(machine.engine_memory)}")
    return ", ".join(parts)


def _size(number: int) -> str:
    return f"{number / _GIB:,.1f} GiB"
