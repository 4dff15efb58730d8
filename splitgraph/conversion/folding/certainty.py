"""Says which results of onnx's evaluator are the same in every runtime, bit for bit.

Runtimes round sums and functions such as Sin in their own ways, wrap or saturate integers that overflow, and order NaN
and -0.0 as they like. The specification leaves that open, so that such results are not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from splitgraph.inference.computed_values import is_computable, is_exact
from splitgraph.model.deferred import np
from splitgraph.model.schemas import kinds

if TYPE_CHECKING:
    from numpy.typing import NDArray

Array: TypeAlias = "NDArray[Any]"

# Element types whose arithmetic is the same everywhere. Runtimes compute float16 and bfloat16 in float32, and round
# where they like.
FOLLOWED_DTYPES = frozenset(
    (
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("float32", "float64"),
    )
)
# Weights stay quantized: the nodes that the constants replaced would be what makes the model small.
_LEFT_ALONE = frozenset({"DequantizeLinear", "QuantizeLinear", "ScatterElements"})
# Sums and products of integers are the same in any order; an element is at most what this gives for magnitudes.
_TOTALS: Mapping[str, Callable[[Array], float]] = {
    "CumSum": lambda magnitudes: float(magnitudes.sum()),
    "ReduceSum": lambda magnitudes: float(magnitudes.sum()),
    "ReduceProd": lambda magnitudes: float(np.prod(np.maximum(magnitudes, 1))),
}
# What inference follows itself, and onnx's evaluator computes exactly as well, by the first version that it has.
_MORE_EXACT = {"ConstantOfShape": 9, "CastLike": 15, "Split": 2}
_BINARY: Mapping[str, Callable[[Array, Array], Array]] = {
    "Add": lambda a, b: a + b,
    "Mul": lambda a, b: a * b,
    "Sub": lambda a, b: a - b,
}
# A float64 that is no nearer to the end of a type is on the right side of it.
_MARGIN = 1 - 2.0**-40


def may_be_certain(op_type: str, since_version: int) -> bool:
    """Return True for an operator whose results are the same everywhere, for elements of which this is so."""
    if op_type in _LEFT_ALONE:
        return False
    is_more = since_version >= _MORE_EXACT.get(op_type, since_version + 1)
    return is_more or op_type in _TOTALS or is_exact(op_type, since_version)


def is_allowed(op_type: str, since_version: int) -> bool:
    """Return True if what the evaluator gives is one of the results that the specification allows: it leaves open how
    numbers are rounded, and what becomes of integers that overflow.
    """
    return op_type not in _LEFT_ALONE and is_computable(op_type, since_version)


def is_certain(op_type: str, given: Sequence[Array | None], made: Sequence[Array | None]) -> bool:
    """Return True if every runtime makes these outputs from these inputs. The operator `may_be_certain`."""
    arrays = [array for array in given if array is not None]
    results = [array for array in made if array is not None]
    # NaN has no place in an order, and the specification does not say which zero is the larger one.
    if op_type in kinds.ORDERED and not all(map(_is_ordered, arrays)):
        return False
    if op_type in ("Cast", "CastLike"):
        return _keeps_numbers(arrays[0], results[0])
    if op_type == "Range":
        return _is_counted(arrays, results[0])
    if op_type == "ScatterND":
        return _has_own_places(arrays[1])
    if op_type == "BitShift":
        return bool((arrays[1] < arrays[0].dtype.itemsize * 8).all())
    if op_type == "Where":
        # onnxruntime adds the chosen elements to zeros, so that -0.0 becomes 0.0.
        return not any(map(has_negative_zero, arrays))
    if op_type == "OneHot":
        return _has_bits_of(arrays[2], results[0])
    if all(array.dtype.kind in "iu" for array in results) and results:
        return _fits(op_type, arrays, results[0])
    return op_type not in _TOTALS


def _is_ordered(array: Array) -> bool:
    if array.dtype.kind != "f":
        return True
    return not np.isnan(array).any() and not has_negative_zero(array)


def has_negative_zero(array: Array) -> bool:
    """Return True if an element is -0.0."""
    return array.dtype.kind == "f" and bool(((array == 0) & np.signbit(array)).any())


def _has_bits_of(values: Array, made: Array) -> bool:
    """Return True if each element is one of the values, bit by bit: onnx's evaluator computes them, and rounds."""
    bits = np.dtype(f"u{made.dtype.itemsize}")
    return bool(np.isin(made.reshape(-1).view(bits), values.reshape(-1).view(bits)).all())


def _keeps_numbers(array: Array, made: Array) -> bool:
    """Return True if the type that elements are cast to holds them, rounded as usual."""
    if made.dtype == bool or array.dtype == bool:
        return array.dtype.kind != "f" or not np.isnan(array).any()
    if made.dtype.kind == "f":
        return bool((np.isfinite(made) | ~np.isfinite(array)).all()) if array.dtype.kind == "f" else True
    if array.dtype.kind == "f":
        with np.errstate(invalid="ignore"):
            return bool((np.isfinite(array) & (made.astype(np.float64) == np.trunc(array.astype(np.float64)))).all())
    ends = np.iinfo(made.dtype)
    return all(
        int(ends.min) <= number <= int(ends.max) for number in (int(array.min(initial=0)), int(array.max(initial=0)))
    )


def _is_counted(bounds: Sequence[Array], made: Array) -> bool:
    """Return True if a Range rounds nothing: some runtimes add the step again and again, others multiply it."""
    if made.dtype.kind != "f":
        return True
    start, step = float(bounds[0]), float(bounds[2])
    # Numbers that are all multiples of one part are exact, and so are their sums, up to 2**24 parts.
    for part in (1.0, 2.0**-10):
        most = max(abs(start), abs(start + step * made.size))
        if (start / part).is_integer() and (step / part).is_integer() and most / part < 2.0**24:
            return True
    return False


def _has_own_places(indices: Array) -> bool:
    """Return True if no two updates of a ScatterND have the same place."""
    rows = indices.reshape(-1, indices.shape[-1]) if indices.ndim and indices.shape[-1] else indices.reshape(-1, 1)
    return bool((rows >= 0).all()) and len(np.unique(rows, axis=0)) == len(rows)


def _fits(op_type: str, given: Sequence[Array], made: Array) -> bool:
    """Return True if no integer of the result overflows, and none is divided by 0 or with a sign."""
    ends = np.iinfo(made.dtype)
    if op_type in ("Div", "Mod"):
        return bool((given[1] > 0).all() and (given[0] >= 0).all())
    if op_type in _TOTALS:
        return _TOTALS[op_type](np.abs(given[0].astype(np.float64))) < float(ends.max) * _MARGIN
    if op_type in ("Abs", "Neg"):
        return bool((given[0] > ends.min).all()) and (made.dtype.kind == "i" or op_type == "Abs")
    if op_type in _BINARY:
        wide = _BINARY[op_type](given[0].astype(np.float64), given[1].astype(np.float64))
        return bool((wide <= float(ends.max) * _MARGIN).all() and (wide >= float(ends.min) * _MARGIN).all())
    return True
