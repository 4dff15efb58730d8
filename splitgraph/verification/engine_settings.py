"""The settings of engines: libraries of operators, execution providers, devices."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

# Providers and devices ------------------------------------------------------------------------------------------------


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


# Settings -------------------------------------------------------------------------------------------------------------


_ENGINES = ("onnxruntime", "openvino")
# None: the engine has no provider of that name.
_ON_CPU = (CPU_PROVIDER, CPU_DEVICE, None)
# An engine process may use this many bytes of address space, and in addition hold the models this many times: as read,
# as arrays, and as the engine keeps them. It never gets more than this share of the memory of the machine.
MEMORY_LIMIT = 8 * 2**30
_COPIES_OF_MODELS = 4
_SHARE_OF_MEMORY = 0.75
OLDEST_OPSET = 7


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """The settings of engines, the same for both models.

    custom_ops: absolute paths of libraries with operators. providers: names of execution providers of onnxruntime and
    of devices of OpenVINO, the preferred one first; none for the CPU.
    """

    custom_ops: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()

    @property
    def has_devices(self) -> bool:
        """Return True if something other than the CPU may run the models."""
        return any(provider_of(engine, name) not in _ON_CPU for engine in _ENGINES for name in self.providers)

    def as_json(self) -> dict[str, Any]:
        """Return the form in which an engine process reads it."""
        return asdict(self)

    @staticmethod
    def from_json(document: Mapping[str, Any]) -> EngineSettings:
        """Read what `as_json` returned."""
        return EngineSettings(tuple(document["custom_ops"]), tuple(document["providers"]))


DEFAULT = EngineSettings()


def memory_limit(models: int) -> int:
    """Return how many bytes of address space an engine process may use for models of so many bytes."""
    limit = MEMORY_LIMIT + _COPIES_OF_MODELS * models
    if not hasattr(os, "sysconf"):
        return limit
    return min(limit, int(_SHARE_OF_MEMORY * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
