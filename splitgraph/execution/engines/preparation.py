"""Prepare the engines of a process before any model is loaded: libraries of operators, and providers.

Only a process of an engine does this: a library runs code as soon as it is loaded.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from splitgraph.execution.engines.error_texts import reason_of
from splitgraph.execution.engines.providers import provider_of, refuse_missing
from splitgraph.execution.engines.settings import EngineSettings
from splitgraph.execution.values import UnsupportedError


class _Kind(NamedTuple):
    """The libraries that an engine loads. load: loads one. function: what one must have. title: what one is called."""

    load: Callable[[str], None]
    function: str
    title: str


def _load_operators(path: str) -> None:
    import onnxruntime

    onnxruntime.SessionOptions().register_custom_ops_library(path)


def _load_extension(path: str) -> None:
    import openvino

    openvino.Core().add_extension(path)


_KINDS: Mapping[str, _Kind] = {
    "onnxruntime": _Kind(_load_operators, "RegisterCustomOps", "a library of operators for onnxruntime"),
    "openvino": _Kind(_load_extension, "create_extensions", "an extension of OpenVINO"),
}


def load_library(engines: Sequence[str], path: str) -> list[str]:
    """Load a library into each engine that it is made for; return these engines.

    Raises UnsupportedError if it is made for none of them, or cannot be loaded.
    """
    found, missing = [], []
    for engine in dict.fromkeys(engines):
        kind = _KINDS.get(engine)
        if kind is None:
            continue
        try:
            kind.load(path)
            found.append(engine)
        except Exception as error:  # of the engine's own types
            if kind.function not in str(error):
                raise UnsupportedError(f"the library {path} cannot be loaded: {_reason(error, path)}") from None
            missing.append(f"the library {path} is not {kind.title}: it has no function {kind.function}")
    if not found:
        raise UnsupportedError("; ".join(missing) or f"no engine of this run loads the library {path}")
    return found


def _reason(error: Exception, path: str) -> str:
    """Return what the loader of the system says, without the path before it."""
    text = reason_of(error)
    return text.rpartition(f"{path}: ")[2] or text


def find_providers(engine: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the providers of an engine among these names, in its spelling. Raises ValueError for a provider that is
    not available on this machine.
    """
    wanted = tuple(found for name in names if (found := provider_of(engine, name)) is not None)
    if wanted:
        refuse_missing(engine, wanted, _available(engine))
    return wanted


def _available(engine: str) -> list[str]:
    if engine == "openvino":
        import openvino

        return list(openvino.Core().available_devices)
    import onnxruntime

    return list(onnxruntime.get_available_providers())


def settings_of(engine: str, settings: EngineSettings, libraries: Mapping[str, Sequence[str]]) -> EngineSettings:
    """Return what an engine uses of the settings. libraries: the engines that loaded each library.

    Raises ValueError for a provider that is not available.
    """
    own = tuple(path for path in settings.custom_ops if engine in libraries[path])
    return EngineSettings(own, find_providers(engine, settings.providers))
