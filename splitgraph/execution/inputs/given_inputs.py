"""Check the arrays and sizes that the caller gave for the inputs of a model."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import numpy as np

from splitgraph.dim import DimLike, marks_unknown, symbols_of
from splitgraph.execution.inputs.model_inputs import ModelInput, numpy_name, symbols_in_order
from splitgraph.execution.values import Value, is_text


def check_arrays(inputs: Sequence[ModelInput], given: Mapping[str, Value]) -> None:
    """Raise ValueError for an array whose name, type or rank does not fit the model."""
    known = {item.name: item for item in inputs}
    for name, value in given.items():
        if name not in known:
            raise ValueError(f"the model has no input {name!r}; it has: {', '.join(known) or 'none'}")
        declared = known[name].type
        if declared.kind != "tensor":
            continue
        if not isinstance(value, np.ndarray):
            raise ValueError(f"the input {name!r} is a {type(value).__name__}; the model takes an array")
        found = "string" if is_text(value) else value.dtype.name
        if declared.dtype is not None and found != numpy_name(declared.dtype):
            raise ValueError(f"the input {name!r} is of type {found}; the model takes {declared.dtype}")
        if declared.shape is not None and len(declared.shape) != value.ndim:
            raise ValueError(f"the input {name!r} has the shape {list(value.shape)}; the model takes {declared}")


def fixed_symbols(
    inputs: Sequence[ModelInput], symbols: Collection[str], bind: Mapping[str, int], given: Mapping[str, Value]
) -> dict[str, int]:
    """Return the sizes of the symbols that the caller fixed, by a binding or by an array.

    symbols: all symbols of the model. Raises ValueError for sizes that do not fit the model or each other.
    """
    names = {*symbols_in_order(inputs), *symbols}
    for name, value in bind.items():
        if name not in names:
            mark = f"{name!r} marks unknown dimensions and names none" if marks_unknown(name) else ""
            reason = mark or f"the model has no symbol {name!r}"
            raise ValueError(f"{reason}; it has: {', '.join(sorted(names)) or 'none'}")
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
            raise ValueError(f"the symbol {name!r} cannot be {value!r}; it is an integer of at least 0")
    fixed = {name: int(value) for name, value in bind.items()}
    for item in inputs:
        array = given.get(item.name)
        if isinstance(array, np.ndarray):
            for position, (dim, size) in enumerate(zip(item.type.shape or (), array.shape, strict=False)):
                _fix(fixed, dim, size, f"dimension {position} of the input {item.name!r}")
    return fixed


def _fix(fixed: dict[str, int], dim: DimLike | None, size: int, where: str) -> None:
    if isinstance(dim, int):
        if dim != size:
            raise ValueError(f"{where} is {size}; the model takes {dim}")
    elif dim is not None and symbols_of(dim) == {str(dim)} and fixed.setdefault(str(dim), size) != size:
        raise ValueError(f"{where} is {size}, but {dim} is {fixed[str(dim)]} elsewhere")
