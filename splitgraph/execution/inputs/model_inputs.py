"""The inputs of a model as verification fills them: of which type each is, and where it is used."""

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

# For the dimensions of an input of undeclared rank.
_GUESSED_RANK = 2


class InputError(Exception):
    """No inputs can be made for the model; the message says which one fails and why."""


@dataclass(frozen=True, slots=True)
class ModelInput:
    """A graph input: its type with a symbol for each unknown dimension, where it is used, whether it has a default."""

    name: str
    type: ValueType
    uses: tuple[Use, ...]
    has_default: bool


def describe_inputs(analysis: Analysis) -> list[ModelInput]:
    model = analysis.model
    uses = find_uses(model)
    defaults = default_names(model)
    described = []
    for name in caller_inputs(model):
        found = tuple(uses.get(name, ()))
        named = _name_dimensions(analysis.types.get(name, UNKNOWN), name, found)
        described.append(ModelInput(name, named, found, name in defaults))
    return described


def _name_dimensions(value: ValueType, name: str, uses: Sequence[Use]) -> ValueType:
    """The type with a symbol of its own for each dimension that is not known, and with a rank."""
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
    names: dict[str, None] = {}
    for item in inputs:
        shape = item.type.innermost.shape
        for dim in shape or ():
            names.update(dict.fromkeys(sorted(symbols_of(dim)) if dim is not None else ()))
    return list(names)


def is_float(value: ValueType) -> bool:
    return (value.dtype or "").startswith(("float", "bfloat"))


def numpy_name(dtype: str) -> str:
    return dtype if dtype == "string" else numpy_dtype(dtype).name


def numpy_dtype(name: str) -> np.dtype[Any]:
    """numpy's or ml_dtypes' element type for an ONNX name."""
    if name == "string":
        return dtype_by_name("object")
    return np.dtype(onnx.helper.tensor_dtype_to_np_dtype(DTYPE_NUMBERS[name]))
