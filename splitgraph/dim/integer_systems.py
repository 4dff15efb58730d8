"""Do integers exist that satisfy linear equalities and inequalities? The Omega test (W. Pugh, 1991), with a limit.

1. Equalities are solved over the integers. Variables are eliminated from the inequalities where that loses nothing.
2. What is left falls into independent parts. Each is eliminated to the end, as if a variable could have any rational
   value between its bounds. A contradiction is one of the part too. Without one, going back through the steps often
   gives integers.
3. What is still open is split into cases that are systems with a variable less: the values of a left side between two
   constants, or the dark shadow of a variable and the values near its bounds.

Why the answer depends neither on the order of the constraints nor on the numbers of the variables: without a limit
every question is decided, and an answer is never wrong. With a limit the steps must be the same steps. So each choice
goes by structure; where two choices look alike, the columns are ranked by structure first (`structural_order`); and
steps are counted before they are made.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from operator import neg

from splitgraph.dim.integer_rows import Known, NoSolution, Row, Rows, solution_from

# The coefficient of each variable, and a constant.
Linear = tuple[Mapping[int, int], int]
# The same in a row.
_Written = tuple[tuple[tuple[int, int], ...], int]

_REMEMBERED = 4096
# How far bounds of rational numbers are moved to one that integers reach.
_MOST_TIGHTENED = 8


def has_solution(equalities: Iterable[Linear], inequalities: Iterable[Linear], limit: int) -> bool | None:
    """Return whether integers exist for which every equality is 0 and every inequality is at least 0.

    A linear expression is a mapping from variables (any ints) to coefficients, and a constant. `limit` is how many new
    inequalities and cases the question may make. None where that is not enough; True and False are certain.
    """
    return _decided(_written(equalities), _written(inequalities), limit)


def _written(linears: Iterable[Linear]) -> tuple[_Written, ...]:
    return tuple([(tuple(terms.items()), constant) for terms, constant in linears])


@lru_cache(_REMEMBERED)
def _decided(equalities: Sequence[_Written], inequalities: Sequence[_Written], limit: int) -> bool | None:
    """Remembered, since the layers of a model ask the same of symbols with other names."""
    try:
        return _decide(_read(equalities, inequalities, {}), Steps(limit))
    except NoSolution:
        return False
    except LimitReached:
        return None


def _read(equalities: Sequence[_Written], inequalities: Sequence[_Written], columns: dict[int, int]) -> Rows:
    """Return the rows; columns: takes the column of each variable."""
    for terms, _ in (*equalities, *inequalities):
        for variable, _ in terms:
            columns.setdefault(variable, len(columns))
    system = Rows(len(columns))
    for linear, add in ((equalities, system.add_equality), (inequalities, system.add_inequality)):
        for terms, constant in linear:
            row = [0] * len(columns)
            for variable, coefficient in terms:
                row[columns[variable]] = coefficient
            add(tuple(row), constant)
    return system


def _decide(system: Rows, steps: Steps) -> bool:
    try:
        eliminate(system, steps, exactly=True)
        if not system.inequalities:
            return True
        if system.ranks is None:
            system.put_in_order()
        open_parts = [part for part in _independent_parts(system) if not _finds_integers(part, steps)]
    except NoSolution:
        return False
    return all(_decide_by_cases(part, steps) for part in open_parts)


def _independent_parts(system: Rows) -> list[Rows]:
    """Return systems of which no two have a variable in common, small ones first; their columns are in the order of
    ranks.
    """
    groups: list[tuple[set[int], list[Known]]] = []
    for known in system.inequalities.items():
        columns = {column for column, coefficient in enumerate(known[0]) if coefficient}
        rows = [known]
        apart = []
        for group in groups:
            if group[0].isdisjoint(columns):
                apart.append(group)
            else:
                columns |= group[0]
                rows = group[1] + rows
        groups = [*apart, (columns, rows)]
    groups.sort(key=lambda group: len(group[1]))
    return [_part(system, columns, rows) for columns, rows in groups]


def _part(system: Rows, columns: set[int], rows: list[Known]) -> Rows:
    order = sorted(columns, key=system.rank)
    part = Rows(len(order))
    part.inequalities = {tuple([row[column] for column in order]): constant for row, constant in rows}
    part.ranks = list(range(len(order)))
    return part


def _finds_integers(system: Rows, steps: Steps) -> bool:
    """Return True if the system has a solution, False if that is open. Raise NoSolution if the system has none even
    with rational values between the bounds.
    """
    relaxed = system.copy()
    eliminate(relaxed, steps, exactly=False)
    return any(solution_from(relaxed.trail, relaxed.width, prefer) is not None for prefer in ("near", "low", "high"))


def _decide_by_cases(system: Rows, steps: Steps) -> bool:
    """Split a system in which every elimination would lose something, in the way that takes fewer steps."""
    count, left_side = _narrowest(system)
    cost, column, near, largest = _cheapest_shadow(system)
    if 0 < count <= cost:
        return _has_case(system, [(left_side, count)], steps)
    if _has_dark_shadow(system, column, steps):
        return True
    return _has_case(system, [(known, _missed(known[0][column], largest)) for known in near], steps)


def _has_case(system: Rows, cases: list[tuple[Known, int]], steps: Steps) -> bool:
    """Return whether the system has a solution in which a left side has one of as many values, the smallest ones."""
    for (row, constant), count in cases:
        for value in range(count):
            steps.take(1)
            case = system.copy()
            case.add_equality(row, constant - value)
            if _decide(case, steps):
                return True
    return False


def _has_dark_shadow(system: Rows, column: int, steps: Steps) -> bool:
    lower, upper = system.sides(column)
    steps.take(len(lower) * len(upper))
    dark = system.copy()
    try:
        dark.eliminate(column, dark=True)
    except NoSolution:
        return False
    return _decide(dark, steps)


def _narrowest(system: Rows) -> tuple[int, Known]:
    """Return the left side with the fewest values between opposite inequalities, and their number; 0 if there is
    none.
    """
    fewest = 0
    narrowest: Known = ((), 0)
    for row, constant in system.inequalities.items():
        room = system.inequalities.get(tuple(map(neg, row)))
        if room is not None and (not fewest or room + constant < fewest - 1):
            fewest, narrowest = room + constant + 1, (row, constant)
    return fewest, narrowest


def _cheapest_shadow(system: Rows) -> tuple[int, int, list[Known], int]:
    """Return the variable whose elimination takes the fewest steps: (steps, variable, its bounds on the side with fewer
    cases, its largest coefficient on the other side).
    """
    choices = []
    for column in sorted(range(system.width), key=system.rank):
        lower, upper = system.sides(column)
        for near, far in ((lower, upper), (upper, lower)):
            largest = max([abs(row[column]) for row, _ in far])
            missed = sum([_missed(row[column], largest) for row, _ in near])
            choices.append((len(lower) * len(upper) + missed, column, near, largest))
    return min(choices, key=lambda choice: choice[0])


def _missed(coefficient: int, largest: int) -> int:
    """At how many values from a bound on the dark shadow may miss solutions.

    `largest` is the largest coefficient that the variable has in a bound on the other side.
    """
    near = abs(coefficient)
    return (near * largest - near - largest) // largest + 1


def bounds_of(
    value: Linear, equalities: Sequence[Linear], inequalities: Sequence[Linear], limit: int
) -> tuple[int | None, int | None] | None:
    """Return (least, most) of a linear expression, each None if it is unbounded.

    The bounds hold for all integers that satisfy the constraints. Within the limit they are reached, if they are at
    most _MOST_TIGHTENED from the bounds of rational numbers. Return None if no integers satisfy the constraints, and
    (None, None) beyond the limit.
    """
    negated: Linear = {variable: -coefficient for variable, coefficient in value[0].items()}, -value[1]
    bounds = _rational_bounds(value, negated, equalities, inequalities, limit)
    if bounds is None:
        return None
    low, high = bounds
    least = None if low is None else _reached(low, negated, equalities, inequalities, limit)
    most = None if high is None else _reached(-high, value, equalities, inequalities, limit)
    return least, None if most is None else -most


def _reached(
    low: int, negated: Linear, equalities: Sequence[Linear], inequalities: Sequence[Linear], limit: int
) -> int:
    """Return the lower bound of an expression, made larger while the expression cannot be as small as that."""
    for bound in range(low, low + _MOST_TIGHTENED):
        at_most = negated[0], negated[1] + bound
        if has_solution(equalities, [*inequalities, at_most], limit) is not False:
            return bound
    return low + _MOST_TIGHTENED


def _rational_bounds(
    value: Linear, negated: Linear, equalities: Sequence[Linear], inequalities: Sequence[Linear], limit: int
) -> tuple[int | None, int | None] | None:
    """Return the bounds that are left where everything else is eliminated as if it were any rational number."""
    least, most = _UNLIKE_ANY
    # One variable is at least the expression, and another at most.
    apart = [({**negated[0], least: 1}, negated[1]), ({**value[0], most: -1}, value[1])]
    columns: dict[int, int] = {}
    try:
        system = _read(_written(equalities), _written([*apart, *inequalities]), columns)
        system.put_in_order()
        kept = frozenset((columns[least], columns[most]))
        eliminate(system, Steps(limit), exactly=False, kept=kept)
    except NoSolution:
        return None
    except LimitReached:
        return None, None
    lows = [-(c // row[columns[least]]) for row, c in system.inequalities.items() if _speaks_of(row, columns[least])]
    highs = [c // -row[columns[most]] for row, c in system.inequalities.items() if _speaks_of(row, columns[most])]
    return max(lows, default=None), min(highs, default=None)


def _speaks_of(row: Row, column: int) -> bool:
    return bool(row[column]) and row.count(0) == len(row) - 1


# Variables that no caller uses.
_UNLIKE_ANY = (-(1 << 40), -(1 << 40) - 1)


# Elimination of variables --------------------------------------------------------------------------------------------


class LimitReached(Exception):
    """The question needs more steps than it may take."""


class Steps:
    """How many more new inequalities one question may make."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, count: int) -> None:
        """Count steps before the work is done: where the limit ends the work must not depend on the order of the
        work.
        """
        if count > self.left:
            raise LimitReached
        self.left -= count


