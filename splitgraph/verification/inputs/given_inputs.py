"""Check the arrays and sizes that the caller gave for the inputs of a model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from splitgraph.dim import DimLike, marks_unknown, symbols_of
from splitgraph.findings.diagnostics import meant
from splitgraph.model.value_type import DTYPE_NUMBERS, UNKNOWN, ValueType
from splitgraph.verification.inputs.model_inputs import ModelInput, numpy_dtype, numpy_name, symbols_in_order
from splitgraph.verification.values import Array, Value, as_text, is_text

_MOST_NAMED = 20
# Why a case cannot have a value for an input, to stand after the name of the input.
IN_ONE_MODEL = "is in only one of the models, so both are run with its default; leave its value out"
# What NumPy says in `isbuiltin` of a type that another library added: of those of ml_dtypes.
_FROM_A_LIBRARY = 2
# Keys and values of maps: the kinds of NumPy's types that are allowed, and those that fit each kind of a model's type.
_IN_MAPS = "biufU"
_FITTING = {"b": "b", "i": "iu", "u": "iu", "f": "iuf"}


@dataclass(frozen=True, slots=True)
class GivenCase:
    """The arrays that the caller gave for one case. name: of the case in messages. inputs: by name. outputs: the
    expected outputs of the first model, by position.
    """

    name: str = ""
    inputs: Mapping[str, Value] = field(default_factory=dict)
    outputs: Mapping[int, Value] = field(default_factory=dict)


def as_cases(given: Any) -> list[GivenCase]:
    """Return the cases of a mapping of arrays, or of a sequence of mappings: at least one, which may be empty.

    Raises ValueError for anything else.
    """
    if given is None or isinstance(given, Mapping):
        return [GivenCase("", given or {})]
    if not isinstance(given, Sequence) or isinstance(given, (str, bytes)):
        raise ValueError(f"inputs is {given!r}; it must be a mapping of arrays by name, or a list of such mappings")
    cases = []
    for index, case in enumerate(given):
        if isinstance(case, GivenCase):
            cases.append(case)
        elif isinstance(case, Mapping):
            cases.append(GivenCase(f"case {index}", case))
        else:
            raise ValueError(f"inputs[{index}] is {case!r}; it must be a mapping of arrays by name")
    if not cases:
        raise ValueError("inputs is an empty list; give a mapping of arrays for at least one case")
    return cases


def fitted_arrays(inputs: Sequence[ModelInput], case: GivenCase, left_out: Mapping[str, str]) -> dict[str, Value]:
    """Return the values that a caller gave, in the form that engines take: strings as objects, the byte order of this
    machine, and narrow types that NumPy keeps as plain bytes. left_out: why other inputs of the model have no value.

    Raises ValueError for a value whose name, kind, type or rank does not fit the model; the message lists its inputs.
    """
    known = {item.name: item for item in inputs}
    where = f"{case.name}: " if case.name else ""
    fitted = {}
    for name, value in case.inputs.items():
        if name in left_out:
            raise ValueError(f"{where}the input {name!r} {left_out[name]}")
        if name not in known:
            raise ValueError(f"{where}the model has no input {name!r}{meant(name, known)}; {_described(inputs)}")
        try:
            fitted[name] = _fitted(value, known[name].declared)
        except ValueError as error:
            raise ValueError(f"{where}the input {name!r} {error}; {_described(inputs)}") from None
    return fitted


def _fitted(value: Value, declared: ValueType) -> Value:
    """Raises ValueError with what is wrong, to stand after the name of the input."""
    if declared.kind in ("optional", "sequence"):
        element = declared.element or ValueType("tensor", declared.dtype, declared.shape)
        if declared.kind == "optional":
            return None if value is None else _fitted(value, element)
        if not isinstance(value, (list, tuple)):
            raise ValueError(f"is {_kind_of(value)}; the model takes a list of arrays")
        return [_fitted(item, element) for item in value]
    if declared.kind == "map":
        return _fitted_map(value, declared)
    if declared.kind != "tensor":
        return _of_unknown_type(value)
    if not isinstance(value, np.ndarray):
        raise ValueError(f"is {_kind_of(value)}; the model takes an array")
    array = _plain(value, declared.dtype)
    dtype = "string" if is_text(array) else array.dtype.name
    if declared.dtype is not None and dtype != numpy_name(declared.dtype):
        raise ValueError(f"is of type {dtype}; the model takes {declared.dtype}")
    if declared.shape is not None and len(declared.shape) != array.ndim:
        raise ValueError(f"has the shape {list(array.shape)}; the model takes {declared}")
    return array


def _fitted_map(value: Value, declared: ValueType) -> Value:
    if not isinstance(value, Mapping):
        raise ValueError(f"is {_kind_of(value)}; the model takes a mapping")
    element = UNKNOWN if declared.element is None else declared.element
    if element.kind not in ("tensor", "unknown"):
        raise ValueError(f"is a map of {element.kind} values, which no engine takes")
    for key, item in value.items():
        _check_in_map(key, declared.dtype, "key")
        _check_in_map(item, element.dtype, "value")
    return dict(value)


def _check_in_map(item: Any, dtype: str | None, role: str) -> None:
    """Raise ValueError for a key or a value of a map that is no number, or no text, of a type."""
    number = np.asarray(item)
    allowed = _IN_MAPS if dtype is None else "U" if dtype == "string" else _FITTING.get(numpy_dtype(dtype).kind, "iuf")
    is_right = number.ndim == 0 and number.dtype.kind in allowed
    if is_right and dtype is not None and dtype.startswith(("int", "uint")):
        limits = np.iinfo(numpy_dtype(dtype))
        is_right = limits.min <= number.item() <= limits.max
    if not is_right:
        raise ValueError(f"has the {role} {item!r}; the model takes {dtype or 'a number or a text'} there")


def _of_unknown_type(value: Value) -> Value:
    """Return a value whose kind the model does not say."""
    if isinstance(value, (np.ndarray, np.generic)):
        return _plain(np.asarray(value), None)
    if isinstance(value, (list, tuple)):
        return [_of_unknown_type(item) for item in value]
    if isinstance(value, Mapping):
        return _fitted_map(value, ValueType("map"))
    if value is None:
        return None
    raise ValueError(f"is {_kind_of(value)}; it must be an array, a list of arrays, a mapping or None")


def _kind_of(value: Value) -> str:
    return "None" if value is None else f"a {type(value).__name__}"


def _plain(array: Array, dtype: str | None) -> Array:
    if is_text(array):
        strange = [] if array.dtype.kind != "O" else [item for item in array.flat if not isinstance(item, (str, bytes))]
        if strange:
            raise ValueError(f"is an array of objects, and one of these is {_kind_of(strange[0])}; give only texts")
        return as_text(array)
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    # NumPy writes the types of ml_dtypes, such as bfloat16, to a file as plain bytes.
    is_nameless = array.dtype.type is np.void and array.dtype.names is None
    if is_nameless and dtype in DTYPE_NUMBERS and dtype != "string":
        wanted = numpy_dtype(dtype)
        if wanted.isbuiltin == _FROM_A_LIBRARY and wanted.itemsize == array.dtype.itemsize:
            return array.view(wanted)
    if dtype is None and array.dtype.kind not in "biufc" and array.dtype.isbuiltin != _FROM_A_LIBRARY:
        raise ValueError(f"is of type {array.dtype.name}, which no model takes")
    return array


def _described(inputs: Sequence[ModelInput]) -> str:
    """Return which inputs the model has, with their types."""
    shown = [f"{item.name}: {item.declared}" for item in inputs[:_MOST_NAMED]]
    more = f" and {len(inputs) - _MOST_NAMED} more" if len(inputs) > _MOST_NAMED else ""
    return f"the inputs of the model are {', '.join(shown)}{more}" if shown else "the model has no inputs"


def fixed_symbols(
    inputs: Sequence[ModelInput], symbols: Collection[str], bind: Mapping[str, int], case: GivenCase
) -> dict[str, int]:
    """Return the sizes of the symbols that the caller fixed, by a binding or by an array.

    symbols: all symbols of the model. Raises ValueError for sizes that do not fit the model or each other.
    """
    names = {*symbols_in_order(inputs), *symbols}
    for name, value in bind.items():
        if name not in names:
            mark = f"{name!r} marks unknown dimensions and names none" if marks_unknown(name) else ""
            reason = mark or f"no dimension of the first model is named {name!r}{meant(name, names)}"
            raise ValueError(f"{reason}; it has: {', '.join(sorted(names)) or 'none'}")
        if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
            raise ValueError(f"the symbol {name!r} cannot be {value!r}; it is an integer of at least 0")
    fixed = {name: int(value) for name, value in bind.items()}
    for item in inputs:
        array = case.inputs.get(item.name)
        if isinstance(array, np.ndarray):
            for position, (dim, size) in enumerate(zip(item.type.shape or (), array.shape, strict=False)):
                where = f"dimension {position} of the input {item.name!r}"
                try:
                    _fix(fixed, dim, size, f"{case.name}: {where}" if case.name else where)
                except ValueError as error:
                    raise ValueError(f"{error}; {_described(inputs)}") from None
    return fixed


def _fix(fixed: dict[str, int], dim: DimLike | None, size: int, where: str) -> None:
    if isinstance(dim, int):
        if dim != size:
            raise ValueError(f"{where} is {size}; the model takes {dim}")
    elif dim is not None and symbols_of(dim) == {str(dim)} and fixed.setdefault(str(dim), size) != size:
        raise ValueError(f"{where} is {size}, but {dim} is {fixed[str(dim)]} elsewhere")


def names_of(cases: Iterable[GivenCase]) -> list[str]:
    """Return the names of all inputs that some case gives."""
    return list(dict.fromkeys(name for case in cases for name in case.inputs))
