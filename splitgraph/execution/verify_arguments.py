"""Check the arguments of `verify` that do not depend on the models."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

Engine = Literal["auto", "reference", "onnxruntime", "openvino"]


def check_arguments(samples: int, seed: int, engine: str, rtol: float, atol: float, timeout: float) -> None:
    """Raise ValueError for the first argument that is not allowed."""
    if engine not in get_args(Engine):
        raise ValueError(f"there is no engine {engine!r}; there are: {', '.join(get_args(Engine))}")
    for name, number, least in (("samples", samples, 1), ("seed", seed, 0)):
        if isinstance(number, bool) or not isinstance(number, (int, np.integer)):
            raise ValueError(f"{name} is {number!r}; it must be an integer")
        if number < least:
            raise ValueError(f"{name} is {number}; it must be at least {least}")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if not _is_number(tolerance) or not tolerance >= 0:
            raise ValueError(f"{name} is {tolerance!r}; it must be a number of at least 0")
    if not _is_number(timeout):
        raise ValueError(f"timeout is {timeout!r}; it must be a number of seconds")
    if not timeout > 0:
        raise ValueError(f"timeout is {timeout}; it must be more than 0 seconds")


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
