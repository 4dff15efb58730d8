"""The kinds of model that splitgraph reads and writes: ONNX files, ModelProtos, graphsurgeon graphs, models of onnx_ir,
OpenVINO IR, and models of the OpenVINO runtime.

In: `open_model` opens any of them as a `LoadedModel`, whose content is a ModelProto or an OpenVINOModel. Out: `held`
and `give_back` return a model of the kind that went in, and `write` writes one to a file.

- ONNX files: `onnx_file` reads, `onnx_writing` writes; `skeleton` leaves weights in the file, `external_data` reads and
  copies those in other files. `constants` compares them, and says what a person reads of one.
- OpenVINO IR: `openvino_ir`; `openvino_runtime` for `ov.Model`.
- Objects of other packages: `graphsurgeon` (with `detached_graph`), `onnx_ir_model`.
- Files in general: `recognition` says what a file looks like and refuses it, `atomic_write` writes it whole.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeGuard, TypeVar

from splitgraph.findings.diagnostics import ModelError
from splitgraph.formats import onnx_ir_model
from splitgraph.formats.broken_text import find_broken_text_in_memory
from splitgraph.formats.graphsurgeon import from_model, is_graphsurgeon, to_model
from splitgraph.formats.onnx_file import load_onnx, model_folder, put_back, read_onnx, require_path, whole_model
from splitgraph.formats.onnx_ir_model import is_onnx_ir
from splitgraph.formats.onnx_writing import DataFile, save_onnx
from splitgraph.formats.recognition import is_ir, model_error
from splitgraph.model.deferred import import_whole
from splitgraph.model.onnx_proto import GraphProto, ModelProto
from splitgraph.model.tensor_data import SourceFile
from splitgraph.options import ExternalData

__all__ = [
    "DataFile",
    "HeldModel",
    "LoadedModel",
    "Model",
    "OpenVINOModel",
    "give_back",
    "held",
    "in_memory",
    "is_ir_name",
    "is_openvino_ir",
    "load",
    "load_ir",
    "load_onnx",
    "onnx_model",
    "open_model",
    "save",
    "save_held",
    "save_ir",
    "save_onnx",
    "whole_model",
    "write",
]

# What reads OpenVINO IR is imported when there is one.
if TYPE_CHECKING:
    from splitgraph.formats.openvino_ir import OpenVINOModel, load_ir, save_ir

    # A model of either format.
    Model = ModelProto | OpenVINOModel

M = TypeVar("M")
Save = Callable[[ModelProto, "str | os.PathLike[str]", "ExternalData | None"], None]

_OF_IR = frozenset({"OpenVINOModel", "load_ir", "save_ir"})

_HINTS = {
    bytes: "use onnx.load_from_string first",
    GraphProto: "wrap it with onnx.helper.make_model, which adds the opset",
}
# By these endings `onnx.load` takes a file for one of its text formats.
_TEXT_NAMES = frozenset({".json", ".onnxjson", ".textproto", ".txtpb", ".pbtxt", ".prototxt", ".onnxtext", ".onnxtxt"})
_ONNX_NAME = "Give it a name that ends in .onnx."


def __getattr__(name: str) -> Any:
    """Import what belongs to OpenVINO IR when it is asked for."""
    if name not in _OF_IR:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import_whole("splitgraph.formats.openvino_ir")
    from splitgraph.formats import openvino_ir

    return getattr(openvino_ir, name)


def is_openvino_ir(value: object) -> TypeGuard[OpenVINOModel]:
    """Return True for an OpenVINOModel; whoever has one has imported its module."""
    # A module that another thread is importing has no class yet.
    return isinstance(value, getattr(sys.modules.get("splitgraph.formats.openvino_ir.model"), "OpenVINOModel", ()))


def _is_runtime_model(value: object) -> bool:
    """Return True for an `ov.Model`; whoever has one has imported openvino."""
    if "openvino" not in sys.modules:
        return False
    import_whole("splitgraph.formats.openvino_runtime")
    from splitgraph.formats.openvino_runtime import is_ov_model

    return is_ov_model(value)


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model source, opened.

    content: what the other parts work on; for the kinds "onnx" and "openvino" it is the caller's own, and never
    modified. kind: what went in; "openvino" is an OpenVINOModel, or with a path the file of one, and "ov.Model" is of
    the OpenVINO runtime. path: the file, None for what is in memory. original: the caller's gs.Graph, onnx_ir.Model or
    ov.Model. files: what was read, the model's own file and those of its weights. source: the model's file, where
    weights stayed in it. taken_in: see `onnx_file.ReadFile`.
    """

    content: Model
    kind: Literal["onnx", "path", "graphsurgeon", "onnx-ir", "openvino", "ov.Model"]
    path: Path | None = None
    original: Any = None
    files: Collection[Path] = ()
    source: SourceFile | None = None
    taken_in: Mapping[bytes, bytes] = field(default_factory=dict)

    @property
    def model(self) -> ModelProto:
        """The model as ONNX. Raises ModelError (SG101) for OpenVINO IR."""
        if not isinstance(self.content, ModelProto):
            raise model_error("SG101", "is OpenVINO IR; an ONNX model is needed here", self.content.path or "")
        return self.content

    @property
    def name(self) -> str:
        """The path of the file, "" for what is in memory."""
        return "" if self.path is None else str(self.path)

    @property
    def folder(self) -> Path | None:
        """The folder that external data of an ONNX model is relative to; None for what is in memory."""
        return None if self.path is None else model_folder(self.path)

    @property
    def has_data_files(self) -> bool:
        """True where weights are in files beside the model's own."""
        return len(self.files) > 1

    def content_only(self) -> LoadedModel:
        """Return the content as a model in memory: results then hold it as it is."""
        return LoadedModel(self.content, "openvino" if is_openvino_ir(self.content) else "onnx")

    @property
    def openvino(self) -> OpenVINOModel | None:
        """The model as OpenVINO IR, None when it is ONNX."""
        return None if isinstance(self.content, ModelProto) else self.content


