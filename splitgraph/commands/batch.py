"""Run a command on many models: a line for each as it ends, a summary, and the reports that the user wants."""

from __future__ import annotations

import contextlib
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from operator import attrgetter
from pathlib import Path
from typing import Any

from splitgraph.findings.diagnostics import SplitgraphError, diagnostic
from splitgraph.findings.exit_codes import CLEAN, FINDINGS, INTERNAL_ERROR, WRONG_USAGE
from splitgraph.findings.outcome import Outcome, Verb
from splitgraph.many.plan import JobList, Limits, plan_jobs, plan_pairs
from splitgraph.many.reports import ReportFile, done_before, read_report
from splitgraph.many.run_jobs import Workers, dask_executor, run_jobs
from splitgraph.many.sources import find_pairs, find_sources, without_results
from splitgraph.options import TIMEOUT, Many
from splitgraph.reports.batch_pages import outcome_lines, summary_page
from splitgraph.reports.printing import print_document, print_notice, print_result, print_text, say_error
from splitgraph.reports.text import count, line, shortened
from splitgraph.work.task import Call, FileTask, refuse_other_kind

_GIB = 2**30
# Characters of the names of results that are left out.
_SHOWN = 300
# The index page of many reports.
_INDEX = "index.html"
# Models that are named while they are worked on.
_MOST_NAMED = 3


def run_batch(call: Call, pairs: str | None) -> int:
    """Run a command on many models. Returns the exit code: 1 if anything is wrong with any of them, 70 for our fault.

    pairs: the folder of the second models. Raises SplitgraphError for a wrong call, before any work.
    """
    began = time.monotonic()
    task, shown, many = call.task, call.shown, call.many
    verb, force = task.verb, task.output.force
    _check_files(call)
    plan = _planned(call, pairs)
    _refuse_models(many, plan)
    if plan.left_out and not shown.quiet:
        names = shortened(", ".join(source.name for source in plan.left_out), _SHOWN)
        results = count(len(plan.left_out), "result")
        print_notice([line(f"left out {results} of earlier calls, beside the models: {names}")])
    has_index = verb == "report" and plan.has_folder
    if has_index:
        refuse_index(task, force=force or many.resume)
    report = None if many.report is None else Path(many.report)
    earlier = read_report(report) if many.resume and report is not None else None
    known = done_before(plan.jobs, earlier or ())
    jobs = plan.to_do(known, earlier)
    total = len(jobs) + len(plan.failed) + len(known)
    workers, outcomes = Workers(), list(known.values())
    for file in filter(None, (many.report, many.junit)):
        # In the folder of the results, which may be new.
        Path(file).parent.mkdir(parents=True, exist_ok=True)
    # A scheduler that does not answer leaves the earlier report as it is.
    with (
        _executor(many.scheduler) as executor,
        _Lines(report, known.values(), verb, total=total, shown=_shows_lines(call)) as lines,
    ):
        lines.progress.follow(workers)
        for outcome in plan.failed:
            lines.add(outcome, outcomes)
        running = run_jobs(jobs, executor, workers, many.jobs)
        with contextlib.closing(running):
            for outcome in running:
                lines.add(outcome, outcomes)
    seconds = time.monotonic() - began
    codes = {outcome.code for outcome in outcomes}
    code = INTERNAL_ERROR if INTERNAL_ERROR in codes else FINDINGS if codes - {CLEAN} else CLEAN
    try:
        if many.junit is not None:
            from splitgraph.many.reports import write_junit

            write_junit(Path(many.junit), verb, outcomes, seconds, task.targets if verb == "check" else ())
        if has_index:
            write_index(Path(task.output.output or ""), outcomes, title=task.title)
    except SplitgraphError as error:
        # The outcomes of the models are reported all the same.
        say_error(str(error), error.diagnostics)
        code = WRONG_USAGE
    if shown.as_json:
        from splitgraph.reports.documents.outcomes import batch_json

        print_document(batch_json(verb, outcomes))
    elif many.format is not None:
        from splitgraph.many.annotations import as_annotations

        print_text(as_annotations(many.format, outcomes))
    elif not shown.quiet:
        print_result(summary_page(verb, outcomes, seconds=seconds, resumed=len(known)))
    return code


def _shows_lines(call: Call) -> bool:
    """Return True if each model gets a line as it ends: nothing else is printed on stdout."""
    return not (call.shown.quiet or call.shown.as_json or call.many.format is not None)


