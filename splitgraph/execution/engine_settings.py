"""What engines load and use besides the models, and their limits: memory, and the oldest opset of onnxruntime."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from splitgraph.execution.providers import CPU_DEVICE, CPU_PROVIDER, provider_of

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
    """What engines load and use besides the models, the same for both models.

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
    def from_json(held: Mapping[str, Any]) -> EngineSettings:
        """Read what `as_json` returned."""
        return EngineSettings(tuple(held["custom_ops"]), tuple(held["providers"]))


DEFAULT = EngineSettings()


def memory_limit(models: int) -> int:
    """Return how many bytes of address space an engine process may use for models of so many bytes."""
    limit = MEMORY_LIMIT + _COPIES_OF_MODELS * models
    if not hasattr(os, "sysconf"):
        return limit
    return min(limit, int(_SHARE_OF_MEMORY * os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")))
