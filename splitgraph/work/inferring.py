"""Infer one model, and write the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from splitgraph import open_models
from splitgraph.findings.exit_codes import CLEAN, FINDINGS
from splitgraph.formats import DataFile, open_model
from splitgraph.inference.analysis import Analysis
from splitgraph.results import require_valid_types
from splitgraph.work.task import FileTask, read_input_shapes, refuse_existing


@dataclass(frozen=True, slots=True)
class Inferred:
    """An inferred model.

    written: the file of the model with its types, None for none. data_files: the files that `written` depends on.
    """

    analysis: Analysis
    written: Path | None
    data_files: Sequence[DataFile] = ()

    @property
    def code(self) -> int:
        """Return the exit code."""
        return CLEAN if self.analysis.ok else FINDINGS


def infer_file(task: FileTask) -> Inferred:
    """Infer a model; write the model with its types only if it has no errors. Raises SplitgraphError."""
    path = task.path()
    if path is not None:
        refuse_existing(path, task.model, force=task.output.force, advice="give another name with -o")
    loaded = open_model(task.model, weights="leave")
    sizes = task.sizes._replace(input_shapes=read_input_shapes(task.sizes.input_shapes, loaded.content))
    analysis = open_models.inferred(loaded.content_only(), sizes, task.leeway)
    if path is None or not analysis.ok:
        return Inferred(analysis, None)
    require_valid_types(analysis)
    return Inferred(analysis, path, task.write(analysis.model, path, loaded))
