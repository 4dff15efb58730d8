"""Decide how much two runs may differ, if one of them computes operators with other arithmetic.

`rounding_tolerances` gives the tolerances for such a rewrite. `RoundingAllowance` allows more, where the measured
effect of rounding on the original model is larger (see `measure`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import onnx

from splitgraph.inference import infer_model
from splitgraph.model.scopes import scopes
from splitgraph.model.value_type import DTYPE_NAMES, UNKNOWN
from splitgraph.verification.comparison import HALF_TYPES, narrow_tolerances
from splitgraph.verification.models.model_files import nodes_within
from splitgraph.verification.values import Array, Value

# An element may differ by this many times the measured rounding effect on it. Rounding is random, and among a million
# elements some change little in every run: correct conversions differed by up to 7.7 times the effect in four runs,
# and by up to 5.4 times the effect in 16 runs.
EACH = 8.0
# The same for a whole output (root mean square), where chance averages out: correct conversions differed by 1.0 times.
TOGETHER = 2.0
# One in so many elements may by chance show no effect in any run (a term that is 0, a sine at its maximum). Such an
# element may differ by as much as the rest of the output changes (root mean square).
QUIET_BY_CHANCE = 2000
FLOATS = ("float16", "bfloat16", "float32", "float64")

# Operators that copy elements unchanged. Weights may be stored as float16 while nothing computes in float16.
COPYING = frozenset(
    {"Cast", "CastLike", "Concat", "Constant", "ConstantOfShape", "Expand", "Flatten", "Gather", "Identity", "Reshape"}
    | {"Slice", "Split", "Squeeze", "Tile", "Transpose", "Unsqueeze"}
)
# Rounding errors add up: 24 layers, each with a rewritten LayerNormalization, differ by 3.5 times the absolute
# tolerance of one operation.
_ADDED_UP = 4


def rounding_tolerances(model: onnx.ModelProto, rtol: float, atol: float) -> tuple[float, float]:
    """Return the tolerances (rtol, atol) for a model whose operators were rewritten as arithmetic.

    These are the given tolerances, or four times those of float16 or bfloat16 if the model computes in that type and
    they are larger. The types of the outputs do not matter.
    """
    computed = set(_computed_types(model))
    coarse = [narrow_tolerances(dtype) for dtype in HALF_TYPES if dtype in computed]
    widest = [max((tolerance[part] for tolerance in coarse), default=0.0) for part in (0, 1)]
    return max(rtol, _ADDED_UP * widest[0]), max(atol, _ADDED_UP * widest[1])


def _computed_types(model: onnx.ModelProto) -> Iterator[str | None]:
    """Yield the element types that a model computes in. The types in a function body vary from call to call, so that
    only those of its Casts count.
    """
    types = infer_model(model, fill=False).graphs
    for scope in scopes(model):
        if scope.location in types:
            nodes = (node for node in scope.nodes if node.op_type not in COPYING)
            yield from (types[scope.location].get(name, UNKNOWN).dtype for node in nodes for name in node.output)
    for function in model.functions:
        casts = (node for node in nodes_within(function.node) if node.op_type == "Cast")
        yield from (DTYPE_NAMES.get(a.i) for cast in casts for a in cast.attribute if a.name == "to")


@dataclass(slots=True)
class RoundingAllowance:
    """Holds the measured rounding effect on each element, and allows differences of a similar size.

    effects: the largest change of each element in any run, by case and output position; only floating-point tensors
    have effects. largest_ratio: of the elements that were allowed beyond the tolerances, the largest ratio of the
    difference to the rounding effect; None if no element needed an allowance.
    """

    effects: dict[tuple[int, int], Array] = field(default_factory=dict)
    largest_ratio: float | None = None

    def add(self, case: int, outputs: Sequence[Value], rounded: Sequence[Value]) -> None:
        """Record the outputs of the model on a case, and its outputs with other rounding."""
        for position, (plain, value) in enumerate(zip(outputs, rounded, strict=True)):
            if not _is_comparable(plain, value):
                continue
            with np.errstate(invalid="ignore"):
                effect = np.abs(value.astype(np.float64) - plain.astype(np.float64))
            # A change from or to NaN or infinity has no size.
            effect[~np.isfinite(effect)] = 0.0
            known = self.effects.get((case, position))
            self.effects[case, position] = effect if known is None else np.maximum(known, effect)

    def excuse(self, case: int, position: int, gap: Array, allowed: Array) -> npt.NDArray[np.bool_]:
        """Mark the elements of an output whose difference `gap` rounding explains, beyond the tolerance `allowed`.

        Each element is held to its own effect, except for the few that show no effect by chance. No element is excused
        if the output as a whole differs too much: that limit finds a mistake that changes every element as much as
        chance changes the worst one.
        """
        effect = self.effects.get((case, position))
        nowhere = np.zeros(gap.shape, dtype=np.bool_)
        if effect is None or not effect.any():
            return nowhere
        finite = np.isfinite(gap)
        excused = finite & (gap <= allowed + EACH * effect)
        touched = excused & ((gap > 0) | (effect > 0))
        with np.errstate(divide="ignore", invalid="ignore"):
            share = gap[touched] / (allowed[touched] + TOGETHER * effect[touched])
        if not touched.any() or np.mean(np.square(share)) > 1:
            return nowhere
        quiet = finite & ~excused
        if np.count_nonzero(quiet) * QUIET_BY_CHANCE <= gap.size:
            elsewhere = np.sqrt(np.mean(np.square(effect[effect > 0])))
            excused |= quiet & (gap <= allowed + elsewhere)
        used = excused & (gap > allowed) & ~quiet
        if used.any():
            ratio = float(((gap - allowed)[used] / effect[used]).max())
            self.largest_ratio = max(self.largest_ratio or 0.0, ratio)
        return np.asarray(excused)


def _is_comparable(plain: Value, rounded: Value) -> bool:
    return (
        isinstance(plain, np.ndarray)
        and isinstance(rounded, np.ndarray)
        and plain.dtype == rounded.dtype
        and plain.dtype.name in FLOATS
        and plain.shape == rounded.shape
    )
