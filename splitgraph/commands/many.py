"""Decides whether a command is about one model or many."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

# Options that each command has, for one model, too.
_OF_ONE = ("limit", "force", "skip_newer", "diff", "values")


def run_models(
    arguments: Sequence[str],
    work: Any,
    one: Callable[[Any], int],
    options: Mapping[str, Any],
    *,
    as_json: bool,
    quiet: bool,
    pairs: str | None = None,
) -> int:
    """Run a command on one model, or on many. Returns the exit code.

    arguments: files, folders, patterns and URLs. work: an InferWork or another one of `work`, without its model. one:
    runs a command on one model. options: for many models. pairs: the folder of the second models.
    """
    if pairs is None and len(arguments) == 1 and _is_file(arguments[0]) and not _has_option_for_many(options):
        return one(replace(work, model=Path(arguments[0])))
    from splitgraph.commands.batch import run_batch

    return run_batch(arguments, work, options, pairs=pairs, as_json=as_json, quiet=quiet)


def _is_file(argument: str) -> bool:
    """True for the name of one file, also of one that does not exist."""
    if os.path.lexists(argument):
        return not os.path.isdir(argument)
    # For a model that is there, which is most often so, nothing is imported.
    from splitgraph.batch.remote import is_pattern, is_url

    return not is_pattern(argument) and not is_url(argument)


def _has_option_for_many(options: Mapping[str, Any]) -> bool:
    return any(value for name, value in options.items() if name not in _OF_ONE)
