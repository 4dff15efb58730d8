"""Run versions of operators that onnx's evaluator lacks, or would run with the meaning of a later one.

They are the versions that conversions read and write: binary operators that broadcast by an attribute, inputs that were
attributes, Scatter, DequantizeLinear before its blocks; Clip, LogSoftmax, LpNormalization, Pow and StringNormalizer,
which it computes wrongly; and GatherElements, which fails along more than 63 elements. Each is written from the text of
its version.

Decisions where the specification leaves something open:

- Scatter writes elements in the order of the updates, and counts negative indices from the end, as onnxruntime does.
- Dropout is refused in training mode: what it drops is random.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from splitgraph.verification.reference.kernels import Array, KernelError, filled
from splitgraph.verification.values import UnsupportedError

_Inputs = Sequence[Array | None]
_Attributes = Mapping[str, Any]


def _quotient(dividend: Array, divisor: Array) -> Array:
    if dividend.dtype.kind in "iu":
        # Rounded towards 0: what is left is divisible.
        return np.asarray((dividend - np.fmod(dividend, divisor)) // divisor)
    return np.asarray(np.divide(dividend, divisor))


_BINARY: Mapping[str, Callable[[Array, Array], Any]] = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": _quotient,
    "Pow": np.power,
    "And": np.logical_and,
    "Or": np.logical_or,
    "Xor": np.logical_xor,
    "Equal": np.equal,
    "Greater": np.greater,
    "Less": np.less,
}


def _binary(op_type: str, inputs: _Inputs, given: _Attributes) -> Array:
    one, other = _required(inputs, 2)
    if not given.get("broadcast"):
        if one.shape != other.shape:
            raise KernelError(f"{op_type} of {one.shape} and {other.shape} needs broadcast=1")
    elif other.ndim:
        axis = given.get("axis")
        first = one.ndim - other.ndim if axis is None else axis % one.ndim
        behind = one.ndim - first - other.ndim
        if behind < 0:
            raise KernelError(f"{op_type} has no axis {axis} at which {other.shape} fits into {one.shape}")
        other = other.reshape(*other.shape, *[1] * behind)
    result = np.asarray(_BINARY[op_type](one, other))
    if result.shape != one.shape:
        raise KernelError(f"{op_type} broadcasts its second input only: {other.shape} does not fit into {one.shape}")
    return result if result.dtype == bool else result.astype(one.dtype)


def _pow(_: str, inputs: _Inputs, __: _Attributes) -> Array:
    """Pow since version 7. NumPy takes the root for one exponent of 0.5, which is NaN for -infinity."""
    base, exponent = _required(inputs, 2)
    base, exponent = (np.array(each) for each in np.broadcast_arrays(base, exponent))
    # Roots of negative numbers are NaN here as in runtimes.
    with np.errstate(all="ignore"):
        return np.asarray(np.power(base, exponent)).astype(base.dtype)


def _gather_elements(_: str, inputs: _Inputs, given: _Attributes) -> Array:
    data, indices = _required(inputs, 2)
    axis = given.get("axis", 0) % data.ndim if data.ndim else 0
    if data.ndim != indices.ndim or not data.ndim:
        raise KernelError(f"GatherElements of {data.shape} and {indices.shape} needs one rank, and no scalars")
    longer = any(indices.shape[at] > data.shape[at] for at in range(data.ndim) if at != axis)
    size = data.shape[axis]
    if longer or (indices.size and not -size <= indices.min() <= indices.max() < size):
        raise KernelError(f"the indices of GatherElements are not within {data.shape}")
    places: list[Array] = list(np.indices(indices.shape, sparse=True))
    places[axis] = indices
    return np.asarray(data[tuple(places)])


def _gemm(_: str, inputs: _Inputs, given: _Attributes) -> Array:
    one, other, added = _required(inputs, 3)
    product = (one.T if given.get("transA") else one) @ (other.T if given.get("transB") else other)
    return np.asarray(given.get("alpha", 1.0) * product + given.get("beta", 1.0) * added).astype(one.dtype)


def _prelu(_: str, inputs: _Inputs, __: _Attributes) -> Array:
    """PRelu. Since version 7 the slope broadcasts; before, it is one number for all elements or one for each channel.
    onnx 1.23 multiplies a zero, too, which gives NaN where the slope is not finite.
    """
    data, slope = _required(inputs, 2)
    return np.where(data < 0, data * slope, data).astype(data.dtype)


def _prelu_of_channels(op_type: str, inputs: _Inputs, given: _Attributes) -> Array:
    data, slope = _required(inputs, 2)
    shaped = slope.reshape(-1, *[1] * max(data.ndim - 2, 0)) if slope.size > 1 else slope.reshape(())
    return _prelu(op_type, [data, shaped], given)


def _selu(_: str, inputs: _Inputs, given: _Attributes) -> Array:
    (data,) = _required(inputs, 1)
    alpha, gamma = given.get("alpha", 1.6732), given.get("gamma", 1.0507)
    below = alpha * np.expm1(np.minimum(data, 0))
    return np.asarray(gamma * np.where(data > 0, data, below)).astype(data.dtype)


def _clip(_: str, inputs: _Inputs, given: _Attributes) -> Array:
    (data,) = _required(inputs, 1)
    return np.clip(data, given.get("min"), given.get("max")).astype(data.dtype)


def _clip_by_inputs(_: str, inputs: _Inputs, __: _Attributes) -> Array:
    """Clip from version 11 on. A bound that is left out is the limit of the type, which onnx's evaluator leaves out."""
    data, low, high = (*inputs, None, None)[:3]
    (data,) = _required([data], 1)
    if data.dtype.kind == "f":
        low = np.finfo(data.dtype).min if low is None else low
        high = np.finfo(data.dtype).max if high is None else high
    result = data if low is None else np.maximum(data, low)
    return np.asarray(result if high is None else np.minimum(result, high)).astype(data.dtype)


