"""Draw inputs at which a value inside of a region meets a limit: behind a root, a scale or a sum, the limit itself is
an input like any other.

The operands of each comparison run alone, in the reference evaluator, on inputs whose elements are all one number: 0
and the powers of 2. Between two of these at which the operands stand to each other in another way, halving finds where
they meet.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import onnx

from splitgraph.conversion.inlining import inline_functions
from splitgraph.model.scopes import reads
from splitgraph.verification.models.model_files import is_default_domain
from splitgraph.verification.reference.evaluator import load, run
from splitgraph.verification.regions.sides import reached
from splitgraph.verification.values import Array, UnsupportedError, Value

# In regions of at most so many nodes and elements, limits are looked for in so many seconds.
_MOST_NODES, _MOST_ELEMENTS, _SECONDS = 64, 2**12, 0.5
# Halving ends after so many steps, or where no number is between. So many meetings of a comparison are drawn.
_MOST_STEPS, _MOST_MEETINGS = 70, 6
# Beside a meeting, numbers are off by so much: what is nearer may be rounding.
_BESIDE = 1e-2
_COMPARISONS = frozenset({"Clip", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Min"})
# Operators that compute each element from one element of each input.
_BY_ELEMENT = frozenset(
    {"Abs", "Add", "Cast", "Ceil", "Clip", "Constant", "Div", "Erf", "Exp", "Floor", "Identity", "Log", "Max", "Min"}
    | {"Mod", "Mul", "Neg", "Not", "Pow", "Reciprocal", "Relu", "Round", "Sigmoid", "Softplus", "Sqrt", "Sub", "Tanh"}
)
_SMALLEST_POWER, _LARGEST_POWER = -8, 30

# Tells how two operands stand to each other, element by element, for a number; nothing where that is impossible.
_Signs = Callable[[Any], Array]


def at_inner_limits(
    models: Sequence[tuple[onnx.ModelProto, Path]], base: Mapping[str, Value], free: Mapping[str, Array]
) -> Iterator[dict[str, Value]]:
    """Yield values for one free input of a region after the other. models: before and after, with the folders of their
    external data. base: the values that reached the region.
    """
    end = time.monotonic() + _SECONDS
    if sum(value.size for value in free.values()) > _MOST_ELEMENTS:
        return
    for model, folder in models:
        for operands, part in _operands(model):
            try:
                loaded = load(part, folder)
            except (RuntimeError, UnsupportedError, ValueError):
                # The evaluator lacks an operator.
                continue
            needed = {value.name for value in part.graph.input}
            # Where elements meet, all of them are the number. They may meet behind the comparison (all of them larger).
            steps = [2] if _is_by_element(part) else [1]
            steps += [] if _is_by_element(model) or steps == [1] else [1]
            for name, value in free.items():
                if name in needed and _is_number(value.dtype):
                    given = {each: base[each] for each in needed}
                    signs = _signs_of(loaded, operands, given, name, value)
                    for number in _meetings(signs, value.dtype, end):
                        yield from ({name: _with(value, number, step)} for step in steps)


def _is_by_element(model: onnx.ModelProto) -> bool:
    """Return True if each element of the results is computed from one element of each input."""
    return all(node.op_type in _BY_ELEMENT for node in model.graph.node)


def _operands(model: onnx.ModelProto) -> Iterator[tuple[list[str], onnx.ModelProto]]:
    """Yield the operands of each comparison that compares something computed, and a model that computes them."""
    with contextlib.suppress(ValueError):
        # What the inliner refuses is looked at as it is.
        model = inline_functions(model, ours_too=True)
    graph = model.graph
    nodes = list(graph.node)
    if len(nodes) > _MOST_NODES:
        return
    makers = {name: index for index, node in enumerate(nodes) for name in node.output if name}
    read = [tuple(filter(None, reads(node))) for node in nodes]
    for node in nodes:
        names = [name for name in node.input if name]
        made = [makers[name] for name in names if name in makers and nodes[makers[name]].op_type != "Constant"]
        if node.op_type not in _COMPARISONS or not is_default_domain(node.domain) or not made:
            continue
        needed = sorted(reached({makers[name] for name in names if name in makers}, read, makers))
        part = onnx.ModelProto()
        part.CopyFrom(model)
        del part.graph.node[:], part.graph.output[:], part.graph.input[:]
        part.graph.node.extend(nodes[index] for index in needed)
        used = {name for index in needed for name in read[index]} | set(names)
        part.graph.input.extend(value for value in graph.input if value.name in used)
        part.graph.output.extend(onnx.ValueInfoProto(name=name) for name in names)
        yield names, part


def _signs_of(loaded: Any, operands: Sequence[str], given: Mapping[str, Value], name: str, value: Array) -> _Signs:
    def signs(number: Any) -> Array:
        feeds = {**given, name: np.full(value.shape, number, value.dtype)}
        try:
            with np.errstate(all="ignore"):
                results = [np.asarray(each).astype(np.float64) for each in run(loaded, feeds, operands)]
                gaps = [np.sign(results[0] - other).reshape(-1) for other in results[1:]]
        except (ArithmeticError, IndexError, RuntimeError, TypeError, UnsupportedError, ValueError):
            # The region has no meaning for this number.
            return np.empty(0)
        return np.concatenate(gaps) if gaps else np.empty(0)

    return signs


def _with(value: Array, number: Any, step: int) -> Array:
    """Return a value with a number in each element, or in every other one: those between tell how large the results
    are.
    """
    filled = np.array(value)
    filled.reshape(-1)[::step] = number
    return filled


def _is_number(dtype: np.dtype[Any]) -> bool:
    return dtype.name in ("float16", "float32", "float64") or (dtype.kind in "iu" and dtype.itemsize > 1)


def _meetings(signs: _Signs, dtype: np.dtype[Any], end: float) -> Iterator[Any]:
    """Yield the numbers at which the operands meet, and one on each side. end: until when they are looked for."""
    count = 0
    for low, high in pairwise(_ladder(dtype)):
        if count >= _MOST_MEETINGS or time.monotonic() > end:
            return
        one, other = signs(low), signs(high)
        if not one.size or one.shape != other.shape or np.isnan(one).any() or np.isnan(other).any():
            continue
        changed = np.flatnonzero(one != other)
        if changed.size:
            count += 1
            yield from _halved(signs, dtype, (low, high), int(changed[0]))


def _ladder(dtype: np.dtype[Any]) -> list[Any]:
    powers = range(0 if dtype.kind in "iu" else _SMALLEST_POWER, _LARGEST_POWER + 1)
    info: Any = np.iinfo(dtype) if dtype.kind in "iu" else np.finfo(dtype)
    numbers = [0.0, *(sign * 2.0**power for power in powers for sign in (1, -1))]
    return sorted(dtype.type(number) for number in numbers if float(info.min) <= number <= float(info.max))


def _halved(signs: _Signs, dtype: np.dtype[Any], ends: tuple[Any, Any], element: int) -> Iterator[Any]:
    low, high = (dtype.type(end) for end in ends)
    first = signs(low)[element]
    for _ in range(_MOST_STEPS):
        middle = dtype.type((int(low) + int(high)) // 2 if dtype.kind in "iu" else low / 2 + high / 2)
        if middle in (low, high):
            break
        told = signs(middle)
        if told.size <= element or np.isnan(told[element]):
            return
        low, high = (middle, high) if told[element] == first else (low, middle)
    if dtype.kind in "iu":
        yield from (low, high, *([dtype.type(high + 1)] if high < np.iinfo(dtype).max else []))
        return
    if signs(high)[element] == 0:
        yield high
    with np.errstate(over="ignore"):
        yield from (dtype.type(float(high) + sign * _BESIDE * max(abs(float(high)), _BESIDE)) for sign in (1, -1))
