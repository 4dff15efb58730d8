"""Draw one model, or two, as a page for a browser, or one split as a picture."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from splitgraph import api
from splitgraph.findings.diagnostics import SplitgraphError
from splitgraph.findings.exit_codes import CLEAN, FINDINGS
from splitgraph.formats import LoadedModel, open_model
from splitgraph.formats.atomic_write import write_text
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.model.scopes import model_imports
from splitgraph.options import ATOL, NO_SIZES, RTOL, STRICT, Form, Goal, Running
from splitgraph.rewrites import rewritten
from splitgraph.work.task import FileTask, refuse_existing

if TYPE_CHECKING:
    from splitgraph.conversion.rewrite import Change
    from splitgraph.inference.analysis import Analysis

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
        opened = [open_model(source, weights="leave") for source in sources]
        analyses = [api.inferred(model.content_only(), NO_SIZES, STRICT) for model in opened]
        text = _picture(analyses[0], task.svg) if task.svg is not None else _page(task, opened, analyses)
    write_text(text, path, overwrite=task.output.force, kept=sources)
    return Reported(analyses, path)


def sources_of(task: FileTask) -> list[Path]:
    """Return the models that are read."""
    return [task.model] if task.before is None else [task.before, task.model]


def _picture(analysis: Analysis, wanted: str) -> str:
    from splitgraph.reports.html.split_svg import find_split, split_svg

    return split_svg(analysis, find_split(analysis, wanted))


def _page(task: FileTask, opened: Sequence[LoadedModel], analyses: Sequence[Analysis]) -> str:
    names = [str(source) for source in sources_of(task)]
    if len(names) == 1:
        from splitgraph.reports.html.model_page import model_page

        return model_page(analyses[0], names[0], title=task.title)
    from splitgraph.reports.html.changes_page import changes_page

    difference = api.diff_opened(opened[0], opened[1])
    changes = reasons(opened[0], opened[1])
    before, after = sources_of(task)
    verification = api.compared(before, after, _RUNNING) if task.running.verify else None
    return changes_page(
        analyses[0],
        analyses[1],
        difference,
        (names[0], names[1]),
        changes=changes,
        verification=verification,
        title=task.title,
    )


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
    goals = [Goal(opset=opset, to=form) for form in get_args(Form)]
    for goal in goals if opset is None else [Goal(opset=opset), *goals]:
        try:
            rewrite = rewritten(before, goal, STRICT, NO_SIZES, Running(verify=False))
        except SplitgraphError:
            # Then the second model was made in another way.
            continue
        if not api.diff_opened(api.opened_rewrite(before, rewrite), after).nodes:
            changes: Sequence[Change] = rewrite.changes
            return changes
    return ()
