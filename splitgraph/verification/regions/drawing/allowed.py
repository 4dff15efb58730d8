"""Tell which numbers the inputs of a region may take. Where the specification gives no meaning, models may differ: the
place of NaN among sorted numbers, 0 divided by 0, a position beyond a table.

An input that the first model cleans or limits before use takes any number, even if the second model does not clean it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

import numpy as np
import onnx

from splitgraph.model.schemas import kinds
from splitgraph.verification.comparison import is_finite
from splitgraph.verification.models.dependence import (
    divisor_inputs,
    extent_inputs,
    index_inputs,
    inputs_reaching,
    shape_inputs,
)
from splitgraph.verification.models.model_files import scoped_nodes
from splitgraph.verification.regions.drawing.mixed import is_flags
from splitgraph.verification.regions.drawing.ranges import Range, within_range
from splitgraph.verification.regions.drawing.rows import Models
from splitgraph.verification.values import Array, Value

# Divides in place of 0.
_DIVISOR = 3
# Operators that put numbers in an order, or in a range that is quantized.
_ORDERING = kinds.ORDERED - kinds.BY_ELEMENT - kinds.REDUCES | {"Hardmax", "NonMaxSuppression"}
_QUANTIZING = frozenset({"DynamicQuantizeLinear", "QuantizeLinear"})
# Operators of which the specification does not say what an infinity does: in a range that is quantized, or beside an
# edge that is weighted with 0, or as a position.
_FINITE = frozenset({"DeformConv", "DynamicQuantizeLinear", "GridSample", "RoiAlign"})


class Allowed:
    """The numbers that the inputs of a region may take.

    base: values that reached the region. fixed: inputs that do not change. ranges: the least and the largest number of
    inputs that cannot be any.
    """

    def __init__(
        self, models: Models, base: Mapping[str, Value], fixed: Collection[str], ranges: Mapping[str, Range]
    ) -> None:
        (before, _), (after, _) = models
        both = before, after
        self._base, self._ranges = base, ranges
        self._boxes = set[str]().union(*map(extent_inputs, both))
        self._divisors = set[str]().union(*map(divisor_inputs, both))
        self.kept = set(fixed).union(*map(shape_inputs, both)) | _positions(both) - self._divisors
        self._numbered = _reaching(both, _ORDERING | _QUANTIZING | _FINITE, "IsNaN")
        self._finite = _reaching(both, _FINITE, "IsInf")
        # 0 divided by a scale of 0 is NaN, too.
        self._scales = {name for model in both for name in _scales_of(model)} & base.keys()

    def free_conditions(self, fixed: Collection[str]) -> None:
        """Let the conditions of branches change."""
        self.kept -= {name for name, value in self._base.items() if is_flags(value) and name not in fixed}

    def only(self, values: Mapping[str, Value], kind: str, *, is_plain: bool) -> dict[str, Value]:
        """Return values with allowed numbers in place of others. kind: see `draw`. is_plain: it is of `draw.PLAIN`."""
        found = dict(values)
        for name, value in values.items():
            if name in self._boxes:
                value = _within(self._base[name], value)
            if name in self._ranges:
                value = _limited(value, self._ranges[name], kind)
            if name in self._divisors:
                value = _dividing(value, is_plain=is_plain)
            if name in self._scales:
                value = _scaling(value)
            if isinstance(value, np.ndarray) and value.dtype.kind not in "OUSb":
                value = _number(value) if name in self._numbered else value
                value = _bounded(value) if name in self._finite else value
            found[name] = value
        return found


def _positions(models: Sequence[onnx.ModelProto]) -> set[str]:
    """Return the positions that an engine need not check."""
    every, limited = ([index_inputs(model, has_guards=has) for model in models] for has in (False, True))
    return _not_by_the_first(every, limited)


def _reaching(models: Sequence[onnx.ModelProto], operators: frozenset[str], cleaned_by: str) -> set[str]:
    """Return the inputs that reach some operators as they are."""
    every, unclean = ([inputs_reaching(model, operators, cleaned_by=by) for model in models] for by in ("", cleaned_by))
    return _not_by_the_first(every, unclean)


def _not_by_the_first(every: Sequence[set[str]], left: Sequence[set[str]]) -> set[str]:
    """Return what is left in one of two models, but for what the first one cleans or limits."""
    return left[0] | left[1] - (every[0] - left[0])


def _scales_of(model: onnx.ModelProto) -> Iterator[str]:
    """Yield the scales by which the nodes of a model quantize."""
    for node, _ in scoped_nodes(model):
        if node.op_type == "QuantizeLinear" and len(node.input) > 1:
            yield node.input[1]


def _limited(value: Value, known: Range, kind: str) -> Value:
    """Return numbers of a range. Whole numbers may be positions, so those of most kinds are spread over it."""
    if not isinstance(value, np.ndarray) or value.dtype.kind not in "fiu":
        return value
    return within_range(value, known, spreads=kind == "normal" or (value.dtype.kind != "f" and kind != "ends"))


def _dividing(value: Value, *, is_plain: bool) -> Value:
    """Return numbers by which integers can be divided. A division of the least one by -1 ends some engines, too."""
    if not isinstance(value, np.ndarray):
        return value
    ends = (0,) if is_plain or value.dtype.kind == "u" else (0, -1)
    return np.where(np.isin(value, ends), np.asarray(_DIVISOR, value.dtype), value)


def _scaling(value: Value) -> Value:
    """Return numbers by which fractions can be scaled: positive and finite ones."""
    if not isinstance(value, np.ndarray):
        return value
    sizes = np.abs(value)
    with np.errstate(invalid="ignore"):
        return np.where(is_finite(sizes) & (sizes > 0), sizes, np.ones((), value.dtype))


def _number(value: Array) -> Array:
    """Return 0 in place of NaN: the specification does not say which integer it becomes, nor where it stands."""
    return np.where(np.asarray(value == value), value, np.zeros((), value.dtype))


def _bounded(value: Array) -> Array:
    """Return 0 in place of infinities."""
    return np.where(is_finite(value) | np.asarray(value != value), value, np.zeros((), value.dtype))


def _within(base: Value, drawn: Value) -> Value:
    """Return drawn numbers that are no larger than those of `base`, and around them where they are ordinary."""
    if drawn is base or not isinstance(base, np.ndarray) or not isinstance(drawn, np.ndarray):
        return drawn
    if base.dtype.kind != "f" or base.shape != drawn.shape or not base.size:
        return drawn
    with np.errstate(invalid="ignore"):
        most = np.abs(base[np.isfinite(base)]).max(initial=1.0)
        fits = np.abs(drawn) <= most
        around = np.clip(base + np.where(fits, drawn, 0.5), -most, most)
    # Every other box is where it was, so that some of them are boxes at all.
    rows = np.arange(base.size).reshape(base.shape) // (base.shape or (1,))[-1] % 2 == 0
    return np.where(fits & rows, drawn, around).astype(base.dtype)
