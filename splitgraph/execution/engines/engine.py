"""Load a model into an engine, inside the process of that engine.

Each engine is a function that loads a model and returns a function that runs it on named values. An engine reports what
it cannot do as an UnsupportedError, or as any exception while it loads. An exception while it runs means that the
engine refuses the model on these inputs.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from splitgraph.execution.engine_settings import DEFAULT, EngineSettings
from splitgraph.execution.engines import onnxruntime_engine
from splitgraph.execution.models.model_files import read_model, save_model
from splitgraph.execution.values import Array, Run, Value, as_text, is_text


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
) -> Loaded:
    """Load a model file into an engine ("reference", "onnxruntime", "openvino").

    ports: maps shared names to the model's own (see `model_pair.Ports`). move: changes the floating-point constants of
    an IR (see `openvino_engine.load_ir`). folder: of the external data of an ONNX model, None for the folder of the
    file. settings: of this engine (see `preparation.settings_of`).
    """
    if path.suffix == ".xml":
        from splitgraph.execution.engines.openvino_engine import load_ir

        run, devices = load_ir(path, None if ports is None else ports["outputs"], move, settings)
        return Loaded(_renamed(run, ports, permute=False), devices)
    loaders: dict[str, Callable[[Path, Path | None, EngineSettings], Loaded]] = {
        "reference": _load_reference,
        "onnxruntime": _load_onnxruntime,
        "openvino": _load_openvino,
    }
    loaded = loaders[engine](path, folder, settings)
    return loaded._replace(run=_renamed(loaded.run, ports, permute=True))


def _renamed(run: Run, ports: Mapping[str, Any] | None, *, permute: bool) -> Run:
    """Let a run take shared input names; with `permute`, also return the outputs in the shared order."""
    if ports is None:
        return run
    inputs, outputs = ports["inputs"], ports["outputs"]

    def run_renamed(feeds: Mapping[str, Value]) -> list[Value]:
        results = run({inputs[name]: value for name, value in feeds.items()})
        return [results[index] for index in outputs] if permute else results

    return run_renamed


# Only the engine that is used is imported: importing openvino takes longer than running most models.
def _load_openvino(path: Path, folder: Path | None, settings: EngineSettings) -> Loaded:
    from splitgraph.execution.engines.openvino_engine import load_onnx

    # OpenVINO looks for external data only beside the model.
    whole = path if folder is None else save_model(read_model(path, folder), path.with_suffix(".whole.onnx"))
    return Loaded(*load_onnx(whole, settings))


def _load_onnxruntime(path: Path, folder: Path | None, settings: EngineSettings) -> Loaded:
    return Loaded(*onnxruntime_engine.load_onnx(path, folder, settings))


def _load_reference(path: Path, folder: Path | None, settings: EngineSettings) -> Loaded:
    from splitgraph.execution.reference import evaluator

    loaded = evaluator.load(read_model(path, folder, leave_initializers=True), folder or path.parent)
    return Loaded(lambda feeds: evaluator.run(loaded, feeds))


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
