"""Check the arguments of `verify` that do not depend on the models."""

from __future__ import annotations

import os
from typing import get_args

import numpy as np

from splitgraph.execution.engine_settings import EngineSettings
from splitgraph.execution.providers import refuse_unknown
from splitgraph.options import Engine, Running


def check_running(running: Running) -> None:
    """Raise ValueError for the first field that is not allowed."""
    engine, timeout = running.engine, running.timeout
    if engine not in get_args(Engine):
        raise ValueError(f"there is no engine {engine!r}; there are: {', '.join(get_args(Engine))}")
    for name, number, least in (("samples", running.samples, 1), ("seed", running.seed, 0)):
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
            raise ValueError(f"{name} is {number!r}; it must be an integer")
        if number < least:
            raise ValueError(f"{name} is {number}; it must be at least {least}")
    for name, tolerance in (("rtol", running.rtol), ("atol", running.atol)):
        if tolerance is None or not _is_number(tolerance) or not tolerance >= 0:
            raise ValueError(f"{name} is {tolerance!r}; it must be a number of at least 0")
    if not _is_number(timeout):
        raise ValueError(f"timeout is {timeout!r}; it must be a number of seconds")
    if not timeout > 0:
        raise ValueError(f"timeout is {timeout}; it must be more than 0 seconds")


def read_settings(running: Running) -> EngineSettings:
    """Return the settings of engines that the caller gave; one text or path counts as a list of one.

    Raises ValueError for a library that is no file, a provider that no engine has, and for the reference evaluator,
    which has neither.
    """
    custom_ops, providers = running.custom_ops, running.providers
    libraries = [custom_ops] if isinstance(custom_ops, (str, os.PathLike)) else list(custom_ops)
    names = [providers] if isinstance(providers, str) else list(providers)
    for name in names:
        if not isinstance(name, str):
            raise ValueError(f"a provider is {name!r}; it must be a name, such as 'cuda'")
    paths = [_library(path) for path in libraries]
    refuse_unknown(names)
    if running.engine == "reference" and (paths or names):
        lacking = "loads no libraries of operators" if paths else "has no providers"
        raise ValueError(f"the reference evaluator {lacking}; use the engine onnxruntime or openvino")
    return EngineSettings(tuple(dict.fromkeys(paths)), tuple(dict.fromkeys(names)))


def _library(path: object) -> str:
    """Return the absolute path of a library: engines run in another folder."""
    if not isinstance(path, (str, os.PathLike)):
        raise ValueError(f"a library of operators is {path!r}; it must be the path of a file")
    text = os.fsdecode(path)
    if not os.path.isfile(text):
        problem = "is a folder" if os.path.isdir(text) else "does not exist"
        raise ValueError(f"the library of operators {text!r} {problem}; give the file of a library, such as libfoo.so")
    return os.path.abspath(text)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