def _planned(call: Call, pairs: str | None) -> JobList:
    task, many = call.task, call.many
    seconds = many.limit or task.running.timeout or TIMEOUT
    limits = Limits(seconds, _memory(many.memory), hashes=many.report is not None)
    if pairs is not None:
        for folder in (*call.models, pairs):
            if not os.path.isdir(folder):
                raise _usage(f"--pairs compares two folders, and {folder} is no folder")
        before = find_sources(call.models, many.exclude, below=Path(pairs))
        return plan_pairs(task, find_pairs(before, find_sources([pairs])), limits)
    output = task.output.output
    if output is not None and task.output.in_place:
        raise _usage("--in-place overwrites the models, so -o has no meaning; give one of the two")
    if task.is_rewrite:
        # One newer model among many is no reason to fail.
        task = replace(task, output=task.output._replace(skip_newer=task.output.skip_newer is not False))
    below = None if output is None else Path(output)
    models = find_sources(call.models, many.exclude, below=below, only_onnx=task.needs_onnx, seconds=limits.seconds)
    if task.is_rewrite and output is None and not task.output.in_place:
        sources, results = without_results(models, partial(_is_tag, task))
        plan = plan_jobs(task, sources, limits, output)
        plan.left_out = results
        return plan
    return plan_jobs(task, models, limits, output)


def _is_tag(task: FileTask, tag: str) -> bool:
    """Return True for the tag in the name of a result that is no model of this call. A model with the wanted opset
    stays a model: nothing is written for it.
    """
    from splitgraph.runtimes.target import targets

    if tag == task.wanted.tag and re.fullmatch(r"(opset\d+)?\.?(ml\d+)?", tag):
        return False
    names = "|".join(sorted({re.escape(name.partition("@")[0]) for name in targets()}))
    part = rf"(opset\d+|ml\d+|split|variadic-split|slice|({names})(@[\w.]+)?)"
    return re.fullmatch(rf"{part}(\.{part})*", tag) is not None


def _memory(gib: float | None) -> int | None:
    """Return the limit of a worker's memory in bytes; by default the memory of the machine."""
    if gib is not None:
        return max(1, int(gib * _GIB))
    if not hasattr(os, "sysconf"):
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _check_files(call: Call) -> None:
    """Refuse a report that exists, or has the name of a file of another kind, before any work. A missing folder for the
    results is made.
    """
    many, output, force = call.many, call.task.output.output, call.task.output.force
    if call.shown.diff:
        raise _usage("--diff is for one model; with many, compare two of them with splitgraph diff")
    if call.shown.values:
        raise _usage("--all is for one model; the report of many has no values")
    if call.shown.why is not None:
        raise _usage("--why is for one model")
    if call.shown.as_json and many.format is not None:
        raise _usage("--json prints one document, so --format has no place; give one of the two")
    if many.resume and many.report is None:
        raise _usage("--resume needs --report, the report of the call that was interrupted")
    for name, file in (("report", many.report), ("junit", many.junit)):
        if file is None:
            continue
        refuse_other_kind(f"--{name}", file)
        folder = Path(file).parent
        is_made = output is not None and Path(os.path.abspath(folder)).is_relative_to(os.path.abspath(output))
        if not folder.is_dir() and not (is_made and not os.path.lexists(folder)):
            text = f"the folder {folder} of --{name} does not exist"
            raise SplitgraphError(text, [diagnostic("SG109", text, file)])
        if os.path.isdir(file):
            raise _usage(f"--{name} is a file, and {file} is a folder")
        if os.path.exists(file) and not os.path.isfile(file):
            raise _usage(f"--{name} is a file, and {file} is none")
        if os.path.lexists(file) and not force and not many.resume:
            advice = ", or --resume to go on with it" if name == "report" else ""
            text = f"{file} exists; give another name with --{name}, or pass --force to overwrite it{advice}"
            raise SplitgraphError(text, [diagnostic("SG108", text, file)])


def _refuse_models(many: Many, plan: JobList) -> None:
    """Refuse a report that would replace a model or the other report."""
    named = {name: file for name, file in (("report", many.report), ("junit", many.junit)) if file is not None}
    files = {name: os.path.realpath(file) for name, file in named.items()}
    if len(set(files.values())) < len(files):
        raise _usage("--report and --junit are two files")
    models = {os.path.realpath(name) for job in plan.jobs for name in (job.model, job.after or job.model)}
    for name, path in files.items():
        if path in models:
            raise _usage(f"--{name} is one of the models, {named[name]}")


def _usage(text: str) -> SplitgraphError:
    return SplitgraphError(text, [diagnostic("SG601", text)])


@contextlib.contextmanager
def _executor(scheduler: str | None) -> Iterator[Executor | None]:
    if scheduler is None:
        yield None
        return
    with dask_executor(scheduler) as executor:
        yield executor


