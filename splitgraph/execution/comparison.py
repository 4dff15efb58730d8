"""Comparing what two models declare and what they give.

Everything but floating-point numbers must be the same. Those may differ by `atol + rtol * |before|`; NaN equals NaN,
and an infinity equals itself. The defaults suit float32 and float64; a narrower type is never held to more than it can
express: its tolerances are at least

    float16, bfloat16             rtol 2 eps, atol eps
    float8 (e4m3 and e5m2 kinds)  rtol eps, atol the smallest positive number
    float4, float8e8m0            equal

where eps is the distance from 1 to the next larger number of the type. A complex number is compared by its two parts.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx

from splitgraph.execution.movement import Movements
from splitgraph.execution.values import Value, is_text
from splitgraph.execution.verification import Difference
from splitgraph.value_type import DTYPE_NAMES

Array = npt.NDArray[Any]

# Of narrow types: eps, and the tolerance for numbers near 0 (eps for halves, the smallest positive number for bytes).
_NARROW_FLOATS: Mapping[str, tuple[float, float]] = {
    "float16": (2.0**-10, 2.0**-10),
    "bfloat16": (2.0**-7, 2.0**-7),
    "float8_e4m3fn": (2.0**-3, 2.0**-9),
    "float8_e4m3fnuz": (2.0**-3, 2.0**-10),
    "float8_e5m2": (2.0**-2, 2.0**-16),
    "float8_e5m2fnuz": (2.0**-2, 2.0**-17),
}
HALF_TYPES = ("float16", "bfloat16")
_EXACT_FLOATS = ("float4_e2m1fn", "float8_e8m0fnu")


@dataclass(slots=True)
class Comparison:
    """The tolerances, and the largest differences of floating-point numbers met so far (None before the first
    comparison).

    max_rel_diff is relative to the value of the first model and leaves out where that is 0. movements: how far rounding
    moves the first model's outputs, by which more may be allowed than the tolerances do.
    """

    rtol: float
    atol: float
    movements: Movements | None = None
    max_abs_diff: float | None = None
    max_rel_diff: float | None = None

    def compare_outputs(
        self, names: Sequence[str], before: Sequence[Value], after: Sequence[Value], case: int
    ) -> Difference | None:
        """The first difference between the outputs of two models on one case, None without one.

        Both lists are in the order of the names.
        """
        self.max_abs_diff = self.max_abs_diff or 0.0
        self.max_rel_diff = self.max_rel_diff or 0.0
        if len(before) != len(after):
            return Difference("", case, f"before gives {len(before)} outputs, after {len(after)}")
        for position, (name, left, right) in enumerate(zip(names, before, after, strict=True)):
            reason = self._compare(left, right, (case, position))
            if reason:
                return Difference(name, case, reason)
        return None

    def _compare(self, before: Value, after: Value, place: tuple[int, int] | None = None) -> str:
        """Why two values differ, "" when they do not; place: the case and the position, of a whole output."""
        kinds = _kind_of(before), _kind_of(after)
        if kinds[0] != kinds[1]:
            return f"before gives {kinds[0]}, after {kinds[1]}"
        if before is None:
            return ""
        if isinstance(before, dict):
            return self._compare_maps(before, after)
        if isinstance(before, list):
            return self._compare_sequences(before, after)
        return self._compare_arrays(before, after, place)

    def _compare_maps(self, before: Mapping[Any, Value], after: Mapping[Any, Value]) -> str:
        if before.keys() != after.keys():
            return f"before gives the keys {sorted(before)}, after {sorted(after)}"
        reasons = ((key, self._compare(value, after[key])) for key, value in before.items())
        return next((f"at key {key!r}: {reason}" for key, reason in reasons if reason), "")

    def _compare_sequences(self, before: Sequence[Value], after: Sequence[Value]) -> str:
        if len(before) != len(after):
            return f"before gives a sequence of {len(before)}, after of {len(after)}"
        reasons = (self._compare(left, right) for left, right in zip(before, after, strict=True))
        return next((f"element {index}: {reason}" for index, reason in enumerate(reasons) if reason), "")

    def _compare_arrays(self, before: Array, after: Array, place: tuple[int, int] | None) -> str:
        if before.dtype != after.dtype:
            return f"before gives elements of type {_type_name(before)}, after {_type_name(after)}"
        if before.shape != after.shape:
            return f"before gives the shape {list(before.shape)}, after {list(after.shape)}"
        if before.size == 0:
            return ""
        return _first_wrong(before, after, self.wrong(before, after, place))

    def wrong(self, before: Array, after: Array, place: tuple[int, int] | None = None) -> npt.NDArray[np.bool_]:
        """Where two arrays of one type and shape differ by more than is allowed."""
        if before.dtype.kind == "c":
            real = self.wrong(before.real, after.real)
            return np.asarray(real | self.wrong(before.imag, after.imag))
        if not _is_float(before.dtype):
            return _differ(before, after)
        rtol, atol = self._tolerances(before.dtype)
        left, right = before.astype(np.float64), after.astype(np.float64)
        same = (left == right) | (np.isnan(left) & np.isnan(right))
        with np.errstate(invalid="ignore", over="ignore"):
            finite = np.isfinite(left) & np.isfinite(right)
            # Nothing is further from a number than what is none.
            gap = np.where(same, 0.0, np.where(finite, np.abs(right - left), np.inf))
            self._note(gap, np.where(finite, np.abs(left), 1.0))
            allowed = atol + rtol * np.abs(left)
            near = finite & (gap <= allowed)
            if self.movements is not None and place is not None and not (same | near).all():
                near |= self.movements.excuse(*place, gap, allowed) & finite
        return np.asarray(~(same | near))

    def _note(self, gap: Array, size: Array) -> None:
        self.max_abs_diff = max(self.max_abs_diff or 0.0, float(gap.max()))
        nonzero = size > 0
        if nonzero.any():
            self.max_rel_diff = max(self.max_rel_diff or 0.0, float((gap[nonzero] / size[nonzero]).max()))

    def _tolerances(self, dtype: np.dtype[Any]) -> tuple[float, float]:
        if dtype.name in _EXACT_FLOATS:
            return 0.0, 0.0
        if dtype.name not in _NARROW_FLOATS:
            return self.rtol, self.atol
        rtol, atol = narrow_tolerances(dtype.name)
        return max(self.rtol, rtol), max(self.atol, atol)


def is_finite(array: Array) -> npt.NDArray[np.bool_]:
    """Where an array of any type holds something that is no NaN and no infinity."""
    if array.dtype.kind in "fc":
        return np.asarray(np.isfinite(array))
    if _is_float(array.dtype):
        return np.asarray(np.isfinite(array.astype(np.float32)))
    return np.ones(array.shape, dtype=np.bool_)


def narrow_tolerances(name: str) -> tuple[float, float]:
    """The least tolerances (rtol, atol) for a narrow floating-point type, by numpy's or ml_dtypes' name."""
    eps, least = _NARROW_FLOATS[name]
    return 2 * eps if name in HALF_TYPES else eps, least


def compare_interfaces(before: onnx.ModelProto, after: onnx.ModelProto) -> Difference | None:
    """The first difference between what two models take and give, as declared.

    Outputs must have the same names in the same order; inputs the same names. Kinds, element types and ranks must agree
    where both models declare them. The second model may have inputs more, if they have a default.
    """
    names = [value.name for value in before.graph.output], [value.name for value in after.graph.output]
    if names[0] != names[1]:
        return _difference_of_names(*names)
    defaults = default_names(after)
    inputs, inputs_after = caller_inputs(before), {value.name: value for value in after.graph.input}
    for name in inputs:
        if name not in inputs_after:
            return Difference(name, None, f"the input {name!r} is missing after")
    for name in inputs_after:
        if name not in inputs and name not in defaults:
            return Difference(name, None, f"there is a new input {name!r} after")
    optional = default_names(before)
    for name in inputs:
        if name in optional and name not in defaults:
            return Difference(name, None, f"the input {name!r} has lost its default")
    pairs = [("input", value, inputs_after[name]) for name, value in inputs.items()]
    pairs += [("output", *pair) for pair in zip(before.graph.output, after.graph.output, strict=True)]
    for role, left, right in pairs:
        reason = _difference_of_types(left.type, right.type)
        if reason:
            return Difference(left.name, None, f"the {role} {left.name!r} {reason}")
    return None


def default_names(model: onnx.ModelProto) -> set[str]:
    """Names of the initializers, of which those that are inputs may be left to their value."""
    names = {tensor.name for tensor in model.graph.initializer}
    return names.union(tensor.values.name for tensor in model.graph.sparse_initializer)


def caller_inputs(model: onnx.ModelProto) -> dict[str, onnx.ValueInfoProto]:
    """The inputs that a caller may give; before IR 4 every initializer was listed as input, and is none of them."""
    constants = {tensor.name for tensor in model.graph.initializer} if model.ir_version < 4 else set()
    return {value.name: value for value in model.graph.input if value.name not in constants}


def misfits(values: Iterable[onnx.ValueInfoProto], given: Mapping[str, Value]) -> dict[str, str]:
    """Tensors whose rank or fixed dimensions are not as declared: name and why."""
    pairs = _declared_tensors(values, given)
    return {name: reason for name, declared, array in pairs if (reason := _misfit_of_shape(declared, array))}


def mistyped(values: Iterable[onnx.ValueInfoProto], given: Mapping[str, Value]) -> dict[str, str]:
    """Tensors whose element type is not as declared: name and why."""
    pairs = _declared_tensors(values, given)
    return {
        name: f"declared of type {_named(declared.elem_type)} but is {_type_name(array)}"
        for name, declared, array in pairs
        if declared.elem_type and _named(declared.elem_type) != _type_name(array)
    }


def _declared_tensors(
    values: Iterable[onnx.ValueInfoProto], given: Mapping[str, Value]
) -> Iterator[tuple[str, onnx.TypeProto.Tensor, Array]]:
    for value in values:
        array = given.get(value.name)
        if isinstance(array, np.ndarray) and value.type.HasField("tensor_type"):
            yield value.name, value.type.tensor_type, array


def _misfit_of_shape(declared: onnx.TypeProto.Tensor, array: Array) -> str:
    if not declared.HasField("shape"):
        return ""
    dims = declared.shape.dim
    fits = len(dims) == array.ndim and all(
        not dim.HasField("dim_value") or dim.dim_value == size for dim, size in zip(dims, array.shape, strict=True)
    )
    return "" if fits else f"declared of shape {_shape_text(declared.shape)} but is {list(array.shape)}"


def _shape_text(shape: onnx.TensorShapeProto) -> str:
    return (
        f"[{', '.join(str(dim.dim_value) if dim.HasField('dim_value') else dim.dim_param or '?' for dim in shape.dim)}]"
    )


def _difference_of_names(before: Sequence[str], after: Sequence[str]) -> Difference:
    if sorted(before) == sorted(after):
        name = next(left for left, right in zip(before, after, strict=True) if left != right)
        return Difference(
            name, None, f"the outputs come in another order: {', '.join(before)} before, {', '.join(after)} after"
        )
    missing = [name for name in before if name not in after]
    if missing:
        return Difference(missing[0], None, f"the output {missing[0]!r} is missing after")
    new = [name for name in after if name not in before]
    if new:
        return Difference(new[0], None, f"there is a new output {new[0]!r} after")
    return Difference(after[0] if after else "", None, "an output is listed more often in one of the models")


def _difference_of_types(before: onnx.TypeProto, after: onnx.TypeProto) -> str:
    kind = before.WhichOneof("value"), after.WhichOneof("value")
    if None in kind:
        return ""
    if kind[0] != kind[1]:
        return f"is declared a {_plain(kind[0])} before and a {_plain(kind[1])} after"
    left, right = getattr(before, str(kind[0])), getattr(after, str(kind[0]))
    if kind[0] in ("sequence_type", "optional_type"):
        return _difference_of_types(left.elem_type, right.elem_type)
    if kind[0] == "map_type":
        if left.key_type != right.key_type:
            return f"is declared with keys of type {_named(left.key_type)} before and {_named(right.key_type)} after"
        return _difference_of_types(left.value_type, right.value_type)
    if left.elem_type and right.elem_type and left.elem_type != right.elem_type:
        return f"is declared {_named(left.elem_type)} before and {_named(right.elem_type)} after"
    if left.HasField("shape") and right.HasField("shape") and len(left.shape.dim) != len(right.shape.dim):
        return f"is declared of rank {len(left.shape.dim)} before and {len(right.shape.dim)} after"
    return ""


def _plain(kind: str | None) -> str:
    return str(kind).removesuffix("_type").replace("_", " ")


def _named(elem_type: int) -> str:
    return DTYPE_NAMES.get(elem_type, f"type {elem_type}")


def _kind_of(value: Value) -> str:
    if value is None:
        return "an empty optional"
    if isinstance(value, dict):
        return "a map"
    return "a sequence" if isinstance(value, list) else "a tensor"


def _type_name(array: Array) -> str:
    """The ONNX name of an array's element type."""
    if is_text(array):
        return "string"
    number = int(onnx.helper.np_dtype_to_tensor_dtype(array.dtype))
    return DTYPE_NAMES.get(number, str(array.dtype))


def _is_float(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or "float" in dtype.name


def _differ(before: Array, after: Array) -> npt.NDArray[np.bool_]:
    return np.asarray(before != after, dtype=np.bool_)


def _first_wrong(before: Array, after: Array, wrong: npt.NDArray[np.bool_]) -> str:
    if not wrong.any():
        return ""
    index = tuple(int(position) for position in np.argwhere(wrong)[0])
    where = f"at {list(index)} " if index else ""
    count = int(wrong.sum())
    more = f" ({count} of {wrong.size} elements differ)" if wrong.size > 1 else ""
    return f"{where}before gives {_text(before[index])}, after {_text(after[index])}{more}"


def _text(value: Any) -> str:
    if isinstance(value, (str, bytes)):
        return repr(value)
    return str(value)
