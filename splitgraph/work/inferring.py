"""Infer one model, and write the result."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from splitgraph import api
from splitgraph.findings.exit_codes import CLEAN, FINDINGS
from splitgraph.formats import DataFile, open_model
from splitgraph.inference.analysis import Analysis
from splitgraph.model.names import dimension_names
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.results import require_valid_types
from splitgraph.work.task import FileTask, parse_input_shapes, refuse_existing

if TYPE_CHECKING:
    from splitgraph.formats import Model


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
    loaded, sizes = open_model(task.model, weights="leave"), task.sizes
    if isinstance(sizes.input_shapes, tuple):
        # As typed: their names are those of the model.
        sizes = sizes._replace(input_shapes=parse_input_shapes(sizes.input_shapes, *_known_names(loaded.content)))
    analysis = api.inferred(loaded.content_only(), sizes, task.leeway)
    if path is None or not analysis.ok:
        return Inferred(analysis, None)
    require_valid_types(analysis)
    return Inferred(analysis, path, task.write(analysis.model, path, loaded))


def _known_names(model: Model) -> tuple[Collection[str], Collection[str]]:
    """Return the names of a model's dimensions, and of its inputs. IR has no names for dimensions."""
    if not isinstance(model, ModelProto):
        from splitgraph.inference.openvino_ir import input_names

        return (), input_names(model)
    return dimension_names(model), [value.name for value in model.graph.input]
