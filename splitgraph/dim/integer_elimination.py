"""The next variable to remove from a linear system over the integers, chosen by structure."""

from __future__ import annotations

from collections.abc import Collection

from splitgraph.dim.integer_rows import Rows


class LimitReached(Exception):
    """The question needs more steps than it may take."""


class Steps:
    """How many more new inequalities one question may make."""

    __slots__ = ("left",)

    def __init__(self, left: int) -> None:
        self.left = left

    def take(self, count: int) -> None:
        """Counts before the work is done: where the limit ends it must not depend on the order of the work."""
        if count > self.left:
            raise LimitReached
        self.left -= count


def eliminate(system: Rows, steps: Steps, exactly: bool, kept: Collection[int] = ()) -> None:
    """Removes variables until none is left, or, if `exactly`, none that always has a value when the others have.

    Without `exactly` the columns must be in order.
    """
    while True:
        if system.equalities:
            _solve_an_equality(system)
        elif not system.inequalities or not _eliminate_one(system, steps, exactly, kept):
            return


def _solve_an_equality(system: Rows) -> None:
    """Takes the smallest coefficient, and of those the one whose variable makes the fewest new terms."""
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
    """Removes all variables that are free on one side, or else the one that makes the fewest new inequalities."""
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
        low = len([x for x in values if x > 0])
        high = len(values) - values.count(0) - low
        key = (inexact, low * high - low - high, low * high, most - least)
        if best is None or key < best:
            best, choices = key, [column]
        elif key == best:
            choices.append(column)
    if free:
        # The same inequalities are left in whatever order, but the values that follow from the trail may differ.
        system.forget(free if exactly else sorted(free, key=system.rank))
        return True
    if best is None:
        return False
    if len(choices) > 1 and system.ranks is None:
        system.put_in_order()
    steps.take(best[2])
    system.eliminate(min(choices, key=system.rank) if len(choices) > 1 else choices[0])
    return True
