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
    return [_as_array(each) for each in found]


def _as_array(value: Any) -> Any:
    try:
        return value.to_numpy()
    except BaseException:
        pass
    try:
        # Sizes have a type of their own, which does not become an array.
        return value.convert_to(tract.DatumType.I64).to_numpy()
    except BaseException as error:
        raise RuntimeError(f"harness: the result has a type that tract does not give back ({error})") from error
