"""Draws one model, or two, as a page for a browser, or one split as a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from splitgraph import api
from splitgraph.arguments import output_path, refuse_existing, refuse_other_kind
from splitgraph.diagnostics import SplitgraphError
from splitgraph.exit_codes import CLEAN, FINDINGS
from splitgraph.formats import LoadedModel, open_model
from splitgraph.formats.atomic_write import write_text
from splitgraph.graph.scopes import model_imports
from splitgraph.onnx_proto import ModelProto
from splitgraph.outcome import Verb

if TYPE_CHECKING:
    from splitgraph.conversion.rewrite import Change
    from splitgraph.inference.analysis import Analysis

Working = Callable[[str], AbstractContextManager[Any]]


def page_name(model: Path, kind: str = "html") -> str:
    """The default name of a page: model.report.html for model.onnx."""
    return f"{model.stem}.report.{kind}"


@dataclass(frozen=True, slots=True)
class ReportWork:
    """What `report` does with a model.

    before: the model before a rewrite, whose result `model` is; None for a page of one model. svg: the split that is
    drawn as SVG instead of a page. place: the file of the page, in a folder that is made if need be; None for what
    `output` says.
    """

    verb: ClassVar[Verb] = "report"

    model: Path
    output: str | None = None
    force: bool = False
    before: Path | None = None
    svg: str | None = None
    title: str | None = None
    place: Path | None = None

    @property
    def sources(self) -> list[Path]:
        """The models that are read."""
        return [self.model] if self.before is None else [self.before, self.model]

    def path(self) -> Path:
        """The file of the page. Raises SplitgraphError where nothing can be written."""
        if self.place is not None:
            return self.place
        refuse_other_kind("page", self.output or "./")
        name = page_name(self.model, "html" if self.svg is None else "svg")
        return output_path(self.output or "./", name)


@dataclass(frozen=True, slots=True)
class Reported:
    """A page that was written. analyses: of the models that were read."""

    analyses: Sequence[Analysis]
    written: Path

    @property
    def code(self) -> int:
        """The exit code."""
        return CLEAN if all(analysis.ok for analysis in self.analyses) else FINDINGS


def report_file(work: ReportWork, working: Working = lambda text: nullcontext()) -> Reported:
    """Draw a model; a model with errors is drawn, too. Raises SplitgraphError."""
    path = work.path()
    for source in work.sources:
        refuse_existing(path, source, force=work.force, advice="give another name with -o")
    with working(f"reading {work.model.name}"):
        opened = [open_model(source, weights="leave") for source in work.sources]
        analyses = [_analysis(each) for each in opened]
        text = _picture(analyses[0], work.svg) if work.svg is not None else _page(work, opened, analyses)
    write_text(text, path, overwrite=work.force, kept=work.sources)
    return Reported(analyses, path)


def _analysis(opened: Any) -> Analysis:
    # Not its content, which the verb would check once more.
    return api.infer(opened)


def _picture(analysis: Analysis, wanted: str) -> str:
    from splitgraph.report.html.find_split import find_split
    from splitgraph.report.html.split_svg import split_svg

    return split_svg(analysis, find_split(analysis, wanted))


def _page(work: ReportWork, opened: Sequence[LoadedModel], analyses: Sequence[Analysis]) -> str:
    names = [str(source) for source in work.sources]
    if len(names) == 1:
        from splitgraph.report.html.model_page import model_page

        return model_page(analyses[0], names[0], title=work.title)
    from splitgraph.report.html.changes_page import changes_page

    difference = api.diff_opened(opened[0], opened[1])
    changes = reasons(opened[0], opened[1])
    return changes_page(analyses[0], analyses[1], difference, (names[0], names[1]), changes=changes, title=work.title)


def reasons(before: LoadedModel, after: LoadedModel) -> Sequence[Change]:
    """Why each node changed, if the second model is what splitgraph makes of the first one; else nothing is claimed.

    A file does not say how it was made. So the first model is converted to the opset of the second one, or to another
    form of splits, and the result is compared with the second model.
    """
    first, second = before.content, after.content
    if not isinstance(first, ModelProto) or not isinstance(second, ModelProto):
        return ()
    opsets = [model_imports(each).get("") for each in (first, second)]
    ways: list[dict[str, Any]] = [{"to": form} for form in ("split", "variadic-split", "slice")]
    if opsets[0] != opsets[1]:
        ways = [{"opset": opsets[1]}, *({"opset": opsets[1], **way} for way in ways)]
    for way in ways:
        try:
            # Not its content, which the verb would check once more.
            opened: Any = before
            rewrite = api.convert(opened, **way)
        except SplitgraphError:
            # Then the second model was made in another way.
            continue
        if not api.diff_opened(api.opened_rewrite(before, rewrite), after).nodes:
            changes: Sequence[Change] = rewrite.changes
            return changes
    return ()
