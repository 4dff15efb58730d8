"""Draw other values for the inputs of a model that say lengths, axes and offsets: the amounts.

The numbers are those around 0, around the lengths of the inputs, and around constants that may cut something off where
two models differ. A model need not run with any of them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import onnx

from splitgraph.conversion.inlining import without_functions
from splitgraph.splits.variadic_split_1 import is_variadic_function
from splitgraph.verification.inputs.input_maker import InputMaker
from splitgraph.verification.models.dependence import amount_inputs
from splitgraph.verification.values import Array, Value, tensors_of

# A longer list holds data and no amounts.
_MOST_ELEMENTS = 16
_USUAL = (0, 1, -1, 2, -2, 3, -3)
# An amount may repeat all elements of the inputs, up to so many.
_LARGEST = 2**24
# Amounts are drawn for so many of the accepted inputs, and for inputs that are longer than a limit: for so many limits,
# and by so much.
_MOST_BASES, _MOST_LONGER, _LONGER = 2, 4, 2


def with_other_amounts(
    maker: InputMaker, model: onnx.ModelProto, accepted: Sequence[Mapping[str, Value]], limits: Sequence[float]
) -> Iterator[dict[str, Value]]:
    """Yield inputs that differ from accepted ones in a single amount.

    accepted: inputs that the model accepts. limits: constants of the nodes that differ. A model with a function that
    stands for a VariadicSplit gets none: the sum of its lengths has to be the dimension.
    """
    if any(map(is_variadic_function, model.functions)):
        return
    amounts = amount_inputs(without_functions(model))
    names = [maker.shared_name(name) for name in maker.varying() if name in amounts]
    if not names:
        return
    longer = (inputs for limit in limits[:_MOST_LONGER] for inputs in maker.reaching(int(abs(limit)) + _LONGER))
    for base in chain(accepted[:_MOST_BASES], longer):
        numbers = _numbers_for(base, limits)
        for name in names:
            value = base.get(name)
            if isinstance(value, np.ndarray) and value.dtype.kind in "if" and 0 < value.size <= _MOST_ELEMENTS:
                for other in _others(value, numbers):
                    yield {**base, name: other}


def _numbers_for(inputs: Mapping[str, Value], limits: Sequence[float]) -> list[float]:
    """Return the numbers that an amount may be: usual ones, and those around the limits and the lengths of inputs."""
    arrays = [array for value in inputs.values() for array in tensors_of(value)]
    lengths = dict.fromkeys(length for array in arrays for length in array.shape)
    around = (number + step for number in (*limits, *lengths) for step in (0, 1, -1))
    numbers = dict.fromkeys((*_USUAL, *around, *(-length for length in lengths)))
    largest = _LARGEST // max(sum(array.size for array in arrays), 1)
    return [number for number in numbers if abs(number) <= largest]


def _others(value: Array, numbers: Sequence[float]) -> Iterator[Array]:
    """Yield a list of amounts with one of the numbers at each of its places, one at a time."""
    yield from _beside_each_other(value)
    is_whole = value.dtype.kind == "i"
    for number in numbers:
        for place in range(value.size) if not is_whole or number == int(number) else ():
            made = value.copy()
            made.flat[place] = number
            yield made


def _beside_each_other(value: Array) -> Iterator[Array]:
    """Yield a list with two neighbours replaced by others of the same sum or product, which a node may demand."""
    for place in range(value.size - 1):
        one, other = value.flat[place : place + 2]
        for pair in ((other, one), (0, one + other), (one + other, 0), (1, one * other), (one * other, 1)):
            made = value.copy()
            made.flat[place : place + 2] = pair
            yield made
