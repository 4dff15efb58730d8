"""The work on one of many models: the message for a worker process, and the work of the worker."""

from __future__ import annotations

import filecmp
import hashlib
import json
import os
import shutil
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import splitgraph
from splitgraph.findings.diagnostics import Diagnostic, ModelError, SplitgraphError, diagnostic
from splitgraph.findings.outcome import Outcome, Status
from splitgraph.formats.atomic_write import WriteTogether
from splitgraph.formats.external_data import is_inside
from splitgraph.formats.onnx_file import external_locations
from splitgraph.formats.recognition import is_ir
from splitgraph.processes.folders import temporary_folder
from splitgraph.processes.this_process import collection_paused
from splitgraph.work.task import FileTask

if TYPE_CHECKING:
    from splitgraph.formats import DataFile
    from splitgraph.inference.analysis import Analysis


_EXISTS = "SG108"


@dataclass(frozen=True, slots=True)
class Job:
    """The work on one of many models.

    model: the source as given or found, a path or a URL. after: the second model of `verify`. task: the work. options:
    see `Outcome`. seconds, memory: the limits of time, and of memory in bytes; None for none. hashes: True to hash the
    files. is_new: True if no file was at the place of the result before the call.
    """

    model: str
    task: FileTask
    options: str = ""
    after: str | None = None
    seconds: float | None = None
    memory: int | None = None
    hashes: bool = False
    is_new: bool = False

    @property
    def place(self) -> Path | None:
        """Return the file of the result; None if nothing is written, or if only the worker knows the file."""
        if self.task.output.dry_run or not isinstance(self.task.model, Path):
            return self.task.place
        return self.task.path()

    def failed(self, diagnostics: Iterable[Diagnostic], seconds: float = 0.0) -> Outcome:
        """Return the outcome of a job that failed."""
        return self.ended("failed", diagnostics=tuple(diagnostics), seconds=seconds)

    def ended(self, status: Status, **known: Any) -> Outcome:
        """Return the outcome of the job."""
        return Outcome(self.task.verb, self.model, status, after=self.after, options=self.options, **known)


