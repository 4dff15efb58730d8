"""Draw the constants of a region at several elements at once, and the greatest element of an axis at a position: one
model may treat `x[0] == 3` together with `x[1] == 5`, or `ArgMax(x) == 700`, in another way.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx

from splitgraph.model.schemas import kinds
from splitgraph.verification.models.dependence import inputs_reaching
from splitgraph.verification.regions.drawing.limits import in_type, is_compared
from splitgraph.verification.regions.drawing.repeating import chosen
from splitgraph.verification.regions.drawing.rows import Models
from splitgraph.verification.regions.finding.constants import held_constants
from splitgraph.verification.values import Array, Value

# Of constants with so many elements at most, so many numbers meet, in so many sets of values: in every other set those
# that one model alone has. Larger inputs hold many combinations at once.
_FEW, _MOST, _SETS = 4, 12, 128
_LARGE, _FEW_SETS = 2**8, 8
# So many positions are tried, along axes of at least this length: shorter ones meet all combinations of few numbers.
_MOST_POSITIONS, _SHORT = 24, 4
_PEAKING = kinds.ARG_REDUCES | {"Hardmax", "TopK"}


def draw_several(models: Models, free: Mapping[str, Array], rng: np.random.Generator) -> Iterator[dict[str, Value]]:
    """Yield inputs whose elements are constants of the region, in any order."""
    held = [_compared(*model) for model in models]
    every = [array for side in held for array in side]
    own = [array for array in every if not all(any(np.array_equal(array, other) for other in side) for side in held)]
    pools: dict[str, list[Array]] = {}
    for name, value in free.items():
        both = [_numbers(arrays, value) for arrays in (own, every)]
        pools |= {name: [pool for pool in both if pool.size]} if both[1].size else {}
    elements, numbers = sum(free[name].size for name in pools), sum(both[-1].size for both in pools.values())
    for case in range(_SETS if elements <= _LARGE else _FEW_SETS) if min(elements, numbers) > 1 else ():
        yield {name: chosen(both[case % len(both)], free[name].shape, rng) for name, both in pools.items()}


def _compared(model: onnx.ModelProto, folder: Path) -> list[Array]:
    few = (one for one in held_constants(model) if one.size <= _FEW and is_compared(one))
    return [one.elements(folder).reshape(-1) for one in few]


def _numbers(arrays: Sequence[Array], value: Array) -> Array:
    """Return the numbers, or texts, of some constants in the type of an input."""
    converted = (in_type(array, value.dtype) for array in arrays)
    found = [number for array in converted if array is not None for number in array.tolist()]
    return np.array(list(dict.fromkeys(found))[:_MOST], value.dtype)


def draw_peaks(models: Models, free: Mapping[str, Array], numbers: Iterable[float]) -> Iterator[dict[str, Value]]:
    """Yield inputs whose greatest, or least, element stands at the whole numbers among those of the region."""
    names = set[str]().union(*(inputs_reaching(model, _PEAKING) for model, _ in models)) & free.keys()
    near = (int(number) + step for number in numbers if float(number).is_integer() for step in (0, 1, -1))
    places = list(dict.fromkeys(place for place in near if place >= 0))
    for name in sorted(names):
        value = free[name]
        long = [axis for axis, length in enumerate(value.shape) if length > _SHORT and value.dtype.kind in "fiu"]
        for axis in long:
            for place in [place for place in places if place < value.shape[axis]][:_MOST_POSITIONS]:
                for others in (0, 1):
                    made = np.full_like(value, others)
                    np.moveaxis(made, axis, 0)[place] = 1 - others
                    yield {name: made}
