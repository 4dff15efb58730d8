"""Choose the help text for a verification that no engine could finish, by the reason."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from importlib import metadata

INPUTS = "Give real sizes with --bind, or real inputs with --inputs (Python: inputs={...})."
SMALLER = "Give smaller sizes with --bind."
MORE_MEMORY = "Run it on a machine with more memory."
SEEDS = "Give every operator that draws random numbers a seed, in both models."
DISTRIBUTIONS = (
    "Compare how the outputs of many runs are distributed: of one seed, two operators draw different numbers."
)
LONGER = "Give it more time with --timeout, or smaller sizes with --bind."
LOCALE = "Install the locale that the message names."
UNKNOWN_OPERATOR = (
    "Name the library that has the operator with --custom-ops, compare the models in a runtime that has the operator, "
    "or define the operator as a function of the model."
)
LIBRARY = "Name libraries with --custom-ops that are built for this engine, this version of it and this machine."
PROVIDER = "Install what the provider needs on this machine, or leave --provider out to run on the CPU."

_UNKNOWN_OPERATOR = (
    "no op registered",
    "not a registered function",
    "is unknown",
    "does not exist at opset",
    # How OpenVINO refuses a layer of an IR, and an operator of ONNX.
    "from unsupported opset",
    "does not support the following onnx operations",
)
_TOO_NEW = ("not implemented", "opset", "ir version", "ir_version")
_NO_KERNEL = re.compile(r"Could not find an implementation for (\w+)\((\d+)\)")


def is_installed(engine: str) -> bool:
    """Return True if an engine is installed."""
    return engine == "reference" or importlib.util.find_spec(engine) is not None


def version_of(engine: str) -> str:
    """Return the version of an installed engine; that of onnx for the reference evaluator."""
    return metadata.version("onnx" if engine == "reference" else engine)


def installing(engine: str) -> str:
    """Return how to install an engine."""
    return f"Install it: pip install {engine}"


def after_failure(engine: str, others: Sequence[str]) -> str:
    """Return the help text for an engine that did not decide. others: the engines that are tried after it.

    engine: one for both models, or one for each, joined by "+".
    """
    if others:
        return "The next engine was tried."
    lacking = next((name for name in engine.split("+") if not is_installed(name)), None)
    return "There was no other engine to try." if lacking is None else installing(lacking)


def where_little_shows(reason: str) -> str:
    """Return what to do if what ran does not show that models are equal. reason: what is told of that."""
    return LONGER if "no time" in reason else INPUTS


def where_engines_fail(wanted: str, engine: str, reason: str) -> str:
    """Return what to do if no engine ran the models.

    wanted: the engine that the caller asked for, onnxruntime for "auto". engine: the one that failed first. reason: its
    message, "" if it ran the first model on none of the inputs.
    """
    if not is_installed(wanted):
        return f"{wanted} is not installed. {installing(wanted)}"
    if not reason:
        return INPUTS
    text = reason.lower()
    if "the library " in text:
        return LIBRARY
    if "does not start here" in text:
        return PROVIDER
    if "did not finish" in text or "made in time" in text:
        return LONGER
    if "locale" in text:
        return LOCALE
    if any(part in text for part in _UNKNOWN_OPERATOR):
        return UNKNOWN_OPERATOR
    named = _with_version(engine)
    kernel = _NO_KERNEL.search(reason)
    if kernel is not None:
        return f"{named} lacks {kernel[1]}-{kernel[2]} for these types: verify at an opset that it runs."
    if any(part in text for part in _TOO_NEW):
        return f"Verify at an opset that {named} runs, or with a newer version of it."
    return f"{named} fails on the models: try another version of it."


def _with_version(engine: str) -> str:
    package = "onnx" if engine == "reference" else engine
    name = "the reference evaluator of onnx" if engine == "reference" else engine
    try:
        return f"{name} {metadata.version(package)}"
    except metadata.PackageNotFoundError:  # installed under another name, such as onnxruntime-gpu
        return name
