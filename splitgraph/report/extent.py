"""How much of a long page is shown."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

from splitgraph.report.layout import Block, line

# Rows of each table that a page shows unless everything is asked for.
_MOST_ROWS = 20

Row = TypeVar("Row")


class Extent(NamedTuple):
    """How much is shown: everything or not, and what to do to see more."""

    with_all: bool
    more: str

    def cut(self, rows: Sequence[Row]) -> tuple[Sequence[Row], list[Block]]:
        """The rows that are shown, and a line that says how many are not."""
        # One row takes no more place than the line that stands for it.
        if self.with_all or len(rows) <= _MOST_ROWS + 1:
            return rows, []
        return rows[:_MOST_ROWS], [line((f"  … and {len(rows) - _MOST_ROWS:,} more; {self.more}", "dim"))]

    def left_out(self, text: str) -> Block:
        """A line about what is not shown."""
        return line((f"  {text}; {self.more}", "dim"))
