"""One thing that is known of dimensions."""

from __future__ import annotations

from typing import NamedTuple

from splitgraph.dim.arithmetic import Dim


class Fact(NamedTuple):
    """`difference >= 0`, or `difference == 0` where it is an equality."""

    difference: Dim
    is_equality: bool

    @property
    def sides(self) -> tuple[Dim, ...]:
        """What is at least 0."""
        return (self.difference, -self.difference) if self.is_equality else (self.difference,)
