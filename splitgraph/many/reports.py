"""Reports of many models: the lines of a report file, which a later call resumes, and JUnit XML."""

from __future__ import annotations

import contextlib
import json
import os
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from splitgraph.findings.diagnostics import Diagnostic, SplitgraphError, diagnostic
from splitgraph.findings.outcome import Outcome, Status
from splitgraph.formats.atomic_write import write_text
from splitgraph.many.job import Job, file_hash, files_of_model
from splitgraph.many.remote import is_url, localized
from splitgraph.runtimes.target import find_target

# The report file ------------------------------------------------------------------------------------------------------


_PairKey = tuple[str, str | None]


class ReportFile:
    """A report that is being written. Each line is on the disk before the call waits for the next model."""

    def __init__(self, path: Path, kept: Iterable[Outcome] = ()) -> None:
        """Begin a report with the kept outcomes of an earlier one; a link is followed. Raises SplitgraphError."""
        self._path = Path(os.path.realpath(path))
        # An interrupted run must not lose the earlier report.
        write_text("".join(map(_line, kept)), self._path, overwrite=True)
        try:
            # Without a buffer, which would hold on to what the disk refuses.
            self._file = self._path.open("ab", buffering=0)
        except OSError as error:
            raise _cannot_write(self._path, error) from error

    def add(self, outcome: Outcome) -> None:
        """Add a line, whole or not at all. Raises SplitgraphError."""
        end = self._file.seek(0, os.SEEK_END)
        left = _line(outcome).encode("ascii")
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            self._file.truncate(end)
            raise _cannot_write(self._path, error) from error

    def close(self) -> None:
        """Close the file. `add` already reported lines that could not be written."""
        with contextlib.suppress(OSError):
            self._file.close()


def _line(outcome: Outcome) -> str:
    return json.dumps(outcome.document(), ensure_ascii=True) + "\n"


def _cannot_write(path: Path, error: OSError) -> SplitgraphError:
    """Return the error for a file that cannot be written."""
    text = f"{path} cannot be written: {error.strerror or error}"
    return SplitgraphError(text, [diagnostic("SG109", text, str(path))])


def read_report(path: Path) -> list[Outcome]:
    """Return the outcomes of a report; none if there is no file. A truncated last line is left out.

    Raises SplitgraphError for a file that is no report.
    """
    if not path.exists():
        return []
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise _not_a_report(path, str(error)) from error
    outcomes: list[Outcome] = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            outcomes.append(Outcome.from_document(json.loads(line)))
        except (ValueError, SplitgraphError) as error:
            raise _not_a_report(path, f"line {number} is no outcome of a model") from error
    return outcomes


def _not_a_report(path: Path, why: str) -> SplitgraphError:
    text = f"{path} is no report of splitgraph: {why}"
    return SplitgraphError(text, [diagnostic("SG601", text, str(path), help="Give another file with --report.")])


def done_before(jobs: Iterable[Job], report: Iterable[Outcome]) -> dict[_PairKey, Outcome]:
    """Return the outcomes of a report that are still valid: of the same verb, options and version, of unchanged files,
    and with a result that is still there. Failed models are tried again.
    """
    known = {(outcome.model, outcome.after): outcome for outcome in report}
    asked = [(job, known.get((job.model, job.after))) for job in jobs]
    same = [outcome for job, outcome in asked if outcome is not None and _is_of(outcome, job)]
    limits = [job.seconds for job, outcome in asked if outcome is not None and _is_of(outcome, job)]
    pool = ThreadPoolExecutor()
    try:
        checked = zip(same, pool.map(_is_unchanged, same, limits), strict=True)
        return {(outcome.model, outcome.after): outcome for outcome, is_so in checked if is_so}
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _is_of(outcome: Outcome, job: Job) -> bool:
    """Return True for the outcome of this job, if its result went to the same place."""
    if outcome.status == "failed" or outcome.options != job.options or not outcome.files:
        return False
    wanted = job.place
    if outcome.output is not None:
        return wanted is not None and os.path.abspath(outcome.output) == os.path.abspath(wanted)
    # Of these models nothing is written, or nothing where no folder is named.
    is_kept = outcome.status in ("kept", "refused", "different", "not-verified", "findings")
    return is_kept or wanted is None or (outcome.status == "unchanged" and job.task.place is None)


