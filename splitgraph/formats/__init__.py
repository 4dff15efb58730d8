"""The kinds of model that splitgraph reads and writes: ONNX files, ModelProtos and graphsurgeon graphs."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import onnx

from splitgraph.diagnostics import ModelError
from splitgraph.formats.graphsurgeon import from_model, is_graphsurgeon, to_model
from splitgraph.formats.model_error import model_error
from splitgraph.formats.onnx_file import load_onnx, require_path, save_onnx, with_weights

__all__ = ["LoadedModel", "give_back", "load", "load_onnx", "open_model", "save", "save_onnx", "with_weights"]

_HINTS = {
    bytes: "use onnx.load_from_string first",
    onnx.GraphProto: "wrap it with onnx.helper.make_model, which adds the opset",
}


@dataclass(frozen=True, slots=True)
class LoadedModel:
    """A model source, opened.

    model: what the other parts work on; for kind "onnx" it is the caller's own, and never modified. kind: what went in.
    path: the file, for kind "path". original: the caller's gs.Graph, for kind "graphsurgeon".
    """

    model: onnx.ModelProto
    kind: Literal["onnx", "path", "graphsurgeon"]
    path: Path | None = None
    original: Any = None


def open_model(source: Any, *, external_data: Literal["load", "keep"] = "load") -> LoadedModel:
    """Open a model source: a ModelProto, a path, or a gs.Graph.

    external_data: for a path, as `load_onnx` takes it. Raises ModelError for anything that is not a readable model.
    """
    if isinstance(source, onnx.ModelProto):
        return LoadedModel(source, "onnx")
    if is_graphsurgeon(source):
        return LoadedModel(to_model(source), "graphsurgeon", original=source)
    if not isinstance(source, (str, os.PathLike)):
        raise _wrong_type(source)
    require_path(source)
    path = Path(source)
    _refuse_openvino(path, "read")
    return LoadedModel(load_onnx(path, external_data=external_data), "path", path)


def give_back(model: onnx.ModelProto, loaded: LoadedModel) -> Any:
    """A model of the kind that went in: a gs.Graph for a gs.Graph, the ModelProto itself otherwise."""
    if loaded.kind == "graphsurgeon":
        return from_model(model, loaded.original)
    return model


def load(path: str | os.PathLike[str]) -> onnx.ModelProto:
    """Read an ONNX file with all of its weights. Raises ModelError for anything else."""
    require_path(path)
    return open_model(path).model


def save(model: Any, path: str | os.PathLike[str]) -> None:
    """Write a ModelProto or gs.Graph to an ONNX file, replacing what is there, all or nothing. Raises ModelError."""
    if isinstance(model, (str, os.PathLike)):
        raise model_error("SG101", f"a model to save is a ModelProto or a gs.Graph, not a path ({os.fspath(model)!r})")
    loaded = open_model(model)
    require_path(path)
    _refuse_openvino(Path(path), "written")
    save_onnx(loaded.model, path)


def _wrong_type(source: object) -> ModelError:
    kind = type(source)
    hint = next((f"; {hint}" for known, hint in _HINTS.items() if isinstance(source, known)), "")
    allowed = "an onnx.ModelProto, a path or an onnx_graphsurgeon.Graph"
    name = f"{kind.__module__}.{kind.__qualname__}".removeprefix("builtins.")
    return model_error("SG101", f"a model is {allowed}, not {name}{hint}")


def _refuse_openvino(path: Path, verb: str) -> None:
    if path.suffix.lower() == ".xml":
        raise model_error("SG101", f"is OpenVINO IR, which is not {verb} by this release of splitgraph", path)
