"""Interpolation: the kernels of Resize and GridSample, and images that are sampled at places known only at run time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce

from splitgraph.conversion.writing.formula import Formula, Term
from splitgraph.conversion.writing.node_at_boundary import Inexact
from splitgraph.deferred import np

# How far a kernel reaches, in elements.
REACH = {"linear": 1, "cubic": 2}


def weights(formula: Formula, mode: str, distance: Term, cubic_coeff_a: float = -0.75) -> Term:
    """Gives the weights of elements at a distance: by the triangular kernel, or by the cubic one of Keys. Beyond the
    kernel's reach they are 0.
    """
    distance = abs(distance)
    if mode == "linear":
        return (1 - distance).at_least(0)
    a = formula.number(cubic_coeff_a, distance.dtype)
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = (((distance - 5) * distance + 8) * distance - 4) * a
    return formula.where(distance < 1, near, formula.where(distance < 2, far, 0))


@dataclass(slots=True)
class Images:
    """Images of several channels, and how they continue beyond their borders.

    elements: [channels, images x elements of one]. sizes: of the axes of one image, int64 scalars. mode: "nearest",
    "linear" or "cubic". padding: "zeros", "border" or "reflection". aligned: the borders of an image are the centres of
    its outermost elements, and reflect there.
    """

    formula: Formula
    elements: Term
    sizes: Sequence[Term]
    mode: str
    padding: str = "zeros"
    aligned: bool = False

    def sample(self, first: Term, places: Sequence[Term], rank: int) -> Term:
        """Samples the images at places: [channels, ...].

        first: the index of the first element of the image in which each place lies, int64. places: the coordinate along
        each axis of an image, floating-point. All have `rank` dimensions and broadcast to those of the result.
        """
        if any(size.elements is not None and size.elements == 0 for size in self.sizes):
            raise Inexact("an image without elements has nothing to sample")
        inside, shares = [], []
        index, stride = first, self.formula.number(1)
        for axis in range(len(self.sizes))[::-1]:
            taken, share = self._taken(places[axis], axis, rank)
            if self.padding == "zeros":
                inside.append((taken > -1) & (taken < self.sizes[axis].cast(taken.dtype)))
            if self.padding == "reflection":
                taken = self._reflected(taken, axis)
            # The index must be within the image also where the place is NaN.
            index = index + taken.cast("int64").clipped(0, self.sizes[axis] - 1) * stride
            stride = stride * self.sizes[axis]
            shares += [] if share is None else [share]
        found = self.elements.take(index, 1)
        if shares:
            found = found * reduce(Term.__mul__, shares).cast(found.dtype)
        if inside:
            found = self.formula.where(reduce(Term.__and__, inside), found, 0)
        return found.reduced("ReduceSum", range(1, len(self.sizes) + 1)) if shares else found

    def _taken(self, place: Term, axis: int, rank: int) -> tuple[Term, Term | None]:
        """Gives the elements in reach along an axis, as whole numbers, and their weights. Each axis of an image adds an
        axis in front of the result. The nearest element (half to even) has no weight.
        """
        last = self.sizes[axis].cast(place.dtype) - 1
        if self.mode == "nearest":
            nearest = self.formula.node("Round", place)
            return (nearest.clipped(0, last) if self.padding == "border" else nearest), None
        if self.padding == "border":
            place = place.clipped(0, last)
        reach, axes = REACH[self.mode], [1] * len(self.sizes)
        axes[axis] = 2 * reach
        offsets = self.formula.number(np.arange(1 - reach, 1 + reach), place.dtype).reshape(*axes, *[1] * rank)
        whole = place.floor()
        return whole + offsets, weights(self.formula, self.mode, offsets - (place - whole))

    def _reflected(self, taken: Term, axis: int) -> Term:
        """Reflects whole numbers at the borders until they are within them."""
        low = self.formula.number(0 if self.aligned else -0.5, taken.dtype)
        span = self.sizes[axis].cast(taken.dtype) - (1 if self.aligned else 0)
        past = taken - low
        past = past - (past / (span * 2)).floor() * (span * 2)
        return self.formula.where(past > span, span * 2 - past, past) + low
