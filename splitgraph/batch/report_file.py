"""The report of many models: a file with one line of JSON for each, written as the models end."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from splitgraph.batch.job import Job, file_hash, files_of_model
from splitgraph.batch.remote import is_url, localized
from splitgraph.diagnostics import SplitgraphError, diagnostic
from splitgraph.formats.atomic_write import write_text
from splitgraph.outcome import Outcome, outcome_from
from splitgraph.report.documents import outcome_json

_Key = tuple[str, str | None]


class ReportFile:
    """A report that is being written. Each line is on the disk before the next model is waited for."""

    def __init__(self, path: Path, kept: Iterable[Outcome] = ()) -> None:
        """Begin a report with what is kept of an earlier one; a link is followed. Raises SplitgraphError."""
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
        """Close the file. What could not be written was told when it was added."""
        with contextlib.suppress(OSError):
            self._file.close()


def _line(outcome: Outcome) -> str:
    return json.dumps(outcome_json(outcome), ensure_ascii=True) + "\n"


def _cannot_write(path: Path, error: OSError) -> SplitgraphError:
    """The error of a file that cannot be written."""
    text = f"{path} cannot be written: {error.strerror or error}"
    return SplitgraphError(text, [diagnostic("SG109", text, str(path))])


def read_report(path: Path) -> list[Outcome]:
    """The outcomes of a report; none where there is no file. A last line that is cut off is left out.

    Raises SplitgraphError for a file that is no report.
    """
    if not path.exists():
        return []
    try:
        lines = path.read_text("utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise _not_a_report(path, str(error)) from error
    found: list[Outcome] = []
    for number, line in enumerate(lines[:-1], 1):
        try:
            found.append(outcome_from(json.loads(line)))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise _not_a_report(path, f"line {number} is no outcome of a model") from error
    return found


def _not_a_report(path: Path, why: str) -> SplitgraphError:
    text = f"{path} is no report of splitgraph: {why}"
    return SplitgraphError(text, [diagnostic("SG601", text, str(path), help="Give another file with --report.")])


def done_before(jobs: Iterable[Job], report: Iterable[Outcome]) -> dict[_Key, Outcome]:
    """The outcomes of a report that need not be found again: of the same verb, options and version, of files that have
    not changed, and with a result that is still there. What failed is tried again.
    """
    known = {(outcome.model, outcome.after): outcome for outcome in report}
    asked = [(job, known.get((job.model, job.after))) for job in jobs]
    same = [outcome for job, outcome in asked if outcome is not None and _is_of(outcome, job)]
    limits = [job.seconds for job, outcome in asked if outcome is not None and _is_of(outcome, job)]
    pool = ThreadPoolExecutor()
    try:
        found = zip(same, pool.map(_is_unchanged, same, limits), strict=True)
        return {(outcome.model, outcome.after): outcome for outcome, is_so in found if is_so}
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _is_of(outcome: Outcome, job: Job) -> bool:
    """True for the outcome of this job, whose result went where that of the job goes."""
    if outcome.status == "failed" or outcome.options != job.options or not outcome.files:
        return False
    wanted = job.place
    if outcome.output is not None:
        return wanted is not None and os.path.abspath(outcome.output) == os.path.abspath(wanted)
    # Of these models nothing is written, or nothing where no folder is named.
    is_kept = outcome.status in ("beyond", "refused", "different", "not-verified", "findings")
    return is_kept or wanted is None or (outcome.status == "there" and job.task.place is None)


def _is_unchanged(outcome: Outcome, seconds: float | None) -> bool:
    try:
        if outcome.output is not None and not all(each.is_file() for each in files_of_model(Path(outcome.output))):
            return False
        if is_url(outcome.model):
            # Its files are in the cache, which is brought up to date.
            localized(outcome.model, seconds)
        read = {Path(name): known for name, known in outcome.files.items()}
        return all(path.is_file() and file_hash(path) == known for path, known in read.items())
    except (OSError, SplitgraphError):
        return False
