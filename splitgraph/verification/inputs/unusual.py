"""Replace the elements of inputs by unusual ones, on which models differ that agree on ordinary numbers.

Each kind of element is for other differences:

- steps: 0 and -0.0, halves, small whole numbers, and the constants of the model with their neighbours: for `>` against
  `>=`, the rounding of ties, thresholds.
- ends: the smallest and largest integers of a type, and floating-point numbers that narrower types cannot hold: for
  saturation, wrapping, and overflow.
- gaps: NaN and the infinities between ordinary numbers.

Inputs that are lengths, positions or sizes do not change: engines need not check them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import onnx

from splitgraph.verification.models.dependence import index_inputs, shape_inputs
from splitgraph.verification.models.model_files import is_default_domain, scoped_nodes
from splitgraph.verification.values import Array, Value

UnusualKind = Literal["steps", "ends", "gaps"]

_STEPS = (0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.5, 1.0, -1.0, 2.0, -2.0, 3.0, 0.25, 6.0)
_ENDS_OF_HALVES = (65504.0, -65504.0, 300.0, -300.0, 2049.0, -2049.0, 1e-7, 1000.0)
_ENDS = (65520.0, -65520.0, 1e6, -1e6, 16777217.0, -16777217.0, 1e9, -1e9, 1e18, -1e18, 1e-30, 256.0, 300.0)
_WHOLE_ENDS = (-(2**31), 2**31 - 1, 2**31, 2**32 + 1, 2**53 + 1, 1000, 65536, -1000, 100, 128)
# Of the ends of a type, so many numbers are spread over the whole range of 8 bits.
_SPREAD = 15
# How many constants of a model are tried, of tensors of at most so many elements.
_MOST_CONSTANTS, _FEW = 16, 8
# In how many cases at most the numbers of a kind are tried, if an input has few elements; one of so many elements is
# a gap.
_MOST_CASES = 12
_EACH = 4
# Numbers of a narrower type are drawn like those of float32.
_MOST_BITS = 16


def unusual_inputs(
    model: onnx.ModelProto, base: Mapping[str, Value], kept_names: Collection[str], kind: UnusualKind
) -> Iterator[dict[str, Value]]:
    """Yield inputs of a kind, with the shapes and types of the inputs in `base`.

    kept_names: names of inputs that do not change. Yields nothing if no input can change.
    """
    constants = _constants(model)
    lists = {
        name: _numbers(value.dtype, kind, constants)
        for name, value in base.items()
        if name not in kept_names and isinstance(value, np.ndarray) and value.size
    }
    lists = {name: numbers for name, numbers in lists.items() if numbers.size}
    cases = max((-(-numbers.size // base[name].size) for name, numbers in lists.items()), default=0)
    for case in range(min(cases, _MOST_CASES)):
        made = dict(base)
        for place, (name, numbers) in enumerate(lists.items()):
            # In the first case, inputs meet their equals.
            start = case * base[name].size + 3 * place * (case % 2)
            made[name] = _filled(base[name], np.roll(numbers, -start), kind)
        yield made


def fixed_inputs(model: onnx.ModelProto) -> set[str]:
    """Return the inputs whose elements are positions or sizes somewhere, or may divide integers."""
    return shape_inputs(model) | index_inputs(model)


def has_open_loops(model: onnx.ModelProto) -> bool:
    """Return True if unusual numbers may let a loop of a model run for ever."""
    return any(node.op_type == "Loop" for node, _ in scoped_nodes(model))


def _filled(value: Array, numbers: Array, kind: UnusualKind) -> Array:
    filled = np.array(value)
    if kind == "gaps":
        flat = filled.reshape(-1)
        flat[:: _EACH if flat.size > _EACH else 1] = np.resize(numbers, flat[:: _EACH if flat.size > _EACH else 1].size)
        return filled
    return np.resize(numbers, value.size).reshape(value.shape)


def _numbers(dtype: np.dtype[Any], kind: UnusualKind, constants: Sequence[float]) -> Array:
    """Return the numbers of a kind in a type; none if the type has no such numbers."""
    if dtype.kind in "iu":
        return _whole_numbers(dtype, kind, constants)
    if dtype.kind != "f" and dtype.name != "bfloat16":
        return np.empty(0, dtype)
    is_half = dtype.itemsize * 8 <= _MOST_BITS
    if kind == "steps":
        return _unique([*_with_neighbours(dtype, constants), *_STEPS], dtype)
    if kind == "ends":
        return np.array(_ENDS_OF_HALVES if is_half else _ENDS).astype(dtype)
    return np.array([np.nan, np.inf, -np.inf, -0.0]).astype(dtype)


def _with_neighbours(dtype: np.dtype[Any], constants: Iterable[float]) -> Iterator[float]:
    """Yield each constant, its neighbours in a type, and where a quantization by this scale rounds."""
    for number in constants:
        with np.errstate(over="ignore", under="ignore"):
            rounded = np.asarray(number).astype(dtype if dtype.kind == "f" else np.float32)
            around = [float(np.nextafter(rounded, rounded.dtype.type(end))) for end in (np.inf, -np.inf)]
        if np.isfinite(rounded):
            yield from (float(rounded), *around, 0.5 * number, 1.5 * number, -number)


def _unique(candidates: Sequence[float], dtype: np.dtype[Any]) -> Array:
    with np.errstate(over="ignore"):
        numbers = np.array(candidates, np.float64).astype(dtype)
    # As bits, because -0.0 is equal to 0.
    bits = numbers.view(np.dtype(f"u{dtype.itemsize}"))
    _, places = np.unique(bits, return_index=True)
    return numbers[np.sort(places)]


def _whole_numbers(dtype: np.dtype[Any], kind: UnusualKind, constants: Sequence[float]) -> Array:
    if kind == "gaps" or dtype.itemsize * 8 < 8:
        return np.empty(0, dtype)
    info = np.iinfo(dtype)
    if kind == "steps":
        whole = [int(number) + step for number in constants if float(number).is_integer() for step in (0, 1, -1)]
        candidates = [*whole, 0, 1, -1, 2, 3]
    else:
        half = int(info.max) // 2
        candidates = [info.min, info.max, info.min + 1, info.max - 1, half, half + 1, -1, *_WHOLE_ENDS]
        if dtype.itemsize == 1:
            candidates += range(info.min, info.max, _SPREAD)
    return np.array([number for number in dict.fromkeys(map(int, candidates)) if info.min <= number <= info.max], dtype)


def _constants(model: onnx.ModelProto) -> list[float]:
    """Return numbers of small constants and of attributes of a model."""
    constants: dict[float, None] = {}
    tensors = [*model.graph.initializer]
    for node, _ in scoped_nodes(model):
        for attribute in node.attribute:
            if attribute.type == onnx.AttributeProto.FLOAT and is_default_domain(node.domain):
                constants[attribute.f] = None
            elif attribute.type == onnx.AttributeProto.TENSOR and node.op_type == "Constant":
                tensors.append(attribute.t)
    for tensor in tensors:
        if np.prod(tensor.dims) <= _FEW and tensor.data_location != onnx.TensorProto.EXTERNAL:
            array = _elements(tensor)
            constants.update(dict.fromkeys(float(number) for number in array.ravel().tolist()))
    # Most models begin with what they do to their inputs.
    return [number for number in constants if np.isfinite(number)][:_MOST_CONSTANTS]


def _elements(tensor: onnx.TensorProto) -> Array:
    """Return the elements of a tensor of real numbers; none of other tensors."""
    nothing: Array = np.empty(0)
    if tensor.data_type == onnx.TensorProto.STRING:
        return nothing
    try:
        array: Array = onnx.numpy_helper.to_array(tensor)
    except ValueError:  # without its data
        return nothing
    return nothing if array.dtype.kind in "cb" else array