class _Lines:
    """The output while models end: a line of the page for each, and a line of the report."""

    def __init__(self, report: Path | None, kept: Collection[Outcome], verb: Verb, *, total: int, shown: bool) -> None:
        self.progress = Progress(verb, total=total, finished=len(kept))
        self._report = None if report is None else ReportFile(report, kept)
        self._is_shown = shown

    def add(self, outcome: Outcome, outcomes: list[Outcome]) -> None:
        """Show and report the outcome of a model."""
        outcomes.append(outcome)
        if self._report is not None:
            self._report.add(outcome)
        with self.progress.paused(outcome):
            if self._is_shown:
                print_result(outcome_lines(outcome))
            elif not outcome.ok:
                print_notice(outcome_lines(outcome))

    def __enter__(self) -> _Lines:
        self.progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.progress.stop()
        if self._report is not None:
            self._report.close()


def refuse_index(task: FileTask, *, force: bool) -> None:
    """Raise SplitgraphError for a call that draws one split, and if the folder already has an index page."""
    if task.svg is not None:
        text = "--svg draws a split of one model"
        raise SplitgraphError(text, [diagnostic("SG601", text)])
    path = Path(task.output.output or "", _INDEX)
    if os.path.lexists(path) and not force:
        text = f"{path} exists; give another folder with -o, or pass --force to overwrite it"
        raise SplitgraphError(text, [diagnostic("SG108", text, str(path))])


def write_index(folder: Path, outcomes: Sequence[Outcome], *, title: str | None) -> None:
    """Write a page with a row for each model. Raises ModelError if that fails."""
    from splitgraph.formats.atomic_write import write_text
    from splitgraph.reports.html.page import IndexRow, index_page

    rows = []
    for outcome in sorted(outcomes, key=attrgetter("model")):
        numbers = Counter(finding.severity for finding in outcome.diagnostics)
        errors = [finding for finding in outcome.diagnostics if finding.severity == "error"]
        rows.append(
            IndexRow(
                name=outcome.model,
                status=outcome.status,
                link=None if outcome.output is None else os.path.relpath(outcome.output, folder),
                before="" if outcome.opset_before is None else str(outcome.opset_before),
                splits=outcome.splits,
                errors=numbers["error"],
                warnings=numbers["warning"],
                notes=numbers["info"],
                seconds=outcome.seconds,
                message=f"{errors[0].code} {errors[0].message}" if errors else "",
            )
        )
    write_text(index_page(rows, title=title or f"{len(rows):,} models"), folder / _INDEX, overwrite=True)


class Progress:
    """A bar with the models in work. Nothing is shown if stderr is no terminal."""

    def __init__(self, verb: Verb, *, total: int, finished: int) -> None:
        self._verb, self._total, self._finished, self._wrong = verb, total, finished, 0
        self._workers: Workers | None = None
        self._live: Any = None

    def follow(self, workers: Workers) -> None:
        """Show the names of the models that these workers work on."""
        self._workers = workers

    def start(self) -> None:
        """Show the bar."""
        if not sys.stderr.isatty():
            return
        from rich.console import Console
        from rich.live import Live
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (TextColumn(self._verb), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[wrong]}"))
        self._bar = Progress(*columns, TimeRemainingColumn())
        self._task = self._bar.add_task(self._verb, total=self._total, completed=self._finished, wrong="")
        console = Console(stderr=True, markup=False, highlight=False, emoji=False)
        self._live = Live(get_renderable=self._shown, console=console, refresh_per_second=4, transient=True)
        self._live.start()

    def stop(self) -> None:
        """Remove the bar."""
        if self._live is not None:
            self._live.stop()
            self._live = None

    @contextlib.contextmanager
    def paused(self, outcome: Outcome) -> Iterator[None]:
        """Count a model, and print lines above the bar in the block."""
        self._finished += 1
        self._wrong += not outcome.ok
        if self._live is None:
            yield
            return
        # Lines go to stdout, which may be the same terminal.
        self._live.stop()
        try:
            yield
        finally:
            wrong = f"{self._wrong} wrong" if self._wrong else ""
            self._bar.update(self._task, completed=self._finished, wrong=wrong)
            self._live.start()

    def _shown(self) -> Any:
        from rich.console import Group
        from rich.text import Text

        from splitgraph.reports.text import printable, shortened

        names = [] if self._workers is None else self._workers.running
        lines = [Text(f"  {shortened(printable(name), 100)}", style="dim") for name in names[:_MOST_NAMED]]
        if len(names) > _MOST_NAMED:
            lines.append(Text(f"  and {len(names) - _MOST_NAMED} more", style="dim"))
        return Group(self._bar, *lines)