def _log_softmax(_: str, inputs: _Inputs, given: _Attributes) -> Array:
    """LogSoftmax by differences: onnx's evaluator takes the logarithm of a quotient, which may be 0."""
    (data,) = _required(inputs, 1)
    axis = given.get("axis", -1)
    below = data - data.max(axis=axis, keepdims=True) if data.size else data
    return np.asarray(below - np.log(np.exp(below).sum(axis=axis, keepdims=True))).astype(data.dtype)


def _lp_normalization(_: str, inputs: _Inputs, given: _Attributes) -> Array:
    """LpNormalization, of absolute values also for p = 1: onnx's evaluator sums the numbers as they are."""
    (data,) = _required(inputs, 1)
    axis, p = given.get("axis", -1), given.get("p", 2)
    sizes = np.abs(data).sum(axis, keepdims=True) if p == 1 else np.sqrt((data * data).sum(axis, keepdims=True))
    return np.asarray(np.where(sizes == 0, 0, data / np.where(sizes == 0, 1, sizes))).astype(data.dtype)


def _concat(_: str, inputs: _Inputs, given: _Attributes) -> Array:
    return np.concatenate(_required(inputs, len(inputs)), axis=given.get("axis", 1))


def _dropout(op_type: str, inputs: _Inputs, given: _Attributes) -> Array:
    (data,) = _required(inputs, 1)
    if not given.get("is_test"):
        raise UnsupportedError(f"{op_type} is in training mode, which the reference engine does not support")
    return data


def _reshape(_: str, inputs: _Inputs, given: _Attributes) -> Array:
    (data,) = _required(inputs, 1)
    return data.reshape([data.shape[axis] if dim == 0 else dim for axis, dim in enumerate(given.get("shape", ()))])


def _tile(_: str, inputs: _Inputs, __: _Attributes) -> Array:
    data, tiles, axis = _required(inputs, 3)
    counts = [1] * data.ndim
    counts[int(axis.reshape(()))] = int(tiles.reshape(()))
    return np.tile(data, counts)


def _scatter(_: str, inputs: _Inputs, given: _Attributes) -> Array:
    data, indices, updates = _required(inputs, 3)
    result, axis = data.copy(), given.get("axis", 0)
    places = list(np.indices(indices.shape))
    places[axis] = indices.astype(np.int64)
    result[tuple(places)] = updates
    return np.asarray(result)


def _dequantize(_: str, inputs: _Inputs, given: _Attributes) -> Array:
    data, scale, zero = filled(inputs, 3)
    if data is None or scale is None:
        raise KernelError("DequantizeLinear needs x and x_scale")
    shape = [1] * data.ndim
    if scale.size > 1 and data.ndim:
        shape[given.get("axis", 1)] = -1
    shifted = data.astype(np.int64) - (
        0 if zero is None else zero.astype(np.int64).reshape(shape if zero.size > 1 else ())
    )
    return np.asarray(shifted * scale.reshape(shape if scale.size > 1 else ())).astype(scale.dtype)


