"""Load into an engine what it needs, inside its process: libraries of operators, providers, and a model.

A library runs code as soon as it is loaded, so only a process of an engine loads one.

Each engine is a function that loads a model and returns a function that runs it on named values. An engine reports what
it cannot do as an UnsupportedError, or as any exception while it loads. An exception while it runs means that the
engine refuses the model on these inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from splitgraph.verification.engine_settings import DEFAULT, EngineSettings, provider_of, refuse_missing
from splitgraph.verification.engines import onnxruntime_engine
from splitgraph.verification.engines.error_texts import reason_of
from splitgraph.verification.models.model_files import add_outputs, read_model, save_model
from splitgraph.verification.values import Array, Run, UnsupportedError, Value, as_text, is_text


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
    loaded, missing = [], []
    for engine in dict.fromkeys(engines):
        kind = _KINDS.get(engine)
        if kind is None:
            continue
        try:
            kind.load(path)
            loaded.append(engine)
        except Exception as error:  # of the engine's own types
            if kind.function not in str(error):
                # The message of the system's loader follows the path.
                text = reason_of(error)
                text = text.rpartition(f"{path}: ")[2] or text
                raise UnsupportedError(f"the library {path} cannot be loaded: {text}") from None
            missing.append(f"the library {path} is not {kind.title}: it has no function {kind.function}")
    if not loaded:
        raise UnsupportedError("; ".join(missing) or f"no engine of this run loads the library {path}")
    return loaded


def find_providers(engine: str, names: Sequence[str]) -> tuple[str, ...]:
    """Return the providers of an engine among these names, in its spelling. Raises ValueError for a provider that is
    not available on this machine.
    """
    wanted = tuple(provider for name in names if (provider := provider_of(engine, name)) is not None)
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


class Loaded(NamedTuple):
    """A loaded model. run: runs it. providers: the execution providers or the devices that it runs on. idle: of these,
    the ones that got no node of the model. opset: what the engine took it for, None for what it imports.
    """

    run: Run
    providers: Sequence[str] = ()
    idle: Sequence[str] = ()
    opset: int | None = None


def load_engine(
    engine: str,
    path: Path,
    ports: Mapping[str, Any] | None = None,
    move: Callable[[Array, str], Array] | None = None,
    *,
    folder: Path | None = None,
    settings: EngineSettings = DEFAULT,
    captured: Sequence[str] = (),
) -> Loaded:
    """Load a model file into an engine ("reference", "onnxruntime", "openvino").

    ports: maps shared names to the model's own (see `model_pair.Ports`). move: changes the floating-point constants of
    an IR (see `openvino_engine.load_ir`). folder: of the external data of an ONNX model, None for the folder of the
    file. settings: of this engine (see `settings_of`). captured: inner values of an ONNX model that it returns, too.
    """
    if path.suffix == ".xml":
        from splitgraph.verification.engines.openvino_engine import load_ir

        run, devices = load_ir(path, None if ports is None else ports["outputs"], move, settings)
        return Loaded(_renamed(run, ports, permute=False), devices)
    loaders: dict[str, Callable[[Path, Path | None, EngineSettings, Sequence[str]], Loaded]] = {
        "reference": _load_reference,
        "onnxruntime": lambda *given: Loaded(*onnxruntime_engine.load_onnx(*given)),
        "openvino": _load_openvino,
    }
    loaded = loaders[engine](path, folder, settings, captured)
    return loaded._replace(run=_renamed(loaded.run, ports, permute=True))


def _renamed(run: Run, ports: Mapping[str, Any] | None, *, permute: bool) -> Run:
    """Let a run take shared input names; with `permute`, also return the outputs in the shared order."""
    if ports is None:
        return run
    inputs, outputs = ports["inputs"], ports["outputs"]

    def run_renamed(feeds: Mapping[str, Value], names: Sequence[str] | None = None) -> list[Value]:
        results = run({inputs[name]: value for name, value in feeds.items()}, names)
        return [results[index] for index in outputs] if permute else results

    return run_renamed


# Only the engine that is used is imported: importing openvino takes longer than running most models.
def _load_openvino(path: Path, folder: Path | None, settings: EngineSettings, captured: Sequence[str]) -> Loaded:
    from splitgraph.verification.engines.openvino_engine import load_onnx

    # OpenVINO looks for external data only beside the model.
    whole = path if folder is None else save_model(read_model(path, folder), path.with_suffix(".whole.onnx"))
    return Loaded(*load_onnx(whole, settings, captured))


def _load_reference(path: Path, folder: Path | None, settings: EngineSettings, captured: Sequence[str]) -> Loaded:
    from splitgraph.verification.reference import evaluator

    model = read_model(path, folder, leave_initializers=True)
    add_outputs(model, captured)
    loaded = evaluator.load(model, folder or path.parent)
    return Loaded(lambda feeds, names: evaluator.run(loaded, feeds, names))


def normalise(values: Sequence[Value]) -> list[Value]:
    """Return the outputs of an engine in the form that all engines share: strings as objects, scalars as arrays."""
    return [_normalise(value) for value in values]


def _normalise(value: Value) -> Value:
    if isinstance(value, (list, tuple)):
        return [_normalise(item) for item in value]
    if value is None or isinstance(value, dict):
        return value
    array = np.asarray(value)
    return as_text(array) if is_text(array) else array
