"""`splitgraph report`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from splitgraph import api
from splitgraph.arguments import output_path, refuse_existing
from splitgraph.exit_codes import CLEAN, FINDINGS
from splitgraph.formats import LoadedModel, open_model
from splitgraph.formats.text_file import write_text
from splitgraph.report.layout import line
from splitgraph.report.printing import print_result, say_error, working

if TYPE_CHECKING:
    from splitgraph.inference.analysis import Analysis


def report(
    model: Path | None,
    *,
    before: Path | None,
    after: Path | None,
    output: str,
    force: bool,
    svg: str | None,
    title: str | None,
) -> int:
    """Write a page of one model or of two, or a picture of one split."""
    sources = _sources(model, before, after, svg)
    name = f"{sources[-1].stem}.report.{'html' if svg is None else 'svg'}"
    path = output_path(output, name)
    for source in sources:
        refuse_existing(path, source, force=force, advice="give another name with -o")
    with working(f"reading {sources[-1].name}"):
        opened = [open_model(source, weights="leave") for source in sources]
        analyses = [_analysis(each) for each in opened]
        text = _split_picture(analyses[0], svg) if svg is not None else _page(opened, analyses, sources, title)
    write_text(text, path, overwrite=force, kept=sources)
    print_result([line("wrote ", (str(path), "bold"))])
    return max(_code(analysis, source) for analysis, source in zip(analyses, sources, strict=True))


def _sources(model: Path | None, before: Path | None, after: Path | None, svg: str | None) -> list[Path]:
    """The models of the report. Raises UsageError for anything but MODEL alone, or --before and --after together."""
    if model is not None and before is None and after is None:
        return [model]
    if model is None and before is not None and after is not None:
        if svg is not None:
            raise click.UsageError("--svg draws a split of one model: give MODEL instead of --before and --after.")
        return [before, after]
    raise click.UsageError("Give one MODEL, or two models with --before and --after.")


def _analysis(opened: Any) -> Analysis:
    # Not its content, which the verb would check once more.
    return api.infer(opened)


def _split_picture(analysis: Analysis, wanted: str) -> str:
    from splitgraph.report.html.find_split import find_split
    from splitgraph.report.html.split_svg import split_svg

    return split_svg(analysis, find_split(analysis, wanted))


def _page(
    opened: Sequence[LoadedModel], analyses: Sequence[Analysis], sources: Sequence[Path], title: str | None
) -> str:
    names = [str(source) for source in sources]
    if len(names) == 1:
        from splitgraph.report.html.model_page import model_page

        return model_page(analyses[0], names[0], title=title)
    from splitgraph.report.html.changes_page import changes_page

    difference = api.diff_opened(opened[0], opened[1])
    return changes_page(analyses[0], analyses[1], difference, (names[0], names[1]), title=title)


def _code(analysis: Analysis, source: Path) -> int:
    if analysis.ok:
        return CLEAN
    from splitgraph.report.pages import findings_phrase

    say_error(f"{source}: {findings_phrase([each for each in analysis.diagnostics if each.severity == 'error'])}")
    return FINDINGS
