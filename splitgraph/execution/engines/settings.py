"""Hold what engines load and use besides the models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class EngineSettings:
    """What engines load and use besides the models, the same for both models.

    custom_ops: absolute paths of libraries with operators. providers: names of execution providers of onnxruntime and
    of devices of OpenVINO, the preferred one first; none for the CPU.
    """

    custom_ops: tuple[str, ...] = ()
    providers: tuple[str, ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Return the form in which an engine process reads it."""
        return asdict(self)

    @staticmethod
    def from_json(held: Mapping[str, Any]) -> EngineSettings:
        """Read what `as_json` returned."""
        return EngineSettings(tuple(held["custom_ops"]), tuple(held["providers"]))


DEFAULT = EngineSettings()
