"""A command on many models: a line for each as it ends, a summary, and the reports that were asked for."""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from splitgraph.arguments import refuse_other_kind
from splitgraph.batch.plan import Limits, Plan, find_pairs, plan_jobs, plan_pairs
from splitgraph.batch.report_file import ReportFile, done_before, read_report
from splitgraph.batch.run_jobs import Workers, dask_executor, run_jobs
from splitgraph.batch.sources import find_sources, needs_onnx, without_results
from splitgraph.commands.index import refuse_index, write_index
from splitgraph.commands.progress import Progress
from splitgraph.diagnostics import SplitgraphError, diagnostic
from splitgraph.exit_codes import CLEAN, FINDINGS, INTERNAL_ERROR, WRONG_USAGE
from splitgraph.outcome import Outcome, Verb
from splitgraph.report.batch_pages import outcome_lines, summary_page
from splitgraph.report.layout import line
from splitgraph.report.printing import print_document, print_notice, print_result, say_error
from splitgraph.report.text import count, shortened
from splitgraph.work.rewriting import RewriteWork

_GIB = 2**30
# Characters of the names of results that are left out.
_SHOWN = 300
# Seconds for each model, unless --timeout says more or less.
_SECONDS = 300.0


def run_batch(
    arguments: Sequence[str],
    work: Any,
    options: Mapping[str, Any],
    *,
    pairs: str | None,
    as_json: bool,
    quiet: bool,
) -> int:
    """Run a command on many models. Returns the exit code: 1 if anything is wrong with any of them, 70 for our fault.

    Raises SplitgraphError before any work for a call that is wrong.
    """
    began = time.monotonic()
    verb: Verb = work.verb
    force = getattr(work, "force", options.get("force", False))
    _check_files(options, force, getattr(work, "output", None))
    plan = _planned(verb, arguments, work, options, pairs)
    _refuse_models(options, plan)
    if plan.left_out and not quiet:
        names = shortened(", ".join(source.name for source in plan.left_out), _SHOWN)
        results = count(len(plan.left_out), "result")
        print_notice([line(f"left out {results} of earlier calls, beside the models: {names}")])
    has_index = verb == "report" and plan.has_folder
    if has_index:
        refuse_index(work, force=force or options["resume"])
    report = None if options["report"] is None else Path(options["report"])
    earlier = read_report(report) if options["resume"] and report is not None else None
    known = done_before(plan.jobs, earlier or ())
    jobs = plan.to_do(known, earlier)
    total = len(jobs) + len(plan.failed) + len(known)
    workers, outcomes = Workers(), list(known.values())
    for file in filter(None, (options["report"], options["junit"])):
        # In the folder of the results, which may be new.
        Path(file).parent.mkdir(parents=True, exist_ok=True)
    # A scheduler that does not answer leaves the earlier report as it is.
    with (
        _executor(options["scheduler"]) as executor,
        _Lines(report, known.values(), verb, total=total, shown=not (quiet or as_json)) as lines,
    ):
        lines.progress.follow(workers)
        for outcome in plan.failed:
            lines.add(outcome, outcomes)
        found = run_jobs(jobs, executor, workers, options["jobs"])
        with contextlib.closing(found):
            for outcome in found:
                lines.add(outcome, outcomes)
    seconds = time.monotonic() - began
    codes = {outcome.code for outcome in outcomes}
    code = INTERNAL_ERROR if INTERNAL_ERROR in codes else FINDINGS if codes - {CLEAN} else CLEAN
    try:
        if options["junit"] is not None:
            from splitgraph.batch.junit import write_junit

            write_junit(Path(options["junit"]), verb, outcomes, seconds)
        if has_index:
            write_index(Path(work.output), outcomes, title=work.title)
    except SplitgraphError as error:
        # What became of the models is told all the same.
        say_error(str(error), error.diagnostics)
        code = WRONG_USAGE
    if as_json:
        from splitgraph.report.batch_documents import batch_json

        print_document(batch_json(verb, outcomes))
    elif not quiet:
        print_result(summary_page(verb, outcomes, seconds=seconds, resumed=len(known)))
    return code


