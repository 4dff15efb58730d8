"""The kinds of model that splitgraph reads and writes: ONNX files, ModelProtos, graphsurgeon graphs, models of onnx_ir,
OpenVINO IR, and models of the OpenVINO runtime.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from splitgraph.diagnostics import ModelError
from splitgraph.formats import onnx_ir_model
from splitgraph.formats.graphsurgeon import from_model, is_graphsurgeon, to_model
from splitgraph.formats.model_error import model_error
from splitgraph.formats.onnx_file import load_onnx, read_onnx, require_path, save_onnx, with_weights
from splitgraph.formats.onnx_ir_model import is_onnx_ir
from splitgraph.formats.openvino_ir import OpenVINOModel, is_ir, load_ir, save_ir, weights_path
from splitgraph.formats.openvino_runtime import from_ov_model, is_ov_model, to_ov_model
from splitgraph.onnx_proto import GraphProto, ModelProto

__all__ = [
    "LoadedModel",
    "Model",
    "OpenVINOModel",
    "give_back",
    "is_ir_name",
    "load",
    "load_ir",
    "load_onnx",
    "open_model",
    "save",
    "save_ir",
    "save_onnx",
    "with_weights",
    "write",
]

# A model of either format.
Model = ModelProto | OpenVINOModel

_HINTS = {
    bytes: "use onnx.load_from_string first",
    GraphProto: "wrap it with onnx.helper.make_model, which adds the opset",
}
# By these endings `onnx.load` takes a file for one of its text formats.
_TEXT_NAMES = frozenset({".json", ".onnxjson", ".textproto", ".txtpb", ".pbtxt", ".prototxt", ".onnxtext", ".onnxtxt"})
_ONNX_NAME = "Give it a name that ends in .onnx."


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model source, opened.

    content: what the other parts work on; for the kinds "onnx" and "openvino" it is the caller's own, and never
    modified. kind: what went in; "openvino" is an OpenVINOModel, or with a path the file of one, and "ov.Model" is of
    the OpenVINO runtime. path: the file, None for what is in memory. original: the caller's gs.Graph, onnx_ir.Model or
    ov.Model. files: what was read, the model's own file and those of its weights.
    """

    content: Model
    kind: Literal["onnx", "path", "graphsurgeon", "onnx-ir", "openvino", "ov.Model"]
    path: Path | None = None
    original: Any = None
    files: Collection[Path] = ()

    @property
    def model(self) -> ModelProto:
        """The model as ONNX. Raises ModelError (SG101) for OpenVINO IR."""
        if isinstance(self.content, OpenVINOModel):
            raise model_error("SG101", "is OpenVINO IR; an ONNX model is needed here", self.content.path or "")
        return self.content

    @property
    def openvino(self) -> OpenVINOModel | None:
        """The model as OpenVINO IR, None when it is ONNX."""
        return self.content if isinstance(self.content, OpenVINOModel) else None


def open_model(source: Any, *, external_data: Literal["load", "keep"] = "load") -> LoadedModel:
    """Open a model source: a ModelProto, a path to ONNX or OpenVINO IR, an OpenVINOModel, an ov.Model, a gs.Graph, or
    an onnx_ir.Model.

    external_data: for a path to ONNX, as `load_onnx` takes it. Raises ModelError for anything that is not a readable
    model.
    """
    if isinstance(source, ModelProto):
        return LoadedModel(source, "onnx")
    if isinstance(source, OpenVINOModel):
        return LoadedModel(source, "openvino")
    if is_graphsurgeon(source):
        return LoadedModel(to_model(source), "graphsurgeon", original=source)
    if is_onnx_ir(source):
        proto, data_files = onnx_ir_model.to_model(source)
        return LoadedModel(proto, "onnx-ir", original=source, files=data_files)
    if is_ov_model(source):
        return LoadedModel(from_ov_model(source), "ov.Model", original=source)
    if not isinstance(source, (str, os.PathLike)):
        raise _wrong_type(source)
    require_path(source)
    path = Path(source)
    if is_ir(path):
        return LoadedModel(load_ir(path), "openvino", path, files=(path, weights_path(path)))
    model, files = read_onnx(path, external_data=external_data)
    return LoadedModel(model, "path", path, files=files)


def give_back(model: Model, loaded: LoadedModel) -> Any:
    """A model of the kind that went in: a gs.Graph for a gs.Graph, an onnx_ir.Model for an onnx_ir.Model, an ov.Model
    for an ov.Model, else itself.
    """
    if loaded.kind == "ov.Model" and isinstance(model, OpenVINOModel):
        return to_ov_model(model)
    if loaded.kind == "graphsurgeon" and isinstance(model, ModelProto):
        return from_model(model, loaded.original)
    if loaded.kind == "onnx-ir" and isinstance(model, ModelProto):
        return onnx_ir_model.from_model(model, loaded.original, loaded.model)
    return model


def load(path: str | os.PathLike[str]) -> Model:
    """Read an ONNX file with all of its weights, or an OpenVINO IR.

    path: of the .onnx or the .xml.

    Raises ModelError for anything else.
    """
    require_path(path)
    return open_model(path).content


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a ModelProto, gs.Graph or onnx_ir.Model to an ONNX file, an OpenVINOModel to an .xml and its .bin,
    replacing what is there, all or nothing; but never the data files of an onnx_ir.Model, which reads them later.
    Raises ModelError.
    """
    if isinstance(model, (str, os.PathLike)):
        raise model_error("SG101", f"a model to save is a model in memory, not a path ({os.fspath(model)!r})")
    loaded = open_model(model)
    require_path(path)
    write(loaded.content, Path(path), source=loaded)


def write(model: Model, path: Path, *, source: LoadedModel | None = None, overwrite: bool = True) -> None:
    """Write a model to a file of its own format. source: what was read from a file and became the model; its files are
    only replaced when that file itself is written over. Raises ModelError.
    """
    origin = None if source is None else source.path
    is_replaced = origin is not None and os.path.exists(path) and os.path.exists(origin) and path.samefile(origin)
    kept = () if source is None or is_replaced else source.files
    if isinstance(model, OpenVINOModel):
        save_ir(model, path, overwrite=overwrite, kept=kept)
        return
    if is_ir_name(path):
        raise model_error("SG101", "is the name of OpenVINO IR, and the model is ONNX", path, help=_ONNX_NAME)
    if path.suffix.lower() in _TEXT_NAMES:
        text = "is the name of a model as text, which ONNX's tools would look for in it; splitgraph writes protobuf"
        raise model_error("SG101", text, path, help=_ONNX_NAME)
    save_onnx(model, path, source=origin, overwrite=overwrite, kept=kept)


def is_ir_name(path: object) -> bool:
    """True for the name of an OpenVINO IR."""
    return isinstance(path, (str, os.PathLike)) and os.fspath(path).lower().endswith(".xml")


def _wrong_type(source: object) -> ModelError:
    kind = type(source)
    hint = next((f"; {hint}" for known, hint in _HINTS.items() if isinstance(source, known)), "")
    in_memory = "an onnx_graphsurgeon.Graph, an onnx_ir.Model, an OpenVINOModel or an ov.Model"
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    return model_error("SG101", f"a model is an onnx.ModelProto, a path, {in_memory}, not {name}{hint}")
