"""Draw other lengths, axes and offsets for the inputs of a model that say these: numbers around 0, around the lengths
of the inputs, and around constants at which parts that differ may cut them off. A model need not run with any of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

import numpy as np
import onnx

from splitgraph.conversion.inlining import without_functions
from splitgraph.splits.variadic_split_1 import is_variadic_function
from splitgraph.verification.inputs.input_maker import InputMaker
from splitgraph.verification.models.dependence import amount_inputs
from splitgraph.verification.values import Array, Value, tensors_of

# A list of amounts has at most so many elements.
_MOST_ELEMENTS = 16
_USUAL = (0, 1, -1, 2, -2, 3, -3)
# An amount may repeat all elements of the inputs, up to so many.
_LARGEST = 2**24
# They are drawn beside so many accepted inputs, and beside inputs that are longer, by so much, than so many limits.
_MOST_BASES, _MOST_LONGER, _LONGER = 2, 4, 2


def with_other_amounts(
    maker: InputMaker, model: onnx.ModelProto, accepted: Sequence[Mapping[str, Value]], limits: Sequence[float]
) -> Iterator[dict[str, Value]]:
    """Yield inputs in which one of the amounts is another one.

    accepted: inputs that the model accepts. limits: constants of what differs. A function that stands for a
    VariadicSplit takes any lengths, and they are valid only if their sum is the dimension: then nothing is yielded.
    """
    if any(map(is_variadic_function, model.functions)):
        return
    amounts = amount_inputs(without_functions(model))
    names = [maker.shared_name(name) for name in maker.varying() if name in amounts]
    longer = (inputs for limit in limits[:_MOST_LONGER] for inputs in maker.reaching(int(abs(limit)) + _LONGER))
    for base in chain(accepted[:_MOST_BASES], longer) if names else ():
        arrays = [array for value in base.values() for array in tensors_of(value)]
        lengths = dict.fromkeys(length for array in arrays for length in array.shape)
        most = _LARGEST // max(sum(array.size for array in arrays), 1)
        around = (number + step for number in (*limits, *lengths) for step in (0, 1, -1))
        numbers = dict.fromkeys((*_USUAL, *around, *(-length for length in lengths)))
        for name in names:
            value = base.get(name)
            if isinstance(value, np.ndarray) and value.dtype.kind in "if" and 0 < value.size <= _MOST_ELEMENTS:
                others = _others(value, [number for number in numbers if abs(number) <= most])
                yield from ({**base, name: other} for other in others)


def _others(value: Array, numbers: Iterable[float]) -> Iterator[Array]:
    yield from _beside_each_other(value)
    is_whole = value.dtype.kind == "i"
    for number in numbers:
        for place in range(value.size) if not is_whole or number == int(number) else ():
            made = value.copy()
            made.flat[place] = number
            yield made


def _beside_each_other(value: Array) -> Iterator[Array]:
    """Yield two amounts side by side as others of the same sum or product, which may have to stay."""
    for place in range(value.size - 1):
        one, other = value.flat[place : place + 2]
        for pair in ((other, one), (0, one + other), (one + other, 0), (1, one * other), (one * other, 1)):
            made = value.copy()
            made.flat[place : place + 2] = pair
            yield made
