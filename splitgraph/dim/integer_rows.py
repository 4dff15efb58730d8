"""Rows of a linear system over the integers: kept in lowest terms, changed only by steps that keep every solution.

A row is a tuple with one coefficient for each column (variable) and has a constant beside the tuple. An inequality
says `row * x + constant >= 0`, an equality says `row * x + constant == 0`.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import gcd
from operator import neg
from typing import Literal

Row = tuple[int, ...]
# Whether a row is an equality, its constant, and the row.
Described = tuple[bool, int, Row]
# The same with the columns that have a coefficient, each with it.
_Entries = tuple[bool, int, list[tuple[int, int]]]
# The same with colours of columns: an equality or not, the constant, and each colour with its coefficient.
_Seen = tuple[bool, int, tuple[tuple[int, int], ...]]

# More alike columns than this are taken as they stand. So many are interchangeable in practice, as symbols with equal
# bounds.
MOST_TRIES = 6
# A row and its constant.
Known = tuple[Row, int]
# A step that removed a variable: its kind, the column, and the rows from which its value follows. It is between the
# bounds, or solves the equality; or a new variable replaced it.
Step = tuple[Literal["bounds", "equality", "replaced"], int, list[Known]]


class NoSolution(Exception):
    """The system certainly has no integer solution."""


class Rows:
    """Equalities and inequalities over a fixed number of columns.

    `inequalities` maps a left side to its smallest constant, so that only the tightest inequality of each left side is
    kept. `trail` lists the steps that removed variables, for `solution_from`. `ranks` is None until `put_in_order`.
    """

    __slots__ = ("equalities", "inequalities", "ranks", "trail", "width")

    def __init__(self, width: int) -> None:
        self.width = width
        self.equalities: list[Known] = []
        self.inequalities: dict[Row, int] = {}
        self.trail: list[Step] = []
        self.ranks: list[int] | None = None

    def copy(self) -> Rows:
        """Return the same rows and ranks, without the trail."""
        other = Rows(self.width)
        other.equalities = self.equalities.copy()
        other.inequalities = self.inequalities.copy()
        other.ranks = self.ranks
        return other

    def add_equality(self, row: Row, constant: int) -> None:
        """Add `row * x + constant == 0`; raises NoSolution where the gcd of the row does not divide the constant."""
        divisor = gcd(*row)
        if divisor == 0:
            if constant:
                raise NoSolution
            return
        if divisor > 1:
            if constant % divisor:
                raise NoSolution
            row = tuple([coefficient // divisor for coefficient in row])
            constant //= divisor
        self.equalities.append((row, constant))

    def add_inequality(self, row: Row, constant: int) -> None:
        """Add `row * x + constant >= 0`; raises NoSolution where the opposite inequality leaves no integer."""
        divisor = gcd(*row)
        if divisor != 1:
            if divisor == 0:
                if constant < 0:
                    raise NoSolution
                return
            row = tuple([coefficient // divisor for coefficient in row])
            constant //= divisor
        inequalities = self.inequalities
        known = inequalities.get(row)
        if known is not None and known <= constant:
            return
        inequalities[row] = constant
        opposite = tuple(map(neg, row))
        room = inequalities.get(opposite)
        if room is None or room + constant > 0:
            return
        if room + constant < 0:
            raise NoSolution
        # Both inequalities stay until the equality is solved, so that a weaker one cannot come back.
        self.equalities.append((row, constant))

    def solve_equality(self, index: int, column: int) -> None:
        """Remove the equality and the variable of the column, whose coefficient there is the smallest.

        A coefficient of 1 or -1 is solved for. Otherwise the other coefficients are first reduced by the smallest one,
        as in Euclid's algorithm; the equality then stays, with smaller coefficients.
        """
        row, constant = self.equalities[index]
        if row[column] in (1, -1):
            del self.equalities[index]
            self._substitute(column, row, constant)
        else:
            self._reduce(column, row)

    def _substitute(self, column: int, row: Row, constant: int) -> None:
        sign = row[column]
        equalities = [known for known in self.equalities if known[0][column]]
        inequalities = self._take_all(column)
        self.trail.append(("equality", column, [(row, constant)]))
        self.equalities = [known for known in self.equalities if not known[0][column]]
        for rows, add in ((equalities, self.add_equality), (inequalities, self.add_inequality)):
            for other, bound in rows:
                factor = other[column] * sign
                add(tuple([x - factor * y for x, y in zip(other, row, strict=True)]), bound - factor * constant)

    def _take_all(self, column: int) -> list[Known]:
        """Remove and return the inequalities on a variable."""
        taken = [known for known in self.inequalities.items() if known[0][column]]
        for row, _ in taken:
            del self.inequalities[row]
        return taken

    def _reduce(self, column: int, row: Row) -> None:
        """Replace x by x' - (sum of quotient * other variable).

        The new variable takes every integer exactly when the old one does. The nearest quotients leave remainders of
        at most half the coefficient.
        """
        pivot = row[column]
        # (2a + p) // 2p is a/p rounded to the nearest integer.
        quotients = [(2 * coefficient + pivot) // (2 * pivot) for coefficient in row]
        quotients[column] = 0
        self.trail.append(("replaced", column, [(tuple(quotients), 0)]))
        # The common divisors and the opposite rows do not change, so no row needs to be normalised again.
        self.equalities = [(_changed(other, column, quotients), bound) for other, bound in self.equalities]
        self.inequalities = {_changed(other, column, quotients): bound for other, bound in self.inequalities.items()}

    def sides(self, column: int) -> tuple[list[Known], list[Known]]:
        """Return the inequalities that bound the variable from below, and those that bound it from above."""
        lower, upper = [], []
        for known in self.inequalities.items():
            coefficient = known[0][column]
            if coefficient > 0:
                lower.append(known)
            elif coefficient < 0:
                upper.append(known)
        return lower, upper

    def eliminate(self, column: int, dark: bool = False) -> None:
        """Replace all inequalities on the variable by the sum of each lower and upper bound (Fourier-Motzkin).

        The rest has a solution if the system had one. If `dark`, the system has a solution if the rest has one: the
        distance of each two bounds is large enough that an integer is always between them.
        """
        lower, upper = self.sides(column)
        self.trail.append(("bounds", column, self._take_all(column)))
        for low, low_constant in lower:
            a = low[column]
            for high, high_constant in upper:
                b = -high[column]
                margin = (a - 1) * (b - 1) if dark else 0
                if a == 1 == b:
                    row = tuple([x + y for x, y in zip(low, high, strict=True)])
                else:
                    row = tuple([b * x + a * y for x, y in zip(low, high, strict=True)])
                self.add_inequality(row, b * low_constant + a * high_constant - margin)

    def forget(self, columns: list[int]) -> None:
        """Remove variables that have only lower or only upper bounds, and these bounds: a value always exists."""
        for column in columns:
            self.trail.append(("bounds", column, self._take_all(column)))

    def rank(self, column: int) -> int:
        """Return the place of the column by structure; the columns must be in order."""
        assert self.ranks is not None
        return self.ranks[column]

    def put_in_order(self) -> None:
        """Rank the columns and sort the rows by structure, so that a choice by rank is the same for every numbering.

        Rows that are made later come in an order that follows from this one, and need no sorting.
        """
        described = [(False, constant, row) for row, constant in self.inequalities.items()]
        for row, constant in self.equalities:
            described += [(True, constant, row), (True, -constant, tuple(map(neg, row)))]
        order = structural_order(described, self.width)
        self.ranks = [0] * self.width
        for rank, column in enumerate(order):
            self.ranks[column] = rank

        def in_order(known: tuple[Row, int]) -> tuple[Row, int]:
            return tuple([known[0][column] for column in order]), known[1]

        def without_sign(known: tuple[Row, int]) -> tuple[Row, int]:
            return max(in_order(known), in_order((tuple(map(neg, known[0])), -known[1])))

        self.inequalities = dict(sorted(self.inequalities.items(), key=in_order))
        self.equalities.sort(key=without_sign)


def _changed(row: Row, column: int, quotients: list[int]) -> Row:
    factor = row[column]
    return tuple([x - factor * q for x, q in zip(row, quotients, strict=True)]) if factor else row


def solution_from(trail: list[Step], width: int, prefer: str) -> list[int] | None:
    """Return a value for each column, found by undoing the steps from the last to the first. Return None if there is no
    integer between the bounds of a variable.

    `prefer` says which value between its bounds a variable gets: "low", "high" or "near" (to zero).
    """
    values = [0] * width
    for kind, column, rows in reversed(trail):
        if kind == "bounds":
            value = _between(rows, column, values, prefer)
            if value is None:
                return None
            values[column] = value
            continue
        row, constant = rows[0]
        total = sum([x * y for x, y in zip(row, values, strict=True)])
        if kind == "replaced":
            # The value found is that of the new variable, which `_reduce` put in place of the old one.
            values[column] -= total
        else:
            # `row * x + constant == 0`, and the coefficient of the column is 1 or -1.
            others = total - row[column] * values[column]
            values[column] = -row[column] * (others + constant)
    return values


def _between(rows: list[Known], column: int, values: list[int], prefer: str) -> int | None:
    """Return a value for a column between its bounds, which follow from the values of the others; None if none is."""
    low: int | None = None
    high: int | None = None
    for row, constant in rows:
        rest = constant + sum([x * y for x, y in zip(row, values, strict=True)]) - row[column] * values[column]
        coefficient = row[column]
        if coefficient > 0:
            bound = -(rest // coefficient)
            low = bound if low is None or bound > low else low
        else:
            bound = rest // -coefficient
            high = bound if high is None or bound < high else high
    if low is not None and high is not None and low > high:
        return None
    if prefer == "near" or low is None or high is None:
        nearest = 0 if low is None else max(low, 0)
        return nearest if high is None else min(nearest, high)
    return low if prefer == "low" else high


# The order of the columns --------------------------------------------------------------------------------------------


# Columns are told apart by the rows they are in, and rows by their columns, until nothing more can be told apart
# (colour refinement, as in tests of graph isomorphism). Among columns that are still alike, each is tried as the first
# one, and the one that gives the smallest description of the system is taken. If two give the same description, the
# system looks the same either way.


def structural_order(rows: Sequence[Described], width: int) -> list[int]:
    """Return the columns that rows use, in an order that depends on the structure of the system only, not on how its
    variables are numbered. An equality must be given with both signs.
    """
    used = [column for column in range(width) if any(row[column] for _, _, row in rows)]
    entries = [(equal, const, [(column, row[column]) for column in used if row[column]]) for equal, const, row in rows]
    colours, _ = _refined(entries, dict.fromkeys(used, 0))
    while alike := _first_alike(colours):
        if len(alike) > MOST_TRIES:
            places = {column: place for place, column in enumerate(alike)}
            colours, _ = _refined(entries, {c: len(alike) * colour + places.get(c, 0) for c, colour in colours.items()})
            continue
        tries = [
            _refined(entries, {other: 2 * colour + (other != column) for other, colour in colours.items()})
            for column in alike
        ]
        colours, _ = min(tries, key=lambda tried: tried[1])
    return sorted(colours, key=colours.__getitem__)


def _first_alike(colours: dict[int, int]) -> list[int]:
    """Return the columns of the first colour that several have; none if each has its own."""
    of_colour: dict[int, list[int]] = {}
    for column, colour in colours.items():
        of_colour.setdefault(colour, []).append(column)
    return of_colour[min(shared)] if (shared := [c for c, columns in of_colour.items() if len(columns) > 1]) else []


def _refined(rows: Sequence[_Entries], colours: dict[int, int]) -> tuple[dict[int, int], list[_Seen]]:
    """Return colours of the columns, as fine as the rows tell them apart, and a description of the system by
    colours.
    """
    classes = len(set(colours.values()))
    while True:
        row_keys = [
            (is_equality, constant, tuple(sorted([(colours[column], value) for column, value in entry])))
            for is_equality, constant, entry in rows
        ]
        description = sorted(row_keys)
        if classes == len(colours):
            return colours, description
        ranks = {key: rank for rank, key in enumerate(description)}
        seen: dict[int, list[tuple[int, int]]] = {column: [] for column in colours}
        for key, (_, _, entry) in zip(row_keys, rows, strict=True):
            for column, value in entry:
                seen[column].append((ranks[key], value))
        column_keys = {column: (colours[column], tuple(sorted(seen[column]))) for column in colours}
        ranks_of_columns = {key: rank for rank, key in enumerate(sorted(set(column_keys.values())))}
        colours = {column: ranks_of_columns[key] for column, key in column_keys.items()}
        if len(ranks_of_columns) == classes:
            return colours, description
        classes = len(ranks_of_columns)