def open_model(source: Any, *, weights: Literal["load", "leave"] = "load") -> LoadedModel:
    """Open a model source: a ModelProto, a path to ONNX or OpenVINO IR, an OpenVINOModel, an ov.Model, a gs.Graph, or
    an onnx_ir.Model. Of a LoadedModel, the content is as one in memory, but was looked at when it was opened.

    weights: of a path to ONNX, "leave" leaves large tensors where they are, in the model's own file or in others: all
    that a verb needs, and what `held` gives back. Raises ModelError for anything that is not a readable model.
    """
    if isinstance(source, LoadedModel):
        return source.content_only()
    if isinstance(source, ModelProto):
        broken = find_broken_text_in_memory(source)
        if broken is not None:
            raise model_error("SG111", f"the model has a string that is not UTF-8 ({broken})")
        return LoadedModel(source, "onnx")
    if is_openvino_ir(source):
        return LoadedModel(source, "openvino")
    if is_graphsurgeon(source):
        return LoadedModel(to_model(source), "graphsurgeon", original=source)
    if is_onnx_ir(source):
        proto, data_files = onnx_ir_model.to_model(source)
        return LoadedModel(proto, "onnx-ir", original=source, files=data_files)
    if _is_runtime_model(source):
        import_whole("splitgraph.formats.openvino_runtime")
        from splitgraph.formats.openvino_runtime import from_ov_model

        return LoadedModel(from_ov_model(source), "ov.Model", original=source)
    if not isinstance(source, (str, os.PathLike)):
        raise _wrong_type(source)
    require_path(source)
    if isinstance(source, str) and "://" in source and not os.path.lexists(source):
        raise model_error("SG101", "is a URL, which the command line and map_models read; give a file here", source)
    path = Path(source)
    if is_ir(path):
        import_whole("splitgraph.formats.openvino_ir")
        from splitgraph.formats.openvino_ir import load_ir, weights_path

        return LoadedModel(load_ir(path), "openvino", path, files=(path, weights_path(path)))
    read = read_onnx(path, external_data="load" if weights == "load" else "keep", weights=weights)
    return LoadedModel(read.model, "path", path, files=read.files, source=read.source, taken_in=read.taken_in)


class HeldModel(Generic[M]):
    """A result model without the weights that stayed in the file that it was read from; `whole` puts it together when
    asked.

    content: the model as it is. save: writes it to a path; its weights are copied from file to file.
    """

    def __init__(self, content: ModelProto, path: Path, save: Save) -> None:
        self.content = content
        self._save = save
        self._path = path
        self._whole: Any = None

    @property
    def folder(self) -> Path:
        """The folder that external data is relative to."""
        return model_folder(self._path)

    @property
    def whole(self) -> M:
        """The model with all of its weights, made when it is first asked for. Raises ModelError if the file changed
        since it was read.
        """
        if self._whole is None:
            self._whole = whole_model(self.content, self._path)
        whole: M = self._whole
        return whole

    def save(self, path: str | os.PathLike[str], external_data: ExternalData | None = None) -> None:
        """Write the model to a file; its weights are never loaded. One that was asked for is written as it is now:
        its owner may have changed it.
        """
        self._save(self.content if self._whole is None else self._whole, path, external_data)

    def __eq__(self, other: object) -> bool:
        return bool(self.whole == (other.whole if isinstance(other, HeldModel) else other))

    __hash__ = None  # type: ignore[assignment]

    def __reduce__(self) -> tuple[Any, ...]:
        # Another process has no way to the file: it gets a plain model.
        return _itself, (self.whole,)


def _itself(model: Any) -> Any:
    return model


def in_memory(model: Any) -> Any:
    """Return the model of a result, with all of its weights."""
    return model.whole if isinstance(model, HeldModel) else model


