"""Run ONNX models with onnxruntime.

Models are compared without the optimisations of onnxruntime: those have faults of their own. `session_at` also loads a
model with more optimisation, as a deployment would.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from splitgraph.verification.engine_settings import CPU_PROVIDER, DEFAULT, OLDEST_OPSET, EngineSettings
from splitgraph.verification.engines.error_texts import is_invalid, reason_of
from splitgraph.verification.models.model_files import (
    add_outputs,
    clear_unknown_marks,
    is_default_domain,
    name_omitted_outputs,
    oldest_equal_opset,
    relabel,
)
from splitgraph.verification.values import Run, UnsupportedError, Value, dtype_by_name

# onnxruntime 1.31 reads no newer opset and IR version. Models that mean the same at this opset are relabelled.
_NEWEST_OPSET = 26
_NEWEST_IR = 13
# Every supported onnxruntime reads these, for a second attempt.
_SAFE_OPSET = 13
_SAFE_IR = 10

# Optimisation levels, each with less optimisation than the one before: the default first, then down to none.
LEVELS = ("ORT_ENABLE_ALL", "ORT_ENABLE_EXTENDED", "ORT_ENABLE_BASIC", "ORT_DISABLE_ALL")
_DATA_FOLDER = "session.model_external_initializers_file_folder_path"
_ASSIGNMENT = "session.record_ep_graph_assignment_info"

# Element types that the NumPy interface of onnxruntime lacks: their ONNX number and their name in ml_dtypes.
_NARROW_TYPES: Mapping[str, tuple[int, str]] = {
    "tensor(bfloat16)": (16, "bfloat16"),
    "tensor(float8e4m3fn)": (17, "float8_e4m3fn"),
    "tensor(float8e4m3fnuz)": (18, "float8_e4m3fnuz"),
    "tensor(float8e5m2)": (19, "float8_e5m2"),
    "tensor(float8e5m2fnuz)": (20, "float8_e5m2fnuz"),
}


def load_onnx(
    path: Path, folder: Path | None, settings: EngineSettings = DEFAULT, captured: Sequence[str] = ()
) -> tuple[Run, Sequence[str], Sequence[str], int | None]:
    """Load an ONNX file without optimisations; return the function that runs it, its providers, those of them that run
    no node, and the opset that it was relabelled to: None for its own.

    folder: of its external data, None for the folder of the file. captured: inner values that become outputs, too.
    """
    model = onnx.load(str(path), load_external_data=False)
    add_outputs(model, captured)
    name_omitted_outputs(model)
    clear_unknown_marks(model)
    imports = [item.version for item in model.opset_import if is_default_domain(item.domain)]
    is_guaranteed, own = all(version >= OLDEST_OPSET for version in imports), _opset_of(model)
    is_original = not relabel(model, _NEWEST_OPSET, _NEWEST_IR)
    try:
        session = _session(model, path, folder, settings)
    except Exception as error:
        if is_guaranteed and is_original and is_invalid(error):
            raise
        oldest = max(oldest_equal_opset(model), _SAFE_OPSET)
        if not relabel(model, oldest, _SAFE_IR):
            raise UnsupportedError(reason_of(error)) from None
        try:
            session = _session(model, path, folder, settings)
        except Exception as relabelled:
            # The label may be to blame: types may be too new for the older opset.
            raise UnsupportedError(reason_of(relabelled)) from None
    idle = _without_nodes(session, settings.providers)
    label = _opset_of(model) if _opset_of(model) != own else None
    return runner(session), session.get_providers(), idle, label


def runner(session: Any) -> Run:
    """Return the function that runs a session."""
    if any(value.type in _NARROW_TYPES for value in (*session.get_inputs(), *session.get_outputs())):
        return lambda feeds, names: _run_with_narrow_types(session, feeds, names)
    return lambda feeds, names: list(session.run(names, dict(feeds)))


def _without_nodes(session: Any, wanted: Sequence[str]) -> list[str]:
    """Return the providers that run no node of a session, as far as this onnxruntime says so."""
    if not wanted or not hasattr(session, "get_provider_graph_assignment_info"):
        return []
    busy = {part.ep_name for part in session.get_provider_graph_assignment_info()}
    return [name for name in wanted if name not in busy]


def _opset_of(model: onnx.ModelProto) -> int | None:
    """Return the opset of ai.onnx that a model imports; None without one."""
    return next((item.version for item in model.opset_import if is_default_domain(item.domain)), None)


def _session(model: onnx.ModelProto, path: Path, folder: Path | None, settings: EngineSettings) -> Any:
    _prepared_path(path).write_bytes(model.SerializeToString())
    return session_at(LEVELS[-1], path, folder, settings)


def session_at(level: str, path: Path, folder: Path | None, settings: EngineSettings = DEFAULT) -> Any:
    """Create a session for the prepared file of a model, at one of LEVELS; raise the errors of onnxruntime, and
    UnsupportedError if a provider does not start.

    folder: of the external data, None for the folder of the file.
    """
    import onnxruntime

    prepared = _prepared_path(path)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = getattr(onnxruntime.GraphOptimizationLevel, level)
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    options.log_severity_level = 4
    # An arena keeps the memory of the largest run, and there is a session for each kind of region.
    options.enable_cpu_mem_arena = level != LEVELS[-1]
    for library in settings.custom_ops:
        options.register_custom_ops_library(library)
    if settings.providers:
        options.add_session_config_entry(_ASSIGNMENT, "1")
    source: str | bytes = str(prepared)
    if folder is not None:
        # onnxruntime uses this folder only for a model that is given as bytes.
        options.add_session_config_entry(_DATA_FOLDER, str(folder))
        source = prepared.read_bytes()
    providers = list(dict.fromkeys([*settings.providers, CPU_PROVIDER]))
    # onnxruntime would replace a provider that does not start by the CPU, and only print it.
    session = onnxruntime.InferenceSession(source, options, providers=providers, enable_fallback=0)
    started = session.get_providers()
    missing = next((name for name in settings.providers if name not in started), None)
    if missing is not None:
        raise UnsupportedError(f"{missing} does not start here; onnxruntime would run on {', '.join(started)} instead")
    return session


def _prepared_path(path: Path) -> Path:
    """Return the path of the edited copy for onnxruntime: beside the model, where its external data is, too."""
    return path.with_suffix(".ort.onnx")


def _run_with_narrow_types(session: Any, feeds: Mapping[str, Value], names: Sequence[str] | None) -> list[Value]:
    from onnxruntime import OrtValue

    declared = {value.name: value.type for value in session.get_inputs()}
    given = {}
    for name, array in feeds.items():
        if not isinstance(array, np.ndarray):
            raise UnsupportedError("onnxruntime takes no bfloat16 or float8 tensors beside sequences and optionals")
        if declared[name] in _NARROW_TYPES:
            bits = array.view(np.uint16 if array.dtype.itemsize == 2 else np.uint8)
            given[name] = OrtValue.ortvalue_from_numpy_with_onnx_type(bits, _NARROW_TYPES[declared[name]][0])
        else:
            given[name] = OrtValue.ortvalue_from_numpy(array)
    return [_array_of(value) for value in session.run_with_ort_values(names, given)]


def _array_of(value: Any) -> Value:
    if value.data_type() not in _NARROW_TYPES:
        return value.numpy()
    dtype = dtype_by_name(_NARROW_TYPES[value.data_type()][1])
    shape = tuple(value.shape())
    size = int(np.prod(shape, dtype=np.int64))
    if size == 0:
        return np.empty(shape, dtype=dtype)
    return np.frombuffer(ctypes.string_at(value.data_ptr(), size * dtype.itemsize), dtype=dtype).reshape(shape)
