"""Read the arguments of a command on models, and decide whether it is about one model or many."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from splitgraph.commands.configuration import accepted_texts
from splitgraph.findings.diagnostics import SplitgraphError, diagnostic
from splitgraph.findings.outcome import Verb
from splitgraph.options import TIMEOUT, Converting, Many, NewSizes, Output, Running, Shown, Sizes, leeway_of
from splitgraph.work.task import Call, FileTask, parse_bindings, parse_opsets


def read_call(verb: Verb, typed: Mapping[str, Any], **known: Any) -> Call:
    """Return the call that a user typed: its models, the task for each of them, and how results are shown.

    typed: arguments and options by the names of their fields. known: fields of the task that are not typed. Raises
    SplitgraphError.
    """
    given = _parsed(verb, typed)

    def record(kind: Any) -> Any:
        return kind(**{name: given.pop(name) for name in kind._fields if name in given})

    forms = {name: given.pop(name, False) for name in ("read_by_form", "fix_defaults")}
    leeway = leeway_of(given.pop("accept", ()), given.pop("assume_defaults", False), **forms)
    wanted = NewSizes if verb == "reshape" else Converting
    records = {"sizes": Sizes, "wanted": wanted, "running": Running, "output": Output}
    made: Any = {name: record(kind) for name, kind in records.items()}
    shown, many = record(Shown), record(Many)
    models = given.pop("models", ())
    # The fields that no record has are fields of the task itself.
    return Call(models, FileTask(verb, leeway=leeway, **made, **{**given, **known}), shown, many)


def _parsed(verb: Verb, typed: Mapping[str, Any]) -> dict[str, Any]:
    """Return what is typed, with sizes, opsets and accepted findings read from their texts."""
    given = dict(typed)
    if verb == "verify":
        # verify writes no model, so --bind and --try mean the same.
        given["try_sizes"] = (*given.pop("bind"), *given["try_sizes"])
    for name, option in (("bind", "--bind"), ("try_sizes", "--try")):
        if name in given:
            given[name] = parse_bindings(given[name], option)
    if "opset" in given:
        given["opset"] = parse_opsets(given["opset"])
    if verb == "reshape":
        given["shapes"] = given["shapes"] or None
    if "accept" in given:
        given["accept"] = accepted_texts(given["accept"])
    return given


def run_models(call: Call, run_one: Callable[[FileTask, Shown], int], pairs: str | None = None) -> int:
    """Run a command on one model, or on many, and return the exit code.

    run_one: runs it on one model. pairs: the folder of the second models.
    """
    if pairs is None and len(call.models) == 1 and not any(call.many):
        (named,) = call.models
        if _is_file(named):
            return run_one(replace(call.task, model=Path(named)), call.shown)
        if _is_model_at_url(named):
            return run_one(_of_url(call.task, named), call.shown)
    from splitgraph.commands.batch import run_batch

    return run_batch(call, pairs)


def _is_model_at_url(argument: str) -> bool:
    """Return True for the URL of one model."""
    from splitgraph.many.remote import is_model_url

    return is_model_url(argument)


def _of_url(task: FileTask, url: str) -> FileTask:
    """Return the work on a model at a URL, which is read into the cache. The default place of a result is the current
    folder. Raises SplitgraphError for a URL that cannot be read, and for work that would overwrite it.
    """
    from splitgraph.many.remote import localized

    if task.output.in_place:
        text = "--in-place overwrites the model, and a URL is not written to; give a file with -o"
        raise SplitgraphError(text, [diagnostic("SG601", text, url)])
    output = task.output
    if output.output is None and (task.is_rewrite or task.verb == "report"):
        output = output._replace(output="./")
    return replace(task, model=localized(url, task.running.timeout or TIMEOUT), source=url, output=output)


def _is_file(argument: str) -> bool:
    """Return True for the name of one file, also of one that does not exist."""
    if os.path.lexists(argument):
        return not os.path.isdir(argument)
    # For a model that is there, which is most often so, nothing is imported.
    from splitgraph.many.remote import is_pattern, is_url

    return not is_pattern(argument) and not is_url(argument)
