"""Fill large values with few numbers: drawing, rounding and casting each element anew takes longer than running it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from splitgraph.verification.values import Array

# So many elements are drawn at most: a prime, so that the rows of a value do not all begin alike.
MOST_DRAWN = 65_537


def repeated(numbers: Array, shape: int | Sequence[int]) -> Array:
    """Return an array of a shape that holds some numbers again and again, as `np.resize` does; zeros for no numbers.

    The part that is filled is copied behind itself, so that few copies are made.
    """
    dims = (shape,) if isinstance(shape, int) else tuple(shape)
    size = math.prod(dims)
    if not numbers.size:
        return np.zeros(dims, numbers.dtype)
    made = np.empty(size, numbers.dtype)
    filled = min(numbers.size, size)
    made[:filled] = numbers.reshape(-1)[:filled]
    while filled < size:
        count = min(filled, size - filled)
        made[filled : filled + count] = made[:count]
        filled += count
    return made.reshape(dims)


def drawn_elements(draw: Callable[[int], Array], shape: Sequence[int]) -> Array:
    """Return an array of a shape whose elements are drawn, in a value of many elements again and again.

    draw: returns so many elements.
    """
    return repeated(draw(min(math.prod(shape), MOST_DRAWN)), shape)


def chosen(numbers: Array, shape: Sequence[int], rng: np.random.Generator) -> Array:
    """Return an array of a shape of some numbers in any order, in a value of many elements again and again."""
    return drawn_elements(lambda size: np.asarray(rng.choice(numbers, size)), shape)
