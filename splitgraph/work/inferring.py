"""Infers one model, and writes the result."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from splitgraph import api
from splitgraph.arguments import output_path, parse_input_shapes, refuse_existing, refuse_other_kind
from splitgraph.exit_codes import CLEAN, FINDINGS
from splitgraph.formats import DataFile, ExternalData, open_model
from splitgraph.graph.names import dimension_names
from splitgraph.inference.analysis import Analysis
from splitgraph.onnx_proto import ModelProto
from splitgraph.outcome import Verb
from splitgraph.result_check import require_valid_types
from splitgraph.work.files import write_model

if TYPE_CHECKING:
    from splitgraph.formats import Model


@dataclass(frozen=True, slots=True)
class InferWork:
    """What `infer` does with a model.

    output: where the model with its types goes, None for nowhere. input_shape: texts as the command line takes them.
    keywords: other keywords of `api.infer`. place: the file of the result, in a folder that is made if need be; None
    for what `output` says.
    """

    verb: ClassVar[Verb] = "infer"

    model: Path
    output: str | None = None
    force: bool = False
    external_data: ExternalData | None = None
    input_shape: Sequence[str] = ()
    keywords: Mapping[str, Any] = field(default_factory=dict)
    place: Path | None = None

    def path(self) -> Path | None:
        """The file of the result, None for none. Raises SplitgraphError where nothing can be written."""
        if self.place is not None:
            return self.place
        if self.output is None:
            return None
        refuse_other_kind("-o", self.output)
        return output_path(self.output, self.model.name)


@dataclass(frozen=True, slots=True)
class Inferred:
    """A model that was inferred. written: the file of the model with its types, None for none. data_files: those that
    the file depends on.
    """

    analysis: Analysis
    written: Path | None
    data_files: Sequence[DataFile] = ()

    @property
    def code(self) -> int:
        """The exit code."""
        return CLEAN if self.analysis.ok else FINDINGS


def infer_file(work: InferWork) -> Inferred:
    """Infer a model; write the model with its types only if it has no errors. Raises SplitgraphError."""
    model = work.model
    path = work.path()
    if path is not None:
        refuse_existing(path, model, force=work.force, advice="give another name with -o")
    loaded = open_model(model, weights="leave")
    shapes = parse_input_shapes(work.input_shape, *_known_names(loaded.content)) if work.input_shape else {}
    # Not its content, which the verb would check once more.
    opened: Any = loaded
    analysis = api.infer(opened, **{"input_shapes": shapes, **work.keywords})
    written = path if analysis.ok else None
    if written is None:
        return Inferred(analysis, written)
    require_valid_types(analysis)
    options: Any = {"overwrite": work.force, "external_data": work.external_data}
    return Inferred(analysis, written, write_model(analysis.model, written, loaded, **options))


def _known_names(model: Model) -> tuple[Collection[str], Collection[str]]:
    """The names of a model's dimensions, and of its inputs. IR has no names for dimensions."""
    if not isinstance(model, ModelProto):
        from splitgraph.inference.openvino_ir import input_names

        return (), input_names(model)
    return dimension_names(model), [value.name for value in model.graph.input]
