"""Name the execution providers of onnxruntime and the devices of OpenVINO, and say which engine has which.

One list serves both engines, because their names differ, except for the CPU, which both have: "cuda" is
CUDAExecutionProvider of onnxruntime, "GPU" is a device of OpenVINO. Names may be written in any case.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_SUFFIX = "ExecutionProvider"
# The providers of all builds of onnxruntime, in its spelling, without the suffix. One that is not listed goes by its
# full name.
_PROVIDERS = (
    *("CPU", "CUDA", "Tensorrt", "CoreML", "Dml", "OpenVINO", "ROCM", "MIGraphX", "QNN", "Xnnpack", "WebGpu"),
    *("Dnnl", "CANN", "VitisAI", "Azure", "NvTensorRTRTX", "Nnapi", "JS", "WebNN", "VSINPU", "Rknpu", "ACL", "ArmNN"),
)
_BY_SHORT_NAME = {name.lower(): f"{name}{_SUFFIX}" for name in _PROVIDERS} | {"directml": f"Dml{_SUFFIX}"}
_DEVICE = re.compile(r"(CPU|GPU|NPU)(\.\d+)?", re.IGNORECASE)
# The default of each engine.
CPU_PROVIDER, CPU_DEVICE = f"CPU{_SUFFIX}", "CPU"


def provider_of(engine: str, name: str) -> str | None:
    """Return a provider in the spelling of an engine; None if the engine has no provider of that name anywhere."""
    if engine == "openvino":
        return name.upper() if _DEVICE.fullmatch(name) else None
    if engine != "onnxruntime":
        return None
    known = _BY_SHORT_NAME.get(name.lower().removesuffix(_SUFFIX.lower()))
    return known or (name if name.endswith(_SUFFIX) and name != _SUFFIX else None)


def refuse_unknown(names: Sequence[str]) -> None:
    """Raise ValueError for a name that no engine has."""
    for name in names:
        if not any(provider_of(engine, name) for engine in ("onnxruntime", "openvino")):
            short = ", ".join(sorted(_BY_SHORT_NAME))
            raise ValueError(
                f"there is no provider {name!r}; onnxruntime has {short}, and others by their full names; OpenVINO has "
                "CPU, GPU, NPU, and numbered ones such as GPU.1"
            )


def refuse_missing(engine: str, wanted: Sequence[str], available: Sequence[str]) -> None:
    """Raise ValueError for a provider that an engine does not have on this machine."""
    title, kind = ("OpenVINO", "device") if engine == "openvino" else ("onnxruntime", "provider")
    for name in wanted:
        if name not in available:
            raise ValueError(f"{title} has no {kind} {name} here; it has: {', '.join(available) or 'none'}")
