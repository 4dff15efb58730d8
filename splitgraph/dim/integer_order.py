"""An order of the columns of a linear system that depends on its structure only, not on how its variables are numbered.

Columns are told apart by the rows they are in, and rows by their columns, until nothing more can be told apart (colour
refinement, as in tests of graph isomorphism). Among columns that are still alike each is tried as the first one, and
the one that gives the smallest description of the system is taken. Where two give the same description, the system
looks the same either way.
"""

from __future__ import annotations

from collections.abc import Sequence

Row = tuple[int, ...]
# Whether a row is an equality, its constant, and the row.
Described = tuple[bool, int, Row]
# The same with colours of columns: an equality or not, the constant, and each colour with its coefficient.
_Seen = tuple[bool, int, tuple[tuple[int, int], ...]]

# More alike columns than this are taken as they stand. So many are interchangeable in practice, as symbols with equal
# bounds.
MOST_TRIES = 6


def structural_order(rows: Sequence[Described], width: int) -> list[int]:
    """The columns that rows use, in an order by structure only; an equality must be given with both signs."""
    used = [column for column in range(width) if any(row[column] for _, _, row in rows)]
    colours, _ = _refined(rows, dict.fromkeys(used, 0))
    while alike := _first_alike(colours):
        if len(alike) > MOST_TRIES:
            places = {column: place for place, column in enumerate(alike)}
            colours, _ = _refined(rows, {c: len(alike) * colour + places.get(c, 0) for c, colour in colours.items()})
            continue
        tries = [
            _refined(rows, {other: 2 * colour + (other != column) for other, colour in colours.items()})
            for column in alike
        ]
        colours, _ = min(tries, key=lambda tried: tried[1])
    return sorted(colours, key=colours.__getitem__)


def _first_alike(colours: dict[int, int]) -> list[int]:
    """The columns of the first colour that several have; none if each has its own."""
    of_colour: dict[int, list[int]] = {}
    for column, colour in colours.items():
        of_colour.setdefault(colour, []).append(column)
    return of_colour[min(shared)] if (shared := [c for c, columns in of_colour.items() if len(columns) > 1]) else []


def _refined(rows: Sequence[Described], colours: dict[int, int]) -> tuple[dict[int, int], list[_Seen]]:
    """Colours of the columns, as fine as the rows tell them apart, and a description of the system by colours."""
    entries = [[(column, row[column]) for column in colours if row[column]] for _, _, row in rows]
    classes = len(set(colours.values()))
    while True:
        row_keys = [
            (is_equality, constant, tuple(sorted([(colours[column], value) for column, value in entry])))
            for (is_equality, constant, _), entry in zip(rows, entries, strict=True)
        ]
        description = sorted(row_keys)
        if classes == len(colours):
            return colours, description
        ranks = {key: rank for rank, key in enumerate(description)}
        seen: dict[int, list[tuple[int, int]]] = {column: [] for column in colours}
        for key, entry in zip(row_keys, entries, strict=True):
            for column, value in entry:
                seen[column].append((ranks[key], value))
        column_keys = {column: (colours[column], tuple(sorted(seen[column]))) for column in colours}
        ranks_of_columns = {key: rank for rank, key in enumerate(sorted(set(column_keys.values())))}
        colours = {column: ranks_of_columns[key] for column, key in column_keys.items()}
        if len(ranks_of_columns) == classes:
            return colours, description
        classes = len(ranks_of_columns)
