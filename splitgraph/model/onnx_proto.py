"""onnx's protobuf messages, without the rest of the package onnx.

Reading, walking and writing a model needs nothing else, and `import onnx` takes five times as long and 20 MB more, for
NumPy and a C++ library. The classes are those of `onnx.ModelProto` and so on, whoever imports first: protobuf makes one
class for a message.
"""

from __future__ import annotations

import sys
from importlib import import_module, util
from importlib.machinery import PathFinder
from types import ModuleType
from typing import TYPE_CHECKING

_MODULE = "onnx.onnx_ml_pb2"


def _load_messages() -> ModuleType:
    """Return the module of the messages: the one that is imported already, else one loaded past onnx's `__init__`.

    It does not go into sys.modules, where a package would be missing above it. Raises ImportError without onnx.
    """
    if _MODULE in sys.modules:
        # Import it rather than take it from there: another thread may be importing it, and import_module waits for
        # that.
        return import_module(_MODULE)
    package = util.find_spec("onnx")
    if package is None:
        raise ModuleNotFoundError("splitgraph needs the package onnx, which is not installed", name="onnx")
    spec = PathFinder.find_spec(_MODULE, package.submodule_search_locations)
    if spec is None or spec.loader is None:
        raise ImportError(f"the installed onnx has no module {_MODULE}", name=_MODULE)
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if TYPE_CHECKING:
    from onnx import (
        IR_VERSION,
        AttributeProto,
        FunctionProto,
        GraphProto,
        ModelProto,
        NodeProto,
        OperatorSetIdProto,
        SparseTensorProto,
        TensorProto,
        TensorShapeProto,
        TypeProto,
        ValueInfoProto,
    )
else:
    _messages = _load_messages()
    IR_VERSION = _messages.IR_VERSION
    AttributeProto = _messages.AttributeProto
    FunctionProto = _messages.FunctionProto
    GraphProto = _messages.GraphProto
    ModelProto = _messages.ModelProto
    NodeProto = _messages.NodeProto
    OperatorSetIdProto = _messages.OperatorSetIdProto
    SparseTensorProto = _messages.SparseTensorProto
    TensorProto = _messages.TensorProto
    TensorShapeProto = _messages.TensorShapeProto
    TypeProto = _messages.TypeProto
    ValueInfoProto = _messages.ValueInfoProto

__all__ = [
    "IR_VERSION",
    "AttributeProto",
    "FunctionProto",
    "GraphProto",
    "ModelProto",
    "NodeProto",
    "OperatorSetIdProto",
    "SparseTensorProto",
    "TensorProto",
    "TensorShapeProto",
    "TypeProto",
    "ValueInfoProto",
]
