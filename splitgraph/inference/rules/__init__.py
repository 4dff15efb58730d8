"""Inference rules by family of operators; each module registers its rules when it is imported."""

from __future__ import annotations

from importlib import import_module

FAMILIES = (
    "attention",
    "classical",
    "constants",
    "control_flow",
    "convolution",
    "elementwise",
    "generators",
    "imaging",
    "indexing",
    "joining",
    "losses",
    "matmul",
    "onnxruntime_attention",
    "onnxruntime_blocked",
    "onnxruntime_channels_last",
    "onnxruntime_extensions",
    "onnxruntime_layers",
    "onnxruntime_quantized",
    "quantization",
    "recurrent",
    "reduction",
    "resampling",
    "reshape",
    "sequence",
    "shape",
    "signal",
    "slicing",
    "text",
    "training",
)
OPENVINO_FAMILIES = (
    "openvino_control_flow",
    "openvino_convolution",
    "openvino_elementwise",
    "openvino_indexing",
    "openvino_joining",
    "openvino_recurrent",
    "openvino_reduction",
    "openvino_shape",
    "openvino_strided_slice",
)


def load_rules() -> None:
    """Import every family, once; rules import the walk's types, so this cannot happen while the package is being
    imported.
    """
    for family in FAMILIES:
        import_module(f"{__name__}.{family}")


def load_openvino_rules() -> None:
    """Import the families of OpenVINO's layers, which only an IR has, once."""
    for family in OPENVINO_FAMILIES:
        import_module(f"{__name__}.{family}")
