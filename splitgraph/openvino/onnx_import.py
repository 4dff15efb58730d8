"""ONNX into an `ov.Model` by OpenVINO's own frontend, which reads no model-local functions: ours become VariadicSplit
by extension, all others are inlined first.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import onnx

from splitgraph.conversion.inlining import inline_functions
from splitgraph.formats.openvino_runtime import require_openvino
from splitgraph.model.onnx_proto import ModelProto
from splitgraph.openvino.extensions import extensions


def read_onnx(path: Path, model: ModelProto, libraries: Sequence[str] = ()) -> Any:
    """The `ov.Model` of an ONNX file, with real VariadicSplit nodes in place of our functions.

    path: in a folder of our own, as a copy goes beside it where other functions have to be inlined. model: what the
    file holds, without external data. libraries: extensions of OpenVINO. Raises what OpenVINO raises, SplitgraphError
    without it.
    """
    require_openvino()
    openvino = importlib.import_module("openvino")
    core = openvino.Core()
    core.add_extension(extensions(model))
    for library in libraries:
        core.add_extension(library)
    inlined = inline_functions(model)
    if inlined is model:
        return core.read_model(str(path))
    prepared = path.with_suffix(".inlined.onnx")
    onnx.save(inlined, str(prepared))
    return core.read_model(str(prepared))
