"""What later attempts at a case ask for: less, until the first model accepts the inputs; and other elements, if its
outputs prove nothing.

A model may not be made for normally distributed numbers: a sampling rate of -0.3, the logarithm of a negative number,
or an image that is black and white at once. The other elements have many amplitudes, signs and offsets. Single numbers
are constants of the model, its sizes, usual rates, and powers of ten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count, groupby, islice
from typing import Any

import numpy as np
import onnx

from splitgraph.verification.models.model_files import scoped_nodes
from splitgraph.verification.values import Array, Value, is_text

# How many cases are added at a time, until the outputs prove something.
BATCHES = (1, 5, 10, 16, 16)
# An input of at most so many elements holds a few numbers, such as a rate or the two sizes of an image.
_FEW = 4
_USUAL = (1, 16000, 0, 100, 0.5, 10, 640, 22050, 1000, 0.1, 44100, 2, 8000, 0.01, 10000, 48000, 24000, -1, 255)
# How many constants of the model are tried as inputs, and between which magnitudes.
_MOST_SUGGESTED = 24
_SMALLEST, _LARGEST = 1e-6, 1e7
_HALVES = ("float16", "bfloat16")
_AMPLITUDE_OF_HALVES = 30.0

Filling = Callable[[np.random.Generator, Sequence[int]], Array]


@dataclass(frozen=True, slots=True)
class AttemptRule:
    """Says how the inputs of one attempt are drawn.

    round: the attempts of one round run in one process, and only if the model accepted no attempt of earlier rounds.
    zero_or_one: integers are 0 or 1, which most operators accept as an index, axis or size.
    only_split_rules: sizes satisfy only what splits require, because an engine may be less strict than inference. If
    only the second model names its dimensions, it draws these inputs.
    single: the free dimension with this number is 1 and the others are large, for a model that accepts one sample at a
    time and does not say so.
    all_ones: every free dimension is 1, which broadcasts with everything.
    signal_length: the last dimension of floating-point inputs, from which a model may cut windows; integers are this
    number, too, because they may give the length of the signal. None if the last dimension is like any other.
    """

    round: int
    zero_or_one: bool = False
    only_split_rules: bool = False
    single: int | None = None
    all_ones: bool = False
    signal_length: int | None = None

    @property
    def is_first(self) -> bool:
        """Return True for the first attempt: numbers of both signs, with and without optional values."""
        return self.round == 0

    @property
    def uses_preferences(self) -> bool:
        """Return True if sizes should satisfy the preferred constraints, too."""
        return self.round <= 1


RETRY_POLICY = (
    AttemptRule(0),
    AttemptRule(1),
    AttemptRule(1),
    AttemptRule(2),
    AttemptRule(2, zero_or_one=True),
    AttemptRule(2, zero_or_one=True, only_split_rules=True),
    AttemptRule(2, zero_or_one=True, only_split_rules=True),
    *(AttemptRule(2, zero_or_one=True, single=number) for number in range(4)),
    AttemptRule(3, zero_or_one=True, only_split_rules=True, all_ones=True),
    AttemptRule(3, zero_or_one=True, only_split_rules=True, all_ones=True),
    AttemptRule(4, zero_or_one=True, only_split_rules=True, all_ones=True, signal_length=4000),
    AttemptRule(4, zero_or_one=True, only_split_rules=True, all_ones=True, signal_length=256),
)

# The numbers of the attempts after the first one, round by round.
FURTHER_ROUNDS = [
    list(attempts)
    for number, attempts in groupby(range(len(RETRY_POLICY)), lambda attempt: RETRY_POLICY[attempt].round)
    if number
]


def _waves(rng: np.random.Generator, shape: Sequence[int]) -> Array:
    """Draw a tone along the last dimension, with another pitch each time."""
    length = shape[-1] if shape else 1
    tone = 0.5 * np.sin(rng.uniform(0.02, 0.6) * np.arange(length) + rng.uniform(0, 3))
    return np.broadcast_to(tone, tuple(shape)) if shape else tone[0]


def _with_gaps(rng: np.random.Generator, shape: Sequence[int]) -> Array:
    """Draw numbers, some of them NaN or infinite, for operators that look for those."""
    numbers = rng.standard_normal(shape)
    return np.where(rng.uniform(size=shape) < 0.3, rng.choice([np.nan, np.inf, -np.inf], size=shape), numbers)


_FILLINGS: Sequence[Filling] = (
    lambda rng, shape: rng.uniform(0, 1, shape),
    lambda rng, shape: 0.01 * rng.standard_normal(shape),
    lambda rng, shape: 30 * rng.standard_normal(shape),
    lambda rng, shape: np.floor(rng.uniform(0, 256, shape)),
    _waves,
    lambda rng, shape: rng.uniform(-1, 0, shape),
    lambda rng, shape: 1e-4 * rng.standard_normal(shape),
    lambda rng, shape: 1 + 0.1 * rng.standard_normal(shape),
    lambda rng, shape: 1000 * rng.standard_normal(shape),
    lambda rng, shape: rng.uniform(-1, 1, shape) * (rng.uniform(size=shape) < 0.1),
    _with_gaps,
)


def batches() -> list[list[int]]:
    """Return the numbers of the added cases, batch by batch."""
    numbers = count()
    return [list(islice(numbers, size)) for size in BATCHES]


def refill(value: Value, number: int, place: int, rng: np.random.Generator, numbers: Sequence[float]) -> Value:
    """Return another value of the same type and shape for an input.

    number: of the added case. place: the position of the input. numbers: candidates for inputs of a few numbers. Text
    and larger integer tensors keep their elements in another order. In every second case, integers and inputs of a few
    numbers do not change: few numbers are valid lengths, positions or rates.
    """
    if isinstance(value, list):
        return [refill(item, number, place, rng, numbers) for item in value]
    if not isinstance(value, np.ndarray) or not value.size:
        return value
    is_float = value.dtype.kind == "f" or "float" in value.dtype.name
    if value.dtype.kind == "b" and value.size == 1:
        return np.full(value.shape, (number >> place) % 2 == 0)
    is_kept = number % 2 == 0
    if value.dtype.kind in "iu" and is_kept:
        return value
    if value.size <= _FEW and value.ndim <= 2 and (is_float or value.dtype.kind in "iu"):
        # The place makes two numbers differ, such as the ends of a range.
        chosen = numbers[(number // 2 * (1 + 2 * place) + place) % len(numbers)]
        return value if is_kept else _held(np.full(value.shape, chosen), value.dtype)
    if is_float:
        drawn = _FILLINGS[number % len(_FILLINGS)](rng, value.shape)
        if value.dtype.name in _HALVES:
            drawn = np.clip(drawn, -_AMPLITUDE_OF_HALVES, _AMPLITUDE_OF_HALVES)
        return np.array(drawn).astype(value.dtype)
    if value.dtype.kind == "c":
        return np.asarray(rng.standard_normal(value.shape) + 1j * rng.standard_normal(value.shape), value.dtype)
    shuffled = rng.permutation(value.ravel()).reshape(value.shape)
    return shuffled if is_text(value) else shuffled.astype(value.dtype)


def _held(numbers: Array, dtype: np.dtype[Any]) -> Array:
    """Convert numbers to a type that may not be able to hold all of them."""
    if dtype.kind not in "iu":
        return numbers.astype(dtype)
    info = np.iinfo(dtype)
    return np.clip(np.floor(numbers), info.min, info.max).astype(dtype)


def suggested_numbers(model: onnx.ModelProto) -> list[float]:
    """Return candidates for single numbers: usual numbers, and constants and sizes of the model, in turn."""
    tensors = [*model.graph.initializer]
    for node, _ in scoped_nodes(model):
        tensors += [
            attribute.t for attribute in node.attribute if node.op_type == "Constant" and attribute.name == "value"
        ]
    single = (_single(tensor) for tensor in tensors if list(tensor.dims) in ([], [1]))
    own = [number for number in single if number is not None and _SMALLEST < abs(number) < _LARGEST]
    sizes = [float(dim) for tensor in tensors for dim in tensor.dims if 1 < dim < _LARGEST]
    suggested = list(dict.fromkeys([*dict.fromkeys(own), *dict.fromkeys(sizes)]))[:_MOST_SUGGESTED]
    return list(dict.fromkeys(_in_turn(_USUAL, suggested)))


def _in_turn(first: Sequence[float], second: Sequence[float]) -> Iterable[float]:
    for index in range(max(len(first), len(second))):
        yield from map(float, (*first[index : index + 1], *second[index : index + 1]))


def _single(tensor: onnx.TensorProto) -> float | None:
    if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.data_type == onnx.TensorProto.STRING:
        return None
    try:
        array = onnx.numpy_helper.to_array(tensor)
    except ValueError:  # without its data
        return None
    return float(array.item().real) if array.size == 1 else None
