"""`splitgraph.map_models`: runs a verb on many models."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar, get_args

from splitgraph import api
from splitgraph.findings.diagnostics import SplitgraphError
from splitgraph.findings.near_names import meant
from splitgraph.findings.outcome import REWRITING, Outcome, Verb
from splitgraph.many.plan import JobList, Limits, plan_jobs, plan_pairs
from splitgraph.many.run_jobs import Workers, run_jobs
from splitgraph.many.sources import find_sources
from splitgraph.options import (
    ATOL,
    RTOL,
    TIMEOUT,
    Converting,
    NewSizes,
    Output,
    Running,
    Sizes,
    StrPath,
    leeway_of,
)
from splitgraph.work.task import FileTask

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from splitgraph.keywords import MapOptions

_GIB = 2**30
# The pages of `report` have an index, which the command writes.
MappedVerb = Literal["infer", "upgrade", "downgrade", "convert", "reshape", "check", "verify"]
_VERBS: tuple[MappedVerb, ...] = get_args(MappedVerb)
_Record = TypeVar("_Record", Sizes, Converting, NewSizes, Running, Output)


def map_models(
    verb: MappedVerb,
    sources: StrPath | Sequence[StrPath | tuple[StrPath, StrPath]],
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    timeout: float | None = 300,
    memory: float | None = None,
    output: StrPath | None = None,
    exclude: str | Sequence[str] = (),
    hashes: bool = False,
    **options: Unpack[MapOptions],
) -> Iterator[Outcome]:
    """Run a verb on many models; yields the outcome of each as it ends. A model that is wrong, hangs, or crashes its
    process has an outcome that says so, and takes no other model with it. Nothing is raised for a model.

    verb: "infer", "upgrade", "downgrade", "convert", "reshape", "check" or "verify". sources: files, folders (with
    their subfolders), patterns and URLs; for "verify" pairs of files.
    executor: of concurrent.futures, such as `distributed.Client(...).get_executor()`; None for worker processes of this
    machine. Under an executor, too, each model runs in a worker process, so that a crash does not take the executor
    down. jobs: how many models at a time, None for one for each core; not beside an executor, which decides that.
    timeout: seconds for each model, None for no limit. memory: GiB for each worker process, on Linux only.
    output: the folder of the results, None to write nothing. Models of folders and patterns keep their path below it,
    models that were named get their default name. exclude: patterns of models to leave out. hashes: whether
    `Outcome.files` is found.
    options: keywords of the verb (`upgrade` has verify=False); also force and external_data, as on the command line,
    and skip_newer=False for models beyond the opset to be refused.

    Raises SplitgraphError before the first outcome for wrong arguments, and for a folder without a model.
    """
    if verb not in _VERBS:
        raise SplitgraphError(f"there is no verb {verb!r} for many models; there are: {', '.join(_VERBS)}")
    if jobs is not None and (not isinstance(jobs, int) or jobs < 1):
        raise SplitgraphError(f"jobs is {jobs!r}; it must be an integer of at least 1")
    if jobs is not None and executor is not None:
        raise SplitgraphError("the executor decides how many models run at a time; leave jobs out")
    if timeout is not None and not _is_positive(timeout):
        raise SplitgraphError(f"timeout is {timeout!r}; it must be a number of seconds, or None")
    if memory is not None and not _is_positive(memory):
        raise SplitgraphError(f"memory is {memory!r}; it must be a number of GiB, or None")
    sources = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    exclude = [exclude] if isinstance(exclude, str) else exclude
    limits = Limits(timeout, None if memory is None else max(1, int(memory * _GIB)), hashes)
    plan = _planned(verb, sources, limits, None if output is None else os.fspath(output), exclude, options)
    return _outcomes(plan, executor, jobs)


def _is_positive(number: object) -> bool:
    return isinstance(number, (int, float)) and math.isfinite(number) and number > 0


def _outcomes(plan: JobList, executor: Executor | None, jobs: int | None) -> Iterator[Outcome]:
    left = plan.to_do()
    yield from plan.failed
    yield from run_jobs(left, executor, Workers(), jobs)


def _planned(
    verb: Verb,
    sources: Sequence[StrPath | tuple[StrPath, StrPath]],
    limits: Limits,
    output: str | None,
    exclude: Sequence[str],
    options: Mapping[str, Any],
) -> JobList:
    known = {name: value for name, value in options.items() if name not in ("force", "external_data", "skip_newer")}
    signature = inspect.signature(getattr(api, verb))
    for name in (name for name in known if name not in signature.parameters):
        near = meant(name, signature.parameters)
        raise SplitgraphError(f"map_models({verb!r}, ...): got an unexpected keyword argument {name!r}{near}")
    try:
        signature.bind("", *([""] if verb == "verify" else []), **known)
    except TypeError as error:
        raise SplitgraphError(f"map_models({verb!r}, ...): {error}") from error
    task = _task(verb, options, TIMEOUT if limits.seconds is None else limits.seconds, writes=output is not None)
    if verb == "verify":
        pairs: list[tuple[str, str | None]] = []
        for pair in sources:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise SplitgraphError(f"the sources of verify are pairs of models, (before, after), not {pair!r}")
            pairs.append((os.fspath(pair[0]), os.fspath(pair[1])))
        return plan_pairs(task, pairs, limits)
    names = [_name(source) for source in sources]
    below = None if output is None else Path(output)
    models = find_sources(names, exclude, below=below, only_onnx=task.needs_onnx, seconds=limits.seconds)
    return plan_jobs(task, models, limits, output)


def _name(source: Any) -> str:
    if not isinstance(source, (str, os.PathLike)):
        raise SplitgraphError(f"the sources of map_models are paths and URLs, not {type(source).__name__}")
    return os.fspath(source)


def _task(verb: Verb, options: Mapping[str, Any], longest: float, *, writes: bool) -> FileTask:
    """Return the work on each model. options: keywords of the verb, and of writing. longest: see `Running`."""
    given = {"longest": longest, "skip_newer": True, **options}
    # Without a folder for results, no file is in the way of one.
    given |= {"in_place": not writes, "dry_run": not writes} if verb in REWRITING else {}
    given["verify"] = None if options.get("verify") else False
    targets = ()
    if verb == "check":
        targets = given.pop("target", ())
    if verb == "verify":
        sizes = {**(given.pop("bind", None) or {}), **(given.get("try_sizes") or {})}
        given = {"rtol": RTOL, "atol": ATOL, **given, "try_sizes": sizes or None}
    given_leeway = (given.get("accept", ()), given.get("assume_defaults", False), given.get("empty_chunks", "clamp"))
    forms = {name: given.get(name, False) for name in ("read_by_form", "fix_defaults")}
    return FileTask(
        verb,
        sizes=_given(Sizes, given),
        leeway=leeway_of(*given_leeway, **forms),
        wanted=_given(NewSizes, given) if verb == "reshape" else _given(Converting, given),
        running=_given(Running, given),
        output=_given(Output, given),
        targets=[targets] if isinstance(targets, str) else targets,
        run=bool(given.get("run", False)) and verb == "check",
    )


def _given(record: type[_Record], options: Mapping[str, Any]) -> _Record:
    """Return a record with those options that are its fields."""
    fields: Any = record
    made: _Record = fields(**{name: options[name] for name in fields._fields if name in options})
    return made
