"""Interpolation along axes: the kernels of Resize and GridSample, and what they take of a tensor."""

from __future__ import annotations

from splitgraph.conversion.formula import Formula, Term

# How far a kernel reaches, in elements.
REACH = {"linear": 1, "cubic": 2}


def weights(formula: Formula, mode: str, distance: Term, cubic_coeff_a: float = -0.75) -> Term:
    """The weights of elements at a distance, by the triangular kernel or the cubic one of Keys; 0 out of reach."""
    distance = distance.size()
    one = formula.number(1, distance.dtype)
    if mode == "linear":
        return (one - distance).at_least(0)
    a = formula.number(cubic_coeff_a, distance.dtype)
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = (((distance - 5) * distance + 8) * distance - 4) * a
    reached = formula.where(distance < 2, far, formula.number(0, distance.dtype))
    return formula.where(distance < 1, near, reached)
