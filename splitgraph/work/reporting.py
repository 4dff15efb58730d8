"""Draw one model, or two, as a page for a browser, or one split as a picture."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from splitgraph import open_models
from splitgraph.findings.diagnostics import SplitgraphError
from splitgraph.findings.exit_codes import CLEAN, FINDINGS
from splitgraph.formats import LoadedModel, held, open_model
from splitgraph.formats.atomic_write import write_text
from splitgraph.model.deferred import import_whole
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.scopes import model_imports
from splitgraph.options import ATOL, NO_SIZES, RTOL, STRICT, Converting, Form, Running
from splitgraph.rewrites import rewritten
from splitgraph.verbs import in_steps
from splitgraph.work.task import FileTask, output_path, refuse_existing, refuse_other_kind

if TYPE_CHECKING:
    from splitgraph.conversion.rewrite import Change
    from splitgraph.formats.kinds import Source
    from splitgraph.inference.analysis import Analysis
    from splitgraph.options import StrPath
    from splitgraph.verification.verification import Verification

# The name of a model without a file.
_IN_MEMORY = "model in memory"
# How a pair is verified for its page.
_RUNNING = Running(rtol=RTOL, atol=ATOL)

Working = Callable[[str], AbstractContextManager[Any]]


@dataclass(frozen=True, slots=True)
class Reported:
    """A page that was written. analyses: of the models that were read."""

    analyses: Sequence[Analysis]
    written: Path

    @property
    def code(self) -> int:
        """Return the exit code."""
        return CLEAN if all(analysis.ok for analysis in self.analyses) else FINDINGS


def report_file(task: FileTask, working: Working = lambda text: nullcontext()) -> Reported:
    """Draw a model, even one with errors. Raises SplitgraphError."""
    path, sources = task.path(), sources_of(task)
    assert path is not None
    for source in sources:
        refuse_existing(path, source, force=task.output.force, advice="give another name with -o")
    with working(f"reading {task.model.name}"):
        analyses, text = drawn(sources, svg=task.svg, title=task.title, verify=bool(task.running.verify))
    write_text(text, path, overwrite=task.output.force, kept=sources)
    return Reported(analyses, path)


def _inferred(opened: LoadedModel) -> Analysis:
    """Infer a model whose content stays as it is, because it is compared later. The result knows the model's folder."""
    analysis = open_models.inferred(opened.content_only(), NO_SIZES, STRICT)
    return replace(analysis, held=held(analysis.model, opened))


def sources_of(task: FileTask) -> list[Path]:
    """Return the models that are read."""
    return [task.model] if task.before is None else [task.before, task.model]


def drawn(
    sources: Sequence[Source], *, svg: str | None, title: str | None, verify: bool
) -> tuple[Sequence[Analysis], str]:
    """Return the analyses of one model or two, and their page, or the picture of the split `svg`."""
    opened = [open_model(source, weights="leave") for source in sources]
    analyses = [_inferred(model) for model in opened]
    if svg is not None:
        return analyses, _picture(analyses[0], svg)
    verification = None
    if verify and len(sources) == 2:
        before, after = sources
        verification = open_models.compared(before, after, _RUNNING)
    return analyses, _page(opened, analyses, title, verification)


def _picture(analysis: Analysis, wanted: str) -> str:
    import_whole("splitgraph.reports.html.split_svg")
    from splitgraph.reports.html.split_svg import find_split, split_svg

    return split_svg(analysis, find_split(analysis, wanted))


def _page(
    opened: Sequence[LoadedModel],
    analyses: Sequence[Analysis],
    title: str | None,
    verification: Verification | None,
) -> str:
    names = [model.name or _IN_MEMORY for model in opened]
    if len(opened) == 1:
        import_whole("splitgraph.reports.html.model_page")
        from splitgraph.reports.html.model_page import model_page

        return model_page(analyses[0], names[0], title=title)
    import_whole("splitgraph.reports.html.changes_page")
    from splitgraph.reports.html.changes_page import changes_page

    difference = open_models.diff_opened(opened[0], opened[1])
    changes = reasons(opened[0], opened[1])
    return changes_page(
        analyses[0],
        analyses[1],
        difference,
        (names[0], names[1]),
        changes=changes,
        verification=verification,
        title=title,
    )


def report(
    model: Source,
    output: StrPath | None = None,
    *,
    before: Source | None = None,
    svg: str | None = None,
    title: str | None = None,
    verify: bool = False,
) -> str:
    """Draw a model as one HTML page for a browser, or two models with what changed between them. A model with errors is
    drawn, too.

    model: as in `infer`; not changed. output: the file to write, which replaces an existing one, all or nothing; a
    folder for the default name in it; None to write nothing. before: the model that `model` was made from; both ONNX or
    both OpenVINO IR. svg: the name of one split to draw as an SVG picture, instead of a page. title: of the page; None
    for the names of the files. verify: run both models, and show the verdict.

    Returns the page, or the picture. Raises ModelError for a file that cannot be read or written, SplitgraphError for
    wrong arguments.
    """
    if before is None and verify:
        raise SplitgraphError("verify compares two models: give the other one as before")
    if before is not None and svg is not None:
        raise SplitgraphError("svg draws a split of one model: leave before out")
    sources = [model] if before is None else [before, model]
    files = [Path(source) for source in sources if isinstance(source, (str, os.PathLike))]
    path = None
    if output is not None:
        refuse_other_kind("page", os.fspath(output))
        stem = files[-1].stem if files else "model"
        path = output_path(os.fspath(output), f"{stem}.report.{'html' if svg is None else 'svg'}")
    _, text = drawn(sources, svg=svg, title=title, verify=verify)
    if path is not None:
        write_text(text, path, overwrite=True, kept=files)
    return text


def reasons(before: LoadedModel, after: LoadedModel) -> Sequence[Change]:
    """Return why each node changed if the second model is the result of splitgraph for the first one; otherwise return
    nothing.

    A file does not say how it was made. So the first model is converted to the opset of the second one, or to another
    form of splits, and the result is compared with the second model.
    """
    first, second = before.content, after.content
    if not isinstance(first, ModelProto) or not isinstance(second, ModelProto):
        return ()
    opsets = [model_imports(model).get("") for model in (first, second)]
    opset = None if opsets[0] == opsets[1] else opsets[1]
    forms = [Converting(opset=opset, to=form) for form in get_args(Form)]
    for wanted in forms if opset is None else [Converting(opset=opset), *forms]:
        try:
            rewrite = rewritten(before, in_steps(wanted, STRICT), STRICT, NO_SIZES, Running(verify=False))
        except SplitgraphError:
            # Then the second model was made in another way.
            continue
        if not open_models.diff_opened(open_models.opened_rewrite(before, rewrite), after).nodes:
            changes: Sequence[Change] = rewrite.changes
            return changes
    return ()