def onnx_model(model: Any) -> ModelProto:
    """Return the model of a result as a ModelProto. Raises ModelError for OpenVINO IR."""
    return open_model(model).model


def held(model: Model, loaded: LoadedModel) -> Any:
    """Return what a result stores for a model: a model of the kind that went in, or a HeldModel that becomes one when
    asked.
    """
    if (
        isinstance(model, ModelProto)
        and loaded.path is not None
        and (loaded.source is not None or loaded.has_data_files)
    ):

        def save(model: ModelProto, path: str | os.PathLike[str], external_data: ExternalData | None) -> None:
            require_path(path)
            write(model, Path(path), source=loaded, external_data=external_data)

        return HeldModel(model, loaded.path, save)
    return give_back(model, loaded)


def give_back(model: Model, loaded: LoadedModel) -> Any:
    """Return a model of the kind that went in: a gs.Graph for a gs.Graph, an onnx_ir.Model for an onnx_ir.Model, an
    ov.Model for an ov.Model, else itself.
    """
    if loaded.kind == "ov.Model" and not isinstance(model, ModelProto):
        import_whole("splitgraph.formats.openvino_runtime")
        from splitgraph.formats.openvino_runtime import to_ov_model

        return to_ov_model(model)
    if loaded.kind == "graphsurgeon" and isinstance(model, ModelProto):
        return from_model(model, loaded.original)
    if loaded.kind == "onnx-ir" and isinstance(model, ModelProto):
        return onnx_ir_model.from_model(model, loaded.original, loaded.model)
    return model


def load(path: str | os.PathLike[str]) -> ModelProto | OpenVINOModel:
    """Read an ONNX file with all of its weights, or an OpenVINO IR.

    path: of the .onnx or the .xml.

    Raises ModelError for anything else.
    """
    require_path(path)
    return open_model(path).content


def save(model: Any, path: str | os.PathLike[str], *, external_data: ExternalData | None = None) -> None:
    """Write a ModelProto, HeldModel, gs.Graph or onnx_ir.Model to an ONNX file, an OpenVINOModel to an .xml and a .bin,
    replacing what is there, all or nothing; but never the data files of an onnx_ir.Model, which reads them later.
    Raises ModelError.
    """
    if isinstance(model, HeldModel):
        model.save(path, external_data)
        return
    if isinstance(model, (str, os.PathLike)):
        raise model_error("SG101", f"a model to save is a model in memory, not a path ({os.fspath(model)!r})")
    loaded = open_model(model)
    require_path(path)
    write(loaded.content, Path(path), source=loaded, external_data=external_data)


def save_held(result: Any, path: str | os.PathLike[str], *, external_data: ExternalData | None = None) -> None:
    """Write the model that a result holds, as `save` does."""
    save(result.held, path, external_data=external_data)


def write(
    model: Model,
    path: Path,
    *,
    source: LoadedModel | None = None,
    overwrite: bool = True,
    external_data: ExternalData | None = None,
) -> Sequence[DataFile]:
    """Write a model to a file of its own format, and return the data files that an ONNX model depends on.

    source: the model that was read from a file, before it became this one; its files are replaced only if the path is
    that file. external_data: see `save_onnx`. Raises ModelError.
    """
    kept = () if source is None or _is_file_of(source, path) else source.files
    if not isinstance(model, ModelProto):
        import_whole("splitgraph.formats.openvino_ir")
        from splitgraph.formats.openvino_ir import save_ir

        save_ir(model, path, overwrite=overwrite, kept=kept)
        return []
    if is_ir_name(path):
        raise model_error("SG101", "is the name of OpenVINO IR, but the model is ONNX", path, help=_ONNX_NAME)
    if path.suffix.lower() in _TEXT_NAMES:
        text = "is a name for models as text, and ONNX's tools would expect text; splitgraph writes protobuf"
        raise model_error("SG101", text, path, help=_ONNX_NAME)
    with put_back(model, {} if source is None else source.taken_in):
        origin = None if source is None else source.path
        return save_onnx(model, path, source=origin, overwrite=overwrite, kept=kept, external_data=external_data)


def _is_file_of(source: LoadedModel, path: Path) -> bool:
    """Return True if a path leads to the file that was read."""
    origin = source.path
    return origin is not None and os.path.exists(path) and os.path.exists(origin) and path.samefile(origin)


def is_ir_name(path: object) -> bool:
    """Return True for the name of an OpenVINO IR."""
    return isinstance(path, (str, os.PathLike)) and os.fspath(path).lower().endswith(".xml")


def _wrong_type(source: object) -> ModelError:
    kind = type(source)
    hint = next((f"; {hint}" for known, hint in _HINTS.items() if isinstance(source, known)), "")
    in_memory = "an onnx_graphsurgeon.Graph, an onnx_ir.Model, an OpenVINOModel or an ov.Model"
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    return model_error("SG101", f"a model is an onnx.ModelProto, a path, {in_memory}, not {name}{hint}")
