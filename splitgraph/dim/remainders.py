"""The remainders of a value that follow from equalities, by integer elimination.

Equalities over the integers determine some values modulo a number: `N == 4*t` makes `N % 4` 0. Each equality is solved
for one variable; where no coefficient is 1, Euclid's algorithm on the coefficients makes one. The rest of the value
depends on free variables, which can be any integers. So the value is known modulo the greatest common divisor of their
coefficients.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import gcd

Linear = tuple[Mapping[int, int], int]


def known_remainder(value: Linear, equalities: Iterable[Linear]) -> tuple[int, int]:
    """(modulus, remainder) of the value; modulus 0 where the equalities leave one number, 1 where nothing is known.

    Each equality says that an expression is 0. Those that contradict the others are passed over.
    """
    rows = [_Row(value), *map(_Row, equalities)]
    waiting = rows[1:]
    while waiting:
        row = waiting.pop()
        if not row.terms:
            continue
        variable = min(row.terms, key=lambda name: (abs(row.terms[name]), name))
        if abs(row.terms[variable]) == 1:
            for other in (rows[0], *waiting):
                other.take_out(variable, row)
        elif row.const % gcd(*row.terms.values()) == 0:
            # x becomes x - sum(q*y): a change of variables that loses no integers, and makes coefficients smaller.
            quotients = {name: c // row.terms[variable] for name, c in row.terms.items() if name != variable}
            for other in (rows[0], *waiting, row):
                other.replace(variable, quotients)
            if len(row.terms) == 1:
                row.const //= row.terms[variable]
                row.terms[variable] = 1
            waiting.append(row)
    left = rows[0]
    modulus = gcd(*left.terms.values()) if left.terms else 0
    return modulus, left.const % modulus if modulus else left.const


class _Row:
    """A linear expression that is changed in place."""

    def __init__(self, linear: Linear) -> None:
        self.terms = {name: c for name, c in linear[0].items() if c}
        self.const = linear[1]

    def add(self, name: int, coefficient: int) -> None:
        total = self.terms.get(name, 0) + coefficient
        if total:
            self.terms[name] = total
        else:
            self.terms.pop(name, None)

    def take_out(self, variable: int, row: _Row) -> None:
        """Put what `row == 0` says in place of a variable whose coefficient there is 1 or -1."""
        factor = self.terms.get(variable, 0) * row.terms[variable]
        if factor:
            for name, coefficient in row.terms.items():
                self.add(name, -factor * coefficient)
            self.const -= factor * row.const

    def replace(self, variable: int, quotients: Mapping[int, int]) -> None:
        factor = self.terms.get(variable, 0)
        if factor:
            for name, quotient in quotients.items():
                self.add(name, -factor * quotient)
