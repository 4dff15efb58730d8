"""Do integers exist that satisfy linear equalities and inequalities? The Omega test (W. Pugh, 1991), with a limit.

1. Equalities are solved over the integers. Variables are eliminated from the inequalities where that loses nothing.
2. What is left falls into independent parts. Each is eliminated to the end, as if a variable could have any rational
   value between its bounds. A contradiction is one of the part too. Without one, going back through the steps often
   gives integers.
3. What is still open is split into cases that are systems with a variable less: the values of a left side between two
   constants, or the dark shadow of a variable and the values near its bounds.

Why the answer depends neither on the order of the constraints nor on the numbers of the variables: without a limit
every question is decided, and an answer is never wrong. With a limit the steps must be the same steps. So each choice
goes by structure; where two choices look alike, the columns are ranked by structure first (`integer_order`); and steps
are counted before they are made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from operator import neg

from splitgraph.dim.integer_elimination import LimitReached, Steps, eliminate
from splitgraph.dim.integer_order import Row
from splitgraph.dim.integer_rows import Known, NoSolution, Rows, solution_from

# The coefficient of each variable, and a constant.
Linear = tuple[Mapping[int, int], int]
# The same in a row.
_Written = tuple[tuple[tuple[int, int], ...], int]

_REMEMBERED = 4096
# How far bounds of rational numbers are moved to one that integers reach.
_MOST_TIGHTENED = 8


def has_solution(equalities: Iterable[Linear], inequalities: Iterable[Linear], limit: int) -> bool | None:
    """Whether integers exist for which every equality is 0 and every inequality is at least 0.

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
    """The rows; columns: takes the column of each variable."""
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
    """Systems of which no two have a variable in common, small ones first; their columns are in the order of ranks."""
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
    """Raises NoSolution where there is none even with rational values between the bounds; False where it is open."""
    relaxed = system.copy()
    eliminate(relaxed, steps, exactly=False)
    return any(solution_from(relaxed.trail, relaxed.width, prefer) is not None for prefer in ("near", "low", "high"))


def _decide_by_cases(system: Rows, steps: Steps) -> bool:
    """Splits a system in which every elimination would lose something, in the way that takes fewer steps."""
    count, left_side = _narrowest(system)
    cost, column, near, largest = _cheapest_shadow(system)
    if 0 < count <= cost:
        return _has_case(system, [(left_side, count)], steps)
    if _has_dark_shadow(system, column, steps):
        return True
    return _has_case(system, [(known, _missed(known[0][column], largest)) for known in near], steps)


def _has_case(system: Rows, cases: list[tuple[Known, int]], steps: Steps) -> bool:
    """Whether the system has a solution in which a left side has one of as many values, the smallest ones."""
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
    """How many values the left side with the fewest has between opposite inequalities, and it; 0 if there is none."""
    fewest = 0
    found: Known = ((), 0)
    for row, constant in system.inequalities.items():
        room = system.inequalities.get(tuple(map(neg, row)))
        if room is not None and (not fewest or room + constant < fewest - 1):
            fewest, found = room + constant + 1, (row, constant)
    return fewest, found


def _cheapest_shadow(system: Rows) -> tuple[int, int, list[Known], int]:
    """The steps, the variable, its bounds on the side with fewer cases, its largest coefficient on the other side."""
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
    """Bounds of a linear expression: (least, most), each None where there is none.

    They hold for all integers that meet the constraints; within the limit, and where they are no further than
    _MOST_TIGHTENED from those of rational numbers, they are reached. None where no integers meet the constraints;
    (None, None) beyond the limit.
    """
    negated: Linear = {variable: -coefficient for variable, coefficient in value[0].items()}, -value[1]
    found = _rational_bounds(value, negated, equalities, inequalities, limit)
    if found is None:
        return None
    low, high = found
    least = None if low is None else _reached(low, negated, equalities, inequalities, limit)
    most = None if high is None else _reached(-high, value, equalities, inequalities, limit)
    return least, None if most is None else -most


def _reached(
    low: int, negated: Linear, equalities: Sequence[Linear], inequalities: Sequence[Linear], limit: int
) -> int:
    """The lower bound of an expression, made larger while the expression cannot be as small as that."""
    for bound in range(low, low + _MOST_TIGHTENED):
        at_most = negated[0], negated[1] + bound
        if has_solution(equalities, [*inequalities, at_most], limit) is not False:
            return bound
    return low + _MOST_TIGHTENED


def _rational_bounds(
    value: Linear, negated: Linear, equalities: Sequence[Linear], inequalities: Sequence[Linear], limit: int
) -> tuple[int | None, int | None] | None:
    """The bounds that are left where everything else is eliminated as if it were any rational number."""
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
