"""`splitgraph infer`."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from splitgraph.arguments import parse_bindings
from splitgraph.commands.many import run_models
from splitgraph.configuration import accepted_texts
from splitgraph.exit_codes import FINDINGS
from splitgraph.formats import ExternalData
from splitgraph.inference.analysis import Analysis
from splitgraph.report.printing import print_document, print_result, say_error
from splitgraph.work.inferring import Inferred, InferWork, infer_file


def infer(
    models: Sequence[str],
    *,
    output: str | None,
    force: bool,
    external_data: ExternalData | None,
    bind: Sequence[str],
    input_shape: Sequence[str],
    with_values: bool,
    as_json: bool,
    quiet: bool,
    many: Mapping[str, Any],
    **keywords: Any,
) -> int:
    """Infer models and print a report of each; keywords: others of `api.infer`."""
    keywords |= {"bind": parse_bindings(bind), "accept": accepted_texts(keywords["accept"])}
    work = InferWork(Path(), output, force, external_data, input_shape, keywords)
    if with_values:
        many = {**many, "values": with_values}
    one = partial(_infer, with_values=with_values, as_json=as_json, quiet=quiet)
    return run_models(models, work, one, many, as_json=as_json, quiet=quiet)


def _infer(work: InferWork, *, with_values: bool, as_json: bool, quiet: bool) -> int:
    found = infer_file(work)
    if as_json:
        _print_document(found.analysis, work.model, with_values)
    elif not quiet:
        _print_page(found, work.model, with_values)
    return found.code if found.analysis.ok else _say_errors(found.analysis, work.model)


def _print_document(analysis: Analysis, model: Path, with_values: bool) -> None:
    from splitgraph.report.documents import analysis_json

    print_document(analysis_json(analysis, str(model), with_values))


def _print_page(found: Inferred, model: Path, with_values: bool) -> None:
    from splitgraph.report.layout import line
    from splitgraph.report.pages import analysis_page, data_lines

    page = analysis_page(found.analysis, str(model), with_values=with_values, brief=sys.stdout.isatty())
    wrote = [line("wrote ", (str(found.written), "bold"))] if found.written else []
    print_result([*page, *wrote, *data_lines(found.data_files)])


def _say_errors(analysis: Analysis, model: Path) -> int:
    from splitgraph.report.pages import findings_phrase

    errors = [d for d in analysis.diagnostics if d.severity == "error"]
    say_error(f"{model}: {findings_phrase(errors)}")
    return FINDINGS
