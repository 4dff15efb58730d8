"""`splitgraph verify`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import click

from splitgraph.arguments import parse_bindings
from splitgraph.commands.many import run_models
from splitgraph.report.printing import print_document, print_result, working
from splitgraph.work.verifying import CODES, VerifyWork, verify_files


def verify(
    before: Path,
    after: Path,
    *,
    bind: Sequence[str],
    try_sizes: Sequence[str],
    pairs: bool,
    as_json: bool,
    quiet: bool,
    force: bool,
    many: Mapping[str, Any],
    **keywords: Any,
) -> int:
    """Compare two models by running them, or the models of two folders; keywords: others of `api.verify`."""
    # Nothing is written here, so that the two options mean the same.
    keywords["bind"] = parse_bindings((*bind, *try_sizes), "--try")
    work = VerifyWork(before, after, keywords)
    one = partial(_verify, as_json=as_json, quiet=quiet)
    if not pairs:
        if any(many.values()):
            raise click.UsageError("The options for many models need --pairs and two folders.")
        return one(work)
    options = {**many, "force": force, "limit": keywords["timeout"]}
    return run_models([str(before)], work, one, options, pairs=str(after), as_json=as_json, quiet=quiet)


def _verify(work: VerifyWork, *, as_json: bool, quiet: bool) -> int:
    with working("running both models"):
        verification = verify_files(work)
    code = CODES[verification.verdict]
    if as_json:
        from splitgraph.report.documents import verification_json

        print_document(verification_json(verification))
    elif code or not quiet:
        from splitgraph.report.pages import verification_page

        print_result(verification_page(verification))
    return code
