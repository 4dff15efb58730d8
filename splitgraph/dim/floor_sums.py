"""The one way to write a sum of floor quotients of the same numerator.

`c[0]*(Y//k) + c[1]*((Y + 1)//k) + ... + c[k-1]*((Y + k - 1)//k)` can be written in many ways, because the k quotients with equal
coefficients add up to Y, and every other one of them to a quotient by k/2 (Hermite's identity). The coefficients say everything: two
such sums are the same function of Y exactly when their c are equal. So c is taken apart again in one fixed way, coarse before
fine, each class of residues giving up the value that leaves the least behind.
"""

from __future__ import annotations

from collections.abc import Sequence


def decompose(coefficients: Sequence[int], levels: Sequence[int]) -> list[tuple[int, int, int]]:
    """Quotients (d, r, factor), meaning `factor*((Y + r)//d)`, whose sum the coefficients describe.

    coefficients: c as above. levels: ascending divisors of len(coefficients) that may be used, from 1 to len(coefficients).
    Scaling the coefficients by any integer scales the answer.
    """
    left = list(coefficients)
    found = []
    for divisor in levels:
        for residue in range(divisor):
            shared = _middle(left[residue::divisor])
            if shared:
                found.append((divisor, residue, shared))
                for place in range(residue, len(left), divisor):
                    left[place] -= shared
    return found


def _middle(values: Sequence[int]) -> int:
    """The median; of two in the middle the one nearer to 0, of opposite ones the one that the first value is not like."""
    ordered = sorted(values)
    low, high = ordered[(len(ordered) - 1) // 2], ordered[len(ordered) // 2]
    if low == -high:
        first = next((value for value in values if value), 0)
        return low if first > 0 else high
    return low if abs(low) < abs(high) else high