def _planned(verb: Verb, arguments: Sequence[str], work: Any, options: Mapping[str, Any], pairs: str | None) -> Plan:
    seconds = options.get("timeout") or options.get("limit") or _SECONDS
    limits = Limits(seconds, _memory(options["memory"]), hashes=options["report"] is not None)
    if pairs is not None:
        for folder in (*arguments, pairs):
            if not os.path.isdir(folder):
                raise _usage(f"--pairs compares two folders, and {folder} is no folder")
        before = find_sources(arguments, options["exclude"], below=Path(pairs))
        return plan_pairs(work, find_pairs(before, find_sources([pairs])), limits)
    output: str | None = getattr(work, "output", None)
    if output is not None and getattr(work, "in_place", False):
        raise _usage("--in-place overwrites the models, so -o has no meaning; give one of the two")
    if isinstance(work, RewriteWork):
        # One newer model among many is no reason to fail.
        work = replace(work, skips_newer=options["skip_newer"] is not False)
    below, only_onnx = None if output is None else Path(output), needs_onnx(verb, getattr(work, "keywords", {}))
    found = find_sources(arguments, options["exclude"], below=below, only_onnx=only_onnx, seconds=limits.seconds)
    if isinstance(work, RewriteWork) and output is None and not work.in_place:
        sources, results = without_results(found, partial(_is_tag, work))
        plan = plan_jobs(verb, work, sources, limits, output)
        plan.left_out = results
        return plan
    return plan_jobs(verb, work, found, limits, output)


def _is_tag(work: RewriteWork, tag: str) -> bool:
    """True for the tag in the name of a result that is no model of this call. A model at the opset that is wanted stays
    one: nothing is written for it.
    """
    from splitgraph.runtimes.target import targets

    if tag == work.tag == f"opset{work.opset}":
        return False
    names = "|".join(sorted({re.escape(name.partition("@")[0]) for name in targets()}))
    part = rf"(opset\d+|split|variadic-split|slice|({names})(@[\w.]+)?)"
    return re.fullmatch(rf"{part}(\.{part})*", tag) is not None


def _memory(gib: float | None) -> int | None:
    """The limit of a worker's memory in bytes: that of the machine, unless one is given."""
    if gib is not None:
        return max(1, int(gib * _GIB))
    if not hasattr(os, "sysconf"):
        return None
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _check_files(options: Mapping[str, Any], force: bool, output: str | None) -> None:
    """Refuse a report that exists, or is named like a file of another kind, before any work. output: the folder of the
    results, which a call makes where it is not there.
    """
    if options.get("diff"):
        raise _usage("--diff is for one model; with many, compare two of them with splitgraph diff")
    if options.get("values"):
        raise _usage("--all is for one model; the report of many has no values")
    if options["resume"] and options["report"] is None:
        raise _usage("--resume needs --report, the report of the call that was interrupted")
    for name in ("report", "junit"):
        file = options[name]
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
        if os.path.lexists(file) and not force and not options["resume"]:
            advice = ", or --resume to go on with it" if name == "report" else ""
            text = f"{file} exists; give another name with --{name}, or pass --force to overwrite it{advice}"
            raise SplitgraphError(text, [diagnostic("SG108", text, file)])


def _refuse_models(options: Mapping[str, Any], plan: Plan) -> None:
    """Refuse a report in the place of a model, or of the other report."""
    files = {name: os.path.realpath(options[name]) for name in ("report", "junit") if options[name] is not None}
    if len(set(files.values())) < len(files):
        raise _usage("--report and --junit are two files")
    models = {os.path.realpath(name) for job in plan.jobs for name in (job.model, job.after or job.model)}
    for name, path in files.items():
        if path in models:
            raise _usage(f"--{name} is one of the models, {options[name]}")


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
    """What is told while models end: a line of the page for each, and a line of the report."""

    def __init__(self, report: Path | None, kept: Collection[Outcome], verb: Verb, *, total: int, shown: bool) -> None:
        self.progress = Progress(verb, total=total, done=len(kept))
        self._report = None if report is None else ReportFile(report, kept)
        self._is_shown = shown

    def add(self, outcome: Outcome, outcomes: list[Outcome]) -> None:
        """Tell what became of a model."""
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
