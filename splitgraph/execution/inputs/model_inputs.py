"""Describe the inputs of a model: their types, with a symbol for each unknown dimension, and where they are used."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx

from splitgraph.dim import symbol, symbols_of
from splitgraph.execution.inputs.roles import Use, find_uses, required_count
from splitgraph.execution.models.interfaces import caller_inputs, default_names
from splitgraph.execution.values import dtype_by_name
from splitgraph.inference.analysis import Analysis
from splitgraph.value_type import DTYPE_NUMBERS, UNKNOWN, ValueType

# The rank of an input whose rank is unknown.
_GUESSED_RANK = 2


class InputError(Exception):
    """Raised if no inputs can be made for a model; the message says which one fails and why."""


@dataclass(frozen=True, slots=True)
class ModelInput:
    """A graph input. type: with a symbol for each unknown dimension, and with a guessed rank if that is unknown.
    declared: what is known of the type.
    """

    name: str
    type: ValueType
    uses: tuple[Use, ...]
    has_default: bool
    declared: ValueType = UNKNOWN


def describe_inputs(analysis: Analysis) -> list[ModelInput]:
    """Describe the inputs that a caller may give."""
    model = analysis.model
    uses = find_uses(model)
    defaults = default_names(model)
    described = []
    for name in caller_inputs(model):
        found = tuple(uses.get(name, ()))
        declared = analysis.types.get(name, UNKNOWN)
        named = _name_dimensions(declared, name, found)
        described.append(ModelInput(name, named, found, name in defaults, declared))
    return described


def _name_dimensions(value: ValueType, name: str, uses: Sequence[Use]) -> ValueType:
    """Return the type with a rank, and with a new symbol for each unknown dimension."""
    if value.element is not None:
        element = _name_dimensions(value.element, name, uses)
        return ValueType(value.kind, value.dtype, value.shape, element)
    if value.shape is None:
        count = next((n for n in map(required_count, uses) if n is not None), None)
        is_chunk = any(use.node.op_type == "SplitToSequence" and use.position == 1 for use in uses)
        rank = 1 if count is not None else 0 if is_chunk else _GUESSED_RANK
        return value.with_shape([symbol(f"{name}:{axis}") for axis in range(rank)])
    return value.with_shape([symbol(f"{name}:{axis}") if dim is None else dim for axis, dim in enumerate(value.shape)])


def symbols_in_order(inputs: Iterable[ModelInput]) -> list[str]:
    """Return the symbols in the dimensions of the inputs, in the order of the inputs."""
    names: dict[str, None] = {}
    for item in inputs:
        shape = item.type.innermost.shape
        for dim in shape or ():
            names.update(dict.fromkeys(sorted(symbols_of(dim)) if dim is not None else ()))
    return list(names)


def is_float(value: ValueType) -> bool:
    """Return True for a floating-point type."""
    return (value.dtype or "").startswith(("float", "bfloat"))


def numpy_name(dtype: str) -> str:
    """Return the name in NumPy or ml_dtypes of an ONNX element type."""
    return dtype if dtype == "string" else numpy_dtype(dtype).name


def numpy_dtype(name: str) -> np.dtype[Any]:
    """Return the element type of NumPy or ml_dtypes with an ONNX name."""
    if name == "string":
        return dtype_by_name("object")
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(DTYPE_NUMBERS[name]))