def digest(task: FileTask) -> str:
    """Return the SHA-256 of everything that decides an outcome except the files: the verb, the options, the version."""
    # The places of a model and its result belong to the job, so that two trees of equal models have equal digests.
    output = task.output._replace(output=None, force=False)
    plain = replace(task, model=Path(), before=None, after=None, place=None, output=output)
    options = {field.name: getattr(plain, field.name) for field in fields(plain)}
    inputs, libraries = task.running.inputs, task.running.custom_ops
    named = [inputs, *([libraries] if isinstance(libraries, (str, os.PathLike)) else libraries)]
    read = [_content(Path(path)) for path in named if isinstance(path, (str, os.PathLike))]
    text = json.dumps([splitgraph.__version__, options, read], default=str, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _content(path: Path) -> list[tuple[str, str]]:
    """Return the name and the SHA-256 of a file, or of each file in a folder."""
    files = sorted(path.rglob("*")) if path.is_dir() else [path]
    return [(str(file), file_hash(file)) for file in files if file.is_file()]


def run_job(job: Job) -> Outcome:
    """Do the work of a job in this process. Raises only errors that no model should cause."""
    began = time.monotonic()
    hashed: dict[str, str] = {}
    try:
        with collection_paused():
            outcome = _run(job, hashed)
    except SplitgraphError as error:
        diagnostics = error.diagnostics or (Diagnostic("SG601", "error", str(error)),)
        outcome = job.failed(diagnostics)
    except MemoryError:
        outcome = job.failed([diagnostic("SG602", "out of memory")])
    except OSError as error:
        outcome = job.failed([diagnostic("SG602", error.strerror or str(error))])
    except Exception as error:
        # A fault of ours with one model is told of that model, and the others go on.
        outcome = job.failed([diagnostic("SG603", f"{type(error).__name__}: {error}")])
    return replace(outcome, seconds=time.monotonic() - began, files=hashed)


def _run(job: Job, hashed: dict[str, str]) -> Outcome:
    from splitgraph.many.remote import localized

    task = job.task
    named = {name: getattr(task, name) for name in ("model", "before", "after")}
    places: Any = {name: localized(str(model)) for name, model in named.items() if model is not None}
    if job.hashes:
        # Before the model is read: where it cannot be read, its content is the reason.
        read = [path for place in places.values() for path in files_of_model(place)]
        hashed.update((str(path), file_hash(path)) for path in read if path.is_file())
    outcome = _again_where_there(job, replace(task, **places))
    if outcome.output in hashed:
        # A model that was converted in place is done as long as it stays as it is now.
        hashed[outcome.output] = file_hash(Path(outcome.output))
    return replace(outcome, model=job.model, after=job.after)


def _again_where_there(job: Job, task: FileTask) -> Outcome:
    """Do the work. A job whose worker was lost runs again. Its result may be there already, which is no error if the
    bytes are the same.
    """
    try:
        return _outcome(job, task)
    except SplitgraphError as error:
        there = task.path() if job.is_new and any(finding.code == _EXISTS for finding in error.diagnostics) else None
        if there is None:
            raise
        with temporary_folder() as folder:
            again = _outcome(job, replace(task, place=folder / "result" / there.name))
            if again.output is None or not _is_whole(folder / "result", there.parent):
                raise
            data_files = {
                str(there.parent / os.path.relpath(data_file, folder / "result")): how
                for data_file, how in again.data_files.items()
            }
        return replace(again, output=str(there), data_files=data_files)


def _is_whole(made: Path, folder: Path) -> bool:
    """Return True if a folder has each file of a result with the same bytes. A result with a missing file was
    interrupted, and is completed.
    """
    files = [path.relative_to(made) for path in made.rglob("*") if path.is_file()]
    if any((folder / file).exists() and not filecmp.cmp(made / file, folder / file, shallow=False) for file in files):
        return False
    with WriteTogether(overwrite=False) as written:
        for file in files:
            if not (folder / file).exists():
                with (made / file).open("rb") as source, written.open(folder / file) as target:
                    shutil.copyfileobj(source, target)
    return True


def _outcome(job: Job, task: FileTask) -> Outcome:
    """Run the verb of a job and return its outcome. Each verb imports its own modules."""
    match task.verb:
        case "infer":
            return _inferred(job, task)
        case "check":
            return _checked(job, task)
        case "verify":
            return _verified(job, task)
        case "report":
            return _reported(job, task)
        case _:
            return _rewritten(job, task)


def _inferred(job: Job, task: FileTask) -> Outcome:
    from splitgraph.work.inferring import infer_file

    inferred = infer_file(task)
    return replace(_analysed(job, inferred.analysis, inferred.written), data_files=_written_how(inferred.data_files))


def _written_how(data_files: Sequence[DataFile]) -> dict[str, str]:
    return {str(data_file.path): data_file.how for data_file in data_files}


def _reported(job: Job, task: FileTask) -> Outcome:
    from splitgraph.work.reporting import report_file

    reported = report_file(task)
    return _analysed(job, reported.analyses[-1], reported.written)


def _analysed(job: Job, analysis: Analysis, written: Path | None) -> Outcome:
    opset = analysis.opset.get("")
    return job.ended(
        "clean" if analysis.ok else "findings",
        diagnostics=analysis.diagnostics,
        accepted=tuple(analysis.accepted),
        output=None if written is None else str(written),
        opset_before=opset,
        opset_after=opset,
        splits=len(analysis.splits),
    )


def _checked(job: Job, task: FileTask) -> Outcome:
    from splitgraph.work.checking import check_file

    checked = check_file(task)
    findings = tuple(dict.fromkeys(finding for check in checked.checks for finding in check.findings))
    walked = checked.examined.walked
    status: Status = "findings" if checked.code else "clean"
    opset = walked.opset.get("")
    accepted = tuple(walked.accepted)
    return job.ended(status, diagnostics=findings, accepted=accepted, opset_before=opset, opset_after=opset)


def _verified(job: Job, task: FileTask) -> Outcome:
    from splitgraph import open_models

    assert task.after is not None
    verification = open_models.compared(task.model, task.after, task.running)
    told = verification.findings() if verification.verdict == "different" else ()
    diagnostics = (*(replace(finding, help="") for finding in told), *verification.diagnostics)
    return job.ended(
        verification.verdict,
        diagnostics=diagnostics,
        verdict=verification.verdict,
        said=verification.said,
        engine=verification.engine or None,
    )


def _rewritten(job: Job, task: FileTask) -> Outcome:
    from splitgraph.work.rewriting import rewrite_file

    rewritten = rewrite_file(task)
    result = rewritten.rewrite
    verification = None if result is None else result.verification
    diagnostics = rewritten.blockers if result is None else result.diagnostics
    return job.ended(
        rewritten.status,
        # A model beyond the opset is no error here.
        diagnostics=() if rewritten.status == "kept" else tuple(diagnostics),
        accepted=() if result is None else tuple(result.accepted),
        assumed_defaults=() if result is None else tuple(result.assumed_defaults),
        output=None if rewritten.output is None else str(rewritten.output),
        data_files=_written_how(rewritten.data_files),
        opset_before=rewritten.opset.get(""),
        opset_after=None if result is None else result.to_opset.get(""),
        changes=None if result is None else len(result.changes),
        verdict=None if verification is None else verification.verdict,
        said=None if verification is None else verification.said,
        engine=None if verification is None else verification.engine or None,
    )


def files_of_model(path: Path) -> list[Path]:
    """Return the files of a model: its own, and those of its weights; some may be missing. A page is one file."""
    if path.suffix == ".html" or not path.is_file():
        return [path]
    if is_ir(path):
        weights = path.with_suffix(".bin")
        return [path, weights] if weights.is_file() else [path]
    try:
        names = external_locations(path)
    except ModelError:
        # Whoever opens the model says what is wrong with it.
        names = []
    return [path, *(path.parent / name for name in names if is_inside(path.parent, name))]


def file_hash(path: Path) -> str:
    """Return the SHA-256 of the content of a file. Raises OSError."""
    with path.open("rb") as file:
        sha256 = hashlib.sha256()
        while chunk := file.read(2**20):
            sha256.update(chunk)
    return sha256.hexdigest()
