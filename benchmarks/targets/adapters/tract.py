"""tract: its Python package, with the types and shapes that the model declares."""

from __future__ import annotations

from typing import Any

import tract


def version() -> str:
    """The version of the library."""
    return str(tract.version())


def run(path: str, inputs: dict[str, Any], outputs: list[str]) -> list[Any]:
    """Run a model."""
    runnable = tract.onnx().load(path).into_model().into_runnable()
    found = runnable.run(list(inputs.values()))
    try:
        return [each.to_numpy() for each in found]
    except BaseException as error:
        raise RuntimeError(f"harness: the result has a type that tract does not give back ({error})") from error
