"""The engines as the child process sees them: load a model file, run it on named values.

Each engine is a function that loads a model and gives back a function that runs it. What an engine cannot do is an
UnsupportedError or any exception at loading; an exception while running means that the engine refuses the model on
these inputs.
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from splitgraph.execution.deployment import LEVELS, prepared_path, session_at
from splitgraph.execution.memory import says_out_of_memory
from splitgraph.execution.model_edits import (
    clear_unknown_marks,
    is_default_domain,
    name_omitted_outputs,
    oldest_equal_opset,
    relabel,
)
from splitgraph.execution.model_files import read_model, save_model
from splitgraph.execution.values import UnsupportedError, Value, as_text, dtype_by_name, is_text

Run = Callable[[Mapping[str, Value]], list[Value]]
Array = npt.NDArray[Any]

# onnxruntime has the operators of older opsets only in part.
OLDEST_ONNXRUNTIME_OPSET = 7
# The newest opset and IR version that onnxruntime 1.31 reads; later opsets are relabelled where no operator changed.
_ONNXRUNTIME_OPSET = 26
_ONNXRUNTIME_IR = 13
# What every onnxruntime that we support reads, for a second attempt.
_OLD_ONNXRUNTIME_OPSET = 13
_OLD_ONNXRUNTIME_IR = 10

# Element types that onnxruntime's numpy interface does not take or give back: ONNX number and ml_dtypes name.
_NARROW_TYPES: Mapping[str, tuple[int, str]] = {
    "tensor(bfloat16)": (16, "bfloat16"),
    "tensor(float8e4m3fn)": (17, "float8_e4m3fn"),
    "tensor(float8e4m3fnuz)": (18, "float8_e4m3fnuz"),
    "tensor(float8e5m2)": (19, "float8_e5m2"),
    "tensor(float8e5m2fnuz)": (20, "float8_e5m2fnuz"),
}


# How onnxruntime refuses a node: In Node, ("name", Split, "domain", -1) : ("x": tensor(float),) -> ("y",) , Error ...
_REFUSED_NODE = re.compile(
    r'In Node, \("(?P<name>.*?)", (?P<operator>\w+), "(?P<domain>[^"]*)", -?\d+\) : .* , Error (?P<error>.+)'
)
# How onnxruntime refuses a model that breaks ONNX's rules, beside InvalidGraph: "Node () Op (If) [ShapeInferenceError]
# ...", "Type Error: Type (tensor(int32)) of output arg (y) ... does not match expected type", "Invalid model. Node
# input 'q' is not a graph input, ...".
_BROKEN_RULE = re.compile(
    r"\[(?:Shape|Type)InferenceError\]|This is an invalid model|\bInvalid model\.|\bType Error: Type"
)
# What it says of itself may stand in such a message too.
_LACKS = re.compile(
    r"No Op registered|not a registered function|not supported|unsupported|not implemented", re.IGNORECASE
)
# How onnxruntime refuses the empty parts of a Split-18.
_EMPTY_PARTS = re.compile(
    r"Invalid num_outputs value of |Split size \d+ exceeds the remaining size of the selected axis"
)
# Where onnxruntime raised an exception: a file, a line and a function, before what it has to say.
_PLACE_IN_SOURCE = re.compile(r"/\S+:\d+ [^(]*?onnxruntime::[^(]*\([^)]*\)(?:::<lambda\(\)>)?\s+(?:const )?")


def load_engine(
    engine: str,
    path: Path,
    ports: Mapping[str, Any] | None = None,
    move: Callable[[Array, str], Array] | None = None,
    *,
    folder: Path | None = None,
) -> Run:
    """Load a model file into an engine ("reference", "onnxruntime", "openvino"); the function returned runs it.

    folder: of the external data of an ONNX model; None for that of the file.
    ports: for names that are not the model's own: {"inputs": {name: own name}, "outputs": own names or positions}.
    move: what to make of the floating-point constants of an IR (see `openvino_engine.load_ir`).
    """
    if path.suffix == ".xml":
        from splitgraph.execution.openvino_engine import load_ir

        return _through(load_ir(path, None if ports is None else ports["outputs"], move), ports, permute=False)
    loaders: dict[str, Callable[[Path, Path | None], Run]] = {
        "reference": _load_reference,
        "onnxruntime": _load_onnxruntime,
        "openvino": _load_openvino,
    }
    return _through(loaders[engine](path, folder), ports, permute=True)


def _through(run: Run, ports: Mapping[str, Any] | None, *, permute: bool) -> Run:
    """The same by other names of inputs; with `permute`, outputs in another order."""
    if ports is None:
        return run
    inputs, outputs = ports["inputs"], ports["outputs"]

    def renamed(feeds: Mapping[str, Value]) -> list[Value]:
        results = run({inputs[name]: value for name, value in feeds.items()})
        return [results[index] for index in outputs] if permute else results

    return renamed


def is_invalid(error: Exception) -> bool:
    """True when an exception raised while loading says that the model breaks ONNX's rules, whatever the engine has.

    An operator or a domain that onnxruntime does not know may well exist.
    """
    text, kind = str(error), type(error).__name__
    if kind == "InvalidGraph":
        node = _REFUSED_NODE.search(text)
        return "No Op registered" not in text and (node is None or is_default_domain(node["domain"]))
    if kind not in ("Fail", "InvalidArgument"):
        return False
    return _BROKEN_RULE.search(text) is not None and _LACKS.search(text) is None


def is_known_limit(reason: str) -> bool:
    """True when an engine's reason to refuse inputs is one that is known to be no fault of the model."""
    return _EMPTY_PARTS.search(reason) is not None