def _is_unchanged(outcome: Outcome, seconds: float | None) -> bool:
    try:
        if outcome.output is not None and not all(file.is_file() for file in files_of_model(Path(outcome.output))):
            return False
        if is_url(outcome.model):
            # Its files are in the cache, which is brought up to date.
            localized(outcome.model, seconds)
        read = {Path(name): known for name, known in outcome.files.items()}
        return all(path.is_file() and file_hash(path) == known for path, known in read.items())
    except (OSError, SplitgraphError):
        return False


# JUnit XML ------------------------------------------------------------------------------------------------------------


def write_junit(
    path: Path, verb: str, outcomes: Sequence[Outcome], seconds: float, targets: Sequence[str] = ()
) -> None:
    """Write one test case for each model: a failure for findings, an error if there is no result, skipped for a model
    beyond the opset. An existing file is replaced, all or nothing. Raises ModelError.

    targets: of `check`; a model has a case for each of several.
    """
    cases = [case for outcome in outcomes for case in _cases(outcome, targets)]
    kinds = Counter(_kind(outcome) for _, outcome in cases)
    numbers = {"failures": kinds["failure"], "errors": kinds["error"], "skipped": kinds["skipped"]}
    counts = {"tests": str(len(cases)), **{name: str(number) for name, number in numbers.items()}}
    counts["time"] = f"{seconds:.3f}"
    suites = ET.Element("testsuites", counts)
    suite = ET.SubElement(suites, "testsuite", {"name": f"splitgraph {verb}", **counts})
    for name, outcome in cases:
        _add_case(suite, name, outcome)
    ET.indent(suites)
    text = ET.tostring(suites, encoding="utf-8", xml_declaration=True).decode("utf-8")
    write_text(f"{text}\n", path, overwrite=True)


def _cases(outcome: Outcome, targets: Sequence[str]) -> Iterator[tuple[str, Outcome]]:
    """Yield the name and outcome of each case of a model: one for each of several targets, for all of which counts what
    is wrong with the model itself.
    """
    if outcome.status == "failed" or len(targets) < 2:
        yield outcome.model, outcome
        return
    for name in targets:
        key = find_target(name).key
        own = tuple(finding for finding in outcome.diagnostics if finding.target in (None, key))
        status: Status = "findings" if any(finding.severity == "error" for finding in own) else "clean"
        seconds = outcome.seconds / len(targets)
        yield f"{outcome.model} [{name}]", replace(outcome, diagnostics=own, status=status, seconds=seconds)


def _kind(outcome: Outcome) -> str:
    if outcome.ok:
        return "skipped" if outcome.status == "kept" else ""
    return "error" if outcome.status in ("failed", "not-run", "not-verified") else "failure"


def _add_case(suite: ET.Element, name: str, outcome: Outcome) -> None:
    names = {
        "classname": f"splitgraph.{outcome.verb}",
        "name": _allowed(name),
        "file": _allowed(outcome.model),
    }
    case = ET.SubElement(suite, "testcase", {**names, "time": f"{outcome.seconds:.3f}"})
    premises = [("accepted", _text(finding)) for finding in outcome.accepted]
    premises += [("assumed_default", name) for name in outcome.assumed_defaults]
    if premises:
        properties = ET.SubElement(case, "properties")
        for name, value in premises:
            ET.SubElement(properties, "property", {"name": name, "value": _allowed(value)})
    kind = _kind(outcome)
    if kind == "skipped":
        ET.SubElement(case, kind, {"message": outcome.status})
    elif kind:
        errors = [finding for finding in outcome.diagnostics if finding.severity == "error"]
        message = _text(errors[0]) if errors else outcome.status
        element = ET.SubElement(case, kind, {"type": outcome.status, "message": _allowed(message)})
        element.text = _allowed("\n".join(f"{_text(finding)}\n    {finding.help}" for finding in errors))


def _text(finding: Diagnostic) -> str:
    return " ".join(filter(None, (finding.code, finding.location, finding.message)))


def _allowed(text: str) -> str:
    """Return the text; each character that XML does not allow becomes an escape."""
    return "".join(char if _is_allowed(char) else f"\\x{ord(char):02x}" for char in text)


def _is_allowed(char: str) -> bool:
    return char in "\t\n\r" or " " <= char <= "\ud7ff" or "\ue000" <= char <= "\ufffd" or char >= "\U00010000"