def _global_lp_pool(_: str, inputs: _Inputs, given: _Attributes) -> Array:
    (data,) = _required(inputs, 1)
    p = given.get("p", 2)
    powers = np.abs(data.astype(np.float64)) ** p
    return np.asarray(powers.sum(axis=tuple(range(2, data.ndim)), keepdims=True) ** (1 / p)).astype(data.dtype)


def _one_hot(_: str, inputs: _Inputs, given: _Attributes) -> Array:
    indices, depth, values = _required(inputs, 3)
    rank = indices.ndim + 1
    axis = given.get("axis", -1) % rank
    places = np.arange(int(depth.reshape(()))).reshape([-1 if place == axis else 1 for place in range(rank)])
    # Negative indices, too, are out of range: only since version 11 do they count from the end.
    is_hot = np.expand_dims(indices.astype(np.int64), axis) == places
    return np.asarray(np.where(is_hot, values[1], values[0]))


def _normalized_texts(_: str, inputs: _Inputs, given: _Attributes) -> Array:
    (data,) = _required(inputs, 1)
    stopwords = set(given.get("stopwords", ()))
    if not given.get("is_case_sensitive", 0):
        lowered = {word.lower() for word in stopwords}
        kept = [text for text in data.ravel().tolist() if text.lower() not in lowered]
    else:
        kept = [text for text in data.ravel().tolist() if text not in stopwords]
    change = {"LOWER": str.lower, "UPPER": str.upper}.get(given.get("case_change_action", "NONE"), str)
    # Where nothing is left, an empty text is.
    made = np.array([change(text) for text in kept] or [""], dtype=object)
    return made.reshape(1, -1) if data.ndim == 2 else made


def _required(inputs: _Inputs, count: int) -> list[Array]:
    found = [value for value in inputs[:count] if value is not None]
    if len(found) < count:
        raise KernelError(f"the operator needs {count} inputs, and has {len(found)}")
    return found


_Kernel = Callable[[str, _Inputs, _Attributes], Array]
_KERNELS: Mapping[tuple[str, int], _Kernel] = {
    **{(op_type, version): _binary for op_type in ("Add", "Sub", "Mul", "Div") for version in (1, 6)},
    **{(op_type, 1): _binary for op_type in ("Pow", "And", "Or", "Xor", "Equal", "Greater", "Less")},
    **{("Pow", version): _pow for version in (7, 12, 13, 15)},
    **{("GatherElements", version): _gather_elements for version in (11, 13)},
    **{("Gemm", version): _gemm for version in (1, 6)},
    **{("PRelu", version): _prelu_of_channels for version in (1, 6)},
    **{("PRelu", version): _prelu for version in (7, 9, 16)},
    ("Selu", 1): _selu,
    ("Clip", 1): _clip,
    **{("Clip", version): _clip_by_inputs for version in (11, 12, 13)},
    ("LogSoftmax", 13): _log_softmax,
    **{("LpNormalization", version): _lp_normalization for version in (1, 22)},
    ("Concat", 1): _concat,
    **{("Dropout", version): _dropout for version in (1, 6)},
    ("Reshape", 1): _reshape,
    ("Tile", 1): _tile,
    ("Scatter", 9): _scatter,
    ("OneHot", 9): _one_hot,
    ("StringNormalizer", 10): _normalized_texts,
    **{("DequantizeLinear", version): _dequantize for version in (10, 13)},
    **{("GlobalLpPool", version): _global_lp_pool for version in (1, 2, 22)},
}
OLDER_VERSIONS: Mapping[str, Sequence[int]] = {
    op_type: [version for other, version in _KERNELS if other == op_type] for op_type, _ in _KERNELS
}


def run_older(op_type: str, since_version: int, inputs: _Inputs, attributes: _Attributes, __: int) -> tuple[Array]:
    """Run a version of OLDER_VERSIONS. Raises KernelError for a node that the version does not allow."""
    given = {name: value for name, value in attributes.items() if value is not None}
    # Not ascontiguousarray, which gives a scalar a dimension.
    return (np.asarray(_KERNELS[op_type, since_version](op_type, inputs, given), order="C"),)