def is_unsupported(error: Exception) -> bool:
    """True when an exception raised while running says that the engine lacks something, not that the model is wrong."""
    root = _root(error)
    # TypeError and AttributeError are how onnx's evaluator says that it knows no such attribute, input or element type.
    if isinstance(root, (UnsupportedError, NotImplementedError, MemoryError, TypeError, AttributeError)):
        return True
    if type(root).__name__ in ("NotImplemented", "RuntimeContextError"):
        return True
    text = str(root).lower()
    if says_out_of_memory(text):
        return True
    return "not implemented" in text or "not supported" in text or "unsupported" in text


def _root(error: BaseException) -> BaseException:
    """The exception that others were raised from: onnx's evaluator wraps whatever an operator raises."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def reason_of(error: BaseException) -> str:
    """The one line that an exception has to say."""
    text = str(_root(error))
    status = re.search(r"Name:'([^']*)' Status Message: (.*)", text, re.DOTALL)
    if status:
        text = f"node {status[1]!r}: {status[2]}" if status[1] else status[2]
    refused = _REFUSED_NODE.search(text)
    if refused:
        text = f"{refused['operator']} {refused['name']!r}: {refused['error']}"
    text = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : (Load model from .* failed: ?)?", "", text)
    text = re.sub(r"^Exception during initialization: | node with name ''$", "", text)
    text = _PLACE_IN_SOURCE.sub("", text)
    told = [line.strip() for line in text.splitlines() if line.strip()]
    line = _openvino_reason(told) or (told[0] if told else type(_root(error)).__name__)
    return line if len(line) <= 300 else line[:297] + "..."


def _openvino_reason(told: Sequence[str]) -> str:
    """What OpenVINO has to say, which comes last, after where in its source it is; "" for the text of another."""
    if not told or not told[0].startswith(("Exception from ", "Check '")):
        return ""
    if "Summary:" in told:
        return "; ".join(line.removeprefix("-- ") for line in told[told.index("Summary:") + 1 :])
    said = [line for line in told if not line.startswith("Please specify")]
    return said[-1]


# An engine that another job is for is not imported: openvino's takes longer than to run most models.
def _load_openvino(path: Path, folder: Path | None) -> Run:
    from splitgraph.execution.openvino_engine import load_onnx

    # OpenVINO looks for external data beside the model only.
    return load_onnx(path if folder is None else save_model(read_model(path, folder), path.with_suffix(".whole.onnx")))


def _load_reference(path: Path, folder: Path | None) -> Run:
    from splitgraph.execution.reference import load as load_reference
    from splitgraph.execution.reference import run as run_reference

    evaluator = load_reference(read_model(path, folder, leave_initializers=True), folder or path.parent)
    return lambda feeds: run_reference(evaluator, feeds)


def _load_onnxruntime(path: Path, folder: Path | None) -> Run:
    model = onnx.load(str(path), load_external_data=False)
    name_omitted_outputs(model)
    clear_unknown_marks(model)
    is_guaranteed = _is_of_guaranteed_opset(model)
    is_original = not relabel(model, _ONNXRUNTIME_OPSET, _ONNXRUNTIME_IR)
    try:
        session = _session(model, path, folder)
    except Exception as error:
        if is_guaranteed and is_original and is_invalid(error):
            raise
        oldest = max(oldest_equal_opset(model), _OLD_ONNXRUNTIME_OPSET)
        if not relabel(model, oldest, _OLD_ONNXRUNTIME_IR):
            raise UnsupportedError(reason_of(error)) from None
        session = _relabelled_session(model, path, folder)
    if any(value.type in _NARROW_TYPES for value in (*session.get_inputs(), *session.get_outputs())):
        return lambda feeds: _run_by_values(session, feeds)
    return lambda feeds: _run_by_arrays(session, feeds)


def _is_of_guaranteed_opset(model: onnx.ModelProto) -> bool:
    imports = (item for item in model.opset_import if is_default_domain(item.domain))
    return all(item.version >= OLDEST_ONNXRUNTIME_OPSET for item in imports)


def _relabelled_session(model: onnx.ModelProto, path: Path, folder: Path | None) -> Any:
    """A session for a model under a label that is not its own, which its types may well be too new for."""
    try:
        return _session(model, path, folder)
    except Exception as error:
        raise UnsupportedError(reason_of(error)) from None


def _session(model: onnx.ModelProto, path: Path, folder: Path | None) -> Any:
    prepared_path(path).write_bytes(model.SerializeToString())
    return session_at(LEVELS[-1], path, folder)


def _run_by_arrays(session: Any, feeds: Mapping[str, Value]) -> list[Value]:
    return list(session.run(None, dict(feeds)))


def _run_by_values(session: Any, feeds: Mapping[str, Value]) -> list[Value]:
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
    return [_array_of(value) for value in session.run_with_ort_values(None, given)]


def _array_of(value: Any) -> Value:
    if value.data_type() not in _NARROW_TYPES:
        return value.numpy()
    dtype = dtype_by_name(_NARROW_TYPES[value.data_type()][1])
    shape = tuple(value.shape())
    size = int(np.prod(shape, dtype=np.int64))
    if size == 0:
        return np.empty(shape, dtype=dtype)
    return np.frombuffer(ctypes.string_at(value.data_ptr(), size * dtype.itemsize), dtype=dtype).reshape(shape)


def normalise(values: Sequence[Value]) -> list[Value]:
    """Outputs of an engine in the form that all engines share: strings as objects, scalars as arrays."""
    return [_normalise(value) for value in values]


def _normalise(value: Value) -> Value:
    if isinstance(value, (list, tuple)):
        return [_normalise(item) for item in value]
    if value is None or isinstance(value, dict):
        return value
    array = np.asarray(value)
    return as_text(array) if is_text(array) else array
