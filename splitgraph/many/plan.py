"""Plan the jobs of a call: which models belong together, where each result goes, and which jobs cannot begin."""

from __future__ import annotations

import os
import re
from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from splitgraph.findings.diagnostics import Diagnostic, SplitgraphError, diagnostic
from splitgraph.findings.outcome import Outcome
from splitgraph.many.job import Job, digest
from splitgraph.many.remote import file_name
from splitgraph.many.sources import ModelSource
from splitgraph.work.task import FileTask

# The share of a job's time that running models may take: reading and converting need some, too.
_RUNNING_SHARE = 0.8
# The endings of files that the commands write.
_FILES = frozenset({".onnx", ".xml", ".html", ".htm", ".svg", ".json", ".jsonl"})
# A name with three rounds of %25 is no name that anybody gave to a model.
_ROUNDS = 4
_DRIVE = re.compile("[A-Za-z]:")
_HELP = "Name the model itself, or give the folder that it is in."
_LINK_HELP = "Remove the link, or give the folder that it leads to with -o."

# A name with three rounds of %25 is no name that anybody gave to a model.
_ROUNDS = 4
_DRIVE = re.compile("[A-Za-z]:")
_HELP = "Name the model itself, or give the folder that it is in."
_LINK_HELP = "Remove the link, or give the folder that it leads to with -o."


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of each job: seconds, bytes of memory; None for none. hashes: True to hash the files."""

    seconds: float | None = None
    memory: int | None = None
    hashes: bool = False


@dataclass(slots=True)
class JobList:
    """The jobs of a call, and the outcomes of jobs that cannot begin.

    has_folder: the results go to a folder. left_out: files beside the models that are results of an earlier call.
    """

    jobs: list[Job] = field(default_factory=list)
    failed: list[Outcome] = field(default_factory=list)
    has_folder: bool = False
    left_out: Sequence[ModelSource] = ()

    def to_do(
        self, kept: Container[tuple[str, str | None]] = (), earlier: Sequence[Outcome] | None = None
    ) -> list[Job]:
        """Return the jobs that are left. A job becomes a failure if its result would replace a file, or the result of
        another model.

        kept: the models, and second models, that an earlier call finished. earlier: all outcomes that the earlier call
        told, None without an earlier call. That call may have written a result, and ended before it could tell so.
        """
        taken: dict[Path, str] = {}
        left: list[Job] = []
        resumes = earlier is not None
        results = set() if earlier is None else self._results(earlier)
        for job in self.jobs:
            if os.path.realpath(job.model) in results and not job.task.output.in_place:
                # The earlier call wrote it: it was no model then.
                continue
            job = replace(job, is_new=job.is_new or resumes)
            obstacle = _in_the_way(job, taken)
            if (job.model, job.after) in kept:
                continue
            if obstacle is None:
                left.append(job)
            else:
                self.failed.append(job.failed([obstacle]))
        return left

    def _results(self, earlier: Sequence[Outcome]) -> set[str]:
        """Return the files that an earlier call wrote, also for models whose outcomes it did not tell."""
        told = {outcome.model for outcome in earlier}
        places = [job.place for job in self.jobs if job.model not in told and not _is_itself(job)]
        written = [outcome.output for outcome in earlier]
        return {os.path.realpath(place) for place in (*places, *written) if place is not None}


def plan_jobs(task: FileTask, sources: Sequence[ModelSource], limits: Limits, output: str | None) -> JobList:
    """Plan one job for each model.

    task: the work, without a model. output: the folder of the results, None for the default place. Raises
    SplitgraphError if the folder is a file, and for an output that no model may have.
    """
    is_file = output is not None and names_file(sources, output)
    if output is not None and not is_file:
        _require_folder(output)
    task = _within(task, limits)
    options, plan = digest(task), JobList(has_folder=output is not None and not is_file)
    for source in sources:
        job = Job(source.name, task, options, None, limits.seconds, limits.memory, limits.hashes)
        try:
            if source.problem is not None:
                raise SplitgraphError(source.problem.message, [source.problem])
            if source.is_url:
                require_below(source)
            placed = replace(job, task=replace(task, place=Path(str(output)))) if is_file else job
            plan.jobs.append(_placed(placed, source, None if is_file else output))
        except SplitgraphError as error:
            plan.failed.append(job.failed(error.diagnostics))
    return plan


def plan_pairs(task: FileTask, pairs: Iterable[tuple[str, str | None]], limits: Limits) -> JobList:
    """Plan one job for each pair of models; a model without a second one is a failure."""
    task = _within(task, limits)
    options, plan = digest(task), JobList()
    for before, after in pairs:
        job = Job(before, task, options, after, limits.seconds, limits.memory, limits.hashes)
        if after is None:
            help = "Give the second model the path of the first one, or its name with a tag (model.opset18.onnx)."
            no_second = diagnostic(
                "SG601", "there is no second model, or there are several, to compare this one with", before, help=help
            )
            plan.failed.append(job.failed([no_second]))
        else:
            pair: Any = {"model": before, "after": after}
            plan.jobs.append(replace(job, task=replace(task, **pair)))
    return plan


def _within(task: FileTask, limits: Limits) -> FileTask:
    """Return the task, limited to the time of the job."""
    if limits.seconds is None or not task.runs_models:
        return task
    running, seconds = task.running, _RUNNING_SHARE * limits.seconds
    timeout = None if running.timeout is None else min(running.timeout, seconds)
    return replace(task, running=running._replace(timeout=timeout, longest=min(running.longest, seconds)))


def names_file(sources: Sequence[ModelSource], output: str) -> bool:
    """Return True if an output is the file for the only model, which the user named, as in a call for one model."""
    is_one = len(sources) == 1 and sources[0].relative is None and not sources[0].is_url
    return is_one and not output.endswith(("/", os.sep)) and not os.path.isdir(output)


def _require_folder(output: str) -> None:
    path = Path(output)
    if path.suffix.lower() in _FILES and not os.path.lexists(path) and not output.endswith(("/", os.sep)):
        text = f"with many models -o is a folder, and {output} is the name of a file"
        help = f"Write {output}/ for a folder of this name; or give one model."
        raise SplitgraphError(f"{text}. {help}", [diagnostic("SG601", text, output, help=help)])
    existing = next((folder for folder in (path, *path.parents) if folder.exists()), Path("/"))
    dangling = next((folder for folder in (path, *path.parents) if folder.is_symlink() and not folder.exists()), None)
    if existing.is_dir() and os.access(existing, os.W_OK) and dangling is None:
        return
    problem = "cannot be written to" if existing.is_dir() else "is a file"
    existing, problem = (existing, problem) if dangling is None else (dangling, "is a link that leads nowhere")
    text = f"with many models -o is a folder, and {existing} {problem}"
    raise SplitgraphError(text, [diagnostic("SG109", text, output)])


def _placed(job: Job, source: ModelSource, output: str | None) -> Job:
    """Return the job with its model and the place of its result. Raises SplitgraphError."""
    model: Any = source.name if source.is_url else Path(source.name)
    task: FileTask = replace(job.task, model=model)
    if task.verb in ("check", "verify"):
        return replace(job, task=task)
    if output is not None:
        named = replace(task, model=Path(file_name(source.name) if source.is_url else source.name))
        # Pages of model.onnx and model.xml have two names.
        ending = ".html" if task.verb == "report" else ""
        name = _default_name(named) if source.relative is None else f"{source.relative}{ending}"
        task = replace(task, place=place_below(output, name, source))
    elif source.is_url and (task.verb == "report" or (task.is_rewrite and not task.output.dry_run)):
        text = "the result of a model at a URL needs a folder"
        raise SplitgraphError(text, [diagnostic("SG601", text, source.name, help="Give a folder with -o.")])
    if source.is_url and output is None:
        return replace(job, task=task)
    path = task.path()
    return replace(job, task=task, is_new=path is not None and not os.path.lexists(path))


def _default_name(task: FileTask) -> str:
    """Return the name of the result for a model that the user named, as in a call for one model."""
    path = replace(task, output=task.output._replace(output="./"), place=None).path()
    assert path is not None
    return path.name


def _is_itself(job: Job) -> bool:
    """Return True if the result would replace the model: in place, or because the name of the model already is the
    default name of a result (model.opset18.onnx). Such a model is as wanted, or is refused when it is opened.
    """
    return job.place is not None and os.path.realpath(job.place) == os.path.realpath(job.model)


def _in_the_way(job: Job, taken: dict[Path, str]) -> Diagnostic | None:
    """Return the reason why a job cannot begin: its result would replace a file, or the result of another model."""
    place = job.place
    if place is None or _is_itself(job):
        return None
    owner = taken.setdefault(Path(os.path.realpath(place)), job.model)
    if owner != job.model:
        help = "Give the two models other names, or convert them in two calls."
        return diagnostic("SG601", f"the result of {owner} goes to {place}, too", job.model, help=help)
    # A model that is as wanted needs no file beside it: whoever opens it knows.
    replaces = job.task.output.force or job.task.output.dry_run
    if job.task.place is not None and not job.is_new and not replaces:
        return diagnostic("SG108", f"{place} exists", str(place))
    return None


def require_below(source: ModelSource) -> None:
    """Raise SplitgraphError (SG601) if a source is not below the folder in which it was found. A name from another
    machine may be written so that a server or a system reads it as another folder.
    """
    if source.relative is None:
        parts: tuple[str, ...] = ()
    elif source.is_url:
        parts = tuple(_decoded(str(source.relative)).split("/"))
    else:
        parts = source.relative.parts
    is_wrong = (lambda part: _is_no_name(part)) if source.is_url else (lambda part: part in ("..", os.sep))
    if source.relative == PurePosixPath() or any(map(is_wrong, parts)):
        text = f"{source.name} is not below the folder that it was found in"
        raise SplitgraphError(text, [diagnostic("SG601", text, source.name, help=_HELP)])


def place_below(folder: str, name: str, source: ModelSource) -> Path:
    """Return the place of a result in a folder. Raises SplitgraphError (SG601) for a place outside."""
    require_below(source)
    place = Path(folder) / name
    outside = not Path(os.path.realpath(place)).is_relative_to(os.path.realpath(folder))
    if outside or "\0" in name or not Path(name).name:
        text = f"the result of {source.name} would be outside of {folder}"
        raise SplitgraphError(text, [diagnostic("SG601", text, source.name, help=_LINK_HELP if outside else _HELP)])
    return place


def _decoded(text: str) -> str:
    """Return a path without %2e and the like, which a server decodes once or more often."""
    for _ in range(_ROUNDS):
        text, before = unquote(text), text
        if text == before:
            break
    return text


def _is_no_name(part: str) -> bool:
    """Return True for a part of a path that some system reads as another folder: .., "", a drive, a part with a
    backslash, or with characters that end a name.
    """
    has_separator = "\\" in part or any(ord(char) < 32 for char in part)
    return not part.strip(". ") or has_separator or _DRIVE.match(part) is not None
