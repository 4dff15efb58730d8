"""`splitgraph.map_models`."""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Executor
from pathlib import Path
from typing import Any

from splitgraph import api
from splitgraph.batch.plan import Limits, Plan, plan_jobs, plan_pairs
from splitgraph.batch.run_jobs import Workers, run_jobs
from splitgraph.batch.sources import find_sources, needs_onnx
from splitgraph.deferred import import_whole
from splitgraph.diagnostics import SplitgraphError
from splitgraph.model_kinds import StrPath
from splitgraph.outcome import VERBS, Outcome, Verb

_GIB = 2**30
# The command line's `report` writes pages, and has no function.
_VERBS = tuple(verb for verb in VERBS if verb != "report")
# Keywords that say where and how a result is written.
_WRITING = ("force", "external_data")


def map_models(
    verb: Verb,
    sources: StrPath | Sequence[StrPath | tuple[StrPath, StrPath]],
    *,
    executor: Executor | None = None,
    jobs: int | None = None,
    timeout: float | None = 300,
    memory: float | None = None,
    output: StrPath | None = None,
    exclude: str | Sequence[str] = (),
    hashes: bool = False,
    **options: Any,
) -> Iterator[Outcome]:
    """Run a verb on many models; yields the outcome of each as it ends. A model that is wrong, hangs, or crashes its
    process has an outcome that says so, and takes no other model with it. Nothing is raised for a model.

    verb: "infer", "upgrade", "downgrade", "convert", "check" or "verify". sources: files, folders (with their
    subfolders), patterns and URLs; for "verify" pairs of files.
    executor: of concurrent.futures, such as `distributed.Client(...).get_executor()`; None for worker processes of this
    machine. Under an executor, too, the models run in worker processes, so that a crash of a model is none of the
    executor. jobs: without an executor, how many models at a time; None for one for each core.
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
    if jobs is not None and jobs < 1:
        raise SplitgraphError(f"jobs is {jobs!r}; it must be an integer of at least 1")
    if timeout is not None and not (isinstance(timeout, (int, float)) and math.isfinite(timeout) and timeout > 0):
        raise SplitgraphError(f"timeout is {timeout!r}; it must be a number of seconds, or None")
    sources = [sources] if isinstance(sources, (str, os.PathLike)) else list(sources)
    exclude = [exclude] if isinstance(exclude, str) else exclude
    limits = Limits(timeout, None if memory is None else max(1, int(memory * _GIB)), hashes)
    plan = _planned(verb, sources, limits, None if output is None else os.fspath(output), exclude, options)
    return _outcomes(plan, executor, jobs)


def _outcomes(plan: Plan, executor: Executor | None, jobs: int | None) -> Iterator[Outcome]:
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
) -> Plan:
    timeout = 300 if limits.seconds is None else limits.seconds
    if verb == "verify":
        from splitgraph.work.verifying import VerifyWork

        _require_keywords(verb, options)
        pairs: list[tuple[str, str | None]] = []
        for pair in sources:
            if not isinstance(pair, tuple) or len(pair) != 2:
                raise SplitgraphError(f"the sources of verify are pairs of models, (before, after), not {pair!r}")
            pairs.append((os.fspath(pair[0]), os.fspath(pair[1])))
        return plan_pairs(VerifyWork(Path(), Path(), {"timeout": timeout, **options}), pairs, limits)
    names = [_name(source) for source in sources]
    below = None if output is None else Path(output)
    found = find_sources(names, exclude, below=below, only_onnx=needs_onnx(verb, options), seconds=limits.seconds)
    return plan_jobs(verb, _work(verb, options, timeout, writes=output is not None), found, limits, output)


def _name(source: Any) -> str:
    if not isinstance(source, (str, os.PathLike)):
        raise SplitgraphError(f"the sources of map_models are paths and URLs, not {type(source).__name__}")
    return os.fspath(source)


def _work(verb: Verb, options: Mapping[str, Any], timeout: float, *, writes: bool) -> Any:
    writing = {name: options[name] for name in _WRITING if name in options}
    keywords = {name: value for name, value in options.items() if name not in writing}
    _require_keywords(verb, keywords)
    if verb == "infer":
        import_whole("splitgraph.work.inferring")
        from splitgraph.work.inferring import InferWork

        return InferWork(Path(), keywords=keywords, **writing)
    if verb == "check":
        import_whole("splitgraph.work.checking")
        from splitgraph.work.checking import CheckWork

        target = keywords.get("target", ())
        others = {name: value for name, value in keywords.items() if name != "target"}
        return CheckWork(Path(), [target] if isinstance(target, str) else target, others)
    import_whole("splitgraph.work.rewriting")
    from splitgraph.work.rewriting import RUNNING, RewriteWork

    running = {"timeout": timeout, **{name: keywords.pop(name) for name in RUNNING if name in keywords}}
    verify, skips = keywords.pop("verify", False), keywords.pop("skip_newer", True)
    verify = None if verify else False
    # Without a folder for results, no file is in the way of one.
    nowhere = {"in_place": not writes, "dry": not writes}
    shown = {"verify": verify, "running": running, "skips_newer": skips, **nowhere}
    return RewriteWork(verb, Path(), keywords, **writing, **shown)  # type: ignore[arg-type]


def _require_keywords(verb: Verb, keywords: Mapping[str, Any]) -> None:
    """Raises SplitgraphError for keywords that the verb does not have, and for one that is missing."""
    known = {name: value for name, value in keywords.items() if name != "skip_newer"}
    try:
        inspect.signature(getattr(api, verb)).bind("", *([""] if verb == "verify" else []), **known)
    except TypeError as error:
        raise SplitgraphError(f"map_models({verb!r}, ...): {error}") from error
