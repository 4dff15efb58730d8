"""Inference rules, in a folder for each owner of operators and a module for each family. A module registers its rules
when it is imported.

`onnx/`, `onnxruntime/` and `openvino/` hold the rules; the modules beside them hold what these rules share.
"""

from __future__ import annotations

from importlib import import_module

_ONNX = (
    "attention",
    "constants",
    "control_flow",
    "convolution",
    "elementwise",
    "imaging",
    "indexing",
    "joining",
    "machine_learning",
    "matmul",
    "quantization",
    "reduction",
    "sequence",
    "shape",
    "slicing",
    "strings",
    "training",
)
_ONNXRUNTIME = ("attention", "convolution", "generation", "layers", "quantized", "states", "tensors")
_OPENVINO = (
    "aliases",
    "control_flow",
    "convolution",
    "detection",
    "elementwise",
    "indexing",
    "shape",
    "signal",
)


def load_rules() -> None:
    """Import the rules of ONNX and onnxruntime. Rules import the walk's types, so this cannot happen while the package
    is imported.
    """
    for family in _ONNX:
        import_module(f"{__name__}.onnx.{family}")
    for family in _ONNXRUNTIME:
        import_module(f"{__name__}.onnxruntime.{family}")


def load_openvino_rules() -> None:
    """Import the rules of OpenVINO's layers, which only an IR has."""
    for family in _OPENVINO:
        import_module(f"{__name__}.openvino.{family}")