def eliminate(system: Rows, steps: Steps, exactly: bool, kept: Collection[int] = ()) -> None:
    """Remove variables until none is left. exactly: remove only variables that always have a value if the others have
    one; without it, the columns must be in order.
    """
    while True:
        if system.equalities:
            _solve_an_equality(system)
        elif not system.inequalities or not _eliminate_one(system, steps, exactly, kept):
            return


def _solve_an_equality(system: Rows) -> None:
    """Take the smallest coefficient, and of those the one whose variable makes the fewest new terms."""
    smallest = min([min([abs(x) for x in row if x]) for row, _ in system.equalities])
    choices = [
        (index, column)
        for index, (row, _) in enumerate(system.equalities)
        for column, coefficient in enumerate(row)
        if coefficient == smallest or coefficient == -smallest
    ]
    if len(choices) > 1:
        choices = _fewest_terms(system, choices)
        if len(choices) > 1:
            if system.ranks is None:
                # This changes the places of equalities, so that the choice is made again.
                system.put_in_order()
                return
            choices.sort(key=lambda choice: (system.rank(choice[1]), choice[0]))
    system.solve_equality(*choices[0])


def _fewest_terms(system: Rows, choices: list[tuple[int, int]]) -> list[tuple[int, int]]:
    rows = [row for row, _ in system.equalities] + list(system.inequalities)
    columns = list(zip(*rows, strict=True))
    kept: list[tuple[int, int]] = []
    best: tuple[int, int, int] | None = None
    for index, column in choices:
        row = rows[index]
        values = columns[column]
        others = len(row) - row.count(0) - 1
        key = ((len(values) - values.count(0) - 1) * others, max(row) - min(row), max(map(abs, values)))
        if best is None or key < best:
            best, kept = key, [(index, column)]
        elif key == best:
            kept.append((index, column))
    return kept


