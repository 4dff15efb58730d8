"""Tell a difference that the rounding of constants makes: 1/3 as a weight, or the cosines of a Fourier transform.

A constant with all digits of its type stands for a number that has more. Where products of such constants cancel, they
leave what they were rounded by, in float64, too. So each one is moved by as much as it may have been rounded by, at
random, and a difference that is no larger than what that changes is rounding. Constants of few digits, such as 255 or
0.5, mean what they say. Where a model decides, a constant that moves decides otherwise: nothing is told of those.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import onnx

from splitgraph.verification.comparison import Comparison
from splitgraph.verification.models.model_files import elements_of
from splitgraph.verification.regions.judging.deciding import decides, have_same_type
from splitgraph.verification.values import Array, Value, tensors_of

# A constant is moved in so many ways, by half of the last place of float32. One that has its last 4 bits free is none
# that was rounded.
_WAYS, _HALF_PLACE, _FREE_BITS = 8, 2.0**-24, 4
# Constants of more elements are not moved.
_MOST_ELEMENTS = 2**18
# In float64, a difference is so many times what the constants change, and each side is so many times that off by what
# it rounds itself.
_TWICE, _ROUNDED_AGAIN = 2.0, 16.0


class MovedConstants(NamedTuple):
    """Both models in float64 with their rounded constants as inputs. inputs: for each of some inputs, these with the
    constants as they are, and then moved.
    """

    models: list[onnx.ModelProto]
    inputs: list[list[dict[str, Value]]]


def with_moved_constants(
    models: Sequence[onnx.ModelProto], wide: Sequence[onnx.ModelProto], inputs: Sequence[Mapping[str, Value]]
) -> MovedConstants | None:
    """Return models that read their constants; None without rounded ones, or where a model decides. wide: the models in
    float64. inputs: of these.
    """
    if any(map(decides, models)):
        return None
    opened, given = [], dict[str, Array]()
    for side, (model, other) in enumerate(zip(models, wide, strict=True)):
        rounded = {tensor.name for tensor in model.graph.initializer if _is_rounded(tensor)}
        free = onnx.ModelProto()
        free.CopyFrom(other)
        for tensor in [each for each in free.graph.initializer if each.name in rounded]:
            given[f"{side}.{tensor.name}"] = elements_of(tensor, None)
            free.graph.initializer.remove(tensor)
        for node in free.graph.node:
            node.input[:] = [f"{side}.{name}" if name in rounded else name for name in node.input]
        opened.append(free)
    if not given or sum(array.size for array in given.values()) > _MOST_ELEMENTS:
        return None
    for free in opened:
        free.graph.input.extend(
            onnx.helper.make_tensor_value_info(name, onnx.TensorProto.DOUBLE, array.shape)
            for name, array in given.items()
        )
    ways = [given, *_moved(given)]
    return MovedConstants(opened, [[{**own, **values} for values in ways] for own in inputs])


def _is_rounded(tensor: onnx.TensorProto) -> bool:
    """Return True for a constant of float32 of which some element has all digits."""
    if tensor.data_type != onnx.TensorProto.FLOAT or tensor.external_data:
        return False
    bits = elements_of(tensor, None).view(np.uint32)
    return bool((bits & (2**_FREE_BITS - 1)).any())


def _moved(given: Mapping[str, Array]) -> Iterator[dict[str, Array]]:
    rng = np.random.default_rng(len(given))
    for _ in range(_WAYS):
        yield {name: array * (1 + _HALF_PLACE * rng.choice((-1.0, 1.0), array.shape)) for name, array in given.items()}


def is_of_constants(
    outputs: Sequence[Sequence[Value]], answers: Sequence[Sequence[Sequence[Value]]], comparison: Comparison
) -> bool:
    """Return True if what differs is no more than what constants are rounded by. outputs: of both sides. answers: what
    both sides give in float64, with the constants as they are, and then moved.
    """
    arrays = [[[*_arrays(values)] for values in sides] for sides in (outputs, *answers)]
    if len({len(side) for sides in arrays for side in sides}) != 1:
        return False
    for place, pair in enumerate(zip(*arrays[0], strict=True)):
        exact, *moved = ([side[place] for side in sides] for sides in arrays[1:])
        others = (each for sides in (exact, *moved) for each in sides)
        if not have_same_type(*pair) or any(each.shape != pair[0].shape for each in others):
            return False
        differs = comparison.wrong(*pair)
        if not differs.any():
            continue
        if pair[0].dtype.kind != "f" or not all(np.isfinite(each[differs]).all() for each in (*pair, *exact)):
            return False
        changes = [np.abs(own - other) for ways in moved for own, other in zip(ways, exact, strict=True)]
        most = np.max(changes, axis=0)[differs]
        gap = np.abs(exact[0] - exact[1])[differs]
        rounding = [np.abs(own.astype(np.float64) - other)[differs] for own, other in zip(pair, exact, strict=True)]
        if (gap > _TWICE * most).any() or any((each > _ROUNDED_AGAIN * most).any() for each in rounding):
            return False
    return True


def _arrays(values: Sequence[Value]) -> Iterator[Array]:
    for value in values:
        yield from tensors_of(value)
