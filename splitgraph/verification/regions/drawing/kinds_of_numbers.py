"""Ordinary and unusual elements for the inputs of a region: those of each kind, whatever the region computes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

import numpy as np
import onnx

from splitgraph.verification.models.model_files import scoped_nodes
from splitgraph.verification.regions.drawing.limits import MULTIPLES
from splitgraph.verification.regions.drawing.mixed import WORDS, is_flags
from splitgraph.verification.regions.drawing.repeating import drawn_elements, repeated
from splitgraph.verification.values import Array, Value

# Kinds of unusual numbers that all inputs get at once (see `draw`).
Unusual = Literal["steps", "ends", "gaps"]

_STEPS = (0.0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, -2.5, 3.5, 1.0, -1.0, 2.0, -2.0, 3.0, 0.25, 6.0)
# Beside these, a number is rounded otherwise.
_ROUNDED: Mapping[float, bool] = {0.5: False, 1.0: False}
_ENDS_OF_HALVES = (12.0, -12.0, 65504.0, -65504.0, 300.0, -300.0, 2049.0, -2049.0, 1e-7, 1000.0)
_ENDS = (65520.0, -65520.0, 1e6, -1e6, 16777217.0, -16777217.0, 1e9, -1e9, 1e18, -1e18, 256.0, 300.0)
# Exponentials of these overflow, or those of numbers that are a few tens larger.
_POWERS: Mapping[str, Sequence[float]] = {
    "float32": (20.0, -20.0, 95.0, -95.0),
    "float64": (20.0, -20.0, 95.0, -95.0, 750.0, -750.0),
}
_TINY: Mapping[str, Sequence[float]] = {
    **dict.fromkeys(("float32", "bfloat16"), (1e-9, 1e-12, 1e-18)),
    "float64": (1e-9, 1e-12, 1e-25, 1e-60, 1e-150),
}
_WHOLE_ENDS = (-(2**31), 2**31 - 1, 2**31, 2**32 + 1, 2**53 + 1, 1000, 65536, -1000, 100, 128)
# Of the ends of a type, so many numbers are spread over the whole range of 8 bits.
_SPREAD = 15
# All inputs of a small region have so few elements.
_FEW = 64
# In how many cases at most the numbers of a kind are tried: more if all inputs have few elements. One of so many
# elements is a gap.
_MOST_CASES, _MOST_SMALL_CASES = 12, 64
_EACH = 4
# Numbers of a narrower type are drawn like those of float32.
_MOST_BITS = 16
_NUMERALS = ("0", "-1", "2.5", "-0.5", "1e10", "-3e-3", "inf", "NaN", "1e40")


def ordinary(value: Array, rng: np.random.Generator) -> Array:
    """Return other ordinary elements for a value."""
    return drawn_elements(lambda size: _ordinary_elements(value.dtype, size, rng), value.shape)


def _ordinary_elements(dtype: np.dtype[Any], size: int, rng: np.random.Generator) -> Array:
    if dtype.kind in "OUS":
        return np.asarray(rng.choice(np.array(WORDS, dtype=object), size=size), dtype=object)
    if dtype.kind == "b":
        return np.asarray(rng.uniform(size=size) < 0.5)
    if dtype.kind == "c":
        return np.asarray(rng.standard_normal(size) + 1j * rng.standard_normal(size), dtype)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(max(int(info.min), -100), min(int(info.max), 100), size, endpoint=True).astype(dtype)
    return np.asarray(rng.standard_normal(size)).astype(np.float32).astype(dtype)


def of_two(value: Array, rng: np.random.Generator, ends: tuple[int, int] = (0, 2)) -> Array:
    """Return zeros and ones in any order. ends: the first number, and the one after the last one."""
    if value.dtype.kind in "OUS":
        words = np.array(WORDS[slice(*ends)], dtype=object)
        return drawn_elements(lambda size: np.array(rng.choice(words, size=size), dtype=object), value.shape)
    return drawn_elements(lambda size: np.asarray(rng.integers(*ends, size)).astype(value.dtype), value.shape)


def turned(conditions: Mapping[str, Value]) -> dict[str, Value]:
    """Return the other branches."""
    return {name: np.asarray(np.logical_not(value)) for name, value in conditions.items()}


def draw_unusual(
    free: Mapping[str, Array], kind: Unusual, constants: Mapping[float, bool], rng: np.random.Generator
) -> Iterator[dict[str, Value]]:
    """Yield unusual elements of a kind for the inputs."""
    lists = {name: _numbers(value.dtype, kind, constants) for name, value in free.items()}
    lists = {name: numbers for name, numbers in lists.items() if numbers.size}
    cases = max((-(-numbers.size // free[name].size) for name, numbers in lists.items()), default=0)
    others = [name for name in free if name not in lists]
    is_small = all(value.size <= _FEW for value in free.values())
    most = _MOST_SMALL_CASES if is_small else _MOST_CASES
    for case in range(min(max(cases, 2 if cases and len(lists) > 1 else cases), most)):
        made: dict[str, Value] = {name: ordinary(free[name], rng) for name in others}
        for place, (name, numbers) in enumerate(lists.items()):
            # In the first case, inputs meet their equals.
            start = case * free[name].size + 3 * place * (case % 2)
            made[name] = _filled(free[name], np.roll(numbers, -start), kind)
        yield made
        # Both branches meet the numbers.
        conditions = {name: made[name] for name in others if is_flags(free[name]) and free[name].size == 1}
        if conditions:
            yield made | turned(conditions)


def _filled(value: Array, numbers: Array, kind: Unusual) -> Array:
    if kind == "gaps":
        filled = np.array(value)
        flat = filled.reshape(-1)
        step = _EACH if flat.size > _EACH else 1
        flat[::step] = repeated(numbers, flat[::step].size)
        return filled
    return repeated(numbers, value.shape)


def draw_ends(free: Mapping[str, Array]) -> Iterator[dict[str, Value]]:
    """Yield integers that are all at the end of their type, and half of that: sums of them are beyond it."""
    whole = {name: value for name, value in free.items() if value.dtype.kind in "iu"}
    for part in (1, 2) if whole else ():
        yield {name: np.full_like(value, np.iinfo(value.dtype).max // part) for name, value in whole.items()}


def draw_gaps(free: Mapping[str, Array]) -> Iterator[dict[str, Value]]:
    """Yield NaN and infinities that no number stands among: a window may hold nothing else."""
    fractions = {name: value for name, value in free.items() if is_fraction(value.dtype)}
    for number in (np.nan, np.inf, -np.inf) if fractions else ():
        yield {name: np.full(value.shape, number).astype(value.dtype) for name, value in fractions.items()}


def draw_tiny(free: Mapping[str, Array]) -> Iterator[dict[str, Value]]:
    """Yield tiny numbers of each size, for all inputs, and for one after the other."""
    fitting = {name: value for name, value in free.items() if value.dtype.name in _TINY}
    for size in sorted({size for value in fitting.values() for size in _TINY[value.dtype.name]}):
        made: dict[str, Value] = {
            name: repeated(np.roll([size, -size, 2 * size], place).astype(value.dtype), value.shape)
            for place, (name, value) in enumerate(fitting.items())
            if size in _TINY[value.dtype.name]
        }
        yield made
        yield from ({name: value} for name, value in made.items() if len(fitting) > 1)


def draw_numerals(
    models: Iterable[onnx.ModelProto], free: Mapping[str, Array], constants: Iterable[float]
) -> Iterator[dict[str, Value]]:
    """Yield texts that a Cast makes numbers of, those of a region among them."""
    if not any(node.op_type == "Cast" for model in models for node, _ in scoped_nodes(model)):
        return
    own = (int(number) if number.is_integer() else number for number in constants)
    numerals = np.array([*map(str, own), *_NUMERALS], dtype=object)
    for name, value in ((name, value) for name, value in free.items() if value.dtype.kind in "OUS"):
        for start in range(0, numerals.size, value.size):
            yield {name: repeated(np.roll(numerals, -start), value.shape)}


def is_fraction(dtype: np.dtype[Any]) -> bool:
    return dtype.kind == "f" or dtype.name == "bfloat16"


def _numbers(dtype: np.dtype[Any], kind: Unusual, constants: Mapping[float, bool]) -> Array:
    """Return the numbers of a kind in a type; none if the type has no such numbers."""
    if dtype.kind in "iu":
        return _whole_numbers(dtype, kind, constants)
    if not is_fraction(dtype):
        return np.empty(0, dtype)
    is_half = dtype.itemsize * 8 <= _MOST_BITS
    if kind == "steps":
        multiples = (times * number for number, is_scale in constants.items() if is_scale for times in MULTIPLES)
        return _unique(
            [*_with_neighbours(dtype, {**constants, **_ROUNDED}), *_STEPS, *_POWERS.get(dtype.name, ()), *multiples],
            dtype,
        )
    if kind == "ends":
        return np.array(_ENDS_OF_HALVES if is_half else _ENDS).astype(dtype)
    return np.array([np.nan, np.inf, -np.inf, -0.0]).astype(dtype)


def _with_neighbours(dtype: np.dtype[Any], constants: Iterable[float]) -> Iterator[float]:
    """Yield each constant, and its neighbours in a type."""
    for number in constants:
        with np.errstate(over="ignore", under="ignore"):
            rounded = np.asarray(number).astype(dtype if dtype.kind == "f" else np.float32)
            around = [float(np.nextafter(rounded, rounded.dtype.type(end))) for end in (np.inf, -np.inf)]
        if np.isfinite(rounded):
            yield from (float(rounded), *around)


def _unique(candidates: Sequence[float], dtype: np.dtype[Any]) -> Array:
    with np.errstate(over="ignore"):
        numbers = np.array(candidates, np.float64).astype(dtype)
    # As bits, because -0.0 is equal to 0.
    bits = numbers.view(np.dtype(f"u{dtype.itemsize}"))
    _, places = np.unique(bits, return_index=True)
    return numbers[np.sort(places)]


def _whole_numbers(dtype: np.dtype[Any], kind: Unusual, constants: Iterable[float]) -> Array:
    if kind == "gaps" or dtype.itemsize * 8 < 8:
        return np.empty(0, dtype)
    info = np.iinfo(dtype)
    if kind == "steps":
        whole = [int(number) + step for number in constants if float(number).is_integer() for step in (0, 1, -1)]
        candidates = [*whole, 0, 1, -1, 2, 3, -2, -3, 7, -7]
    else:
        half = int(info.max) // 2
        candidates = [info.min, info.max, info.min + 1, info.max - 1, half, half + 1, -1, *_WHOLE_ENDS]
        if dtype.itemsize == 1:
            candidates += range(info.min, info.max, _SPREAD)
    return np.array([number for number in dict.fromkeys(map(int, candidates)) if info.min <= number <= info.max], dtype)