def _eliminate_one(system: Rows, steps: Steps, exactly: bool, kept: Collection[int]) -> bool:
    """Eliminate all variables that have bounds on one side only, or else the one that makes the fewest new
    inequalities. Return False if no variable can be eliminated.
    """
    free, choices = [], []
    best: tuple[bool, int, int, int] | None = None
    for column, values in enumerate(zip(*system.inequalities, strict=True)):
        if column in kept:
            continue
        least, most = min(values), max(values)
        if least >= 0 or most <= 0:
            if least or most:
                free.append(column)
            continue
        inexact = most != 1 and least != -1
        if free or (inexact and exactly):
            continue
        lower = len([x for x in values if x > 0])
        upper = len(values) - values.count(0) - lower
        # Each pair of a lower and an upper bound makes an inequality, and the bounds themselves go.
        made = lower * upper
        key = (inexact, made - lower - upper, made, most - least)
        if best is None or key < best:
            best, choices = key, [column]
        elif key == best:
            choices.append(column)
    if free:
        # Whatever the order, the same inequalities are left. But the values that follow from the trail may differ.
        system.forget(free if exactly else sorted(free, key=system.rank))
        return True
    if best is None:
        return False
    if len(choices) > 1 and system.ranks is None:
        system.put_in_order()
    steps.take(best[2])
    system.eliminate(min(choices, key=system.rank) if len(choices) > 1 else choices[0])
    return True
