"""tract: its Python package, with the types and shapes that the model declares."""

from __future__ import annotations

from typing import Any

import tract


def version() -> str:
    """Return the version of the library."""
    return str(tract.version())


def run(path: str, inputs: dict[str, Any], outputs: list[str], stage: Any) -> list[Any]:
    """Run a model."""
    read = tract.onnx().load(path)
    stage("prepare")
    runnable = read.into_model().into_runnable()
    stage("run")
    return [_as_array(each) for each in runnable.run(list(inputs.values()))]


def _as_array(value: Any) -> Any:
    try:
        return value.to_numpy()
    except BaseException as error:
        # Sizes have a type of their own, which does not become an array; an exception of Rust is of no usual class.
        try:
            return value.convert_to(tract.DatumType.I64).to_numpy()
        except BaseException:
            raise BufferError(f"the result has a type that tract does not give back ({error})") from error
