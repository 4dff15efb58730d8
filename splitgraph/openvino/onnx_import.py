"""ONNX into an `ov.Model` by OpenVINO's own frontend, which reads no model-local functions: ours become VariadicSplit
by extension, all others are inlined first.
"""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import onnx
import onnx.inliner

from splitgraph.formats.openvino_runtime import require_openvino
from splitgraph.openvino.extensions import extensions
from splitgraph.variants.variadic_function import is_variadic_function


def inline_other_functions(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with calls of our VariadicSplit functions only, all other functions inlined; itself without any."""
    ours = [(function.domain, function.name) for function in model.functions if is_variadic_function(function)]
    if len(ours) == len(model.functions):
        return model
    inlined: onnx.ModelProto = onnx.inliner.inline_selected_functions(model, ours, exclude=True)
    return inlined


def read_onnx(path: Path, model: onnx.ModelProto) -> Any:
    """The `ov.Model` of an ONNX file, with real VariadicSplit nodes in place of our functions.

    path: in a folder of our own, as a copy goes beside it where other functions have to be inlined. model: what the
    file holds, without external data. Raises what OpenVINO raises, SplitgraphError without it.
    """
    require_openvino()
    openvino = importlib.import_module("openvino")
    core = openvino.Core()
    core.add_extension(extensions(model))
    inlined = inline_other_functions(model)
    if inlined is model:
        return core.read_model(str(path))
    prepared = path.with_suffix(".inlined.onnx")
    onnx.save(inlined, str(prepared))
    return core.read_model(str(prepared))
