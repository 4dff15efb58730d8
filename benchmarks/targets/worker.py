"""Runs models in one runtime, by its own Python: `python worker.py ADAPTER SECONDS`, names of models on standard input.

Each line of the input is the path of a model without `.onnx` or `.xml`; beside it are `.in.npz` and `.exp.npz`. Each
line of the answer is JSON: the path, the answer, and its reason. The adapter is imported once; each model runs in a
process of its own, so that a runtime that dies or hangs takes only that model with it. Imports nothing of the project.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import re
import select
import signal
import sys
import tempfile
import time
import traceback
from types import ModuleType
from typing import Any

import numpy as np

_LONGEST = 300


def main(adapter: str, seconds: float) -> None:
    """Answer every line of the input."""
    answers = os.fdopen(os.dup(1), "w")
    # What runtimes print goes nowhere; the answers have a stream of their own.
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    if not os.environ.get("TARGETS_DEBUG"):
        os.dup2(nowhere, 2)
    module = _load(adapter)
    print(json.dumps({"version": module.version()}), file=answers, flush=True)
    for line in sys.stdin:
        path = line.rstrip("\n")
        answer, reason = _in_own_process(module, path, seconds)
        print(json.dumps([path, answer, reason[:_LONGEST]]), file=answers, flush=True)


def _load(adapter: str) -> ModuleType:
    # Under a name of its own: adapters are called like the packages that they import.
    specification = importlib.util.spec_from_file_location("adapter_of_the_runtime", adapter)
    assert specification is not None
    assert specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def _in_own_process(module: ModuleType, path: str, seconds: float) -> tuple[str, str]:
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(receiving)
        os.setsid()
        _answer(module, path, sending)
    os.close(sending)
    text = _read(receiving, seconds)
    os.close(receiving)
    # Also what the runtime started and left.
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    if text is None:
        return "hangs", f"no answer after {seconds:g} s"
    if not text:
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        return "dies", f"signal {number}" if number else f"exit code {os.WEXITSTATUS(status)}"
    answer, reason = json.loads(text)
    return str(answer), str(reason)


def _read(descriptor: int, seconds: float) -> bytes | None:
    """Everything that the child writes; None where it takes too long."""
    text, deadline = b"", time.monotonic() + seconds
    while True:
        ready, _, _ = select.select([descriptor], [], [], max(deadline - time.monotonic(), 0))
        if not ready:
            return None
        piece = os.read(descriptor, 65536)
        if not piece:
            return text
        text += piece


def _answer(module: ModuleType, path: str, sending: int) -> None:
    try:
        inputs, expected = arrays(f"{path}.in.npz"), arrays(f"{path}.exp.npz")
        ending = ".xml" if os.path.exists(f"{path}.xml") else ".onnx"
        found = module.run(f"{path}{ending}", inputs, list(expected), lambda stage: None)
        answer = compare(found, expected, getattr(module, "TOLERANCE", 1e-4))
    except BaseException as error:
        if os.environ.get("TARGETS_DEBUG"):
            traceback.print_exc()
        answer = ("refuses", _reason(error, os.path.dirname(path)))
    os.write(sending, json.dumps([answer[0], answer[1][:_LONGEST]]).encode())
    os._exit(0)


def _reason(error: BaseException, folder: str) -> str:
    """What an error says, in one line; of an error that holds the traceback of another one, what the other says.

    Files of this machine are named without their folders, so that another machine gives the same reason.
    """
    # What cannot be given to the runtime says nothing of the runtime.
    text = f"harness: {error}" if isinstance(error, BufferError) else f"{type(error).__name__}: {error}"
    if str(error).startswith("Traceback (most recent call last)"):
        lines = str(error).splitlines()
        calls = [number for number, line in enumerate(lines) if line.startswith("  ")]
        text = "\n".join(lines[max(calls, default=0) + 1 :])
    line = " ".join(text.split())
    local = "|".join(map(re.escape, {folder, sys.prefix, sys.base_prefix, tempfile.gettempdir()}))
    return re.sub(rf"(?<![\w.-])(?:{local})/(?:[^\s'\":]*/)?", "", line)


def arrays(path: str) -> dict[str, Any]:
    """The arrays of a file by name."""
    with np.load(path) as held:
        found = {name: held[name] for name in held.files}
    # Strings are in the file as text of fixed width.
    return {name: array.astype(object) if array.dtype.kind == "U" else array for name, array in found.items()}


def compare(found: list[Any], expected: dict[str, Any], tolerance: float) -> tuple[str, str]:
    """What the results are: "reads", "wrong", or "rank" for right data of another rank; and in which way."""
    if len(found) != len(expected):
        return "wrong", f"{len(found)} outputs and not {len(expected)}"
    notes, is_reshaped = [], False
    for (name, wanted), given in zip(expected.items(), found, strict=True):
        array = np.asarray(given)
        if array.shape != wanted.shape:
            same = array.size == wanted.size and _is_close(array.reshape(wanted.shape), wanted, tolerance)
            if not same or not wanted.size:
                return "wrong", f"{name} has the shape {array.shape} and not {wanted.shape}"
            notes.append(f"{name} has the shape {array.shape} and not {wanted.shape}")
            is_reshaped = True
        elif not _is_close(array, wanted, tolerance):
            return "wrong", f"{name} has other values"
        elif wanted.dtype != object and array.dtype != wanted.dtype:
            notes.append(f"{name} is {array.dtype} and not {wanted.dtype}")
    return ("rank" if is_reshaped else "reads"), "; ".join(notes)


def _is_close(array: Any, wanted: Any, tolerance: float) -> bool:
    if wanted.dtype == object:
        given = [each.decode() if isinstance(each, bytes) else str(each) for each in array.ravel()]
        return given == [str(each) for each in wanted.ravel()]
    allowed = max(tolerance, 1e-2) if wanted.dtype == np.float16 else tolerance
    # As near as a runtime has to be where it is run to decide (`agreement.py`): some approximate a Gelu.
    return bool(np.allclose(array.astype(float), wanted.astype(float), max(allowed, 1e-3), allowed, equal_nan=True))


if __name__ == "__main__":
    main(sys.argv[1], float(sys.argv[2]))
