"""Read the errors of engines: what they say, and whether the model or the engine is to blame."""

from __future__ import annotations

import re
from collections.abc import Sequence

from splitgraph.verification.models.model_files import is_default_domain
from splitgraph.verification.values import UnsupportedError

# The messages of NumPy, onnxruntime and the C++ library after a failed allocation.
_OUT_OF_MEMORY = ("unable to allocate", "failed to allocate memory", "bad_alloc", "bad allocation", "memoryerror")
# How onnxruntime refuses a node: In Node, ("name", Split, "domain", -1) : ("x": tensor(float),) -> ("y",) , Error ...
_REFUSED_NODE = re.compile(
    r'In Node, \("(?P<name>.*?)", (?P<operator>\w+), "(?P<domain>[^"]*)", -?\d+\) : .* , Error (?P<error>.+)'
)
# How onnxruntime refuses a model that breaks the rules of ONNX, besides InvalidGraph: "Node () Op (If)
# [ShapeInferenceError] ...", "Type Error: Type (tensor(int32)) of output arg (y) ... does not match expected type",
# "Invalid model. Node input 'q' is not a graph input, ...".
_BROKEN_RULE = re.compile(
    r"\[(?:Shape|Type)InferenceError\]|This is an invalid model|\bInvalid model\.|\bType Error: Type"
)
# How onnxruntime says that it lacks something; such a message may match _BROKEN_RULE, too.
_LACKS = re.compile(
    r"No Op registered|not a registered function|not supported|unsupported|not implemented", re.IGNORECASE
)
# How onnxruntime refuses a Split-18 with empty parts.
_EMPTY_PARTS = re.compile(
    r"Invalid num_outputs value of |Split size \d+ exceeds the remaining size of the selected axis"
)
# The place in the source of onnxruntime that precedes the message: a file, a line and a function.
_PLACE_IN_SOURCE = re.compile(r"/\S+:\d+ [^(]*?onnxruntime::[^(]*\([^)]*\)(?:::<lambda\(\)>)?\s+(?:const )?")


def says_out_of_memory(text: str) -> bool:
    """Return True if the text of an exception or a crash reports a failed allocation."""
    lowered = text.lower()
    return any(sign in lowered for sign in _OUT_OF_MEMORY)


def is_late(reason: str) -> bool:
    """Return True if an engine did not finish in its time (see `processes.worker_process`)."""
    return reason.startswith("did not finish within")


def is_invalid(error: Exception) -> bool:
    """Return True if an engine could not load the model because the model breaks the rules of ONNX.

    An operator or a domain that onnxruntime does not know breaks no rule.
    """
    text, kind = str(error), type(error).__name__
    if kind == "InvalidGraph":
        node = _REFUSED_NODE.search(text)
        return "No Op registered" not in text and (node is None or is_default_domain(node["domain"]))
    if kind not in ("Fail", "InvalidArgument"):
        return False
    return _BROKEN_RULE.search(text) is not None and _LACKS.search(text) is None


def is_known_limit(reason: str) -> bool:
    """Return True if an engine refuses valid inputs for this reason: a known limit of the engine."""
    return _EMPTY_PARTS.search(reason) is not None


def is_unsupported(error: Exception) -> bool:
    """Return True if a run failed because the engine lacks something, and not because the model is wrong."""
    root = _root(error)
    # The evaluator of onnx raises TypeError and AttributeError for attributes, inputs and types that it does not know.
    if isinstance(root, (UnsupportedError, NotImplementedError, MemoryError, TypeError, AttributeError)):
        return True
    if type(root).__name__ in ("NotImplemented", "RuntimeContextError"):
        return True
    text = str(root).lower()
    if says_out_of_memory(text):
        return True
    return "not implemented" in text or "not supported" in text or "unsupported" in text


def _root(error: BaseException) -> BaseException:
    """Return the original exception: the evaluator of onnx wraps the exceptions of its operators."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def reason_of(error: BaseException) -> str:
    """Return the message of an exception as one line."""
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
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    line = _openvino_reason(lines) or (lines[0] if lines else type(_root(error)).__name__)
    return line if len(line) <= 300 else line[:297] + "..."


def _openvino_reason(lines: Sequence[str]) -> str:
    """Return the message of OpenVINO, which follows its place in the source; "" for another engine."""
    if not lines or not lines[0].startswith(("Exception from ", "Check '")):
        return ""
    if "Summary:" in lines:
        return "; ".join(line.removeprefix("-- ") for line in lines[lines.index("Summary:") + 1 :])
    return [line for line in lines if not line.startswith("Please specify")][-1]
